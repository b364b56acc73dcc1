# SPDX-License-Identifier: Apache-2.0
"""Django: a middleware, for WSGI and ASGI, and a decorator for single views.

    MIDDLEWARE = ["weir.django.Middleware", ...]            # every request
    WEIR = {"rules": BASE_DIR / "weir.yaml", "state": "/run/app/weir.state"}

    @weir.django.limit(cost=2)                              # or this view only
    def login(request): ...

WEIR may have what weir.open takes, and the options of Guard. attributes, cost, skip, settle and
on_limited are called with the HttpRequest (a text is imported as "module.function"); on_limited may
return an HttpResponse. request.weir_answer is the weir.Answer.
"""

import asyncio
import functools
import threading
from urllib.parse import unquote_to_bytes

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import BadRequest, PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpResponse
from django.utils.encoding import repercent_broken_unicode
from django.utils.module_loading import import_string

import weir
from weir import asgi, wsgi
from weir._guard import Guard, adrive, drive, sent_path, wait_by_asgiref

__all__ = ["Middleware", "limit"]

FUNCTIONS = ("attributes", "cost", "ip", "on_limited", "settle", "skip")
GUARD = (*FUNCTIONS, "on_error", "max_delay", "skip_successful", "skip_failed")

_lock = threading.Lock()
_opened = (None, None)  # settings.WEIR, and its limiter


def _limiter(options):
    """One for the whole process, of the present settings."""
    global _opened
    with _lock:
        if _opened[0] is not settings.WEIR:
            _opened = settings.WEIR, options.pop("limiter", None) or weir.open(**options)
        return _opened[1]


def _guard(more):
    options = dict(settings.WEIR)
    own = {name: options.pop(name) for name in GUARD if name in options}
    own.update(more)
    for name in FUNCTIONS:
        if isinstance(own.get(name), str):
            own[name] = import_string(own[name])
    own.setdefault("max_delay", 10.0)
    guard = Guard(_limiter(options), **own)
    guard.wait = wait_by_asgiref
    return guard


def _decoded(raw):
    """A path as Django reads it."""
    return repercent_broken_unicode(unquote_to_bytes(raw.encode("latin-1", "replace"))).decode()


def _path(request):
    """Its own form of the path is in META, too, in place of that of WSGI."""
    scope = getattr(request, "scope", None)  # of ASGI
    return asgi.path_of(scope) if scope else sent_path(request.path, wsgi.raw_of(request.META), _decoded)


def _deciding(guard, request):
    return wsgi.deciding(guard, request.META, request, _path(request))


def _handle(guard, request, get_response):
    verdict = drive(_deciding(guard, request), guard.wait)
    wsgi.wait(verdict)
    response = drive(_before(guard, request, verdict), guard.wait)
    if response is not None:
        return response
    try:
        return _after(get_response(request), verdict)
    except BaseException as error:
        verdict.finish(_status_of(error))
        raise


async def _ahandle(guard, request, get_response):
    verdict = await adrive(_deciding(guard, request))
    await asgi.wait(verdict)
    response = await adrive(_before(guard, request, verdict))
    if response is not None:
        return response
    try:
        return _after(await get_response(request), verdict)
    except asyncio.CancelledError:  # the client has left
        verdict.leave()
        raise
    except BaseException as error:
        await verdict.afinish(_status_of(error))
        raise


def _status_of(error):
    """That of the answer which Django makes of an exception."""
    for kind, status in ((Http404, 404), (PermissionDenied, 403), (BadRequest, 400),
                         (SuspiciousOperation, 400)):
        if isinstance(error, kind):
            return status
    return 500


def _before(guard, request, verdict):
    """A generator that returns None, or the response to a request that does not pass."""
    request.weir_answer = verdict.answer
    if verdict.passes:
        return None
    response = yield from guard.limiting(request, verdict)
    if response is not None:
        return _after(response, verdict)
    headers, body = verdict.denial
    response = HttpResponse(body, status=verdict.status)
    if not body:
        del response["Content-Type"]
    for name, value in headers:
        response[name] = value
    return response


def _after(response, verdict):
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


class Middleware:
    """The rules are opened when the first one is made, once for the process."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response):
        self.get_response = get_response
        self.guard = _guard({})
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request):
        handle = _ahandle if self.is_async else _handle
        return handle(self.guard, request, self.get_response)


class _Views:
    """The guard of decorated views; made with their first request, when the settings are there."""

    def __init__(self, options):
        self.options = options
        self.of, self.guard = None, None

    def get(self):
        if self.of is not settings.WEIR:
            self.guard, self.of = _guard(self.options), settings.WEIR
        return self.guard


def limit(view=None, **options):
    """Decides the requests of one view, a function or a coroutine function; of a class by
    method_decorator(limit, name="dispatch"). The options are added to those of settings.WEIR."""
    if view is None:
        return functools.partial(limit, **options)
    views = _Views(options)
    if iscoroutinefunction(view):
        @functools.wraps(view)
        async def limited(request, *arguments, **named):
            return await _ahandle(views.get(), request,
                                  lambda given: view(given, *arguments, **named))
    else:
        @functools.wraps(view)
        def limited(request, *arguments, **named):
            return _handle(views.get(), request, lambda given: view(given, *arguments, **named))
    return limited
