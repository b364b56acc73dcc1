# SPDX-License-Identifier: Apache-2.0
"""Reservations among three real nodes over one Redis: made at one, settled at another, while the
first lives, has died, or gives it back itself; and tokens after Redis has lost its secret."""

import json
import random
import socket
import struct
import threading

import pytest

from daemon.http import Client, connect, request_bytes
from daemon.nodes import Nodes, off_by, shared_rules
from daemon.redis import Redis, command_bytes
from daemon.redis_server import Cluster, RedisServer
from daemon.stopped import stopped
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

# Windows that outlive the test, so that what is used is a sum.
TOKENS = {"name": "tokens", "key": ["user"], "algorithm": "token_bucket", "rate": "1000/300d",
          "refund_on": ["5xx"], "refund_cap": "10%", "debt": "50%"}
DAILY = {"name": "daily", "key": ["user"], "algorithm": "fixed_window", "rate": "10000/300d",
         "debt": "0%"}
LOG = {"name": "log", "key": ["user"], "algorithm": "sliding_log", "rate": "5000/300d"}
ALL = [TOKENS, DAILY, LOG]
CLOSED = {"on_store_error": "closed"}


@pytest.fixture(scope="module", name="nodes")
def fixture_nodes(tmp_path_factory, redis):
    """The clocks of two of them are wrong."""
    rules = shared_rules(redis.url, *ALL, store=CLOSED)
    with Nodes(tmp_path_factory.mktemp("nodes"), 3, rules, redis=True, workers=2,
               env=[{}, off_by(+5), off_by(-5)]) as nodes:
        yield nodes


def post(weir, path, **fields):
    with weir.client() as client:
        return client.post(path, fields)


def reserve(weir, user, cost, **fields):
    reply = post(weir, "/v1/reserve", attributes={"user": user}, cost=cost, **fields)
    assert reply.status == 200, reply.body
    return reply.json["reservation"]


def settle(weir, token, **truth):
    """A node that has only just started may not know the store's secret yet: an error."""
    reply = wait_until(lambda: answer_of(weir, token, truth), what="the store's secret")
    assert reply.status == 200, reply.body
    return reply.json


def answer_of(weir, token, truth):
    reply = post(weir, "/v1/settle", reservation=token, **truth)
    return reply if reply.status != 503 else None


def redis_address(node):
    line = next(line for line in node.text().splitlines() if "front=redis" in line)
    return line.rpartition("address=")[2].strip()


def used(nodes, user, node=0):
    _, result = nodes.ask(node, cost=0, dry_run=True, user=user)
    return [limit["limit"] - limit["remaining"] for limit in result.values()]


def test_a_token_is_settled_at_every_node_and_once(nodes):
    for i in range(3):
        user = f"everywhere{i}"
        token = reserve(nodes[i], user, 40)
        answer = settle(nodes[(i + 1) % 3], token, cost=15)
        assert answer["repeated"] is False
        assert [(limit["name"], limit["refunded"]) for limit in answer["limits"]] == \
            [("tokens", 25), ("daily", 25), ("log", 25)]
        for node in nodes.weirs:
            assert settle(node, token, cost=0)["repeated"] is True
        assert used(nodes, user) == [15, 15, 15]
        token = reserve(nodes[i], user, 40)
        answer = settle(nodes[(i + 2) % 3], token, status=503)
        assert [limit["refunded"] for limit in answer["limits"]] == [40]
        assert used(nodes, user) == [15, 55, 55]


