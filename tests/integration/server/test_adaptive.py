# SPDX-License-Identifier: Apache-2.0
"""Limits that follow health: signals that are pushed, outcomes that are reported, AIMD and Gradient2,
and what an operator sees of them. The arithmetic has unit tests; here it meets a daemon."""

import base64
import json
import re
import time

import pytest

from daemon.http import request_bytes
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

BACKEND = {"backend": {
    "signals": {"queue": "pushed", "p99": "pushed", "errors": "outcomes"},
    "table": [{"queue": 100, "x": "50%"}, {"p99": "2s", "x": "40%"}, {"errors": "50%", "x": "30%"}],
    "floor": "10%", "hysteresis": "1s"}}
INFLIGHT = {"inflight": {"algorithm": "aimd", "min": 20, "max": 100, "decrease": "50%",
                         "on": ["5xx", "timeout 5s"]}}
LIMIT = {"name": "api", "key": ["client.ip"], "rate": "100/h", "algorithm": "fixed_window",
         "adaptive": "backend"}
SLOTS = {"name": "slots", "key": [], "algorithm": "concurrency", "limit": 100,
         "adaptive": "inflight"}


def rules(limit, adaptive):
    return rules_of(limit, adaptive=adaptive,
                    server={"admin": {"listen": "127.0.0.1:0", "token": "operator0123456789"}})


def push(weir, status=200, **body):
    with weir.admin() as client:
        answer = client.post("/v1/health", body)
    assert answer.status == status, answer.body
    return answer.json


def health(weir):
    with weir.admin() as client:
        return client.request("GET", "/v1/health").json


def report(weir, body):
    with weir.client() as client:
        return client.post("/v1/report", body)


def scale_of(weir, name):
    return next(one["scale_percent"] for one in health(weir)["limits"] if one["name"] == name)


def admitted(weir, ip, cost=1):
    count = 0
    while weir.check(ip=ip, cost=cost).status == 200:
        count += 1
    return count


def test_a_pushed_signal_lowers_the_limit_at_once_and_its_end_raises_it(tmp_path):
    with Weir(tmp_path, rules(LIMIT, BACKEND)) as weir:
        assert admitted(weir, "192.0.2.1") == 100
        assert push(weir, controller="backend", signals={"queue": 150}, ttl=600) == {"taken": 1}
        wait_until(lambda: scale_of(weir, "api") == 50, what="the scale of the queue")
        assert admitted(weir, "192.0.2.2") == 50
        answer = weir.check(ip="192.0.2.2")
        assert answer.status == 429
        assert answer.json["limits"][0]["limit"] == 50
        push(weir, signals={"p99_ms": 2000, "queue": 150}, ttl=600)
        wait_until(lambda: scale_of(weir, "api") == 20, what="the product of two signals")
        metrics = weir.metrics()
        assert metrics['weir_scale_percent{limit="api",controller="backend"}'] == 20
        assert metrics['weir_signal{controller="backend",signal="queue"}'] == 150
        assert metrics['weir_signal_missing{controller="backend",signal="errors_percent"}'] == 1
        push(weir, signals={"p99_ms": 1, "queue": 0})
        wait_until(lambda: scale_of(weir, "api") == 100, what="the whole limit")
        assert admitted(weir, "192.0.2.2") == 50
        assert "event=scale limit=api controller=backend" in weir.text()


def test_reported_failures_are_a_signal(tmp_path):
    with Weir(tmp_path, rules(LIMIT, BACKEND)) as weir:
        for status in [200, 503] * 20:
            answer = report(weir, {"ip": "192.0.2.1", "status": status})
            assert answer.json == {"reported": True, "limits": 1}
        wait_until(lambda: scale_of(weir, "api") == 30, what="the scale of errors")
        assert admitted(weir, "192.0.2.1") == 30


def others(weir, statuses=(200,), count=20):
    """One request each of so many other callers has ended so."""
    for i in range(count):
        for status in statuses:
            assert report(weir, {"ip": f"198.51.100.{i}", "status": status}).status == 200


