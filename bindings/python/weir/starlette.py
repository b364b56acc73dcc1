# SPDX-License-Identifier: Apache-2.0
"""Starlette and FastAPI: the middleware of weir.asgi, a decorator for single endpoints, and a
dependency for single routes of FastAPI.

    app.add_middleware(weir.starlette.Middleware, limiter=limiter)         # every request

    guard = weir.starlette.Weir(limiter)

    @guard.limit(cost=2)                                                   # or this endpoint only
    async def login(request): ...

    @app.post("/login", dependencies=[Depends(weir.starlette.Limit(limiter, cost=2))])
    async def login(): ...                                                 # or this route of FastAPI
"""

import asyncio
import copy
import functools
import inspect

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from weir import asgi
from weir._guard import Guard, adrive
from weir.asgi import Middleware

__all__ = ["Fields", "Limit", "Limited", "Middleware", "Weir"]


class Limited(HTTPException):
    """A request that does not pass; `answer` is its weir.Answer, None where weir could not decide.
    An exception handler may turn it into any response."""

    def __init__(self, verdict, headers):
        self.answer = verdict.answer
        detail = f"limited by {self.answer.denied_by}" if verdict.limited else None
        super().__init__(verdict.status, detail, dict(headers))


class Fields:
    """A middleware that completes what dependencies have begun: their fields are on every answer, also on
    a Response that an endpoint returns, a stream, a 404 or a 422; the status of the answer settles, and is
    the outcome for `refund_on` and penalties; leases end with the answer.

        app.add_middleware(weir.starlette.Fields)
    """

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        verdicts = scope["weir.verdicts"] = []
        await asgi.run(self.app, scope, receive, send, verdicts)


class Limit:
    """A dependency of FastAPI. The options are those of Guard, without on_limited: catch Limited.
    The other functions are called with the Request.

    Alone, a dependency does not see the answer: its fields are only on answers that FastAPI makes of
    what an endpoint returns, and its lease ends with the dependency. Fields completes it."""

    def __init__(self, limiter, **options):
        self.guard = Guard(limiter, **options)

    async def __call__(self, request: Request, response: Response):
        verdicts = request.scope.get("weir.verdicts")
        if verdicts is None and self.guard.settles:
            raise RuntimeError("a dependency does not see the status of the answer: settle, skip_successful and "
                               "skip_failed need app.add_middleware(weir.starlette.Fields)")
        verdict = await asgi.decide(self.guard, request.scope, request)
        await asgi.wait(verdict)
        if verdicts is not None:
            verdicts.append(verdict)
        if not verdict.passes:
            raise Limited(verdict, () if verdicts is not None else verdict.headers)
        if verdicts is not None:
            asgi.keep(verdict)
            yield verdict.answer
            return
        for name, value in verdict.headers:
            response.headers.append(name, value)
        try:
            yield verdict.answer
        finally:
            verdict._release()


class _Answered(Response):
    """The response of an endpoint: its fields are added as it is sent, and its end is the request's.
    All else is the response's own; a copy, also a pickled one, is of the response alone."""

    def __init__(self, response, verdict):
        vars(self).update(response=response, verdict=verdict)

    def __getattr__(self, name):
        if name in ("response", "verdict"):  # __init__ has not run
            raise AttributeError(name)
        return getattr(self.response, name)

    def __setattr__(self, name, value):
        setattr(self.response, name, value)

    async def __call__(self, scope, receive, send):
        await asgi.run(self.response, scope, receive, send, [self.verdict])

    def __reduce__(self):
        return copy.copy, (self.response,)

    def __del__(self):
        """Where another response was sent instead; on any thread."""
        if "verdict" in vars(self):
            asgi.stop(self.verdict)
            self.verdict.finish(self.response.status_code)


class Weir:
    """Limits for single endpoints of Starlette: functions of a request or a WebSocket, and methods of
    an HTTPEndpoint. The options are those of Guard; attributes, cost, skip, settle and on_limited are
    called with the Request or WebSocket, and on_limited may return a Response.

    request.scope["weir.answer"] is the weir.Answer."""

    def __init__(self, limiter, **options):
        self.limiter = limiter
        self.options = options
        self.guard = Guard(limiter, **options)

    def limit(self, endpoint=None, **options):
        """Decides the requests of one endpoint. The options are added to those of this object."""
        if endpoint is not None:
            return self._wrap(endpoint, self.guard)
        guard = Guard(self.limiter, **{**self.options, **options})
        return lambda function: self._wrap(function, guard)

    @staticmethod
    def _wrap(endpoint, guard):
        is_async = iscoroutinefunction(endpoint)

        @functools.wraps(endpoint)
        async def limited(*arguments, **named):
            given = next(one for one in (*arguments, *named.values())
                         if isinstance(one, HTTPConnection))
            verdict = await asgi.decide(guard, given.scope, given)
            given.scope["weir.answer"] = verdict.answer
            await asgi.wait(verdict)
            if isinstance(given, WebSocket):
                return await _talk(guard, verdict, given, endpoint, arguments, named)
            if not verdict.passes:
                return await _denial(guard, verdict, given)
            asgi.keep(verdict)
            try:
                if is_async:
                    response = await endpoint(*arguments, **named)
                else:
                    response = await run_in_threadpool(endpoint, *arguments, **named)
            except BaseException as error:
                await _fail(verdict, error)
                raise
            return _Answered(response, verdict)

        return limited


def iscoroutinefunction(function):
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function)


async def _fail(verdict, error):
    """An exception leaves an endpoint: what handles it answers."""
    if isinstance(error, HTTPException):
        error.headers = {**(error.headers or {}), **dict(verdict.headers)}
        await verdict.afinish(error.status_code)
    elif isinstance(error, (asyncio.CancelledError, ClientDisconnect)):
        verdict.leave()
    else:
        await verdict.afinish(500)


async def _denial(guard, verdict, given):
    """The response to a request that does not pass."""
    response = await adrive(guard.limiting(given, verdict))
    if response is not None:
        for name, value in verdict.headers:
            response.headers.append(name, value)
        return response
    headers, body = verdict.denial
    response = Response(body, verdict.status)
    del response.headers["Content-Length"]
    for name, value in headers:
        response.headers.append(name, value)
    return response


async def _talk(guard, verdict, websocket, endpoint, arguments, named):
    """A WebSocket: its handshake has been decided."""
    if not verdict.passes:
        if (hasattr(websocket, "send_denial_response")
                and "websocket.http.response" in websocket.scope.get("extensions", ())):
            await websocket.send_denial_response(await _denial(guard, verdict, websocket))
        else:
            await websocket.close(1008)  # before it is accepted: a 403
        return

    async def app(scope, receive, send):
        websocket.send = send  # its accept and its close go through it
        await endpoint(*arguments, **named)

    await asgi.run(app, websocket.scope, None, websocket.send, [verdict])
