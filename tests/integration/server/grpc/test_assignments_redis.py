# SPDX-License-Identifier: Apache-2.0
"""Envoy's quota service over a Redis that nodes share: what Envoys may admit is charged there before
they hear of it, whichever node they ask and whatever becomes of Redis."""

import json
import time

import pytest

from daemon import grpc as wire
from daemon.nodes import Nodes, shared_rules
from daemon.redis_server import RedisServer, pause, resume
from daemon.waiting import wait_until

DAY = {"name": "day", "match": {"name": "day"}, "key": ["name"], "rate": "300/day",
       "algorithm": "fixed_window"}
BUCKET = {"name": "bucket", "match": {"name": "bucket"}, "key": ["name"], "rate": "1/hour",
          "burst": 300, "algorithm": "gcra"}
PLENTY = {"name": "plenty", "match": {"name": "plenty"}, "key": ["name"], "rate": "1000000/day",
          "algorithm": "fixed_window", "on_store_error": "local"}
FAILED = 'weir_quota_assignments_total{kind="failed"}'


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


@pytest.fixture(name="nodes", params=["exact", "leased"])
def fixture_nodes(request, tmp_path, redis):
    rules = shared_rules(redis.url, DAY, BUCKET, PLENTY, mode=request.param,
                         redis={"prefix": f"{request.param}:"})
    with Nodes(tmp_path, 2, rules, "--grpc", "127.0.0.1:0") as nodes:
        yield nodes


class Client:
    """An Envoy of one bucket with more requests than it may have: it admits what its assignments
    allow, to the last token."""

    def __init__(self, stub, name):
        self.bucket, self.quotas = {"name": name}, stub.quotas()
        self.admitted, self.tokens, self.seen = 0, 0.0, 0
        self.most = self.rate = self.filled = self.expires = 0

    def fill(self, now):
        """All that comes until `now` is used at once."""
        until = min(now, self.expires)
        if until > self.filled:
            self.tokens += self.rate * (until - self.filled)
        self.filled = now
        whole = int(self.tokens)
        self.admitted, self.tokens = self.admitted + whole, self.tokens - whole

    def step(self):
        now = time.monotonic()
        self.fill(now)
        for _, action in self.quotas.seen[self.seen:]:
            self.seen += 1
            given = action.quota_assignment_action
            strategy = given.rate_limit_strategy
            most = rate = 0
            if strategy.WhichOneof("strategy") == "token_bucket":
                most = strategy.token_bucket.max_tokens
                rate = strategy.token_bucket.tokens_per_fill.value / 10
            if (most, rate) != (self.most, self.rate):
                self.most, self.rate, self.tokens = most, rate, float(most)
            self.expires = now + given.assignment_time_to_live.seconds
            self.fill(now)

    def __enter__(self):
        self.quotas.__enter__()
        self.quotas.report(self.bucket, allowed=1000)
        return self

    def __exit__(self, *_):
        self.quotas.__exit__()


    def all(self):
        """What it can admit in all, if nothing more is assigned."""
        self.step()
        self.fill(self.expires)
        return self.admitted


@pytest.mark.parametrize("name", ["day", "bucket"])
def test_the_clients_of_two_nodes_never_exceed_the_limit_together(nodes, name):
    direct = 0
    with wire.Stub(nodes[0].grpc_address) as one, wire.Stub(nodes[1].grpc_address) as other, \
            Client(one, name) as first, Client(other, name) as second, \
            Client(other, name) as third:
        clients = first, second, third
        wait_until(lambda: all(client.quotas.seen for client in clients))
        while any(nodes.ask(i, name=name)[0] for i in (0, 1)):  # the first that has some
            direct += 1
            for client in clients:
                client.step()
    used = sum(client.all() for client in clients)
    assert used and direct and used + direct <= 300 + (name == "bucket")
    assert nodes.metric("weir_quota_charged_total") >= used


def test_an_assignment_of_one_node_is_charged_for_the_other(nodes):
    _, before = nodes.ask(1, dry_run=True, name="plenty")
    with wire.Stub(nodes[0].grpc_address) as stub, stub.quotas() as quotas:
        quotas.report({"name": "plenty"}, allowed=20)
        bucket = quotas.action({"name": "plenty"}).quota_assignment_action.rate_limit_strategy
    _, after = nodes.ask(1, dry_run=True, name="plenty")
    charged = before["plenty"]["remaining"] - after["plenty"]["remaining"]
    assert charged >= bucket.token_bucket.max_tokens + \
        bucket.token_bucket.tokens_per_fill.value * 6 // 10


# --- Without Redis -------------------------------------------------------------------------------