def test_one_caller_does_not_shrink_the_limit_of_all(tmp_path):
    with Weir(tmp_path, rules(LIMIT, BACKEND)) as weir:
        others(weir)
        for _ in range(120):
            assert report(weir, {"ip": "192.0.2.1", "status": 503}).status == 200
        signal = 'weir_signal{controller="backend",signal="errors_percent"}'
        wait_until(lambda: weir.metrics().get(signal), what="the reading")
        assert 0 < weir.metrics()[signal] < 5
        assert scale_of(weir, "api") == 100
        others(weir, [503] * 8)  # now the backend is ill
        wait_until(lambda: scale_of(weir, "api") == 30, what="the scale of errors")


def test_the_addresses_of_one_network_are_one_caller(tmp_path):
    with Weir(tmp_path, rules(LIMIT, BACKEND)) as weir:
        others(weir)
        for i in range(120):
            assert report(weir, {"ip": f"2001:db8:0:7::{i:x}", "status": 503}).status == 200
        signal = 'weir_signal{controller="backend",signal="errors_percent"}'
        wait_until(lambda: weir.metrics().get(signal), what="the reading")
        assert 0 < weir.metrics()[signal] < 5


def test_aimd_heeds_no_single_caller_beside_others(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir:
        others(weir)
        for _ in range(60):
            report(weir, {"ip": "192.0.2.1", "status": 503, "latency_ms": 1})
        assert number_of(weir) == 100
        leases = [weir.check(ip="192.0.2.1").json["lease"] for _ in range(20)]
        for lease in leases:  # a lease says whose it was, though the limit has no key
            release(weir, lease, status=503)
        assert number_of(weir) == 100
        with weir.client() as client:
            for _ in range(20):
                token = client.post("/v1/reserve", {"ip": "192.0.2.1"}).json.get("reservation")
                if token:
                    client.post("/v1/settle", {"reservation": token, "status": 503})
        assert number_of(weir) == 100
        others(weir, [503] * 3)

        def falls():
            report(weir, {"ip": "198.51.100.1", "status": 503, "latency_ms": 1})
            return number_of(weir) < 100

        wait_until(falls, what="the decrease")


def test_a_forged_caller_in_a_token_is_none(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir:
        others(weir)
        for i in range(40):
            lease = bytearray(base64.urlsafe_b64decode(weir.check(ip="192.0.2.1").json["lease"] + "=="))
            assert lease[0] & 0x40
            lease[-8:] = (i + 1).to_bytes(8, "big")
            forged = base64.urlsafe_b64encode(bytes(lease)).rstrip(b"=").decode()
            assert release(weir, forged, status=503).status == 200
        assert number_of(weir) == 100


def test_a_report_without_a_reservation_needs_a_trusted_listener(tmp_path):
    server = {"http": {"address": "127.0.0.1:0", "trusted": False}}
    with Weir(tmp_path, rules_of(LIMIT, adaptive=BACKEND, server=server), http=None) as weir:
        answer = report(weir, {"ip": "192.0.2.1", "status": 503})
        assert answer.status == 403 and "trusted: true" in answer.json["detail"]
        with weir.client() as client:
            token = client.post("/v1/reserve", {"ip": "192.0.2.1"}).json["reservation"]
            assert client.post("/v1/report", {"reservation": token, "status": 503}).status == 200


def test_aimd_moves_with_each_result(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir:
        assert health(weir)["limits"][0]["limit"] == 100
        report(weir, {"status": 503, "latency_ms": 1})
        assert health(weir)["limits"][0]["limit"] == 50
        assert scale_of(weir, "slots") == 50
        leases = 0
        while weir.check().status == 200:
            leases += 1
        assert leases == 50


def test_aimd_takes_a_burst_of_failures_without_latencies_for_one(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir, weir.client() as client:
        body = {"status": 503}
        for _ in range(3):
            client.send(request_bytes("POST", "/v1/report", {"Content-Type": "application/json"},
                                      json.dumps(body).encode()))
        assert [client.reply().status for _ in range(3)] == [200] * 3
        assert health(weir)["limits"][0]["limit"] == 50


def test_a_scale_leaves_no_less_than_the_minimum(tmp_path):
    wide = {"inflight": {"algorithm": "aimd", "min": 30, "max": 2000, "decrease": "1%"}}
    with Weir(tmp_path, rules({**SLOTS, "limit": 2000}, wide)) as weir:
        report(weir, {"status": 503, "latency_ms": 1})
        assert health(weir)["limits"][0]["limit"] == 30
        assert scale_of(weir, "slots") == 2
        assert weir.check(cost=30).status == 200


def release(weir, lease, **more):
    with weir.client() as client:
        return client.post("/v1/release", {"lease": lease, **more})


def number_of(weir):
    return health(weir)["limits"][0]["limit"]


def test_a_release_is_a_result_once(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir:
        lease = weir.check().json["lease"]
        assert release(weir, lease, status=503).json == {"released": True}
        assert number_of(weir) == 50
        assert release(weir, lease, status=503).status == 404
        assert number_of(weir) == 50
        assert release(weir, weir.check().json["lease"], status=99).status == 400


def test_a_release_tells_how_long_the_lease_lasted(tmp_path):
    slow = {"inflight": {**INFLIGHT["inflight"], "on": ["timeout 5ms"]}}
    with Weir(tmp_path, rules(SLOTS, slow)) as weir:
        lease = weir.check().json["lease"]
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 0.006, what="the timeout")
        assert release(weir, lease).status == 200
        assert number_of(weir) == 50


def test_releases_make_a_p99_and_no_errors(tmp_path):
    table = {"backend": {"signals": {"p99": "outcomes", "errors": "outcomes"},
                         "table": [{"p99": "10min", "x": "50%"}, {"errors": "1%", "x": "50%"}]}}
    with Weir(tmp_path, rules({**SLOTS, "adaptive": "backend"}, table)) as weir:
        for _ in range(25):
            assert release(weir, weir.check().json["lease"]).status == 200

        def readings():
            return {one["name"]: one["value"] for one in health(weir)["controllers"][0]["signals"]}

        wait_until(lambda: readings()["p99_ms"] is not None, what="the latency of leases")
        assert readings()["errors_percent"] is None  # a release without a status does not say


def test_aimd_grows_only_while_half_of_its_number_is_in_flight(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir:
        report(weir, {"status": 503})
        for _ in range(110):
            report(weir, {"status": 200})
        assert number_of(weir) == 50
        leases = [weir.check().json["lease"] for _ in range(24)]
        for lease in leases:
            release(weir, lease, status=200)
        assert number_of(weir) == 50
        leases = [weir.check().json["lease"] for _ in range(40)]
        for _ in range(55):
            report(weir, {"status": 200})
        assert number_of(weir) == 51
        for lease in leases:  # those that began as 26 and more were in flight
            release(weir, lease, status=200)
        for _ in range(2):
            for lease in [weir.check().json["lease"] for _ in range(50)]:
                release(weir, lease, status=200)
        assert number_of(weir) == 52


def test_a_settlement_is_a_result_once(tmp_path):
    limit = {**LIMIT, "adaptive": "inflight"}
    with Weir(tmp_path, rules(limit, INFLIGHT)) as weir:
        with weir.client() as client:
            reserved = client.post("/v1/reserve", {"ip": "192.0.2.1", "cost": 1}).json
            ended = {"reservation": reserved["reservation"], "status": 200, "latency_ms": 6000}
            assert client.post("/v1/settle", ended).json["repeated"] is False
            assert scale_of(weir, "api") == 50
            assert client.post("/v1/settle", ended).json["repeated"] is True
            assert scale_of(weir, "api") == 50
            bad = client.post("/v1/settle", {**ended, "latency_ms": -1})
            assert bad.status == 400 and bad.json["detail"].startswith("latency_ms: ")


def test_a_reload_keeps_what_was_learned(tmp_path):
    with Weir(tmp_path, rules(SLOTS, INFLIGHT)) as weir:
        report(weir, {"status": 503, "latency_ms": 1})
        lower = {"inflight": {**INFLIGHT["inflight"], "min": 60}}
        weir.write_rules(rules(SLOTS, lower))
        assert "event=reloaded" in weir.reload()
        assert health(weir)["limits"][0]["limit"] == 60


@pytest.mark.parametrize("body, detail", [
    ({}, "expected {"),
    ({"signals": {}}, "expected {"),
    ({"signals": {"queue": -1}}, "signals.queue: must be a number of 0 to"),
    ({"signals": {"queue": "5"}}, "signals.queue: must be a number of 0 to"),
    ({"signals": {"cpu_percent": 101}}, "signals.cpu_percent: must be a number of 0 to 100"),
    ({"signals": {"load": 1}}, "signals.load: unknown"),
    ({"signals": {"queue": 1}, "ttl": 0}, "ttl: must be 1 to 3600 seconds"),
    ({"signals": {"queue": 1}, "more": 0}, "expected {"),
])
def test_a_bad_push_is_refused_and_changes_nothing(tmp_path, body, detail):
    with Weir(tmp_path, rules(LIMIT, BACKEND)) as weir:
        assert push(weir, status=400, **body)["detail"].startswith(detail)
        assert push(weir, status=404, signals={"cpu_percent": 5})["detail"].startswith("no contr")
        assert scale_of(weir, "api") == 100


def test_a_bad_report_is_refused(tmp_path):
    with Weir(tmp_path, rules(LIMIT, BACKEND)) as weir:
        for body, detail in [({"ip": "192.0.2.1"}, "status: required, 100 to 599"),
                             ({"status": 99}, "status: not a status of 100 to 599"),
                             ({"status": 200, "dry_run": True}, "life, dry_run"),
                             ([{"status": 200}], "one request is required"),
                             ({"status": 200, "ip": "x"}, "ip: not an IP address")]:
            answer = report(weir, body)
            assert answer.status == 400 and answer.json["detail"].startswith(detail), answer.body


def test_a_replay_follows_recorded_outcomes(tmp_path):
    """Ten requests a second; 30 seconds of failures lower the limit to 3, until hysteresis has passed."""
    document = {"version": 1, "limits": [{**LIMIT, "rate": "10/s"}], "adaptive": {"backend": {
        "signals": {"errors": "outcomes"}, "table": [{"errors": "50%", "x": "30%"}],
        "hysteresis": "5s"}}}
    (tmp_path / "rules.yaml").write_text(json.dumps(document), encoding="utf-8")
    with open(tmp_path / "trace.jsonl", "w", encoding="utf-8") as trace:
        for i in range(1200):
            failing = 300 <= i < 600
            line = {"t": 1700000000 + i / 10, "ip": "192.0.2.1", "latency_ms": 100,
                    "status": 503 if failing else 200}
            trace.write(json.dumps(line) + "\n")
    decisions = tmp_path / "decisions.jsonl"
    done = run_weir("replay", "--config", tmp_path / "rules.yaml", "--decisions", decisions,
                    tmp_path / "trace.jsonl")
    assert done.returncode == 0, done.stderr
    assert re.search(r"LIMITS BY HEALTH.*\napi +30 % +2023-11-14T22:13:\d\d", done.stdout), done.stdout
    allowed = [json.loads(line)["allowed"] for line in decisions.read_text().splitlines()]
    seconds = [sum(allowed[second:second + 10]) for second in range(0, 1200, 10)]
    assert seconds[:30] == [10] * 30
    assert set(seconds[40:60]) == {3}
    assert seconds[90:] == [10] * 30
