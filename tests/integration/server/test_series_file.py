# SPDX-License-Identifier: Apache-2.0
"""The series of a day, kept beside the state: over restarts and kills, a damaged file, a disk that is
full, and a clock that is set."""

import os
import resource

import pytest

from daemon.nodes import off_by
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

YEAR = "366d"


def start(folder, *names, **more):
    limits = [{"name": name, "key": ["user"], "rate": f"3/{YEAR}", "algorithm": "token_bucket"}
              for name in names or ("one", "two")]
    rules = rules_of(*limits, state={"file": str(folder / "state"), "size": "4MiB"})
    return Weir(folder, rules, "--workers", "2", **more)


def series(weir, resolution="1min", **query):
    text = "&".join(f"{name}={value}" for name, value in query.items())
    with weir.admin() as client:
        reply = client.request("GET", f"/v1/series?count=1440&resolution={resolution}&{text}")
    return {name: sum(values) for name, values in reply.json["values"].items()} if reply.status == 200 else None


def ask(weir, user, count):
    """So many requests, of which three are allowed; returns when they are in the series."""
    before = series(weir)["requests"]
    with weir.client() as client:
        for _ in range(count):
            client.check(attributes={"user": user})
    wait_until(lambda: series(weir)["requests"] == before + count, what="the tick")


def wait_for_a_minute(weir, path):
    """Until the file has all that is in the series now. Where a minute has just begun, the next file may be a copy
    that was begun before."""
    def written():
        return path.exists() and path.stat().st_ino

    last = written()
    with weir.admin() as client:
        second = client.request("GET", "/v1/series?count=1").json["until_s"] % 60
    for _ in range(2 if second < 10 else 1):
        last = wait_until(lambda: written() not in (False, last) and written(), what="the end of a minute")


def test_a_day_outlasts_restarts_and_reloads(tmp_path):
    with start(tmp_path) as weir:
        ask(weir, "ann", 5)
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        assert series(weir, "1s")["requests"] == 0  # seconds are of this run
        assert [series(weir)[name] for name in ("requests", "http", "allowed", "denied")] == [5, 5, 3, 2]
        assert [series(weir, limit="two")[name] for name in ("allowed", "denied")] == [3, 2]
        ask(weir, "bob", 4)
        assert [series(weir)[name] for name in ("requests", "allowed", "denied")] == [9, 6, 3]
        weir.write_rules(weir.config.read_text(encoding="utf-8").replace("366d", "365d"))
        weir.reload()
        assert series(weir)["requests"] == 9
        assert weir.stop() == 0
    with start(tmp_path, "one", "three") as weir:
        assert series(weir, limit="two") is None
        assert series(weir, limit="three")["allowed"] == 0
        assert series(weir, limit="one")["allowed"] == 6
        assert "series_" not in weir.text()


def test_requests_just_before_the_end_are_kept(tmp_path):
    with start(tmp_path) as weir:
        with weir.client() as client:
            for _ in range(7):
                client.check(attributes={"user": "ann"})
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        assert series(weir)["requests"] == 7


def test_a_killed_server_keeps_what_it_has_written_each_minute(tmp_path):
    path = tmp_path / "state.series"
    with start(tmp_path) as weir:
        ask(weir, "ann", 5)
        wait_for_a_minute(weir, path)
        weir.kill()
    assert not (tmp_path / "state.series.new").exists()
    with start(tmp_path) as weir:
        assert series(weir)["requests"] == 5
        assert path.stat().st_mode & 0o777 == 0o600


def test_more_limits_than_are_copied_in_a_second_are_kept_whole(tmp_path):
    names = [f"limit{i}" for i in range(80)]
    limits = [{"name": name, "match": {"path": f"/{name}"}, "key": ["user"], "rate": f"3/{YEAR}"} for name in names]
    rules = rules_of(*limits, state={"file": str(tmp_path / "state"), "size": "4MiB"})
    with Weir(tmp_path, rules) as weir:
        with weir.client() as client:
            for name in names:
                client.check(path=f"/{name}", attributes={"user": "ann"})
        wait_until(lambda: series(weir)["requests"] == len(names), what="the tick")
        wait_for_a_minute(weir, tmp_path / "state.series")
        weir.kill()
    with Weir(tmp_path, rules) as weir:
        assert "series_" not in weir.text()
        assert [series(weir, limit=name)["allowed"] for name in names] == [1] * len(names)


def cut(path):
    path.write_bytes(path.read_bytes()[:-3])


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def other_version(path):
    data = bytearray(path.read_bytes())
    data[8] ^= 0xff
    path.write_bytes(data)


def emptied(path):
    path.write_bytes(b"")


def foreign(path):
    path.write_text("somebody's diary\n" * 100, encoding="ascii")


def too_large(path):
    with path.open("r+b") as file:
        file.truncate(200 << 20)


def fifo(path):
    path.unlink()
    os.mkfifo(path)


def link(path):
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


@pytest.mark.parametrize("damage", [cut, flipped, other_version, emptied, foreign, too_large, fifo, link],
                         ids=lambda damage: damage.__name__)
def test_a_file_that_cannot_be_read_is_left_out_with_a_line_and_replaced(tmp_path, damage):
    with start(tmp_path) as weir:
        ask(weir, "ann", 5)
        assert weir.stop() == 0
    damage(tmp_path / "state.series")
    with start(tmp_path) as weir:
        line = weir.wait_event("series_not_read")
        assert "level=warning" in line and str(tmp_path / "state.series") in line
        assert series(weir)["requests"] == 0
        ask(weir, "bob", 2)
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        assert series(weir)["requests"] == 2


def test_a_full_disk_costs_the_file_alone(tmp_path):
    with start(tmp_path) as weir:
        ask(weir, "ann", 5)
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        ask(weir, "bob", 2)
        resource.prlimit(weir.process.pid, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
        before = (tmp_path / "state.series").read_bytes()
        assert weir.stop() == 0
        assert "reason=\"File too large\"" in weir.wait_event("series_not_kept")
    assert (tmp_path / "state.series").read_bytes() == before
    assert not (tmp_path / "state.series.new").exists()


def test_minutes_of_a_clock_that_was_ahead_are_left_out(tmp_path):
    with start(tmp_path, env=off_by(+50)) as weir:
        ask(weir, "ann", 5)
        wait_for_a_minute(weir, tmp_path / "state.series")
        weir.kill()
    with start(tmp_path) as weir:  # the state's own time continues from there
        assert series(weir)["requests"] == 5
        assert weir.stop() == 0
    (tmp_path / "state").unlink()
    with start(tmp_path) as weir:
        weir.wait_event("series_later")
        assert series(weir)["requests"] == 0
        ask(weir, "bob", 2)
        assert weir.stop() == 0
    with start(tmp_path) as weir:
        assert series(weir)["requests"] == 2
        assert "series_later" not in weir.text()


def test_a_clock_that_was_behind_by_more_than_a_day_shows_an_empty_day(tmp_path):
    with start(tmp_path, env=off_by(-50)) as weir:
        ask(weir, "ann", 5)
        wait_for_a_minute(weir, tmp_path / "state.series")
        weir.kill()
    with start(tmp_path) as weir:
        assert series(weir)["requests"] == 0
        ask(weir, "bob", 2)
        assert series(weir)["requests"] == 2


def test_private_memory_keeps_nothing(tmp_path):
    with Weir(tmp_path, rules_of({"name": "one", "key": ["user"], "rate": "3/h"})) as weir:
        ask(weir, "ann", 5)
        assert weir.stop() == 0
    assert not list(tmp_path.glob("*.series*"))
