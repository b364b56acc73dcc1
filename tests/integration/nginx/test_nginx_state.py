# SPDX-License-Identifier: Apache-2.0
"""ngx_http_weir_module on a state that cannot be used, is full, or belongs to others: every request
is answered, no worker ends, and the state is used as soon as it can be. And: a decision makes no
system call."""

import fcntl
import os
import re
import shutil
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from daemon.http import Client
from daemon.nginx_module import Nginx, needs_module
from daemon.stopped import stopped
from daemon.waiting import wait_until
from daemon.weir import Weir

pytestmark = needs_module

RULES = """version: 1
limits:
  - { name: ip, match: { path: /a.txt }, key: [header.x-key], rate: 1/30d, algorithm: token_bucket }
"""
SERVER = """
    location = /weir-status { weir_status; }
    location / { weir on; }
    location = /off { weir off; try_files /a.txt =404; }
"""


def truncated(path):
    path.write_bytes(path.read_bytes()[:100000])


def emptied_header(path):
    path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])


def other_version(path):
    data = bytearray(path.read_bytes())
    data[8] ^= 0xff
    path.write_bytes(data)


def foreign(path):
    path.write_text("somebody's diary\n" * 1000, encoding="ascii")


def folder_instead(path):
    path.unlink()
    path.mkdir()


def make_state(nginx):
    """A good state file, by an nginx that then ends."""
    with nginx:
        assert nginx.get("/a.txt", X_KEY="1").status == 200


def restore(nginx, good):
    path = Path(nginx.state)
    if path.is_dir():
        path.rmdir()
    path.with_suffix(".beside").write_bytes(good)
    path.with_suffix(".beside").rename(path)


@pytest.mark.parametrize("damage", [truncated, emptied_header, other_version, foreign,
                                    folder_instead], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("on_error, status", [("open", 200), ("closed", 503)])
def test_a_broken_state_is_answered_and_then_used_again(tmp_path, damage, on_error, status):
    nginx = Nginx(tmp_path, RULES, SERVER, on_error=on_error)
    make_state(nginx)
    good = Path(nginx.state).read_bytes()
    damage(Path(nginx.state))
    assert nginx.test().returncode == 0  # the master only checks the rules
    with nginx:
        pids = set(nginx.pids())
        for i in range(40):
            assert nginx.get("/a.txt", X_KEY="1").status == status
        assert nginx.get("/off").status == 200
        log = nginx.log()
        assert str(nginx.state) in log and "weir_on_error" in log
        assert len(re.findall("weir_on_error", log)) <= 2  # once a minute, each worker
        verdict = 'weir_nginx_requests_total{front="nginx",verdict="error"}'
        assert nginx.metrics()[verdict] == 40
        restore(nginx, good)
        wait_until(lambda: nginx.get("/a.txt", X_KEY="1").status == 429, what="the good state")
        assert set(nginx.pids()) == pids
        assert "the state can be used again" in nginx.log()


@pytest.mark.parametrize("says, statuses, warned", [("", [200, 200], True),
                                                    ("on_store_error: open\n", [200, 200], False),
                                                    ("on_store_error: closed\n", [503, 503], False),
                                                    ("on_store_error: local\n", [200, 429], False)])
def test_without_weir_on_error_the_rules_say_what_a_broken_state_means(tmp_path, says, statuses, warned):
    nginx = Nginx(tmp_path, RULES + says, SERVER, workers=1)
    make_state(nginx)
    good = Path(nginx.state).read_bytes()
    truncated(Path(nginx.state))
    assert ("what happens to requests while the state cannot be opened" in nginx.test().stderr) == warned
    with nginx:
        assert [nginx.get("/a.txt", X_KEY="2").status for _ in range(2)] == statuses
        assert f"{nginx.state}: " in nginx.log()
        assert ("on_store_error of the limits decides" in nginx.log()) == (not warned)
        wait_until(lambda: nginx.metrics()['weir_nginx_unable_seconds_total{front="nginx",what="state"}'] > 0,
                   what="a second that is counted")
        restore(nginx, good)
        wait_until(lambda: nginx.get("/a.txt", X_KEY="1").status == 429, what="the good state")
        wait_until(lambda: "the state can be used again" in nginx.log(), what="the line of the log")


def test_the_log_says_that_all_is_well_only_when_all_is(tmp_path):
    """A map of standing that can be read again says nothing of the state."""
    rules = RULES + f"on_store_error: closed\nstanding: {{ by: [client.ip], file: {tmp_path}/standing, on_store_error: open }}\n"
    unable = 'weir_nginx_unable_seconds_total{{front="nginx",what="{}"}}'
    nginx = Nginx(tmp_path, rules, SERVER, workers=1)
    make_state(nginx)
    good = Path(nginx.state).read_bytes()
    truncated(Path(nginx.state))
    bad_map = tmp_path / "standing.map"
    foreign(bad_map)
    with nginx:
        wait_until(lambda: nginx.metrics()[unable.format("state")] > 0, what="a second without the state")
        bad_map.unlink()
        before = nginx.metrics()[unable.format("state")]
        wait_until(lambda: nginx.metrics()[unable.format("state")] > before + 2, what="two seconds with the map")
        assert "can be used again" not in nginx.log()
        restore(nginx, good)
        wait_until(lambda: "the state can be used again" in nginx.log(), what="the line of the log")


def test_an_unusable_state_is_answered_once_by_an_error_page(tmp_path):
    server = """
        location = /weir-status { weir_status; }
        location / { weir on; error_page 503 /sorry; }
        location = /sorry { weir on; internal; try_files /a.txt =404; }
    """
    nginx = Nginx(tmp_path, RULES, server, on_error="closed")
    Path(nginx.state).mkdir(parents=True)
    with nginx:
        reply = nginx.get("/a.txt", X_KEY="1")
        assert (reply.status, reply.body, reply["X-Verdict"]) == (503, b"hello\n", "error")
        assert nginx.metrics()['weir_nginx_requests_total{front="nginx",verdict="error"}'] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start workers of another user")
def test_a_state_that_the_workers_may_not_read(tmp_path):
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o111)
    nginx = Nginx(tmp_path, RULES, SERVER, user="www-data")
    make_state(nginx)  # its folder is made for the workers
    state = Path(nginx.state)
    assert state.owner() == "www-data" and stat.S_IMODE(state.stat().st_mode) == 0o600
    os.chown(state, 0, 0)
    with nginx:
        for _ in range(10):
            assert nginx.get("/a.txt", X_KEY="1").status == 200
        line = next(line for line in nginx.log().splitlines() if "weir_on_error" in line)
        for part in (str(state), "Permission denied", "mode 0600", "user root (0)", "www-data"):
            assert part in line, line
        shutil.chown(state, "root", "www-data")
        state.chmod(0o660)
        wait_until(lambda: nginx.get("/a.txt", X_KEY="1").status == 429, what="the state")


