# SPDX-License-Identifier: Apache-2.0
"""/v1/limit: limits in the request decide as those of the rules file and of Redis commands."""

import json
import random
import threading

import pytest

from daemon.http import request_bytes
from daemon.nodes import Nodes, shared_rules
from daemon.redis import RedisWeir
from daemon.weir import Weir, rules_of

# Long windows: no border of one falls into a test. Those of the second test refill meanwhile.
SLOW = {
    "fixed": {"algorithm": "fixed_window", "rate": "7/300d"},
    "sliding": {"algorithm": "sliding_window", "rate": "7/300d"},
    "segments": {"algorithm": "sliding_window", "rate": "7/300d", "segments": 60, "strict": True},
    "log": {"algorithm": "sliding_log", "rate": "7/300d"},
    "token": {"algorithm": "token_bucket", "rate": "1/h", "burst": 7},
    "gcra": {"algorithm": "gcra", "rate": "1/h", "burst": 7},
    "leaky": {"algorithm": "leaky_bucket", "rate": "1/h", "burst": 7},
    "queue": {"algorithm": "leaky_bucket", "rate": "1/h", "burst": 6, "queue": True},
    "seats": {"algorithm": "concurrency", "limit": 7, "life": "1h"},
}
QUICK = {
    "sliding": {"algorithm": "sliding_window", "rate": "30/s"},
    "segments": {"algorithm": "sliding_window", "rate": "30/s", "segments": 10},
    "log": {"algorithm": "sliding_log", "rate": "20/200ms"},
    "fixed": {"algorithm": "fixed_window", "rate": "20/150ms"},
    "gcra": {"algorithm": "gcra", "rate": "70/s", "burst": 9},
    "queue": {"algorithm": "leaky_bucket", "rate": "70/s", "burst": 9, "queue": True},
}


def rules_for(limits):
    return rules_of(*({"name": name, "match": {"path": f"/{name}"}, "key": ["client.ip"], **limit}
                      for name, limit in limits.items()))


def limit(client, *limits, **more):
    return client.post("/v1/limit", {"limits": list(limits), **more} if more else
                       list(limits) if len(limits) > 1 else limits[0])


def test_a_limit_of_a_request_decides_as_the_same_limit_of_the_rules_file(tmp_path):
    """Both requests arrive at once and are decided at one time, so their answers are the same."""
    dice, seen = random.Random(16), set()
    limits = {**{"slow-" + name: limit for name, limit in SLOW.items()}, **QUICK}
    with Weir(tmp_path, rules_for(limits), "--workers", 1) as weir, weir.client() as client:
        for _ in range(1500):
            name, cost = dice.choice(sorted(limits)), dice.choice([0, 1, 1, 1, 2, 3, 10])
            ip = f"192.0.2.{dice.randrange(2)}"
            dry_run = dice.random() < 0.1
            asked = [("/v1/check", {"path": f"/{name}", "ip": ip, "cost": cost, "dry_run": dry_run}),
                     ("/v1/limit", {"name": name, "key": ip, "cost": cost, "dry_run": dry_run,
                                    **limits[name]})]
            client.send(b"".join(request_bytes("POST", path, {"Content-Type": "application/json"},
                                               json.dumps(body).encode()) for path, body in asked))
            by_rules, by_request = client.reply(), client.reply()
            assert by_rules.status == by_request.status, (name, cost)
            one, other = by_rules.json, by_request.json
            assert ("lease" in one) == ("lease" in other)
            one.pop("lease", None), other.pop("lease", None)
            assert one == other, (name, cost)
            for field in "ratelimit", "ratelimit-policy", "x-ratelimit-remaining", "retry-after":
                assert by_rules[field] == by_request[field]
            seen.add((name, by_rules.status))
    assert seen >= {(name, status) for name in limits for status in (200, 429)}


def test_gcra_decides_as_cl_throttle(tmp_path):
    dice = random.Random(17)
    with RedisWeir(tmp_path, http="127.0.0.1:0") as weir, weir.client() as client, \
            weir.redis() as redis:
        for _ in range(300):
            key, cost, burst = f"k{dice.randrange(9)}", dice.choice([0, 1, 1, 2, 5]), 3
            limited, most, remaining, _, _ = redis.ask("CL.THROTTLE", key, burst, 1, 86400, cost)
            reply = limit(client, {"key": key, "algorithm": "gcra", "rate": "1/d",
                                   "burst": burst + 1, "cost": cost})
            told = reply.json["limits"][0]
            assert (reply.status == 429, told["limit"], told["remaining"]) == \
                (limited == 1, most, remaining)


