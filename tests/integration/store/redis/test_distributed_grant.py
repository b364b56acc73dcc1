# SPDX-License-Identifier: Apache-2.0
"""What operators do at one node of several over one Redis: top a key up, forget it; seen by all,
whatever their clocks show, and where nodes hold shares of the budget."""

import datetime
import os
import subprocess

import pytest

from daemon.nodes import Nodes, off_by, shared_rules
from daemon.redis import Redis
from daemon.redis_server import Cluster, RedisServer
from daemon.waiting import wait_until
from model.program import weir_path

TOKEN = {"admin": {"token": "s3cret"}}
LIMITS = [{"name": "hour", "key": ["user"], "algorithm": "fixed_window", "rate": "100/h"},
          {"name": "bucket", "key": ["user"], "algorithm": "token_bucket", "rate": "100/30d"},
          {"name": "segments", "key": ["user"], "algorithm": "sliding_window", "segments": 4,
           "rate": "100/h"},
          {"name": "rates", "key": ["user"], "algorithm": "fixed_window",
           "rate": ["100/h", "900/d"]},
          {"name": "month", "key": ["user"], "quota": "100/month", "rollover": "20%"}]
NAMES = [limit["name"] for limit in LIMITS]


@pytest.fixture(scope="module", name="nodes")
def fixture_nodes(tmp_path_factory, redis):
    """The second is two days ahead."""
    rules = shared_rules(redis.url, *LIMITS, store={"on_store_error": "closed"}, server=TOKEN)
    with Nodes(tmp_path_factory.mktemp("nodes"), 2, rules, redis=True, env=[{}, off_by(+50)]) as nodes:
        yield nodes


def skip_at_the_end_of_an_hour():
    if datetime.datetime.now(datetime.timezone.utc).strftime("%M%S") > "5930":
        pytest.skip("an hour ends while this runs")


def grant(weir, limit, user, units):
    command = [weir_path(), "grant", "--admin", weir.admin_address, "--limit", limit, "--key", user,
               "--units", str(units)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30,
                          env={**os.environ, "WEIR_ADMIN_TOKEN": "s3cret"})


def forget(weir, limit, user):
    with weir.admin() as admin:
        return admin.request("DELETE", f"/v1/limits/{limit}/state?key={user}",
                             fields={"Authorization": "Bearer s3cret"})


def used(nodes, user, node=0):
    _, result = nodes.ask(node, cost=0, dry_run=True, user=user)
    return [result[name]["limit"] - result[name]["remaining"] for name in result]


@pytest.mark.parametrize("node", [0, 1], ids=["a right clock", "a wrong clock"])
def test_a_grant_at_one_node_is_seen_by_the_other(nodes, node):
    skip_at_the_end_of_an_hour()
    user = f"grant{node}"
    nodes.ask(0, cost=80, user=user)
    for name in NAMES:
        done = grant(nodes[node], name, user, 30)
        result = "70 of 120" if name == "month" else "50 of 100"
        assert (done.returncode, done.stdout) == (0, f"{name}: {result} remain\n"), done.stderr
    assert used(nodes, user, 1 - node) == [50] * 5
    for name in NAMES:
        assert grant(nodes[node], name, user, 1000).returncode == 0
    assert used(nodes, user, 1 - node) == [0] * 5


def test_a_refund_by_a_command_finds_what_was_charged_by_the_time_of_redis(nodes):
    skip_at_the_end_of_an_hour()
    nodes.ask(0, cost=80, user="refund")
    line = next(line for line in nodes[1].text().splitlines() if "front=redis" in line)
    with Redis(line.rpartition("address=")[2].strip()) as client:
        client.ask("WEIR.REFUND", "user", "refund", "COST", 30)
    assert used(nodes, "refund") == [50] * 5


def test_in_a_cluster_too(tmp_path):
    skip_at_the_end_of_an_hour()
    with Cluster(tmp_path / "cluster") as cluster:
        rules = shared_rules(cluster.url, *LIMITS, store={"on_store_error": "closed"}, server=TOKEN)
        with Nodes(tmp_path, 2, rules, env=[{}, off_by(+50)]) as nodes:
            for i in range(4):
                nodes.ask(0, cost=80, user=f"user{i}")
                assert all(grant(nodes[1], name, f"user{i}", 30).returncode == 0 for name in NAMES)
                assert used(nodes, f"user{i}") == [50] * 5


def test_a_refund_while_redis_is_away_gives_back_nothing(tmp_path):
    """Not at Redis, and not in the node's own table either."""
    limit = {"name": "mine", "key": ["user"], "algorithm": "fixed_window", "rate": "10/300d"}
    with RedisServer(tmp_path / "redis") as redis:
        rules = shared_rules(redis.url, limit, nodes=2, deadline="50ms", server=TOKEN)
        with Nodes(tmp_path, 1, rules, redis=True) as nodes:
            redis.kill()
            wait_until(lambda: nodes[0].metrics()["weir_store_up"] == 0, what="the end of Redis")
            assert [nodes.ask(0, user="a")[0] for _ in range(6)] == [True] * 5 + [False]
            assert "did not answer" in grant(nodes[0], "mine", "a", 3).stderr
            line = next(line for line in nodes[0].text().splitlines() if "front=redis" in line)
            with Redis(line.rpartition("address=")[2].strip()) as client:
                assert "store" in str(client.ask("WEIR.REFUND", "user", "a", "COST", 3))
            assert nodes.ask(0, user="a")[0] is False


def test_a_key_of_another_type_is_named(tmp_path, redis):
    with Nodes(tmp_path, 1, shared_rules(redis.url, LIMITS[1], redis={"prefix": "type:"})) as nodes:
        nodes.ask(0, user="list")
        (key,) = redis.keys("type:{*")
        redis.ask("DEL", key)
        redis.ask("RPUSH", key, "x")
        nodes.ask(0, user="list")
        line = nodes[0].wait_event("store_error")
        assert key in line and "WRONGTYPE" in line
        redis.ask("DEL", key)
        redis.ask("SET", key, "short")
        wait_until(lambda: nodes.ask(0, user="list") and "not the state of a limit" in nodes[0].text(),
                   what="the other line")
        assert nodes[0].text().count(key) >= 2
