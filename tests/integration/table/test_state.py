# SPDX-License-Identifier: Apache-2.0
"""State: across kill -9, restarts, damage, and steps of the wall clock."""

import subprocess
import threading
import time
from email.utils import parsedate_to_datetime

import pytest

from daemon.http import Client, request_bytes
from daemon.nodes import step_clock, stepped_clock
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir, weir_path

LIMIT = 3000
BUDGET = {"name": "budget", "key": ["client.ip"], "rate": f"{LIMIT}/day", "algorithm": "fixed_window"}
LOG = {"name": "log", "match": {"path": "/log"}, "key": ["client.ip"], "rate": "500/day",
       "algorithm": "sliding_log"}


def state_rules(folder, *limits, size="1MiB"):
    return rules_of(*limits, state={"file": str(folder / "state"), "size": size})


UNDER_WAY = 40  # answers on each connection before the kill


class Hammer(threading.Thread):
    """Asks over one connection until the server is gone; slowly when it is not killed at once, so
    that what may be asked lasts for all rounds on a slow machine too."""

    def __init__(self, address):
        super().__init__()
        self.address, self.admitted, self.started_load = address, 0, threading.Event()

    def run(self):
        asked = request_bytes("POST", "/v1/check", None, b'{"ip":"192.0.2.1","path":"/log"}')
        try:
            with Client(self.address) as client:
                while True:
                    client.send(asked * 4)
                    admitted = sum(client.reply().status == 200 for _ in range(4))
                    self.admitted += admitted
                    if self.admitted >= UNDER_WAY or admitted == 0:
                        self.started_load.set()
                    if self.admitted >= 2 * UNDER_WAY:
                        time.sleep(0.01)
        except (EOFError, OSError):
            pass


def remaining(weir, name="budget"):
    limits = weir.check(ip="192.0.2.1", path="/log", dry_run=True).json["limits"]
    return {limit["name"]: limit["remaining"] for limit in limits}[name]


