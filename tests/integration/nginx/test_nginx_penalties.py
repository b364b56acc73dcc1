# SPDX-License-Identifier: Apache-2.0
"""Penalties inside nginx: its workers count strikes in the state that they share with `weir serve`,
which moves the standing of callers; the workers then follow that standing."""

import os
import shutil
from pathlib import Path

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.waiting import wait_until
from daemon.weir import Weir

pytestmark = needs_module

RULES = """version: 1
state: {{ file: {folder}/run/state, size: 4MiB }}
standing: {{ by: [client.ip/64, header.x-user, header.x-api-key], file: {folder}/standing.db }}
limits:
  - {{ name: login, match: {{ path: /login }}, key: [client.ip/64], rate: 2/30d,
       algorithm: fixed_window }}
  - {{ name: keyed, match: {{ path: /keyed }}, key: [header.x-api-key], rate: 1/30d,
       algorithm: fixed_window }}
penalties:
  - {{ name: brute, key: [client.ip/64], strikes: 2/h, for: [login], ladder: [suspend 1h] }}
  - {{ name: leaked, key: [header.x-api-key], strikes: {leaked}, for: [keyed],
       ladder: [warn 1h, suspend 1h] }}
  - {{ name: guess, key: [header.x-user], strikes: 2/h, for: [keyed], outcomes: [401],
       ladder: [suspend 1h] }}
"""
SERVER = """
    location = /weir-status { weir_status; }
    location / { weir on; try_files /a.txt =404; }
    location = /guess { weir on; auth_request /never; error_page 401 /a.txt; }
    location = /never { internal; return 401; }
"""


def rules_in(folder, leaked="2/h"):
    return RULES.format(folder=folder, leaked=leaked)


def start_weir(folder, **changes):
    (folder / "run").mkdir(exist_ok=True)
    (folder / "weir").mkdir(exist_ok=True)
    return Weir(folder / "weir", rules_in(folder, **changes), "--workers", "1")


def nginx_in(folder, server=SERVER, **options):
    return Nginx(folder, rules_in(folder), server, **options)


def lost(weir):
    return weir.metrics()['weir_penalty_lost_total{cause="ring"}']


def test_denials_of_nginx_suspend_the_caller_there_and_at_the_server(tmp_path):
    with start_weir(tmp_path) as weir, nginx_in(tmp_path) as nginx:
        assert [nginx.get("/login").status for _ in range(5)] == [200, 200, 429, 429, 429]
        line = weir.wait_event("penalty_moved")
        assert "penalty=brute" in line and "value=127.0.0.1/32" in line
        reply = wait_until(lambda: (reply := nginx.get("/a.txt")).status != 200 and reply)
        assert (reply.status, reply["X-Verdict"]) == (403, "denied")
        answer = weir.check(ip="127.0.0.1", path="/a").json
        assert (answer["allowed"], answer["denied_by"]) == (False, "standing")
        assert lost(weir) == 0


def test_strikes_of_nginx_and_of_the_server_are_one_count(tmp_path):
    with start_weir(tmp_path) as weir, nginx_in(tmp_path) as nginx:
        for _ in range(2):
            assert nginx.get("/login").status == 200
        assert nginx.get("/login").status == 429
        assert not weir.check(ip="127.0.0.1", path="/login").json["allowed"]
        assert weir.text().count("penalty_moved") == 0
        assert nginx.get("/login").status == 429  # the third one
        weir.wait_event("penalty_moved")


def test_a_secret_reaches_the_server_as_its_hash_only(tmp_path):
    with start_weir(tmp_path) as weir, nginx_in(tmp_path) as nginx:
        assert nginx.get("/keyed", X_API_KEY="hunter2hunter2").status == 200
        for move in (1, 2):
            for _ in range(3):
                assert nginx.get("/keyed", X_API_KEY="hunter2hunter2").status == 429
            line = weir.wait_event("penalty_moved", move)
            assert "penalty=leaked" in line and "value=sha256:" in line
        wait_until(lambda: nginx.get("/a.txt", X_API_KEY="hunter2hunter2").status == 403)
        assert nginx.get("/a.txt", X_API_KEY="another").status == 200
        for path in tmp_path.rglob("state*"):
            assert b"hunter2" not in path.read_bytes(), path


