# SPDX-License-Identifier: Apache-2.0
"""A state file that goes away, is replaced, cut short or overwritten while weir has it open."""

import json
import os
import re
import signal

import pytest

from daemon.http import Client
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

LIMIT = 10
API = {"name": "api", "key": ["client.ip"], "algorithm": "fixed_window", "rate": f"{LIMIT}/day"}
LOST = "weir_state_file_lost"
STATE_EXIT = 3


def rules(folder, *limits, size="1MiB", **parts):
    return rules_of(*(limits or (API,)), state={"file": str(folder / "state"), "size": size}, **parts)


class Second(Weir):
    """Another weir on the same state file."""

    def __init__(self, folder, text):
        other = folder / "second"
        other.mkdir(exist_ok=True)
        super().__init__(other, text)


def admitted(weir, count=2 * LIMIT, ip="192.0.2.1"):
    return sum(weir.check(ip=ip).status == 200 for _ in range(count))


def readyz(weir):
    with weir.admin() as client:
        reply = client.request("GET", "/readyz")
    return reply.status, reply.body.decode()


def test_a_deleted_state_file_is_noticed_and_a_reload_writes_it_again(tmp_path):
    with Weir(tmp_path, rules(tmp_path), "--workers", "2") as weir:
        assert admitted(weir, 4) == 4
        (tmp_path / "state").unlink()
        assert str(tmp_path / "state") in weir.wait_event("state_file_lost")
        assert readyz(weir) == (200, "ready: the state file is gone; reload to repair it\n")
        assert weir.metrics()[LOST] == 1
        assert admitted(weir, 2) == 2  # it serves meanwhile
        assert "event=reloaded limits=1" in weir.reload()
        assert readyz(weir) == (200, "ready\n") and weir.metrics()[LOST] == 0
        assert weir.metrics()['weir_reloads_total{result="ok"}'] == 1
        with Second(tmp_path, rules(tmp_path)) as second:
            assert admitted(second, 2) == 2
            assert admitted(weir) == LIMIT - 8 and admitted(second) == 0
            assert second.stop() == 0
        assert weir.stop() == 0
        weir.start()
        assert admitted(weir) == 0
        assert weir.stop() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "second", "state", "state.edge", "state.series", "weir.yaml"]


