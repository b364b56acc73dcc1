# SPDX-License-Identifier: Apache-2.0
"""/v1/check and /v1/release: what an application gets."""

import json
import re
import time

import pytest

from daemon.http import request_bytes
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

LOGIN = {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip/64"],
         "algorithm": "sliding_log", "rate": "3/min"}
API = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour", "burst": 5}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules_of(
            LOGIN, API,
            {"name": "slots", "match": {"path": "/work"}, "key": ["client.ip"],
             "algorithm": "concurrency", "limit": 2, "life": "1h"},
            {"name": "queue", "match": {"path": "/queue"}, "key": ["client.ip"],
             "algorithm": "leaky_bucket", "queue": True, "rate": "1/min", "burst": 2},
            {"name": "agent", "match": {"path": "/agent"}, "key": ["header.user-agent"],
             "rate": "1/hour"},
            {"name": "tenant", "match": {"path": "/tenant"}, "key": ["tenant"], "rate": "1/hour"},
            {"name": "person", "match": {"path": "/person"}, "key": ["user"], "rate": "1/hour"},
            identify=["client.ip"])) as weir:
        yield weir


def verdicts(reply):
    return {limit["name"]: limit["allowed"] for limit in reply.json["limits"]}


def test_allows_up_to_the_limit_and_then_denies_with_429(weir):
    asked = {"method": "POST", "path": "/login", "ip": "192.0.2.1"}
    replies = [weir.check(**asked) for _ in range(4)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429]
    last = replies[-1]
    assert last.json["allowed"] is False and last.json["denied_by"] == "login"
    assert 0 < last.json["retry_after_ms"] <= 60000
    assert verdicts(last) == {"login": False, "api": True}
    assert last["content-type"] == "application/json"
    assert last["cache-control"] == "no-store"
    assert int(last["retry-after"]) == -(-last.json["retry_after_ms"] // 1000)


def test_a_denied_request_charges_no_limit(weir):
    asked = {"method": "POST", "path": "/login", "ip": "192.0.2.2"}
    for _ in range(5):
        weir.check(**asked)
    assert {limit["name"]: limit["remaining"] for limit in
            weir.check(**asked).json["limits"]} == {"login": 0, "api": 2}


def test_rate_limit_fields_are_structured_fields_and_agree_with_the_body(weir):
    reply = weir.check(path="/other", ip="192.0.2.3", cost=2)
    (limit,) = reply.json["limits"]
    assert limit["name"] == "api" and limit["limit"] == 5 and limit["remaining"] == 3
    assert reply["ratelimit-policy"] == '"api";q=1;w=3600'
    assert re.fullmatch(r'"api";r=1;t=\d+', reply["ratelimit"])
    assert reply["x-ratelimit-limit"] == "5" and reply["x-ratelimit-remaining"] == "3"
    assert reply["retry-after"] is None
    assert re.fullmatch(r"\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT", reply["date"])


def test_a_cost_above_the_capacity_is_never_admitted_and_no_wait_is_promised(weir):
    reply = weir.check(path="/x", ip="192.0.2.4", cost=6)
    assert reply.status == 429
    assert reply.json["retry_after_ms"] is None and reply["retry-after"] is None


def test_a_dry_run_tells_the_verdict_and_charges_nothing(weir):
    for _ in range(20):
        reply = weir.check(path="/x", ip="192.0.2.5", dry_run=True, cost=5)
        assert reply.status == 200
    assert weir.check(path="/x", ip="192.0.2.5", cost=5).status == 200
    assert weir.check(path="/x", ip="192.0.2.5", dry_run=True).status == 429


def test_waiting_as_long_as_stated_works(tmp_path):
    limit = {"name": "quick", "key": [], "algorithm": "gcra", "rate": "2/s", "burst": 1}
    with Weir(tmp_path, rules_of(limit)) as weir, weir.client() as client:
        asked = time.monotonic()
        assert client.check().status == 200
        denied = client.check()
        answered = time.monotonic()
        if answered - asked < 0.4:  # else this machine was too slow to see a denial
            assert denied.status == 429 and denied["retry-after"] == "1"
        wait_ms = denied.json["retry_after_ms"] or 0
        assert wait_ms <= 500
        while time.monotonic() < answered + wait_ms / 1000:
            early = client.check(dry_run=True)
            if time.monotonic() < asked + 0.5:
                assert early.status == 429
        assert client.check().status == 200


def test_a_queue_tells_how_long_to_hold_the_request(weir):
    began = time.monotonic()
    delays = [weir.check(path="/queue", ip="192.0.2.6").json["delay_ms"] for _ in range(3)]
    waited = (time.monotonic() - began) * 1000 + 1  # so much shorter may their waits be
    assert delays[0] == 0
    assert 60000 - waited <= delays[1] <= 60000 and 120000 - waited <= delays[2] <= 120000
    assert weir.check(path="/queue", ip="192.0.2.6").status == 429


def test_headers_and_attributes_of_the_body_are_keys(weir):
    for fields, name in (({"headers": {"User-Agent": "a"}}, "agent"),
                         ({"attributes": {"tenant": "a"}}, "tenant"),
                         ({"attributes": {"user": "u1"}}, "person")):
        asked = {"path": "/" + name, "ip": "192.0.2.7", "cost": 1, **fields}
        first, second = weir.check(**asked), weir.check(**asked)
        assert verdicts(first)[name] is True
        assert second.status == 429 and second.json["denied_by"] == name
    assert weir.check(path="/agent", headers={"user-agent": "b"}).status == 200
    assert weir.check(path="/tenant", attributes={"tenant": "b"}).status == 200
    assert weir.check(path="/agent").json["limits"] == []  # no key, no limit


def test_an_untrusted_listener_takes_no_identity_from_the_body(tmp_path):
    limit = {"name": "person", "key": ["user"], "rate": "1/hour"}
    with Weir(tmp_path, rules_of(limit, identify=["client.ip"],
                                 server={"http": {"address": "127.0.0.1:0", "trusted": False}}),
              http=None) as weir:
        assert weir.check(ip="192.0.2.1", attributes={"user": "a"}).status == 200
        assert weir.check(ip="192.0.2.1", attributes={"user": "b"}).status == 429


# --- Batches -------------------------------------------------------------------------------------

def test_a_batch_is_answered_with_an_array_in_order(weir):
    with weir.client() as client:
        asked = [{"path": "/b", "ip": "198.51.100.1", "cost": cost} for cost in (3, 3, 2, 1)]
        reply = client.post("/v1/check", asked)
    assert reply.status == 200
    assert [answer["allowed"] for answer in reply.json] == [True, False, True, False]


def test_a_batch_of_a_thousand_is_answered_and_one_more_is_refused(weir):
    one = {"path": "/b", "ip": "198.51.100.2", "method": "GET", "headers": {"a": "b" * 100}}
    with weir.client() as client:
        reply = client.post("/v1/check", [one] * 1000)
        assert reply.status == 200 and len(reply.json) == 1000
        assert sum(answer["allowed"] for answer in reply.json) == 5
        reply = client.post("/v1/check", [one] * 1001)
        assert reply.status == 413 and reply["content-type"] == "application/problem+json"
        assert client.post("/v1/check", []).json == []


def test_a_batch_of_long_denials_is_answered_whole(tmp_path):
    text = "\x01" * 4000  # each byte of which has six in JSON
    limits = [{"name": f"n{i}", "key": ["client.ip"], "rate": "1/hour",
               "reject": {"body": text, "content_type": "text/plain"}} for i in range(32)]
    with Weir(tmp_path, rules_of(*limits)) as weir, weir.client() as client:
        asked = [{"ip": f"192.0.2.{i % 10}"} for i in range(1000)]
        reply = client.post("/v1/check", asked)
        assert reply.status == 200 and len(reply.body) > 24 * 1000 * 990
        assert [answer["allowed"] for answer in reply.json] == [True] * 10 + [False] * 990
        assert all(answer["reject"]["body"] == text for answer in reply.json[10:])
        assert client.check(**asked[0]).status == 429


def test_an_error_anywhere_in_a_batch_charges_nothing(weir):
    good = {"path": "/b", "ip": "198.51.100.3", "cost": 5}
    with weir.client() as client:
        for bad in ({"cost": -1}, {"path": "/%zz"}, {"ip": "300.1.1.1"}, {"pth": "/x"}):
            reply = client.post("/v1/check", [good, bad])
            assert reply.status == 400, reply.body
        assert client.check(**good).status == 200


# --- Leases --------------------------------------------------------------------------------------

def test_a_lease_holds_a_slot_until_it_is_released(weir):
    asked = {"path": "/work", "ip": "192.0.2.20", "cost": 1}
    first, second = weir.check(**asked), weir.check(**asked)
    assert first.json["lease"] and second.json["lease"] != first.json["lease"]
    assert weir.check(**asked).json["denied_by"] == "slots"
    with weir.client() as client:
        assert client.post("/v1/release", {"lease": first.json["lease"]}).status == 200
        assert weir.check(**asked).status == 200
        again = client.post("/v1/release", {"lease": first.json["lease"]})
        assert again.status == 404 and again["content-type"] == "application/problem+json"
        assert client.post("/v1/release", {"lease": "nonsense"}).status == 400
        assert client.post("/v1/release", {}).status == 400
        assert client.post("/v1/release", {"lease": 5}).status == 400


def test_a_lease_ends_by_itself(tmp_path):
    limit = {"name": "slots", "key": [], "algorithm": "concurrency", "limit": 1, "life": "300ms"}
    with Weir(tmp_path, rules_of(limit)) as weir, weir.client() as client:
        began = time.monotonic()
        assert client.check().status == 200
        wait_until(lambda: client.check().status == 200, what="the end of the lease")
        assert time.monotonic() - began >= 0.25


# --- Bad input -----------------------------------------------------------------------------------

@pytest.mark.parametrize("body,field", [
    (b"", None), (b"{", None), (b"nonsense", None), (b"5", None), (b'"x"', None),
    (b'{"path":"/x"} x', None), (b'{"path":"/x",}', None),
    (b'{"cost":"1"}', "cost"), (b'{"cost":-1}', "cost"), (b'{"cost":1.5}', "cost"),
    (b'{"cost":18446744073709551616}', "cost"), (b'{"path":5}', "path"),
    (b'{"path":"/%zz"}', "path"), (b'{"path":"/a%00b"}', "path"), (b'{"ip":"1.2.3"}', "ip"),
    (b'{"ip":"fe80::1%"}', "ip"), (b'{"pth":"/x"}', "pth"), (b'{"path":"/","path":"/"}', "path"),
    (b'{"headers":[]}', "headers"), (b'{"headers":{"a":1}}', "headers"),
    (b'{"attributes":{"a":null}}', "attributes"), (b'{"dry_run":"yes"}', "dry_run"),
    (b'{"attributes":{"path":"/x"}}', "attributes.path: use the top-level field path"),
    (b'{"attributes":{"client.ip":"192.0.2.1"}}', "attributes.client.ip: use the top-level field ip"),
    (b'{"path":"\xff"}', "path"),
    (b'{"t":1700000000}', "t: only allowed in replay traces"),
])
def test_bad_input_is_400_and_names_the_field(weir, body, field):
    with weir.client() as client:
        reply = client.request("POST", "/v1/check", {"Content-Type": "application/json"}, body)
        assert reply.status == 400, reply.body
        assert reply["content-type"] == "application/problem+json"
        assert reply.json["status"] == 400
        if field:
            assert field in reply.json["detail"]
        assert client.check(path="/x", ip="203.0.113.9", dry_run=True).status == 200


def test_the_statuses_of_wrong_requests(weir):
    with weir.client() as client:
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):
            reply = client.request(method, "/v1/check")
            assert (reply.status, reply["allow"]) == (405, "POST")
        for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x", "", "+json",
                     "application/jsonp", "text/x+json2", "json", "application/x-www-form-urlencoded2"):
            for path in ("/v1/check", "/v1/release"):
                assert client.request("POST", path, {"Content-Type": kind}, b"{}").status == 415, kind
        for kind in ("application/json", "Application/JSON", "application/json; charset=utf-8",
                     "application/json;charset=utf-8", "application/vnd.api+json",
                     "application/ld+JSON; profile=x", "application/x-www-form-urlencoded"):
            body = json.dumps({"dry_run": True}).encode()
            assert client.request("POST", "/v1/check", {"Content-Type": kind}, body).status == 200
        assert client.request("POST", "/v1/check", {}, b'{"dry_run":true}').status == 200
        for path in ("/", "/v1", "/v1/checks", "/v1/check/", "/metrics", "/v1/limits"):
            reply = client.request("GET", path)
            assert reply.status == 404 and reply["content-type"] == "application/problem+json"