@pytest.mark.parametrize("name", SLOW)
def test_eight_clients_never_get_more_than_the_limit(tmp_path, name):
    asked = {"key": "shared", **SLOW[name]}
    admitted, leases, lock = [], [], threading.Lock()
    with Weir(tmp_path, rules_of(), "--workers", 2) as weir:
        def run():
            with weir.client() as client:
                for _ in range(20):
                    reply = limit(client, asked, {"key": "other", "rate": "1000/300d"})
                    with lock:
                        admitted.append(reply.status == 200)
                        leases.extend(filter(None, [reply.json.get("lease")]))
        clients = [threading.Thread(target=run) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert len(admitted) == 160 and admitted.count(True) == 7
        with weir.client() as client:
            # The denied ones charged neither limit.
            assert limit(client, {"key": "other", "rate": "1000/300d", "cost": 0}).json[
                "limits"][0]["remaining"] == 993
            if name == "seats":
                assert len(set(leases)) == 7
                assert client.post("/v1/release", {"lease": leases[0]}).json == {"released": True}
                assert [limit(client, asked).status for _ in range(2)] == [200, 429]


def test_only_trusted_listeners_serve_it(tmp_path):
    asked = {"key": "k", "rate": "1/h"}
    with Weir(tmp_path, rules_of(server={"http": {"address": "127.0.0.1:0", "trusted": False}}),
              http=None) as weir, weir.client() as client:
        reply = limit(client, asked)
        assert reply.status == 403 and "trusted: true" in reply.json["detail"]
        assert client.check(ip="192.0.2.1").status == 200


def test_the_metrics_count_requests_and_distinct_limits(tmp_path):
    with Weir(tmp_path, rules_of()) as weir, weir.client() as client:
        for cost in 1, 1, 5:
            limit(client, {"key": "k", "rate": "2/300d", "cost": cost})
        limit(client, {"key": "k", "rate": "3/300d"}, {"key": "l", "rate": "2/300d"})
        limit(client, {"key": "k"})
        metrics = weir.metrics()
        assert metrics["weir_adhoc_limits"] == 2
        assert {code: metrics[f'weir_requests_total{{front="http",route="limit",code="{code}"}}']
                for code in (200, 429, 400)} == {200: 3, 429: 1, 400: 1}


def test_counts_outlive_the_process_in_a_state_file(tmp_path):
    asked = [{"key": "k", **given} for given in SLOW.values() if given["algorithm"] != "concurrency"]
    asked = [{"name": f"n{number}", **given} for number, given in enumerate(asked)]
    weir = Weir(tmp_path, rules_of(state={"file": str(tmp_path / "state"), "size": "16MiB"}))
    remaining = []
    for _ in range(2):
        with weir, weir.client() as client:
            reply = limit(client, *asked)
            remaining.append([one["remaining"] for one in reply.json["limits"]])
    assert remaining[1] == [left - 1 for left in remaining[0]]


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_nodes_with_one_store_share_the_counts(tmp_path, redis, mode):
    redis.ask("FLUSHALL")
    rules = shared_rules(redis.url, mode=mode, nodes=2)
    with Nodes(tmp_path, 2, rules) as nodes, nodes[0].client() as one, nodes[1].client() as two:
        for name, given in SLOW.items():
            asked = {"key": "shared", "name": name, **given}
            replies = [limit(client, asked) for _ in range(7) for client in (one, two)]
            admitted = [reply for reply in replies if reply.status == 200]
            assert len(admitted) <= 7 and {reply.status for reply in replies} == {200, 429}
            assert mode == "leased" or len(admitted) == 7, name
            if name == "seats":  # the other node can end it
                lease = next(reply.json["lease"] for reply in replies if "lease" in reply.json)
                assert two.post("/v1/release", {"lease": lease}).json == {"released": True}
                assert limit(one, asked).status == 200
        reply = limit(one, {"key": "k", "rate": "1/1ms", "segments": 64})
        assert reply.status == 400
        assert reply.json["detail"].startswith("segments: `segments` 64: a segment is 15625 ns")