def test_kill_9_under_load_twenty_times_keeps_the_counts(tmp_path):
    """Every answer 200 was counted before; what was charged and not answered is lost to the client,
    never given twice."""
    limits = [{**BUDGET, "rate": "100000/day"}, {**LOG, "rate": "10000/day"}]
    with Weir(tmp_path, state_rules(tmp_path, *limits, size="4MiB"), "--workers", "2") as weir:
        total = 0
        for _ in range(20):
            threads = [Hammer(weir.http_address) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                assert thread.started_load.wait(SECONDS_MAX)
            weir.kill()
            for thread in threads:
                thread.join()
            before = total
            total += sum(thread.admitted for thread in threads)
            assert total > before
            weir.start()
            used = 100000 - remaining(weir)
            assert used >= total
            assert 10000 - remaining(weir, "log") == used  # both limits or neither
            total = used
        assert weir.stop() == 0


def test_never_more_than_the_limit_is_admitted_over_kills(tmp_path):
    with Weir(tmp_path, state_rules(tmp_path, BUDGET), "--workers", "2") as weir:
        admitted = 0
        for _ in range(20):
            threads = [Hammer(weir.http_address) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                assert thread.started_load.wait(SECONDS_MAX)
            weir.kill()
            for thread in threads:
                thread.join()
            admitted += sum(thread.admitted for thread in threads)
            weir.start()
        with weir.client() as client:
            while client.check(ip="192.0.2.1").status == 200:
                admitted += 1
        assert 0 < admitted <= LIMIT


def test_an_orderly_restart_keeps_the_counts(tmp_path):
    with Weir(tmp_path, state_rules(tmp_path, BUDGET)) as weir:
        for i in range(3):
            assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - i - 1
            assert weir.stop() == 0
            weir.start()


def test_closed_standard_files_are_no_place_for_the_state(tmp_path):
    """What is logged goes nowhere, not into the file or the socket that took the number 2."""
    address = f"unix:{tmp_path}/weir.sock"
    config = tmp_path / "weir.yaml"
    config.write_text(state_rules(tmp_path, BUDGET), encoding="utf-8")
    for used in 1, 2:
        process = subprocess.Popen(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", weir_path(),
                                    "serve", "--config", str(config), "--http", address,
                                    "--admin", "off"])
        try:
            wait_until(lambda: process.poll() is not None or answers(address), what="the server")
            with Client(address) as client:
                result = client.request("POST", "/v1/check", {}, b'{"ip":"192.0.2.1"}').json
            assert result["limits"][0]["remaining"] == LIMIT - used
            process.terminate()
            assert process.wait(SECONDS_MAX) == 0
        finally:
            process.kill()
            process.wait()


def answers(address):
    try:
        with Client(address) as client:
            return client.request("GET", "/v1/auth").status == 200
    except OSError:
        return False


def test_private_memory_forgets(tmp_path):
    with Weir(tmp_path, rules_of({**BUDGET, "rate": "1/day"})) as weir:
        assert weir.check(ip="192.0.2.1").status == 200
        weir.stop()
        weir.start()
        assert weir.check(ip="192.0.2.1").status == 200


def serve_once(folder, text, *options):
    config = folder / "weir.yaml"
    config.write_text(text, encoding="utf-8")
    return run_weir("serve", "--config", config, "--http", "127.0.0.1:0", "--admin", "off", *options)


@pytest.mark.parametrize("damage", ["foreign", "cut", "version", "of-0.1", "empty-head"])
def test_a_damaged_or_foreign_state_file_is_refused_and_left_alone(tmp_path, damage):
    rules = state_rules(tmp_path, BUDGET)
    state = tmp_path / "state"
    with Weir(tmp_path, rules) as weir:
        weir.check(ip="192.0.2.1")
        weir.stop()
    data = bytearray(state.read_bytes())
    if damage == "foreign":
        data = bytearray(b"this is somebody's only copy of something\n" * 100)
    elif damage == "cut":
        data = data[:len(data) // 2]
    elif damage == "version":
        data[8] ^= 0xff
    elif damage == "of-0.1":
        data[8] = 1
    else:
        data[:4096] = bytes(4096)
    state.write_bytes(data)
    done = serve_once(tmp_path, rules)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"weir: state file {state}: ")
    assert done.stderr.count(str(state)) == 1
    assert state.read_bytes() == bytes(data)
    with Weir(tmp_path, rules, "--reset-state") as weir:
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - 1
        weir.stop()


def test_reset_state_empties_a_good_file_and_only_at_the_start(tmp_path):
    rules = state_rules(tmp_path, BUDGET)
    with Weir(tmp_path, rules) as weir:
        weir.check(ip="192.0.2.1")
        weir.stop()
    before = (tmp_path / "state").stat().st_ino
    with Weir(tmp_path, rules, "--reset-state") as weir:
        assert f"file={tmp_path / 'state'}" in weir.wait_event("state_reset")
        assert (tmp_path / "state").stat().st_ino != before
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - 1
        weir.reload()
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - 2
        weir.stop()
    assert sorted(file.name for file in tmp_path.glob("state*")) == [
        "state", "state.edge", "state.series"]
    with Weir(tmp_path, rules) as weir:
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - 3
        weir.stop()


def test_reset_state_leaves_a_file_alone_that_another_process_uses(tmp_path):
    rules = state_rules(tmp_path, BUDGET)
    with Weir(tmp_path, rules) as weir:
        weir.check(ip="192.0.2.1")
        done = serve_once(tmp_path, rules, "--reset-state")
        assert done.returncode == 1
        assert done.stderr == (f"weir: state file {tmp_path / 'state'}: cannot be reset while another process has "
                               "it open; stop that one first\n")
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - 2
        weir.stop()


@pytest.mark.parametrize("path", ["/no/such/folder/state", "/dev/null", "/"])
def test_a_state_file_that_cannot_be_is_one_line(tmp_path, path):
    done = serve_once(tmp_path, rules_of(BUDGET, state={"file": path, "size": "1MiB"}))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr
    assert path in done.stderr


def test_another_size_copies_what_fits(tmp_path):
    with Weir(tmp_path, state_rules(tmp_path, BUDGET, size="1MiB")) as weir:
        weir.check(ip="192.0.2.1")
        weir.stop()
        weir.write_rules(state_rules(tmp_path, BUDGET, size="4MiB"))
        weir.start()
        assert weir.check(ip="192.0.2.1").json["limits"][0]["remaining"] == LIMIT - 2
        weir.stop()


def test_another_share_of_spans_copies_the_file(tmp_path):
    """The rules choose it, the file keeps it, and state.spans changes it."""
    log = {"name": "log", "key": ["user"], "algorithm": "sliding_log", "rate": "1000/min"}
    state = {"file": str(tmp_path / "state"), "size": "1MiB"}
    wanted = [({}, [BUDGET], 2), ({}, [BUDGET, log], 2), ({"spans": "30%"}, [BUDGET, log], 30),
              ({}, [BUDGET], 30)]
    with Weir(tmp_path, rules_of(BUDGET, state=state)) as weir:
        left = remaining(weir)
        for spans, limits, percent in wanted:
            weir.stop()
            weir.write_rules(rules_of(*limits, state={**state, **spans}))
            weir.start()
            assert f" spans_percent={percent} " in weir.wait_event("started")
            assert remaining(weir) == left


def test_the_process_is_no_larger_than_configured(tmp_path):
    """A flood of keys into 1 MiB."""
    limit = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour"}
    with Weir(tmp_path, rules_of(limit, state={"size": "1MiB"}), "--workers", "1") as weir:
        def memory_kib():
            with open(f"/proc/{weir.process.pid}/status", encoding="ascii") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

        with weir.client() as client:
            denied = [f"192.0.2.{i}" for i in range(50)]
            for address in denied * 2:
                client.check(ip=address)
            before = memory_kib()
            for i in range(100):
                batch = [{"ip": f"10.{i}.{j // 250}.{j % 250}"} for j in range(1000)]
                assert client.post("/v1/check", batch).status == 200
            assert memory_kib() - before < 40 * 1024  # the pool of decisions and their answers
            assert all(client.check(ip=address).status == 429 for address in denied)
        assert weir.metrics()["weir_table_overflows_total"] > 0


# --- The wall clock ------------------------------------------------------------------------------

@pytest.mark.parametrize("algorithm,rate", [("gcra", "1/min"), ("fixed_window", "1/day"),
                                            ("sliding_window", "1/min"), ("sliding_log", "1/min")])
def test_a_stepped_wall_clock_changes_no_verdict(tmp_path, algorithm, rate):
    limit = {"name": "one", "key": ["client.ip"], "algorithm": algorithm, "rate": rate}
    step_clock(tmp_path, 0)
    with Weir(tmp_path, rules_of(limit), env=stepped_clock(tmp_path)) as weir:
        assert weir.check(ip="192.0.2.1").status == 200
        for step in (3600, -3600, 86400 * 50, -86400 * 50):
            step_clock(tmp_path, step)
            reply = weir.check(ip="192.0.2.1")
            assert reply.status == 429, f"after a step of {step} s"
            assert abs(time.time() - weir_date(reply)) > 3000  # the clock did step
        assert weir.check(ip="192.0.2.9").status == 200


def weir_date(reply):
    return parsedate_to_datetime(reply["date"]).timestamp()


def test_a_clock_that_steps_is_logged_and_exported(tmp_path):
    step_clock(tmp_path, 0)
    with Weir(tmp_path, rules_of(BUDGET), env=stepped_clock(tmp_path)) as weir:
        step_clock(tmp_path, 7200)
        line = weir.wait_event("wall_clock_differs")
        assert 7190000 < int(line.rpartition("offset_ms=")[2]) < 7210000
        assert 7190 < weir.metrics()["weir_clock_offset_seconds"] < 7210
        step_clock(tmp_path, 0)
        weir.wait_event("wall_clock_agrees")


def test_time_does_not_go_back_when_the_clock_was_set_back_before_a_restart(tmp_path):
    limit = {"name": "one", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour"}
    step_clock(tmp_path, 0)
    with Weir(tmp_path, state_rules(tmp_path, limit), env=stepped_clock(tmp_path)) as weir:
        assert weir.check(ip="192.0.2.1").status == 200
        weir.stop()
        step_clock(tmp_path, -86400)
        weir.start()
        reply = weir.check(ip="192.0.2.1")
        assert reply.status == 429 and reply.json["retry_after_ms"] <= 3600000
