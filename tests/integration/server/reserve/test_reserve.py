# SPDX-License-Identifier: Apache-2.0
"""Reservations: charged at an estimate, settled by the truth; over workers, restarts, a store that
nodes share, and the Redis protocol."""

import json
import os
import random
import socket
import subprocess
import threading

import pytest

from daemon.nodes import shared_rules
from daemon.redis import Error, RedisWeir, command_bytes
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

TOKENS = {"name": "tokens", "key": ["client.ip"], "algorithm": "token_bucket", "rate": "100/30d",
          "refund_on": ["5xx", 404], "refund_cap": "20%"}
DAILY = {"name": "daily", "key": ["client.ip"], "algorithm": "fixed_window", "rate": "1000/300d",
         "debt": "0%"}
FREE = {"name": "free", "match": {"path": "/free"}, "key": ["client.ip"], "algorithm": "gcra",
        "rate": "5/30d"}
TOKEN = {"token": "s3cret"}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules_of(TOKENS, DAILY, FREE,
              server={"admin": TOKEN}), "--workers", "2") as weir:
        yield weir


def post(weir, path, /, **fields):
    with weir.client() as client:
        return client.post(path, fields)


def reserve(weir, ip, cost=1, **fields):
    reply = post(weir, "/v1/reserve", ip=ip, cost=cost, **fields)
    assert reply.status == 200, reply.body
    return reply.json["reservation"]


def settle(weir, token, **truth):
    reply = post(weir, "/v1/settle", reservation=token, **truth)
    assert reply.status == 200, reply.body
    return reply.json


def used(weir, ip):
    limits = weir.check(ip=ip, dry_run=True, cost=0).json["limits"]
    return [limit["limit"] - limit["remaining"] for limit in limits]


def test_a_debit_of_a_key_in_overflow_counts_where_its_estimate_did(tmp_path):
    """All slots are of keys that deny, and many more keys of one network have filled the cells by
    keys; those by networks are left."""
    limit = {"name": "hour", "key": ["client.ip"], "algorithm": "fixed_window", "rate": "10/300d"}
    flood = [{"ip": f"10.0.{i // 256}.{i % 256}", "cost": 10} for i in range(20000)]
    with Weir(tmp_path, rules_of(limit, state={"size": "256KiB"})) as weir:
        with weir.client() as client:
            for i in range(0, len(flood), 1000):
                client.post("/v1/check", flood[i:i + 1000])
        overflowed = 0
        for i in range(100):
            reply = post(weir, "/v1/reserve", ip=f"198.{i}.0.1", cost=1)
            if not reply.json["limits"][0].get("overflow") or not reply.json["allowed"]:
                continue  # it has found a slot, or another network's cell
            overflowed += 1
            assert settle(weir, reply.json["reservation"], cost=10)["limits"][0]["charged"] == 9
            assert weir.check(ip=f"198.{i}.0.1").status == 429
        assert overflowed > 10


def test_an_estimate_is_charged_to_all_limits_and_answered_as_a_check(weir):
    reply = post(weir, "/v1/reserve", ip="192.0.2.1", cost=40)
    assert reply.status == 200 and reply.json["allowed"] is True
    assert [limit["remaining"] for limit in reply.json["limits"]] == [60, 960]
    assert reply.json["life_ms"] == 60000
    assert reply["x-ratelimit-remaining"] == "60"
    assert used(weir, "192.0.2.1") == [40, 40]


def test_what_is_denied_has_no_token_and_charges_nothing(weir):
    reply = post(weir, "/v1/reserve", ip="192.0.2.2", cost=101)
    assert reply.status == 429 and "reservation" not in reply.json
    assert used(weir, "192.0.2.2") == [0, 0]


def test_a_true_cost_below_gives_back_the_difference(weir):
    token = reserve(weir, "192.0.2.3", 40)
    answer = settle(weir, token, cost=15)
    assert answer["settled"] is True and answer["repeated"] is False
    assert [(limit["name"], limit["refunded"]) for limit in answer["limits"]] == \
        [("tokens", 25), ("daily", 25)]
    assert used(weir, "192.0.2.3") == [15, 15]


