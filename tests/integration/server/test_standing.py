# SPDX-License-Identifier: Apache-2.0
"""Standing that operators set at a running server: by `weir ban` and its like, by the admin API, and
over restarts and kill -9."""

import json
import os
import sqlite3
import subprocess
import time

import pytest

from daemon.weir import Weir, rules_of
from model.program import weir_path

LIMIT = {"name": "all", "key": ["client.ip"], "rate": "1000/s"}
LISTED, FREE = "203.0.113.5", "192.0.2.7"


def start(folder, more=None, **standing):
    """A server whose admin listener is a Unix socket in the folder."""
    (folder / "listed.txt").write_text("# networks\n203.0.113.0/24\n2001:db8:bad::/48\n")
    parts = {"by": ["client.ip/64", "user", "header.x-api-key"], "file": str(folder / "standing.db"),
             "lists": [{"file": "listed.txt", "by": "client.ip", "level": "suspended",
                        "reason": "listed network"}], **standing}
    rules = rules_of(LIMIT, standing=parts, server={"admin": {"address": f"unix:{folder}/admin"}},
                     **(more or {}))
    return Weir(folder, rules, admin=None)


def command(weir, *arguments, ok=True):
    """Runs `weir ARGUMENTS...` against the server; what it prints."""
    sure = ["--yes"] if arguments[0] == "ban" or arguments[:2] == ("standing", "set") else []
    done = subprocess.run([weir_path(), *arguments, *sure, f"--admin=unix:{weir.folder}/admin"],
                          capture_output=True, text=True, timeout=60, check=False,
                          env=os.environ | {"USER": "eve", "SUDO_USER": ""})
    assert (done.returncode == 0) == ok, done.stderr
    return done.stdout if ok else done.stderr


def call(weir, method, path, body=None):
    with weir.admin() as client:
        reply = client.request(method, path, body=None if body is None else json.dumps(body).encode())
        return reply.status, json.loads(reply.body)


def denied(weir, ip):
    """The standing by which an address is refused, or None."""
    answer = weir.check(ip=ip).json
    return None if answer["allowed"] else answer["standing"] | {"by": answer["denied_by"]}


def test_a_ban_is_in_force_at_once_and_after_a_restart(tmp_path):
    with start(tmp_path) as weir:
        assert denied(weir, FREE) is None
        out = command(weir, "ban", FREE, "10m", "--reason", "too many")
        assert "suspended" in out and "too many" in out
        seen = denied(weir, FREE)
        assert seen["level"] == "suspended" and seen["reason"] == "too many"
        assert seen["by"] == "standing" and 0 < seen["ends_after_ms"] <= 600000
        line = weir.wait_event("standing_set")
        assert "by=eve" in line and f"value={FREE}/32" in line
        weir.stop()
        weir.start()
        assert denied(weir, FREE)["reason"] == "too many"
        assert FREE in command(weir, "standing", "list")
        command(weir, "unban", FREE)
        assert denied(weir, FREE) is None
        weir.stop()
        weir.start()
        assert denied(weir, FREE) is None
        history = command(weir, "standing", "history", FREE)
        assert [line.split()[3] for line in history.splitlines()[1:]] == ["-", "suspended"]


def test_changes_that_were_answered_survive_kill_9(tmp_path):
    with start(tmp_path) as weir:
        for i in range(1, 21):
            status, _ = call(weir, "PUT", "/v1/standing",
                             {"kind": "client.ip", "value": f"192.0.2.{i}", "level": "revoked"})
            assert status == 200
        weir.kill()
        weir.start()
        for i in range(1, 21):
            assert denied(weir, f"192.0.2.{i}")["level"] == "revoked"
        assert denied(weir, "192.0.2.21") is None


def test_an_operator_beats_a_list_and_trusts(tmp_path):
    with start(tmp_path) as weir:
        assert denied(weir, LISTED)["reason"] == "listed network"
        assert denied(weir, "2001:db8:bad::1")["level"] == "suspended"
        assert "a list has" in command(weir, "unban", "203.0.113.0/24", ok=False)
        command(weir, "allow", LISTED)
        assert denied(weir, LISTED) is None
        assert denied(weir, "203.0.113.6")
        assert "trusted" in command(weir, "standing", "show", LISTED)


