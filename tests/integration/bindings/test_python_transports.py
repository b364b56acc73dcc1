# SPDX-License-Identifier: Apache-2.0
"""weir.httpx and weir.requests: the transports in clients of the real httpx and requests."""

import asyncio
import gzip
import io

import pytest

from daemon.proxies import Application, Handler, free_port
from python_package import load, needs_package

client = load("weir.client")
pytestmark = needs_package


def library(name):
    """A library and weir's module for it; skips where it is not installed."""
    return pytest.importorskip(name, reason=f"needs python3-{name}"), load(f"weir.{name}")


class Server(Application):
    """/limited: 429 always; /once: 429 first; /moved: a redirect; else what was asked, compressed."""

    def __init__(self):
        self.seen = seen = []

        class Answers(Handler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                seen.append((self.command, self.path, self.headers))
                status, fields = 200, {"Content-Encoding": "gzip", "Set-Cookie": "a=1"}
                if self.path == "/limited" or (self.path == "/once" and len(seen) == 1):
                    status, fields = 429, {"retry-after-ms": "20"}
                elif self.path == "/moved":
                    status, fields = 307, {"Location": "/there"}
                elif self.path == "/far":
                    status, fields = 200, {"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0",
                                           "X-RateLimit-Reset": "3600"}
                text = gzip.compress(b"got " + body) if "Content-Encoding" in fields else b""
                self.send_response(status)
                for name, value in {**fields, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_HEAD = do_POST = answer

        super().__init__(Answers)

    def url(self, path):
        return f"http://{self.address}{path}"


@pytest.fixture(name="server")
def fixture_server():
    with Server() as server:
        yield server


@pytest.fixture(name="session")
def fixture_session():
    with client.Session(tries=3, time=10) as session:
        yield session


def test_requests_and_answers_pass_unchanged(server, session):
    httpx, transports = library("httpx")
    with httpx.Client(transport=transports.Transport(session), follow_redirects=True) as http:
        answer = http.post(server.url("/moved"), content=b"body", headers=[("X-One", "1"), ("X-One", "2")])
        assert (answer.status_code, answer.text) == (200, "got body")
        assert str(answer.url) == server.url("/there") and http.cookies["a"] == "1"
        method, path, fields = server.seen[1]
        assert (method, path, fields["X-One"]) == ("POST", "/there", "1, 2")
        assert fields.get_all("Host") == [server.address]
        assert fields.get_all("Content-Length") == ["4"]


def test_a_429_is_waited_out_and_the_last_one_is_the_answer(server, session):
    httpx, transports = library("httpx")
    with httpx.Client(transport=transports.Transport(session)) as http:
        assert http.get(server.url("/once")).text == "got "
        assert len(server.seen) == 2
        answer = http.get(server.url("/limited"))
        assert (answer.status_code, answer.headers["retry-after-ms"]) == (429, "20")
        assert len(server.seen) == 5


def test_what_has_no_answer_is_an_error_of_httpx(server, session):
    httpx, transports = library("httpx")
    with httpx.Client(transport=transports.Transport(session, tries=1)) as http:
        with pytest.raises(httpx.ConnectError):
            http.get(f"http://127.0.0.1:{free_port()}/")
        assert http.get(server.url("/far")).status_code == 200
        with pytest.raises(httpx.PoolTimeout):
            http.get(server.url("/far"))
        assert len(server.seen) == 1


def test_an_async_client(server, session):
    httpx, transports = library("httpx")

    async def go():
        transport = transports.AsyncTransport(session)
        async with httpx.AsyncClient(transport=transport) as http:
            return [answer.text for answer in await asyncio.gather(
                *(http.get(server.url("/once")) for _ in range(3)))]

    assert asyncio.run(go()) == ["got "] * 3
    assert len(server.seen) >= 4


@pytest.fixture(name="mounted")
def fixture_mounted(session):
    """A session of requests, and how to mount the adapter with options."""
    requests, transports = library("requests")
    with requests.Session() as mounted:
        def mount(**options):
            mounted.mount("http://", transports.Adapter(session, **options))
            return mounted

        yield mount


def test_requests_and_answers_of_requests_pass_unchanged(server, mounted):
    http = mounted()
    answer = http.post(server.url("/moved"), data="body", headers={"X-One": b"1"}, timeout=5)
    assert (answer.status_code, answer.text, answer.reason) == (200, "got body", "OK")
    assert answer.url == server.url("/there") and http.cookies["a"] == "1"
    assert [one.status_code for one in answer.history] == [307]
    method, path, fields = server.seen[1]
    assert (method, path, fields["X-One"]) == ("POST", "/there", "1")
    assert fields.get_all("Host") == [server.address]
    assert fields.get_all("Content-Length") == ["4"]


@pytest.mark.parametrize("data", ["b\xe4", b"b\xe4", io.BytesIO(b"a file"), (b"in", b" pieces"), {"k": "v"}, None])
def test_bodies_of_every_kind_arrive(server, mounted, data):
    expected = {str: "got b\xe4", io.BytesIO: "got a file", tuple: "got in pieces", dict: "got k=v"}
    given = iter(data) if isinstance(data, tuple) else data
    answer = mounted().post(server.url("/"), data=given, timeout=5)
    want = (b"got b\xe4" if isinstance(data, bytes) else expected.get(type(data), "got ").encode())
    assert answer.content == want


def test_an_answer_of_requests_is_read_in_pieces(server, mounted):
    with mounted().get(server.url("/"), stream=True, timeout=5) as answer:
        assert b"".join(answer.iter_content(2)) == b"got "


def test_an_answer_to_head_has_a_length_and_no_body(server, mounted):
    answer = mounted().head(server.url("/"), timeout=5)
    assert (answer.status_code, answer.content, answer.raw.length_remaining) == (200, b"", 0)
    assert int(answer.headers["Content-Length"]) > 0


def test_a_429_is_waited_out_and_requests_gets_the_last_one(server, mounted):
    http = mounted()
    assert http.get(server.url("/once"), timeout=5).text == "got "
    assert len(server.seen) == 2
    answer = http.get(server.url("/limited"), timeout=5)
    assert (answer.status_code, answer.headers["retry-after-ms"]) == (429, "20")
    assert len(server.seen) == 5


def test_what_has_no_answer_is_an_error_of_requests(server, mounted):
    requests, _ = library("requests")
    http = mounted(tries=1)
    with pytest.raises(requests.ConnectionError) as caught:
        http.get(f"http://127.0.0.1:{free_port()}/", timeout=5)
    assert caught.value.request.method == "GET"
    assert http.get(server.url("/far"), timeout=5).status_code == 200
    with pytest.raises(requests.Timeout):
        http.get(server.url("/far"), timeout=5)
    assert len(server.seen) == 1
