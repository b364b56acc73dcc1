# SPDX-License-Identifier: Apache-2.0
"""Priorities: the examples of docs/priorities.md, through HTTP, the Redis protocol, and over several
nodes with their counts in Redis; who may say what class a request has."""

import re

import pytest
import yaml

from daemon.nodes import Nodes, shared_rules
from daemon.redis import RedisWeir
from daemon.redis_server import RedisServer
from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir

PAGE = (ROOT / "docs" / "priorities.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.M | re.S)]
FIRST, HEADER, PLAN, ROUTES = EXAMPLES
# Class, and whether the request is allowed, in order: the table of the page.
STORY = [("critical", True)] * 5 + [("sheddable", True), ("sheddable", False)] + \
    [("normal", True)] * 3 + [("normal", False), ("sheddable", False), ("critical", True),
                              ("critical", False)]
LIMIT_OF = {"critical": 10, "normal": 9, "sheddable": 6}


def check(weir, priority, **fields):
    return weir.check(headers={"X-Priority": priority}, **fields).json


def test_the_first_example_keeps_its_table(tmp_path):
    used = 0
    with Weir(tmp_path, rules_of(*FIRST["limits"], priority=FIRST["priority"])) as weir:
        for priority, allowed in STORY:
            answer = check(weir, priority)
            used += allowed
            (limit,) = answer["limits"]
            assert answer["allowed"] == allowed, (priority, used)
            assert limit["limit"] == LIMIT_OF[priority]
            assert limit["remaining"] == max(LIMIT_OF[priority] - used, 0)
            assert ((answer["retry_after_ms"] or 0) > 0) == (not allowed)


def test_a_dry_run_is_at_the_scale_too(tmp_path):
    with Weir(tmp_path, rules_of(*FIRST["limits"], priority=FIRST["priority"])) as weir:
        for _ in range(6):
            assert check(weir, "critical")["allowed"]
        assert not check(weir, "sheddable", dry_run=True)["allowed"]
        assert check(weir, "normal", dry_run=True)["allowed"]


def test_the_fields_of_a_reply_are_those_of_the_class(tmp_path):
    rules = rules_of(*FIRST["limits"], priority=FIRST["priority"])
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        reply = client.request("GET", "/v1/auth", {"X-Forwarded-Uri": "/", "X-Priority": "sheddable"})
        assert reply.status == 204 or reply.status == 200
        assert reply.fields["ratelimit-policy"] == '"backend";q=6;w=3600'
        assert '"backend";r=5' in reply.fields["ratelimit"]
        assert reply.fields["x-ratelimit-limit"] == "6"


def test_the_quota_of_a_bucket_is_the_whole_rate_that_each_class_has(tmp_path):
    """One request an hour comes back for each class; a part of the burst is kept for others."""
    bucket = {"name": "bucket", "key": [], "rate": "10/h", "burst": 10,
              "shed": {"sheddable": "60%"}}
    for algorithm in ("token_bucket", "gcra", "leaky_bucket"):
        folder = tmp_path / algorithm
        folder.mkdir()
        rules = rules_of(bucket | {"algorithm": algorithm}, priority=FIRST["priority"])
        with Weir(folder, rules) as weir, weir.client() as client:
            reply = client.request("GET", "/v1/auth",
                                   {"X-Forwarded-Uri": "/", "X-Priority": "sheddable"})
            assert reply.fields["ratelimit-policy"] == '"bucket";q=10;w=3600'
            assert reply.fields["ratelimit"] == '"bucket";r=5;t=1800'
            assert reply.fields["x-ratelimit-limit"] == "6"


def test_the_redis_protocol_sheds_alike(tmp_path):
    rules = rules_of(*FIRST["limits"], priority=FIRST["priority"])
    with RedisWeir(tmp_path, rules) as weir, weir.redis() as redis:
        for priority, allowed in STORY:
            reply = redis.ask("WEIR.CHECK", "header.x-priority", priority)
            assert reply[:2] == ["allowed", int(allowed)], priority


def test_a_request_that_is_not_trusted_has_the_default_class(tmp_path):
    server = {"http": {"listen": "127.0.0.1:0", "trusted": False}}
    rules = rules_of(*FIRST["limits"], priority=FIRST["priority"], server=server)
    with Weir(tmp_path, rules, http=None) as weir:
        allowed = [check(weir, "critical")["allowed"] for _ in range(10)]
    assert allowed == [True] * 9 + [False]


def test_several_nodes_shed_what_all_of_them_count(tmp_path):
    with RedisServer(tmp_path / "redis") as server:
        rules = shared_rules(server.url, *FIRST["limits"], nodes=2, priority=FIRST["priority"])
        with Nodes(tmp_path, 2, rules) as nodes:
            for i, (priority, allowed) in enumerate(STORY):
                answer = check(nodes[i % 2], priority)
                assert answer["allowed"] == allowed, (i, priority)
                assert answer["limits"][0]["limit"] == LIMIT_OF[priority]


def test_paid_callers_wait_where_free_ones_may_not(tmp_path):
    rules = rules_of(*PLAN["limits"], priority=PLAN["priority"], plans=PLAN["plans"],
                     default_plan=PLAN["default_plan"])
    with Weir(tmp_path, rules) as weir:
        def take(plan, cost):
            return weir.check(attributes={"plan": plan}, cost=cost).json["allowed"]
        assert take("pro", 20)
        assert not take("free", 20)
        assert take("pro", 20)
        assert not take("free", 1)


@pytest.mark.parametrize("path,most", [("/pay/now", 100), ("/reports/x", 50), ("/else", 80)])
def test_a_route_gives_its_class(tmp_path, path, most):
    with Weir(tmp_path, rules_of(*ROUTES["limits"], priority=ROUTES["priority"])) as weir:
        answer = weir.check(path=path, attributes={"user": "u"}).json
        assert answer["limits"][0]["limit"] == most


def test_explain_says_class_and_percentage(tmp_path):
    config = tmp_path / "weir.yaml"
    config.write_text(yaml.safe_dump(FIRST), encoding="utf-8")
    done = run_weir("explain", "--config", config, "--header", "X-Priority: sheddable")
    assert done.returncode == 0 and "at 60% for `sheddable`" in done.stdout


def test_a_reservation_at_a_scale_is_settled(tmp_path):
    """7 are reserved in the part of `normal`; 3 of them are used."""
    with Weir(tmp_path, rules_of(*FIRST["limits"], priority=FIRST["priority"])) as weir, \
            weir.client() as client:
        reply = client.post("/v1/reserve", {"cost": 7, "headers": {"X-Priority": "normal"}})
        assert reply.status == 200, reply.body
        settled = client.post("/v1/settle", {"reservation": reply.json["reservation"], "cost": 3})
        assert settled.status == 200, settled.body
        assert check(weir, "critical")["limits"][0]["remaining"] == 6
