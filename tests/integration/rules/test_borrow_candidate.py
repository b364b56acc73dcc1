# SPDX-License-Identifier: Apache-2.0
"""Pools that are borrowed from, and candidates that are tried: one daemon, several over one Redis,
and replays."""

import json
import random

import pytest

from daemon.http import request_bytes
from daemon.nodes import Nodes, shared_rules
from daemon.redis import RedisWeir, command_bytes
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

YEAR = "366d"


def borrowing(pool=300, own=50, algorithm="fixed_window", **more):
    """Users of the plan pro have `own` each, and what the plan free leaves of `pool`."""
    def rate(count):
        if algorithm == "gcra":
            return {"algorithm": "gcra", "rate": "1/day", "burst": count}
        return {"algorithm": algorithm, "rate": f"{count}/{YEAR}"}
    return [{"name": "own", "match": {"plan": "pro"}, "key": ["user"], "pool": "pool",
             **rate(own)},
            {"name": "pool", "match": {"plan": "free"}, "key": ["plan"], "borrow": True,
             **rate(pool), **more}]


def names(reply):
    return [limit["name"] for limit in reply.json["limits"]]


# --- One daemon -----------------------------------------------------------------------------------

def test_a_daemon_tells_what_was_borrowed(tmp_path):
    with Weir(tmp_path, rules_of(*borrowing(pool=3, own=2))) as weir:
        def ask(plan):
            return weir.check(attributes={"user": "ann", "plan": plan})
        replies = [ask("pro") for _ in range(6)]
        assert [reply.status for reply in replies] == [200] * 5 + [429]
        assert [names(reply) for reply in replies[:3]] == [["own"], ["own"], ["pool"]]
        assert "borrowed" not in replies[1].json["limits"][0]
        seen = replies[2].json["limits"][0]
        assert seen["borrowed"] and seen["limit"] == 3 and seen["remaining"] == 2
        assert ask("free").status == 429
        counts = weir.metrics()
        assert counts['weir_borrowed_total{limit="own",pool="pool"}'] == 3
        assert counts['weir_decisions_total{limit="own",result="allowed"}'] == 2
        assert counts['weir_decisions_total{limit="own",result="denied"}'] == 1
        assert counts['weir_decisions_total{limit="pool",result="allowed"}'] == 3
        with weir.admin() as admin:
            own, pool = admin.request("GET", "/v1/limits").json["limits"]
        assert (own["pool"], own["borrowed"]) == ("pool", 3)
        assert "pool" not in pool


def test_answers_keep_their_order_where_some_borrow(tmp_path):
    """A second try is decided after those that need none, and still reported in its place."""
    asked = [{"user": user, "plan": "pro"} for user in ("ann", "ann", "bob", "ann", "cid", "ann")]
    seen = [[True, "own"], [True, "pool"], [True, "own"], [True, "pool"], [True, "own"],
            [False, "own"]]
    rules = rules_of(*borrowing(pool=2, own=1))
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        client.send(b"".join(
            request_bytes("POST", "/v1/check", body=json.dumps({"attributes": attributes}).encode())
            for attributes in asked))
        replies = [client.reply() for _ in asked]
        assert [[reply.status == 200, *names(reply)] for reply in replies] == seen
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        batch = client.post("/v1/check", [{"attributes": attributes} for attributes in asked])
        assert [[one["allowed"], one["limits"][0]["name"]] for one in batch.json] == seen
    with RedisWeir(tmp_path, rules) as weir, weir.redis() as redis:
        redis.send(b"".join(command_bytes("WEIR.CHECK", "user", attributes["user"], "plan", "pro")
                            for attributes in asked))
        assert [redis.reply()[1] for _ in asked] == [int(allowed) for allowed, _ in seen]


def test_a_daemon_tells_what_a_candidate_says(tmp_path):
    rules = rules_of({"name": "api", "key": ["user"], "rate": f"4/{YEAR}",
                      "candidate": f"2/{YEAR}"})
    with Weir(tmp_path, rules) as weir:
        for i in range(6):
            assert weir.check(attributes={"user": "ann"}).status == (200 if i < 4 else 429)
        wanted = {"both_allow": 2, "both_deny": 2, "stricter": 2, "looser": 0, "skipped": 0}
        counts = weir.metrics()
        assert {key: counts[f'weir_candidate_total{{limit="api",outcome="{key}"}}']
                for key in wanted} == wanted
        with weir.admin() as admin:
            (api,) = admin.request("GET", "/v1/limits").json["limits"]
        candidate = api["candidate"]
        assert {key: candidate[key] for key in wanted} == wanted
        assert candidate["rates"][0]["rate"] == 2
        # Another candidate: what its own states have counted stays, in units.
        weir.write_rules(rules.replace(f"2/{YEAR}", f"3/{YEAR}"))
        weir.reload()
        assert weir.check(attributes={"user": "bob"}).status == 200
        assert weir.check(attributes={"user": "ann"}).status == 429
        counts = weir.metrics()  # ann has used 2 of 3
        assert counts['weir_candidate_total{limit="api",outcome="looser"}'] == 1


