# SPDX-License-Identifier: Apache-2.0
"""Who a credential is of, through every front end: one caller whatever its spelling, also as the hash
of what comes behind the scheme, and with `on_unknown: deny` nobody else."""

import hashlib
import json

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.redis import RedisWeir
from daemon.weir import rules_of
from fronts.ask import FRONTS, NginxFront

SPELLINGS = ["Bearer {}", "bearer {}", "BEARER  {}", "bEaReR \t {}"]
USER = {"name": "each", "key": ["user"], "rate": "1/day", "algorithm": "token_bucket"}
HEADER = {"name": "each", "key": ["header.authorization"], "rate": "1/day",
          "algorithm": "token_bucket"}
IDENTIFY = ["header.x-api-key", "header.authorization"]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def keys_file(folder, *entries):
    """`entries` are pairs of what is hashed and a user."""
    path = folder / "keys.yaml"
    path.write_text("".join(f"{digest(text)}: {json.dumps({'user': user})}\n"
                            for text, user in entries), encoding="utf-8")
    return str(path)


def weir_of(folder, *limits, **parts):
    return RedisWeir(folder, rules_of(*limits, server={"grpc": "127.0.0.1:0"}, **parts),
                     http="127.0.0.1:0", admin="127.0.0.1:0")


def nginx_of(folder, *limits, **parts):
    return Nginx(folder, rules_of(*limits, **parts), "location / { weir on; try_files /a.txt =404; }",
                 head="")


def bearer(text):
    return [("Authorization", text)]


@pytest.mark.parametrize("listed", ["Bearer K", "K", "bearer K"])
@pytest.mark.parametrize("front", FRONTS)
def test_a_key_is_one_caller_however_it_is_spelled_and_listed(tmp_path, front, listed):
    keys = keys_file(tmp_path, (listed, "ann"))
    with weir_of(tmp_path, USER, identify=IDENTIFY, keys=keys) as weir:
        spellings = [bearer(one.format("K")) for one in SPELLINGS]
        if listed == "bearer K":  # an older file with another spelling: that one stays valid
            spellings = [bearer("bearer K")] * 2
        if listed == "K":
            spellings.append([("X-Api-Key", "K")])
        assert [front(weir).ask(*one) for one in spellings] == (
            ["allowed"] + ["denied"] * (len(spellings) - 1))
        assert front(weir).ask(*bearer("Bearer k")) == "allowed"  # of nobody: no user, no limit
        assert front(weir).ask(*bearer("Bearer k")) == "allowed"


@needs_module
def test_a_key_is_one_caller_in_nginx(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    with nginx_of(tmp_path, USER, identify=IDENTIFY, keys=keys) as nginx:
        front = NginxFront(nginx)
        assert [front.ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
            ["allowed"] + ["denied"] * (len(SPELLINGS) - 1))


@pytest.mark.parametrize("front", FRONTS)
def test_unknown_credentials_are_denied_and_none_are_not(tmp_path, front):
    keys = keys_file(tmp_path, ("Bearer K", "ann"))
    limit = dict(USER, rate="1000/day")
    with weir_of(tmp_path, limit, identify=[*IDENTIFY, "client.ip"], keys=keys,
                 on_unknown="deny") as weir:
        ask = front(weir).ask
        assert ask() == "allowed"
        assert ask(("X-Api-Key", "")) == "allowed"
        assert ask(*bearer("bearer  K")) == "allowed"
        assert ask(("X-Api-Key", "other"), *bearer("Bearer K")) == "allowed"  # one is known
        assert ask(("X-Api-Key", "other")) == "denied"
        assert ask(*bearer("Bearer other")) == "denied"
        assert weir.metrics()['weir_decisions_total{limit="unknown",result="denied"}'] == 2


def test_an_unknown_caller_is_named_so(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    limit = dict(USER, match={"path": "/never"})  # no limit needs the caller: it is looked up
    with weir_of(tmp_path, limit, identify=IDENTIFY, keys=keys, on_unknown="deny") as weir:
        reply = weir.check(path="/", headers={"x-api-key": "other"})
        assert reply.status == 429 and reply.json["denied_by"] == "unknown"
        with weir.client() as client:
            reply = client.auth("/", X_Api_Key="other")
            assert reply.status == 403
            assert reply.json["detail"] == "the credentials are unknown"
        assert weir.check(path="/", attributes={"user": "eve"},
                          headers={"x-api-key": "other"}).status == 200  # a trusted sender knows


@needs_module
def test_unknown_credentials_are_denied_in_nginx(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    with nginx_of(tmp_path, dict(USER, rate="1000/day"), identify=IDENTIFY, keys=keys,
                  on_unknown="deny") as nginx:
        front = NginxFront(nginx)
        assert front.ask() == "allowed"
        assert front.ask(*bearer("bearer K")) == "allowed"
        assert front.ask(*bearer("bearer other")) == "denied"


@pytest.mark.parametrize("parts,problem", [
    ({"on_unknown": "deny"}, "needs a source in `identify` that reads credentials"),
    ({"on_unknown": "deny", "identify": ["client.ip"]}, "needs a source in `identify`"),
    ({"on_unknown": "refuse"}, "`on_unknown` must be"),
])
def test_on_unknown_needs_credentials(tmp_path, parts, problem):
    with RedisWeir(tmp_path, rules_of(**parts), wait=False) as weir:
        assert weir.wait() == 1
        assert problem in weir.text()


def test_a_directory_that_does_not_answer_knows_nobody_and_denies_nobody(tmp_path):
    limit = dict(USER, rate="1000/day")
    for on_error, status in (("unknown", 200), ("deny", 503)):
        folder = tmp_path / on_error
        folder.mkdir()
        with weir_of(folder, limit, identify=IDENTIFY, on_unknown="deny",
                     identities={"redis": "redis://127.0.0.1:1", "on_error": on_error}) as weir:
            reply = weir.check(path="/", headers={"x-api-key": "K"})
            assert reply.status == status, reply.body