def test_a_full_state_answers_every_request(tmp_path):
    """4 MiB have room for 130,000 keys; 256 KiB for 8,000."""
    nginx = Nginx(tmp_path, RULES, SERVER)
    nginx.conf.write_text(nginx.conf.read_text(encoding="utf-8").replace("size=4m", "size=256k"),
                          encoding="utf-8")
    with nginx, nginx.client() as client:
        statuses = set()
        for i in range(20000):
            statuses.add(client.request("GET", "/a.txt", fields={"X-Key": str(i)}).status)
        assert statuses <= {200, 429} and 200 in statuses
        assert "weir_on_error" not in nginx.log()


def test_a_stopped_neighbour_hangs_no_request(tmp_path):
    """A weir that is stopped on the same state: it may or may not hold a lock."""
    (tmp_path / "weir").mkdir()
    with Nginx(tmp_path, RULES, SERVER) as nginx:
        rules = f"{RULES}state: {{ file: {nginx.state}, size: 4MiB }}\n"
        with Weir(tmp_path / "weir", rules) as weir:
            with weir.client() as client:
                client.check(path="/a.txt", attributes={"header.x-key": "1"})
            with stopped(weir.process), nginx.client() as client:
                for i in range(300):
                    reply = client.request("GET", "/a.txt", fields={"X-Key": str(i)})
                    assert reply.status in (200, 429)


def trace(pid, output, ask):
    """The system calls that a worker makes while `ask` runs; None where it cannot be traced."""
    process = subprocess.Popen(["strace", "-qq", "-o", str(output), "-p", str(pid)],
                               stderr=subprocess.PIPE, text=True)
    marks = Path(f"/proc/{pid}/status")
    wait_until(lambda: process.poll() is not None
               or "TracerPid:\t0" not in marks.read_text(encoding="ascii"), what="strace")
    if process.poll() is not None:
        return None
    ask()
    process.terminate()
    process.wait()
    return re.findall(r"^(\w+)\(", output.read_text(encoding="utf-8", errors="replace"), re.M)


def lock_opening(path):
    """Locks the file as a process does that opens the state; the lock goes with what is returned."""
    file = open(path, "r+b")
    fcntl.fcntl(file, fcntl.F_OFD_SETLK,
                struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 1 << 61, 1, 0))  # LOCK_OPENING
    return file


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_a_worker_that_serves_does_not_wait_for_one_that_opens_the_state(tmp_path):
    nginx = Nginx(tmp_path, RULES, SERVER, workers=1)
    make_state(nginx)
    calls_file = tmp_path / "calls"
    with lock_opening(nginx.state), nginx:
        wait_until(lambda: "weir_on_error" in nginx.log(), what="the first attempt")

        def ask():
            wait_until(lambda: calls_file.read_text(encoding="utf-8").count("F_OFD_SETLK") >= 2,
                       what="two attempts")

        calls = trace(nginx.pids()[0], calls_file, ask)
        if calls is None:
            pytest.skip("strace may not trace here")
        assert not {"nanosleep", "clock_nanosleep"} & set(calls)
        assert nginx.get("/a.txt", X_KEY="1").status == 200
    with nginx:
        assert nginx.get("/a.txt", X_KEY="1").status == 429


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_a_decision_makes_no_system_call(tmp_path):
    nginx = Nginx(tmp_path, RULES, SERVER, workers=1)
    nginx.conf.write_text(nginx.conf.read_text(encoding="utf-8").replace("error.log info", "error.log"),
                          encoding="utf-8")  # a denial is a line of the level info
    with nginx:
        def ask(path):
            with Client(nginx.address) as client:
                for i in range(200):
                    client.request("GET", path, fields={"X-Key": str(i)})

        ask("/a.txt")
        plain = trace(nginx.pids()[0], tmp_path / "plain", lambda: ask("/off"))
        if plain is None:
            pytest.skip("strace may not trace here")
        limited = trace(nginx.pids()[0], tmp_path / "limited", lambda: ask("/a.txt"))
        # Once a second the timer looks which owners of the state are alive.
        timed = {"fcntl", "epoll_wait", "restart_syscall"}
        answers = [limited.count(name) for name in ("writev", "sendto", "write", "sendfile")]
        assert sum(answers) >= 200
        for name in set(limited) - timed - {"writev", "sendto", "write", "sendfile"}:
            assert limited.count(name) <= plain.count(name) + 5, name
