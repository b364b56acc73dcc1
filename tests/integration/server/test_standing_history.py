# SPDX-License-Identifier: Apache-2.0
"""A history of standing that is locked, on a full disk, deleted or replaced: changes are in force at once, wait for
it, and what a stop cannot write has its line."""

import json
import os
import re
import resource
import shutil
import sqlite3

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

ADA = {"kind": "user", "value": "ada", "level": "suspended", "reason": "spam"}


def start(folder, penalties=None, rate="1000/s"):
    """A server whose admin listener is a Unix socket in the folder, and whose history is standing.db."""
    standing = {"by": ["user"], "file": str(folder / "standing.db"), "entries": 1000}
    parts = {"penalties": penalties} if penalties else {}
    rules = rules_of({"name": "all", "key": ["user"], "rate": rate}, standing=standing,
                     server={"admin": {"address": f"unix:{folder}/admin"}}, **parts)
    return Weir(folder, rules, "--workers", "1", admin=None)


def call(weir, method, path, body=None):
    with weir.admin() as client:
        reply = client.request(method, path, body=None if body is None else json.dumps(body).encode())
        return reply.status, json.loads(reply.body)


def ban(weir, user):
    return call(weir, "PUT", "/v1/standing", ADA | {"value": user})


def level(weir, user):
    answer = weir.check(attributes={"user": user}).json
    return answer.get("standing", {}).get("level")


def ready(weir):
    with weir.admin() as client:
        reply = client.request("GET", "/readyz")
        return reply.status, reply.body.decode()


def entries(folder):
    with sqlite3.connect(folder / "standing.db") as history:
        return {value for value, in history.execute("SELECT value FROM entry")}


class Lock:
    """Another process that has the history locked."""

    def __init__(self, folder):
        self.other = sqlite3.connect(folder / "standing.db", isolation_level=None)

    def __enter__(self):
        self.other.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, *_):
        self.other.execute("ROLLBACK")
        self.other.close()


class FullDisk:
    """No file of the process grows any more: EFBIG, with SIGXFSZ."""

    def __init__(self, weir, size=0):
        self.weir, self.size = weir, size

    def __enter__(self):
        self.before = resource.prlimit(self.weir.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.weir.process.pid, resource.RLIMIT_FSIZE, (self.size, self.before[1]))
        return self

    def __exit__(self, *_):
        resource.prlimit(self.weir.process.pid, resource.RLIMIT_FSIZE, self.before)


def expect_waiting(weir, user):
    """A change is in force, is not written, and everything says so."""
    status, answer = ban(weir, user)
    assert (status, answer["written"]) == (202, False) and answer["reason"]
    assert answer["in_force"]["level"] == "suspended" and level(weir, user) == "suspended"
    weir.wait_event("standing_history_down")
    status, text = ready(weir)
    assert status == 200 and "the history of standing takes no changes" in text
    metrics = weir.metrics()
    assert metrics["weir_standing_history_up"] == 0 and metrics["weir_standing_history_jobs"] > 0
    assert metrics['weir_standing_unkept_total{cause="late"}'] > 0


def expect_written(weir, folder, users):
    weir.wait_event("standing_history_up")
    wait_until(lambda: weir.metrics()["weir_standing_history_jobs"] == 0)
    assert ready(weir)[1].startswith("ready\n") and weir.metrics()["weir_standing_history_up"] == 1
    assert users <= entries(folder)


def test_changes_wait_for_a_history_that_is_locked(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "first")[1]["written"] is True
        with Lock(tmp_path):
            expect_waiting(weir, "ada")
            assert ban(weir, "bob")[0] == 202
            status, listed = call(weir, "GET", "/v1/standing")  # reading goes on
            assert status == 200 and {one["value"] for one in listed["entries"]} == {"first"}
        expect_written(weir, tmp_path, {"first", "ada", "bob"})
        assert len(re.findall("event=standing_history_down", weir.text())) == 1
        assert ban(weir, "cyd")[0] == 200
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        assert [level(weir, user) for user in ("ada", "bob", "cyd")] == ["suspended"] * 3


def test_changes_wait_for_a_disk_that_is_full_and_no_signal_ends_weir(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "first")[0] == 200
        with FullDisk(weir):
            expect_waiting(weir, "ada")
        expect_written(weir, tmp_path, {"first", "ada"})
        assert weir.stop() == 0


