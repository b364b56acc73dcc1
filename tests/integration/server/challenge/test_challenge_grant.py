# SPDX-License-Identifier: Apache-2.0
"""Tokens that a trusted program has made for clients that passed another challenge."""

import json

import pytest

from daemon.challenge import LIMITS, ChallengeWeir
from daemon.weir import Weir, rules_of

CLIENT = "192.0.2.7"


def grant(weir, body, kind="application/json"):
    with weir.client() as client:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.request("POST", "/v1/challenge/grant", {"Content-Type": kind}, text)


def denied_by(weir, token, client=CLIENT):
    """Three requests with a token: which limit the last of them is denied by."""
    fields = {"X-Weir-Challenge": token} if token else {}
    with weir.client() as asking:
        replies = [asking.auth("/", client=client, **fields) for _ in range(3)]
    return None if replies[-1].status == 200 else replies[-1].json["violated-policies"]


def test_a_granted_token_passes_for_its_network_alone(tmp_path):
    with ChallengeWeir(tmp_path) as weir:
        assert denied_by(weir, None) == ["unproven"]
        reply = grant(weir, {"client": CLIENT})
        granted = reply.json
        assert reply.status == 200 and reply["cache-control"] == "no-store"
        assert set(granted) == {"token", "expires_in", "set_cookie"} and granted["expires_in"] == 3600
        assert granted["set_cookie"] == (f"__Host-weir={granted['token']}; Path=/; Max-Age=3600; HttpOnly; "
                                         "Secure; SameSite=Lax")
        assert denied_by(weir, granted["token"]) is None
        assert denied_by(weir, granted["token"], "198.51.100.1") == ["unproven"]
        cookie = granted["set_cookie"].split(";", maxsplit=1)[0]
        with weir.client() as client:
            assert [client.auth("/", client=CLIENT, Cookie=cookie).status for _ in range(3)] == [200] * 3


def test_a_network_of_ipv6_shares_its_token(tmp_path):
    with ChallengeWeir(tmp_path) as weir:
        token = grant(weir, {"client": "2001:db8::7"}).json["token"]
        assert denied_by(weir, token, "2001:db8::8") is None
        assert denied_by(weir, token, "2001:db8:0:1::7") == ["unproven"]


def test_a_token_has_the_difficulty_of_its_class(tmp_path):
    difficulty = {"legitimate": 8, "suspicious": 10, "malicious": 12}
    tool = {"name": "tool", "when": {"header.user-agent": "curl*"}, "add": 40}
    score = {"key": ["client.ip/64"], "signals": [tool]}
    with ChallengeWeir(tmp_path, score=score, difficulty=difficulty) as weir:
        legitimate, suspicious = (grant(weir, {"client": CLIENT, "class": name}).json["token"]
                                  for name in ("legitimate", "suspicious"))
        fields = {"User-Agent": "curl/8"}
        with weir.client() as client:
            def status(token):
                return [client.auth("/", client=CLIENT, **{"X-Weir-Challenge": token}, **fields).status
                        for _ in range(3)][-1]
            assert (status(legitimate), status(suspicious)) == (429, 200)


@pytest.mark.parametrize("body, detail", [
    (b"[", "the body is not JSON"), (b"[]", "the body must be an object"), ({}, "client: missing"),
    ({"client": "example.org"}, "client: must be an IPv4 or IPv6 address"),
    ({"client": 7}, "client: must be an IPv4 or IPv6 address"),
    (b'{"client": "192.0.2.7\\u0000"}', "the body is not JSON"),
    ({"client": CLIENT, "class": "good"}, "class: must be legitimate, suspicious or malicious"),
    ({"client": CLIENT, "difficulty": 1}, "unknown member; use client and class"),
    (b'{"client": "192.0.2.7", "client": "192.0.2.8"}', "the body is not JSON"),
    ({"client": CLIENT, "class": "x" * 1024}, "the body is longer than 1024 bytes"),
])
def test_what_is_no_grant_is_refused(tmp_path, body, detail):
    with ChallengeWeir(tmp_path) as weir:
        reply = grant(weir, body)
        assert (reply.status, reply.json["detail"]) == (400, detail)


def test_only_trusted_programs_of_a_server_with_a_challenge_get_one(tmp_path):
    server = {"http": {"address": "127.0.0.1:0", "trusted": False}}
    with ChallengeWeir(tmp_path / "untrusted", server=server) as weir:
        reply = grant(weir, {"client": CLIENT})
        assert reply.status == 403 and "does not trust" in reply.json["detail"]
        assert grant(weir, {"client": CLIENT}, kind="text/plain").status == 415
    (tmp_path / "without").mkdir()
    with Weir(tmp_path / "without", rules_of(LIMITS[1] | {"unless": []})) as weir:
        assert grant(weir, {"client": CLIENT}).status == 404