@pytest.mark.parametrize("shared", [True, False], ids=["in Redis", "in a table"])
def test_a_cap_that_is_used_up_keeps_no_other_limit_from_giving_back(tmp_path, redis, shared):
    tight = {**DAILY, "name": "tight", "rate": "1000/300d", "refund_on": ["5xx"], "refund_cap": "1%"}
    wide = {**DAILY, "name": "wide", "refund_on": ["5xx"], "refund_cap": "50%"}
    rates = {**TOKENS, "name": "rates", "algorithm": "fixed_window", "refund_cap": "1%",
             "rate": ["100000/300d", "1000/30d"]}
    limits = [tight, wide, rates, LOG]
    rules = shared_rules(redis.url, *limits, store=CLOSED, nodes=1, redis={"prefix": "caps:"}) \
        if shared else rules_of(*limits)
    with Weir(tmp_path, rules) as weir:
        wait_until(lambda: weir.check(attributes={"user": "x"}).status == 200, what="the store")
        result = [settle(weir, reserve(weir, "caps", 6), status=500) for _ in range(3)]
        names = [[limit["name"] for limit in answer["limits"]] for answer in result]
        # 10 of tight; of the rates 1000 and 10: only all of them or none
        assert names == [["tight", "wide", "rates"], ["wide"], ["wide"]]
        assert [answer["capped"] for answer in result] == [False, True, True]
        left = weir.check(attributes={"user": "caps"}, cost=0, dry_run=True).json["limits"]
        assert [limit["limit"] - limit["remaining"] for limit in left] == [12, 0, 12, 18]
        for token in [reserve(weir, "caps", 6)]:
            assert settle(weir, token, status=500)["repeated"] is False
            assert settle(weir, token, status=500)["repeated"] is True


@pytest.mark.parametrize("life, record", [(60, 600), (600, 1800), (3600, 7200)])
def test_a_record_lives_as_long_as_its_reservation_may_be_settled_or_released(nodes, redis, life, record):
    token = reserve(nodes[0], f"life{life}", 2, life=life)
    before = set(redis.keys("weir:*=r*"))
    assert settle(nodes[1], token, cost=1)["repeated"] is False
    (made,) = set(redis.keys("weir:*=r*")) - before
    assert record - 60 < int(redis.ask("TTL", made)) <= record + 1


def test_its_maker_gives_back_at_the_end_of_its_life_what_nobody_has_settled(nodes):
    """Settled at another node before that, it is not given back a second time."""
    here, there = reserve(nodes[0], "ends", 50, life=1), reserve(nodes[0], "ends", 70, life=1)
    assert settle(nodes[1], there, cost=30)["repeated"] is False
    wait_until(lambda: used(nodes, "ends") == [30, 30, 30], what="the release of the other")
    for node in nodes.weirs:
        assert post(node, "/v1/settle", reservation=here, cost=1).status == 409
        assert post(node, "/v1/settle", reservation=there, cost=1).status == 409
    assert used(nodes, "ends") == [30, 30, 30]


def test_settlements_that_race_with_the_end_of_their_life_are_one_of_both(nodes):
    tokens = [reserve(nodes[i % 3], "race", 3, life=1) for i in range(60)]
    result, gate = {}, threading.Barrier(2)

    def work(shift):
        """All three nodes, again and again, until it is done or too late."""
        with Client(nodes[(shift) % 3].http_address) as one, \
                Client(nodes[(shift + 1) % 3].http_address) as two:
            gate.wait()
            for token in tokens[shift::2]:
                for client in (one, two):
                    reply = client.post("/v1/settle", {"reservation": token, "cost": 1})
                    assert reply.status in (200, 409), reply.body
                    if reply.status == 200 and not reply.json["repeated"]:
                        result[token] = result.get(token, 0) + 1

    # A third is left to end by itself, and the last ones are settled as their lives end.
    wait_until(lambda: used(nodes, "race")[0] < 180, what="the first release")
    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: used(nodes, "race", 1) == [len(result)] * 3, what="all other releases")
    assert set(result.values()) <= {1}


