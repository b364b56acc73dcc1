# SPDX-License-Identifier: Apache-2.0
"""Warnings of limits whose threshold is reached: what a client sees, metrics, the log, and the
webhook, once a key and period, whatever the receiver does."""

import collections
import json
import re
import ssl
import subprocess
import threading
import time

import pytest

from daemon.certificates import Authority
from daemon.nodes import Nodes, shared_rules
from daemon.receiver import SECRET, Receiver, signed_by
from daemon.redis import RedisWeir
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

MONTH = {"name": "month", "key": ["user"], "quota": "100/month", "warn_at": ["80%", "95%"]}
ONE = {"name": "one", "key": ["user"], "quota": "1/month", "warn_at": "100%"}


def dict_of(flat):
    return dict(zip(flat[::2], flat[1::2]))


def spend(weir, user, cost=1):
    return weir.check(attributes={"user": user}, cost=cost)


def spend_many(weir, users):
    """One request of each, in batches."""
    with weir.client() as client:
        for i in range(0, len(users), 500):
            batch = [{"attributes": {"user": user}} for user in users[i:i + 500]]
            assert client.post("/v1/check", batch).status == 200


def events(weir, result):
    return weir.metrics()[f'weir_webhook_events_total{{result="{result}"}}']


def delivered(weir, count):
    wait_until(lambda: events(weir, "delivered") == count, what=f"{count} deliveries")


def start(tmp_path, receiver, *limits, workers=2, server=None, **webhook):
    return Weir(tmp_path, rules_of(*(limits or (MONTH,)), server=server,
                                   webhook=receiver.settings(**webhook)), "--workers", workers)


# --- What a client sees ---------------------------------------------------------------------------

def test_answers_log_and_metrics_tell_of_a_threshold(tmp_path):
    with Weir(tmp_path, rules_of(MONTH), "--workers", "2") as weir:
        quiet = spend(weir, "alice", 79)
        assert quiet["X-RateLimit-Warning"] is None and "warning" not in quiet.json["limits"][0]
        for cost, used, threshold in ((1, 80, 80), (1, 81, 80), (14, 95, 95)):
            reply = spend(weir, "alice", cost)
            assert reply["X-RateLimit-Warning"] == (
                f'"month";threshold={threshold};used={used};limit=100')
            assert reply.json["limits"][0]["warning"] == {
                "threshold": threshold, "used": used, "limit": 100}
        denied = spend(weir, "alice", 6)
        assert denied.status == 429 and denied["X-RateLimit-Warning"] is None
        line = weir.wait_event("limit_warning", 2)
        assert re.search(r'limit=month key="user=alice" threshold=95 used=95 capacity=100 '
                         r'resets_at=\d{4}-\d\d-01T00:00:00.000Z', line)
        assert weir.text().count("event=limit_warning") == 2
        assert "level=warning" in line
        metrics = weir.metrics()
        for threshold in (80, 95):
            assert metrics[f'weir_warnings_total{{limit="month",threshold="{threshold}"}}'] == 1
        assert not [name for name in metrics if name.startswith("weir_webhook")]
        with weir.admin() as client:
            (limit,) = client.request("GET", "/v1/limits").json["limits"]
        assert limit["warn_at_percent"] == [80, 95]


def test_forward_authentication_passes_the_warning_on(tmp_path):
    limit = {"name": "day", "key": ["client.ip"], "quota": "5/day", "warn_at": "80%"}
    with Weir(tmp_path, rules_of(limit), "--workers", "1") as weir, weir.client() as client:
        replies = [client.request("GET", "/v1/auth", {"X-Forwarded-For": "192.0.2.1"})
                   for _ in range(5)]
        assert [reply.status for reply in replies] == [200] * 5
        assert [reply["X-RateLimit-Warning"] for reply in replies] == [None] * 3 + [
            f'"day";threshold=80;used={used};limit=5' for used in (4, 5)]


def test_without_rate_limit_headers_there_is_no_warning_among_them(tmp_path):
    with Weir(tmp_path, rules_of(MONTH, headers=[]), "--workers", "1") as weir:
        reply = spend(weir, "alice", 80)
        assert reply["X-RateLimit-Warning"] is None
        assert reply.json["limits"][0]["warning"]["threshold"] == 80


def test_the_redis_protocol_tells_of_a_threshold(tmp_path):
    with RedisWeir(tmp_path, rules_of(MONTH)) as weir, weir.redis() as redis:
        for cost, warning in ((79, None), (1, 80)):
            (flat,) = dict_of(redis.ask("WEIR.CHECK", "user", "bob", "COST", cost))["limits"]
            assert dict_of(flat).get("warning") == warning


# --- Once -----------------------------------------------------------------------------------------

