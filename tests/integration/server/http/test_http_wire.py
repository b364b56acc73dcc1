# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as bytes: pipelining, splits, smuggling, sizes, time limits, back-pressure."""

import json
import random
import socket
import threading
import time

import pytest

from daemon.http import Client, connect, request_bytes
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, memory_bytes, rules_of

API = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour", "burst": 1000000}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules_of(API), "--workers", "1") as weir:
        yield weir


def check_bytes(**fields):
    return request_bytes("POST", "/v1/check", {"Content-Type": "application/json"},
                         json.dumps(fields).encode())


def test_replies_come_in_the_order_of_requests(weir):
    """Decisions, immediate errors and batches, all in one write."""
    with weir.client() as client:
        asked = []
        for i in range(300):
            asked.append((check_bytes(ip=f"10.0.0.{i % 250}", cost=i + 1), 200))
            asked.append((request_bytes("GET", f"/nothing/{i}"), 404))
            asked.append((request_bytes("GET", "/v1/auth", {"X-Forwarded-For": "10.1.1.1"}), 200))
            asked.append((request_bytes("PUT", "/v1/check"), 405))
        sender = threading.Thread(target=client.send, args=(b"".join(data for data, _ in asked),))
        sender.start()
        replies = [client.reply() for _ in asked]
        sender.join()
        assert [reply.status for reply in replies] == [status for _, status in asked]


def test_each_reply_belongs_to_its_request(weir):
    with weir.client() as client:
        costs = [1 + i % 7 for i in range(500)]
        client.send(b"".join(check_bytes(ip="10.2.0.1", cost=cost) for cost in costs))
        left = 1000000
        for cost in costs:
            left -= cost
            assert client.reply().json["limits"][0]["remaining"] == left


def test_a_request_may_come_byte_by_byte(weir):
    data = check_bytes(ip="10.3.0.1") + request_bytes("GET", "/v1/auth") + check_bytes(cost=2)
    with weir.client() as client:
        for i in range(len(data)):
            client.send(data[i:i + 1])
        assert [client.reply().status for _ in range(3)] == [200, 200, 200]


def test_a_request_may_be_cut_anywhere(weir):
    data = check_bytes(ip="10.3.0.2", path="/x")
    with weir.client() as client:
        for cut in range(1, len(data)):
            client.send(data[:cut])
            client.send(data[cut:] + data[:cut])
            client.send(data[cut:])
            assert [client.reply().status for _ in range(2)] == [200, 200]


def test_a_chunked_body_is_joined(weir):
    body = json.dumps({"ip": "10.3.0.3", "path": "/" + "a" * 3000}).encode()
    chunks = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7])
                      for i in range(0, len(body), 7))
    data = (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks +
            b"0\r\nTrailer: x\r\n\r\n")
    with weir.client() as client:
        for step in (1, 13, 1000, len(data)):
            for i in range(0, len(data), step):
                client.send(data[i:i + step])
            assert client.reply().json["allowed"] is True


def test_expect_100_continue_is_answered_before_the_body(weir):
    body = json.dumps({"ip": "10.3.0.4"}).encode()
    with weir.client() as client:
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body))
        assert client.reply().status == 100
        client.send(body)
        assert client.reply().status == 200


