# SPDX-License-Identifier: Apache-2.0
"""Envoy's rate limit service with its states in Redis: shared by nodes, and what a call gets when
Redis does not answer."""

import os
import signal
import time

import grpc
import pytest

from daemon.envoy import (OK, OVER_LIMIT, Service, ask, begin_window, configuration,
                          rule, tell)
from daemon.frames import PING, RST_STREAM, Frames, frame, request
from daemon.grpc import RATE_LIMIT, RateLimitRequest, Stub
from daemon.http import Client
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import weir_path

CONFIG = configuration(
    "d", rule("key", "hour", 10), rule("unlimited", limit={"unlimited": True}),
    rule("gcra", "hour", 60, weir={"algorithm": "gcra", "burst": 5}),
    rule("open", "hour", 10, weir={"on_store_error": "open"}),
    rule("closed", "hour", 10, weir={"on_store_error": "closed"}),
    rule("local", "hour", 10, weir={"on_store_error": "local"}))


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis")) as running:
        yield running


def start(folder, redis, **store):
    return Service(folder, {"a.yaml": CONFIG}, "--workers", 1, store=store_of(redis, **store))


def store_of(redis, **store):
    """The deadline is long, so that a slow machine fails no test that is about something else."""
    return {"redis": f"redis://127.0.0.1:{redis.port}/0", "nodes": 2, "deadline": "5s", **store}


RATE_LIMIT_SERVICE = f"{RATE_LIMIT}.RateLimitService"
SERVING, NOT_SERVING = 1, 2


def health(service, stub):
    """What probes get: of liveness, of readiness."""
    with service.client() as client:
        alive = client.request("GET", "/healthcheck").status
    with service.admin() as admin:
        ready = admin.request("GET", "/readyz").status
    names = "ratelimit", "", RATE_LIMIT_SERVICE
    return alive, ready, [stub.health(name) for name in names]


def answered(stub, descriptor):
    """What the answer says of it; None where the call failed."""
    try:
        return tell(stub, "d", descriptor)[0]
    except grpc.RpcError:
        return None


def test_nodes_share_what_they_count(tmp_path, redis):
    for name in "one", "two":
        (tmp_path / name).mkdir()
    with start(tmp_path / "one", redis) as one, start(tmp_path / "two", redis) as two, \
            one.stub() as first, two.stub() as second:
        for i in range(10):
            assert tell((first, second)[i % 2], "d", "key=shared") == [("OK", "10/HOUR", 9 - i)]
        for stub in first, second:
            assert tell(stub, "d", "key=shared") == [("OVER", "10/HOUR", 0)]
        assert [ask(stub, "d", "gcra=x").statuses[0].limit_remaining
                for stub in (first, second)] == [4, 3]
        value = "x" * 400  # too long to be a key's text unchanged
        assert [tell(stub, "d", f"key={value}")[0][2] for stub in (first, second)] == [9, 8]
        back = {"entries": "key=shared", "hits_addend": 100, "is_negative_hits": True}
        tell(first, "d", back)
        assert tell(second, "d", "key=shared") == [("OK", "10/HOUR", 9)]


def test_a_call_fails_where_redis_does_and_recovers_with_it(tmp_path, redis):
    """Also defect 3 of the original (it answers 400), and 10 (it has no deadline over HTTP)."""
    with Service(tmp_path, {"a.yaml": CONFIG}, "--workers", 1, healthy_with_store=True,
                 store=store_of(redis, deadline="50ms")) as service, service.stub() as stub:
        errors = "ratelimit.service.call.should_rate_limit.redis_error"
        wait_until(lambda: answered(stub, "key=a"))
        before = service.stats().get(errors, 0)
        redis.signal(signal.SIGSTOP)
        try:
            with pytest.raises(grpc.RpcError) as error:
                ask(stub, "d", "key=a")
            assert error.value.code() == grpc.StatusCode.UNKNOWN
            assert error.value.details() in ("the deadline passed", "the store did not answer")
            reply = service.json("d", [("key", "a")])
            assert (reply.status, reply.body) == (500, b"Internal Server Error\n")
            # A rule may say otherwise; and what needs no store does not notice.
            assert tell(stub, "d", "unlimited=a")[0][0] == "OK"
            assert ask(stub, "d", "open=a").overall_code == OK
            assert ask(stub, "d", "closed=a").overall_code == OVER_LIMIT
            assert [ask(stub, "d", "local=a").overall_code for _ in range(6)] == (
                [OK] * 5 + [OVER_LIMIT])
            assert service.stats()[errors] == before + 2

            def unhealthy():
                with pytest.raises(grpc.RpcError):
                    ask(stub, "d", "key=a")
                with service.client() as client:
                    return client.request("GET", "/healthcheck").status == 500

            wait_until(unhealthy)  # 94
        finally:
            redis.signal(signal.SIGCONT)

        def healthy():
            with service.client() as client:
                return client.request("GET", "/healthcheck").status == 200

        wait_until(lambda: answered(stub, "key=b"))
        wait_until(healthy)
        assert stub.health("ratelimit") == 1