def test_outcomes_are_strikes(tmp_path):
    """Also those that another page shows."""
    with start_weir(tmp_path) as weir, nginx_in(tmp_path) as nginx:
        for _ in range(3):
            assert nginx.get("/a.txt", X_USER="ada").status == 200
        for _ in range(2):
            reply = nginx.get("/guess", X_USER="ada")
            assert (reply.status, reply.body) == (401, b"hello\n")
        assert "penalty_moved" not in weir.text()
        nginx.get("/guess", X_USER="ada")
        line = weir.wait_event("penalty_moved")
        assert "penalty=guess" in line and "value=sha256:" in line
        wait_until(lambda: nginx.get("/a.txt", X_USER="ada").status == 403)
        assert nginx.get("/a.txt", X_USER="eve").status == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start workers of another user")
def test_workers_of_another_user_hand_strikes_over_and_follow_standing(tmp_path):
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o111)
    (tmp_path / "run").mkdir()
    shutil.chown(tmp_path / "run", "root", "www-data")
    (tmp_path / "run").chmod(0o770)
    rules = rules_in(tmp_path).replace("size: 4MiB", 'size: 4MiB, group: www-data, mode: "0660"')
    (tmp_path / "weir").mkdir()
    with Weir(tmp_path / "weir", rules, "--workers", "1") as weir, \
            Nginx(tmp_path, rules, SERVER, user="www-data") as nginx:
        for _ in range(5):
            nginx.get("/login")
        weir.wait_event("penalty_moved")
        wait_until(lambda: nginx.get("/a.txt").status == 403)


LOST = 'weir_nginx_strikes_lost_total{front="nginx"}'
UNABLE = 'weir_nginx_unable_seconds_total{front="nginx",what="penalties"}'


@pytest.mark.parametrize("on_error", ["closed", "open", None])
def test_limits_hold_while_no_server_keeps_penalties(tmp_path, on_error):
    (tmp_path / "run").mkdir()
    with nginx_in(tmp_path, on_error=on_error, workers=1) as nginx:
        assert [nginx.get("/login").status for _ in range(6)] == [200, 200, 429, 429, 429, 429]
        assert nginx.get("/a.txt").status == 200
        log = nginx.log()
        assert "no `weir serve` with penalties runs on the state file" in log
        assert "[crit]" in log and "no penalty moves anybody" in log
        wait_until(lambda: nginx.metrics()[LOST] >= 2 and nginx.metrics()[UNABLE] > 0, what="the counts")
        with start_weir(tmp_path) as weir:
            def suspended():
                nginx.get("/login")
                return nginx.get("/a.txt").status == 403
            wait_until(suspended, what="the suspension")
            weir.wait_event("penalty_moved")
            wait_until(lambda: "the state can be used again" in nginx.log(), what="the line of the log")
            assert weir.stop() == 0
        # A worker that runs continues with its limits when the server is gone.
        assert nginx.get("/keyed", X_API_KEY="other").status == 403  # the address is suspended still


def test_strikes_of_other_rules_are_refused_and_counted(tmp_path):
    with start_weir(tmp_path, leaked="7/h") as weir, nginx_in(tmp_path) as nginx:
        for _ in range(4):
            nginx.get("/keyed", X_API_KEY="k")
        wait_until(lambda: lost(weir) > 0)
        assert "penalty=leaked" not in weir.text()


@pytest.mark.parametrize("damage", ["cut", "removed", "noise"])
def test_a_damaged_ring_is_replaced(tmp_path, damage):
    ring = Path(f"{tmp_path}/run/state.strikes")
    with start_weir(tmp_path) as weir, nginx_in(tmp_path, workers=1) as nginx:
        assert nginx.get("/a.txt").status == 200
        if damage == "cut":
            with open(ring, "r+b") as file:
                file.truncate(100)
        elif damage == "removed":
            ring.unlink()
        else:
            with open(ring, "r+b") as file:
                file.seek(64)
                file.write(b"\xff" * (ring.stat().st_size - 64))
        pids = nginx.pids()

        def moved():
            nginx.get("/login")
            return "event=penalty_moved" in weir.text()

        wait_until(moved, what="a move")
        assert nginx.pids() == pids