def test_metrics_have_no_series_where_nothing_borrows_or_is_tried(tmp_path):
    with Weir(tmp_path, rules_of({"name": "api", "key": [], "rate": "4/s"})) as weir:
        with weir.admin() as admin:
            text = admin.request("GET", "/metrics").body.decode()
    assert "weir_borrowed" not in text and "weir_candidate" not in text


# --- Several nodes over one Redis -----------------------------------------------------------------

@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_window", "gcra", "sliding_log"])
def test_nodes_together_admit_what_is_their_own_and_the_pool(tmp_path, redis, algorithm):
    redis.ask("FLUSHALL")
    with Nodes(tmp_path, 2, shared_rules(redis.url, *borrowing(algorithm=algorithm),
                                         nodes=2)) as nodes:
        pick = random.Random(algorithm)
        admitted = {"pro": 0, "free": 0}
        for _ in range(800):
            plan = pick.choice(["pro", "pro", "free"])
            admitted[plan] += nodes.ask(pick.randrange(2), user=pick.choice("ab"), plan=plan)[0]
        assert admitted["pro"] + admitted["free"] == 300 + 2 * 50
        assert admitted["pro"] > 2 * 50
        assert nodes.metric("weir_borrowed_total") == admitted["pro"] - 2 * 50


@pytest.mark.parametrize("algorithm", ["fixed_window", "gcra"])
def test_nodes_with_shares_never_admit_more(tmp_path, redis, algorithm):
    redis.ask("FLUSHALL")
    limits = borrowing(pool=3000, own=500, algorithm=algorithm)
    with Nodes(tmp_path, 2, shared_rules(redis.url, *limits, mode="leased", nodes=2)) as nodes:
        total = 0
        with nodes.load(4, {"user": "ann", "plan": "pro"}) as pro, \
                nodes.load(2, {"user": "zoe", "plan": "free"}) as free:
            for _ in range(2):
                pro.run(1.0)
                free.run(0.5)
            total = sum(answer.status == 200 for answer in pro.answers + free.answers)
        assert total <= 3500
        assert total >= 3000 or total == len(pro.answers) + len(free.answers)
        assert nodes.metric("weir_borrowed_total") > 0


def test_a_reserve_is_the_owners(tmp_path, redis):
    redis.ask("FLUSHALL")
    limits = borrowing(pool=100, own=10, reserve="30%")
    with Nodes(tmp_path, 2, shared_rules(redis.url, *limits, nodes=2)) as nodes:
        def ask(plan, count):
            return sum(nodes.ask(i % 2, user="ann", plan=plan)[0] for i in range(count))
        assert ask("free", 20) == 20
        assert ask("pro", 100) == 10 + 50  # 70, of which 20 are used
        assert ask("free", 100) == 30


def test_a_reservation_of_what_was_borrowed_is_given_back_to_the_pool(tmp_path, redis):
    redis.ask("FLUSHALL")
    limits = borrowing(pool=10, own=2)
    with Nodes(tmp_path, 1, shared_rules(redis.url, *limits, nodes=1)) as nodes:
        with nodes[0].client() as client:
            made = client.post("/v1/reserve", {"attributes": {"user": "ann", "plan": "pro"},
                                               "cost": 8})
            assert made.status == 200, made.body
            assert not nodes.ask(0, cost=3, user="zoe", plan="free")[0]
            settled = client.post("/v1/settle", {"reservation": made.json["reservation"],
                                                 "cost": 1})
            assert settled.status == 200, settled.body
        assert nodes.ask(0, cost=9, user="zoe", plan="free")[0]
        assert not nodes.ask(0, cost=1, user="zoe", plan="free")[0]


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_candidates_are_tried_in_redis(tmp_path, redis, mode):
    redis.ask("FLUSHALL")
    limit = {"name": "api", "key": ["user"], "algorithm": "fixed_window", "rate": f"30/{YEAR}",
             "candidate": f"20/{YEAR}"}
    with Nodes(tmp_path, 2, shared_rules(redis.url, limit, mode=mode, nodes=2)) as nodes:
        for i in range(40):
            nodes.ask(i % 2, user="ann")
        wait_until(lambda: nodes.metric("weir_candidate_total") == 40, what="all trials")
        def count(outcome):
            return sum(weir.metrics()[f'weir_candidate_total{{limit="api",outcome="{outcome}"}}']
                       for weir in nodes.running())
        if mode == "exact":
            assert [count(name) for name in ("both_allow", "stricter", "both_deny", "looser")] \
                == [20, 10, 10, 0]
        else:
            assert count("both_allow") + count("looser") <= 20
        assert count("skipped") == 0


