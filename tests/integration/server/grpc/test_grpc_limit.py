# SPDX-License-Identifier: Apache-2.0
"""weir.v1.Limiter: limits in the call decide as those of POST /v1/limit, by a real gRPC client."""

import random
import threading

import grpc
import pytest

from daemon.grpc import LimitRequest, Stub
from daemon.nodes import Nodes, shared_rules
from daemon.proxies import free_port
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of

# Long windows: no border of one falls into a test.
LIMITS = {
    "fixed": {"algorithm": "fixed_window", "rate": "7/300d"},
    "sliding": {"algorithm": "sliding_window", "rate": "7/300d"},
    "segments": {"algorithm": "sliding_window", "rate": "7/300d", "segments": 60, "strict": True},
    "log": {"algorithm": "sliding_log", "rate": "7/300d"},
    "default": {"rate": "7/300d"},
    "token": {"algorithm": "token_bucket", "rate": "1/30d", "burst": 7},
    "gcra": {"algorithm": "gcra", "rate": "1/30d burst 7"},
    "leaky": {"algorithm": "leaky_bucket", "rate": "1/30d", "burst": 7},
    "queue": {"algorithm": "leaky_bucket", "rate": "1/30d", "burst": 6, "queue": True},
    "seats": {"algorithm": "concurrency", "limit": 7, "life": "1h"},
    "none": {"algorithm": "concurrency", "limit": 0},
}
NEVER = 2**64 - 1


@pytest.fixture(name="weir", scope="module")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limit")
    with Weir(folder, rules_of(server={"grpc": "127.0.0.1:0"})) as running:
        yield running


@pytest.fixture(name="stub")
def fixture_stub(weir):
    with Stub(weir.grpc_address) as stub:
        yield stub


def limit(stub, *limits, dry_run=False):
    return stub.call("Limit", LimitRequest(limits=limits, dry_run=dry_run))


def status_of(call):
    with pytest.raises(grpc.RpcError) as error:
        call()
    return error.value.code(), error.value.details()


def test_calls_decide_as_requests_over_http(weir, stub):
    """Each protocol has keys of its own, which are used in the same way. Times to a reset are apart
    by what passes between the two."""
    dice, seen = random.Random(16), set()
    with weir.client() as client:
        for _ in range(600):
            name, cost = dice.choice(sorted(LIMITS)), dice.choice([0, 1, 1, 1, 2, 3, 10])
            key, dry_run = f"k{dice.randrange(2)}", dice.random() < 0.1
            asked = {"name": name, "cost": cost, **LIMITS[name]}
            answer = limit(stub, {"key": "grpc:" + key, **asked}, dry_run=dry_run)
            other = client.post("/v1/limit", {"key": "http:" + key, "dry_run": dry_run, **asked}).json
            assert answer.allowed == other["allowed"], (name, cost)
            assert answer.denied_by == (other["denied_by"] or "")
            assert bool(answer.lease) == ("lease" in other)
            [one], [two] = answer.limits, other["limits"]
            for field in "name", "algorithm", "allowed", "cost", "limit", "remaining":
                assert getattr(one, field) == two[field], (name, field)
            for field in "retry_after_ms", "reset_after_ms":
                value, wanted = getattr(one, field), two[field]
                assert value == NEVER if wanted is None else (value == 0) == (wanted == 0), name
            assert (answer.delay_ms > 0) == (other["delay_ms"] > 0)
            seen.add((name, answer.allowed))
    assert seen >= {(name, True) for name in LIMITS} | {(name, False) for name in LIMITS}


def test_counts_of_one_key_are_the_same_over_http(weir, stub):
    asked = {"key": "both", "rate": "3/300d", "algorithm": "sliding_log"}
    with weir.client() as client:
        assert client.post("/v1/limit", asked).json["limits"][0]["remaining"] == 2
        assert limit(stub, asked).limits[0].remaining == 1
        lease = limit(stub, {"key": "both", "algorithm": "concurrency", "limit": 1}).lease
        assert client.post("/v1/release", {"lease": lease}).json == {"released": True}
        assert limit(stub, {"key": "both", "algorithm": "concurrency", "limit": 1}).allowed


