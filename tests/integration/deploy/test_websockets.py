# SPDX-License-Identifier: Apache-2.0
"""The game's recipe behind nginx and HAProxy, with the snippets of examples/deploy: WebSockets that
are opened, spoken over and closed, and routes that nobody named."""

import base64
import hashlib
import os

import pytest
import time

from daemon.http import Client, Reply
from daemon.proxies import Application, Handler, haproxy, nginx
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import ROOT

RECIPE = (ROOT / "examples" / "recipes" / "game-backend.yaml").read_text(encoding="utf-8")
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 1.3
CLOSE = b"\x88\x80\0\0\0\0"                     # a masked close frame


def accept_of(key):
    return base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()


class Game(Application):
    """The application: WebSockets at /ws that echo one byte at a time, and release their lease when
    they close; 200 for all else."""

    def __init__(self):
        self.release = None  # called with a lease
        self.opened = []
        game = self

        class Echo(Handler):
            def do_GET(self):
                if self.path != "/ws" or self.headers.get("Upgrade", "").lower() != "websocket":
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                lease = self.headers["X-Weir-Lease"]
                game.opened.append(lease)
                self.send_response(101)
                self.send_header("Upgrade", "websocket")
                self.send_header("Connection", "Upgrade")
                self.send_header("Sec-WebSocket-Accept",
                                 accept_of(self.headers["Sec-WebSocket-Key"]))
                self.end_headers()
                while byte := self.rfile.read(1):
                    if byte == CLOSE[:1]:
                        break
                    self.wfile.write(byte)
                self.close_connection = True
                game.release(lease)

            do_POST = do_GET

        super().__init__(Echo)


@pytest.fixture(name="site", params=[nginx, haproxy])
def fixture_site(request, tmp_path):
    with Game() as game, Weir(tmp_path, RECIPE) as weir:
        def release(lease):
            try:
                with weir.client() as client:
                    client.post("/v1/release", {"lease": lease})
            except (OSError, EOFError):
                pass  # at the end of a test weir may go first
        game.release = release
        with request.param(tmp_path, weir.http_address, game.address) as proxy:
            proxy.weir, proxy.game = weir, game
            yield proxy


class WebSocket(Client):
    """A handshake; `reply` is its answer, 101 or another."""

    def __init__(self, site, **fields):
        super().__init__(site.address)
        self.key = base64.b64encode(os.urandom(16)).decode()
        result = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": self.key, **fields}
        lines = ["GET /ws HTTP/1.1", "Host: game.test"]
        lines += [f"{name}: {value}" for name, value in result.items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        self.answer = Reply(head, b"")
        if self.answer.status == 101:
            self.buffer = rest
        else:
            self.answer = self.reply()

    @property
    def open(self):
        return self.answer.status == 101

    def echo(self, byte):
        self.send(byte)
        while not self.buffer:
            self._more()
        said, self.buffer = self.buffer[:1], self.buffer[1:]
        return said == byte


def open_sockets(site):
    """As weir counts them."""
    with site.weir.admin() as client:
        state = client.request("GET", "/v1/limits/sockets-network/state?key=127.0.0.1").json
    limit = state["limits"][0]
    return limit["limit"] - limit["remaining"]


def test_handshakes_are_counted_and_sockets_while_they_are_open(site):
    sockets = [WebSocket(site) for _ in range(3)]
    for socket in sockets:
        assert socket.open and socket.answer["sec-websocket-accept"] == accept_of(socket.key)
        assert socket.echo(b"x") and socket.echo(b"y")
    assert all(site.game.opened) and len(set(site.game.opened)) == 3
    late = WebSocket(site)
    assert late.answer.status == 429 and late.answer.json["status"] == 429
    assert len(site.game.opened) == 3
    late.close()
    sockets[1].send(CLOSE)
    wait_until(sockets[1].closed, what="the end of the socket")
    wait_until(lambda: open_sockets(site) == 2, what="the end of its lease")
    again = WebSocket(site)
    assert again.open and again.echo(b"z") and sockets[0].echo(b"z")
    for socket in (sockets[0], sockets[2], again):
        socket.close()
    wait_until(lambda: open_sockets(site) == 0, what="the end of all leases")
    assert WebSocket(site).open  # the fifth in 10 s

    def denied():
        more = WebSocket(site)
        if more.open:  # a slow machine took 10 s until here
            more.close()
            return False
        return more.answer.status == 429 and '"handshakes:1";r=0' in more.answer["ratelimit"]

    wait_until(denied, what="the sixth in 10 s")


def test_a_client_cannot_end_the_lease_of_another(site):
    with WebSocket(site) as first, WebSocket(site, **{"X-Weir-Lease": "forged"}) as second:
        assert first.open and second.open
        assert "forged" not in site.game.opened and open_sockets(site) == 2


def test_routes_that_nobody_named_have_the_default(site):
    began = time.monotonic()
    with Client(site.address) as client:
        assert client.request("GET", "/ws").status == 200  # no handshake: a route like any other
        count = 1
        while client.request("GET", f"/wp-admin/{count}").status == 200:
            count += 1
        # Five a second, in whichever two windows it began and ended.
        assert 5 <= count <= 5 * (2 + time.monotonic() - began)

        def denied():
            reply = client.request("GET", "/.env")
            return reply.status == 429 and '"unknown-routes:1";r=0' in reply["ratelimit"]

        wait_until(denied, what="a denial within a fifth of a second")
        for _ in range(10):  # and what has a line is none of them
            assert client.request("GET", "/leaderboard/week").status == 200
