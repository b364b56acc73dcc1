# SPDX-License-Identifier: Apache-2.0
"""The Redis protocol as bytes: order, splits, bounds, callers at the same time, who may call."""

import random
import resource
import socket
import threading
import time

import pytest

from daemon.http import Client
from daemon.redis import Error, Redis, RedisWeir, command_bytes
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

THROTTLE = ("CL.THROTTLE", "k", 15, 30, 60)
LOGIN = {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip"],
         "algorithm": "sliding_log", "rate": "2/hour"}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with RedisWeir(tmp_path_factory.mktemp("weir"), rules_of(LOGIN), "--workers", "2") as weir:
        yield weir


def in_threads(count, work):
    """Runs work(i) in threads that start together; returns what each returned."""
    results, gate = [None] * count, threading.Barrier(count)

    def run(i):
        gate.wait()
        results[i] = work(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# --- Scripts --------------------------------------------------------------------------------------

def test_an_unknown_script_is_refused_with_what_is_known_logged_once_and_counted(tmp_path):
    sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"  # of "return 1"
    with RedisWeir(tmp_path, None, "--workers", "1", admin="127.0.0.1:0") as weir, weir.redis() as redis:
        for command in ("EVAL", "return 1", 0), ("SCRIPT", "LOAD", "return 1"), ("EVAL", "return 1", 1, "k"):
            error = redis.ask(*command)
            assert isinstance(error, Error) and sha in error and "docs/limiter-libraries.md" in error
            for library in "rate-limiter-flexible", "@fastify/rate-limit", "pyrate-limiter", "Laravel":
                assert library in error
        assert isinstance(redis.ask("EVAL", "return 2", 0), Error)
        with Client(weir.admin_address) as admin:
            assert "\nweir_redis_unknown_scripts_total 4\n" in admin.request("GET", "/metrics").body.decode()
        weir.stop()
        lines = [line for line in weir.text().splitlines() if "event=unknown_script" in line]
        assert len(lines) == 2 and sum(f"sha={sha}" in line for line in lines) == 1


# --- Order ----------------------------------------------------------------------------------------

def mixed_commands(count):
    """Commands of every kind, each with its reply or a test of it. Nothing refills meanwhile."""
    rng, used, asked = random.Random(1), {}, []
    for i in range(count):
        kind, key = rng.randrange(8), f"mixed{rng.randrange(50)}"
        if kind < 3:
            used[key] = min(used.get(key, 0) + 1, 20)
            allowed = used[key] <= 19
            used[key] = min(used[key], 19)
            left = 19 - used[key]
            asked.append((("CL.THROTTLE", key, 18, 1, 1000000),
                          lambda r, ok=allowed, n=left: r[:3] == [0 if ok else 1, 19, n]))
        elif kind == 3:
            asked.append((("ECHO", i), lambda r, i=i: r == str(i)))
        elif kind == 4:
            asked.append((("NOPE", i), lambda r: isinstance(r, Error)))
        elif kind == 5:
            asked.append((("EXISTS", key), lambda r, n=used.get(key, 0): r == (n > 0)))
        elif kind == 6 and rng.random() < 0.2:
            asked.append((("DEL", key), lambda r, n=used.pop(key, 0): r == (n > 0)))
        else:
            asked.append((("WEIR.CHECK", "path", f"/{i}"), lambda r: r[:2] == ["allowed", 1]))
    return asked


def test_a_pipeline_of_ten_thousand_commands_is_answered_in_order(weir):
    asked = mixed_commands(10000)
    data = b"".join(command_bytes(*args) for args, _ in asked)
    with weir.redis() as client:
        sender = threading.Thread(target=client.send, args=(data,))
        sender.start()
        for i, (args, expected) in enumerate(asked):
            reply = client.reply()
            assert expected(reply), (i, args, reply)
        sender.join()


def test_commands_may_be_cut_anywhere(weir):
    asked = [("PING",), ("ECHO", "x\r\ny"), ("CL.THROTTLE", "cut", 15, 30, 60, 0), ("NOPE",)]
    data = b"".join(command_bytes(*args) for args in asked)
    want = ["PONG", "x\r\ny", [0, 16, 16, -1, 0],
            "ERR unknown command 'NOPE', with args beginning with: "]
    for cut in range(1, len(data)):
        with weir.redis() as client:
            client.send(data[:cut])
            client.send(data[cut:])
            assert [client.reply() for _ in asked] == want, cut


def test_a_large_key_comes_in_many_reads(weir):
    key = bytes(range(256)) * 3900  # a little below a megabyte
    with weir.redis() as client:
        assert client.ask("CL.THROTTLE", key, 15, 1, 3600)[:3] == [0, 16, 15]
        assert client.ask("CL.THROTTLE", key, 15, 1, 3600)[:3] == [0, 16, 14]
        assert client.ask("ECHO", key[:128] * 8000) == (key[:128] * 8000).decode()


@pytest.mark.parametrize("data, error", [
    (b"*1\r\n$-2\r\n", "invalid bulk length"),
    (b"*1\r\n$536870913\r\n", "invalid bulk length"),
    (b"*-2\r\n", "invalid multibulk length"),
    (b"*1048577\r\n", "invalid multibulk length"),
    (b"*1\r\n" + b"*1\r\n" * 129, "expected '$', got '*'"),
    (b"*1\r\n$2097152\r\n", "invalid bulk length"),
    (b"x" * 70000, "too big inline request"),
])
def test_protocol_errors_are_said_and_close(weir, data, error):
    with weir.redis() as client:
        client.send(command_bytes("PING") + data)
        assert client.reply() == "PONG"
        assert error in client.reply()
        assert client.closed()


def test_a_null_key_is_no_key(weir):
    with weir.redis() as client:
        client.send(b"*5\r\n$8\r\nTHROTTLE\r\n$-1\r\n:5\r\n:5\r\n:60\r\n")
        assert client.reply() == "ERR invalid key"
        assert client.ask("THROTTLE", "ключ with spaces", 5, 60, 60)[:3] == [1, 5, 4]
        assert client.ask("THROTTLE", "k" * 1000, 5, 60, 60)[:3] == [1, 5, 4]


# --- Callers at the same time ---------------------------------------------------------------------

def test_twenty_callers_share_a_burst_of_ten(weir):
    def call(_):
        with weir.redis() as client:
            return client.ask("THROTTLE", "twenty", 10, 1, 1000)[0]

    assert sum(in_threads(20, call)) == 10


def test_eight_clients_on_one_key_get_exactly_its_burst(weir):
    request = command_bytes("CL.THROTTLE", "hot", 999, 1, 1000) * 50

    def call(_):
        allowed = 0
        with weir.redis() as client:
            for _ in range(8):
                client.send(request)
                allowed += sum(client.reply()[0] == 0 for _ in range(50))
        return allowed

    assert sum(in_threads(8, call)) == 1000


def test_all_or_none_holds_while_others_decide(weir):
    """Both keys are charged together or not at all, so at the end they have used the same."""
    both = command_bytes("WEIR.CHECKALL", 2, "left", 299, 1, 100000, 1, "right", 199, 1, 100000, 1)

    def call(_):
        allowed = 0
        with weir.redis() as client:
            client.send(both * 100)
            for _ in range(100):
                allowed += client.reply()[1]
        return allowed

    assert sum(in_threads(4, call)) == 200
    with weir.redis() as client:
        assert client.ask("CL.THROTTLE", "left", 299, 1, 100000, 0)[2] == 100
        assert client.ask("CL.THROTTLE", "right", 199, 1, 100000, 0)[2] == 0


# --- Bounds ---------------------------------------------------------------------------------------

def resident_bytes(weir):
    with open(f"/proc/{weir.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def test_a_client_that_does_not_read_is_not_buffered_without_bound(tmp_path):
    with RedisWeir(tmp_path, None, "--workers", "1") as weir:
        before = resident_bytes(weir)
        with weir.redis() as client:
            client.socket.settimeout(0.5)
            request, sent = b"COMMAND DOCS\r\n" * 1000, 0
            with pytest.raises(TimeoutError):
                while sent < 1 << 26:
                    sent += client.socket.send(request)
            assert resident_bytes(weir) - before < 32 << 20
            with weir.redis() as other:
                assert other.ask("PING") == "PONG"


def test_half_a_command_is_cut_after_a_while(weir):
    with weir.redis() as client:
        client.send(b"*2\r\n$4\r\nECHO\r\n$5\r\nhal")
        began = time.monotonic()
        assert client.reply() == "ERR the command took too long to arrive"
        assert client.closed()
        assert time.monotonic() - began > 9


def test_quit_answers_what_came_before_it(weir):
    with weir.redis() as client:
        client.send(command_bytes("PING") + command_bytes("QUIT") + command_bytes("PING"))
        assert [client.reply(), client.reply()] == ["PONG", "OK"]
        assert client.closed()


def test_what_a_web_page_sends_is_not_served(weir):
    with weir.redis() as client:
        client.send(b"POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nDEL k\r\n")
        assert client.closed()


# --- Rules, time ----------------------------------------------------------------------------------

def test_the_rules_decide_for_both_protocols(tmp_path):
    rules = rules_of(LOGIN)
    with RedisWeir(tmp_path, rules, http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        with weir.redis() as client:
            check = ("WEIR.CHECK", "method", "POST", "path", "/login", "ip", "192.0.2.1")
            assert client.ask(*check)[1] == 1
            assert weir.check(method="POST", path="/login", ip="192.0.2.1").status == 200
            assert client.ask("HELLO", 3)["proto"] == 3
            denied = client.ask(*check)
            assert denied["allowed"] is False and denied["denied_by"] == "login"
            assert 3500000 < denied["retry_after_ms"] <= 3600000
            assert denied["limits"][0]["remaining"] == 0
            assert client.ask("WEIR.RESET", *check[1:]) == 1
            assert client.ask(*check)["allowed"] is True
        metrics = weir.metrics()
        assert metrics["weir_redis_commands_total"] == 5
        assert metrics['weir_decisions_total{limit="login",result="denied"}'] == 1


def test_a_bucket_refills_while_time_goes_by(weir):
    """One in two seconds: waiting for that long is enough."""
    with weir.redis() as client:
        wait_until(lambda: [client.ask("GCRA", "time", 0, 1, 2)[0] for _ in range(2)] == [0, 1],
                   what="two calls within two seconds")
        left = client.ask("PTTL", "time")
        assert 0 < left <= 2000
        time.sleep(left / 1000)
        assert client.ask("GCRA", "time", 0, 1, 2)[0] == 0


def test_keys_outlive_a_kill_with_a_state_file(tmp_path):
    state = {"file": str(tmp_path / "state"), "size": "4MiB"}
    rules = rules_of(state=state)
    with RedisWeir(tmp_path, rules) as weir:
        with weir.redis() as client:
            for left in (2, 1, 0):
                assert client.ask("CL.THROTTLE", "kept", 2, 1, 10000)[2] == left
        weir.kill()
        weir.start()
        with weir.redis() as client:
            assert client.ask("CL.THROTTLE", "kept", 2, 1, 10000)[0] == 1


# --- Who may call ---------------------------------------------------------------------------------

def test_a_password_is_asked_for(tmp_path):
    rules = rules_of(server={"redis": {"address": "127.0.0.1:0", "token": "open sesame"}})
    with RedisWeir(tmp_path, rules) as weir, weir.redis() as client:
        assert client.ask(*THROTTLE) == "NOAUTH Authentication required."
        assert client.ask("AUTH", "open").startswith("WRONGPASS")
        assert client.ask("AUTH", "default", "open sesame") == "OK"
        assert client.ask(*THROTTLE)[0] == 0
        with weir.redis() as other:
            assert other.ask("HELLO", 3, "AUTH", "default", "open sesame")["server"] == "weir"
            assert other.ask(*THROTTLE)[2] == 14


def test_others_are_served_only_in_so_many_words(tmp_path):
    with Weir(tmp_path, None, "--redis", "0.0.0.0:0", wait=False) as weir:
        assert weir.wait() == 1
        assert "server.redis a token" in weir.text()
    rules = rules_of(server={"redis": {"address": "0.0.0.0:0", "open": True}})
    with RedisWeir(tmp_path, rules, redis="0.0.0.0:0") as weir:
        with Redis(f"127.0.0.1:{weir.redis_port}") as client:
            assert client.ask("PING") == "PONG"


def test_a_unix_socket_is_served(tmp_path):
    address = f"unix:{tmp_path}/redis.sock"
    with RedisWeir(tmp_path, None, redis=address) as weir:
        with Redis(address) as client:
            assert client.ask(*THROTTLE) == [0, 16, 15, -1, 2]
        assert weir.stop() == 0
    with pytest.raises(FileNotFoundError):
        socket.socket(socket.AF_UNIX).connect(f"{tmp_path}/redis.sock")


def test_it_listens_only_where_it_is_asked_to(tmp_path):
    with Weir(tmp_path, rules_of()) as weir:
        assert "front=redis" not in weir.text()
        with Client(weir.admin_address) as client:
            assert b"weir_redis" not in client.request("GET", "/metrics").body