def test_several_limits_are_charged_all_or_none(stub):
    both = [{"key": "user", "rate": "5/300d"}, {"key": "org", "rate": "2/300d", "cost": 1}]
    answers = [limit(stub, *both) for _ in range(4)]
    assert [answer.allowed for answer in answers] == [True, True, False, False]
    assert answers[3].denied_by == "limit-1" and answers[3].retry_after_ms > 0
    assert [one.name for one in answers[3].limits] == ["limit-0", "limit-1"]
    assert [one.remaining for one in answers[3].limits] == [3, 0]
    most = [{"key": f"m{number}", "rate": "1/300d"} for number in range(32)]
    assert limit(stub, *most).allowed and not limit(stub, *most[31:]).allowed
    assert limit(stub, *most, dry_run=True).denied_by == "limit-0"


@pytest.mark.parametrize("limits, says", [
    ([], "limits: is empty; give 1 to 32"),
    ([{"rate": "1/s"}], "limits[0].key: is missing"),
    ([{"key": "k"}], "limits[0].rate: is missing, as in 100/min"),
    ([{"key": "k", "rate": "1/s"}, {"key": "l", "rate": "10"}],
     "limits[1].rate: `10` is not a rate; write N/unit, as in 100/min or 5/10s"),
    ([{"key": "k", "rate": "1/s", "burst": 2}],
     "limits[0].burst: belongs to token_bucket, gcra and leaky_bucket, not to sliding_window"),
    ([{"key": "k", "rate": "1/s", "name": "Ä"}],
     "limits[0].name: must be 1 to 64 of a-z, 0-9, '.', '_', '-'"),
    ([{"key": "k", "algorithm": "concurrency"}],
     "limits[0].limit: is missing: how many may be in flight"),
    ([{"key": "k", "rate": "1/s"}] * 2, "limits[1]: the same key, algorithm and period as number 0; "
     "give one of them a `name`"),
    ([{"key": f"k{number}", "rate": "1/s"} for number in range(33)], "limits: more than 32"),
])
def test_wrong_limits_are_named_and_charge_nothing(stub, limits, says):
    assert status_of(lambda: limit(stub, *limits)) == (grpc.StatusCode.INVALID_ARGUMENT, says)


def test_only_trusted_listeners_serve_it(tmp_path):
    server = {"grpc": {"address": "127.0.0.1:0", "trusted": False}}
    with Weir(tmp_path, rules_of(server=server)) as weir, Stub(weir.grpc_address) as stub:
        for asked in {"key": "k", "rate": "1/h"}, {"key": ""}:
            code, details = status_of(lambda asked=asked: limit(stub, asked))
            assert code == grpc.StatusCode.PERMISSION_DENIED
            assert "`trusted: true` under server.grpc" in details


def test_eight_clients_never_get_more_than_the_limit(weir):
    admitted = []

    def run():
        with Stub(weir.grpc_address) as stub:
            for _ in range(20):
                admitted.append(limit(stub, {"key": "shared", "rate": "7/300d"},
                                      {"key": "other", "rate": "1000/300d"}).allowed)

    clients = [threading.Thread(target=run) for _ in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(SECONDS_MAX)
    assert len(admitted) == 160 and admitted.count(True) == 7
    with Stub(weir.grpc_address) as stub:
        assert limit(stub, {"key": "other", "rate": "1000/300d", "cost": 0}).limits[0].remaining == 993


def test_calls_are_counted(weir, stub):
    name = 'weir_grpc_calls_total{method="limit",code="%d"}'
    before = weir.metrics()
    limit(stub, {"key": "counted", "rate": "1/300d"})
    status_of(lambda: limit(stub))
    after = weir.metrics()
    for code in 0, 3:
        assert after[name % code] == before.get(name % code, 0) + 1


def test_nodes_with_one_store_share_the_counts(tmp_path, redis):
    redis.ask("FLUSHALL")
    asked = {"key": "shared", "rate": "7/300d"}
    rules = shared_rules(redis.url, nodes=2, server={"grpc": "127.0.0.1:0"})
    with Nodes(tmp_path, 2, rules) as nodes, Stub(nodes[0].grpc_address) as one, \
            Stub(nodes[1].grpc_address) as two:
        assert [limit(stub, asked).allowed for _ in range(5) for stub in (one, two)].count(True) == 7


def test_a_store_that_does_not_answer_is_unavailable(tmp_path):
    rules = shared_rules(f"redis://127.0.0.1:{free_port()}",
                         store={"on_store_error": "closed"},
                         server={"grpc": "127.0.0.1:0"})
    with Weir(tmp_path, rules) as weir, Stub(weir.grpc_address) as stub:
        code, details = status_of(lambda: limit(stub, {"key": "k", "rate": "1/300d"}))
        assert (code, details) == (grpc.StatusCode.UNAVAILABLE, "the store does not answer")
