# SPDX-License-Identifier: Apache-2.0
"""Connections that are too many: every listener has a pool of its own, the pools fit the limit of
open files, and what is refused is said."""

import os
import re
import resource
from contextlib import ExitStack

import pytest

from daemon.http import Client, connect
from daemon.redis import Error, Redis, command_bytes
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

API = {"name": "api", "key": ["client.ip"], "rate": "1000000/h"}
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"  # and SETTINGS


def limited(files):
    return ("prlimit", f"--nofile={files}:{files}")


def address_of(weir, front):
    return re.search(rf"event=listening front={front} address=(\S+)", weir.text())[1]


def room_of(weir, front):
    return int(weir.metrics()[f'weir_listener_connections_max{{front="{front}"}}'])


def is_greeted(sock):
    """Whether HTTP/2 acknowledges our settings; else it says GOAWAY, or closes."""
    file = sock.makefile("rb")
    while len(head := file.read(9)) == 9:
        if head[3] == 7:
            return False
        if head[3] == 4 and head[4] & 1:
            return True
        file.read(int.from_bytes(head[:3], "big"))
    return False


def speaks(front, address):
    """A connection that was answered by its protocol; None: it was refused in its words."""
    sock = connect(address)
    if front == "redis":
        client = Redis.__new__(Redis)
        client.socket, client.buffer = sock, b""
        client.send(command_bytes("PING"))
        reply = client.reply()
        assert reply in ("PONG", "ERR max number of clients reached")
        served = not isinstance(reply, Error)
    elif front == "grpc":
        sock.sendall(GREETING)
        served = is_greeted(sock)
    else:
        client = Client.over(sock)
        client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        served = client.reply().status != 503
    if served:
        return sock
    sock.close()
    return None


def fill(stack, front, address, count):
    """All connections that a listener has room for; one more is refused."""
    for _ in range(count):  # one that was closed just now may still be counted
        stack.enter_context(wait_until(lambda: speaks(front, address), what="a connection"))
    assert speaks(front, address) is None


FRONTS = ["http", "redis", "grpc", "admin"]


@pytest.mark.parametrize("full", FRONTS)
def test_a_full_listener_shuts_nobody_out_of_another(tmp_path, full):
    with Weir(tmp_path, rules_of(API), "--workers", "2", "--redis", f"unix:{tmp_path}/redis",
              "--grpc", "127.0.0.1:0", prefix=limited(160)) as weir, ExitStack() as stack:
        fill(stack, full, address_of(weir, full), room_of(weir, full))
        for other in FRONTS:
            if other != full:
                assert speaks(other, address_of(weir, other)) is not None
        if full != "admin":
            metrics = weir.metrics()
            refused = 'weir_listener_connections_refused_total{front="%s"}'
            assert metrics[refused % full] >= 1 and metrics["weir_connections_refused_total"] >= 1
            assert metrics[refused % "admin"] == 0
        assert f"front={full} " in weir.wait_event("listener_full")


def open_files(weir):
    return len(os.listdir(f"/proc/{weir.process.pid}/fd"))


@pytest.mark.parametrize("files, state", [(64, False), (96, True), (128, False), (420, True)])
def test_every_connection_that_is_announced_has_a_file(tmp_path, files, state):
    rules = rules_of(API, state={"file": str(tmp_path / "state"), "size": "1MiB"} if state else {})
    with Weir(tmp_path, rules, "--workers", "2", prefix=limited(files)) as weir, \
            ExitStack() as stack:
        room = room_of(weir, "http")
        assert room == int(re.search(r"event=started .*connections_max=(\d+)", weir.text())[1])
        assert room >= files / 4
        warning = weir.wait_event("few_open_files")
        assert f"limit={files} " in warning and f"leaves {room} connections to" in warning
        fill(stack, "http", weir.http_address, room)
        crowd = [stack.enter_context(connect(weir.http_address)) for _ in range(300)]
        with weir.admin() as client:
            assert client.request("GET", "/healthz").status == 200
        answers = [sock.recv(12) for sock in crowd]  # each is answered, or closed: none is left waiting
        assert set(answers) <= {b"HTTP/1.1 503", b""} and b"HTTP/1.1 503" in answers
        metrics = weir.metrics()
        assert metrics['weir_listener_accepts_paused_total{front="http"}'] == 0
        assert open_files(weir) <= files
        weir.write_rules(rules)
        assert "event=reloaded" in weir.reload()


def test_a_limit_that_is_too_low_is_an_error_that_says_what_it_takes(tmp_path):
    with Weir(tmp_path, rules_of(API), "--workers", "4", prefix=limited(24), wait=False) as weir:
        assert weir.wait() == 1
        text = weir.text()
        least = int(re.search(r"the limit of open files is 24, and at least (\d+) are needed",
                              text)[1])
        assert "LimitNOFILE" in text and text.count("\n") == 1
    with Weir(tmp_path, rules_of(API), "--workers", "4", prefix=limited(least)) as weir:
        assert room_of(weir, "http") == 3
        assert weir.check().status == 200


def test_enough_files_are_no_warning(tmp_path):
    with Weir(tmp_path, rules_of(API), "--workers", "1") as weir:
        assert "few_open_files" not in weir.text()


def test_files_that_run_out_all_the_same_are_logged_and_waited_for(tmp_path):
    """Somebody lowers the limit of the process; what waits is served when there are files again."""
    with Weir(tmp_path, rules_of(API), "--workers", "1") as weir, weir.client() as first, \
            weir.admin() as admin:
        assert first.check().status == 200  # both are accepted
        assert admin.request("GET", "/healthz").status == 200
        before = resource.prlimit(weir.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(weir.process.pid, resource.RLIMIT_NOFILE, (open_files(weir), before[1]))
        assert first.check().status == 200
        with connect(weir.http_address) as sock:
            assert "front=http " in weir.wait_event("accept_paused")
            assert first.check().status == 200
            assert admin.request("GET", "/healthz").status == 200
            resource.prlimit(weir.process.pid, resource.RLIMIT_NOFILE, before)
            assert Client.over(sock).check().status == 200
        text = admin.request("GET", "/metrics").body.decode()
        count = re.search(r'weir_listener_accepts_paused_total\{front="http"\} (\d+)', text)[1]
        assert int(count) >= 1 and weir.text().count("event=accept_paused") == 1


def test_connections_are_counted_by_listener(tmp_path):
    with Weir(tmp_path, rules_of(API), "--redis", "127.0.0.1:0", "--workers", "2") as weir, \
            ExitStack() as stack:
        def counted(front):
            return weir.metrics()[f'weir_listener_connections{{front="{front}"}}']

        clients = [stack.enter_context(speaks("http", weir.http_address)) for _ in range(9)]
        stack.enter_context(speaks("redis", address_of(weir, "redis")))
        assert (counted("http"), counted("redis"), counted("admin")) == (9, 1, 1)
        assert weir.metrics()["weir_connections"] == 10
        for client in clients:
            client.close()
        wait_until(lambda: counted("http") == 0, what="the end of the connections")
