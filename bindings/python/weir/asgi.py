# SPDX-License-Identifier: Apache-2.0
"""Middleware for ASGI 3 (FastAPI, Starlette, Django, Quart, ...), HTTP and WebSocket:

    app.add_middleware(weir.asgi.Middleware, limiter=weir.open("weir.yaml", state="..."))

Every answer gets the fields of rate limits. A denied request gets the status, the fields and the body
that the rules say; so does a WebSocket's handshake, where the server knows how to send it, else it is
refused with 403. scope["weir.answer"] is the weir.Answer of the request.
"""

import asyncio
from urllib.parse import unquote

from weir._guard import Guard, adrive, sent_path

__all__ = ["Middleware"]


def _joined(first, second):
    return second if first is None else first + b", " + second


def path_of(scope):
    """The path of a request, without its query."""
    raw = scope.get("raw_path")
    if isinstance(raw, bytes):  # a text by some servers
        raw = raw.decode("latin-1")
    return sent_path(scope["path"], raw, unquote) or "/"


async def decide(guard, scope, request):
    """The Verdict on a request; `request` is what the guard's functions are called with."""
    path, query = path_of(scope), scope.get("query_string")
    if query:
        path = path.encode("utf-8", "surrogateescape") + b"?" + query
    values = {"method": scope.get("method", "GET"), "path": path}
    fields = guard.fields_read(lambda name: name.encode("latin-1"))
    for name in fields.values():
        values[name] = ()
    forwarded_for = forwarded = None
    for name, value in scope["headers"]:
        if name in fields:
            values[fields[name]] += (value,)
        if name == b"host":
            values["host"] = value
        elif name == b"x-forwarded-for":
            forwarded_for = _joined(forwarded_for, value)
        elif name == b"forwarded":
            forwarded = _joined(forwarded, value)
    peer = scope.get("client")
    return await adrive(guard.deciding(request, scope.setdefault("weir.met", []), values,
                                       peer[0] if peer else None, forwarded_for, forwarded))


async def wait(verdict):
    """Holds a request; it is cancelled where its task is."""
    if verdict.delay > 0:
        try:
            await asyncio.sleep(verdict.delay)
        except BaseException:
            verdict.cancel()
            raise


def _encoded(headers):
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def keep(verdict):
    """Renews the lease of a request until it has ended."""
    def renew():
        verdict.renew()
        keep(verdict)

    if verdict.lease is not None:
        verdict.loop = asyncio.get_running_loop()
        verdict.timer = verdict.loop.call_later(verdict.life / 3, renew)


def stop(verdict):
    """Renews no more; on any thread."""
    timer, verdict.timer = verdict.timer, None
    if timer is not None:
        try:
            verdict.loop.call_soon_threadsafe(timer.cancel)
        except RuntimeError:
            pass  # the loop is closed, and its timers with it


async def run(app, scope, receive, send, verdicts):
    """Runs an application for a request that passes: adds the fields, and ends with the answer what
    the verdicts have begun. More of them may come until the answer begins."""
    status, begun, left = 500, False, False

    async def receiving():
        nonlocal left
        message = await receive()
        if message["type"].endswith(".disconnect"):
            left = left or not begun
        return message

    async def sending(message):
        nonlocal status, begun
        kind = message["type"]
        if kind in ("http.response.start", "websocket.accept", "websocket.http.response.start"):
            begun, status = True, message.get("status", 101)
            headers = (one for verdict in verdicts for one in _encoded(verdict.headers))
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        elif kind == "websocket.close" and status == 500:
            begun, status = True, 403
        await send(message)
        if kind == "http.response.body" and not message.get("more_body", False):
            await end()  # work in the background is no part of the request

    async def end():
        for verdict in verdicts:
            if left:
                verdict.leave()
            else:
                await verdict.afinish(status)

    for verdict in verdicts:
        if verdict.timer is None:
            keep(verdict)
    try:
        await app(scope, receiving, sending)
    except asyncio.CancelledError:
        left = left or not begun
        raise
    finally:
        await end()


class Middleware:
    """Wraps an ASGI application; the options are those of Guard.

    attributes, cost and on_limited are called with the scope. on_limited may return an ASGI
    application, or an awaitable of one, which then answers. Requests that are held do not hold up
    others."""

    def __init__(self, app, limiter, **options):
        self.app = app
        self.guard = Guard(limiter, **options)

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        verdict = await decide(self.guard, scope, scope)
        scope["weir.answer"] = verdict.answer
        await wait(verdict)
        if not verdict.passes:
            await self.deny(scope, receive, send, verdict)
        else:
            await run(self.app, scope, receive, send, [verdict])

    async def deny(self, scope, receive, send, verdict):
        app = await adrive(self.guard.limiting(scope, verdict))
        if app is not None:
            await self.run_denial(app, scope, receive, send, verdict)
            return
        headers, body = verdict.denial
        if scope["type"] == "http":
            await _answer(send, "http.response", verdict.status, headers, body)
        elif "websocket.http.response" in scope.get("extensions", ()):
            await _answer(send, "websocket.http.response", verdict.status, headers, body)
        else:
            await receive()  # websocket.connect; to close before it is accepted is a 403
            await send({"type": "websocket.close", "code": 1008})

    @staticmethod
    async def run_denial(app, scope, receive, send, verdict):
        headers = _encoded(verdict.headers)

        async def sending(message):
            if message["type"].endswith("http.response.start"):
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        await app(scope, receive, sending)


async def _answer(send, kind, status, headers, body):
    await send({"type": kind + ".start", "status": status, "headers": _encoded(headers)})
    await send({"type": kind + ".body", "body": body})
