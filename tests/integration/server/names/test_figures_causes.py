# SPDX-License-Identifier: Apache-2.0
"""Requests that are refused for each cause, known ones, and every figure of every view beside the record:
by the limit, the standing, unknown credentials, a challenge, a store that fails, and what cannot be
read; with what shadow limits would deny, and names that no rule knows."""

import collections
import json
import signal

import pytest

from daemon.challenge import KEY
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir
from test_figures import alert_parts, ask, panel_text, query, series, start_prometheus

YEAR = "366d"
COUNTS = {"allowed": 260, "limit": 70, "standing": 30, "unknown": 40, "challenge": 50, "store": 20, "unreadable": 30}
CAUSES = [cause for cause in COUNTS if cause != "allowed"]
NAMES = {"tennant": 60, "regoin": 25}  # in requests; nobody has declared them
SHADOW = 200  # of the allowed ones


def rules(folder, url):
    (folder / "challenge.key").write_text(KEY + "\n", encoding="ascii")
    (folder / "keys").write_text(json.dumps({"0" * 64: {"user": "somebody"}}), encoding="ascii")
    return rules_of(
        {"name": "few", "match": {"path": "/few"}, "key": ["user"], "rate": f"10/{YEAR}",
         "algorithm": "token_bucket"},
        {"name": "human", "match": {"path": "/human"}, "key": ["client.ip"], "rate": f"1000/{YEAR}",
         "algorithm": "token_bucket", "steps": [{"at": "1%", "challenge": True}]},
        {"name": "vault", "match": {"path": "/vault"}, "key": ["user"], "rate": f"1000/{YEAR}",
         "algorithm": "token_bucket", "on_store_error": "closed"},
        {"name": "quiet", "match": {"path": "/plain"}, "key": ["user"], "rate": f"40/{YEAR}", "shadow": True,
         "algorithm": "token_bucket"},
        identify=["header.x-api-key"], keys=str(folder / "keys"), on_unknown="deny",
        denials={"sample": 1000}, challenge={"listen": "127.0.0.1:0", "secret_file": "challenge.key", "difficulty": 8},
        standing={"by": ["user"], "file": str(folder / "standing.db")},
        store={"redis": {"url": url}, "nodes": 1, "deadline": "2s"},
        server={"admin": {"address": "127.0.0.1:0", "token": "s3cret"}})


class Sender:
    """Sends what the record says, and holds the answers to it."""

    def __init__(self, client):
        self.client, self.sent = client, collections.Counter()

    def check(self, cause, path, user, **more):
        fields = {"path": path, "ip": "192.0.2.1", "attributes": {"user": user, **more.pop("names", {})}, **more}
        reply = self.client.check(**fields)
        wanted = {"allowed": 200, "store": 503}.get(cause, 429)
        assert reply.status == wanted, (cause, reply.body)
        self.sent[cause] += 1

    def unreadable(self):
        reply = self.client.auth("/few", client="no address")
        assert reply.status == 400, reply.body
        self.sent["unreadable"] += 1


def names_of(number):
    return {name: "x" for name, count in NAMES.items() if number < count}


def send_all(sender, weir, redis):
    for i in range(240):
        sender.check("allowed", "/plain", "ann", names=names_of(i))
    for i in range(80):
        sender.check("allowed" if i < 10 else "limit", "/few", "bob")
    for i in range(60):
        sender.check("allowed" if i < 10 else "challenge", "/human", "cid")
    for _ in range(COUNTS["unknown"]):
        fields = {"path": "/few", "ip": "192.0.2.1", "headers": {"x-api-key": "other"}}
        assert sender.client.check(**fields).json["denied_by"] == "unknown"
        sender.sent["unknown"] += 1
    body = json.dumps({"kind": "user", "value": "eve", "level": "revoked"}).encode()
    with weir.admin() as admin:
        assert admin.request("PUT", "/v1/standing", body=body).status == 200
    for _ in range(COUNTS["standing"]):
        sender.check("standing", "/few", "eve")
    for _ in range(COUNTS["unreadable"]):
        sender.unreadable()
    redis.signal(signal.SIGSTOP)
    try:
        for _ in range(COUNTS["store"]):
            sender.check("store", "/vault", "dan")
    finally:
        redis.signal(signal.SIGCONT)


@pytest.fixture(scope="module", name="run")
def fixture_run(tmp_path_factory, redis):
    folder = tmp_path_factory.mktemp("causes")
    with Weir(folder, rules(folder, redis.url), "--workers", "2", admin=None) as weir:
        wait_until(lambda: weir.metrics().get("weir_store_up") == 1, what="the store")
        prometheus = start_prometheus(weir, folder)
        with weir.client() as client:
            sender = Sender(client)
            send_all(sender, weir, redis)
        total = sum(COUNTS.values())
        wait_until(lambda: series(weir)["requests"] == total, what="a tick that has counted all")
        yield weir, sender.sent, prometheus
        if prometheus:
            prometheus[0].kill()
            prometheus[0].wait()


def test_what_was_sent_is_the_record(run):
    assert run[1] == COUNTS