def test_one_message_a_key_and_threshold_signed_and_complete(tmp_path):
    with Receiver() as receiver, start(tmp_path, receiver) as weir:
        users = [f"u{i}" for i in range(12)]
        threads = [threading.Thread(target=spend_many, args=(weir, users * 13)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        delivered(weir, 24)
        messages = receiver.all()
        seen = collections.Counter((m.data["key"], m.data["threshold"]) for m in messages)
        assert seen == {(f"user={user}", threshold): 1 for user in users for threshold in (80, 95)}
        assert len({m.id for m in messages}) == 24
        for message in messages:
            assert message.path == "/hook" and signed_by(SECRET, message)
            assert abs(message.timestamp - time.time()) < 60
            assert message.fields["content-type"] == "application/json"
            body = json.loads(message.body)
            assert body["type"] == "limit.warning"
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])
            data = body["data"]
            assert data["limit"] == "month" and data["capacity"] == 100
            assert data["used"] >= data["threshold"]
            assert data["remaining"] == 100 - data["used"]
            assert data["user"] == data["key"].removeprefix("user=")
        assert weir.stop() == 0
        assert "webhook_undelivered" not in weir.text()
        assert len(receiver.all()) == 24


def test_a_restart_on_a_state_file_says_nothing_new(tmp_path):
    with Receiver() as receiver:
        rules = rules_of(MONTH, state={"file": str(tmp_path / "state"), "size": "4MiB"},
                         webhook=receiver.settings())
        for i in range(3):
            with Weir(tmp_path, rules, "--workers", "2") as weir:
                assert spend(weir, "alice", 90 if i == 0 else 1).status == 200
                assert weir.stop() == 0
        assert [m.data["threshold"] for m in receiver.all()] == [80]
    done = subprocess.run([weir_path(), "explain", "--config", weir.config, "--state",
                           tmp_path / "state", "--attribute", "user=alice"],
                          capture_output=True, text=True, check=True, timeout=60)
    assert "    warns  at 80%, 95%: 92 of 100 used, 80% reached\n" in done.stdout


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_nodes_on_one_redis_say_it_once(tmp_path, mode):
    with RedisServer(tmp_path / "redis") as redis, Receiver() as receiver:
        rules = shared_rules(redis.url, MONTH, mode=mode, nodes=2, webhook=receiver.settings())
        with Nodes(tmp_path, 2, rules) as nodes:
            for i in range(100):
                nodes[i % 2].check(attributes={"user": "alice"})
            wait_until(lambda: len(receiver.all()) == 2, what="both thresholds")
            assert nodes.metric("weir_warnings_total") == 2
            assert sorted(m.data["threshold"] for m in receiver.all()) == [80, 95]
            for node in nodes.running():
                assert node.stop() == 0
            assert len(receiver.all()) == 2


def test_a_replay_counts_warnings_in_virtual_time(tmp_path):
    (tmp_path / "rules.yaml").write_text(rules_of(MONTH), encoding="utf-8")
    day = 1767225600  # 2026-01-01
    lines = [json.dumps({"t": day + 86400 * at, "attributes": {"user": user}, "cost": cost})
             for at, user, cost in ((1, "a", 80), (2, "b", 79), (3, "a", 15), (4, "a", 5),
                                    (33, "a", 80), (34, "b", 96), (65, "b", 1))]
    trace = tmp_path / "trace.jsonl"
    trace.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([weir_path(), "replay", "--config", tmp_path / "rules.yaml", trace],
                          capture_output=True, text=True, check=True, timeout=60)
    assert "! month reached 80% and warned 3 times: once a key and period\n" in done.stdout
    assert "! month reached 95% and warned 2 times: once a key and period\n" in done.stdout


# --- What a receiver may do -----------------------------------------------------------------------

def test_a_failing_receiver_is_sent_the_same_message_again(tmp_path):
    with Receiver([500, (503, {"Retry-After": "1"})]) as receiver, start(tmp_path, receiver) as weir:
        spend(weir, "alice", 80)
        delivered(weir, 1)
        messages = receiver.all()
        assert len(messages) == 3 and len({m.id for m in messages}) == 1
        assert len({m.body for m in messages}) == 1
        assert all(signed_by(SECRET, m) for m in messages)
        assert messages[2].timestamp > messages[0].timestamp
        assert weir.metrics()["weir_webhook_attempts_total"] == 3
        assert "event=webhook_failing host=127.0.0.1 status=500" in weir.text()
        assert weir.wait_event("webhook_recovered")
        assert weir.text().count("webhook_failing") == 1


@pytest.mark.parametrize("answer", [404, (302, {"Location": "/another"}), 410])
def test_what_a_receiver_refuses_is_given_up(tmp_path, answer):
    with Receiver([answer]) as receiver, start(tmp_path, receiver) as weir:
        spend(weir, "alice", 80)
        wait_until(lambda: events(weir, "failed") == 1, what="the refusal")
        spend(weir, "bob", 80)
        if answer == 410:  # it wants no more, until the rules are read again
            wait_until(lambda: events(weir, "dropped") == 1, what="the drop")
            weir.reload()
            spend(weir, "carol", 80)
        delivered(weir, 1)
        assert [m.path for m in receiver.all()] == ["/hook"] * 2


