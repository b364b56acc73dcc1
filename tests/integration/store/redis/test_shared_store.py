# SPDX-License-Identifier: Apache-2.0
"""One node and the store that nodes share: what it tells, what it does when it stops, commands."""

import json
import signal

import pytest

from daemon.grpc import Stub
from daemon.http import request_bytes
from daemon.nodes import Nodes, shared_rules
from daemon.redis import Error, Redis
from daemon.redis_server import RedisServer
from daemon.stopped import stopped
from daemon.waiting import wait_until
from daemon.weir import Weir

LIMIT = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/h", "burst": 100}
SERVING, NOT_SERVING = 1, 2
CHECK = request_bytes("POST", "/v1/check", None, b'{"ip":"192.0.2.1"}')


@pytest.fixture(name="redis")
def fixture_redis(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        yield server


def ready(weir):
    with weir.admin() as admin:
        reply = admin.request("GET", "/readyz")
        return reply.status, reply.body.decode()


def redis_of(weir):
    (address,) = [line.rpartition("address=")[2].strip() for line in weir.text().splitlines()
                  if "front=redis" in line]
    return Redis(address)


@pytest.mark.parametrize("failure, without", [("closed", 503), ("open", 200), ("local", 200)])
def test_ready_without_its_store_is_who_can_decide_as_reported(tmp_path, redis, failure, without):
    rules = shared_rules(redis.url, {**LIMIT, "on_store_error": failure}, nodes=2, deadline="20ms")
    with Weir(tmp_path, rules, "--workers", "2", "--grpc", "127.0.0.1:0") as weir, \
            Stub(weir.grpc_address) as stub:
        wait_until(lambda: ready(weir) == (200, "ready\n"), what="the store")
        redis.kill()
        wait_until(lambda: weir.metrics()["weir_store_up"] == 0, what="the metric")
        wait_until(lambda: "2 of 2 workers" in ready(weir)[1], what="both workers")
        assert ready(weir)[0] == without
        assert stub.health() == (SERVING if without == 200 else NOT_SERVING)
        assert weir.check(ip="192.0.2.1").status == (503 if failure == "closed" else 200)
        redis.start()
        wait_until(lambda: ready(weir) == (200, "ready\n"), what="the return")
        assert stub.health() == SERVING


def test_ready_names_all_that_is_not_reached(tmp_path, redis):
    rules = json.loads(shared_rules(redis.url, LIMIT, nodes=2, deadline="20ms"))
    rules |= {"identities": {"redis": redis.url, "on_error": "deny"}, "identify": ["header.x-key"]}
    with Weir(tmp_path, json.dumps(rules), "--workers", "1") as weir:
        wait_until(lambda: ready(weir) == (200, "ready\n"), what="the store")
        redis.kill()
        wait_until(lambda: ready(weir) == (
            503, "not ready: the store is not reached by 1 of 1 workers,"
                 " identities are not reached by 1 of 1 workers\n"), what="both")


def test_a_node_that_starts_without_its_store_decides_and_finds_it_later(tmp_path, redis):
    redis.kill()
    with Weir(tmp_path, shared_rules(redis.url, LIMIT, nodes=2, deadline="20ms")) as weir:
        weir.wait_event("store_down")
        reply = weir.check(ip="192.0.2.1").json
        assert reply["allowed"] and reply["limits"][0]["limit"] == 50  # its half
        redis.start()
        weir.wait_event("store_up")
        wait_until(lambda: weir.check(ip="192.0.2.1").json["limits"][0]["limit"] == 100,
                   what="decisions by the store")


def test_a_reload_names_what_needs_a_restart_and_takes_modes(tmp_path, redis):
    rules = shared_rules(redis.url, LIMIT)
    with Weir(tmp_path, rules) as weir:
        weir.wait_event("store_up")
        weir.write_rules(shared_rules(redis.url, {**LIMIT, "mode": "leased"}))
        assert "event=reloaded" in weir.reload()
        assert "restart_needed" not in weir.text()
        weir.write_rules(shared_rules(redis.url, LIMIT, redis={"prefix": "other:"}))
        assert "event=reloaded" in weir.reload()
        assert "setting=store.redis" in weir.wait_event("restart_needed")
        assert weir.check(ip="192.0.2.1").status == 200
        assert all(key.startswith("weir:") for key in redis.keys())


def test_commands_share_their_keys_over_nodes(tmp_path, redis):
    with Nodes(tmp_path, 2, shared_rules(redis.url, LIMIT), redis=True) as nodes, \
            redis_of(nodes[0]) as one, redis_of(nodes[1]) as other:
        assert one.ask("CL.THROTTLE", "k", 9, 10, 3600) == [0, 10, 9, -1, 360]
        assert other.ask("CL.THROTTLE", "k", 9, 10, 3600)[:3] == [0, 10, 8]
        assert other.ask("WEIR.CHECKALL", 2, "k", 9, 10, 3600, 1, "l", 9, 10, 3600, 1)[1] == 1
        assert 0 < one.ask("TTL", "k") <= 1080
        assert one.ask("EXISTS", "k", "l", "none") == 2
        assert one.ask("INCREX", "k", "UBOUND", 5, "EX", 86400, "ENX") == [1, 1]
        one.ask("SELECT", 1)
        assert one.ask("EXISTS", "k") == 0
        assert other.ask("DEL", "k", "none") == 1
        assert other.ask("TTL", "k") == -2
        long_key = "x" * 5000
        assert one.ask("CL.THROTTLE", long_key, 9, 10, 3600)[2] == 9
        other.ask("SELECT", 1)
        assert other.ask("CL.THROTTLE", long_key, 9, 10, 3600)[2] == 8
        assert max(len(key) for key in redis.keys()) < 200
        redis.kill()
        wait_until(lambda: isinstance(one.ask("TTL", "k"), Error), what="an error of the store")
        assert one.ask("TTL", "k").startswith("ERR store: ")


def test_what_is_asked_while_it_stops_is_answered(tmp_path, redis):
    """SIGTERM while decisions are at a store that hangs: they are answered when it continues."""
    with Weir(tmp_path, shared_rules(redis.url, LIMIT), "--workers", "1") as weir:
        weir.wait_event("store_up")
        with weir.client() as client:
            assert client.check(ip="192.0.2.1").status == 200
            with stopped(redis.process):
                client.send(CHECK * 20)
                wait_until(lambda: weir.metrics()["weir_store_calls_total"] > 1, what="the calls")
                weir.signal(signal.SIGTERM)
                weir.wait_event("stopping")
            assert [client.reply().status for _ in range(20)] == [200] * 20
            assert client.closed()
        assert weir.wait() == 0


def test_a_second_signal_ends_it_with_decisions_at_the_store(tmp_path, redis):
    with Weir(tmp_path, shared_rules(redis.url, {**LIMIT, "mode": "leased"}), "--workers",
              "2") as weir:
        weir.wait_event("store_up")
        with weir.client() as client, weir.client() as idle:
            for _ in range(20):
                assert client.check(ip="192.0.2.1").status == 200
            with stopped(redis.process):
                client.send(request_bytes("POST", "/v1/check", None, b'{"ip":"192.0.2.2"}') * 20)
                idle.send(CHECK[:20])
                weir.signal(signal.SIGTERM)
                weir.wait_event("stopping")
                wait_until(lambda: weir.signal(signal.SIGTERM) or "stopping_hard" in weir.text(),
                           what="the second signal's line")
                assert weir.wait() == 0


def test_clients_that_go_away_leave_nothing(tmp_path, redis):
    with Weir(tmp_path, shared_rules(redis.url, LIMIT, nodes=2), "--workers", "1") as weir:
        weir.wait_event("store_up")
        with stopped(redis.process):
            for _ in range(30):
                with weir.client() as client:
                    client.send(CHECK * 50)
        wait_until(lambda: weir.metrics()["weir_connections"] <= 1, what="no connections")
        assert weir.check(ip="192.0.2.9").status == 200
        assert weir.metrics()["weir_decisions_exhausted_total"] == 0
        assert weir.stop() == 0


@pytest.mark.parametrize("right", ["-evalsha", "resetkeys ~others:*", "-get"])
def test_ready_says_which_right_is_missing(tmp_path, redis, right):
    """From the beginning, and taken away while connections are open."""
    user = ["ACL", "SETUSER", "weir", "on", ">secret", "~weir:*", "-@all", "+evalsha", "+script|load",
            "+time", "+get", "+set", "+del", "+ping", "+role"]
    redis.ask(*user)
    redis.ask("ACL", "SETUSER", "weir", *right.split())
    url = redis.url.replace("//", "//weir:secret@")
    with Weir(tmp_path, shared_rules(url, {**LIMIT, "on_store_error": "closed"})) as weir:
        weir.wait_event("store_down")
        wait_until(lambda: "EVALSHA: " in ready(weir)[1], what="the reason")
        assert ready(weir)[0] == 503 and weir.metrics()["weir_store_up"] == 0
        redis.ask(*user)
        wait_until(lambda: ready(weir) == (200, "ready\n"), what="the right")
        assert weir.check(ip="192.0.2.1").status == 200
        if right == "-evalsha":
            redis.ask("ACL", "SETUSER", "weir", right)
            wait_until(lambda: weir.check(ip="192.0.2.1").status == 503 and ready(weir)[0] == 503,
                       what="the end of it")
            wait_until(lambda: "EVALSHA: " in ready(weir)[1], what="its reason")