def test_series_have_each_cause(run):
    whole = series(run[0])
    assert {cause: whole[f"refused_{cause}"] for cause in CAUSES} == {cause: COUNTS[cause] for cause in CAUSES}
    assert whole["requests"] == whole["http"] == sum(COUNTS.values())
    assert whole["denied"] == sum(COUNTS.values()) - COUNTS["allowed"]
    assert whole["allowed"] == COUNTS["allowed"]
    assert whole["shadow_denied"] == series(run[0], limit="quiet")["shadow_denied"] == SHADOW


def test_metrics_and_the_list_of_limits_have_each_cause(run):
    weir = run[0]
    metrics = weir.metrics()
    listed = ask(weir, "/v1/limits")
    assert listed["requests"]["decided"] == sum(COUNTS.values())
    for cause in CAUSES:
        assert metrics[f'weir_requests_refused_total{{cause="{cause}"}}'] == COUNTS[cause]
        assert listed["requests"]["refused"][cause] == COUNTS[cause]
    assert metrics['weir_requests_unreadable_total{front="auth"}'] == COUNTS["unreadable"]
    assert metrics['weir_fallback_decisions_total{source="closed"}'] == COUNTS["store"]
    assert metrics['weir_decisions_total{limit="unknown",result="denied"}'] == COUNTS["unknown"]
    assert metrics['weir_decisions_total{limit="standing",result="denied"}'] == COUNTS["standing"]
    assert metrics['weir_decisions_total{limit="quiet",result="shadow_denied"}'] == SHADOW
    for name, count in NAMES.items():
        assert metrics[f'weir_unknown_attributes_total{{name="{name}"}}'] == count
    assert {one["name"]: one["values"] for one in ask(weir, "/v1/overlooked")["unknown_attributes"]} == NAMES


def test_top_denied_has_a_row_for_each_cause(run):
    keys = {(one["limit"], one.get("cause"), one["key"]): one
            for one in ask(run[0], "/v1/use/top", window="day", by="denied", count=100)["keys"]}
    denied = {name: one["denied"] for name, one in keys.items() if one["denied"] > 0}
    assert denied == {("few", None, "user=bob"): COUNTS["limit"],
                      ("challenge", "challenge", "client.ip=192.0.2.1"): COUNTS["challenge"],
                      ("store", "store", "user=dan"): COUNTS["store"],
                      ("standing", "standing", "user=eve"): COUNTS["standing"],
                      ("unknown", "unknown", ""): COUNTS["unknown"]}
    human = keys["human", None, "client.ip=192.0.2.1"]
    assert (human["requests"], human["denied"]) == (60, 0)
    callers = {one["key"]: one for one in ask(run[0], "/v1/use/callers", window="day", count=100)["callers"]}
    assert (callers["user=cid"]["requests"], callers["user=cid"]["denied"]) == (60, COUNTS["challenge"])
    assert (callers["user=dan"]["requests"], callers["user=dan"]["denied"]) == (20, COUNTS["store"])


def test_denials_say_the_cause(run):
    answer = ask(run[0], "/v1/denials", count=10000)
    by = collections.Counter((one["limit"], one["action"], one["source"]) for one in answer["denials"])
    assert by == {("few", "reject", "store"): COUNTS["limit"], ("human", "challenge", "store"): COUNTS["challenge"],
                  ("vault", "reject", "closed"): COUNTS["store"], ("standing", "reject", "store"): COUNTS["standing"],
                  ("unknown", "reject", "store"): COUNTS["unknown"]}


def test_weir_top_has_a_row_for_each_cause(run):
    weir = run[0]
    access = ("--admin", weir.admin_address, "--token", "s3cret")
    text = run_weir("top", "--once", *access).stdout
    rows = dict(line.split() for line in text[text.index("REFUSED BY"):].splitlines()[1:1 + len(CAUSES)])
    assert {cause: int(rows[cause]) for cause in CAUSES} == {cause: COUNTS[cause] for cause in CAUSES}
    found = json.loads(run_weir("top", "--once", "--json", *access).stdout)
    assert found["limits"]["requests"]["refused"] == {cause: COUNTS[cause] for cause in CAUSES}


def test_the_board_and_the_alert_have_each_cause(run):
    weir, _, prometheus = run
    if not prometheus:
        pytest.skip("Debian's package prometheus is not installed (script/bootstrap test)")
    total = sum(COUNTS.values())
    wait_until(lambda: query(prometheus, 'weir_front_decisions_total{front="http"}') == [total],
               what="a scrape that has seen all")
    assert query(prometheus, panel_text("Requests refused")) == [pytest.approx((total - COUNTS["allowed"]) / total)]
    share, rate = alert_parts("WeirDeniesMuch")
    shares = {one["limit"]: value for one, value in query(prometheus, share, labels=True)}
    assert shares["few"] == pytest.approx(COUNTS["limit"] / 80)
    assert not {"standing", "unknown"} & set(shares)
    assert query(prometheus, rate)
    denied = {one["limit"]: value for one, value in
              query(prometheus, panel_text("Share denied, by limit"), labels=True)}
    assert denied["few"] == pytest.approx(COUNTS["limit"] / 80)
    shadow = query(prometheus, panel_text("Shadow limits: would have denied"), labels=True)
    assert [one["limit"] for one, _ in shadow] == ["quiet"]