def test_a_receiver_that_is_away_is_tried_until_it_comes(tmp_path):
    with Receiver(listen=False) as receiver, start(tmp_path, receiver) as weir:
        spend(weir, "alice", 80)
        assert "host=127.0.0.1 reason=" in weir.wait_event("webhook_failing")
        receiver.listen()
        delivered(weir, 1)


def test_a_slow_receiver_holds_nobody_up_and_the_queue_is_bounded(tmp_path):
    with Receiver() as receiver, start(tmp_path, receiver, ONE, timeout="30s") as weir:
        receiver.hold()
        spend_many(weir, ["first"])
        wait_until(receiver.all, what="the first message")
        spend_many(weir, [f"u{i}" for i in range(1100)])  # answered, all of them
        metrics = weir.metrics()
        assert metrics['weir_warnings_total{limit="one",threshold="100"}'] == 1101
        assert metrics["weir_webhook_queued"] == 1024
        assert events(weir, "dropped") == 1100 - 1024
        assert weir.text().count("webhook_queue_full") == 1
        receiver.release()
        delivered(weir, 1025)
        assert len(receiver.all()) == 1025


def test_a_timeout_ends_an_attempt(tmp_path):
    with Receiver() as receiver, start(tmp_path, receiver, timeout="100ms") as weir:
        receiver.hold()
        spend(weir, "alice", 80)
        assert "imeout" in weir.wait_event("webhook_failing")
        receiver.release()
        delivered(weir, 1)
        assert len({m.id for m in receiver.all()}) == 1


@pytest.mark.parametrize("begin, more", [
    (b"", b"X-Field: a value\r\n"),
    (b"\r\n", b"a body that is longer than it was\n"),
    (b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: a value\r\n")])
def test_an_answer_without_an_end_is_left_when_its_status_is_known(tmp_path, begin, more):
    left = threading.Event()

    def answer(handler):
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + begin)
            while True:
                handler.wfile.write(more * 500)
        finally:
            left.set()

    with Receiver([answer]) as receiver, start(tmp_path, receiver, timeout="30s") as weir:
        spend(weir, "alice", 80)
        delivered(weir, 1)
        assert left.wait(20)
        assert len(receiver.all()) == 1


# --- Ending, reloading, TLS -----------------------------------------------------------------------

def test_the_end_waits_for_no_receiver(tmp_path):
    with Receiver() as receiver, start(tmp_path, receiver, timeout="30s") as weir:
        receiver.hold()
        for user in "abc":
            spend(weir, user, 80)
        wait_until(receiver.all, what="the first message")
        assert weir.stop() == 0
        assert "event=webhook_undelivered host=127.0.0.1 events=3" in weir.text()


def test_the_end_delivers_what_is_queued(tmp_path):
    with Receiver() as receiver, start(tmp_path, receiver, ONE) as weir:
        receiver.hold()
        spend_many(weir, [f"u{i}" for i in range(20)])
        wait_until(receiver.all, what="the first message")
        weir.signal(15)
        weir.wait_event("stopping")
        receiver.release()
        assert weir.wait() == 0
        assert len({m.id for m in receiver.all()}) == 20
        assert "webhook_undelivered" not in weir.text()


def test_a_reload_changes_receiver_and_secrets(tmp_path):
    other = "AAAA" + SECRET[4:]
    with Receiver() as first, Receiver() as second, start(tmp_path, first) as weir:
        spend(weir, "alice", 80)
        delivered(weir, 1)
        weir.write_rules(rules_of(MONTH, webhook=second.settings(secret=[other, SECRET])))
        assert "event=reloaded" in weir.reload()
        spend(weir, "bob", 80)
        delivered(weir, 2)
        (message,) = second.all()
        assert signed_by(SECRET, message) and signed_by(other, message)
        assert len(first.all()) == 1
        weir.write_rules(rules_of(MONTH))
        assert "event=reloaded" in weir.reload()
        spend(weir, "carol", 80)
        assert weir.wait_event("limit_warning", 3)
        assert weir.stop() == 0
        assert len(first.all()) + len(second.all()) == 2


def test_a_receivers_certificate_is_verified(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.sign("receiver")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    with Receiver(tls=tls) as receiver, start(tmp_path, receiver) as weir:
        spend(weir, "alice", 80)
        assert "certificate" in weir.wait_event("webhook_failing")
        assert receiver.all() == []
        weir.write_rules(rules_of(MONTH, webhook=receiver.settings(ca=str(authority.cert))))
        assert "event=reloaded" in weir.reload()
        delivered(weir, 1)


def test_credentials_in_the_url_are_sent_and_never_logged(tmp_path):
    with Receiver([500]) as receiver:
        url = receiver.url.replace("http://", "http://weir:hunter2@")
        with start(tmp_path, receiver, url=url) as weir:
            spend(weir, "alice", 80)
            delivered(weir, 1)
            assert receiver.all()[0].fields["authorization"].startswith("Basic ")
            assert weir.stop() == 0
            assert "hunter2" not in weir.text()