def reset_while_redis_thinks(redis, nodes, front, user, count):
    """Reservations whose connections are reset before Redis has answered. Returns whether it was
    asked all of them, and none is of unknown outcome: Redis was not silent for too long."""
    calls, unknown = nodes.metric("weir_store_calls_total"), nodes.metric("weir_store_unknown_total")
    decided, sockets = redis.commands("evalsha"), []
    address = nodes[0].http_address if front == "http" else redis_address(nodes[0])
    command = (command_bytes("WEIR.RESERVE", "user", user, "COST", 5) if front == "redis" else
               request_bytes("POST", "/v1/reserve", {"Content-Type": "application/json"}, json.dumps(
                   {"attributes": {"user": user}, "cost": 5}).encode()))
    with stopped(redis.process):
        for _ in range(count):
            sockets.append(connect(address))
            sockets[-1].sendall(command)
        wait_until(lambda: nodes.metric("weir_store_calls_total") >= calls + count, what="all calls")
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        wait_until(lambda: nodes.metric("weir_connections") <= 1, what="the resets")
    nodes.wait_up()
    return redis.commands("evalsha") >= decided + count and \
        nodes.metric("weir_store_unknown_total") == unknown


@pytest.mark.parametrize("front", ["http", "redis"])
def test_what_is_reserved_for_a_connection_that_is_reset_is_given_back(tmp_path, front):
    with RedisServer(tmp_path / "redis") as redis, \
            Nodes(tmp_path, 1, shared_rules(redis.url, *ALL, store={**CLOSED, "deadline": "10s"}),
                  redis=True) as nodes:
        assert used(nodes, "reset") == [0, 0, 0]
        user = next(user for user in (f"reset{i}" for i in range(100))
                    if reset_while_redis_thinks(redis, nodes, front, user, 20))
        wait_until(lambda: used(nodes, user) == [0, 0, 0], what="the release of all")


def test_what_ends_while_redis_is_away_is_given_back_when_it_has_returned(tmp_path):
    """Nothing of a release was sent then, so that it can be tried again. A clock beside it: a node with
    a table of its own, whose reservation ends after those."""
    (tmp_path / "clock").mkdir()
    with RedisServer(tmp_path / "redis", {"appendonly": "yes"}) as redis, \
            Weir(tmp_path / "clock", rules_of(DAILY)) as clock, \
            Nodes(tmp_path, 1, shared_rules(redis.url, *ALL, store=CLOSED)) as nodes:
        for _ in range(20):
            reserve(nodes[0], "away", 5, life=2)
        assert used(nodes, "away") == [100, 100, 100]
        redis.kill()
        wait_until(lambda: nodes[0].metrics()["weir_store_up"] == 0, what="the end of Redis")
        reserve(clock, "clock", 1, life=4)
        wait_until(lambda: clock.check(attributes={"user": "clock"}, cost=0, dry_run=True)
                   .json["limits"][0]["remaining"] == 10000, what="a later end")
        redis.start()
        nodes.wait_up()
        wait_until(lambda: used(nodes, "away") == [0, 0, 0], what="the releases")


def test_over_the_redis_protocol_too(nodes):
    def ask(node, *words):
        with Redis(redis_address(node)) as client:
            reply = client.ask(*words)
            return dict(zip(reply[::2], reply[1::2]))

    first = ask(nodes[0], "WEIR.RESERVE", "user", "resp", "COST", 40)
    assert ask(nodes[1], "WEIR.SETTLE", first["reservation"], "COST", 15)["repeated"] == 0
    assert ask(nodes[2], "WEIR.SETTLE", first["reservation"], "COST", 15)["repeated"] == 1
    assert settle(nodes[2], first["reservation"], cost=0)["repeated"] is True
    assert used(nodes, "resp") == [15, 15, 15]