def test_a_second_weir_that_counts_apart_is_joined_by_a_reload(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        assert admitted(weir, 4) == 4
        (tmp_path / "state").unlink()
        with Second(tmp_path, rules(tmp_path)) as second:
            assert admitted(second, 3) == 3
            weir.wait_event("state_file_lost")
            wait_until(lambda: "not the one at its path" in readyz(weir)[1], what="the other file")
            assert "event=reloaded" in weir.reload()
            assert readyz(weir) == (200, "ready\n")
            # From here on the two count together: what is at the path continues.
            assert admitted(weir, 3) == 3 and admitted(second) == LIMIT - 6 and admitted(weir) == 0
            assert second.stop() == 0
        assert weir.stop() == 0


def test_two_weirs_on_a_deleted_file_meet_again(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir, Second(tmp_path, rules(tmp_path)) as second:
        assert admitted(weir, 2) == 2 and admitted(second, 2) == 2
        (tmp_path / "state").unlink()
        weir.wait_event("state_file_lost")
        second.wait_event("state_file_lost")
        assert "event=reloaded" in weir.reload() and "event=reloaded" in second.reload()
        assert admitted(weir, 2) + admitted(second, 1) + admitted(weir) == LIMIT - 4
        assert admitted(second) == 0


def test_a_reload_that_mends_keeps_its_ports_sockets_and_those_who_wait(tmp_path):
    http = f"unix:{tmp_path}/weir.sock"
    with Weir(tmp_path, rules(tmp_path), http=http) as weir:
        assert admitted(weir, 1) == 1
        (tmp_path / "state").rename(tmp_path / "moved")
        weir.wait_event("state_file_lost")
        with weir.client() as client:
            client.send(b"POST /v1/check HTTP/1.1\r\nHost: x\r\n")  # holds up the end of the run
            weir.signal(signal.SIGHUP)
            weir.wait_event("state_file_reopening")
            with Client(http) as waiting:
                waiting.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
                client.send(b"Content-Length: 18\r\n\r\n" + b'{"ip":"192.0.2.1"}')
                assert client.reply().status == 200
                weir.wait_event("reloaded")
                assert waiting.reply().status == 404
        assert readyz(weir) == (200, "ready\n")  # at the address that it had
        assert admitted(weir) == LIMIT - 2
        assert weir.stop() == 0
    assert not (tmp_path / "weir.sock").exists()


def test_a_signal_while_a_reload_mends_stops_weir(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        (tmp_path / "state").unlink()
        weir.wait_event("state_file_lost")
        with weir.client() as client:
            client.send(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
            weir.signal(signal.SIGHUP)
            weir.wait_event("state_file_reopening")
            weir.signal(signal.SIGTERM)
            weir.wait_event("stopping")
            client.send(b"{}")
            assert client.reply().status == 200
        assert weir.wait() == 0
        assert "event=reloaded" not in weir.text()


@pytest.mark.parametrize("there", ["foreign", "folder"])
def test_what_cannot_be_joined_fails_the_reload_and_weir_goes_on(tmp_path, there):
    state = tmp_path / "state"
    with Weir(tmp_path, rules(tmp_path)) as weir:
        assert admitted(weir, 4) == 4
        state.unlink()
        if there == "foreign":
            state.write_bytes(b"somebody's only copy\n" * 1000)
        else:
            state.mkdir()
        weir.wait_event("state_file_lost")
        line = weir.reload()
        assert "event=reload_failed" in line and str(state) in line
        assert "event=state_file_reopening" not in weir.text()
        assert admitted(weir) == LIMIT - 4
        assert weir.metrics()[LOST] == 1
        if there == "foreign":
            assert state.read_bytes() == b"somebody's only copy\n" * 1000
            state.unlink()
        else:
            state.rmdir()
        assert "event=reloaded" in weir.reload()
        assert admitted(weir) == 0


def test_a_state_file_that_cannot_be_written_again_leaves_the_counts_in_use(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Weir(tmp_path, rules(folder)) as weir:
        assert admitted(weir, 4) == 4
        folder.rename(tmp_path / "moved")
        weir.wait_event("state_file_lost")
        assert "event=reload_failed" in weir.reload()
        weir.wait_event("state_file_lost", 2)
        assert admitted(weir) == LIMIT - 4
        (tmp_path / "moved").rename(folder)
        weir.wait_event("state_file_found")
        assert "event=reloaded" in weir.reload() and admitted(weir) == 0
        assert "event=state_file_reopening" in weir.text()


def touched(weir, many=200):
    """Asks about so many keys that some of them are wherever the file was."""
    try:
        for i in range(many):
            weir.check(ip=f"198.51.{i // 250}.{i % 250}")
    except (EOFError, OSError):
        pass


def only_line(weir, event, state):
    (line,) = [line for line in weir.text().splitlines() if f"event={event} " in line]
    assert f"file={state}" in line and "reason=" in line and line.startswith("time=20")
    return line


@pytest.mark.parametrize("size", [0, 4096, 300000])
def test_a_state_file_that_is_cut_short_is_one_line_and_an_end(tmp_path, size):
    state = tmp_path / "state"
    with Weir(tmp_path, rules(tmp_path), "--workers", "2") as weir:
        touched(weir)
        os.truncate(state, size)
        touched(weir)
        assert weir.wait() == STATE_EXIT
        only_line(weir, "state_file_cut", state)
        assert "Bus error" not in weir.text()


def test_a_state_file_that_is_cut_short_is_noticed_without_traffic_too(tmp_path):
    with Weir(tmp_path, rules(tmp_path), "--log-format", "json", http=f"unix:{tmp_path}/s",
              wait=False) as weir:
        weir.wait_event("started")
        os.truncate(tmp_path / "state", 500000)
        assert weir.wait() == STATE_EXIT
        seen = [json.loads(line) for line in weir.text().splitlines()][-1]
        assert seen["event"] == "state_file_cut" and seen["file"] == str(tmp_path / "state")
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen["time"])


@pytest.mark.parametrize("what", ["zeros", "ones", "text"])
@pytest.mark.parametrize("size", [192, 4096])
def test_a_header_that_is_overwritten_is_one_line_and_an_end(tmp_path, what, size):
    state = tmp_path / "state"
    limits = [API, {**API, "name": "log", "algorithm": "sliding_log", "match": {"path": "/log"}}]
    with Weir(tmp_path, rules(tmp_path, *limits), "--workers", "2") as weir:
        touched(weir)
        data = {"zeros": b"\0", "ones": b"\xff", "text": b"x"}[what] * size
        with open(state, "r+b") as file:
            file.write(data)
        touched(weir)
        try:
            with weir.client() as client:
                client.check(ip="192.0.2.1", path="/log")
            weir.metrics()
        except (EOFError, OSError, ValueError):
            pass  # it has ended by now
        assert weir.wait() == STATE_EXIT
        only_line(weir, "state_file_overwritten", state)
        done = run_weir("serve", "--config", weir.config, "--http", "off", "--admin", "off")
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("what", [b"\0", b"\xff", b"x"])
def test_a_whole_file_that_is_overwritten_is_an_end_too(tmp_path, what):
    state = tmp_path / "state"
    with Weir(tmp_path, rules(tmp_path), "--workers", "2") as weir:
        touched(weir)
        with open(state, "r+b") as file:
            file.write(what * state.stat().st_size)
        touched(weir)
        assert weir.wait() == STATE_EXIT
        only_line(weir, "state_file_overwritten", state)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_are_answered_with_an_overwritten_header(tmp_path, number):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        touched(weir)
        with open(tmp_path / "state", "r+b") as file:
            file.write(b"\xff" * 4096)
        weir.signal(number)
        assert weir.wait() in ((0, STATE_EXIT) if number == signal.SIGTERM else (STATE_EXIT,))


def test_private_memory_has_no_file_to_lose(tmp_path):
    with Weir(tmp_path, rules_of(API)) as weir:
        assert weir.metrics()[LOST] == 0
        assert "event=reloaded" in weir.reload() and "state_file" not in weir.text()
