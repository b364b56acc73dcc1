# SPDX-License-Identifier: Apache-2.0
"""POST /v1/explain: what the rules make of a request, by the API; as `weir explain` prints it."""

import json
import re

import pytest

from daemon.http import request_bytes
from daemon.nodes import shared_rules
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

# Windows of days: what is printed of their waits stays the same for an hour.
LIMITS = [
    {"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "20/100d", "burst": 20,
     "candidate": {"rate": "2/100d", "burst": 2}},
    {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "3/100d", "warn_at": "50%"},
    {"name": "tokens", "match": {"header.authorization": ["Bearer SECRET1-SECRET1"]}, "key": ["header.x-api-key"],
     "rate": ["5/min", "100/hour"]},
    {"name": "posts", "match": {"method": "POST"}, "key": ["header.authorization"], "rate": "7/hour"},
    {"name": "orders", "match": {"path": "/orders/:id"}, "key": ["path.id"], "rate": "10/s"},
]
# What says how many requests there were, and what became of them.
FIGURES = re.compile(r"weir_(decisions|requests_decided|requests_refused|front_decisions|standing_refusals|unknown_attributes"
                     r"|denials|use_samples|route_requests|denied_key)_total|weir_retry_after_seconds")
TOKEN = "operator0123456789"
PENALTY = {"name": "slow-down", "key": ["user"], "strikes": "5/min", "for": ["api"],
           "ladder": ["throttle 10min"]}
REQUESTS = [
    {},
    {"path": "/login", "ip": "192.0.2.7", "attributes": {"user": "ann"}},
    {"method": "POST", "path": "//orders/./17?a=b", "attributes": {"user": "علي\u202e\u001b", "nosuch": "1"}},
    {"headers": {"authorization": "Bearer SECRET2-SECRET2", "x-api-key": "customer-3", "x-other": "1"},
     "method": "POST", "attributes": {"user": "bob"}, "cost": 30},
    {"headers": {"authorization": "Bearer SECRET1-SECRET1", "x-api-key": "customer-3"}, "attributes": {"user": "eve"}},
]


def start(folder, **parts):
    rules = rules_of(*LIMITS, server={"admin": {"token": TOKEN}}, state={"file": str(folder / "state"), "size": "1MiB"}, **parts)
    return Weir(folder, rules, "--workers", "1")


def post(weir, body, path="/v1/explain", kind="application/json"):
    with weir.admin() as client:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.request("POST", path, {"Content-Type": kind}, text)


def explain(weir, request):
    reply = post(weir, request)
    assert reply.status == 200, reply.body
    return reply.json


def text_of(answer):
    return "".join([answer["caller"], *(limit["text"] for limit in answer["limits"]), answer["penalties"], answer["verdict"]])


def printed(weir, request):
    """What the command prints, with the state of the server; it shows what the file has, where the page may not."""
    done = run_weir("explain", "-c", weir.config, "--state", weir.folder / "state", "--json", json.dumps(request),
                    env={"LANG": "C.UTF-8", "LC_ALL": ""})
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("wanted `Bearer SECRET1-SECRET1`", "wanted (hidden)")


def test_the_answer_is_what_weir_explain_prints(tmp_path):
    standing = {"by": ["user"], "file": str(tmp_path / "standing.db"), "map": str(tmp_path / "map")}
    with start(tmp_path, standing=standing, penalties=[PENALTY]) as weir:
        with weir.client() as client:
            for _ in range(4):
                client.check(path="/login", ip="192.0.2.7", attributes={"user": "ann"})
        for request in REQUESTS:
            answer = explain(weir, request)
            assert text_of(answer) == printed(weir, request), request
            assert "SECRET" not in json.dumps(answer)
        ann = explain(weir, REQUESTS[1])
        assert ann["denied"] and ann["verdict"].startswith("The request is denied by login, retry after ")
        assert {limit["name"]: limit["applies"] for limit in ann["limits"]} \
            == {"api": True, "login": True, "tokens": False, "posts": False, "orders": False}
        assert "0 of 3 remaining" in ann["limits"][1]["text"] and "candidate" in ann["limits"][0]["text"]
        assert "penalty slow-down\n    strike" in ann["penalties"] and ann["left_out"] == 0


def test_nothing_is_charged_or_counted(tmp_path):
    with start(tmp_path) as weir:
        request = {"path": "/login", "ip": "192.0.2.7", "attributes": {"user": "ann"}}
        first = explain(weir, request)
        for _ in range(9):
            assert explain(weir, request) == first
        assert not first["denied"] and "3 of 3 remaining" in first["limits"][1]["text"]
        with weir.admin() as client:
            assert client.request("GET", "/v1/denials").json["denials"] == []
            limits = {one["name"]: one for one in client.request("GET", "/v1/limits").json["limits"]}
            assert limits["login"]["allowed"] == 0 and limits["login"]["denied"] == 0
        with weir.client() as client:
            answer = client.check(path="/login", ip="192.0.2.7", attributes={"user": "ann"})
            assert {one["name"]: one["remaining"] for one in answer.json["limits"]} == {"api": 19, "login": 2}