@pytest.mark.parametrize("failure", ["fail", "closed", "open", "local"])
def test_a_store_that_is_lost_makes_a_node_unready_and_not_dead(tmp_path, failure):
    """As in the original: healthy from the first contact on, whatever Redis does then. A probe of
    liveness must not restart every pod for a Redis that is away."""
    config = configuration("d", rule("key", "hour", 10))
    with RedisServer(tmp_path / "redis") as redis:
        port = redis.port
        redis.kill()
        with Service(tmp_path, {"a.yaml": config}, "--workers", 2, store=store_of(redis),
                     on_store_error=failure) as service, service.stub() as stub:
            never = 503 if failure in ("fail", "closed") else 200
            own = SERVING  # the rules have no limit
            assert health(service, stub) == (500, never, [NOT_SERVING, own, NOT_SERVING])
            redis.start()
            assert redis.port == port
            up = 200, 200, [SERVING, own, SERVING]
            wait_until(lambda: health(service, stub) == up)
            redis.kill()
            wait_until(lambda: service.metrics()["weir_store_up"] == 0)
            decides = SERVING if never == 200 else NOT_SERVING
            assert health(service, stub) == (200, never, [SERVING, own, decides])
            redis.start()
            wait_until(lambda: health(service, stub) == up)


def test_health_may_need_a_store_that_is_reached_now(tmp_path):
    """REDIS_HEALTH_CHECK_ACTIVE_CONNECTION."""
    with RedisServer(tmp_path / "redis") as redis:
        with Service(tmp_path, {"a.yaml": CONFIG}, "--workers", 2, store=store_of(redis),
                     healthy_with_store=True) as service, service.stub() as stub:
            wait_until(lambda: health(service, stub)[0] == 200)
            redis.kill()
            wait_until(lambda: health(service, stub)[0] == 500)
            assert stub.health("ratelimit") == NOT_SERVING
            redis.start()
            wait_until(lambda: health(service, stub)[0] == 200)


def test_an_override_counts_with_the_rule_and_with_other_overrides(tmp_path, redis):
    """As in the original, where all of them are one key."""
    one, other = ({"entries": "key=over", "limit": (requests, 3)} for requests in (8, 20))
    with start(tmp_path, redis) as service, service.stub() as stub:
        wait_until(lambda: answered(stub, "key=before"))
        assert tell(stub, "d", one) == [("OK", "8/HOUR", 7)]
        assert tell(stub, "d", "key=over") == [("OK", "10/HOUR", 8)]
        assert tell(stub, "d", one, other, "key=over", "key=over") == [
            ("OK", "8/HOUR", 5), ("OK", "20/HOUR", 16), ("OK", "10/HOUR", 5), ("OK", "10/HOUR", 4)]


def wait_for_redis(service, calls):
    """A connection whose calls all wait for a Redis that is silent."""
    connection = Frames(service.grpc_address)
    for i in range(calls):
        message = RateLimitRequest(domain="d")
        for key in "key", "gcra":
            one = message.descriptors.add(is_negative_hits=i % 4 == 0)
            one.entries.add(key=key, value=f"v{i}")
        connection.send(request(2 * i + 1, message.SerializeToString(),
                                f"/{RATE_LIMIT}.RateLimitService/ShouldRateLimit"))
    connection.send(frame(PING, 0, 0, b"all read"))
    assert connection.read_until(PING) is not None
    return connection


def test_calls_that_are_taken_back_while_redis_is_silent_leave_nothing(tmp_path, redis):
    """By resets and by ends of connections; in all more calls than a worker has decisions."""
    with start(tmp_path, redis, deadline="10s") as service, service.stub() as stub:
        wait_until(lambda: answered(stub, "key=before"))
        redis.signal(signal.SIGSTOP)
        try:
            for limit in 10, 11, 12:  # what they would hear of is gone by then
                waiting = [wait_for_redis(service, 100) for _ in range(16)]
                service.write("a.yaml", CONFIG.replace('"requests_per_unit": 10}',
                                                       f'"requests_per_unit": {limit}}}'))
                for i, connection in enumerate(waiting):
                    if i % 2:
                        for stream in range(1, 200, 2):
                            connection.send(frame(RST_STREAM, 0, stream, bytes(4)))
                        connection.send(frame(PING, 0, 0, b"and back"))
                        assert connection.read_until(PING) is not None
                    connection.socket.close()
        finally:
            redis.signal(signal.SIGCONT)
        wait_until(lambda: answered(stub, "key=after"))
        assert service.metrics()["weir_decisions_exhausted_total"] == 0


