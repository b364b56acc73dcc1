# SPDX-License-Identifier: Apache-2.0
"""Borrowing over the slots of a Redis Cluster of three masters on loopback: a limit and its pool are
on different servers, with another limit beside both."""

import random

import pytest

from daemon.nodes import Nodes, shared_rules
from daemon.redis_server import Cluster

YEAR = "366d"
USERS = 12
OWN, POOL, ALL = 5, 40, 120


@pytest.fixture(scope="module", name="cluster")
def fixture_cluster(tmp_path_factory, redis_program):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def start(folder, cluster, prefix, everything=ALL, **more):
    """`own` by user, `pool` and `all`: three keys in three slots, if need be at three servers."""
    limits = [{"name": "all", "key": [], "algorithm": "fixed_window", "rate": f"{everything}/360d"},
              {"name": "own", "match": {"plan": "pro"}, "key": ["user"], "pool": "pool",
               "algorithm": "fixed_window", "rate": f"{OWN}/{YEAR}"},
              {"name": "pool", "match": {"plan": "free"}, "key": ["plan"], "borrow": True,
               "algorithm": "fixed_window", "rate": f"{POOL}/{YEAR}", **more}]
    return Nodes(folder, 2, shared_rules(cluster.url, *limits, nodes=2, redis={"prefix": prefix},
                                         store={"on_store_error": "closed"}))


def remaining(nodes, name, **attributes):
    return nodes.ask(0, dry_run=True, **attributes)[1][name]["remaining"]


def test_pools_in_other_slots_lend_what_they_have_and_no_more(tmp_path, cluster):
    with start(tmp_path, cluster, "lend:") as nodes:
        pick = random.Random(1)
        allowed = 0
        for i in range(USERS * OWN * 3):
            allowed += nodes.ask(i % 2, user=f"u{pick.randrange(USERS)}", plan="pro")[0]
        assert allowed == USERS * OWN + POOL  # 100 of `all`, and all of the rest
        assert nodes.metric("weir_borrowed_total") == POOL
        assert remaining(nodes, "pool", user="zoe", plan="free") == 0
        assert remaining(nodes, "all", user="zoe", plan="free") == ALL - allowed


def test_what_another_limit_denies_is_given_back_to_the_pool(tmp_path, cluster):
    everything = USERS * OWN + 10
    with start(tmp_path, cluster, "deny:", everything) as nodes:
        allowed = sum(nodes.ask(i % 2, user=f"u{i % USERS}", plan="pro")[0]
                      for i in range(USERS * OWN * 2))
        assert allowed == everything
        assert remaining(nodes, "pool", user="zoe", plan="free") == POOL - 10
        assert remaining(nodes, "all", user="zoe", plan="free") == 0


def test_a_reserve_in_another_slot_is_the_owners(tmp_path, cluster):
    with start(tmp_path, cluster, "reserve:", reserve="25%") as nodes:
        allowed = sum(nodes.ask(i % 2, user="ann", plan="pro")[0] for i in range(60))
        assert allowed == OWN + POOL - POOL // 4
        assert sum(nodes.ask(i % 2, user="zoe", plan="free")[0] for i in range(20)) == POOL // 4


def test_a_repeat_over_several_slots_is_charged_once(tmp_path, cluster):
    with start(tmp_path, cluster, "once:") as nodes:
        assert nodes.ask(0, cost=OWN, user="ann", plan="pro")[0]
        replies = [nodes[i % 2].check(attributes={"user": "ann", "plan": "pro"}, cost=3,
                                      idempotency_key="k") for i in range(4)]
        assert [reply.status for reply in replies] == [200] * 4
        assert ["repeated" in reply.json for reply in replies] == [False, True, True, True]
        assert remaining(nodes, "pool", user="zoe", plan="free") == POOL - 3
        assert remaining(nodes, "all", user="zoe", plan="free") == ALL - OWN - 3


def test_a_repeat_ends_the_lease_that_was_borrowed(tmp_path, cluster):
    limits = [{"name": "own", "match": {"plan": "pro"}, "key": ["user"], "pool": "pool",
               "algorithm": "concurrency", "limit": 1},
              {"name": "pool", "match": {"plan": "free"}, "key": ["plan"], "borrow": True,
               "algorithm": "concurrency", "limit": 1}]
    rules = shared_rules(cluster.url, *limits, nodes=2, redis={"prefix": "lease:"})
    with Nodes(tmp_path, 2, rules) as nodes:
        asked = {"attributes": {"user": "ann", "plan": "pro"}}
        own = nodes[0].check(**asked)
        first = nodes[0].check(**asked, idempotency_key="k")
        repeat = nodes[1].check(**asked, idempotency_key="k")
        assert (own.status, first.status, repeat.status) == (200, 200, 200)
        assert repeat.json["repeated"] and repeat.json["lease"] == first.json["lease"]
        assert not nodes.ask(1, user="zoe", plan="free")[0]
        with nodes[1].client() as client:
            released = client.post("/v1/release", {"lease": repeat.json["lease"]})
            assert released.status == 200, released.body
        assert nodes.ask(1, user="zoe", plan="free")[0]
        assert not nodes.ask(0, user="ann", plan="pro")[0]  # its own still runs
