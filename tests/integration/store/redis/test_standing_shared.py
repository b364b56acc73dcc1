# SPDX-License-Identifier: Apache-2.0
"""Standing that nodes share in Redis: changes, restarts, gaps, and a Redis that is away."""

import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest

from daemon.nodes import shared_rules
from daemon.redis import Error, Redis
from daemon.redis_server import Cluster, RedisServer, SentinelGroup
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import weir_path

LIMIT = {"name": "all", "key": ["client.ip"], "rate": "100000/s"}
EVE, BOB = "192.0.2.7", "198.51.100.9"
CHANGES = "weir:{standing}:changes"


@pytest.fixture(name="redis")
def fixture_redis(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        yield server


class Node(Weir):
    """A weir whose admin listener is a Unix socket, with a part of the API."""

    def __init__(self, home, url, file=True, more=None, **standing):
        home.mkdir(parents=True, exist_ok=True)
        parts = {"by": ["client.ip/64", "user", "header.x-api-key"], **standing}
        if file:
            parts["file"] = str(home / "standing.db")
        rules = json.loads(shared_rules(url, LIMIT, nodes=2, standing=parts,
                                        redis={"remember": "off"},
                                        server={"admin": {"address": f"unix:{home}/admin"}}))
        super().__init__(home, json.dumps(rules | (more or {})), "--workers", "1", admin=None)

    def run(self, *arguments, ok=True):
        done = subprocess.run([weir_path(), *arguments, f"--admin=unix:{self.folder}/admin"],
                              capture_output=True, text=True, timeout=60, check=False,
                              env=os.environ | {"USER": "ada", "SUDO_USER": ""})
        assert (done.returncode == 0) == ok, done.stdout + done.stderr
        return done.stdout if ok else done.stderr

    def call(self, method, path, body=None):
        with self.admin() as client:
            reply = client.request(method, path,
                                   body=None if body is None else json.dumps(body).encode())
            return reply.status, json.loads(reply.body)

    def put(self, kind, value, level, **more):
        return self.call("PUT", "/v1/standing",
                         {"kind": kind, "value": value, "level": level, **more})

    def level(self, kind, value):
        status, answer = self.call("GET", f"/v1/standing?kind={kind}&value={value}")
        assert status == 200, answer
        return answer["in_force"] and answer["in_force"]["level"]

    def level_now(self, **asked):
        """The level that refuses a request, or None; also where Redis is away."""
        answer = self.check(**asked).json
        return None if answer["allowed"] else answer["standing"]["level"]


@pytest.fixture(name="pair")
def fixture_pair(tmp_path, redis):
    with Node(tmp_path / "a", redis.url) as a, Node(tmp_path / "b", redis.url) as b:
        yield a, b


def test_a_change_counts_on_all_nodes(pair):
    a, b = pair
    assert "suspended" in a.run("ban", EVE, "10m", "--reason", "too many")
    assert a.level_now(ip=EVE) == "suspended"
    wait_until(lambda: b.level_now(ip=EVE) == "suspended", what="the other node")
    assert b.check(ip=EVE).json["standing"]["reason"] == "too many"
    assert "by=ada" in b.wait_event("standing_set")
    assert EVE in b.run("standing", "list") and "too many" in b.run("standing", "show", EVE)
    b.run("unban", EVE)
    assert b.level_now(ip=EVE) is None
    wait_until(lambda: a.level_now(ip=EVE) is None, what="the first node")
    heads, *rows = (line.split() for line in a.run("standing", "history", EVE).splitlines())
    assert [dict(zip(heads, row))["IS"] for row in rows] == ["-", "suspended"]


def test_the_api_says_the_same_as_with_a_file(pair):
    a, b = pair
    assert a.put("user", "ada", "warned", for_ms=600000, reason="x", by="eve")[1]["was"] is None
    status, answer = a.put("user", "ada", "throttled")
    assert status == 200 and answer["was"] == "warned"
    assert answer["in_force"]["level"] == "throttled" and answer["in_force"]["until_ms"] is None
    for name in ("zoe", "ada lovelace", "bob"):
        assert a.put("user", name, "challenged")[0] == 200
    users = [entry["value"] for entry in b.call("GET", "/v1/standing?kind=user")[1]["entries"]]
    assert users == ["ada", "ada lovelace", "bob", "zoe"]
    page = b.call("GET", "/v1/standing?kind=user&skip=1&count=2")[1]["entries"]
    assert [entry["value"] for entry in page] == ["ada lovelace", "bob"]
    assert [entry["level"] for entry in
            b.call("GET", "/v1/standing?level=throttled")[1]["entries"]] == ["throttled"]
    changes = b.call("GET", "/v1/standing/history?kind=user&value=ada")[1]["changes"]
    assert [(change["was"], change["level"], change["by"]) for change in changes] == [
        ("warned", "throttled", "operator"), (None, "warned", "eve")]
    assert b.call("GET", "/v1/standing/history?count=1&skip=1")[1]["changes"][0]["value"] == \
        "ada lovelace"
    assert a.call("DELETE", "/v1/standing?kind=user&value=ada")[1]["was"] == "throttled"
    status, answer = a.call("DELETE", "/v1/standing?kind=user&value=ada")
    assert status == 404 and "no standing of its own" in answer["detail"]
    status, answer = a.call("GET", "/v1/standing?skip=100000")
    assert status == 503 and "20000" in answer["detail"]


def test_an_api_key_is_in_redis_as_its_digest_and_counts_everywhere(pair, redis):
    a, b = pair
    secret = "s3cret-key-of-mallory"
    assert a.put("header.x-api-key", secret, "suspended", for_ms=600000)[0] == 200
    wait_until(lambda: b.level_now(ip=BOB, headers={"x-api-key": secret}) == "suspended",
               what="the other node")
    for name, *of in (("HGETALL", "entries"), ("XRANGE", "changes", "-", "+"), ("HGETALL", "meta")):
        assert secret not in str(redis.ask(name, "weir:{standing}:" + of[0], *of[1:]))
    shown = b.call("GET", "/v1/standing")[1]["entries"][0]["value"]
    assert shown.startswith("sha256:")
    assert b.call("DELETE", f"/v1/standing?kind=header.x-api-key&value={shown}")[0] == 200
    wait_until(lambda: a.level_now(ip=BOB, headers={"x-api-key": secret}) is None,
               what="the first node")


def test_what_was_answered_survives_kill_9_of_the_node(pair):
    a, b = pair
    a.run("ban", EVE)
    a.kill()
    wait_until(lambda: b.level_now(ip=EVE) == "revoked", what="the other node")
    b.run("ban", BOB)
    b.run("unban", EVE)
    a.start()
    assert a.level_now(ip=BOB) == "revoked" and a.level_now(ip=EVE) is None


@pytest.mark.parametrize("file", [True, False])
def test_a_redis_that_is_away_stops_changes_and_no_standing(tmp_path, redis, file):
    with Node(tmp_path / "a", redis.url, file=file) as a:
        a.run("ban", EVE)
        redis.kill()
        a.wait_event("standing_down")
        assert a.level_now(ip=EVE) == "revoked"
        status, answer = a.put("user", "bob", "warned")
        assert status == 503 and "Redis" in answer["detail"], answer
        assert "Redis" in a.run("ban", BOB, ok=False)
        assert a.level_now(ip=BOB) is None
        assert a.call("GET", "/v1/standing")[0] == 503
        assert a.metrics()["weir_standing_shared_up"] == 0
        with a.admin() as admin:
            assert "Redis is away: standing is its last known state" in admin.request("GET", "/readyz").body.decode()
        redis.start()  # empty: it keeps nothing
        a.wait_event("standing_up")
        wait_until(lambda: a.level_now(ip=EVE) is None, what="what Redis has now")
        a.run("ban", BOB)
        assert a.level_now(ip=BOB) == "revoked"


def test_a_node_that_starts_without_redis_knows_what_it_knew(tmp_path, redis):
    with Node(tmp_path / "a", redis.url) as a:
        a.run("ban", EVE)
        a.stop()
        redis.kill()
        a.start()
        a.wait_event("standing_down")
        assert a.level_now(ip=EVE) == "revoked"
        redis.start()
        a.wait_event("standing_up")
        wait_until(lambda: a.level_now(ip=EVE) is None, what="what Redis has now")


def test_a_node_misses_no_change_of_a_trimmed_stream(pair, redis):
    """The node is stopped while the stream loses what it has not read."""
    a, b = pair
    b.run("ban", EVE)
    os.kill(a.process.pid, 19)
    b.run("unban", EVE)
    for i in range(5):
        assert b.put("client.ip", f"203.0.113.{i}", "revoked")[0] == 200
    redis.ask("XTRIM", CHANGES, "MAXLEN", 2)
    os.kill(a.process.pid, 18)
    wait_until(lambda: a.level_now(ip="203.0.113.0") == "revoked", what="the gap to be found")
    wait_until(lambda: a.level_now(ip=EVE) is None, what="what went meanwhile")
    assert a.metrics()["weir_standing_shared_gaps_total"] >= 1


def test_entries_of_operators_are_bounded(tmp_path, redis):
    with Node(tmp_path / "a", redis.url, entries=16) as a:
        for i in range(16):
            assert a.put("user", f"u{i}", "warned")[0] == 200
        status, answer = a.put("user", "one more", "warned")
        assert status == 503 and "full" in answer["detail"]
        assert a.put("user", "u3", "throttled")[0] == 200  # which is there


def test_entries_that_have_ended_leave_redis(tmp_path, redis):
    with Node(tmp_path / "a", redis.url) as a:
        assert a.put("user", "ada", "warned", for_ms=50)[0] == 200
        wait_until(lambda: a.level("user", "ada") is None, what="its end")
        # As a minute later: Redis' clock cannot be moved.
        redis.ask("ZADD", "weir:{standing}:ends:o", 1, "o user ada")
        assert a.put("user", "bob", "warned")[0] == 200
        assert redis.ask("HKEYS", "weir:{standing}:entries") == ["o user bob"]


def test_a_ladder_moves_once_over_all_nodes(tmp_path, redis):
    login = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip/64"], "rate": "2/d",
             "algorithm": "fixed_window"}
    brute = {"name": "brute-force", "key": ["client.ip/64"], "strikes": "2/h", "for": ["login"],
             "ladder": ["warn 1h", "suspend 10min"]}
    more = {"limits": [LIMIT, login], "penalties": [brute]}
    with Node(tmp_path / "a", redis.url, more=more) as a, \
            Node(tmp_path / "b", redis.url, more=more) as b:
        def strike(node):
            while node.check(ip=EVE, path="/login").json["allowed"]:
                pass

        for _ in range(3):
            strike(a)
        assert "step=1" in a.wait_event("penalty_moved")
        wait_until(lambda: b.level("client.ip", EVE) == "warned", what="the other node")
        for _ in range(3):
            strike(b)
        assert "step=2" in b.wait_event("penalty_moved")  # and not 1: the step is in Redis
        wait_until(lambda: a.level_now(ip=EVE) == "suspended", what="the first node")
        a.run("unban", EVE)
        assert redis.ask("HLEN", "weir:{standing}:ladders") == 0
        wait_until(lambda: b.level_now(ip=EVE) is None, what="the other node")