def test_a_reload_takes_new_lists_and_refuses_wrong_ones(tmp_path):
    with start(tmp_path) as weir:
        (tmp_path / "listed.txt").write_text("192.0.2.0/28\n")
        assert "event=reloaded" in weir.reload()
        assert denied(weir, FREE) and denied(weir, LISTED) is None
        (tmp_path / "listed.txt").write_text("192.0.2.0/28\nnonsense\n")
        assert "event=reload_failed" in weir.reload()
        line = weir.wait_event("rules_error")
        assert "listed.txt:2: not a network" in line
        assert denied(weir, FREE)


def test_an_api_key_is_nowhere_but_as_its_digest(tmp_path):
    with start(tmp_path) as weir:
        command(weir, "ban", "header.x-api-key=hunter2", "1d")
        shown = command(weir, "standing", "list")
        assert command(weir, "standing") == shown
        assert json.loads(command(weir, "standing", "--json")) == json.loads(command(weir, "standing", "list", "--json"))
        assert "hunter2" not in shown and "sha256:f52fbd32" in shown
        key = shown.split("header.x-api-key=")[1].split()[0]
        weir.kill()
        for name in os.listdir(tmp_path):
            if name.startswith("standing"):
                assert b"hunter2" not in (tmp_path / name).read_bytes()
        weir.start()
        assert "suspended" in command(weir, "standing", "show", "header.x-api-key=hunter2")
        command(weir, "standing", "clear", f"header.x-api-key={key}")
        assert "nothing is in force" in command(weir, "standing", "show",
                                                "header.x-api-key=hunter2")
        assert "hunter2" not in weir.text()


def test_the_api_says_what_was_and_what_is(tmp_path):
    with start(tmp_path) as weir:
        body = {"kind": "user", "value": "ada", "level": "throttled", "for_ms": 60000, "by": "bob",
                "reason": "loud"}
        status, answer = call(weir, "PUT", "/v1/standing", body)
        assert status == 200 and answer["was"] is None
        assert answer["in_force"]["level"] == "throttled"
        assert answer["in_force"]["until_ms"] - answer["in_force"]["since_ms"] == 60000
        status, answer = call(weir, "PUT", "/v1/standing", body | {"level": "warned"})
        assert answer["was"] == "throttled"
        status, answer = call(weir, "GET", "/v1/standing?kind=user&value=ada")
        assert status == 200 and answer["in_force"]["reason"] == "loud"
        assert [entry["by"] for entry in answer["entries"]] == ["bob"]
        assert call(weir, "GET", "/v1/standing?level=warned")[1]["entries"] == answer["entries"]
        assert call(weir, "GET", "/v1/standing?level=revoked")[1]["entries"] == []
        status, answer = call(weir, "DELETE", "/v1/standing?kind=user&value=ada&by=bob")
        assert status == 200 and answer["was"] == "warned" and answer["in_force"] is None
        assert call(weir, "DELETE", "/v1/standing?kind=user&value=ada")[0] == 404
        changes = call(weir, "GET", "/v1/standing/history?kind=user&value=ada")[1]["changes"]
        assert [(one["was"], one["level"]) for one in changes] == [
            ("warned", None), ("throttled", "warned"), (None, "throttled")]
        assert weir.metrics()['weir_standing_changes_total{change="set"}'] == 2


@pytest.mark.parametrize("body, text", [
    ({}, "send {"),
    ({"kind": "user", "value": "ada", "level": "evil"}, "level: good"),
    ({"kind": "org", "value": "ada", "level": "warned"}, "client.ip, header.x-api-key, user"),
    ({"kind": "client.ip", "value": "10.0.0.1/8", "level": "warned"}, "not a network"),
    ({"kind": "user", "value": "", "level": "warned"}, "1 to 1024"),
    ({"kind": "user", "value": "ada", "level": "revoked", "for_ms": 5}, "revoked has no end"),
    ({"kind": "user", "value": "ada", "level": "warned", "for_ms": 0}, "for_ms"),
    ({"kind": "user", "value": "ada", "level": "warned", "reason": "x" * 128}, "127 bytes"),
    ({"kind": "user", "value": "ada", "level": "warned", "duration_ms": 5}, "a member is none of"),
    ({"kind": "user", "value": "ada", "level": "warned", "for_ms by": 5}, "a member is none of"),
    ({"kind": "user", "value": "ada", "level": "warned", "x" * 40: 5}, "a member is none of"),
])
def test_a_wrong_request_changes_nothing(tmp_path, body, text):
    with start(tmp_path) as weir:
        status, problem = call(weir, "PUT", "/v1/standing", body)
        assert status == 400 and text in problem["detail"]
        assert call(weir, "GET", "/v1/standing")[1]["entries"] == []


