# SPDX-License-Identifier: Apache-2.0
"""Callers that are kept in Redis: found, remembered, refreshed, forgotten, and what happens while Redis
is slow or away; on every wire. Keys never leave weir in clear."""

import hashlib
import json
import re
import shlex
import threading
from contextlib import ExitStack, contextmanager

import grpc
import pytest

from daemon import grpc as wire
from daemon.fault_proxy import FaultProxy
from daemon.http import request_bytes
from daemon.load import Load, check_request
from daemon.redis import Error, Redis, RedisWeir, command_bytes
from daemon.redis_server import RedisServer, pause, resume
from daemon.waiting import wait_until
from model.program import ROOT, run_weir

TOKEN = "operator"
PLANS = {"free": {"api": "5/30d"}, "pro": {"api": "100/30d"}}
API = {"name": "api", "key": ["user"], "algorithm": "token_bucket", "rate": "plan"}
DEAR = {"name": "dear", "match": {"plan": "pro"}, "key": ["user"], "rate": "1000/30d",
        "algorithm": "token_bucket", "cost": {"from": "header.x-cost", "default": 1, "max": 50}}
FREE, PRO = 5, 100
METRIC = 'weir_identity_lookups_total{result="%s"}'


def digest(key):
    return hashlib.sha256(key.encode()).hexdigest()


def rules(url, *limits, store=None, **identities):
    parts = {"store": {"redis": store, "deadline": "5s", "nodes": 1}} if store else {}
    # Long, so that a slow machine fails no test that is about something else.
    settings = {"redis": url, "deadline": "10s", "life": "1h", "unknown_life": "1h"} | identities
    return json.dumps({
        "version": 1, "identify": ["header.x-key", "client.ip"], "plans": PLANS,
        "default_plan": "free", "identities": settings, "limits": [API, DEAR, *limits],
        "server": {"admin": {"token": TOKEN}, "grpc": "127.0.0.1:0"}, **parts})


@pytest.fixture(autouse=True)
def fixture_empty(redis):
    redis.ask("FLUSHALL")
    redis.ask("CONFIG", "RESETSTAT")


def put(redis, key, **fields):
    name = "weir:identity:" + digest(key)
    redis.ask("DEL", name)
    redis.ask("HSET", name, *(part for pair in fields.items() for part in pair))


class Scene(RedisWeir):
    """A weir over a Redis, with a connection of its own for checks."""

    def __init__(self, folder, url, *limits, options=("--workers", 1), **settings):
        super().__init__(folder, rules(url, *limits, **settings), *options, http="127.0.0.1:0",
                         admin="127.0.0.1:0")

    def start(self):
        super().start()
        if self.wait_for_start:
            wait_until(lambda: self.metrics().get("weir_identities_up") == 1, what="identities")

    def ask(self, key=None, ip="192.0.2.1", **fields):
        headers = {"x-key": key} if key else {}
        return self.check(ip=ip, headers=headers | fields.pop("headers", {}), **fields)

    def limit(self, key, **fields):
        """What the caller of a key may do: 5, 100, or what an override says."""
        reply = self.ask(key, **fields)
        assert reply.status in (200, 429), reply.body
        return reply.json["limits"][0]["limit"]

    def remaining(self, key, **fields):
        return self.ask(key, **fields).json["limits"][0]["remaining"]

    def forget(self, *keys):
        with self.admin() as client:
            return client.post("/v1/identities/forget", {"sha256": [digest(key) for key in keys]},
                               {"Authorization": "Bearer " + TOKEN})


@contextmanager
def held(folder, redis, *limits, **settings):
    """A weir whose way to Redis can be held: then every key has to be waited for."""
    with FaultProxy(redis.port) as proxy, Scene(folder, f"redis://127.0.0.1:{proxy.port}", *limits,
                                                **settings) as weir:
        yield weir, proxy


# --- Found, remembered ---------------------------------------------------------------------------

