# SPDX-License-Identifier: Apache-2.0
"""The file of denials on a disk that is full, and when it is moved or deleted."""

import json
import os
import resource
import signal

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of


def start(folder):
    rules = rules_of({"name": "one", "key": ["user"], "rate": "1/d"}, denials={"file": str(folder / "denials.log")})
    return Weir(folder, rules, "--workers", "1")


def deny(weir, *users):
    """One denial of each."""
    with weir.client() as client:
        for user in users:
            assert [client.check(attributes={"user": user}).status for _ in range(2)] == [200, 429]


def keys(path):
    if not path.exists():
        return []
    return [json.loads(line)["key"] for line in path.read_text(encoding="utf-8").splitlines()]


def unwritten(weir):
    return weir.metrics()['weir_denials_total{result="unwritten"}']


def test_denials_that_a_full_disk_refuses_are_counted_and_logged(tmp_path):
    path, users = tmp_path / "denials.log", [f"u{i}" for i in range(20)]
    with start(tmp_path) as weir:
        deny(weir, "ann")
        wait_until(lambda: keys(path) == ["user=ann"])
        pid, before = weir.process.pid, resource.prlimit(weir.process.pid, resource.RLIMIT_FSIZE)
        cut = path.stat().st_size + 100  # in the middle of a line
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (cut, before[1]))
        deny(weir, *users)
        wait_until(lambda: unwritten(weir) == len(users))
        assert "denials.log" in weir.wait_event("denials_dropped")
        assert keys(path) == ["user=ann"], "no line is cut"
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        deny(weir, "bob")
        wait_until(lambda: keys(path) == ["user=ann", "user=bob"])
        assert unwritten(weir) == len(users)
        assert weir.stop() == 0


def test_what_a_stop_could_not_write_is_logged(tmp_path):
    with start(tmp_path) as weir:
        resource.prlimit(weir.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        deny(weir, "ann", "bob")
        assert weir.stop() == 0
        lines = [line for line in weir.text().splitlines() if "event=denials_dropped" in line]
        assert sum(int(line.split("denials=")[1].split()[0]) for line in lines) == 2


def test_a_file_that_is_deleted_or_moved_is_made_anew(tmp_path):
    path, moved = tmp_path / "denials.log", tmp_path / "moved"
    with start(tmp_path) as weir:
        deny(weir, "ann")
        wait_until(lambda: keys(path) == ["user=ann"])
        os.unlink(path)
        deny(weir, "bob")
        wait_until(lambda: keys(path) == ["user=bob"])
        os.rename(path, moved)
        weir.signal(signal.SIGHUP)  # as logrotate does
        wait_until(path.exists)
        deny(weir, "cyd")
        wait_until(lambda: keys(path) == ["user=cyd"])
        assert keys(moved) == ["user=bob"] and path.stat().st_mode & 0o777 == 0o600
        assert weir.stop() == 0
