# SPDX-License-Identifier: Apache-2.0
"""An HTTP client that keeps to servers' rate limits: it paces requests by what answers say, and retries.

    with weir.client.Session(state="limits.map") as session:
        response = session.get("https://api.example.com/things/1")
        print(response.status, response.json())

A Session serves all threads. A process that is forked uses a client of its own; with `state`, all of
them share what they know of limits.
"""

import asyncio
import atexit
import json as _json
import operator
import os
import weakref
from collections import namedtuple

from weir import _client
from weir._weir import Error

__all__ = ["AsyncStream", "Cancelled", "Failed", "GaveUp", "KnownLimit", "Limited", "Refused", "Response",
           "Session", "Stream", "Timeout", "Try"]

KnownLimit = namedtuple("KnownLimit", "limit remaining reset interval")
KnownLimit.__doc__ = """What is known of a host's tightest limit; None: not known. reset: seconds until
the window ends; interval: seconds from one request to the next."""
Try = namedtuple("Try", "url number status error waited took next_wait limit")
Try.__doc__ = """One try, for on_try. status 0: there was no answer; next_wait None: it was the last."""

_JITTERS = ("full", "equal", "decorrelated", "none")
_UINT32_MAX, _UINT64_MAX = 2**32 - 1, 2**64 - 1


def _whole(name, value, most=_UINT32_MAX):
    if not 0 <= operator.index(value) <= most:
        raise ValueError(f"{name}: {value} is not a whole number from 0 to {most}")
    return value


class _Head:
    """How an answer begins."""

    def __init__(self, url, status, tries, limit, headers):
        self.url = url
        self.status = status
        self.tries = tries
        self.limit = limit  # a KnownLimit
        self.fields = [tuple(line.split(": ", 1)) for line in headers.split("\n") if ": " in line]
        self.headers = dict(self.fields)  # names in lower case; of the same name the last

    @property
    def ok(self):
        return self.status < 400

    def __repr__(self):
        return f"<weir.client.{type(self).__name__} {self.status} of {self.url}>"


class Response(_Head):
    """A final answer, whatever its status."""

    def __init__(self, url, status, tries, limit, headers, content):
        super().__init__(url, status, tries, limit, headers)
        self.content = content

    @property
    def text(self):
        return self.content.decode("utf-8", "replace")

    def json(self):
        return _json.loads(self.content)


class _Stream(_Head):
    """A final answer whose body is read while it arrives."""

    def __init__(self, url, native, head):
        _, status, tries, limit, _, headers, _, _ = head
        super().__init__(url, status, tries, KnownLimit(*limit), headers)
        self._native = native

    def _piece(self, piece):
        """What was read; at the end b"", or a Failed for an answer that broke off."""
        if piece == b"" and self._native is not None:
            end = self._native.end()
            self._native = None
            if end[0] != "answered":
                _fail(self.url, end)
        return piece


class Stream(_Stream):
    """Pieces of bytes as they arrive; a context manager that closes it. One thread reads."""

    def read(self):
        """What has come, at least one byte; b"": the end. Raises a Failed where it broke off."""
        return b"" if self._native is None else self._piece(self._native.read(True))

    def __iter__(self):
        return iter(self.read, b"")

    def close(self):
        """Ends it: what has not been read is lost."""
        if self._native is not None:
            self._native.cancel()
            self._native = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class AsyncStream(_Stream):
    """As Stream, awaited."""

    def __init__(self, url, native, head, changed):
        super().__init__(url, native, head)
        self._changed = changed

    async def read(self):
        native = self._native
        return b"" if native is None else self._piece(
            await _ready(lambda: native.read(False), self._changed))

    async def __aiter__(self):
        while piece := await self.read():
            yield piece

    async def aclose(self):
        if self._native is not None:
            self._native.cancel()
            self._native = None

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()


async def _ready(look, changed):
    """What `look` finds once it finds something."""
    while True:
        changed.clear()
        found = look()
        if found is not None:
            return found
        await changed.wait()