def test_http_1_0_and_connection_close(weir):
    for head, kept, said in ((b"GET /v1/auth HTTP/1.0\r\n\r\n", False, "close"),
                             (b"GET /v1/auth HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True,
                              "keep-alive"),
                             (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                              False, "close"),
                             (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\n\r\n", True, None)):
        with weir.client() as client:
            client.send(head)
            reply = client.reply()
            assert reply.status == 200 and reply["connection"] == said
            if kept:
                assert client.auth().status == 200
            else:
                assert client.closed()


def test_a_client_that_has_sent_all_and_half_closes_is_answered(weir):
    with weir.client() as client:
        client.send(check_bytes() * 3)
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.reply().status for _ in range(3)] == [200] * 3
        assert client.closed()


@pytest.mark.parametrize("head,status", [
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
     b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
     b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n{}", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2,2\r\n\r\n{}", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n{}", 400),
    (b"GET /v1/auth HTTP/1.1\nHost: a\n\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX: a\nY: b\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nX: a\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n", 400),
    (b"GET /v1/auth HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    (b"GET /v1/auth\r\n\r\n", 400),
    (b"GET  /v1/auth HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"G\0T /v1/auth HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", 400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
     400),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     b"ffffffffffffffff2\r\n{}\r\n0\r\n\r\n", 413),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nExpect: 200-maybe\r\n\r\n", 417),
])
def test_what_others_may_read_otherwise_is_refused_and_the_connection_closed(weir, head, status):
    """A request hidden behind the bad one must not be answered."""
    for split in (False, True):
        with weir.client() as client:
            data = head + request_bytes("GET", "/v1/auth")
            if split:
                for i in range(len(data)):
                    try:
                        client.send(data[i:i + 1])
                    except OSError:
                        break  # it was refused before all of it was sent
            else:
                client.send(data)
            reply = client.reply()
            assert reply.status == status, head
            assert reply["connection"] == "close"
            assert reply["content-type"] == "application/problem+json"
            assert client.closed()


@pytest.mark.parametrize("data,status", [
    (b"GET /" + b"a" * 17000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 17000 + b"\r\n\r\n", 431),
    (b"GET /v1/auth HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 101 + b"\r\n", 431),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", 413),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
    (b"POST /v1/check HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     b"100001\r\n" + b"a" * 0x100001 + b"\r\n0\r\n\r\n", 413),
])
def test_what_is_too_large_is_refused_with_its_status(weir, data, status):
    with weir.client() as client:
        try:
            client.send(data)
        except OSError:
            pass  # it was refused before all of it was sent
        assert client.reply().status == status


def test_a_body_of_the_largest_size_is_taken(weir):
    body = b'{"ip":"10.4.0.1"' + b" " * (1048576 - 17) + b"}"
    with weir.client() as client:
        assert len(body) == 1048576
        reply = client.request("POST", "/v1/check", None, body)
        assert reply.status == 200
        assert client.request("POST", "/v1/auth", {"X-Forwarded-For": "10.4.0.1"},
                              body).status == 200


def test_a_slow_sender_is_cut_with_408_and_others_are_not_held_up(weir):
    with weir.client() as slow, weir.client() as idle:
        slow.send(b"GET /v1/auth HTTP/1.1\r\n")
        began = time.monotonic()
        dripping = threading.Event()

        def drip():
            while not dripping.wait(0.5):
                try:
                    slow.send(b"X: y\r\n")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            reply = slow.reply()
        finally:
            dripping.set()
            thread.join()
        assert reply.status == 408 and reply["connection"] == "close"
        assert time.monotonic() - began >= 9
        assert idle.auth().status == 200
        assert weir.metrics()["weir_timeouts_total"] >= 1


def test_a_client_that_does_not_read_stops_being_read(weir):
    """Back-pressure: what it can make the server keep is bounded."""
    before = memory_bytes(weir)
    with weir.client(timeout=2) as client:
        data = check_bytes(ip="10.5.0.1") * 200
        sent = 0
        try:
            while sent < 400 << 20:
                client.send(data)
                sent += len(data)
        except TimeoutError:
            pass
        assert sent < 64 << 20  # what the kernel's buffers and one pipeline hold
        assert memory_bytes(weir) - before < 32 << 20
        with weir.client() as other:
            assert other.auth().status == 200
        client.socket.settimeout(SECONDS_MAX)
        left = 1000
        while left:  # what was taken is answered once it reads
            assert client.reply().status == 200
            left -= 1


def test_a_thousand_connections_at_once(weir):
    clients = [weir.client() for _ in range(1000)]
    before = memory_bytes(weir)
    for client in clients:
        client.send(check_bytes(ip="10.6.0.1"))
    assert all(client.reply().status == 200 for client in clients)
    for client in clients:
        client.close()
    assert memory_bytes(weir) - before < 16 << 20


def test_one_connection_too_many_is_answered_503(tmp_path):
    with Weir(tmp_path, rules_of(API), "--workers", "1",
              prefix=("prlimit", "--nofile=420")) as weir:
        most = int(weir.metrics()["weir_connections_max"])
        assert 16 <= most <= 420
        clients = [weir.client() for _ in range(most)]
        assert all(client.auth().status == 200 for client in clients)
        extra = weir.client()
        reply = extra.reply()
        assert reply.status == 503 and reply["connection"] == "close"
        extra.close()
        clients.pop().close()
        assert all(client.auth().status == 200 for client in clients)
        metrics = weir.metrics()
        assert metrics["weir_connections_refused_total"] >= 1
        assert metrics["weir_connections"] <= most + 1
        for client in clients:
            client.close()


def test_no_file_left_for_a_connection_stops_nobody_else(tmp_path):
    """Accepting failed at once and was tried again at once, for ever, and nothing else was done."""
    with Weir(tmp_path, rules_of(API), "--workers", "2",
              prefix=("prlimit", "--nofile=128:128")) as weir:
        first = weir.client()
        assert first.check().status == 200
        clients = [weir.client() for _ in range(1200)]  # most of them wait in the backlog
        assert first.check().status == 200
        for client in clients:
            client.close()
        assert first.check().status == 200
        last = 503
        for _ in range(2000):  # until it has seen that the others are gone
            with weir.client() as client:
                last = client.check().status
            if last == 200:
                break
        assert last == 200


def test_a_reset_in_the_middle_of_a_pipeline_harms_nobody(weir):
    for _ in range(50):
        sock = connect(weir.http_address)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.sendall(check_bytes(ip="10.7.0.1") * 100 + b"POST /v1/check HTTP/1.1\r\nHost")
        sock.close()
    with weir.client() as client:
        assert client.check().status == 200


def test_random_bytes_get_an_answer_or_a_closed_connection(weir):
    source = random.Random(7)
    for _ in range(200):
        client = Client(weir.http_address)
        data = bytes(source.randrange(256) for _ in range(source.randrange(1, 200)))
        client.send(data + b"\r\n\r\n")
        assert client.reply().status in (400, 431, 505)
        client.close()