def test_changes_need_a_token_or_a_unix_socket(tmp_path):
    rules = rules_of(LIMIT, standing={"by": ["user"], "file": str(tmp_path / "standing.db")})
    with Weir(tmp_path, rules) as weir, weir.admin() as client:
        body = json.dumps({"kind": "user", "value": "ada", "level": "warned"}).encode()
        assert client.request("PUT", "/v1/standing", body=body).status == 403
        assert client.request("DELETE", "/v1/standing?kind=user&value=ada").status == 403
        assert client.request("GET", "/v1/standing").status == 200


def test_a_history_that_fails_does_not_stop_a_ban(tmp_path):
    with start(tmp_path) as weir:
        other = sqlite3.connect(tmp_path / "standing.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        status, answer = call(weir, "PUT", "/v1/standing",
                              {"kind": "client.ip", "value": FREE, "level": "suspended"})
        assert status == 202 and answer["written"] is False and "locked" in answer["reason"]
        assert denied(weir, FREE)["level"] == "suspended"
        other.execute("ROLLBACK")
        other.close()
        assert call(weir, "PUT", "/v1/standing",
                    {"kind": "client.ip", "value": FREE, "level": "suspended"})[0] == 200
        assert weir.metrics()['weir_standing_unkept_total{cause="late"}'] == 1


def test_a_history_that_is_not_one_is_refused_at_start(tmp_path):
    (tmp_path / "standing.db").write_text("This is not a database, but a longer text.\n" * 20)
    weir = start(tmp_path)
    weir.wait_for_start = False
    with weir:
        assert weir.wait() == 1
        assert "standing.db" in weir.text() and "not a database" in weir.text()


def test_a_ban_of_a_moment_ends_by_itself(tmp_path):
    with start(tmp_path) as weir:
        command(weir, "ban", FREE, "300ms")
        deadline = time.monotonic() + 60
        while denied(weir, FREE) and time.monotonic() < deadline:
            pass
        assert denied(weir, FREE) is None


def test_a_map_full_of_operators_entries_refuses_more(tmp_path):
    with start(tmp_path, entries=16, lists=[]) as weir:
        body = {"kind": "user", "level": "suspended", "for_ms": 3600000}
        for i in range(16):
            assert call(weir, "PUT", "/v1/standing", body | {"value": f"u{i}"})[0] == 200
        status, problem = call(weir, "PUT", "/v1/standing", body | {"value": "more"})
        assert status == 503 and "standing.entries" in problem["detail"]
        # One that is there may change, and one that goes makes room.
        assert call(weir, "PUT", "/v1/standing", body | {"value": "u0", "level": "warned"})[0] == 200
        assert call(weir, "DELETE", "/v1/standing?kind=user&value=u1")[0] == 200
        assert call(weir, "PUT", "/v1/standing", body | {"value": "more"})[0] == 200
        metrics = weir.metrics()
        assert metrics["weir_standing_refused_total"] == 1
        assert metrics['weir_standing_entries{level="suspended",origin="operator"}'] == 15


def test_bans_are_published_but_for_protected_addresses(tmp_path):
    with start(tmp_path) as weir:
        command(weir, "ban", FREE, "10m")
        command(weir, "ban", "127.0.0.1", "10m")
        command(weir, "ban", "user=ada", "10m")
        metrics = weir.metrics()
        assert metrics['weir_standing_bans_total{result="published"}'] == 1
        assert metrics['weir_standing_bans_total{result="protected"}'] == 1


@pytest.mark.parametrize("arguments, text", [
    (["ban"], "give a caller"),
    (["ban", "192.0.2.1", "10x"], "not a duration"),
    (["ban", "192.0.2.1", "0s"], "not a duration"),
    (["ban", "=ada"], "not ADDRESS or KIND=VALUE"),
    (["unban", "192.0.2.1", "10m"], "give one caller"),
    (["standing", "shout"], "'shout'"),
    (["standing", "set", "user=ada"], "a level"),
])
def test_a_wrong_command_line_is_a_usage_error(arguments, text):
    done = subprocess.run([weir_path(), *arguments], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 2 and text in done.stderr
