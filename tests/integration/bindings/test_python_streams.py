# SPDX-License-Identifier: Apache-2.0
"""Answers that are read while they arrive: weir.client's streams, and the transports of httpx and requests.
The server sends the next part when the reader has got the one before."""

import asyncio
import os
import threading

import pytest

from daemon.proxies import Application, Handler
from daemon.waiting import SECONDS_MAX
from python_package import load, needs_package

client = load("weir.client")
pytestmark = needs_package
PARTS = [b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n"]
LARGE = 8 << 20
MOST = (256 + 16) << 10  # what a Stream holds of a body that nobody reads


class Server(Application):
    """/events: PARTS, each once `got` counts the one before; /cut: the first, and then the connection ends;
    /held: the first, and then nothing; /large: LARGE bytes; /once: 429 first. `gone`: a reader has left."""

    def __init__(self):
        self.seen, self.gone, self.got = seen, gone, got = [], threading.Event(), threading.Semaphore(0)

        class Answers(Handler):
            def piece(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen.append(self.path)
                if self.path == "/once" and len(seen) == 1:
                    self.send_response(429)
                    self.send_header("retry-after-ms", "20")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length" if self.path == "/large" else "Transfer-Encoding",
                                 str(LARGE) if self.path == "/large" else "chunked")
                self.end_headers()
                self.close_connection = True
                try:
                    getattr(self, self.path[1:], self.events)()
                except OSError:
                    gone.set()

            def events(self):
                for part in PARTS:
                    assert got.acquire(timeout=SECONDS_MAX)  # the head, and each part
                    self.piece(part)
                self.piece(b"")

            def cut(self):
                self.piece(PARTS[0])
                assert got.acquire(timeout=SECONDS_MAX)

            def held(self):
                self.piece(PARTS[0])
                if self.rfile.read(1) == b"":
                    gone.set()

            def large(self):
                for _ in range(64):
                    self.wfile.write(b"x" * (LARGE // 64))

            do_POST = do_GET

        super().__init__(Answers)

    def url(self, path):
        return f"http://{self.address}{path}"

    def taken(self, piece):
        """Tells the server that a piece has come."""
        self.got.release()
        return piece

    def left(self):
        assert self.gone.wait(SECONDS_MAX)


@pytest.fixture(name="server")
def fixture_server():
    with Server() as server:
        yield server


@pytest.fixture(name="session")
def fixture_session():
    with client.Session(tries=3, time=10) as session:
        yield session


@pytest.mark.parametrize("path", ["/events", "/once"])
def test_pieces_come_as_they_are_sent(server, session, path):
    with session.stream("GET", server.url(path)) as answer:
        assert (answer.status, answer.ok, answer.headers["content-type"]) == (200, True, "text/event-stream")
        server.taken(b"")
        assert [server.taken(piece) for piece in answer] == PARTS
        assert answer.read() == b""
    assert len(server.seen) == (2 if path == "/once" else 1)


def test_pieces_are_awaited(server, session):
    async def go():
        async with await session.astream("GET", server.url("/events")) as answer:
            assert answer.status == 200
            server.taken(b"")
            return [server.taken(piece) async for piece in answer]

    assert asyncio.run(go()) == PARTS


def test_an_answer_that_breaks_off_is_not_tried_again(server, session):
    answer = session.stream("GET", server.url("/cut"))
    assert answer.read() == PARTS[0]
    server.taken(b"")
    with pytest.raises(client.GaveUp, match="broke off"):
        answer.read()
    assert answer.read() == b"" and len(server.seen) == 1


def test_what_is_not_read_is_bounded(server, session):
    with session.stream("GET", server.url("/large")) as answer:
        sizes = [len(piece) for piece in answer]
    assert sum(sizes) == LARGE and max(sizes) <= MOST


def test_who_leaves_ends_the_transfer(server, session):
    for leave in (lambda answer: answer.close(), lambda answer: None):
        server.gone.clear()
        answer = session.stream("GET", server.url("/held"))
        assert answer.read() == PARTS[0]
        leave(answer)
        del answer  # forgotten is left, too
        server.left()


def test_a_task_that_is_cancelled_ends_the_transfer(server, session):
    async def go():
        async def reads():
            async with await session.astream("GET", server.url("/held")) as answer:
                async for _ in answer:
                    begun.set()

        begun = asyncio.Event()
        task = asyncio.create_task(reads())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(server.left)

    asyncio.run(go())


def test_closing_the_session_ends_its_streams(server):
    session = client.Session()
    answer = session.stream("GET", server.url("/held"))
    assert answer.read() == PARTS[0]
    session.close()
    with pytest.raises(client.Cancelled):
        answer.read()
    server.left()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_no_part_in_a_stream(server, session):
    answer = session.stream("GET", server.url("/large"))  # whose thread is in the midst of it
    child = os.fork()
    if child == 0:
        try:
            answer.read()
        except RuntimeError as error:
            del answer
            os._exit(0 if "before the fork" in str(error) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(map(len, answer)) == LARGE


def test_a_callback_of_a_stream_cannot_close_the_session(server):
    session = client.Session()
    found = []

    def wake():
        try:
            native.close()
        except load("weir").StateError as error:
            found.append(str(error))

    native = session._client
    native = session._open()
    stream = native.stream(*session._prepare("GET", server.url("/events")), wake)
    server.taken(b"")
    assert stream.head(True)[0] == "begun"
    server.taken(b"")
    server.taken(b"")
    while stream.end() is None:
        stream.read(True)
    assert found and all("another thread" in text for text in found)
    session.close()


def library(name):
    return pytest.importorskip(name, reason=f"needs python3-{name}"), load(f"weir.{name}")


def test_httpx_gets_events_as_they_are_sent(server, session):
    httpx, transports = library("httpx")
    with httpx.Client(transport=transports.Transport(session)) as http:
        with http.stream("GET", server.url("/once")) as answer:
            assert answer.status_code == 200
            server.taken(b"")
            lines = [server.taken(line.strip()) for line in answer.iter_lines() if line.strip()]
        assert lines == ["data: one", "data: two", "data: [DONE]"]
        with http.stream("GET", server.url("/held")) as answer:
            next(answer.iter_bytes())
        server.left()
        with pytest.raises(httpx.ReadError), http.stream("GET", server.url("/cut")) as answer:
            for _ in answer.iter_bytes():
                server.taken(b"")


def test_async_httpx_gets_events_as_they_are_sent(server, session):
    httpx, transports = library("httpx")

    async def go():
        async with httpx.AsyncClient(transport=transports.AsyncTransport(session)) as http:
            async with http.stream("GET", server.url("/events")) as answer:
                server.taken(b"")
                got = [server.taken(piece) async for piece in answer.aiter_bytes()]
            async with http.stream("GET", server.url("/held")) as answer:
                await anext(answer.aiter_bytes())
            await asyncio.to_thread(server.left)
            with pytest.raises(httpx.ReadError):
                async with http.stream("GET", server.url("/cut")) as answer:
                    async for _ in answer.aiter_bytes():
                        server.taken(b"")
            return got

    assert asyncio.run(go()) == PARTS


def test_requests_gets_events_as_they_are_sent(server, session):
    requests, transports = library("requests")
    with requests.Session() as http:
        http.mount("http://", transports.Adapter(session))
        with http.get(server.url("/once"), stream=True, timeout=5) as answer:
            server.taken(b"")
            assert [server.taken(line) for line in answer.iter_lines() if line] == [
                part.strip() for part in PARTS]
        with http.get(server.url("/large"), stream=True, timeout=5) as answer:
            assert sum(map(len, answer.iter_content(100_000))) == LARGE
        with http.get(server.url("/held"), stream=True, timeout=5) as answer:
            next(answer.iter_content(1))
        server.left()
        cut = pytest.raises(requests.exceptions.ChunkedEncodingError)
        with cut, http.get(server.url("/cut"), stream=True, timeout=5) as answer:
            for _ in answer.iter_content(100):
                server.taken(b"")
