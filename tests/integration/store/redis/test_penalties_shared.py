# SPDX-License-Identifier: Apache-2.0
"""Penalties of nodes that share Redis: strikes count together, and each move is made once."""

import json
import os
import subprocess
import threading

import pytest

from daemon.nodes import shared_rules
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import weir_path

LOGIN = {"name": "login", "match": {"path": "/login"}, "key": ["user"], "rate": "2/d",
         "algorithm": "fixed_window"}
BRUTE = {"name": "brute-force", "key": ["user"], "strikes": "2/h",
         "ladder": ["warn 1h", "throttle 1h", "suspend 10min"]}


@pytest.fixture(name="redis")
def fixture_redis(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        yield server


class Node(Weir):
    def __init__(self, home, url, *penalties, workers=1, **standing):
        home.mkdir(parents=True, exist_ok=True)
        # A denial from memory is no strike.
        rules = shared_rules(url, LOGIN, nodes=2, redis={"remember": "off"},
                             standing={"by": ["user", "client.ip/64"]} | standing,
                             penalties=list(penalties or (BRUTE,)),
                             server={"admin": {"address": f"unix:{home}/admin"}})
        super().__init__(home, rules, "--workers", str(workers), admin=None)

    def login(self, user):
        return self.check(path="/login", attributes={"user": user}).json

    def shown(self, user):
        with self.admin() as client:
            return json.loads(client.request("GET", f"/v1/standing?kind=user&value={user}").body)

    def level(self, user):
        now = self.shown(user)["in_force"]
        return now and now["level"]

    def run(self, *arguments):
        subprocess.run([weir_path(), *arguments, f"--admin=unix:{self.folder}/admin"], check=True,
                       capture_output=True, timeout=60, env=os.environ | {"USER": "ada"})


@pytest.fixture(name="pair")
def fixture_pair(tmp_path, redis):
    with Node(tmp_path / "a", redis.url) as a, Node(tmp_path / "b", redis.url) as b:
        yield a, b


def moves(*nodes):
    return sum(node.text().count("event=penalty_moved") for node in nodes)


def strikes(*nodes):
    return sum(node.metrics()['weir_penalty_strikes_total{penalty="brute-force"}'] for node in nodes)


def climb(redis, a, b, user, count, before=0):
    """Strikes on both nodes in turn, until there are so many moves."""
    while moves(a, b) < before + count:
        at = moves(a, b)
        for node in (a, b, a):
            while node.login(user)["allowed"]:
                pass
        wait_until(lambda: moves(a, b) > at, what="a move")
        wait_until(lambda: not redis.keys(f"*~strikes*{user}*"), what="the end of the count")


def test_strikes_on_two_nodes_count_together_and_the_move_counts_on_both(pair):
    a, b = pair
    assert a.login("eve")["allowed"] and b.login("eve")["allowed"]
    for node in (a, b):
        assert node.login("eve")["denied_by"] == "login"
    assert moves(a, b) == 0
    assert b.login("eve")["denied_by"] == "login"
    wait_until(lambda: moves(a, b) == 1, what="a move")
    for node in pair:
        wait_until(lambda: node.level("eve") == "warned", what="the move on a node")
        result = node.shown("eve")
        assert result["penalties"][0]["step"] == 1
        assert [move["level"] for move in result["moves"]] == ["warned"]
        assert result["moves"][0]["by"] == "penalty brute-force"


def test_settlements_on_any_node_are_strikes(tmp_path, redis):
    """Of a reservation that another node has made, and may have forgotten."""
    penalty = BRUTE | {"outcomes": [401]}
    with Node(tmp_path / "a", redis.url, penalty) as a, Node(tmp_path / "b", redis.url, penalty) as b:
        def post(node, target, **body):
            with node.client() as client:
                return client.post(target, body).json

        def settle(node, token):
            """503 says to settle again: a node that has just started does not know the secret."""
            answers = []

            def answered():
                answers.append(post(node, "/v1/settle", reservation=token, status=401))
                return "repeated" in answers[-1]

            wait_until(answered, what="a settlement")
            return answers[-1]

        for count in range(3):
            token = post(a, "/v1/reserve", path="/other", attributes={"user": "eve"}, cost=1)["reservation"]
            assert not settle(b, token)["repeated"]
            assert settle(a, token)["repeated"]
            wait_until(lambda: strikes(a, b) == count + 1, what="a strike")
        for node in (a, b):
            wait_until(lambda: node.level("eve") == "warned", what="the move on a node")
        assert moves(a, b) == 1 and strikes(a, b) == 3


def test_a_suspension_is_in_force_on_both_and_outlives_both(pair, redis):
    a, b = pair
    climb(redis, a, b, "eve", 3)
    for node in pair:
        wait_until(lambda: node.login("eve")["denied_by"] == "standing", what="a suspension")
    for node in pair:
        node.kill()
    for node in pair:
        node.start()
        assert node.login("eve")["denied_by"] == "standing"
        assert node.shown("eve")["penalties"][0]["step"] == 3
    assert a.login("bob")["allowed"]


def test_explain_says_that_the_steps_are_in_redis(pair):
    done = subprocess.run([weir_path(), "explain", "--config", str(pair[0].config), "--path", "/login",
                           "-a", "user=eve"], capture_output=True, text=True, timeout=60, check=True)
    assert "    value  user=eve\n    step   is in Redis: ask a server, weir standing show\n" in done.stdout


def test_an_operator_forgives_on_one_node_what_both_have_counted(pair, redis):
    a, b = pair
    climb(redis, a, b, "eve", 3)
    wait_until(lambda: a.level("eve") == "suspended", what="a suspension")
    a.run("unban", "user=eve")
    wait_until(lambda: b.level("eve") is None, what="the other node")
    assert b.shown("eve")["penalties"] == []
    climb(redis, a, b, "eve", 1, before=3)
    wait_until(lambda: b.level("eve") == "warned", what="the first step")


def test_many_moves_at_once_take_each_step_once(tmp_path, redis):
    penalty = BRUTE | {"strikes": "1/h", "ladder": ["warn 1h"] * 15 + ["throttle 1h"]}
    with Node(tmp_path / "a", redis.url, penalty, workers=2) as a, \
            Node(tmp_path / "b", redis.url, penalty, workers=2) as b:

        def steps():
            lines = [line for node in (a, b) for line in node.text().splitlines()
                     if "event=penalty_moved" in line]
            return sorted(int(line.split(" step=")[1].split()[0]) for line in lines)

        def struck_out(node):
            for _ in range(20):
                node.login("eve")
            return len(steps()) >= 16

        def strike(node):
            wait_until(lambda: struck_out(node), what="moves")

        threads = [threading.Thread(target=strike, args=(node,)) for node in (a, b) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert steps()[:16] == list(range(1, 17))


def test_a_redis_that_is_away_loses_a_move_and_the_limit_still_holds(pair, redis):
    a, b = pair
    climb(redis, a, b, "eve", 1)
    redis.kill()
    for _ in range(5):
        a.login("eve")
    assert moves(a, b) == 1


def strike_out(node, user):
    """Three strikes: one step."""
    while node.login(user)["allowed"]:
        pass
    for _ in range(2):
        assert node.login(user)["denied_by"] == "login"


def test_a_penalty_that_is_one_too_many_takes_the_place_of_the_one_that_ends_first(tmp_path, redis):
    entries, ends = "weir:{standing}:entries", "weir:{standing}:ends:p"
    with Node(tmp_path / "a", redis.url, entries=16) as a, Node(tmp_path / "b", redis.url, entries=16) as b:
        a.run("ban", "user=mallory", "1h", "--yes")
        for i in range(8):  # half of the entries: penalties fill no more
            strike_out(a, f"u{i}")
            wait_until(lambda: b.level(f"u{i}") == "warned", what="a warning")
        strike_out(b, "u8")
        for node in (a, b):
            wait_until(lambda: node.level("u8") == "warned", what="one more")
            wait_until(lambda: node.level("u0") is None, what="the end of the first")
            assert [node.level(f"u{i}") for i in range(1, 8)] == ["warned"] * 7
            assert node.level("mallory") == "suspended"
        assert (redis.ask("HLEN", entries), redis.ask("ZCARD", ends)) == (9, 8)
        assert a.shown("u0")["penalties"][0]["step"] == 1  # and its next step is the second


def test_a_step_whose_entry_has_no_room_is_not_reached(tmp_path, redis):
    with Node(tmp_path / "a", redis.url, entries=16) as a:
        for i in range(16):
            a.run("ban", f"user=o{i}", "1h", "--yes")
        strike_out(a, "eve")
        wait_until(lambda: a.metrics()['weir_penalty_deferred_total{cause="store"}'] == 1, what="the delay")
        assert a.shown("eve")["penalties"] == [] and moves(a) == 0
        a.run("unban", "user=o0")
        wait_until(lambda: a.level("eve") == "warned", what="the first step")
        assert a.shown("eve")["penalties"][0]["step"] == 1
        assert a.metrics()['weir_penalty_lost_total{cause="store"}'] == 0