def test_a_true_cost_above_is_charged_down_to_the_floor_of_debt(weir):
    token = reserve(weir, "192.0.2.4", 90)
    answer = settle(weir, token, cost=2000)
    assert [(limit["charged"], limit["dropped"]) for limit in answer["limits"]] == \
        [(110, 1800), (910, 1000)]
    assert weir.check(ip="192.0.2.4").status == 429
    assert used(weir, "192.0.2.4") == [100, 1000]


def test_settling_twice_is_done_once_and_reported(weir):
    token = reserve(weir, "192.0.2.5", 40)
    settle(weir, token, cost=10)
    for truth in ({"cost": 10}, {"cost": 0}, {"cost": 99}, {"status": 503}):
        assert settle(weir, token, **truth)["repeated"] is True
    assert used(weir, "192.0.2.5") == [10, 10]


def test_of_settlements_at_one_time_one_is_done(weir):
    tokens, gate = [reserve(weir, "192.0.2.6", 4) for _ in range(10)], threading.Barrier(8)
    firsts = []

    def work():
        gate.wait()
        for token in tokens:
            if not settle(weir, token, cost=1)["repeated"]:
                firsts.append(token)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(firsts) == sorted(tokens)
    assert used(weir, "192.0.2.6") == [10, 10]


def test_it_is_released_by_itself_when_its_life_ends_and_then_too_late(weir):
    token = reserve(weir, "192.0.2.7", 60, life=1)
    wait_until(lambda: used(weir, "192.0.2.7") == [0, 0], what="the release")
    reply = post(weir, "/v1/settle", reservation=token, cost=10)
    assert reply.status == 409 and "given back" in reply.json["detail"]
    assert used(weir, "192.0.2.7") == [0, 0]


def test_an_outcome_gives_back_within_its_cap_and_to_its_limits_only(weir):
    refunded = []
    for _ in range(6):
        answer = settle(weir, reserve(weir, "192.0.2.8", 5), outcome="5xx")
        refunded.append([limit["refunded"] for limit in answer["limits"]])
        assert answer["capped"] is (len(refunded) > 4)
    assert refunded == [[5]] * 4 + [[]] * 2  # 20 % of 100
    assert used(weir, "192.0.2.8") == [10, 30]
    assert settle(weir, reserve(weir, "192.0.2.9", 5), status=200)["limits"] == []
    reply = post(weir, "/v1/report", reservation=reserve(weir, "192.0.2.9", 5), status=404)
    assert [limit["refunded"] for limit in reply.json["limits"]] == [5]
    assert used(weir, "192.0.2.9") == [5, 10]


@pytest.mark.parametrize("fields, status", [
    ({"cost": 0}, 400), ({"life": 0.5}, 400), ({"life": 3601}, 400), ({"life": "soon"}, 400),
    ({"dry_run": True}, 400), ({"idempotency_key": "k"}, 400), ({"status": 200}, 400)])
def test_what_is_no_reservation_is_refused(weir, fields, status):
    assert post(weir, "/v1/reserve", ip="192.0.2.10", **fields).status == status
    assert used(weir, "192.0.2.10") == [0, 0]


def test_a_check_has_no_life(weir):
    assert weir.check(ip="192.0.2.10", life=5).status == 400


@pytest.mark.parametrize("fields", [
    {}, {"cost": 1}, {"reservation": "AAAA", "cost": 1}, {"reservation": "", "status": 500},
    {"reservation": "AAAA"}, {"reservation": 1, "cost": 1}, {"reservation": "AAAA", "cost": -1}])
def test_what_is_no_settlement_is_refused(weir, fields):
    assert post(weir, "/v1/settle", **fields).status == 400