def test_the_rights_that_the_docs_give_suffice(tmp_path, redis):
    docs = Path(__file__).parents[4] / "docs"
    for page in ("distributed.md", "standing.md"):
        (line,) = [line for line in (docs / page).read_text().splitlines()
                   if line.startswith("ACL SETUSER weir ")]
        redis.ask(*line.split())
    with Node(tmp_path / "a", redis.url.replace("//", "//weir:password@")) as a:
        a.run("ban", EVE, "1h")
        assert a.level_now(ip=EVE) == "suspended"
        a.run("unban", EVE)
        assert a.run("standing", "list") == "" and EVE in a.run("standing", "history")
        assert a.metrics()["weir_standing_shared_up"] == 1


def test_without_rights_the_log_has_what_redis_says(tmp_path, redis):
    redis.ask("ACL", "SETUSER", "weir", "on", ">password", "~weir:*", "+@all", "-xrevrange")
    with Redis(redis.address) as client:  # its words differ by version
        assert client.ask("AUTH", "weir", "password") == "OK"
        refusal = client.ask("EVAL", "redis.call('XREVRANGE', KEYS[1], '+', '-')", 1, "weir:x")
    assert isinstance(refusal, Error)
    with Node(tmp_path / "a", redis.url.replace("//", "//weir:password@")) as a:
        assert refusal.partition(" script: ")[0] in a.wait_event("standing_down")


