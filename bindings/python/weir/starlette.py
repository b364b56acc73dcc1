# SPDX-License-Identifier: Apache-2.0
"""Starlette and FastAPI: the middleware of weir.asgi, and a dependency for single routes.

    app.add_middleware(weir.starlette.Middleware, limiter=limiter)         # every request

    @app.post("/login", dependencies=[Depends(weir.starlette.Limit(limiter, cost=2))])
    async def login(): ...                                                 # or this route only
"""

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from weir import asgi
from weir._guard import Guard
from weir.asgi import Middleware

__all__ = ["Limit", "Limited", "Middleware"]


class Limited(HTTPException):
    """A request that does not pass; `answer` is its weir.Answer, None where weir could not decide.
    An exception handler may turn it into any response."""

    def __init__(self, verdict):
        self.answer = verdict.answer
        detail = f"limited by {self.answer.denied_by}" if verdict.limited else None
        super().__init__(verdict.status, detail, dict(verdict.headers))


class Limit:
    """A dependency of FastAPI. The options are those of Guard, without on_limited: catch Limited.
    attributes and cost are called with the Request.

    Its lease ends with the dependency; limits with `refund_on` need the middleware, which sees the
    status of every answer."""

    def __init__(self, limiter, **options):
        self.guard = Guard(limiter, **options)

    async def __call__(self, request: Request, response: Response):
        verdict = asgi.decide(self.guard, request.scope, request)
        try:
            if verdict.delay > 0:
                await asyncio.sleep(verdict.delay)
        except BaseException:
            verdict.cancel()
            raise
        if not verdict.passes:
            raise Limited(verdict)
        for name, value in verdict.headers:
            response.headers.append(name, value)
        try:
            yield verdict.answer
        finally:
            verdict._release()