def test_a_caller_is_found_once_and_a_key_of_nobody_too(tmp_path, redis):
    put(redis, "alices", user="alice", org="acme", plan="pro")
    with Scene(tmp_path, redis.url) as weir:
        assert [weir.limit("alices") for _ in range(5)] == [PRO] * 5
        assert [weir.remaining("made up") for _ in range(4)] == [4, 3, 2, 1]  # by its address
        assert weir.limit(None) == FREE
        assert redis.commands("hgetall") == 2
        counted = weir.metrics()
        assert counted[METRIC % "found"] == counted[METRIC % "unknown"] == 1
        assert counted[METRIC % "hit"] == 4 and counted[METRIC % "negative_hit"] == 3
        assert counted['weir_identities{kind="known"}'] == 1
        assert counted['weir_identities{kind="nobody"}'] == 1
        assert counted["weir_identity_lookup_seconds_count"] == 2


def test_the_first_example_of_the_page_works_as_it_stands(tmp_path, redis):
    page = (ROOT / "docs" / "identities.md").read_text(encoding="utf-8")
    text = page.split("```yaml\n")[1].split("```")[0].replace("redis://127.0.0.1:6379", redis.url)
    command = re.search(r"^\$ redis-cli (HSET .*)$", page, re.MULTILINE)[1]
    redis.ask(*shlex.split(command.replace("$key", digest("the-api-key"))))
    with RedisWeir(tmp_path, text, http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        def limit(key):
            reply = weir.check(ip="192.0.2.1", headers={"x-api-key": key}, cost=0)
            return reply.json["limits"][0]["limit"]

        wait_until(lambda: limit("the-api-key") == 500)  # within 20 ms, on a slow machine too
        assert limit("another-key") == 20


def test_two_keys_of_one_user_share_its_budget(tmp_path, redis):
    put(redis, "first", user="alice", plan="pro")
    put(redis, "second", user="alice", plan="pro")
    with Scene(tmp_path, redis.url) as weir:
        assert [weir.remaining(key) for key in ("first", "second", "first")] == [99, 98, 97]


def test_what_many_ask_at_once_is_looked_up_once_and_answered_in_order(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro")
    with held(tmp_path, redis) as (weir, proxy), ExitStack() as stack:
        proxy.tell("delay", 0.5)  # a server that says nothing for a second would be given up
        clients = [stack.enter_context(weir.client()) for _ in range(10)]
        body = [json.dumps({"headers": {"x-key": key}, "cost": cost, "ip": "192.0.2.1"}).encode()
                for cost, key in enumerate(["alices", "nobodys", "alices"])]
        for client in clients:
            client.send(b"".join(request_bytes("POST", "/v1/check", {}, one) for one in body))
        with weir.client() as client:  # who needs no lookup does not wait
            assert client.check(ip="192.0.2.7").status == 200
        for client in clients:
            replies = [client.reply().json["limits"] for _ in body]
            assert [one[0]["limit"] for one in replies] == [PRO, FREE, PRO]
            assert [len(one) for one in replies] == [2, 1, 2]
        assert redis.commands("hgetall") == 2


def test_a_life_ends_and_a_change_of_plan_keeps_what_was_used(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro")
    with Scene(tmp_path, redis.url, life="200ms", unknown_life="200ms") as weir:
        assert weir.remaining("alices", cost=3) == 97
        assert weir.limit("bobs", ip="192.0.2.2") == FREE
        put(redis, "alices", user="alice", plan="free")
        put(redis, "bobs", user="bob", plan="pro")
        wait_until(lambda: weir.limit("alices", cost=0) == FREE, what="the new plan")
        assert weir.remaining("alices", cost=0) == 2
        wait_until(lambda: weir.limit("bobs", cost=0) == PRO, what="the new caller")
        redis.ask("DEL", "weir:identity:" + digest("alices"))
        wait_until(lambda: weir.remaining("alices", ip="192.0.2.9", cost=0) == 5, what="the end")


def test_a_key_in_use_is_refreshed_before_anybody_has_to_wait(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro")
    with held(tmp_path, redis, life="3s") as (weir, proxy):
        def found():
            return weir.metrics()[METRIC % "found"]

        assert weir.limit("alices") == PRO
        wait_until(lambda: weir.limit("alices", cost=0) == PRO and found() == 2, what="a refresh")
        proxy.tell("hold")
        assert weir.limit("alices", cost=0) == PRO  # what is fresh needs no answer
        assert found() == 2
        proxy.tell("pass")


def test_what_is_forgotten_is_asked_anew_by_every_worker(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro")
    with Scene(tmp_path, redis.url, options=("--workers", 2)) as weir:
        for _ in range(20):  # both workers, most likely
            assert weir.limit("alices", cost=0) == PRO
        put(redis, "alices", user="alice", plan="free")
        assert weir.limit("alices", cost=0) == PRO
        assert weir.forget("alices", "another").json == {"forgotten": 2}
        wait_until(lambda: all(weir.limit("alices", cost=0) == FREE for _ in range(20)))
        with weir.admin() as client:
            fields = {"Authorization": "Bearer " + TOKEN}
            one = {"sha256": digest("alices")}
            assert client.post("/v1/identities/forget", one, fields).status == 200
            for body in {}, {"sha256": "alices"}, {"sha256": [1]}, {"sha256": "g" * 64}, [], {
                    "sha256": digest("x"), "all": True}, {"sha256": [digest("x")] * 1001}:
                assert client.post("/v1/identities/forget", body, fields).status == 400
            assert client.post("/v1/identities/forget", one,
                               {"Authorization": ""}).status == 401
            assert client.request("GET", "/v1/identities/forget").status == 405


def test_overrides_are_its_callers_whatever_its_plan(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro", **{"limit.api": "7/30d"})
    put(redis, "bobs", user="bob", **{"limit.api": "unlimited"})
    put(redis, "carols", user="carol", **{"limit.api": "7/30d"})
    month = {"name": "month", "key": ["user"], "quota": "10/month", "match": {"path": "/m"}}
    put(redis, "daves", user="dave", **{"limit.month": "20/month", "limit.api": "7/30d"})
    with Scene(tmp_path, redis.url, month, options=("--workers", 2)) as weir:
        assert weir.limit("alices", cost=2) == weir.limit("carols") == 7
        replies = [weir.ask("bobs").json for _ in range(8)]
        assert all(reply["allowed"] for reply in replies)
        limits = weir.ask("daves", path="/m").json["limits"]
        assert [limit["limit"] for limit in limits] == [7, 20]
        assert weir.metrics()["weir_identity_overrides"] == 2  # 7/30d, 20/month
        put(redis, "alices", user="alice", plan="pro")
        weir.forget("alices")
        wait_until(lambda: weir.limit("alices", cost=0) == PRO)
        assert weir.remaining("alices", cost=0) == 98  # used stays used
        put(redis, "alices", user="alice", **{"limit.api": "9/30d"})
        weir.write_rules(rules(redis.url, month, life="1h"))
        assert "event=reloaded" in weir.reload()  # overrides get limits of the new rules
        assert weir.limit("daves", cost=0) == 7
        weir.forget("alices")
        wait_until(lambda: weir.remaining("alices", cost=0) == 7)


def test_what_is_wrong_is_reported_once_and_what_is_good_is_used(tmp_path, redis):
    put(redis, "typo", user="alice", plan="pro", **{"limit.apy": "7/30d", "limit.dear": "lots"})
    put(redis, "plan", user="bob", plan="gold")
    put(redis, "anonymous", org="acme")
    put(redis, "long", user="x" * 257)
    redis.ask("SET", "weir:identity:" + digest("text"), "alice")
    with Scene(tmp_path, redis.url, unknown_life="100ms", life="100ms") as weir:
        for _ in range(3):
            assert weir.limit("typo", cost=0) == PRO
            assert weir.limit("plan", cost=0) == FREE
            for key in ("anonymous", "long", "text"):
                assert weir.limit(key, ip="192.0.2.3", cost=0) == FREE
        asked = redis.commands("hgetall")
        wait_until(lambda: weir.limit("text", cost=0) and redis.commands("hgetall") > asked + 2)
        lines = [line for line in weir.text().splitlines() if "event=identity_bad" in line]
        for key, problem in [("plan", "plan is not in the rules file"), ("long", "user must have"),
                             ("anonymous", "user is missing"), ("text", "it is not a hash")]:
            mine = [line for line in lines if f"key={digest(key)[:16]} " in line]
            assert len(mine) == 1 and problem in mine[0], lines
        assert any("apy" in line for line in lines if digest("typo")[:16] in line), lines
        assert not any(digest(key)[:17] in line for line in lines for key in ("plan", "typo"))
        weir.write_rules(rules(redis.url, {"name": "more", "key": ["user"], "rate": "9/30d"}))
        assert "event=reloaded" in weir.reload()  # which has overrides read anew
        assert weir.limit("typo", cost=0) == PRO
        assert weir.text().count(f"event=identity_bad key={digest('typo')[:16]} ") == 2


# --- Redis slow, away ----------------------------------------------------------------------------

def test_while_redis_is_away_what_is_old_is_used_and_others_are_nobody(tmp_path):
    with RedisServer(tmp_path / "redis") as redis, Scene(
            tmp_path, redis.url, life="100ms", unknown_life="100ms") as weir:
        put(redis, "alices", user="alice", plan="pro")
        assert weir.limit("alices") == PRO
        redis.kill()
        weir.wait_event("identities_down")
        wait_until(lambda: weir.limit("alices", cost=0) == PRO
                   and weir.metrics()[METRIC % "stale"] > 0, what="its life to end")
        assert weir.limit("bobs", cost=0) == FREE
        assert weir.metrics()[METRIC % "on_error"] >= 1
        assert weir.metrics()["weir_identities_up"] == 0
        with weir.admin() as client:
            ready = client.request("GET", "/readyz")
        assert ready.status == 200 and b"identities are not reached" in ready.body
        redis.start()
        put(redis, "alices", user="alice", plan="free")
        wait_until(lambda: weir.limit("alices", cost=0) == FREE, what="the new plan")
        weir.wait_event("identities_up", 2)
        assert weir.text().count("event=identities_down") == 1
        assert weir.metrics()["weir_identities_up"] == 1


def test_on_error_may_deny_and_stale_may_be_off(tmp_path):
    with RedisServer(tmp_path / "redis") as redis, Scene(
            tmp_path, redis.url, life="100ms", stale="off", on_error="deny") as weir:
        put(redis, "alices", user="alice", plan="pro")
        assert weir.limit("alices") == PRO
        redis.kill()
        weir.wait_event("identities_down")
        wait_until(lambda: weir.ask("alices").status == 503, what="its life to end")
        assert b"cannot be looked up" in weir.ask("bobs").body
        assert weir.ask(None).status == 200
        with weir.admin() as client:
            assert client.request("GET", "/readyz").status == 503
        with weir.redis() as client:
            assert client.ask("WEIR.CHECK", "header.x-key", "bobs").startswith("ERR who is calling")


def test_a_redis_that_hangs_delays_nobody_else_and_each_key_by_the_deadline(tmp_path):
    with RedisServer(tmp_path / "redis") as redis, Scene(
            tmp_path, redis.url, deadline="100ms", life="300ms", unknown_life="1ms") as weir:
        put(redis, "alices", user="alice", plan="pro")
        wait_until(lambda: weir.limit("alices", cost=0) == PRO)  # in time, even on a slow machine
        pause(redis)
        for i in range(30):
            assert weir.ask(None, ip=f"198.51.100.{i}").status == 200
            assert weir.limit(f"new {i}", ip=f"198.51.101.{i}") == FREE
        wait_until(lambda: weir.limit("alices", cost=0) == PRO
                   and weir.metrics()[METRIC % "stale"] > 0)
        assert weir.metrics()[METRIC % "late"] > 0
        weir.wait_event("identities_down")
        resume(redis)
        put(redis, "bobs", user="bob", plan="pro")
        wait_until(lambda: weir.limit("bobs", cost=0) == PRO, what="Redis to be asked again")


def test_connections_that_go_meanwhile_leave_nothing_behind(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro")
    with held(tmp_path, redis) as (weir, proxy):
        proxy.tell("hold")
        for i in range(60):
            with weir.client() as client:
                one = json.dumps({"headers": {"x-key": "alices"}}).encode()
                many = json.dumps([{"headers": {"x-key": f"key {i} {j}"}} for j in range(40)])
                client.send(request_bytes("POST", "/v1/check", {}, one))
                client.send(request_bytes("POST", "/v1/check", {}, many.encode()))
                client.send(request_bytes("POST", "/v1/reserve", {}, one))
        with weir.redis() as client:
            client.send(command_bytes("WEIR.CHECK", "header.x-key", "alices"))
            client.send(command_bytes("WEIR.RESET", "header.x-key", "alices"))
        wait_until(lambda: weir.metrics()["weir_connections"] == 0, what="the connections to go")
        proxy.tell("pass")
        # Redis, which was silent for so long, may have been given up meanwhile.
        wait_until(lambda: weir.limit("alices", cost=0) == PRO, what="Redis to be asked again")
        assert weir.remaining("alices", cost=0) == 100  # nothing was charged
        for i in range(4):  # all decisions are free again
            many = [{"headers": {"x-key": f"other {i} {j}"}, "cost": 0} for j in range(1000)]
            with weir.client() as client:
                assert client.post("/v1/check", many).status == 200
        assert weir.metrics()["weir_decisions_exhausted_total"] == 0


def test_a_flood_of_made_up_keys_takes_bounded_memory_and_no_real_ones_place(tmp_path, redis):
    with Scene(tmp_path, redis.url, max_keys=50) as weir:
        for i in range(50):
            put(redis, f"real {i}", user=f"user{i}", plan="pro")
            assert weir.limit(f"real {i}", cost=0) == PRO
        asked = redis.commands("hgetall")
        with weir.client() as client:
            for i in range(20):
                batch = [{"headers": {"x-key": f"made up {i} {j}"}, "cost": 0}
                         for j in range(1000)]
                assert client.post("/v1/check", batch).status == 200
        metrics = weir.metrics()
        assert metrics['weir_identities{kind="known"}'] == 50
        assert metrics['weir_identities{kind="nobody"}'] == 16384
        assert redis.commands("hgetall") == asked + 20000
        for i in range(50):
            assert weir.limit(f"real {i}", cost=0) == PRO
        assert redis.commands("hgetall") == asked + 20000


# --- Every wire ----------------------------------------------------------------------------------

def test_a_batch_of_new_keys_is_asked_together_and_refused_together(tmp_path, redis):
    for i in range(100):
        put(redis, f"key {i}", user=f"user{i}", plan="pro")
    with Scene(tmp_path, redis.url) as weir, weir.client() as client:
        batch = [{"headers": {"x-key": f"key {i}"}} for i in range(100)]
        bad = batch[:50] + [{"headers": {"x-key": "key 7", "x-cost": "many"}}] + batch[50:]
        late = client.post("/v1/check", bad)
        at_once = client.post("/v1/check", bad)
        assert late.status == at_once.status == 400
        assert late.body == at_once.body and b"[50] " in late.body
        answers = client.post("/v1/check", batch).json
        assert [one["limits"][0]["remaining"] for one in answers] == [99] * 100
        assert redis.commands("hgetall") == 100
        mixed = [{"ip": "192.0.2.5"}, {"headers": {"x-key": "unknown"}, "ip": "192.0.2.6"}]
        assert [one["limits"][0]["remaining"] for one in client.post("/v1/check", mixed).json] == [
            4, 4]
        assert client.post("/v1/check", batch[:1]).json[0]["limits"][0]["remaining"] == 98


def test_every_front_end_refuses_late_in_the_words_of_at_once(tmp_path, redis):
    headers = {"x-key": "alices", "x-cost": "many"}
    put(redis, "alices", user="alice", plan="pro")
    with Scene(tmp_path, redis.url) as weir, weir.client() as http, weir.redis() as resp, \
            grpc.insecure_channel(weir.grpc_address) as channel:
        def over_grpc():
            asked = wire.CheckRequest()
            for name, value in headers.items():
                asked.attributes.request.http.headers[name] = value
            call = channel.unary_unary(
                f"/{wire.AUTH}.Authorization/Check", lambda m: m.SerializeToString(),
                wire.message(f"{wire.AUTH}.CheckResponse").FromString)
            denied = call(asked, timeout=30).denied_response
            return denied.status.code, denied.body

        def commands(name, *more):
            return resp.ask(name, *more, *(part for key, value in headers.items()
                                           for part in ("header." + key, value)))

        def of_http(reply):
            return reply.status, reply.body

        for ask in (lambda: of_http(http.check(headers=headers)),
                    lambda: of_http(http.check(headers=headers, idempotency_key="k")),
                    lambda: of_http(http.auth(**headers)),
                    lambda: of_http(http.request("HEAD", "/v1/auth", headers))[:1],
                    lambda: of_http(http.post("/v1/reserve", {"headers": headers})),
                    over_grpc,
                    lambda: commands("WEIR.CHECK"), lambda: commands("WEIR.PEEK"),
                    lambda: commands("WEIR.REFUND"), lambda: commands("WEIR.RESET"),
                    lambda: commands("WEIR.RESERVE")):
            asked = redis.commands("hgetall")
            weir.forget("alices")
            wait_until(lambda: weir.metrics()['weir_identities{kind="known"}'] == 0)
            late = ask()
            assert redis.commands("hgetall") == asked + 1
            assert ask() == late
            refused = isinstance(late, Error) or late[0] == 400
            assert refused and (late == (400,) or "x-cost" in str(late)), late
            assert redis.commands("hgetall") == asked + 1
        unread = 'weir_requests_unreadable_total{front="%s"}'
        assert weir.metrics()[unread % "auth"] == 4  # GET and HEAD, late and at once
        assert weir.metrics()[unread % "ext_authz"] == 2
        assert weir.remaining("alices", cost=0) == 100
        assert "weir_reservations" not in weir.metrics() or weir.metrics()["weir_reservations"] == 0


def test_every_front_end_waits_for_who_is_calling(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro")
    headers = {"x-key": "alices"}
    with Scene(tmp_path, redis.url) as weir, weir.client() as http, weir.redis() as resp, \
            grpc.insecure_channel(weir.grpc_address) as channel:
        def anew():
            weir.forget("alices")
            wait_until(lambda: weir.metrics()['weir_identities{kind="known"}'] == 0)

        anew()
        assert http.auth(**headers)["x-ratelimit-remaining"] == "99"
        anew()
        reply = http.post("/v1/reserve", {"headers": headers, "cost": 10})
        assert reply.status == 200 and reply.json["limits"][0]["remaining"] == 89
        settled = http.post("/v1/settle", {"reservation": reply.json["reservation"], "cost": 4})
        assert settled.json["limits"][0]["remaining"] == 95
        anew()
        answers = []
        for _ in range(2):
            answers.append(http.check(headers=headers, idempotency_key="once").json)
            anew()
        assert [one.get("repeated", False) for one in answers] == [False, True]
        assert [one["limits"][0]["remaining"] for one in answers] == [94, 94]
        anew()
        reply = resp.ask("WEIR.CHECK", "header.x-key", "alices")
        assert dict(zip(reply[::2], reply[1::2]))["allowed"] == 1
        anew()
        asked = wire.CheckRequest()
        asked.attributes.request.http.headers["x-key"] = "alices"
        call = channel.unary_unary(
            f"/{wire.AUTH}.Authorization/Check", lambda m: m.SerializeToString(),
            wire.message(f"{wire.AUTH}.CheckResponse").FromString)
        assert call(asked, timeout=30).status.code == 0
        assert weir.remaining("alices", cost=0) == 92
        anew()
        assert resp.ask("WEIR.RESET", "header.x-key", "alices") == 2
        assert weir.remaining("alices", cost=0) == 100


# --- With all else -------------------------------------------------------------------------------

def test_keys_are_in_clear_nowhere(tmp_path, redis):
    secrets = ["a-secret-of-alice", "a-secret-of-nobody"]
    put(redis, secrets[0], user="alice", plan="pro")
    redis.ask("SET", "weir:identity:" + digest("a-secret-that-is-bad"), "x")
    by_key = {"name": "by-key", "key": ["header.x-key"], "rate": "1/30d"}
    state = tmp_path / "state"
    with Redis(redis.address) as monitor:
        assert monitor.ask("MONITOR") == "OK"
        with Scene(tmp_path, redis.url, by_key, store=redis.url) as weir:
            weir.write_rules(json.dumps(json.loads(rules(redis.url, by_key, store=redis.url))
                                        | {"state": {"file": str(state)}}))
        with Scene(tmp_path, redis.url, by_key, store=redis.url) as weir:
            for key in [*secrets, "a-secret-that-is-bad"] * 2:
                weir.ask(key)
            text = json.dumps(weir.metrics()) + weir.text()
            with weir.admin() as client:
                text += client.request("GET", "/v1/limits/by-key/top").body.decode()
            assert weir.stop() == 0
        redis.ask("PING")
        lines = []
        while not lines or '"PING"' not in lines[-1] or "HGETALL" not in "".join(lines):
            lines.append(monitor.reply())
        text += "".join(lines)
    assert f"weir:identity:{digest(secrets[0])}" in text
    assert "a-secret" not in text
    assert digest("a-secret-that-is-bad")[:16] in text


def test_reloads_under_load_lose_no_request_and_change_lives(tmp_path, redis):
    put(redis, "alices", user="alice", plan="pro", **{"limit.api": "1000000/30d"})
    with Scene(tmp_path, redis.url, options=("--workers", 2), life="20ms") as weir:
        bodies = [json.dumps({"headers": {"x-key": key}, "ip": f"192.0.2.{i}"})
                  for i, key in enumerate(["alices", "alices", "nobodys", "others"])]
        with Load([weir.http_address], 4, lambda i: check_request(bodies[i]), pace=0.002) as load, \
                load.running():
            for i in range(10):
                more = [{"name": f"more{i}", "key": ["user"], "rate": "1000000/30d"}]
                weir.write_rules(rules(redis.url, *more, life=f"{10 + i}ms", unknown_life="10ms"))
                assert "event=reloaded" in weir.reload()
        assert {answer.status for answer in load.answers} <= {200, 429}
        weir.write_rules(rules(redis.url, life="1h", max_keys=7))
        weir.reload()
        assert "setting=identities" in weir.wait_event("restart_needed")
        assert weir.limit("alices", cost=0) == 1000000
        assert weir.stop() == 0


def test_a_daemon_without_its_redis_starts_and_ends(tmp_path, redis):
    with RedisWeir(tmp_path, rules("redis://127.0.0.1:1", deadline="100ms"), "--workers", 2,
                   http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        weir.wait_event("identities_down")
        assert weir.check(headers={"x-key": "alices"}, ip="192.0.2.1").status == 200
        assert weir.stop() == 0


def test_ten_threads_of_clients_agree_with_what_redis_says(tmp_path, redis):
    """Who a key is changes all the time; every answer is one that was true."""
    put(redis, "alices", user="alice", plan="pro")
    wrong, done = [], threading.Event()
    with Scene(tmp_path, redis.url, options=("--workers", 2), life="5ms", unknown_life="5ms") as weir:
        def ask():
            with weir.client() as client:
                while not done.is_set():
                    reply = client.check(headers={"x-key": "alices"}, cost=0, ip="192.0.2.1")
                    if reply.status != 200 or reply.json["limits"][0]["limit"] not in (FREE, PRO, 7):
                        wrong.append(reply.body)
        threads = [threading.Thread(target=ask) for _ in range(10)]
        for thread in threads:
            thread.start()
        for i in range(60):
            put(redis, "alices", user="alice", plan=("free", "pro")[i % 2])
            if i % 3 == 0:
                put(redis, "alices", user="alice", **{"limit.api": "7/30d"})
            if i % 5 == 0:
                weir.forget("alices")
        done.set()
        for thread in threads:
            thread.join()
        assert not wrong


# --- Commands that have no directory -------------------------------------------------------------

def test_explain_says_what_a_server_would_look_up_and_replay_knows_nobody(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text(rules("redis://127.0.0.1:1", prefix="who:"), encoding="utf-8")
    done = run_weir("explain", "--config", path, "-H", "X-Key: alices", "--ip", "192.0.2.1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        f"a server looks up its key in Redis, which explain does not: who:{digest('alices')}\n")
    assert "key    user=ip:192.0.2.1" in done.stdout and "alices" not in done.stdout
    done = run_weir("explain", "--config", path, "--ip", "192.0.2.1")
    assert "looks up" not in done.stdout
    trace = tmp_path / "trace"
    trace.write_text('{"t": 1, "headers": {"x-key": "alices"}, "ip": "192.0.2.1"}\n')
    done = run_weir("replay", "--config", path, trace)
    assert done.returncode == 0 and done.stderr == ""


def test_validate_reads_the_url(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text(rules("redis://127.0.0.1:99999"), encoding="utf-8")
    done = run_weir("validate", path)
    assert done.returncode == 1 and "identities.redis" in done.stderr