class Asker:
    """Reports new buckets, which are due at once."""

    def __init__(self, weir, quotas):
        self.weir, self.quotas, self.count = weir, quotas, 0

    def report(self):
        self.count += 1
        bucket = {"name": "plenty", "n": str(self.count)}
        self.quotas.report(bucket)
        return bucket

    def is_assigned(self):
        self.quotas.action(self.report())

    def fails(self):
        """A peek or a charge does, and what was answered before it has been sent."""
        before = self.weir.metrics()[FAILED]
        self.report()
        wait_until(lambda: self.weir.metrics()[FAILED] > before)
        seen = len(self.quotas.seen)
        self.report()
        wait_until(lambda: self.weir.metrics()[FAILED] > before + 1)
        assert len(self.quotas.seen) == seen


def test_without_redis_nothing_is_assigned_until_it_is_back(tmp_path):
    """Also where limits say `local`: what this node may admit alone is not charged for the others."""
    with RedisServer(tmp_path / "redis") as redis:
        rules = shared_rules(redis.url, PLENTY, deadline="100ms")
        with Nodes(tmp_path, 1, rules, "--grpc", "127.0.0.1:0") as nodes, \
                wire.Stub(nodes[0].grpc_address) as stub, stub.quotas() as quotas:
            ask = Asker(nodes[0], quotas)
            ask.is_assigned()
            pause(redis)
            ask.fails()
            resume(redis)
            ask.is_assigned()
            redis.kill()
            ask.fails()
            redis.start()
            ask.is_assigned()


def test_streams_end_while_their_charges_are_in_flight(tmp_path, redis):
    rules = shared_rules(redis.url, PLENTY, redis={"prefix": "ends:"})
    with Nodes(tmp_path, 1, rules, "--grpc", "127.0.0.1:0") as nodes:
        weir = nodes[0]
        pause(redis)
        for whole_connection in (False, True):
            with wire.Stub(weir.grpc_address) as stub:
                with stub.quotas() as quotas:
                    before = weir.metrics()["weir_store_calls_total"]
                    quotas.report(*({"name": "plenty", "n": str(n)} for n in range(100)))
                    wait_until(lambda: weir.metrics()["weir_quota_buckets"] == 100)
                    wait_until(lambda: weir.metrics()["weir_store_calls_total"] > before)
                    if whole_connection:
                        stub.channel.close()
                wait_until(lambda: weir.metrics()["weir_quota_streams"] == 0)
        resume(redis)
        with wire.Stub(weir.grpc_address) as stub, stub.quotas() as quotas:
            quotas.report({"name": "plenty"})
            quotas.action({"name": "plenty"})


def test_many_buckets_of_one_limit_and_of_many(tmp_path, redis):
    """More than are in flight at a time; those of one limit follow each other."""
    one = {"name": "one", "match": {"name": "one"}, "key": [], "rate": "1000000/day",
           "algorithm": "fixed_window"}
    each = {"name": "each", "match": {"name": "each"}, "key": ["n"], "rate": "1000/day",
            "algorithm": "fixed_window"}
    rules = shared_rules(redis.url, one, each, redis={"prefix": "many:"})
    with Nodes(tmp_path, 1, rules, "--grpc", "127.0.0.1:0", workers=2) as nodes, \
            wire.Stub(nodes[0].grpc_address) as stub, stub.quotas() as quotas, \
            stub.quotas() as others:
        buckets = [{"name": name, "n": str(n)} for name in ("one", "each") for n in range(150)]
        for stream in quotas, others:
            stream.report(*buckets)
        for stream in quotas, others:
            wait_until(lambda stream=stream: len(stream.actions) == len(buckets))
        kinds = {action.quota_assignment_action.rate_limit_strategy.WhichOneof("strategy")
                 for action in quotas.actions.values()}
        assert kinds == {"token_bucket"}


# --- Regions -------------------------------------------------------------------------------------

def test_a_region_assigns_its_own_part_and_borrows_nothing(tmp_path):
    limit = {"name": "day", "key": ["name"], "rate": "50/300d", "algorithm": "fixed_window",
             "on_store_error": "closed", "global": {"floor": "10%", "home": "us"}}
    with RedisServer(tmp_path / "eu") as own, RedisServer(tmp_path / "us") as home:
        rules = json.dumps({
            "version": 1, "store": {"nodes": 1, "deadline": "5s"}, "limits": [limit],
            "regions": {"self": "eu", "eu": {"redis": {"url": own.url}},
                        "us": {"redis": {"url": home.url}}}})
        with Nodes(tmp_path, 1, rules, "--grpc", "127.0.0.1:0") as nodes, \
                wire.Stub(nodes[0].grpc_address) as stub, stub.quotas() as quotas:
            quotas.report(*({"name": "a", "n": str(n)} for n in range(20)))
            wait_until(lambda: len(quotas.actions) == 20)
            kinds = [action.quota_assignment_action.rate_limit_strategy.WhichOneof("strategy")
                     for action in quotas.actions.values()]
            # The floor is 5, and the home has all of its 45.
            assert kinds.count("token_bucket") == 5 and kinds.count("blanket_rule") == 15
            assert nodes.metric("weir_quota_charged_total") == 5
            assert home.states() == []
