# SPDX-License-Identifier: Apache-2.0
"""Units that were bought above a limit: `weir grant --above` and the admin API, over the table and
over Redis, beside a model; through a restart, a reload, two nodes, and many callers at once."""

import concurrent.futures
import json
import os
import random
import subprocess

import pytest

from daemon.nodes import Nodes, shared_rules
from daemon.weir import Weir
from model.program import weir_path

TOKEN = {"admin": {"token": "s3cret"}}
DAY_MS = 86400 * 1000
LIMIT = {"name": "month", "key": ["user"], "algorithm": "token_bucket", "rate": "5/30d",
         "top_up": "366d"}
ALL = {"name": "all", "key": ["user"], "algorithm": "fixed_window", "rate": "100000/d"}


def rules_of(*limits, **more):
    return json.dumps({"server": TOKEN, "limits": list(limits), **more})


def grant(weir, user, units, *more, limit="month"):
    command = [weir_path(), "grant", "--admin", weir.admin_address, "--limit", limit, "--key", user,
               "--units", str(units), "--above", *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=30,
                          env={**os.environ, "WEIR_ADMIN_TOKEN": "s3cret"})


def admin(weir, method, target):
    with weir.admin() as client:
        return client.request(method, target, fields={"Authorization": "Bearer s3cret"})


def bought(weir, user, limit="month"):
    return admin(weir, "GET", f"/v1/limits/{limit}/state?key={user}&above=true").json


def ask(weir, user, cost=1, **more):
    reply = weir.check(attributes={"user": user, **more}, cost=cost)
    return reply.status, {limit["name"]: limit for limit in reply.json["limits"]}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules_of(LIMIT, ALL)) as weir:
        yield weir


def test_what_the_limit_denies_is_charged_to_what_was_bought(weir):
    done = grant(weir, "ann", 7)
    assert (done.returncode, done.stdout) == \
        (0, "month: 7 bought units are left; they end in 366d\n"), done.stderr
    assert "bought=7" in weir.wait_event("granted_above")
    assert ask(weir, "ann", 5)[1]["month"]["remaining"] == 0
    assert bought(weir, "ann")["bought"] == 7
    status, limits = ask(weir, "ann", 3)
    assert status == 200 and limits["month"]["bought"] is True
    assert (limits["month"]["limit"], limits["month"]["remaining"]) == (5, 4)
    assert limits["month"]["algorithm"] == "token_bucket"
    status, limits = ask(weir, "ann", 5)
    assert status == 429 and "bought" not in limits["month"]
    assert ask(weir, "ann", 4)[0] == 200
    assert ask(weir, "ann")[0] == 429
    assert ask(weir, "bob", 6)[0] == 429
    metrics = weir.metrics()
    assert metrics['weir_bought_units_total{limit="month"}'] == 7


def test_the_state_of_a_key_tells_the_limit_and_what_was_bought(weir):
    grant(weir, "cid", 9)
    ask(weir, "cid", 5)
    state = admin(weir, "GET", "/v1/limits/month/state?key=cid").json
    assert state["limits"][0]["bought"] is True and state["limits"][0]["remaining"] == 9
    assert admin(weir, "DELETE", "/v1/limits/month/state?key=cid").status == 200
    assert bought(weir, "cid")["bought"] == 9
    assert admin(weir, "DELETE", "/v1/limits/month/state?key=cid&above=true").status == 200
    assert bought(weir, "cid") == {"bought": 0, "ends_after_ms": 0}
    assert admin(weir, "DELETE", "/v1/limits/month/state?key=cid&above=true").status == 404


def test_units_end_when_the_grant_says_so(weir):
    grant(weir, "eve", 2, "--expires", "2d")
    assert DAY_MS < bought(weir, "eve")["ends_after_ms"] <= 2 * DAY_MS
    done = grant(weir, "eve", 1, "--expires", "1d")     # never sooner than the others
    assert "3 bought units are left" in done.stdout
    assert DAY_MS < bought(weir, "eve")["ends_after_ms"] <= 2 * DAY_MS