def test_no_figure_counts_it_as_a_request(tmp_path):
    limits = [{**LIMITS[1], "algorithm": "token_bucket", "rate": "3/366d"}, LIMITS[0]]
    ann = {"path": "/login", "ip": "192.0.2.7", "attributes": {"user": "ann", "nosuch": "1"}}
    with Weir(tmp_path, rules_of(*limits, standing={"by": ["user"]}, server={"admin": {"token": TOKEN}})) as weir:
        with weir.client() as client:
            assert [client.check(**ann).status for _ in range(4)] == [200] * 3 + [429]
        with weir.admin() as client:
            ban = {"kind": "user", "value": "bob", "level": "revoked", "yes": True, "reason": "spam"}
            assert client.request("PUT", "/v1/standing", {"Content-Type": "application/json"}, json.dumps(ban).encode()).status == 200

            def figures():
                whole = client.request("GET", "/v1/limits").json["requests"]
                return whole, {name: value for name, value in weir.metrics().items() if FIGURES.match(name)}

            before = figures()
            for _ in range(5):
                assert explain(weir, ann)["denied"] and explain(weir, {"attributes": {"user": "bob"}})["denied"]
            (whole, now), (whole_before, metrics_before) = figures(), before
            assert {name: value for name, value in now.items() if value != metrics_before.get(name)} == {}
            assert whole == whole_before and whole["decided"] == 4 and whole["refused"]["limit"] == 1


def test_explanations_wait_for_each_other(tmp_path):
    """Those that are asked for at once: each reads the history of standing."""
    standing = {"by": ["user"], "file": str(tmp_path / "standing.db"), "map": str(tmp_path / "map")}
    with start(tmp_path, standing=standing, penalties=[PENALTY]) as weir, weir.admin() as client:
        fields = {"Content-Type": "application/json", **client.fields}
        one = request_bytes("POST", "/v1/explain", fields, json.dumps(REQUESTS[1]).encode())
        client.send(one * 8)
        for _ in range(8):
            reply = client.reply()
            assert reply.status == 200 and "penalty slow-down" in reply.json["penalties"], reply.body


def test_what_is_secret_is_named_as_it_was_given(tmp_path):
    request = {"headers": {"X-Other": "1", "Authorization": "Bearer 1"},
               "attributes": {"user": "ann", "Header.X-Api-Key": "2", "header.Authorization": "Bearer 3"}}
    with start(tmp_path) as weir:
        secret = explain(weir, request)["secret"]
    assert secret == ["header.authorization", "header.Authorization"]


def test_a_suspended_caller_is_told_of(tmp_path):
    with start(tmp_path, standing={"by": ["user"]}) as weir:
        with weir.admin() as client:
            ban = {"kind": "user", "value": "bob", "level": "suspended", "for_ms": 600_000, "yes": True, "reason": "spam"}
            assert client.request("PUT", "/v1/standing", {"Content-Type": "application/json"}, json.dumps(ban).encode()).status == 200
        answer = explain(weir, {"attributes": {"user": "bob"}})
        assert answer["denied"] and answer["verdict"].startswith("The request is denied by the caller's standing")
        assert "standing suspended, of user=bob, by an operator" in answer["caller"] and ": spam" in answer["caller"]
        assert {limit["text"] for limit in answer["limits"]} \
            == {f"{limit['name']}: not asked: the caller's standing denies\n" for limit in LIMITS}


@pytest.mark.parametrize("body, status, says", [
    (b"", 400, "byte 0"), (b"[]", 400, "not a list"), (b'[{"path": "/"}]', 400, "not a list"),
    (b'{"pth": "/"}', 400, "pth"), (b'{"cost": "much"}', 400, "cost"), (b'{"ip": "192.0.2.300"}', 400, "ip"),
    (b'{"dry_run": true}', 400, "dry_run"), (b'{"t": 5}', 400, "t, life"), (b'{"path": "/%zz"}', 400, "path"),
    (b'{"attributes": {"path": "/"}}', 400, "path"), (b'{"path": "/' + b"x" * 66000 + b'"}', 413, "64 KiB")],
    ids=range(11))
def test_what_cannot_be_explained_is_said(tmp_path, body, status, says):
    with start(tmp_path) as weir:
        reply = post(weir, body)
        assert reply.status == status and says in reply.json["detail"], reply.body


def test_only_who_may_read_is_answered(tmp_path):
    with start(tmp_path) as weir:
        with weir.admin() as client:
            assert client.request("POST", "/v1/explain", {"Content-Type": "application/json", "Authorization": ""}, b"{}").status == 401
            assert client.request("POST", "/v1/explain", {"Content-Type": "text/plain", "Authorization": f"Bearer {TOKEN}"}, b"{}").status == 415
            assert client.request("GET", "/v1/explain", {"Authorization": f"Bearer {TOKEN}"}).status == 405


def test_of_many_limits_those_that_apply_are_told_of(tmp_path):
    limits = [{"name": f"l{i}", "match": {"path": f"/{i}"}, "key": ["user"], "rate": "1/s"} for i in range(1200)]
    with Weir(tmp_path, rules_of(*limits)) as weir:
        answer = explain(weir, {"path": "/1190", "attributes": {"user": "ann"}})
        assert [limit["name"] for limit in answer["limits"] if limit["applies"]] == ["l1190"]
        assert len(answer["limits"]) == 1001 and answer["left_out"] == 199


def test_states_in_redis_are_looked_at(tmp_path):
    (tmp_path / "weir").mkdir()
    with RedisServer(tmp_path / "redis") as redis, \
            Weir(tmp_path / "weir", shared_rules(redis.url, *LIMITS, nodes=1)) as weir:
        request = {"path": "/login", "ip": "192.0.2.7", "attributes": {"user": "ann"}}
        weir.wait_event("store_up")
        with weir.client() as client:
            for _ in range(2):
                client.check(**request)
        wait_until(lambda: post(weir, request).status == 200, what="the admin listener's own connection")
        answer = explain(weir, request)
        assert "1 of 3 remaining" in answer["limits"][1]["text"] and "18 of 20 remaining" in answer["limits"][0]["text"]
        redis.kill()
        reply = post(weir, request)
        assert reply.status == 503 and "the store: " in reply.json["detail"], reply.body
