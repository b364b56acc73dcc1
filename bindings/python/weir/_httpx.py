# SPDX-License-Identifier: Apache-2.0
"""The transports over weir.client for httpx and for its successor httpx2, which differ by their classes only."""

from weir._transport import answered, asked, last_answer
from weir.client import Failed, Limited, Response, Stream, Timeout


def transports(httpx):
    """(Transport, AsyncTransport) of one of the two modules."""

    def given(request, body, options):
        return (request.method, str(request.url)), {"headers": asked(request.headers.raw), "data": body or None,
                                                    **options}

    def broken(request, error):
        """The error of httpx for an answer that broke off."""
        kind = httpx.ReadTimeout if isinstance(error, Timeout) else httpx.ReadError
        raise kind(str(error), request=request) from error

    class Pieces(httpx.SyncByteStream):
        """A body while it arrives."""

        def __init__(self, request, stream):
            self._request, self._stream = request, stream

        def __iter__(self):
            try:
                yield from self._stream
            except Failed as error:
                broken(self._request, error)

        def close(self):
            self._stream.close()

    class AsyncPieces(httpx.AsyncByteStream):
        def __init__(self, request, stream):
            self._request, self._stream = request, stream

        async def __aiter__(self):
            try:
                async for piece in self._stream:
                    yield piece
            except Failed as error:
                broken(self._request, error)

        async def aclose(self):
            await self._stream.aclose()

    def answer(request, response):
        if isinstance(response, Response):  # the last one, that was refused or failed
            body = httpx.ByteStream(response.content)
        else:
            body = (Pieces if isinstance(response, Stream) else AsyncPieces)(request, response)
        return httpx.Response(response.status, headers=answered(response), request=request, stream=body)

    def failed(request, error):
        """The last answer, or an error of httpx that is raised."""
        last = last_answer(error)
        if last is not None:
            return answer(request, last)
        kind = (httpx.PoolTimeout if isinstance(error, Limited)
                else httpx.ReadTimeout if isinstance(error, Timeout) else httpx.ConnectError)
        raise kind(str(error), request=request) from error

    class Transport(httpx.BaseTransport):
        """Over a weir.client.Session; options are those of Session.request, such as idempotency_key."""

        def __init__(self, session, **options):
            self._session, self._options = session, options

        def handle_request(self, request):
            positional, named = given(request, request.read(), self._options)
            try:
                return answer(request, self._session.stream(*positional, **named))
            except Failed as error:
                return failed(request, error)

    class AsyncTransport(httpx.AsyncBaseTransport):
        """As Transport, for httpx.AsyncClient."""

        def __init__(self, session, **options):
            self._session, self._options = session, options

        async def handle_async_request(self, request):
            positional, named = given(request, await request.aread(), self._options)
            try:
                return answer(request, await self._session.astream(*positional, **named))
            except Failed as error:
                return failed(request, error)

    return Transport, AsyncTransport
