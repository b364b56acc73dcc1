# SPDX-License-Identifier: Apache-2.0
"""What the dashboard's page asks: the stream, the session, over real sockets."""

import gzip
import json

import pytest

from browser.events import Events
from daemon.certificates import Authority
from daemon.http import Client
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

LIMITS = [{"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "3/hour", "burst": 3},
          {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "2/hour"}]
OWN = {"Host": "localhost:9090", "Origin": "http://localhost:9090"}


def start(folder, limits=LIMITS, admin=None, **options):
    admin = {"address": "127.0.0.1:0"} | (admin or {})
    return Weir(folder, rules_of(*limits, server={"admin": admin}, **options.pop("rules", {})),
                "--workers", "2", admin=None, **options)


def ask(weir, times, user="ann", **fields):
    with weir.client() as client:
        return [client.check(ip="192.0.2.1", attributes={"user": user}, **fields).status
                for _ in range(times)]


def test_the_stream_shows_what_happens(tmp_path):
    with start(tmp_path) as weir, Events(weir.admin_address) as events:
        assert events.head.status == 200
        assert events.head["content-type"] == "text/event-stream"
        assert events.head["cache-control"] == "no-store"
        first = events.next()
        assert first["limits"] == [] and first["denials"] == [] and first["store"] is None
        assert ask(weir, 5).count(429) == 2
        shown = {"requests": 0, "denied": 0, "http": 0}
        denials, limits = [], 0

        def all_shown(snapshot):
            nonlocal limits
            for field in shown:
                shown[field] += snapshot["whole"][field]
            denials.extend(snapshot["denials"])
            limits += sum(allowed + denied for name, allowed, denied, *_ in snapshot["limits"])
            return shown["requests"] == 5 and len(denials) == 2 and limits == 5

        last = events.until(all_shown)
        assert shown == {"requests": 5, "denied": 2, "http": 5}
        assert {(one["key"], one["limit"]) for one in denials} == {("user=ann", "api")}
        assert [(key["key"], key["requests"], key["used_percent"]) for key in last["keys"]] \
            == [("user=ann", 5, 100)]
        assert [(key["key"], key["denied"]) for key in last["denied"]] == [("user=ann", 2)]
        assert last["weight"] == 5 and last["denied_sum"] == 2


def test_each_second_is_one_snapshot_for_all_clients(tmp_path):
    with start(tmp_path) as weir:
        with Events(weir.admin_address) as one, Events(weir.admin_address) as two:
            first, second = one.next(), two.next()
            for _ in range(3):
                while first["second"] != second["second"]:
                    if first["second"] < second["second"]:
                        first = one.next()
                    else:
                        second = two.next()
                assert first == second
                before, first, second = first, one.next(), two.next()
                assert first["second"] > before["second"]


def test_a_reload_ends_the_streams_and_browsers_connect_again(tmp_path):
    with start(tmp_path) as weir:
        with Events(weir.admin_address) as events:
            events.next()
            assert "event=reloaded" in weir.reload()
            assert events.ended()
        with Events(weir.admin_address) as events:
            assert events.next()["reloads"]["ok"] == 1


def test_a_stop_ends_the_streams_at_once(tmp_path):
    with start(tmp_path) as weir, Events(weir.admin_address) as events:
        events.next()
        assert weir.stop() == 0
        assert events.ended()
        assert "stopping_hard" not in weir.text()


def test_a_client_that_reads_nothing_holds_up_no_other(tmp_path):
    with start(tmp_path) as weir, Events(weir.admin_address) as deaf:
        with Events(weir.admin_address) as events:
            for _ in range(3):
                events.next()
        assert deaf.next()


def test_clients_are_bounded(tmp_path):
    with start(tmp_path) as weir:
        streams = [Events(weir.admin_address) for _ in range(32)]
        assert {stream.head.status for stream in streams} == {200}
        with Events(weir.admin_address) as refused:
            assert refused.head.status == 503 and refused.head["retry-after"] == "5"
        streams.pop().client.close()

        def there_is_room():
            with Events(weir.admin_address) as again:
                return again.head.status == 200

        wait_until(there_is_room, what="the place of a client that has gone")
        for stream in streams:
            stream.client.close()


def log_in(weir, token="s3cret", tls=None, **fields):
    with Client(weir.admin_address, tls=tls) as client:
        return client.post("/v1/session", {"token": token}, {**OWN, **fields})


def cookie_of(reply):
    return {**OWN, "Cookie": reply["set-cookie"].partition(";")[0]}


def test_with_a_token_the_stream_needs_a_session_and_ends_with_it(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir:
        with Events(weir.admin_address) as refused:
            assert refused.head.status == 401
        assert log_in(weir, "wrong").status == 401
        cookie = cookie_of(log_in(weir))
        with Events(weir.admin_address, cookie) as events, Client(weir.admin_address) as client:
            events.next()
            assert client.request("DELETE", "/v1/session", cookie).status == 200
            assert events.ended()
        with Events(weir.admin_address, cookie) as refused:
            assert refused.head.status == 401


def test_another_token_in_the_rules_ends_all_sessions(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir:
        cookie = cookie_of(log_in(weir))
        with Client(weir.admin_address) as client:
            assert client.request("GET", "/v1/limits", cookie).status == 200
            weir.write_rules(weir.config.read_text(encoding="utf-8").replace("s3cret", "other"))
            assert "event=reloaded" in weir.reload()
            assert client.request("GET", "/v1/limits", cookie).status == 401
            assert log_in(weir).status == 401
            assert log_in(weir, "other").status == 200


def test_a_session_changes_from_the_own_page_only(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir, Client(weir.admin_address) as client:
        ask(weir, 1)
        cookie = cookie_of(log_in(weir))
        for origin in ("http://localhost:3000", "http://evil.example", "null", None):
            fields = {**cookie, "Origin": origin}
            if origin is None:
                del fields["Origin"]
            reply = client.request("DELETE", "/v1/limits/api/state?key=ann", fields)
            assert reply.status == 403, origin
        assert client.request("DELETE", "/v1/limits/api/state?key=ann", cookie).status == 200


def test_the_cookie_is_for_scripts_of_nobody_and_for_this_site(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir:
        cookies = {log_in(weir)["set-cookie"] for _ in range(3)}
        assert len(cookies) == 3  # each session has an id of its own
        for cookie in cookies:
            parts = cookie.split("; ")
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)
            assert "Secure" not in parts


def test_under_tls_the_cookie_is_secure(tmp_path):
    ca = Authority(tmp_path)
    cert, key = ca.sign("server")
    admin = {"token": "s3cret", "tls": {"cert": str(cert), "key": str(key)}}
    with start(tmp_path, admin=admin) as weir:
        tls = ca.client()
        reply = log_in(weir, tls=tls, Origin="https://localhost:9090")
        assert reply.status == 200 and "; Secure" in reply["set-cookie"]
        with Events(weir.admin_address, cookie_of(reply), tls=tls) as events:
            assert events.next()["second"] > 0


def test_wrong_tokens_are_paced(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir:
        for _ in range(3):
            assert log_in(weir, "wrong").status == 401
        metrics = weir.admin().request("GET", "/metrics").body.decode()
        assert 'weir_auth_failures_total{front="admin",result="wrong"} 3' in metrics


@pytest.mark.parametrize("path", ["/", "/dashboard/app.js", "/dashboard/style.css"])
def test_the_page_says_what_it_may_do(tmp_path, path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir, Client(weir.admin_address) as client:
        reply = client.request("GET", path)
        assert reply.status == 200
        policy = dict(part.strip().split(" ", 1)
                      for part in reply["content-security-policy"].split(";"))
        assert policy == {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'",
                          "connect-src": "'self'", "img-src": "data:", "form-action": "'none'",
                          "base-uri": "'none'", "frame-ancestors": "'none'",
                          "require-trusted-types-for": "'script'", "trusted-types": "'none'"}
        assert reply["x-frame-options"] == "DENY"
        assert reply["x-content-type-options"] == "nosniff"
        assert reply["cache-control"] == "no-cache"
        assert reply["referrer-policy"] == "no-referrer"
        assert client.request("GET", "/dashboard/nothing.js").status == 404


def test_the_rules_say_how_they_were_loaded(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir, weir.admin() as client:
        rules = client.request("GET", "/v1/rules").json
        assert rules["file"] == str(weir.config) and rules["limits"] == 2
        assert (rules["reloads"], rules["failed_reloads"], rules["errors"]) == (0, 0, None)
        good = weir.config.read_text(encoding="utf-8")
        weir.write_rules(good.replace("gcra", "gcrb").replace("2/hour", "2/fortnight"))
        assert client.post("/v1/rules/reload", {}).json == {"wanted": True}
        weir.wait_event("reload_failed")
        rules = client.request("GET", "/v1/rules").json
        assert (rules["reloads"], rules["failed_reloads"], rules["limits"]) == (0, 1, 2)
        errors = rules["errors"].splitlines()
        assert len(errors) >= 2 and all(line.startswith(f"{weir.config}:1:") for line in errors)
        weir.write_rules(good)
        assert client.post("/v1/rules/reload", {}).status == 200
        weir.wait_event("reloaded")
        rules = client.request("GET", "/v1/rules").json
        assert (rules["reloads"], rules["failed_reloads"], rules["errors"]) == (1, 1, None)
        assert client.request("GET", "/v1/rules/reload").status == 405
        assert client.request("GET", "/v1/rules/nothing").status == 404


def test_a_reload_is_a_change(tmp_path):
    with start(tmp_path) as weir, weir.admin() as client:
        assert client.post("/v1/rules/reload", {}).status == 403
        assert client.request("GET", "/v1/rules").status == 200
    with start(tmp_path, admin={"address": f"unix:{tmp_path}/admin.sock"}) as weir:
        with weir.admin() as client:
            assert client.post("/v1/rules/reload", {}).status == 200
            weir.wait_event("reloaded")
            page = {"Accept-Language": "en", "Host": "localhost:9090"}
            assert client.request("POST", "/v1/rules/reload",
                                  {**page, "Origin": "http://localhost:3000"}).status == 403
            assert client.request("POST", "/v1/rules/reload",
                                  {**page, "Origin": "http://localhost:9090"}).status == 200
            assert client.request("GET", "/v1/rules", {**page, "Host": "rebound.example:9090"}) \
                .status == 403


def test_the_streams_are_counted(tmp_path):
    with start(tmp_path) as weir:
        assert weir.metrics()["weir_dashboard_clients"] == 0
        with Events(weir.admin_address) as events:
            events.next()
            metrics = weir.metrics()
            assert metrics["weir_dashboard_clients"] == 1
            assert metrics['weir_dashboard_events_total{result="sent"}'] >= 1
            assert metrics["weir_dashboard_sessions"] == 0


GZIP = {"Accept-Encoding": "gzip, deflate, br"}


@pytest.mark.parametrize("path", ["/", "/dashboard/app.js", "/dashboard/style.css", "/playground/"])
def test_a_file_is_sent_once_and_compressed(tmp_path, path):
    with start(tmp_path) as weir, Client(weir.admin_address) as client:
        plain, packed = client.request("GET", path), client.request("GET", path, GZIP)
        assert gzip.decompress(packed.body) == plain.body and len(packed.body) < 0.6 * len(plain.body)
        assert packed["content-encoding"] == "gzip" and "content-encoding" not in plain.fields
        for reply, fields in ((plain, {}), (packed, GZIP)):
            assert reply["vary"] == "Accept-Encoding"
            for known in (reply["etag"], f'"other", W/{reply["etag"]}'):
                again = client.request("GET", path, {**fields, "If-None-Match": known})
                assert again.status == 304 and again.body == b"" and again["etag"] == reply["etag"]
                assert "content-length" not in again.fields and again["content-security-policy"]
            for other in ('"other"', reply["etag"].strip('"'), ""):
                assert client.request("GET", path, {**fields, "If-None-Match": other}).status == 200
        assert plain["etag"] != packed["etag"]


def test_answers_are_compressed_for_those_who_take_that(tmp_path):
    limits = [{"name": f"limit-{i}", "match": {"path": f"/{i}"}, "key": ["user"], "rate": "1/s"}
              for i in range(50)]
    with start(tmp_path, limits) as weir, Client(weir.admin_address) as client:
        plain = client.request("GET", "/v1/limits")
        for fields in (GZIP, {"Accept-Encoding": "gzip;q=0.1"}):
            packed = client.request("GET", "/v1/limits", fields)
            assert packed["content-encoding"] == "gzip" and packed["vary"] == "Accept-Encoding"
            assert json.loads(gzip.decompress(packed.body)) == plain.json
            assert len(packed.body) < len(plain.body) / 5
        for fields in ({}, {"Accept-Encoding": "br"}, {"Accept-Encoding": "gzip;q=0"}):
            assert "content-encoding" not in client.request("GET", "/v1/limits", fields).fields
        small = client.request("GET", "/v1/limits/limit-3", GZIP)
        assert small.json["name"] == "limit-3" and "content-encoding" not in small.fields
        assert client.request("GET", "/v1/limits/nope").status == 404


def test_a_stream_has_the_parts_that_were_asked_for(tmp_path):
    always = {"second", "node", "reloads", "started_s", "trouble"}
    with start(tmp_path) as weir:
        with Events(weir.admin_address, parts="") as events:
            assert set(events.next()) == always
        with Events(weir.admin_address, parts="whole,denied") as some, \
                Events(weir.admin_address, parts="denials") as other:
            assert set(some.next()) == always | {"whole", "denied", "denied_sum"}
            assert set(other.next()) == always | {"denials", "denials_more", "denial_last"}
        with Events(weir.admin_address, parts="whole%2Ctable") as events:
            assert set(events.next()) == always | {"whole", "table"}
        for wrong in ("nope", "whole,nope", "whole%2", "whole&x=1"):
            with Events(weir.admin_address, parts=wrong) as events:
                assert events.head.status == 400, wrong


def test_each_event_of_a_compressed_stream_can_be_read_when_it_comes(tmp_path):
    with start(tmp_path) as weir:
        with Events(weir.admin_address, GZIP) as packed, Events(weir.admin_address) as plain:
            assert packed.head["content-encoding"] == "gzip"
            first = packed.next()
            same = plain.until(lambda snapshot: snapshot["second"] >= first["second"])
            while first["second"] < same["second"]:
                first = packed.next()
            assert first == same
            sizes = []
            for _ in range(3):
                before = packed.bytes
                packed.next()
                sizes.append(packed.bytes - before)
            assert max(sizes) < len(json.dumps(same)) / 5  # what was there before costs nothing
        assert weir.metrics()["weir_dashboard_event_bytes_total"] >= packed.bytes


def named(weir, name):
    """The fields of a session of a person."""
    with Client(weir.admin_address) as client:
        return cookie_of(client.post("/v1/session", {"token": "s3cret", "name": name}, OWN))


@pytest.mark.parametrize("name", ["Ann Lee", "علي", "x" * 64])
def test_what_a_session_changes_has_the_name_of_its_person(tmp_path, name):
    standing = {"standing": {"by": ["user"], "file": str(tmp_path / "standing.db")}}
    with start(tmp_path, admin={"token": "s3cret"}, rules=standing) as weir, \
            Client(weir.admin_address) as client:
        fields = named(weir, f" {name} ")
        assert client.request("GET", "/v1/session", fields).json["name"] == name
        body = {"kind": "user", "value": "bob", "level": "suspended", "by": "dashboard"}
        json_fields = {**fields, "Content-Type": "application/json"}
        assert client.request("PUT", "/v1/standing", json_fields, json.dumps(body).encode()).status == 200
        assert client.request("GET", "/v1/standing", fields).json["entries"][0]["by"] == name
        assert client.request("DELETE", "/v1/standing?kind=user&value=bob&by=else", fields).status == 200
        changes = client.request("GET", "/v1/standing/history", fields).json["changes"]
        assert [change["by"] for change in changes] == [name, name]
        assert client.request("POST", "/v1/rules/reload", json_fields, b"{}").status == 200
        assert client.request("GET", "/v1/rules", fields).json["asked_by"] == name
        assert "by=" in weir.wait_event("reload_asked")


def test_without_a_person_the_request_says_who_it_is(tmp_path):
    with start(tmp_path, admin={"token": "s3cret"}) as weir, weir.admin() as client:
        assert "asked_by" not in client.request("GET", "/v1/rules").json
        for body, who in (({"by": "deploy"}, "deploy"), ({}, "operator"), ({"by": 1}, "operator"),
                          ({"by": "x" * 65}, "operator"), ({"by": "a\nb"}, "operator")):
            assert client.post("/v1/rules/reload", body).status == 200
            assert client.request("GET", "/v1/rules").json["asked_by"] == who
        assert client.request("POST", "/v1/rules/reload").status == 200
        cookie = cookie_of(log_in(weir))
        with Client(weir.admin_address) as browser:
            assert "name" not in browser.request("GET", "/v1/session", cookie).json


@pytest.mark.parametrize("name", ["x" * 65, "a\tb", "a\u202eb", "\x7f", 1, None, ["ann"]])
def test_what_is_no_name_begins_no_session(tmp_path, name):
    with start(tmp_path, admin={"token": "s3cret"}) as weir, Client(weir.admin_address) as client:
        reply = client.post("/v1/session", {"token": "s3cret", "name": name}, OWN)
        assert reply.status == 400 and "set-cookie" not in reply.fields