def test_the_originals_variables_lead_to_redis(tmp_path, redis):
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "a.yaml").write_text(configuration("d", rule("key", "hour", 10)))
    weir = Weir(tmp_path)
    weir.command = [weir_path(), "envoy", "--workers", "1"]
    weir.env = {**os.environ, "HOST": "127.0.0.1", "PORT": "0", "GRPC_HOST": "127.0.0.1",
                "GRPC_PORT": "0", "DEBUG_HOST": "127.0.0.1", "DEBUG_PORT": "0",
                "DISABLE_STATS": "true", "RUNTIME_ROOT": str(tmp_path),
                "REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": f"127.0.0.1:{redis.port}",
                "CACHE_KEY_PREFIX": "mine:"}
    with weir, Stub(weir.grpc_address) as stub:
        wait_until(lambda: answered(stub, "key=fromenv"))
        with Client(weir.http_address) as client:
            assert client.request("GET", "/healthcheck").status == 200
        assert any("key=fromenv" in str(key) for key in redis.keys("mine:*"))


# --- Beside the original -------------------------------------------------------------------------

class Original:
    """What envoyproxy/ratelimit does to its counters: INCRBY and EXPIRE."""

    def __init__(self, redis, prefix=""):
        self.redis, self.prefix = redis, prefix

    def key(self, domain, *parts, unit_s=3600):
        window = int(time.time()) // unit_s * unit_s
        return f"{self.prefix}{domain}_" + "".join(f"{part}_" for part in parts) + str(window)

    def hit(self, key, hits=1, unit_s=3600):
        after = self.redis.ask("INCRBY", key, hits)
        self.redis.ask("EXPIRE", key, unit_s + 17)
        return after


@pytest.mark.parametrize("prefix", ["", "mine:"])
def test_the_original_and_weir_count_together(tmp_path, redis, prefix):
    begin_window("HOUR", 20)
    original = Original(redis, prefix)
    envoy = {"redis_compat": True, **({"redis_prefix": prefix} if prefix else {})}
    files = {"a.yaml": configuration(
        "compat", rule("key", "hour", 10),
        rule("files", None, None, rule("user", "hour", 3), value="a*", share_threshold=True),
        rule("shadow", "hour", 1, shadow_mode=True),
        rule("gcra", "hour", 60, weir={"algorithm": "gcra", "burst": 5}))}
    with Service(tmp_path, files, "--workers", 1, store=store_of(redis), **envoy) as service, \
            service.stub() as stub:
        key = original.key("compat", "key", "x")
        assert original.hit(key, 4) == 4
        assert tell(stub, "compat", "key=x", hits_addend=2) == [("OK", "10/HOUR", 4)]
        assert 0 < redis.ask("TTL", key) <= 3600
        assert original.hit(key) == 7
        assert tell(stub, "compat", {"entries": "key=x", "hits_addend": 0}) == [
            ("OK", "10/HOUR", 3)]
        assert tell(stub, "compat", "key=x", "key=x", hits_addend=2) == [
            ("OK", "10/HOUR", 1), ("OVER", "10/HOUR", 0)]
        assert original.hit(key) == 12  # what was denied was counted, as the original would have
        assert service.counts("compat.key") == {"total_hits": 6, "within_limit": 4, "over_limit": 1,
                                                "near_limit": 2}
        back = {"entries": "key=x", "hits_addend": 5, "is_negative_hits": True}
        assert tell(stub, "compat", back) == [("OK", "10/HOUR", 3)]
        assert original.hit(key) == 8
        # Patterns, several entries, overrides; and weir's own limits in keys of its own.
        assert original.hit(original.key("compat", "files", "a*", "user", "u"), 2) == 2
        override = {"entries": "any=thing", "limit": (7, 3)}
        original.hit(original.key("compat", "any", "thing"), 5)
        assert tell(stub, "compat", "files=abc,user=u", override, "gcra=x", "shadow=x") == [
            ("OK", "3/HOUR", 0), ("OK", "7/HOUR", 1), ("OK", "60/HOUR", 4), ("OK", "1/HOUR", 0)]
        assert tell(stub, "compat", "files=abd,user=u", "shadow=x") == [
            ("OVER", "3/HOUR", 0), ("OK", "1/HOUR", 0)]
        names = {name for name in redis.keys(f"{prefix}compat_*")}
        assert names == {original.key("compat", *parts) for parts in (
            ("key", "x"), ("files", "a*", "user", "u"), ("any", "thing"), ("shadow", "x"))}
        # A value that is no number is an error of the call, and ends nothing.
        redis.ask("SET", original.key("compat", "key", "wrong"), "text")
        with pytest.raises(grpc.RpcError) as error:
            ask(stub, "compat", "key=wrong")
        assert error.value.code() == grpc.StatusCode.UNKNOWN
        assert tell(stub, "compat", "key=y") == [("OK", "10/HOUR", 9)]
        redis.ask("FLUSHALL")
