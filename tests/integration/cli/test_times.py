# SPDX-License-Identifier: Apache-2.0
"""Moments on the command line, by `weir denials`: printed in a zone, and read in all forms that are printed."""

import datetime
import json

import pytest

from model.program import run_weir

MOMENT = datetime.datetime(2026, 11, 23, 13, 3, 7, tzinfo=datetime.timezone.utc)


def denials(folder, *options, at=MOMENT, zone="CET-1"):
    """What the command says of one denial."""
    path = folder / "denials.log"
    path.write_text(json.dumps({"time_ns": int(at.timestamp()) * 10**9, "limit": "search"}) + "\n", encoding="utf-8")
    return run_weir("denials", "--file", path, *options, env={"TZ": zone})


def found(done):
    assert (done.returncode, done.stderr) == (0, "")
    return "search" in done.stdout


@pytest.mark.parametrize("options, zone, shown", [
    ((), "CET-1", "2026-11-23T14:03:07+01:00"), (("--utc",), "CET-1", "2026-11-23T13:03:07Z"),
    ((), "NST3:30", "2026-11-23T09:33:07-03:30"), ((), "UTC0", "2026-11-23T13:03:07+00:00")])
def test_times_are_printed_with_their_zone(tmp_path, options, zone, shown):
    assert denials(tmp_path, *options, zone=zone).stdout.startswith(shown + "  search")


@pytest.mark.parametrize("options, zone, shown", [
    ((), "CET-1", "from 2026-11-23T14:03:07+01:00 to 2026-11-23T14:03:08+01:00"),
    (("--utc",), "CET-1", "from 2026-11-23T13:03:07Z to 2026-11-23T13:03:08Z"),
    ((), "UTC0", "from 2026-11-23T13:03:07+00:00 to 2026-11-23T13:03:08+00:00")])
def test_a_replay_prints_them_so_too(tmp_path, options, zone, shown):
    trace, rules = tmp_path / "trace", tmp_path / "weir.yaml"
    trace.write_text("".join(f'{{"t": {int(MOMENT.timestamp()) + i}, "ip": "192.0.2.1"}}\n' for i in range(2)),
                     encoding="utf-8")
    rules.write_text("version: 1\nlimits:\n- {name: a, key: [client.ip], rate: 1/min, candidate: 2/min}\n",
                     encoding="utf-8")
    report = run_weir("replay", *options, "-c", rules, trace, env={"TZ": zone}).stdout
    assert shown + "\n" in report
    first = report[report.index("FIRST DIFFERENCES"):].splitlines()[1]
    assert shown.split()[3] in first.split()
    suggested = run_weir("replay", *options, "--suggest", trace, env={"TZ": zone})
    assert f"# {shown}.\n" in suggested.stdout, suggested


@pytest.mark.parametrize("text", [
    "2026-11-23T14:03:07+01:00", "2026-11-23T13:03:07Z", "2026-11-23T09:33:07-0330", "2026-11-23 14:03:07",
    "1795438987"])
def test_every_form_is_the_same_moment(tmp_path, text):
    assert int(MOMENT.timestamp()) == 1795438987
    assert found(denials(tmp_path, "--since", text)) and found(denials(tmp_path, "--until", text))
    for seconds, option in ((1, "--until"), (-1, "--since")):
        other = MOMENT + datetime.timedelta(seconds=seconds)
        assert not found(denials(tmp_path, option, text, at=other))


def test_a_date_alone_is_its_beginning_and_utc_reads_in_utc(tmp_path):
    assert found(denials(tmp_path, "--since", "2026-11-23", "--until", "2026-11-24"))
    assert not found(denials(tmp_path, "--until", "2026-11-23"))
    assert found(denials(tmp_path, "--since", "2026-11-23 14:03"))
    assert not found(denials(tmp_path, "--utc", "--since", "2026-11-23 14:03"))


def test_a_time_of_day_is_the_last_one_and_the_end_comes_after_the_beginning(tmp_path):
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    before, at, after = (f"{now - datetime.timedelta(minutes=m):%H:%M:%S}" for m in (30, 20, 10))
    when = now - datetime.timedelta(minutes=20)
    assert found(denials(tmp_path, "--utc", "--since", before, "--until", after, at=when))
    assert found(denials(tmp_path, "--utc", "--since", at, at=when))
    assert not found(denials(tmp_path, "--utc", "--since", after, at=when))
    assert not found(denials(tmp_path, "--utc", "--since", before, "--until", after, at=now))
    assert found(denials(tmp_path, "--since", "25min", at=when))
    assert not found(denials(tmp_path, "--since", "15min", at=when))


@pytest.mark.parametrize("text", [
    "2026-13-01", "2026-00-10", "2026-01-32", "2026-01-00", "2026-02-30", "2026-11-23T14", "2026-11-23T24:00",
    "2026-11-23T14:03+", "25:00", "14:3", "14:03x", "yesterday", ""])
def test_what_is_no_time_is_refused(tmp_path, text):
    done = denials(tmp_path, "--since", text)
    assert done.returncode == 2 and "--since: " in done.stderr