def test_a_cluster_and_a_failover(tmp_path):
    with Cluster(tmp_path / "redis") as cluster:
        with Node(tmp_path / "a", cluster.url) as a, Node(tmp_path / "b", cluster.url) as b:
            a.run("ban", EVE)
            wait_until(lambda: b.level_now(ip=EVE) == "revoked", what="the other node")
            master, _ = cluster.master_of(CHANGES)
            master.kill()
            wait_until(lambda: a.put("client.ip", BOB, "revoked")[0] == 200,
                       what="a change after the fail-over")
            wait_until(lambda: b.level_now(ip=BOB) == "revoked", what="the other node")
            assert b.level_now(ip=EVE) == "revoked"


def test_sentinels_and_a_failover(tmp_path):
    with SentinelGroup(tmp_path / "redis") as group:
        with Node(tmp_path / "a", group.url) as a, Node(tmp_path / "b", group.url) as b:
            a.run("ban", EVE)
            wait_until(lambda: b.level_now(ip=EVE) == "revoked", what="the other node")
            group.servers[0].kill()
            wait_until(lambda: a.put("client.ip", BOB, "revoked")[0] == 200,
                       what="a change after the fail-over")
            wait_until(lambda: b.level_now(ip=BOB) == "revoked", what="the other node")


class Model:
    """What operators have set, and until when."""

    def __init__(self):
        self.entries = {}

    def expect(self, node, now):
        """Whether a node lists what the model holds; ends that are near do not count."""
        listed = {(entry["kind"], entry["value"]): entry["level"]
                  for entry in node.call("GET", "/v1/standing?count=1000")[1]["entries"]}
        sure = {key: level for key, (level, until) in self.entries.items() if until > now + 60}
        gone = {key for key, (_, until) in self.entries.items() if until < now - 5}
        return all(listed.get(key) == level for key, level in sure.items()) and \
            not any(key in listed for key in gone) and \
            all(key in self.entries for key in listed)

    def in_force(self, node, now):
        for (kind, value), (level, until) in self.entries.items():
            if kind == "client.ip" and until > now + 60:
                result = node.level_now(ip=value.partition("/")[0])
                if result != (level if level in ("suspended", "revoked") else None):
                    return False
        return True