def test_a_node_that_dies_leaves_its_reservations_to_the_others(tmp_path, redis):
    """Those that nobody settles stay charged: only their maker gives back by itself."""
    rules = shared_rules(redis.url, *ALL, store=CLOSED, redis={"prefix": "dies:"})
    with Nodes(tmp_path, 2, rules) as nodes:
        tokens = [reserve(nodes[0], "dies", 10) for _ in range(3)]
        lost = reserve(nodes[0], "lost", 10, life=1)
        nodes[0].kill()
        assert settle(nodes[1], tokens[0], cost=4)["repeated"] is False
        assert used(nodes, "dies", 1) == [24, 24, 24]
        reserve(nodes[1], "later", 10, life=1)
        wait_until(lambda: used(nodes, "later", 1) == [0, 0, 0], what="the end of a later one")
        assert post(nodes[1], "/v1/settle", reservation=lost, cost=0).status == 409
        assert used(nodes, "lost", 1) == [10, 10, 10]
        nodes[0].start()  # it has no state file, and still knows them
        nodes.wait_up()
        assert settle(nodes[0], tokens[0], cost=0)["repeated"] is True


def test_in_random_orders_nothing_is_gained_and_nothing_leaks(nodes):
    choose, expected, open_tokens, done = random.Random(11), 0, [], []
    for _ in range(150):
        if choose.random() < 0.6 or not open_tokens:
            cost = choose.randint(1, 10)
            open_tokens.append((reserve(nodes[choose.randrange(3)], "random", cost), cost))
            expected += cost
        else:
            token, cost = open_tokens.pop(choose.randrange(len(open_tokens)))
            truth = choose.randint(0, 12)
            assert settle(nodes[choose.randrange(3)], token, cost=truth)["repeated"] is False
            expected += truth - cost
            done.append(token)
        if done and choose.random() < 0.3:
            node = nodes[choose.randrange(3)]
            assert settle(node, choose.choice(done), cost=0)["repeated"] is True
    assert used(nodes, "random") == [expected] * 3


def test_true_costs_above_the_estimate_stop_at_one_floor_of_debt_together(nodes):
    """Whichever nodes settle, and at one time: 1,500 tokens at most, of a day 10,000, of the log 10,000."""
    tokens = [reserve(nodes[i % 3], "debts", 10) for i in range(12)]
    result, gate = [], threading.Barrier(4)

    def work(shift):
        gate.wait()
        result.extend(settle(nodes[(shift + i) % 3], token, cost=1010)
                    for i, token in enumerate(tokens[shift::4]))

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    charged = [sum(answer["limits"][i]["charged"] for answer in result) for i in range(3)]
    dropped = [sum(answer["limits"][i]["dropped"] for answer in result) for i in range(3)]
    assert charged == [1500 - 120, 10000 - 120, 10000 - 120]
    assert [sum(pair) for pair in zip(charged, dropped)] == [12000] * 3


# --- The secret of the store ------------------------------------------------------------------------


def test_the_secret_is_made_once_and_comes_back_when_it_is_lost(tmp_path, redis):
    rules = shared_rules(redis.url, *ALL, store=CLOSED, redis={"prefix": "lost:"})
    with Nodes(tmp_path, 2, rules, workers=2) as nodes:
        secret = redis.ask("GET", "lost:secret")
        assert len(secret) == 32 and redis.ask("TTL", "lost:secret") == -1
        token = reserve(nodes[0], "a", 10)
        redis.ask("DEL", "lost:secret")
        wait_until(lambda: redis.ask("GET", "lost:secret") == secret, what="its return")
        assert settle(nodes[1], token, cost=5)["repeated"] is False


def test_another_secret_is_taken_and_what_was_signed_with_the_old_is_still_good(tmp_path, redis):
    rules = shared_rules(redis.url, *ALL, store=CLOSED, redis={"prefix": "turn:"})
    with Nodes(tmp_path, 2, rules) as nodes:
        token = reserve(nodes[0], "a", 10)
        redis.ask("SET", "turn:secret", "0123456789abcdef0123456789abcdef")
        for node in nodes.weirs:
            node.wait_event("store_secret")
        assert settle(nodes[1], token, cost=5)["repeated"] is False
        assert settle(nodes[1], reserve(nodes[0], "a", 10), cost=5)["repeated"] is False
        forged = token[:-4] + ("AAAA" if token[-4:] != "AAAA" else "BBBB")
        assert post(nodes[1], "/v1/settle", reservation=forged, cost=0).status == 400


