# SPDX-License-Identifier: Apache-2.0
"""Whom a ban would hit, and when it asks."""

import json
import os
import pty
import subprocess
from urllib.parse import urlencode

import pytest

from daemon.weir import Weir, rules_of
from model.program import weir_path

COMMON, RARE = "198.51.100.7", "203.0.113.9"


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("radius")
    rules = rules_of(
        {"name": "all", "key": ["user"], "rate": "100000/d"},
        standing={"by": ["user", "client.ip/64"], "file": str(folder / "standing.db")},
        server={"trusted_proxies": ["10.9.0.0/16"],
                "admin": {"address": "127.0.0.1:0", "token": "s3cret"}})
    with Weir(folder, rules, "--workers", "1", admin=None) as weir:
        with weir.client() as client:
            for i in range(1900):
                client.check(path="/", ip=COMMON, attributes={"user": f"u{i}"})
            client.check(path="/", ip=RARE, attributes={"user": "ann"})
        yield weir


def call(weir, method, path, body=None):
    with weir.admin() as admin:
        reply = admin.request(method, path, body=None if body is None else json.dumps(body).encode())
    return reply.status, reply.json


def radius(weir, kind, value):
    status, answer = call(weir, "GET", "/v1/standing/radius?" + urlencode({"kind": kind, "value": value}))
    assert status == 200
    return answer


@pytest.mark.parametrize("kind, value, word", [
    ("client.ip", "0.0.0.0/0", "larger than a /16"),
    ("client.ip", "203.0.0.0/8", "larger than a /16"),
    ("client.ip", "2001::/32", "larger than a /16"),
    ("client.ip", "127.0.0.1", "loopback"),
    ("client.ip", "::1/128", "loopback"),
    ("client.ip", "10.9.3.0/24", "trusted_proxies"),
    ("client.ip", "10.9.0.1", "trusted_proxies"),
    ("client.ip", "127.0.0.0/24", "you come from"),
    ("client.ip", COMMON, "1 % of all requests"),
    ("user", "nobody", "spelt right"),
])
def test_what_may_be_a_slip_asks_and_changes_nothing(weir, kind, value, word):
    assert any(word in text for text in radius(weir, kind, value)["asks"])
    body = {"kind": kind, "value": value, "level": "suspended", "for_ms": 60000, "ask": True}
    status, problem = call(weir, "PUT", "/v1/standing", body)
    assert status == 409 and word in problem["detail"]
    assert weir.check(ip=COMMON, attributes={"user": "ann"}).json["allowed"]
    assert call(weir, "GET", "/v1/standing")[1]["entries"] == []


WIDE = [("client.ip", "0.0.0.0/0"), ("client.ip", "203.0.0.0/15"), ("client.ip", "2001:db8::/47"),
        ("client.ip", "127.0.0.1"), ("client.ip", "10.9.3.0/24"), ("client.ip", COMMON)]


@pytest.mark.parametrize("kind, value", WIDE)
@pytest.mark.parametrize("level", ["suspended", "revoked"])
def test_a_wide_refusal_needs_a_yes_and_says_whom_it_would_hit(weir, kind, value, level):
    body = {"kind": kind, "value": value, "level": level}
    status, problem = call(weir, "PUT", "/v1/standing", body)
    assert status == 409 and '"yes": true' in problem["detail"]
    asks = radius(weir, kind, value)["asks"]
    assert problem["radius"]["asks"] == asks and asks[0] in problem["detail"]
    assert set(problem["radius"]) == {"requests_at_least", "requests", "percent", "callers_at_least", "asks"}
    assert call(weir, "PUT", "/v1/standing", body | {"yes": "true"})[0] == 409  # no yes
    assert call(weir, "GET", "/v1/standing")[1]["entries"] == []
    assert call(weir, "PUT", "/v1/standing", body | {"level": "warned"})[0] == 200  # refuses nobody
    assert call(weir, "PUT", "/v1/standing", body | {"yes": True, "ask": True})[0] == 200
    assert call(weir, "DELETE", "/v1/standing?" + urlencode({"kind": kind, "value": value}))[0] == 200


@pytest.mark.parametrize("kind, value", [("client.ip", "203.0.113.77"), ("client.ip", "198.18.0.0/16"),
                                         ("client.ip", "2001:db8::/48"), ("user", "never-seen")])
def test_scripts_ban_what_is_narrow_as_they_did(weir, kind, value):
    body = {"kind": kind, "value": value, "level": "suspended", "for_ms": 60000}
    assert call(weir, "PUT", "/v1/standing", body)[0] == 200
    assert call(weir, "DELETE", "/v1/standing?" + urlencode({"kind": kind, "value": value}))[0] == 200


@pytest.mark.parametrize("kind, value", [("client.ip", RARE), ("client.ip", "203.0.113.0/24"),
                                         ("client.ip", "203.0.0.0/16"), ("user", "ann")])
def test_what_is_small_and_known_is_done_at_once(weir, kind, value):
    found = radius(weir, kind, value)
    assert found["asks"] == [] and found["requests_at_least"] >= 1
    body = {"kind": kind, "value": value, "level": "suspended", "for_ms": 60000, "ask": True}
    assert call(weir, "PUT", "/v1/standing", body)[0] == 200
    assert call(weir, "DELETE", "/v1/standing?" + urlencode({"kind": kind, "value": value}))[0] == 200


def test_the_counts_are_of_what_was_sent(weir):
    found = radius(weir, "client.ip", "198.51.0.0/16")
    assert 1900 <= found["requests_at_least"] <= found["requests"] <= 1960
    assert found["callers_at_least"] == 1


def ban(weir, *options):
    return subprocess.run([weir_path(), "ban", "0.0.0.0/0", "1min", *options, "--admin",
                           weir.admin_address, "--token", "s3cret"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)


def test_the_command_asks_and_yes_is_an_answer(weir):
    asked = ban(weir)
    assert asked.returncode == 1 and "--yes" in asked.stderr
    assert "larger than a /16" in asked.stderr and "at least 19" in asked.stderr
    assert weir.check(ip=RARE, attributes={"user": "ann"}).json["allowed"]
    done = ban(weir, "--yes")
    assert done.returncode == 0 and "undo: weir unban 'client.ip=0.0.0.0/0'" in done.stdout
    assert not weir.check(ip=RARE, attributes={"user": "ann"}).json["allowed"]
    assert call(weir, "DELETE", "/v1/standing?kind=client.ip&value=0.0.0.0/0")[0] == 200


@pytest.mark.parametrize("answer, banned", [(b"y\n", True), (b"\n", False), (b"n\n", False)])
def test_at_a_terminal_it_waits_for_an_answer(weir, answer, banned):
    master, slave = pty.openpty()
    child = subprocess.Popen([weir_path(), "ban", "127.0.0.1", "1min", "--admin", weir.admin_address,
                              "--token", "s3cret"], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    os.write(master, answer)
    assert child.wait(60) == (0 if banned else 1)
    os.close(master)
    assert weir.check(ip="127.0.0.1", attributes={"user": "ann"}).json["allowed"] != banned
    if banned:
        assert call(weir, "DELETE", "/v1/standing?kind=client.ip&value=127.0.0.1")[0] == 200