@pytest.mark.parametrize("seed", range(3))
def test_random_changes_crashes_and_gaps_are_those_of_a_model(tmp_path, redis, seed):
    draw, model = random.Random(seed), Model()
    with Node(tmp_path / "n0", redis.url) as first, Node(tmp_path / "n1", redis.url) as second:
        nodes = [first, second]
        for _ in range(60):
            node = draw.choice(nodes)
            what = draw.random()
            kind = draw.choice(["client.ip", "user"])
            value = f"203.0.113.{draw.randrange(12)}/32" if kind == "client.ip" else \
                f"u{draw.randrange(12)}"
            if what < 0.6:
                level = draw.choice(["warned", "suspended", "trusted", "throttled"])
                for_ms = draw.choice([20, 3600000])
                assert node.put(kind, value, level, for_ms=for_ms)[0] == 200
                model.entries[kind, value] = (level, time.time() + for_ms / 1000)
            elif what < 0.8:
                assert node.call("DELETE", f"/v1/standing?kind={kind}&value={value}")[0] in (200, 404)
                model.entries.pop((kind, value), None)
            elif what < 0.88:
                node.kill()
                node.start()
            elif what < 0.94:
                redis.ask("XTRIM", CHANGES, "MAXLEN", draw.randrange(4))
            else:
                redis.ask("DEL", draw.choice([CHANGES, "weir:{standing}:meta"]))
        for node in nodes:
            wait_until(lambda node=node: model.expect(node, time.time()) and
                       model.in_force(node, time.time()), what=f"node {nodes.index(node)}")