class Failed(Error):
    """A request without a final answer. response: the last answer, or None; tries: how many were
    made; limit: a KnownLimit; retry_after: seconds until a try may succeed, or None."""

    def __init__(self, reason, response, tries, limit, retry_after):
        super().__init__(reason)
        self.response = response
        self.tries = tries
        self.limit = limit
        self.retry_after = retry_after


class Limited(Failed):
    """The last answer was 429, or the limit leaves no room in time."""


class Timeout(Failed):
    """The request's time ended."""


class GaveUp(Failed):
    """The server or the connection failed, and no try was left or allowed."""


class Refused(Failed):
    """No try can help: a certificate that is not valid, an answer that is too large."""


class Cancelled(Failed):
    """The session was closed."""


def _fail(url, given):
    """Raises the Failed of an outcome."""
    outcome, status, made, limit, retry_after, head, body, reason = given
    limit = KnownLimit(*limit)
    response = Response(url, status, made, limit, head, body) if status else None
    raise _FAILURES[outcome](f"{url}: {outcome}: {reason}" if reason else f"{url}: {outcome}",
                             response, made, limit, retry_after)


_FAILURES = {"limited": Limited, "timeout": Timeout, "gave up": GaveUp, "refused": Refused,
             "cancelled": Cancelled}


class Session:
    """Zero and None are the defaults of libweir-client (docs/client.md). Times are seconds.

    state                    a file with what is known of limits, which processes share
    concurrency              requests in flight: to all hosts (64), and
    host_concurrency         to one host (16)
    adaptive                 fewer of them while latency grows
    tries, time, try_time    of one request: tries (5), seconds with all waits (60), of one try (30)
    jitter                   "full", "equal", "decorrelated" or "none"
    backoff_base, _cap       the first wait (0.1) and the longest (20)
    backoff_factor           by which waits grow (2)
    body_most, queue_most    bytes of a body (16 MiB; streams and transports: no bound); requests that
                             wait (100,000)
    follow                   whether redirects are followed
    retry_on                 statuses that are retried besides those that always are, such as (408, 425)
    retry_statuses           exactly these are retried, instead of those that always are
    rate                     the most that is sent to a host, whatever its server says: "10/s",
                             "10/s, api.example.com=5/10s burst 5"
    on_try                   on_try(Try) is called for each try, on the session's own thread, which may
                             neither make requests with it nor close it
    """

    def __init__(self, state=None, *, concurrency=0, host_concurrency=0, adaptive=False, tries=0,
                 time=0.0, try_time=0.0, jitter="full", backoff_base=0.0, backoff_cap=0.0,
                 body_most=0, queue_most=0, follow=False, user_agent=None, seed=0, on_try=None,
                 headers=None, retry_on=(), retry_statuses=(), backoff_factor=0.0, rate=None):
        hook = None if on_try is None else lambda *values: on_try(
            Try(*values[:-1], KnownLimit(*values[-1])))
        self._options = (None if state is None else os.path.abspath(state),
                         _whole("concurrency", concurrency),
                         _whole("host_concurrency", host_concurrency), adaptive,
                         _whole("tries", tries), time, try_time, _JITTERS.index(jitter),
                         backoff_base, backoff_cap, _whole("body_most", body_most, _UINT64_MAX),
                         _whole("queue_most", queue_most), follow, user_agent,
                         _whole("seed", seed, _UINT64_MAX), hook,
                         tuple(map(operator.index, retry_on)),
                         tuple(map(operator.index, retry_statuses)), backoff_factor, rate)
        self.headers = dict(headers or {})
        self._pid = self._client = None
        self._closed = False
        self._open()
        _sessions.add(self)

    def _open(self):
        """The client of this process."""
        if self._pid == os.getpid():
            return self._client
        if not self._closed:
            self._client, self._pid = _client.Client(*self._options), os.getpid()
        return self._client

    def request(self, method, url, *, headers=None, data=None, json=None, idempotency_key=False,
                priority=0, scope=None, tries=0, time=0.0):
        """Makes a request and waits for its final answer. Raises a Failed where there is none.

        data: the body, a str or bytes; json: what becomes one. idempotency_key: sends one, the same
        in all tries, so that any method is retried. scope: what the server counts by when it is not
        the client's address, such as an API key. tries, time: as in Session."""
        given = self._prepare(method, url, headers, data, json, idempotency_key, priority, scope,
                              tries, time)
        return self._finish(url, self._open().fetch(*given))

    def _prepare(self, method, url, headers=None, data=None, json=None, idempotency_key=False,
                 priority=0, scope=None, tries=0, time=0.0):
        """What the extension takes for a request."""
        fields = {**self.headers, **(headers or {})}
        if json is not None:
            data = _json.dumps(json)
            fields.setdefault("Content-Type", "application/json")
        lines = tuple(f"{name}: {value}" for name, value in fields.items())
        return (method, url, lines, data, idempotency_key, priority, scope, _whole("tries", tries),
                time)

    @staticmethod
    def _finish(url, given):
        """The Response, or a Failed that is raised."""
        outcome, status, made, limit, _, head, body, _ = given
        if outcome != "answered":
            _fail(url, given)
        return Response(url, status, made, KnownLimit(*limit), head, body)

    def stream(self, method, url, **options):
        """Makes a request as request() does, and returns a Stream as soon as the answer has begun.
        From then on nothing is tried again. `time` ends with the head; an answer without a byte for
        `try_time` is a Timeout."""
        native = self._open().stream(*self._prepare(method, url, **options), None)
        head = native.head(True)
        if head[0] != "begun":
            _fail(url, head)
        return Stream(url, native, head)

    async def astream(self, method, url, **options):
        """stream(), awaited: an AsyncStream."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake():  # on the session's own thread
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:
                pass  # the loop is closed: nothing waits any more

        native = self._open().stream(*self._prepare(method, url, **options), wake)
        try:
            head = await _ready(lambda: native.head(False), changed)
        except BaseException:
            native.cancel()
            raise
        if head[0] != "begun":
            _fail(url, head)
        return AsyncStream(url, native, head, changed)

    def get(self, url, **options):
        return self.request("GET", url, **options)

    def head(self, url, **options):
        return self.request("HEAD", url, **options)

    def post(self, url, **options):
        return self.request("POST", url, **options)

    def put(self, url, **options):
        return self.request("PUT", url, **options)

    def patch(self, url, **options):
        return self.request("PATCH", url, **options)

    def delete(self, url, **options):
        return self.request("DELETE", url, **options)

    async def arequest(self, method, url, **options):
        """request(), awaited. Where its task is cancelled, so is the request."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def deliver(given):
            if not future.done():
                future.set_result(given)

        def done(given):  # on the session's own thread
            try:
                loop.call_soon_threadsafe(deliver, given)
            except RuntimeError:
                pass  # the loop is closed: nothing waits any more

        client = self._open()
        number = client.start(*self._prepare(method, url, **options), done)
        try:
            given = await future
        except BaseException:
            client.cancel(number)
            raise
        return self._finish(url, given)

    async def aget(self, url, **options):
        return await self.arequest("GET", url, **options)

    def known(self, url, scope=None):
        """The KnownLimit of a URL's host; None: nothing is known."""
        limit = self._open().known(url, scope)
        return None if limit is None else KnownLimit(*limit)

    def expect(self, requests):
        """How many requests are still to come: where a limit has room for all of them, they are not
        spread over its window."""
        self._open().expect(_whole("requests", requests, _UINT64_MAX))

    def close(self):
        """Cancels what is left, and closes."""
        self._client.close()
        self._closed = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


_sessions = weakref.WeakSet()


@atexit.register
def _close_all():
    """The threads of clients end before the interpreter does."""
    for session in list(_sessions):
        session.close()