def test_what_curl_d_sends_by_itself_is_read_as_json_and_a_real_form_is_refused(weir):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    with weir.client() as client:
        assert client.request("POST", "/v1/check", form, b'{"dry_run":true}').json["allowed"] is True
        assert client.request("POST", "/v1/check", form, b"path=/x&cost=1").status == 400
        assert client.request("POST", "/v1/release", form, b'{"lease":"none"}').status in (400, 404)


def test_a_server_without_rules_allows_and_tells_nothing(tmp_path):
    with Weir(tmp_path) as weir:
        reply = weir.check(path="/x", ip="192.0.2.1")
        assert reply.status == 200 and reply.json["limits"] == [] and reply.json["allowed"] is True
        assert not any("ratelimit" in name for name in reply.fields)


def test_a_token_guards_the_listener(tmp_path):
    server = {"http": {"address": "127.0.0.1:0", "token": "s3cret"}}
    with Weir(tmp_path, rules_of(server=server), http=None) as weir, weir.client() as client:
        assert client.check().status == 401
        for fields, status in (({"Authorization": "Bearer s3cret"}, 200),
                               ({"Authorization": "bearer s3cret"}, 200),
                               ({"X-Weir-Token": "s3cret"}, 200),
                               ({"Authorization": "Bearer s3cre"}, 401),
                               ({"Authorization": "Bearer s3crets"}, 401),
                               ({"Authorization": "Basic s3cret"}, 401),
                               ({"X-Weir-Token": ""}, 401)):
            reply = client.post("/v1/check", {}, fields)
            assert reply.status == status, fields
            assert (reply["www-authenticate"] == "Bearer") == (status == 401)
        assert client.auth(Authorization="Bearer wrong", X_Weir_Token="s3cret").status == 200


def test_unix_sockets_serve_and_leave_no_file_behind(tmp_path):
    path = tmp_path / "http.sock"
    with Weir(tmp_path, rules_of(API), "--workers", "2", http=f"unix:{path}") as weir:
        clients = [weir.client() for _ in range(8)]
        statuses = [client.check(ip="192.0.2.1").status for client in clients]
        assert statuses == [200] * 5 + [429] * 3
        for client in clients:
            client.close()
        assert weir.stop() == 0
    assert not path.exists()


def test_head_like_bodies_are_never_sent_to_head(weir):
    with weir.client() as client:
        client.send(request_bytes("HEAD", "/v1/check") + request_bytes("GET", "/nowhere"))
        assert client.reply(head_only=True).status == 405
        assert client.reply().status == 404