def test_a_secret_that_is_none_is_reported_and_tokens_are_good_at_their_maker(tmp_path, redis):
    redis.ask("SET", "short:secret", "hello")
    rules = shared_rules(redis.url, *ALL, store=CLOSED, redis={"prefix": "short:"})
    with Nodes(tmp_path, 2, rules) as nodes:
        assert "short:secret" in nodes[0].wait_event("store_error")
        token = reserve(nodes[0], "a", 10)
        assert post(nodes[1], "/v1/settle", reservation=token, cost=5).status == 503
        assert settle(nodes[0], token, cost=5)["repeated"] is False
        assert redis.ask("GET", "short:secret") == "hello"


def test_in_a_cluster_a_token_is_good_at_every_node(tmp_path):
    """Limits in several slots, whose servers each have a time of their own."""
    by_org = {**LOG, "name": "org", "key": ["org"]}
    with Cluster(tmp_path / "cluster") as cluster:
        with Nodes(tmp_path, 2, shared_rules(cluster.url, *ALL, by_org, store=CLOSED)) as nodes:
            # Servers answer apart: what is reserved before the secret is there is good at its maker.
            wait_until(lambda: post(nodes[1], "/v1/settle", reservation=reserve(nodes[0], "first", 1),
                                    cost=1).status == 200, what="the secret")
            for i in range(6):
                user = {"user": f"u{i}", "org": f"o{i}"}
                token = post(nodes[0], "/v1/reserve", attributes=user, cost=20).json["reservation"]
                answer = settle(nodes[1], token, cost=5)
                assert [limit["refunded"] for limit in answer["limits"]] == [15] * 4
                assert settle(nodes[0], token, cost=0)["repeated"] is True
                _, result = nodes.ask(0, cost=0, dry_run=True, **user)
                assert [limit["limit"] - limit["remaining"] for limit in result.values()] == [5] * 4


def test_what_a_server_of_a_cluster_has_not_charged_is_charged_by_a_repeat(tmp_path):
    """The charge of one server is lost with its record; the repeat of another truth charges nothing."""
    by_org = {**DAILY, "name": "org", "key": ["org"]}
    with Cluster(tmp_path / "cluster") as cluster:
        with Nodes(tmp_path, 2, shared_rules(cluster.url, DAILY, by_org, store=CLOSED)) as nodes:
            wait_until(lambda: post(nodes[1], "/v1/settle", reservation=reserve(nodes[0], "first", 1),
                                    cost=1).status == 200, what="the secret")
            for i in range(4):
                user = {"user": f"u{i}", "org": f"o{i}"}
                before = records(cluster)
                token = post(nodes[0], "/v1/reserve", attributes=user, cost=20).json["reservation"]
                assert [limit["charged"] for limit in settle(nodes[1], token, cost=50)["limits"]] == [30, 30]
                made = records(cluster) - before
                truth, = (key for key in made if "=s" in key)
                later, = (key for key in made if "=r" in key and key[:key.index("=")] not in truth)
                cluster.master_of(later)[0].ask("DEL", later)
                assert settle(nodes[0], token, cost=70)["repeated"] is True
                assert used_by(nodes, user) == [50, 50]
                assert settle(nodes[0], token, cost=50)["repeated"] is True
                assert sorted(used_by(nodes, user)) == [50, 80]  # without a record: charged
                assert settle(nodes[1], token, cost=50)["repeated"] is True
                assert sorted(used_by(nodes, user)) == [50, 80]  # once


def records(cluster):
    """The records of settlements on all masters."""
    masters = [cluster.server_of(port) for _, port, flags, _ in cluster.nodes() if "master" in flags]
    return {key for server in masters for key in server.keys("weir:*=[rs]*")}


def used_by(nodes, attributes):
    _, result = nodes.ask(0, cost=0, dry_run=True, **attributes)
    return [limit["limit"] - limit["remaining"] for limit in result.values()]
