# SPDX-License-Identifier: Apache-2.0
"""Django: a middleware, for WSGI and ASGI.

    MIDDLEWARE = ["weir.django.Middleware", ...]
    WEIR = {"rules": BASE_DIR / "weir.yaml", "state": "/run/app/weir.state"}

WEIR may have what weir.open takes, and the options of Guard. attributes, cost and on_limited are
called with the HttpRequest (a text is imported as "module.function"); on_limited may return an
HttpResponse. request.weir_answer is the weir.Answer.
"""

import asyncio
import functools

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpResponse
from django.utils.module_loading import import_string

import weir
from weir import wsgi
from weir._guard import Guard

__all__ = ["Middleware"]

GUARD = ("attributes", "cost", "on_limited", "on_error", "max_delay")


def _guard():
    options = dict(settings.WEIR)
    own = {name: options.pop(name) for name in GUARD if name in options}
    for name in ("attributes", "cost", "on_limited"):
        if isinstance(own.get(name), str):
            own[name] = import_string(own[name])
    own.setdefault("max_delay", 10.0)
    limiter = options.pop("limiter", None) or weir.open(**options)
    return Guard(limiter, **own)


class Middleware:
    """One for each application of the process; it opens the rules when it is made."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response):
        self.get_response = get_response
        self.guard = _guard()
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request):
        if self.is_async:
            return self.acall(request)
        verdict = wsgi.decide(self.guard, request.META, request)
        wsgi.wait(verdict)
        response = self.before(request, verdict)
        if response is not None:
            return response
        try:
            return self.after(self.get_response(request), verdict)
        except BaseException:
            verdict.finish(500)
            raise

    async def acall(self, request):
        verdict = wsgi.decide(self.guard, request.META, request)
        try:
            if verdict.delay > 0:
                await asyncio.sleep(verdict.delay)
        except BaseException:
            verdict.cancel()
            raise
        response = self.before(request, verdict)
        if response is not None:
            return response
        try:
            return self.after(await self.get_response(request), verdict)
        except BaseException:
            verdict.finish(500)
            raise

    def before(self, request, verdict):
        """None, or the response to a request that does not pass."""
        request.weir_answer = verdict.answer
        if verdict.passes:
            return None
        if verdict.limited and self.guard.on_limited is not None:
            response = self.guard.on_limited(request, verdict.answer)
            if response is not None:
                return self.after(response, verdict)
        headers, body = verdict.denial
        response = HttpResponse(body, status=verdict.status)
        if not body:
            del response["Content-Type"]
        for name, value in headers:
            response[name] = value
        return response

    @staticmethod
    def after(response, verdict):
        for name, value in verdict.headers:
            response[name] = value
        if verdict.open:
            response.close = functools.partial(_close, response.close, verdict, response)
        return response


def _close(close, verdict, response):
    try:
        close()
    finally:
        verdict.finish(response.status_code)