def test_a_token_that_was_changed_is_none(weir):
    token = reserve(weir, "192.0.2.11", 50)
    for i in range(0, len(token), 7):
        other = token[:i] + ("A" if token[i] != "A" else "B") + token[i + 1:]
        assert post(weir, "/v1/settle", reservation=other, cost=0).status == 400
    assert used(weir, "192.0.2.11") == [50, 50]


def test_the_token_outlives_kill_9_and_is_settled_once(tmp_path):
    state = {"file": str(tmp_path / "state"), "size": "1MiB"}
    with Weir(tmp_path, rules_of(TOKENS, DAILY, state=state)) as weir:
        early, late = reserve(weir, "192.0.2.1", 40), reserve(weir, "192.0.2.1", 40)
        settle(weir, early, cost=5)
        weir.kill()
        weir.start()
        assert used(weir, "192.0.2.1") == [45, 45]
        assert settle(weir, early, cost=0)["repeated"] is True
        assert settle(weir, late, cost=30)["repeated"] is False
        assert used(weir, "192.0.2.1") == [35, 35]


def test_over_random_kills_nothing_is_gained_and_nothing_leaks(tmp_path):
    """Reservations are settled, some twice, over kill -9: those that were settled count by the
    truth, the others by their estimate."""
    state = {"file": str(tmp_path / "state"), "size": "1MiB"}
    limit = {**DAILY, "rate": "1000000/300d"}
    choose, expected, open_tokens, settled = random.Random(7), 0, [], []
    with Weir(tmp_path, rules_of(limit, state=state), "--workers", "2") as weir:
        for _ in range(5):
            for _ in range(40):
                cost = choose.randint(1, 50)
                open_tokens.append((reserve(weir, "192.0.2.1", cost), cost))
                expected += cost
                if choose.random() < 0.7:
                    token, cost = open_tokens.pop(choose.randrange(len(open_tokens)))
                    truth = choose.randint(0, 100)
                    assert settle(weir, token, cost=truth)["repeated"] is False
                    expected += truth - cost
                    settled.append(token)
                if settled and choose.random() < 0.3:
                    assert settle(weir, choose.choice(settled), cost=0)["repeated"] is True
            weir.kill()
            weir.start()
            assert used(weir, "192.0.2.1") == [expected]


def test_after_a_reload_it_is_settled_where_the_limit_is_the_same_or_converts(tmp_path):
    with Weir(tmp_path, rules_of(TOKENS, DAILY)) as weir:
        tokens = [reserve(weir, f"192.0.2.{i}", 10) for i in range(2)]
        weir.write_rules(rules_of(FREE, {**TOKENS, "rate": "200/30d"}, {**DAILY, "key": []}))
        weir.reload()
        assert [limit["refunded"] for limit in settle(weir, tokens[0], cost=4)["limits"]] == [6, 6]
        weir.write_rules(rules_of({**TOKENS, "algorithm": "sliding_window"}))
        weir.reload()
        answer = settle(weir, tokens[1], cost=4)
        assert answer["gone"] == 2 and answer["limits"] == []


def test_of_several_rates_each_is_settled_and_the_tightest_reported(tmp_path):
    both = {"name": "both", "key": ["client.ip"], "algorithm": "fixed_window",
            "rate": ["50/30d", "1000/300d"], "refund_on": ["5xx"], "refund_cap": "50%"}
    with Weir(tmp_path, rules_of(both)) as weir:
        answer = settle(weir, reserve(weir, "192.0.2.1", 40), cost=10)
        assert [(limit["refunded"], limit["remaining"]) for limit in answer["limits"]] == [(30, 40)]
        answer = settle(weir, reserve(weir, "192.0.2.1", 20), cost=30)
        assert [(limit["charged"], limit["remaining"]) for limit in answer["limits"]] == [(10, 10)]
        assert len(settle(weir, reserve(weir, "192.0.2.1", 10), status=500)["limits"]) == 1
        assert used(weir, "192.0.2.1") == [40]


