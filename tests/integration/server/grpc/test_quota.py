# SPDX-License-Identifier: Apache-2.0
"""Envoy's quota service: streams of reports and assignments, over the states that all front ends
use."""

import json

import grpc
import pytest

from daemon import frames, grpc as wire
from daemon.proxies import free_port
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

LIMITS = [
    {"name": "web", "match": {"name": "web"}, "key": ["domain", "name"],
     "rate": "86400/day", "algorithm": "fixed_window"},
    {"name": "bucket", "match": {"name": "bucket"}, "key": ["name"],
     "rate": "3600/hour", "algorithm": "gcra", "burst": 1000},
    {"name": "tight", "match": {"name": "tight"}, "key": ["name"],
     "rate": "1/day", "algorithm": "fixed_window"},
    {"name": "fast", "match": {"name": ["fast", "steady"]}, "key": ["name"],
     "rate": "60000/min", "algorithm": "gcra"},
    {"name": "second", "match": {"name": "second"}, "key": ["name"],
     "rate": "100/s", "algorithm": "fixed_window"},
]
WEB, BUCKET, TIGHT, FAST, STEADY, SECOND, FREE = (
    {"name": name} for name in ("web", "bucket", "tight", "fast", "steady", "second", "free"))


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    with Weir(tmp_path, rules_of(*LIMITS), "--grpc", "127.0.0.1:0") as weir:
        yield weir


@pytest.fixture(name="stub")
def fixture_stub(weir):
    with wire.Stub(weir.grpc_address) as stub:
        yield stub


def tokens(action):
    """max_tokens and tokens_per_fill of an assignment."""
    strategy = action.quota_assignment_action.rate_limit_strategy
    assert strategy.WhichOneof("strategy") == "token_bucket"
    bucket = strategy.token_bucket
    assert (bucket.fill_interval.seconds, bucket.fill_interval.nanos) == (10, 1)
    assert 1 <= action.quota_assignment_action.assignment_time_to_live.seconds <= 5
    return bucket.max_tokens, bucket.tokens_per_fill.value


def denies(action):
    strategy = action.quota_assignment_action.rate_limit_strategy
    return strategy.WhichOneof("strategy") == "blanket_rule" and strategy.blanket_rule == 1


def left(weir, bucket, **more):
    """What another front end sees of the bucket's limit; it takes 1."""
    reply = weir.check(attributes={**bucket, **more})
    return reply.json["limits"][0]["remaining"] if reply.status == 200 else 0


def follow(stub, bucket, holds, **use):
    """Reports a bucket until something holds of its stream. Like Envoy it opens a new stream where
    weir has reset one: this machine may be too busy to answer a PING in a second."""
    while True:
        with stub.quotas() as quotas:
            quotas.report(bucket, **use)
            wait_until(lambda: holds(quotas) or quotas.error)
            if not quotas.error:
                return
            assert quotas.error.code() == grpc.StatusCode.CANCELLED


# --- Assignments ---------------------------------------------------------------------------------

def test_an_assignment_is_charged_where_other_front_ends_count(weir, stub):
    assert left(weir, WEB, domain="shop") == 86399
    with stub.quotas() as quotas:
        quotas.report(WEB, allowed=20)  # in a second: 22.6 are asked for
        most, per_fill = tokens(quotas.action(WEB))
        assert per_fill == 226 and most == 3
        charged = 86399 - 1 - left(weir, WEB, domain="shop")
        # Never less than all that it admits in 6 s; a renewal adds half a life each time.
        assert charged >= most + per_fill * 6 // 10
        assert weir.metrics()["weir_quota_charged_total"] >= charged


def test_an_assignment_is_renewed_by_itself(stub):
    follow(stub, WEB, lambda quotas: len(quotas.seen) >= 3, allowed=20)


def test_a_bucket_is_charged_as_of_the_end_of_the_assignment(weir, stub):
    with stub.quotas() as quotas:
        quotas.report(BUCKET, allowed=10)
        most, per_fill = tokens(quotas.action(BUCKET))
        used = 1000 - 1 - left(weir, BUCKET)
        assert used >= most + per_fill * 6 // 10 + 5  # and 6 s of refilling, less a tick


def test_what_is_used_up_is_denied(weir, stub):
    with stub.quotas() as quotas:
        quotas.report(TIGHT, allowed=0, denied=5)
        assert tokens(quotas.action(TIGHT)) == (1, 1)  # 1 and 0.6: a whole request
    follow(stub, TIGHT, lambda quotas: denies(quotas.action(TIGHT)), denied=5)
    assert weir.check(attributes=TIGHT).status == 429


def test_calls_and_quotas_share_a_limit(weir, stub):
    assert weir.check(attributes=TIGHT).status == 200
    with stub.quotas() as quotas:
        quotas.report(TIGHT)
        assert denies(quotas.action(TIGHT))


def test_two_clients_of_one_bucket_divide_it(weir, stub):
    before = left(weir, WEB, domain="shop")
    with stub.quotas() as one, stub.quotas() as other:
        for quotas in one, other:
            quotas.report(WEB, allowed=2000)
        given = [wait_until(lambda quotas=quotas: tokens(quotas.action(WEB)))
                 for quotas in (one, other)]
        assert all(rate > 0 for _, rate in given)
        # What both may admit has been charged, beside the look itself.
        assert before - left(weir, WEB, domain="shop") >= sum(most for most, _ in given)


