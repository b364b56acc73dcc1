# SPDX-License-Identifier: Apache-2.0
"""Middleware for WSGI (PEP 3333):

    app = weir.wsgi.Middleware(app, weir.open("weir.yaml", state="/run/app/weir.state"))

Every answer gets the fields of rate limits. A denied request gets the status, the fields and the body
that the rules say. environ["weir.answer"] is the weir.Answer of the request.
"""

import time
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from weir._guard import NOBODY, Guard, drive, sent_path

__all__ = ["Middleware"]


def _variable(field):
    """X-Api-Key is HTTP_X_API_KEY."""
    name = field.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else "HTTP_" + name


def _octets(text):
    """A text of WSGI has one character per byte."""
    return text if text is None or text.isascii() else text.encode("latin-1", "replace")


def _decoded(raw):
    return unquote_to_bytes(raw.encode("latin-1", "replace")).decode("latin-1")


def raw_of(environ):
    """The target as it was sent, by the name that the server has for it; None: it does not say it."""
    return environ.get("RAW_URI") or environ.get("REQUEST_URI")


def path_of(environ):
    """The path of a request, without its query, as bytes."""
    return _octets(sent_path(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""),
                             raw_of(environ), _decoded) or "/")


def deciding(guard, environ, request, path=None):
    """A generator that returns the Verdict on a request; `request` is what the guard's functions are
    called with, `path` that of a request that did not come by WSGI."""
    get = environ.get
    path = path_of(environ) if path is None else path
    if get("QUERY_STRING"):
        query = _octets(environ["QUERY_STRING"])
        path = b"?".join(one.encode("utf-8", "surrogateescape") if isinstance(one, str) else one
                         for one in (path, query))
    values = {"method": environ["REQUEST_METHOD"], "path": path,
              "host": _octets(get("HTTP_HOST"))}
    for variable, name in guard.fields_read(_variable).items():
        values[name] = _octets(get(variable))
    # Servers on a Unix socket give an empty address; without any, nobody says who is connected.
    return guard.deciding(request, environ.setdefault("weir.met", []), values,
                          get("REMOTE_ADDR", NOBODY), get("HTTP_X_FORWARDED_FOR"),
                          get("HTTP_FORWARDED"))


def wait(verdict):
    """Holds a request on its thread; it is cancelled where the thread is interrupted."""
    if verdict.delay > 0:
        try:
            time.sleep(verdict.delay)
        except BaseException:
            verdict.cancel()
            raise


def status_line(status):
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Denied"


class _Body:
    """The body of an answer: its end is that of the request."""

    def __init__(self, body, verdict, answered):
        self.body, self.verdict, self.answered = body, verdict, answered
        self.chunks = iter(body)

    def __iter__(self):
        return self

    def __next__(self):
        self.verdict.renew_if_due()
        return next(self.chunks)

    def close(self):
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.verdict.finish(self.answered[0])


class Middleware:
    """Wraps a WSGI application; the options are those of Guard.

    attributes, cost and on_limited are called with the environ. on_limited may return a WSGI
    application, which then answers. A delay holds the thread: `max_delay` bounds it."""

    def __init__(self, app, limiter, *, max_delay=10.0, **options):
        self.app = app
        self.guard = Guard(limiter, max_delay=max_delay, **options).refuse_coroutine_functions()

    def __call__(self, environ, start_response):
        verdict = drive(deciding(self.guard, environ, environ))
        environ["weir.answer"] = verdict.answer
        answered = [500]

        def start(status, headers, exc_info=None):
            answered[0] = int(status[:3])
            headers = [*headers, *verdict.headers]
            return start_response(status, headers, exc_info) if exc_info else \
                start_response(status, headers)

        wait(verdict)
        if not verdict.passes:
            return self.deny(environ, verdict, start, start_response)
        if not verdict.open:
            return self.app(environ, start)
        try:
            return _Body(self.app(environ, start), verdict, answered)
        except BaseException:
            verdict.finish(500)
            raise

    def deny(self, environ, verdict, start, start_response):
        app = drive(self.guard.limiting(environ, verdict))
        if app is not None:
            return app(environ, start)
        headers, body = verdict.denial
        start_response(status_line(verdict.status), headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]