# --- Replays --------------------------------------------------------------------------------------

def replay(folder, limits, requests, *options):
    rules, trace = folder / "weir.yaml", folder / "trace"
    rules.write_text(rules_of(*limits), encoding="utf-8")
    trace.write_text("".join(json.dumps({"t": str(1700000000 + t), "attributes": attributes}) + "\n"
                             for t, attributes in requests), encoding="utf-8")
    done = run_weir("replay", "-c", rules, *options, trace)
    assert done.returncode == 0, done.stderr
    return done.stdout


def row(report, title, name):
    """The columns of a row in the table with this title."""
    lines = report[report.index(title):].splitlines()
    return next(line.split()[1:] for line in lines if line.split()[:1] == [name])


def test_a_replay_tells_where_a_candidate_differs(tmp_path):
    limits = [{"name": "api", "key": ["user"], "algorithm": "fixed_window", "rate": "3/min",
               "candidate": "2/min"},
              {"name": "all", "key": [], "algorithm": "fixed_window", "rate": "100/min",
               "candidate": "100/min"}]
    requests = [(i // 4, {"user": "abcd"[i % 4]}) for i in range(14)]  # a and b four times
    report = replay(tmp_path, limits, requests)
    assert row(report, "CANDIDATE OF", "api") == ["14", "4", "0", "4"]
    assert row(report, "CANDIDATE OF", "all") == ["14", "0", "0", "0"]
    first = report[report.index("FIRST DIFFERENCES"):].splitlines()[1:5]
    assert [line.split()[1] for line in first] == ["9", "10", "11", "12"]
    assert [line.split()[-2:] for line in first] == [["deny", f"user={user}"] for user in "abcd"]
    report = replay(tmp_path, [{**limits[0], "candidate": "9/min"}], requests)
    assert row(report, "CANDIDATE OF", "api") == ["14", "0", "2", "2"]
    plain = {"name": "all", "key": [], "rate": "1/min"}
    assert "CANDIDATE" not in replay(tmp_path, [plain], requests)


def test_a_replay_tells_what_was_borrowed_and_what_an_enforced_share_denies(tmp_path):
    limits = borrowing(pool=3, own=2)
    limits.append({"name": "share", "key": ["user"], "algorithm": "fixed_window",
                   "rate": f"1/{YEAR}", "enforce": "0%"})
    requests = [(i, {"user": "ann", "plan": "pro"}) for i in range(7)]
    report = replay(tmp_path, limits, requests)
    assert row(report, "LIMIT", "own+") == ["7", "5", "2", "1"]
    assert row(report, "LIMIT", "pool") == ["3", "3", "0", "1"]
    assert row(report, "LIMIT", "share%") == ["7", "1", "6", "1"]
    assert "+ own borrowed from pool for 3 requests" in report
    # Whichever is to be waited less for: what is denied is the limit's, and no owner of the pool.
    limits[1]["rate"] = "3/day"
    report = replay(tmp_path, limits, requests)
    assert row(report, "LIMIT", "own+") == ["7", "5", "2", "1"]
    assert row(report, "LIMIT", "pool") == ["3", "3", "0", "1"]
    assert "% share is enforced on 0% of its keys: 0 of 6 denials took effect" in report


def test_explain_tells_what_pools_and_candidates_say(tmp_path):
    rules = tmp_path / "weir.yaml"
    limits = borrowing(pool=9, own=2)
    limits[0]["candidate"] = f"4/{YEAR}"
    rules.write_text(rules_of(*limits), encoding="utf-8")

    def explain(cost):
        done = run_weir("explain", "-c", rules, "-a", "user=ann", "-a", "plan=pro", "--cost",
                        str(cost))
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert "candidate allows: 4 in 366d: 4 of 4 remaining" in explain(1)
    borrowed = explain(3)
    assert "denies; its pool pool decides instead" in borrowed
    assert "lends  to a limit that denies\n    key    plan=free" in borrowed
    assert "The request is allowed." in borrowed
    assert "candidate denies" in explain(5)