def test_an_unban_waits_too_and_holds_after_a_restart(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        with Lock(tmp_path):
            status, answer = call(weir, "DELETE", "/v1/standing?kind=user&value=ada")
            assert (status, answer["written"], answer["in_force"]) == (202, False, None)
            assert level(weir, "ada") is None
        wait_until(lambda: weir.metrics()["weir_standing_history_jobs"] == 0)
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        assert level(weir, "ada") is None


def test_what_a_stop_cannot_write_has_its_line(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "first")[0] == 200
        with Lock(tmp_path):
            assert ban(weir, "ada")[0] == 202
            assert call(weir, "DELETE", "/v1/standing?kind=user&value=first&by=eve")[0] == 202
            assert weir.stop() == 0
        lost = [line for line in weir.text().splitlines() if "event=standing_change_lost" in line]
        assert len(lost) == 2
        assert "change=set" in lost[0] and "value=ada" in lost[0] and "standing=suspended" in lost[0]
        assert "change=clear" in lost[1] and "value=first" in lost[1] and "by=eve" in lost[1]
    with start(tmp_path) as weir:  # the map has what was in force
        assert level(weir, "ada") == "suspended"


def test_penalties_move_while_the_history_is_locked(tmp_path):
    penalty = {"name": "greedy", "key": "user", "strikes": "2/h", "ladder": ["warn 1h", "suspend 1h"]}
    with start(tmp_path, [penalty], rate="1/h") as weir:
        with Lock(tmp_path), weir.client() as client:
            def greedy():
                client.check(attributes={"user": "eve"})
                return level(weir, "eve")
            wait_until(lambda: greedy() == "suspended")
            status, shown = call(weir, "GET", "/v1/standing?kind=user&value=eve")
            assert status == 200 and shown["in_force"]["level"] == "suspended"
        expect_written(weir, tmp_path, {"eve"})
        weir.kill()
    with start(tmp_path, [penalty], rate="1/h") as weir:  # the step, too, was kept
        shown = call(weir, "GET", "/v1/standing?kind=user&value=eve")[1]
        assert shown["in_force"]["level"] == "suspended"
        assert [one["step"] for one in shown["penalties"]] == [2]


def test_a_server_starts_by_its_map_where_the_history_cannot_be_opened(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        assert weir.stop() == 0
    shutil.move(tmp_path / "standing.db", tmp_path / "away")
    (tmp_path / "standing.db").mkdir()  # SQLite cannot open it
    with start(tmp_path) as weir:
        weir.wait_event("standing_history_down")
        assert level(weir, "ada") == "suspended" and ready(weir)[0] == 200
        expect_waiting(weir, "bob")
        (tmp_path / "standing.db").rmdir()
        shutil.move(tmp_path / "away", tmp_path / "standing.db")
        expect_written(weir, tmp_path, {"ada", "bob"})
        assert weir.stop() == 0


def test_without_a_map_a_history_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "standing.db").mkdir()
    weir = start(tmp_path)
    weir.wait_for_start = False
    with weir:
        assert weir.wait() == 1 and "standing.db" in weir.text()


def test_a_history_that_is_deleted_is_written_again_whole(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        for name in ("standing.db", "standing.db-wal", "standing.db-shm"):
            os.unlink(tmp_path / name)
        weir.wait_event("standing_history_reopened")
        assert ban(weir, "bob")[0] == 200
        assert entries(tmp_path) == {"ada", "bob"}
        assert os.stat(tmp_path / "standing.db").st_mode & 0o777 == 0o600
        changes = call(weir, "GET", "/v1/standing/history")[1]["changes"]
        assert [change["value"] for change in changes] == ["bob", "ada"]
        assert weir.stop() == 0
    assert entries(tmp_path) == {"ada", "bob"}


def test_a_history_whose_name_alone_is_deleted_leaves_no_foreign_log_behind(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        os.unlink(tmp_path / "standing.db")
        weir.wait_event("standing_history_reopened")
        assert ban(weir, "bob")[0] == 200
        assert weir.stop() == 0
    assert entries(tmp_path) == {"ada", "bob"}


def test_another_history_in_its_place_is_used_from_then_on(tmp_path):
    with start(tmp_path) as weir:
        assert ban(weir, "ada")[0] == 200
        with sqlite3.connect(tmp_path / "standing.db") as source, \
                sqlite3.connect(tmp_path / "copy") as target:
            source.backup(target)
        assert ban(weir, "bob")[0] == 200
        os.rename(tmp_path / "copy", tmp_path / "standing.db")
        weir.wait_event("standing_history_reopened")
        assert ban(weir, "cyd")[0] == 200
        assert entries(tmp_path) == {"ada", "cyd"}
        assert level(weir, "bob") == "suspended", "what is in force stays so"
        assert weir.stop() == 0
