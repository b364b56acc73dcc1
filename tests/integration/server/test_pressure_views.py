# SPDX-License-Identifier: Apache-2.0
"""What an operator sees of limits under pressure: /v1/limits, metrics, `weir top`, `weir explain`."""

import re

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

TOKEN = "operator0123456789"
SERVER = {"admin": {"listen": "127.0.0.1:0", "token": TOKEN}}
STEPPED = {"name": "stepped", "match": {"path": "/stepped"}, "key": [], "rate": "4/h",
           "steps": [{"at": "50%", "mark": True}, {"at": "75%", "delay": "20ms"}],
           "reject": {"status": 403, "tarpit": "7ms", "headers": {"X-A": "b"}, "body": "no",
                      "content_type": "text/plain"}}
SHED = {"name": "shed", "match": {"path": "/shed"}, "key": [], "rate": "10/h",
        "algorithm": "sliding_log", "shed": {"normal": "90%", "sheddable": "20%"}}
HEALTHY = {"name": "healthy", "match": {"path": "/healthy"}, "key": [], "rate": "10/h",
           "algorithm": "fixed_window", "adaptive": "backend"}
SLOTS = {"name": "slots", "match": {"path": "/slots"}, "key": [], "algorithm": "concurrency",
         "limit": 50, "adaptive": "inflight"}
STANDING = {"name": "levels", "match": {"path": "/levels"}, "key": ["client.ip"], "rate": "10/h",
            "by_standing": {"warned": "50%", "throttled": "20%"}}
PLAIN = {"name": "plain", "match": {"path": "/plain"}, "key": [], "rate": "10/h"}
SECTIONS = {
    "priority": {"from": "header.x-priority"},
    "adaptive": {
        "backend": {"signals": {"queue": "pushed", "p99": "pushed"},
                    "table": [{"queue": 100, "x": "50%"}, {"p99": "2s", "x": "40%"}],
                    "hysteresis": "1h"},
        "inflight": {"algorithm": "aimd", "min": 5, "max": 50}},
}


def sections_of(folder, **more):
    return {**SECTIONS, "standing": {"by": ["client.ip/64"], "file": f"{folder}/standing.db"},
            **more}


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    rules = rules_of(STEPPED, SHED, HEALTHY, SLOTS, STANDING, PLAIN, server=SERVER,
                     **sections_of(tmp_path))
    with Weir(tmp_path, rules) as running:
        yield running


def limits_of(weir):
    with weir.admin() as admin:
        answer = admin.request("GET", "/v1/limits").json
    return answer, {one["name"]: one for one in answer["limits"]}


def top(weir):
    return run_weir("top", "--admin", weir.admin_address, "--token", TOKEN, "--once").stdout


def shed(weir, priority):
    return weir.check(path="/shed", attributes={"header.x-priority": priority}).status


def test_actions_are_counted_by_limit_and_kind(weir):
    for _ in range(6):
        weir.check(path="/stepped")
    weir.check(path="/stepped", dry_run=True)  # is not counted
    metrics = weir.metrics()
    counts = {"mark": 1, "delay": 2, "tarpit": 2}
    for action, count in counts.items():
        assert metrics[f'weir_actions_total{{limit="stepped",action="{action}"}}'] == count
    assert not [name for name in metrics if "weir_actions_total" in name and "stepped" not in name]
    _, limits = limits_of(weir)
    assert limits["stepped"]["actions"] == counts
    assert limits["stepped"]["steps"] == [{"at_percent": 50, "action": "mark"},
                                          {"at_percent": 75, "action": "delay", "delay_ms": 20}]
    assert limits["stepped"]["reject"] == {"status": 403, "headers": 1, "body": True,
                                           "tarpit_ms": 7}
    assert not {"actions", "steps", "reject"} & set(limits["plain"])
    text = top(weir)
    assert re.search(r"^ACTIONS OF\nstepped +mark 1, delay 2, tarpit 2$", text, re.M)


