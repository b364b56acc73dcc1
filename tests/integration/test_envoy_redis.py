"""Envoy's rate limit service with its states in Redis: shared by nodes, and what a call is told when
Redis does not answer."""

import os
import signal
import time

import grpc
import pytest

from daemon.envoy import OK, OVER_LIMIT, Service, ask, configuration, eventually, rule, tell
from daemon.grpc import Stub
from daemon.http import Client
from daemon.redis_server import RedisServer
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
    return Service(folder, {"a.yaml": CONFIG}, "--workers", 1, store={
        "redis": f"redis://127.0.0.1:{redis.port}/0", "nodes": 2, **store})


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
        value = "x" * 400  # too long to be a key's text as it stands
        assert [tell(stub, "d", f"key={value}")[0][2] for stub in (first, second)] == [9, 8]
        back = {"entries": "key=shared", "hits_addend": 100, "is_negative_hits": True}
        tell(first, "d", back)
        assert tell(second, "d", "key=shared") == [("OK", "10/HOUR", 9)]


def test_a_call_fails_where_redis_does_and_recovers_with_it(tmp_path, redis):
    """Also defect 3 of the original (it answers 400), and 10 (it has no deadline over HTTP)."""
    with start(tmp_path, redis, deadline="50ms") as service, service.stub() as stub:
        assert tell(stub, "d", "key=a")[0][0] == "OK"
        redis.signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            with pytest.raises(grpc.RpcError) as error:
                ask(stub, "d", "key=a")
            assert error.value.code() == grpc.StatusCode.UNKNOWN
            assert error.value.details() in ("the deadline passed", "the store did not answer")
            reply = service.json("d", [("key", "a")])
            assert (reply.status, reply.body) == (500, b"Internal Server Error\n")
            assert time.monotonic() - begun < 10
            # A rule may say otherwise; and what needs no store does not notice.
            assert tell(stub, "d", "unlimited=a")[0][0] == "OK"
            assert ask(stub, "d", "open=a").overall_code == OK
            assert ask(stub, "d", "closed=a").overall_code == OVER_LIMIT
            assert [ask(stub, "d", "local=a").overall_code for _ in range(6)] == (
                [OK] * 5 + [OVER_LIMIT])
            assert service.stats()["ratelimit.service.call.should_rate_limit.redis_error"] == 2

            def unhealthy():
                with pytest.raises(grpc.RpcError):
                    ask(stub, "d", "key=a")
                with service.client() as client:
                    return client.request("GET", "/healthcheck").status == 500

            eventually(unhealthy)  # 94
        finally:
            redis.signal(signal.SIGCONT)

        def healthy():
            with service.client() as client:
                return client.request("GET", "/healthcheck").status == 200

        def decided():
            try:
                return tell(stub, "d", "key=b")[0][1] == "10/HOUR"
            except grpc.RpcError:
                return False

        eventually(decided)
        eventually(healthy)
        assert stub.health("ratelimit") == 1


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
        eventually(lambda: tell(stub, "d", "key=fromenv")[0][0] == "OK")
        with Client(weir.http_address) as client:
            assert client.request("GET", "/healthcheck").status == 200
        assert any("key=fromenv" in str(key) for key in redis.keys("mine:*"))
