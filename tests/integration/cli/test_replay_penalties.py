# SPDX-License-Identifier: Apache-2.0
"""Penalties in `weir replay`: which callers would have reached which step, and when, and what then happens to
the requests that follow."""

import json
import re

from model.program import ROOT, run_weir

START = 1763607600  # 2025-11-20 03:00:00
LOGIN = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip/64"], "rate": "2/d",
         "algorithm": "fixed_window"}
BRUTE = {"name": "brute-force", "key": ["client.ip/64"], "strikes": "2/h",
         "ladder": ["warn 1h", "suspend 10s", "suspend 1d"]}


def replay(folder, requests, *penalties, limits=(LOGIN,), by=("client.ip/64", "user")):
    """The report, and whether each request was allowed, or "standing" denied it."""
    rules = {"version": 1, "limits": list(limits), "penalties": list(penalties),
             "standing": {"by": list(by), "file": "never-opened.db"}}
    config, trace, found = folder / "weir.yaml", folder / "trace", folder / "decisions"
    config.write_text(json.dumps(rules))
    trace.write_text("".join(
        json.dumps({"t": f"{START + t:.3f}", "path": "/login", **request}) + "\n"
        for t, request in requests))
    done = run_weir("replay", "--utc", "-c", config, "-d", found, trace)
    assert done.returncode == 0, done.stderr
    decisions = [json.loads(line) for line in found.read_text().splitlines()]
    return done.stdout, ["standing" if not one["allowed"] and not one["limits"] else one["allowed"]
                         for one in decisions]


def rows(report, penalty):
    """(step, standing, time, caller) of the report."""
    return [(int(step), level, time, caller) for step, level, time, caller in re.findall(
        rf"^{penalty} +(\d+) (\w+) +([\d:TZ-]+) +(\S+)$", report, re.M)]


def test_the_report_has_steps_times_and_callers(tmp_path):
    requests = [(i, {"ip": "192.0.2.7"}) for i in range(8)]
    requests += [(8 + i, {"ip": "2001:db8::7"}) for i in range(5)]
    report, decisions = replay(tmp_path, requests, BRUTE)
    assert decisions == [True] * 2 + [False] * 6 + [True] * 2 + [False] * 3
    assert "brute-force: 9 strikes; 2 reached step 1, 1 reached step 2\n" in report
    assert rows(report, "brute-force") == [
        (1, "warned", "2025-11-20T03:00:04Z", "client.ip=192.0.2.7"),
        (2, "suspended", "2025-11-20T03:00:07Z", "client.ip=192.0.2.7"),
        (1, "warned", "2025-11-20T03:00:12Z", "client.ip=2001:db8::/64")]


def test_a_suspension_refuses_the_lines_after_it_until_its_exact_end(tmp_path):
    requests = [(0, {"ip": "192.0.2.7"})] * 8
    requests += [(9.999, {"ip": "192.0.2.7"}), (10, {"ip": "192.0.2.7"})]
    report, decisions = replay(tmp_path, requests, BRUTE)
    assert decisions[8:] == ["standing", False]
    assert "1 requests were denied for the standing of their caller: 1 suspended" in report
    assert "brute-force: 7 strikes" in report


def test_statuses_of_the_trace_are_strikes_where_the_request_was_allowed(tmp_path):
    penalty = BRUTE | {"for": [], "outcomes": [401], "ladder": ["warn 1h"]}
    limit = LOGIN | {"rate": "4/d"}
    statuses = [401, 200, 401, 401, 401, 401]
    report, _ = replay(tmp_path, [(i, {"ip": "192.0.2.7", "status": status})
                                  for i, status in enumerate(statuses)], penalty, limits=(limit,))
    assert "brute-force: 3 strikes; 1 reached step 1" in report  # the last two were denied
    assert rows(report, "brute-force")[0][2] == "2025-11-20T03:00:03Z"


def test_a_weaker_term_is_back_when_a_stricter_one_of_another_penalty_ends(tmp_path):
    slow = LOGIN | {"name": "slow", "match": {"path": "/x", "standing": "throttled"}, "rate": "0/d"}
    mild = BRUTE | {"name": "mild", "ladder": ["throttle 1h"]}
    harsh = BRUTE | {"name": "harsh", "ladder": ["suspend 10s"]}
    requests = [(0, {"ip": "192.0.2.7"})] * 5
    requests += [(t, {"ip": "192.0.2.7", "path": "/x"}) for t in (5, 10, 3600, 3601)]
    _, decisions = replay(tmp_path, requests, mild, harsh, limits=(LOGIN | {"rate": "2/d"}, slow))
    assert decisions[5:] == ["standing", False, True, True]


def test_the_example_of_the_docs(tmp_path):
    trace = tmp_path / "trace"
    trace.write_text("".join(
        json.dumps({"t": f"{START + i / 10:.1f}", "path": "/login", "ip": "192.0.2.7"}) + "\n"
        for i in range(30)))
    done = run_weir("replay", "-c", ROOT / "examples" / "penalties" / "weir.yaml", trace)
    page = (ROOT / "docs" / "penalties.md").read_text(encoding="utf-8")
    times = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
    found = times.sub("T", done.stdout)
    shown = times.sub("T", page[page.index("brute-force: 18 strikes"):].split("```")[0])
    assert shown in found, found
