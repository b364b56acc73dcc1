# SPDX-License-Identifier: Apache-2.0
"""Quotas by calendar that several nodes count in one Redis, whatever their clocks show."""

import datetime
import json

import pytest

from daemon.nodes import Nodes, off_by, shared_rules
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import RECIPES, recipe

QUOTA = {"name": "day", "key": ["client.ip"], "quota": "10/day", "rollover": "50%"}


@pytest.fixture(name="redis")
def fixture_redis(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        yield server


def seconds_to_midnight():
    now = datetime.datetime.now(datetime.timezone.utc)
    return 86400 - (now.hour * 3600 + now.minute * 60 + now.second)


def day_of(reply):
    (limit,) = reply.json["limits"]
    return limit


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_nodes_count_one_quota_with_what_came_over(tmp_path, redis, mode):
    if seconds_to_midnight() < 60:
        pytest.skip("a day ends while this runs")
    rules = shared_rules(redis.url, QUOTA, mode=mode, nodes=2)
    env = [None, off_by(+23)]  # today or tomorrow
    with Nodes(tmp_path, 2, rules, env=env) as nodes:
        replies = [nodes[i % 2].check(ip="192.0.2.1") for i in range(18)]
        assert [reply.status for reply in replies] == [200] * 15 + [429] * 3
        assert [day_of(reply)["remaining"] for reply in replies[:15]] == list(range(14, -1, -1))
        wait = replies[-1].json["retry_after_ms"] / 1000
        assert abs(wait - seconds_to_midnight()) < 30
        assert nodes[1].check(ip="192.0.2.2").status == 200


@pytest.mark.parametrize("hours", [-24 * 400, 24 * 10])
def test_a_node_whose_clock_is_far_off_asks_what_the_time_is_first(tmp_path, redis, hours):
    if seconds_to_midnight() < 60:
        pytest.skip("a day ends while this runs")
    rules = shared_rules(redis.url, {**QUOTA, "on_store_error": "closed"}, nodes=2)
    with Weir(tmp_path, rules, "--workers", "1", env=off_by(hours)) as weir:
        wait_until(lambda: weir.metrics()["weir_store_up"] == 1, what="the store")
        replies = [weir.check(ip="192.0.2.1") for _ in range(16)]
        assert [reply.status for reply in replies] == [200] * 15 + [429]
        assert "store_error" not in weir.text()
        reset = day_of(replies[0])["reset_after_ms"] / 1000
        assert abs(reset - 86400 - seconds_to_midnight()) < 30  # what came over is used then


def test_a_recipe_runs_on_two_nodes(tmp_path, redis):
    rules = recipe("public-api") + f"\nstore: {json.dumps({'redis': redis.url, 'nodes': 2})}\n"
    for i in range(2):
        folder = tmp_path / f"weir{i}"
        folder.mkdir(exist_ok=True)
        (folder / "public-api-keys.yaml").write_text(
            (RECIPES / "public-api-keys.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    with Nodes(tmp_path, 2, rules) as nodes:
        def ask(node, key):
            return node.check(path="/v1/things", ip="192.0.2.1", headers={"x-api-key": key})
        left = [{limit["name"]: limit["remaining"] for limit in
                 ask(nodes[i % 2], f"pro-key-{1 + i % 2}").json["limits"]} for i in range(6)]
        assert [limits["organisation"] for limits in left] == [2999 - i for i in range(6)]
        assert [limits["month"] for limits in left] == [1199999 - i for i in range(6)]
