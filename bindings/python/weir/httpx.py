# SPDX-License-Identifier: Apache-2.0
"""Transports of httpx over weir.client: what uses an httpx client keeps to servers' rate limits.

    session = weir.client.Session(state="limits.map")
    with httpx.Client(transport=weir.httpx.Transport(session)) as client: ...
    async with httpx.AsyncClient(transport=weir.httpx.AsyncTransport(session)) as client: ...

A final answer comes as it is, also the last 429. Where there is none:
httpx.PoolTimeout for a request that found no room under the limit in its time, httpx.ReadTimeout, or
httpx.ConnectError. A body is read whole before the answer is returned; httpx's own timeouts, proxies
and certificates are not used. The session is the caller's to close.
"""

import httpx

from weir.client import Failed, Limited, Timeout

__all__ = ["AsyncTransport", "Transport"]

# What libcurl writes itself.
_OWN = {"host", "content-length", "transfer-encoding", "connection"}
# What describes the transfer, which has ended.
_ENDED = {"transfer-encoding", "connection"}


def _given(request, body, options):
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers.raw
              if name.decode("latin-1").lower() not in _OWN}
    return (request.method, str(request.url)), {"headers": fields, "data": body or None, **options}


def _answer(request, response):
    fields = [(name, value) for name, value in response.fields if name not in _ENDED]
    return httpx.Response(response.status, headers=fields, request=request,
                          stream=httpx.ByteStream(response.content))


def _failed(request, error):
    """The last answer, or an error of httpx that is raised."""
    if isinstance(error, Limited) and error.response is not None:
        return _answer(request, error.response)
    kind = (httpx.PoolTimeout if isinstance(error, Limited)
            else httpx.ReadTimeout if isinstance(error, Timeout) else httpx.ConnectError)
    if error.response is not None and kind is httpx.ConnectError:
        return _answer(request, error.response)
    raise kind(str(error), request=request) from error


class Transport(httpx.BaseTransport):
    """Over a weir.client.Session; options are those of Session.request, such as idempotency_key."""

    def __init__(self, session, **options):
        self._session, self._options = session, options

    def handle_request(self, request):
        positional, named = _given(request, request.read(), self._options)
        try:
            return _answer(request, self._session.request(*positional, **named))
        except Failed as error:
            return _failed(request, error)


class AsyncTransport(httpx.AsyncBaseTransport):
    """As Transport, for httpx.AsyncClient."""

    def __init__(self, session, **options):
        self._session, self._options = session, options

    async def handle_async_request(self, request):
        positional, named = _given(request, await request.aread(), self._options)
        try:
            return _answer(request, await self._session.arequest(*positional, **named))
        except Failed as error:
            return _failed(request, error)
