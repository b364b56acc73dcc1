# SPDX-License-Identifier: Apache-2.0
"""Costs that requests say, and limits of several rates, as HTTP, the Redis protocol, gRPC and the
admin listener tell them."""

import json

import grpc
import pytest

from daemon import grpc as wire
from daemon.grpc import Stub
from daemon.redis import Error, RedisWeir
from daemon.weir import rules_of

TOKENS = {"name": "tokens", "match": {"path": "/complete"}, "key": ["client.ip"],
          "algorithm": "fixed_window", "rate": "10000/300d",
          "cost": {"from": "header.x-tokens", "default": 7, "min": 1, "max": 1000}}
LENIENT = {"name": "lenient", "match": {"path": "/lenient"}, "key": ["client.ip"],
           "algorithm": "fixed_window", "rate": "10000/300d",
           "cost": {"from": "header.x-tokens", "default": 7, "max": 1000, "on_bad": "default"}}
ROUTES = {"name": "routes", "match": {"path": "/r/**"}, "key": ["client.ip"],
          "algorithm": "fixed_window", "rate": "10000/300d",
          "cost": {"/r/search": 20, "POST /r/export/:id": 100, "default": 2}}
BESIDE = {"name": "beside", "match": {"path": ["/complete", "/lenient", "/r/**"]},
          "key": ["client.ip"], "algorithm": "fixed_window", "rate": "10000/300d"}
SEVERAL = {"name": "several", "match": {"path": "/several"}, "key": ["user"],
           "algorithm": "fixed_window", "rate": ["5/320d", "3/300d"]}
BUCKETS = {"name": "buckets", "match": {"path": "/buckets"}, "key": ["user"],
           "algorithm": "token_bucket", "rate": ["100/300d burst 4", "10/100d burst 6"]}
# What is no number, or out of range.
BAD = ["0", "1001", "-1", "1.5", "x", "", " 5", "0x10", "5, 6", "18446744073709551617", "9" * 4000]
BOUNDS = "header.x-tokens: must be a whole number from 1 to 1000"


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    rules = rules_of(TOKENS, LENIENT, ROUTES, BESIDE, SEVERAL, BUCKETS,
                     server={"grpc": "127.0.0.1:0", "admin": {"token": "s3cret"}},
                     headers=["x-delta", "cost"])
    with RedisWeir(tmp_path_factory.mktemp("weir"), rules, http="127.0.0.1:0",
                   admin="127.0.0.1:0") as weir:
        yield weir


def used(weir, path, ip):
    limits = weir.check(path=path, ip=ip, dry_run=True, cost=0).json["limits"]
    return [limit["limit"] - limit["remaining"] for limit in limits]


def auth_check(weir, path, ip, tokens):
    asked = wire.CheckRequest()
    http = asked.attributes.request.http
    http.method, http.path = "GET", path
    asked.attributes.source.address.socket_address.address = ip
    http.headers["x-tokens"] = tokens
    with Stub(weir.grpc_address) as stub:
        return stub.call("AuthCheck", asked)


# --- Costs ------------------------------------------------------------------------------------------

def test_a_cost_is_read_from_a_header_on_every_wire_and_reported(weir):
    ip = "192.0.2.1"
    reply = weir.check(path="/complete", ip=ip, headers={"X-Tokens": "30"})
    assert reply.status == 200 and reply["x-ratelimit-cost"] == "30"
    assert [limit["cost"] for limit in reply.json["limits"]] == [30, 1]
    with weir.client() as client:
        assert client.auth("/complete", client=ip, X_Tokens="200").status == 200
    with weir.redis() as redis:
        assert redis.ask("WEIR.CHECK", "path", "/complete", "ip", ip,
                         "header.x-tokens", "1000")[1] == 1
    assert auth_check(weir, "/complete", ip, "4").status.code == 0
    assert weir.check(path="/complete", ip=ip).status == 200  # the default
    assert used(weir, "/complete", ip) == [30 + 200 + 1000 + 4 + 7, 5]


@pytest.mark.parametrize("value", BAD)
def test_a_bad_cost_is_refused_by_its_name_on_every_wire_and_charges_nothing(weir, value):
    ip = "192.0.2.2"
    reply = weir.check(path="/complete", ip=ip, headers={"X-Tokens": value})
    assert reply.status == 400 and reply["content-type"] == "application/problem+json"
    assert reply.json["detail"] == BOUNDS
    if value.strip() == value:  # of a header field spaces around it are no part
        with weir.client() as client:
            reply = client.auth("/complete", client=ip, X_Tokens=value)
            assert reply.status == 400 and reply.json["detail"] == BOUNDS
    with weir.redis() as redis:
        said = redis.ask("WEIR.CHECK", "path", "/complete", "ip", ip, "header.x-tokens", value)
        assert isinstance(said, Error) and BOUNDS in said
    answer = auth_check(weir, "/complete", ip, value)
    assert answer.status.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert answer.denied_response.status.code == 400
    assert json.loads(answer.denied_response.body)["detail"] == BOUNDS
    assert used(weir, "/complete", ip) == [0, 0]


def test_in_a_batch_a_bad_cost_is_reported_with_its_place_and_charges_nothing(weir):
    ip = "192.0.2.3"
    with weir.client() as client:
        reply = client.post("/v1/check", [
            {"path": "/complete", "ip": ip, "headers": {"x-tokens": "5"}},
            {"path": "/complete", "ip": ip, "headers": {"x-tokens": "many"}}])
    assert reply.status == 400 and BOUNDS in reply.json["detail"]
    assert used(weir, "/complete", ip) == [0, 0]