def test_two_nodes_that_share_a_store_know_their_own_tokens(tmp_path):
    with RedisServer(tmp_path / "redis") as redis:
        rules = shared_rules(redis.url, {**TOKENS, "on_store_error": "closed"},
                             {**DAILY, "on_store_error": "closed"}, nodes=2, deadline="2s")
        with Weir(tmp_path, rules) as weir:
            token = reserve(weir, "192.0.2.1", 40)
            assert settle(weir, token, cost=10)["repeated"] is False
            assert settle(weir, token, cost=0)["repeated"] is True
            assert used(weir, "192.0.2.1") == [10, 10]
            token = reserve(weir, "192.0.2.1", 20)
            settle(weir, token, cost=50)
            assert used(weir, "192.0.2.1") == [60, 60]
            answer = settle(weir, reserve(weir, "192.0.2.1", 20), status=500)
            assert [limit["refunded"] for limit in answer["limits"]] == [20]
            answer = settle(weir, reserve(weir, "192.0.2.1", 20), status=500)
            assert answer["capped"] is True and used(weir, "192.0.2.1") == [80, 100]
            reserve(weir, "192.0.2.2", 30, life=1)
            wait_until(lambda: used(weir, "192.0.2.2") == [0, 0], what="the release")
            token = reserve(weir, "192.0.2.3", 30)
            redis.kill()
            assert post(weir, "/v1/settle", reservation=token, cost=1).status == 503


def test_over_the_redis_protocol(tmp_path):
    def dictionary(reply):
        return {name: [dictionary(part) for part in value] if name == "limits" else value
                for name, value in zip(reply[::2], reply[1::2])}

    with RedisWeir(tmp_path, rules_of(TOKENS, DAILY), "--workers", "2") as weir, \
            weir.redis() as redis:
        def ask(*words):
            return dictionary(redis.ask(*words))

        first = ask("WEIR.RESERVE", "ip", "192.0.2.1", "COST", 40, "LIFE", 5000)
        assert first["allowed"] == 1 and first["life_ms"] == 5000
        answer = ask("WEIR.SETTLE", first["reservation"], "COST", 15)
        assert [limit["refunded"] for limit in answer["limits"]] == [25, 25]
        assert [limit["remaining"] for limit in answer["limits"]] == [85, 985]
        assert ask("WEIR.SETTLE", first["reservation"], "COST", 15)["repeated"] == 1
        token = ask("WEIR.RESERVE", "ip", "192.0.2.1", "COST", 5)["reservation"]
        assert [limit["refunded"] for limit in
                ask("WEIR.SETTLE", token, "STATUS", "5xx")["limits"]] == [5]
        assert "reservation" not in ask("WEIR.RESERVE", "ip", "192.0.2.1", "COST", 500)
        for wrong in (["WEIR.RESERVE", "COST", 0], ["WEIR.RESERVE", "LIFE", 1],
                      ["WEIR.SETTLE", token, "PRICE", 1], ["WEIR.SETTLE", "AAAA", "COST", 1],
                      ["WEIR.SETTLE", token, "STATUS", "6xx"], ["WEIR.SETTLE", token, "COST"]):
            assert isinstance(redis.ask(*wrong), Error), wrong


# --- Whom the places are for ----------------------------------------------------------------------

BY_USER = {"name": "by-user", "match": {"path": "/user/*"}, "key": ["user"], "algorithm": "gcra",
           "rate": "1000000/h"}
BY_USER_AND_ROUTE = {"name": "by-route", "match": {"path": "/user/*"}, "key": ["user", "path"],
                     "algorithm": "gcra", "rate": "1000000/h"}
GLOBAL = {"name": "global", "key": [], "match": {"path": ["/user/*", "/global"]},
          "algorithm": "gcra", "rate": "100000000/h"}
PLACES = 16384


def reserve_many(redis, count, *words):
    """So many over the Redis protocol, for an hour; the replies."""
    request = command_bytes("WEIR.RESERVE", *words, "COST", 1, "LIFE", 3600000)
    replies = []
    while count > 0:
        redis.send(request * min(count, 500))
        replies += [redis.reply() for _ in range(min(count, 500))]
        count -= 500
    return replies