def test_no_limit_allows_all_and_a_limit_too_short_is_not_assigned(weir, stub):
    with stub.quotas() as quotas:
        quotas.report(SECOND, FREE)
        strategy = quotas.action(FREE).quota_assignment_action.rate_limit_strategy
        assert strategy.WhichOneof("strategy") == "blanket_rule" and strategy.blanket_rule == 0
        wait_until(lambda: weir.metrics()['weir_quota_assignments_total{kind="unassignable"}'] >= 1)
        assert (("name", "second"),) not in quotas.actions


def test_a_broken_stream_gives_nothing_back(weir, stub):
    with stub.quotas() as quotas:
        quotas.report(WEB, allowed=20)
        quotas.action(WEB)
        before = left(weir, WEB, domain="shop")
    wait_until(lambda: weir.metrics()["weir_quota_streams"] == 0)
    assert left(weir, WEB, domain="shop") < before
    assert weir.metrics()["weir_quota_buckets"] == 0


def test_a_new_bucket_gets_a_quarter_of_its_limits(stub):
    with stub.quotas() as quotas:
        quotas.report(FAST)  # one request, as Envoy reports a new bucket
        assert tokens(quotas.action(FAST)) == (26, 2500)
    with stub.quotas() as quotas:
        quotas.report(STEADY, elapsed=5)  # one in 5 s: Envoy had the bucket before the stream
        assert tokens(quotas.action(STEADY)) == (1, 3)


# --- Refused -------------------------------------------------------------------------------------

@pytest.mark.parametrize("bucket, domain, code", [
    ({"name": "web"}, "", grpc.StatusCode.INVALID_ARGUMENT),
    ({"name": "web"}, "d" * 300, grpc.StatusCode.INVALID_ARGUMENT),
    ({}, "shop", grpc.StatusCode.INTERNAL),
    ({"": "web"}, "shop", grpc.StatusCode.INTERNAL),
    ({"name": "w" * 3000}, "shop", grpc.StatusCode.INVALID_ARGUMENT),
    ({f"k{i}": "" for i in range(33)}, "shop", grpc.StatusCode.INVALID_ARGUMENT),
], ids=["no domain", "long domain", "no entry", "no key", "long id", "many entries"])
def test_reports_that_break_a_bound_end_the_stream(stub, bucket, domain, code):
    with stub.quotas() as quotas:
        quotas.report(bucket, domain=domain)
        assert quotas.ended()[0] == code


def test_a_stream_keeps_its_domain(stub):
    with stub.quotas() as quotas:
        quotas.report(WEB)
        quotas.report(FREE, domain="")  # the first one's
        quotas.action(FREE)
    with stub.quotas() as quotas:
        quotas.report(WEB)
        quotas.report(WEB, domain="other")
        assert quotas.ended()[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_more_buckets_than_there_is_room_for_end_the_stream(weir, stub):
    """Of a limit that is not assigned: they have no answers, which a slow client might not read."""
    with stub.quotas() as quotas:
        for first in range(0, 17000, 1000):
            quotas.report(*(SECOND | {"n": str(n)} for n in range(first, first + 1000)))
        assert quotas.ended() == (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many buckets")
    wait_until(lambda: weir.metrics()["weir_quota_buckets"] == 0)


def test_sticky_nodes_serve_no_quotas(tmp_path):
    own = f"127.0.0.1:{free_port()}"
    (tmp_path / "peers").write_text(f"a redis://{own}\n", encoding="utf-8")
    rules = json.dumps({
        "version": 1, "server": {"redis": {"address": own, "token": "token-of-nodes"}},
        "limits": [{"name": "user", "key": ["user"], "rate": "60/min"}],
        "sticky": {"by": "user", "self": "a", "peers": "peers", "token": "token-of-nodes"}})
    with Weir(tmp_path, rules, "--grpc", "127.0.0.1:0") as weir, \
            wire.Stub(weir.grpc_address) as stub, stub.quotas() as quotas:
        quotas.report(WEB)
        code, details = quotas.ended()
        assert code == grpc.StatusCode.UNIMPLEMENTED and "`sticky`" in details


# --- PINGs ---------------------------------------------------------------------------------------

PATH = f"/{wire.QUOTA}.RateLimitQuotaService/StreamRateLimitQuotas"


def reports():
    message = wire.QuotaReports(domain="shop")
    message.bucket_quota_usages.add(num_requests_allowed=5).bucket_id.bucket["name"] = "web"
    return frames.prefixed(message.SerializeToString())


def test_a_ping_that_is_not_answered_ends_the_stream(weir):
    with frames.Frames(weir.grpc_address) as connection:
        connection.send(frames.frame(frames.HEADERS, frames.END_HEADERS, 1, frames.head(PATH)) +
                        frames.frame(frames.DATA, 0, 1, reports()))
        seen = []
        while frames.RST_STREAM not in seen:
            kind, flags, _, _ = connection.read()
            seen.append(kind)
            assert kind != frames.PING or not flags & frames.ACK
        # It is behind the assignment, and nothing is assigned after it.
        assert [kind for kind in seen if kind in (frames.DATA, frames.PING)] == [frames.DATA,
                                                                                frames.PING]
    assert weir.metrics()['weir_quota_assignments_total{kind="unanswered"}'] == 1
    assert weir.metrics()["weir_quota_streams"] == 0