@pytest.mark.parametrize("path", ["/v1/reserve", "/v1/check"])
def test_what_a_request_says_is_multiplied_and_bounded_in_reservations_too(weir, path):
    ip = "192.0.2.4" if path == "/v1/check" else "192.0.2.5"
    with weir.client() as client:
        reply = client.post(path, {"path": "/complete", "ip": ip, "cost": 3,
                                   "headers": {"x-tokens": "30"}})
        assert reply.status == 200 and used(weir, "/complete", ip) == [90, 3]
        assert client.post(path, {"path": "/complete", "ip": ip, "cost": 3,
                                  "headers": {"x-tokens": "1e3"}}).status == 400
    assert used(weir, "/complete", ip) == [90, 3]


@pytest.mark.parametrize("value", BAD)
def test_a_bad_cost_counts_as_the_default_where_the_rules_say_so(weir, value):
    ip = f"192.0.2.{100 + BAD.index(value)}"
    expected = 0 if value == "0" else 7  # no `min`: nothing is a cost
    assert weir.check(path="/lenient", ip=ip, headers={"X-Tokens": value}).status == 200
    with weir.redis() as redis:
        assert redis.ask("WEIR.CHECK", "path", "/lenient", "ip", ip, "header.x-tokens",
                         value)[1] == 1
    assert auth_check(weir, "/lenient", ip, value).status.code == 0
    assert used(weir, "/lenient", ip) == [3 * expected, 3]


def test_a_table_says_what_routes_cost(weir):
    ip = "192.0.2.6"
    for method, path, cost in (("GET", "/r/search", 20), ("POST", "/r/export/7", 100),
                               ("GET", "/r/export/7", 2), ("GET", "//r/./%73earch?q=1", 20)):
        assert weir.check(method=method, path=path, ip=ip)["x-ratelimit-cost"] == str(cost)
    assert used(weir, "/r/x", ip) == [142, 4]


# --- Several rates ----------------------------------------------------------------------------------

def admin(weir, path, method="GET"):
    with weir.admin() as client:
        return client.request(method, path, {"Authorization": "Bearer s3cret"})


def dictionary(reply):
    return {name: [dictionary(part) for part in value] if name == "limits" else value
            for name, value in zip(reply[::2], reply[1::2])}


def test_the_state_of_several_rates_is_one_limit_the_tightest(weir):
    for remaining in (2, 1, 0):
        (limit,) = weir.check(path="/several", attributes={"user": "ada"}).json["limits"]
        assert (limit["name"], limit["limit"], limit["remaining"]) == ("several", 3, remaining)
        (state,) = admin(weir, "/v1/limits/several/state?key=ada").json["limits"]
        assert (state["name"], state["limit"], state["remaining"]) == ("several", 3, remaining)
    assert weir.check(path="/several", attributes={"user": "ada"}).status == 429
    entry = admin(weir, "/v1/limits/several/state?key=ada").json
    assert entry["allowed"] is False and entry["denied_by"] == "several"
    listed = next(limit for limit in admin(weir, "/v1/limits").json["limits"]
                  if limit["name"] == "several")
    assert sorted((rate["rate"], rate["window_ms"]) for rate in listed["rates"]) == [
        (3, 300 * 86400000), (5, 320 * 86400000)]


def test_removing_the_state_of_several_rates_forgets_them_all(weir):
    ask = {"path": "/several", "attributes": {"user": "bob"}}
    path = "/v1/limits/several/state?key=bob"
    for _ in range(3):  # the second rate alone would deny the second time round
        assert [weir.check(**ask).status for _ in range(4)] == [200] * 3 + [429]
        assert admin(weir, path, "DELETE").json == {"removed": True}
    assert admin(weir, path, "DELETE").status == 404
    assert admin(weir, path).json["limits"][0]["remaining"] == 3


def test_over_the_redis_protocol_several_rates_are_one_limit_too(weir):
    who = ("path", "/several", "user", "eve")
    with weir.redis() as redis:
        def ask(command, *more):
            return dictionary(redis.ask(command, *who, *more))

        first = ask("WEIR.CHECK")
        assert [(limit["name"], limit["limit"], limit["remaining"]) for limit in first["limits"]] \
            == [("several", 3, 2)]
        assert ask("WEIR.CHECK", "COST", 2)["allowed"] == 1
        for _ in range(3):
            peeked = ask("WEIR.PEEK")
            assert peeked["allowed"] == 0 and peeked["denied_by"] == "several"
        assert ask("WEIR.REFUND", "COST", 2)["limits"][0]["remaining"] == 2
        assert ask("WEIR.CHECK", "COST", 2)["allowed"] == 1
        assert redis.ask("WEIR.RESET", *who) == 1  # one limit
        assert redis.ask("WEIR.RESET", *who) == 0
        assert ask("WEIR.PEEK")["limits"][0]["remaining"] == 3


def test_a_grant_is_of_all_rates_and_top_counts_the_limit_once(weir):
    ask = {"path": "/buckets", "attributes": {"user": "ada"}}
    assert [weir.check(**ask).status for _ in range(5)] == [200] * 4 + [429]
    granted = admin(weir, "/v1/limits/buckets/grant?key=ada&units=3", "POST").json
    assert granted["granted"] is True and len(granted["limits"]) == 1
    assert (granted["limits"][0]["limit"], granted["limits"][0]["remaining"]) == (4, 3)
    assert [weir.check(**ask).status for _ in range(4)] == [200] * 3 + [429]
    (key,) = admin(weir, "/v1/limits/buckets/top").json["keys"]
    assert key["key"] == "user=ada" and key["denied"] == 2
    assert weir.metrics()['weir_decisions_total{limit="buckets",result="denied"}'] == 2