@pytest.fixture(name="crowded")
def fixture_crowded(tmp_path):
    with RedisWeir(tmp_path, rules_of(BY_USER_AND_ROUTE, BY_USER, GLOBAL), "--workers", "2",
                   http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        yield weir


def test_reservations_of_nothing_take_no_place_and_are_settled_all_the_same(crowded):
    weir = crowded
    with weir.redis() as redis:
        tokens = [reply[reply.index("reservation") + 1]
                  for reply in reserve_many(redis, PLACES + 500, "path", "/none")]
        metrics = weir.metrics()
        assert metrics["weir_reservations"] == 0
        reply = post(weir, "/v1/reserve", path="/global", cost=3, life=3600)
        assert reply.status == 200, reply.body
        for truth in ({"cost": 5}, {"cost": 1}, {"cost": 1}, {"status": 503}):
            answer = settle(weir, tokens[0], **truth)
            assert answer["settled"] is True and answer["limits"] == []
            assert answer["repeated"] is False  # nothing is kept of it that could tell
        assert redis.ask("WEIR.SETTLE", tokens[1], "COST", 1)[:4] == ["settled", 1, "repeated", 0]
        after = weir.metrics()
        assert after["weir_reservations"] == 1
        # neither did their settlements leave a record in the table
        assert after["weir_table_inserts_total"] == metrics["weir_table_inserts_total"] + 1


def test_one_caller_cannot_take_all_places(crowded):
    weir = crowded
    with weir.redis() as redis:
        mine = reserve_many(redis, PLACES, "path", "/user/1", "user", "greedy")
        errors = [reply for reply in mine if isinstance(reply, Error)]
        assert len(mine) - len(errors) == PLACES / 2
        assert set(errors) == {"ERR this caller has as many reservations open as there are places "
                               "left on this node; nothing was charged"}
        other = post(weir, "/v1/reserve", path="/user/1", attributes={"user": "ann"})
        assert other.status == 200, other.body
        # by other routes, other limits of the same caller are charged: it is the same caller
        assert isinstance(reserve_many(redis, 1, "path", "/user/2", "user", "greedy")[0],
                          Error)
        reply = post(weir, "/v1/reserve", path="/user/1", attributes={"user": "greedy"})
        assert reply.status == 503 and "this caller" in reply.json["detail"]
        metrics = weir.metrics()
        assert metrics["weir_reservations"] == PLACES / 2 + 1
        assert metrics["weir_reservations_max"] == PLACES
        assert metrics['weir_reservations_refused_total{reason="caller"}'] == PLACES / 2 + 2
        assert metrics['weir_reservations_refused_total{reason="full"}'] == 0
        for i in range(0, 20):
            settle(weir, mine[i][mine[i].index("reservation") + 1], cost=0)
        assert not isinstance(reserve_many(redis, 1, "path", "/user/1", "user", "greedy")[0], Error)
        assert weir.metrics()["weir_reservations"] == PLACES / 2 + 1 - 20 + 1


def test_where_limits_tell_nobody_apart_the_address_that_asks_does(crowded):
    weir = crowded
    with weir.redis() as redis:
        mine = reserve_many(redis, PLACES, "path", "/global")
        assert sum(not isinstance(reply, Error) for reply in mine) == PLACES / 2
        with socket.create_connection(redis.socket.getpeername(),
                                      source_address=("127.0.0.2", 0)) as sock:
            sock.sendall(command_bytes("WEIR.RESERVE", "path", "/global"))
            assert sock.recv(1) == b"*"
        assert not isinstance(reserve_many(redis, 1, "path", "/user/1", "user", "ann")[0], Error)


def test_what_a_store_that_is_away_admits_takes_no_place(tmp_path):
    """on_store_error: open charges nothing."""
    with RedisServer(tmp_path / "redis") as redis:
        rules = shared_rules(redis.url, {**DAILY, "on_store_error": "open"}, nodes=2, deadline="2s")
        with Weir(tmp_path, rules) as weir:
            reserve(weir, "192.0.2.1", 40)
            assert weir.metrics()["weir_reservations"] == 1
            redis.kill()
            token = reserve(weir, "192.0.2.1", 40)
            assert weir.metrics()["weir_reservations"] == 1
            assert settle(weir, token, cost=1)["limits"] == []


def grant(weir, *words, token="s3cret"):
    command = [weir_path(), "grant", "--admin", weir.admin_address, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30,
                          env={**os.environ, "WEIR_ADMIN_TOKEN": token})


def test_an_operator_tops_up_a_key_to_fresh_at_most_and_it_is_logged(weir):
    weir.check(ip="192.0.2.20", cost=70)
    done = grant(weir, "--limit", "tokens", "--key", "192.0.2.20", "--units", 30)
    assert (done.returncode, done.stdout) == (0, "tokens: 60 of 100 remain\n"), done.stderr
    assert used(weir, "192.0.2.20") == [40, 70]
    assert "limit=tokens" in weir.wait_event("granted")
    done = grant(weir, "--limit", "tokens", "--key", "192.0.2.20", "--units", 1000)
    assert done.stdout == "tokens: 100 of 100 remain\n"
    done = grant(weir, "--limit", "tokens", "--key", "192.0.2.20", "--units", 1)
    assert "there was nothing to give back: no state of this key is live" in done.stdout
    assert used(weir, "192.0.2.20") == [0, 70]


def test_a_grant_wants_the_token_and_a_limit_that_is_there(weir):
    weir.check(ip="192.0.2.21", cost=70)
    words = ["--limit", "tokens", "--key", "192.0.2.21", "--units", 1]
    assert grant(weir, *words, token="guess").returncode == 1
    assert "no limit" in grant(weir, "--limit", "nothing", *words[2:]).stderr
    assert grant(weir, *words[:4], "--units", 0).returncode == 2
    assert grant(weir, *words[:4]).returncode == 2
    assert used(weir, "192.0.2.21") == [70, 70]


def test_in_a_replay_outcomes_give_back_in_virtual_time(tmp_path):
    limit = {"name": "api", "key": ["client.ip"], "algorithm": "fixed_window", "rate": "10/h",
             "refund_on": ["5xx"], "refund_cap": "50%"}
    (tmp_path / "weir.yaml").write_text(rules_of(limit), encoding="utf-8")
    lines = [{"t": 3600, "ip": "192.0.2.1", "cost": 3, "status": 503, "latency_ms": 5000},
             {"t": 3604, "ip": "192.0.2.1", "cost": 0},                   # not yet
             {"t": 3605, "ip": "192.0.2.1", "cost": 3, "status": 500},    # 3 came back; cap 5
             {"t": 3606, "ip": "192.0.2.1", "cost": 2, "status": 500},
             {"t": 3607, "ip": "192.0.2.1", "cost": 2, "status": 200},
             {"t": 3608, "ip": "192.0.2.1", "cost": 0},
             {"t": 7200, "ip": "192.0.2.1", "cost": 0}]
    (tmp_path / "trace.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = subprocess.run([weir_path(), "replay", "--config", str(tmp_path / "weir.yaml"),
                           "--decisions", "-", str(tmp_path / "trace.jsonl")],
                          capture_output=True, text=True, timeout=30, check=True)
    remaining = [json.loads(line)["limits"][0]["remaining"] for line in done.stdout.splitlines()]
    assert remaining == [7, 7, 7, 5, 5, 5, 10]


def test_what_a_request_costs_is_reported(tmp_path):
    limit = {**DAILY, "cost": 2}
    with Weir(tmp_path, rules_of(limit, server={"headers": ["x-delta", "cost"]})) as weir:
        reply = weir.check(ip="192.0.2.1", cost=3)
        assert reply["x-ratelimit-cost"] == "6" and reply["x-ratelimit-remaining"] == "994"
        assert reply.json["limits"][0]["cost"] == 6