def test_denials_are_counted_by_class(weir):
    answer, limits = limits_of(weir)
    assert answer["priority"] == {"from": "header", "default": "normal",
                                  "classes": ["critical", "normal", "sheddable"]}
    assert limits["shed"]["shed_percent"] == {"critical": 100, "normal": 90, "sheddable": 20}
    assert "DENIED BY CLASS OF\nshed                     -\n" in top(weir)
    assert [shed(weir, "sheddable") for _ in range(5)] == [200] * 2 + [429] * 3
    assert [shed(weir, "normal") for _ in range(8)] == [200] * 7 + [429]
    assert [shed(weir, "critical") for _ in range(2)] == [200, 429]
    counts = {"critical": 1, "normal": 1, "sheddable": 3}
    metrics = weir.metrics()
    for name, count in counts.items():
        assert metrics[f'weir_priority_denied_total{{limit="shed",class="{name}"}}'] == count
    assert limits_of(weir)[1]["shed"]["denied_by_class"] == counts
    text = top(weir)
    assert re.search(r"^DENIED BY CLASS OF\nshed +critical 1, normal 1, sheddable 3$", text, re.M)
    assert not [name for name in metrics if "priority_denied" in name and "plain" in name]


def test_other_classes_after_a_reload_begin_anew(weir):
    for _ in range(3):
        shed(weir, "sheddable")
    renamed = sections_of(weir.folder, priority={
        "from": "header.x-priority", "classes": ["high", "low"], "default": "high"})
    limit = {**SHED, "shed": {"low": "30%"}}
    weir.write_rules(rules_of(limit, HEALTHY, SLOTS, STANDING, server=SERVER, **renamed))
    assert "event=reloaded" in weir.reload()
    wait_until(lambda: limits_of(weir)[1]["shed"]["denied_by_class"] == {"high": 0, "low": 0})


def test_scales_and_their_causes_are_shown(weir):
    assert re.search(r"^ADAPTIVE +SCALE +LOWEST/HOUR  CONTROLLER\n"
                     r"healthy +100% +100%  backend\nslots +100% +100%  inflight$", top(weir), re.M)
    with weir.admin() as admin:
        pushed = {"controller": "backend", "signals": {"queue": 150, "p99_ms": 2500}, "ttl": 600}
        assert admin.post("/v1/health", pushed).status == 200
    wait_until(lambda: limits_of(weir)[1]["healthy"]["scale_percent"] == 20)
    _, limits = limits_of(weir)
    assert limits["healthy"]["scale_causes_percent"] == {"p99": 40, "queue": 50}
    assert limits["healthy"]["controller"] == "backend"
    assert limits["healthy"]["lowest_percent_of_hour"] == 20
    assert limits["slots"]["number"] == 50 and limits["slots"]["controller"] == "inflight"
    assert limits["levels"]["by_standing_percent"] == {"warned": 50, "throttled": 20}
    assert "scale_percent" not in limits["plain"]
    assert re.search(r"^healthy +20% +20%  backend: p99 40%, queue 50%$", top(weir), re.M)
    with weir.admin() as admin:
        pushed["signals"] = {"queue": 0, "p99_ms": 1}
        assert admin.post("/v1/health", pushed).status == 200
    wait_until(lambda: re.search(r"^healthy +20% +20%  backend: rising$", top(weir), re.M))


def test_explain_names_every_scale(weir):
    def explain(path, *options):
        return run_weir("explain", "--config", weir.config, "--path", path, "--ip", "192.0.2.1",
                        *options).stdout

    assert "    scale  20%: priority sheddable 20%\n" in explain(
        "/shed", "--header", "X-Priority: sheddable")
    assert "    scale  100%: priority critical 100%\n" in explain(
        "/shed", "--header", "X-Priority: critical")
    assert "    scale  100%: adaptive backend (its scale: weir top)\n" in explain("/healthy")
    assert "    scale  100%: standing good 100%\n" in explain("/levels")
    assert "scale" not in explain("/plain")
    run = run_weir("standing", "set", "192.0.2.1", "throttled", "1h", "--reason", "test",
                   "--admin", weir.admin_address, "--token", TOKEN)
    assert run.returncode == 0, run.stderr
    assert "    scale  20%: standing throttled 20%\n" in explain("/levels")
    result = explain("/stepped", "--cost", "5")
    assert "    reject 403 after 7ms, with 1 header fields, with a body of text/plain\n" in result
    assert "\naction tarpit, by 7ms\nThe request is denied by stepped" in result