@pytest.mark.parametrize("query, detail", [
    ("key=ann&units=0&above=true", "units: must be"),
    ("key=ann&units=1&above=true&expires=1s", "expires: must be 1min to 3660d"),
    ("key=ann&units=1&above=true&expires=soon", "soon"),
    ("key=ann&units=1&expires=1d", "goes with above=true"),
    ("key=ann&units=1&above=yes", "unknown parameter"),
])
def test_a_grant_that_means_nothing_is_refused(weir, query, detail):
    before = bought(weir, "ann")
    reply = admin(weir, "POST", f"/v1/limits/month/grant?{query}")
    assert reply.status == 400 and detail in reply.json["detail"]
    assert bought(weir, "ann")["bought"] == before["bought"]


def test_a_limit_without_top_up_says_what_to_write(weir):
    done = grant(weir, "ann", 1, limit="all")
    assert done.returncode == 1 and "give it `top_up: 366d`" in done.stderr
    assert grant(weir, "ann", 1, "--expires", "x").returncode == 1
    command = [weir_path(), "grant", "--limit", "month", "--units", "1", "--expires", "1d"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "--expires goes with --above" in done.stderr


@pytest.mark.parametrize("limit, why", [
    ({"algorithm": "concurrency", "limit": 5}, "concurrency"),
    ({"algorithm": "leaky_bucket", "rate": "5/s", "queue": True}, "a queue"),
    ({"rate": "unlimited"}, "an unlimited limit"),
    ({"rate": ["5/s", "50/h"]}, "several rates"),
    ({"rate": "5/s", "on_deny": "charge"}, "charged twice"),
    ({"rate": "5/s", "pool": "other"}, "one place only"),
    ({"rate": "500/s", "global": {"floor": "5%"}}, "`global`"),
])
def test_limits_that_nothing_can_be_bought_of_refuse_the_keyword(tmp_path, limit, why):
    other = {"name": "other", "key": [], "rate": "9/s", "borrow": True}
    path = tmp_path / "weir.yaml"
    regions = {"self": "eu", "eu": {"redis": "redis://127.0.0.1:1/0"},
               "us": {"redis": "redis://127.0.0.1:2/0"}} if "global" in limit else None
    more = {"regions": regions, "store": {"nodes": 2}} if regions else {}
    path.write_text(rules_of({"name": "a", "key": ["user"], "top_up": "1d", **limit}, other,
                             **more), encoding="utf-8")
    done = subprocess.run([weir_path(), "validate", str(path)], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 1 and "`top_up` does not work with" in done.stderr + done.stdout
    assert why in done.stderr + done.stdout


def test_units_outlast_a_restart_a_reload_and_another_plan(tmp_path):
    plans = {"plans": {"free": {"month": "2/h"}, "pro": {"month": "5/d"}},
             "default_plan": "free"}
    limit = {"name": "month", "key": ["user"], "rate": "plan", "top_up": "9d"}
    state = {"state": {"file": str(tmp_path / "state")}}
    with Weir(tmp_path, rules_of(limit, **plans, **state)) as weir:
        grant(weir, "ann", 20)
        assert ask(weir, "ann", 3, plan="free")[1]["month"]["remaining"] == 17
    state["state"]["size"] = "96MiB"
    with Weir(tmp_path, rules_of({**limit, "top_up": "90d"}, **plans, **state)) as weir:
        assert bought(weir, "ann")["bought"] == 17
        assert ask(weir, "ann", 6, plan="pro")[1]["month"]["remaining"] == 11
        weir.write_rules(rules_of({**limit, "top_up": "30d"}, **plans, **state))
        weir.reload()
        assert bought(weir, "ann")["bought"] == 11
        assert 8 * DAY_MS < bought(weir, "ann")["ends_after_ms"] <= 9 * DAY_MS


class Model:
    """A key's limit (a window that does not end here) and what was bought above it."""

    def __init__(self, capacity):
        self.used, self.bought, self.capacity = 0, 0, capacity

    def ask(self, cost):
        if self.used + cost <= self.capacity:
            self.used += cost
            return True
        if self.bought >= max(cost, 1):
            self.bought -= cost
            return True
        return False


def random_steps(ask_any, grant_any, seed):
    draw = random.Random(seed)
    models = {f"r{seed}-{i}": Model(5) for i in range(3)}
    taken = 0
    for _ in range(150):
        user = draw.choice(list(models))
        if draw.random() < 0.12:
            units = draw.randint(1, 9)
            left = grant_any(user, units)
            models[user].bought += units
            assert left == models[user].bought
            continue
        cost = draw.choice([1, 1, 1, 2, 3, 7])
        before = models[user].bought
        allowed = models[user].ask(cost)
        status, limits = ask_any(user, cost)
        assert (status == 200) == allowed
        if models[user].bought != before:
            taken += 1
            assert limits["month"]["remaining"] == models[user].bought
    assert taken > 10


def grant_by_api(weir, user, units):
    reply = admin(weir, "POST", f"/v1/limits/month/grant?key={user}&units={units}&above=true")
    assert reply.json["granted"] is True
    return reply.json["bought"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_requests_and_grants_equal_the_model(weir, seed):
    random_steps(lambda user, cost: ask(weir, user, cost),
                 lambda user, units: grant_by_api(weir, user, units), seed)


@pytest.fixture(scope="module", name="nodes")
def fixture_nodes(tmp_path_factory, redis):
    rules = shared_rules(redis.url, LIMIT, ALL, store={"on_store_error": "closed"}, server=TOKEN,
                         redis={"remember": "off"})   # else a node knows a grant of another late
    with Nodes(tmp_path_factory.mktemp("nodes"), 2, rules) as nodes:
        yield nodes


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_two_nodes_over_redis_equal_the_model(nodes, seed):
    draw = random.Random(seed)
    random_steps(lambda user, cost: ask(nodes[draw.randrange(2)], user, cost),
                 lambda user, units: grant_by_api(nodes[draw.randrange(2)], user, units), seed)


def together(servers, user, requests):
    """How many of many requests at once are admitted."""
    def one(number):
        return ask(servers[number % len(servers)], user)[0] == 200

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return sum(pool.map(one, range(requests)))


def test_many_callers_at_once_get_the_limit_and_what_was_bought(weir):
    grant(weir, "many", 40)
    assert together([weir], "many", 80) == 45
    assert bought(weir, "many")["bought"] == 0


def test_many_callers_at_two_nodes_get_the_limit_and_what_was_bought(nodes):
    grant_by_api(nodes[0], "many", 40)
    assert together(nodes, "many", 80) == 45
    assert bought(nodes[1], "many")["bought"] == 0


def test_shares_of_nodes_refuse_the_keyword(tmp_path, redis):
    limit = {"name": "a", "key": ["user"], "rate": "900/s", "top_up": "1d", "mode": "leased"}
    path = tmp_path / "weir.yaml"
    path.write_text(shared_rules(redis.url, limit, store={"on_store_error": "closed"}),
                    encoding="utf-8")
    done = subprocess.run([weir_path(), "validate", str(path)], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 1 and "`mode: leased`" in done.stderr + done.stdout


def test_a_refund_of_a_reservation_goes_back_to_what_was_bought(weir):
    grant(weir, "res", 10)
    ask(weir, "res", 5)
    with weir.client() as client:
        reply = client.post("/v1/reserve", {"attributes": {"user": "res"}, "cost": 8})
        assert reply.status == 200 and bought(weir, "res")["bought"] == 2
        client.post("/v1/settle", {"reservation": reply.json["reservation"], "cost": 3})
    assert bought(weir, "res")["bought"] == 7
