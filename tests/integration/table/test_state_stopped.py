# SPDX-License-Identifier: Apache-2.0
"""Two processes on one state file, of which one is stopped while it holds a lock of it."""

import os
import signal
import subprocess
import sys

import pytest

from daemon.stopped import Hammer, readiness, stop_with_a_lock
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

LIMIT = 1000


def rules(folder, on_store_error):
    hot = {"name": "hot", "match": {"path": "/hot"}, "key": ["client.ip"], "rate": f"{LIMIT}/day",
           "algorithm": "sliding_log", "on_store_error": on_store_error}
    calm = {"name": "calm", "match": {"path": "/calm"}, "key": ["client.ip"], "rate": "10/day",
            "algorithm": "gcra"}
    return rules_of(hot, calm, state={"file": str(folder / "state"), "size": "4MiB"})


def ask(weir, path="/hot", **options):
    return weir.check(ip="192.0.2.1", path=path, **options)


@pytest.fixture(name="pair", params=["open", "closed", "local"])
def fixture_pair(request, tmp_path):
    """A neighbour that is stopped with the lock, and a weir that has noticed."""
    text = rules(tmp_path, request.param)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with Weir(tmp_path / "a", text, "--workers", "1") as neighbour:
        with Weir(tmp_path / "b", text, "--workers", "2") as weir:
            for _ in range(2):
                Hammer(neighbour.http_address).start()
            wait_until(lambda: ask(weir).status == 429)  # all is used
            stop_with_a_lock(neighbour.process.pid, weir, lambda: ask(weir))
            yield request.param, neighbour, weir
            if neighbour.process.poll() is None:
                os.kill(neighbour.process.pid, signal.SIGCONT)


def test_a_stopped_neighbour_is_a_store_that_fails(pair):
    how, neighbour, weir = pair
    pid = neighbour.process.pid
    assert readiness(weir) == (
        503, f"not ready: a process that shares the state file is stopped (pid {pid})\n")
    with weir.admin() as admin:
        assert admin.request("GET", "/healthz").status == 200
    metrics = weir.metrics()
    assert metrics["weir_table_neighbour_stopped"] == 1
    assert metrics["weir_table_locks_given_up_total"] > 0
    weir.wait_event("neighbour_stopped")

    # What was asked for while the neighbour was caught may have been admitted by that too.
    before = weir.metrics()[f'weir_fallback_decisions_total{{source="{how}"}}']
    batch = [{"ip": "192.0.2.1", "path": "/hot"}] * LIMIT
    with weir.client() as client:
        admitted = sum(answer["allowed"] for _ in range(3)
                       for answer in client.post("/v1/check", batch).json)
    if how == "local":  # the whole limit, once for this process, whichever worker answers
        assert LIMIT - before <= admitted <= LIMIT
    else:
        assert admitted == (3 * LIMIT if how == "open" else 0)
    assert ask(weir, "/calm").status == 200  # nothing of which was held

    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: readiness(weir) == (200, "ready\n"))
    weir.wait_event("neighbour_resumed")
    wait_until(lambda: ask(weir).status == 429)
    limits = {limit["name"]: limit for limit in ask(weir, dry_run=True).json["limits"]}
    assert limits["hot"]["remaining"] == 0


def test_explain_beside_a_stopped_process_says_why_it_cannot_look(pair):
    _, _, weir = pair
    state = weir.folder.parent / "state"
    done = run_weir("explain", "--config", weir.config, "--state", state, "--path", "/hot", "--ip", "192.0.2.1")
    assert done.returncode == 1
    assert f"{state}: a process that shares the file is stopped" in done.stderr


def test_a_process_beside_a_stopped_one_ends_when_asked_to(pair):
    _, _, weir = pair
    ask(weir)
    weir.process.send_signal(signal.SIGTERM)
    assert weir.process.wait(SECONDS_MAX) == 0


STOPS_WHILE_OPENING = """
import fcntl, os, signal, struct, sys
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 1 << 61, 1, 0))
os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_file_that_another_process_stopped_while_opening_is_one_line_and_no_hang(tmp_path):
    """The lock is that of src/table/region.h: LOCK_OPENING."""
    with Weir(tmp_path, rules(tmp_path, "open")) as weir:
        ask(weir)
        weir.stop()
    opener = subprocess.Popen([sys.executable, "-c", STOPS_WHILE_OPENING, str(tmp_path / "state")])
    try:
        assert os.WIFSTOPPED(os.waitpid(opener.pid, os.WUNTRACED)[1])
        done = run_weir("serve", "--config", weir.config, "--http", "127.0.0.1:0", "--admin", "off")
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert f"{tmp_path / 'state'}: another process is opening it and makes no progress" in done.stderr
        os.kill(opener.pid, signal.SIGCONT)
        opener.wait(SECONDS_MAX)
        weir.start()
        assert ask(weir).json["limits"][0]["remaining"] == LIMIT - 2
    finally:
        weir.kill()
        opener.kill()
        opener.wait()


def test_the_lock_of_a_stopped_neighbour_is_repaired_when_it_dies(pair):
    _, neighbour, weir = pair
    before = weir.metrics()["weir_table_recoveries_total"]
    neighbour.process.kill()
    neighbour.process.wait()
    wait_until(lambda: readiness(weir) == (200, "ready\n"))
    assert ask(weir).status == 429
    assert weir.metrics()["weir_table_recoveries_total"] > before
