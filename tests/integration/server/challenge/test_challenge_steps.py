# SPDX-License-Identifier: Apache-2.0
"""A step that asks for a challenge, in every front end: a request with a valid token is admitted, one
without is denied and charged nothing."""

import pytest

from daemon import grpc as wire
from daemon.challenge import ChallengeWeir, solve
from daemon.grpc import Stub
from daemon.redis import Redis

CLIENT, ADDRESS = {"X-Forwarded-For": "192.0.2.1"}, "192.0.2.1"
STEPS = {"name": "steps", "key": [], "rate": "8/h", "algorithm": "sliding_log",
         "steps": [{"at": "25%", "mark": True}, {"at": "50%", "challenge": True}]}
MARKED = ["none", "mark", "mark", "mark"]  # the first four requests of any client


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    server = {"http": "127.0.0.1:0", "grpc": "127.0.0.1:0", "redis": "127.0.0.1:0",
              "admin": {"listen": "127.0.0.1:0", "token": "operator0123456789"}}
    with ChallengeWeir(tmp_path, limits=[STEPS], server=server) as weir:
        yield weir


def token_of(weir):
    puzzle = weir.challenge(fields=CLIENT).json
    solution = solve(puzzle["puzzle"], puzzle["difficulty"])
    return weir.post({"puzzle": puzzle["puzzle"], "solution": solution}, CLIENT).json["token"]


def by_auth(weir, fields):
    reply = weir.auth(CLIENT | fields)
    return reply.status == 200, reply["x-weir-action"] or "none"


def by_check(weir, fields):
    attributes = {f"header.{name.lower()}": value for name, value in fields.items()}
    reply = weir.check(ip=ADDRESS, attributes=attributes)
    return reply.status == 200, reply.json.get("action", "none")


def by_ext_authz(weir, fields):
    asked = wire.CheckRequest()
    asked.attributes.source.address.socket_address.address = ADDRESS
    for name, value in fields.items():
        asked.attributes.request.http.headers[name.lower()] = value
    with Stub(weir.grpc_address) as stub:
        answer = stub.call("AuthCheck", asked)
    allowed = answer.HasField("ok_response")
    result = answer.ok_response if allowed else answer.denied_response
    actions = [one.header.value for one in result.headers if one.header.key == "X-Weir-Action"]
    if allowed:
        to_client = [one.header.value for one in result.response_headers_to_add
                     if one.header.key == "X-Weir-Action"]
        assert to_client == actions
        removed = {"X-Weir-Lease", "X-Weir-Delay-Ms"} | (set() if actions else {"X-Weir-Action"})
        assert set(result.headers_to_remove) == removed
    else:
        assert result.status.code == 429
    return allowed, (actions or ["none"])[0]


def by_redis(weir, fields):
    pairs = [part for name, value in fields.items() for part in (f"header.{name.lower()}", value)]
    with Redis(weir.front_address("redis")) as client:
        flat = client.ask("WEIR.CHECK", "ip", ADDRESS, *pairs)
    result = dict(zip(flat[::2], flat[1::2]))
    return result["allowed"] == 1, result.get("action", "none")


@pytest.mark.parametrize("ask", [by_auth, by_check, by_ext_authz, by_redis])
def test_a_token_that_holds_goes_beyond_the_step(weir, ask):
    token = token_of(weir)
    for carrier in ({"X-Weir-Challenge": token}, {"Cookie": f"a=b; __Host-weir={token}"}):
        weir.forget("steps")
        assert [ask(weir, {}) for _ in range(4)] == [(True, action) for action in MARKED]
        for fields in ({}, {"X-Weir-Challenge": token[:-1] + ("B" if token[-1] == "A" else "A")}):
            assert ask(weir, fields) == (False, "challenge")
        assert [ask(weir, carrier) for _ in range(5)] == [(True, "mark")] * 4 + [(False, "reject")]
        assert ask(weir, {}) == (False, "reject")  # nothing that a proof would change


def test_a_token_of_another_network_stays_below_the_step(weir):
    token = token_of(weir)
    other = {"X-Forwarded-For": "192.0.2.99", "X-Weir-Challenge": token}
    assert [weir.auth(other).status for _ in range(5)] == [200] * 4 + [429]
    assert weir.auth(other)["x-weir-action"] == "challenge"
