# SPDX-License-Identifier: Apache-2.0
"""Several rates, quotas by calendar, costs, schedules, trials: in virtual time, against the model.

A failure prints the rules, the line, and both decisions.
"""

import json
import random
import zoneinfo
from datetime import datetime

import pytest

from model.generator import DAY_NS, Generator
from model.program import replay_decisions, run_weir
from model.replay import Replay, parse_json_line
from model.rules import load_rules

NS = 10**9


def assert_same(rules_text, lines, found, expected):
    for line, got, want in zip(lines, found, expected):
        assert got == want, f"\n{rules_text}\n{line}\nweir:  {got}\nmodel: {want}"
    assert len(found) == len(expected)


# --- Several rates --------------------------------------------------------------------------------

class SeveralRates(Generator):
    """The random limits of the generator, each with 2 to 4 rates."""

    def __init__(self, seed, algorithm):
        super().__init__(seed, algorithms=[algorithm], limits=random.Random(seed).randint(1, 3))

    def limit_entry(self, name):
        entry = super().limit_entry(name)
        for field in ("burst", "segments"):
            entry.pop(field, None)
        rng, rates, count, window_ms = self.rng, [], 0, 0
        bucket = entry["algorithm"] in ("token_bucket", "gcra", "leaky_bucket")
        for i in range(rng.randint(2, 4)):  # none makes another useless
            count += rng.randint(1, 9) if i == 0 or not bucket else 0
            window_ms = window_ms * 2 + rng.choice([1100, 2500, 60000, DAY_NS // 10**6 // 7])
            burst = f" burst {8 * i + rng.randint(1, 8)}" if bucket else ""
            rates.append(f"{count}/{window_ms}ms{burst}")
        rng.shuffle(rates)
        entry["rate"] = rates
        return entry


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_window", "sliding_log",
                                       "token_bucket", "gcra", "queue"])
def test_several_rates_give_what_the_model_says(tmp_path, algorithm, seed):
    generator = SeveralRates(f"rates-{algorithm}-{seed}", algorithm)
    generator.write_lists(tmp_path)
    pairs = list(generator.trace(800))
    lines, expected = [line for line, _ in pairs], [decision for _, decision in pairs]
    found = replay_decisions(tmp_path, generator.rules_text(), lines)
    assert_same(generator.rules_text(), lines, found, expected)


def test_the_tightest_of_several_rates_is_reported_and_the_limit_counted_once(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("version: 1\nlimits:\n"
                     "  - { name: api, key: [user], algorithm: fixed_window,\n"
                     "      rate: [2/10s, 3/min] }\n", encoding="utf-8")
    times = [0, 1, 2, 10, 11, 12, 60]
    trace = "".join(json.dumps({"t": 1_700_000_040 + t, "attributes": {"user": "a"}}) + "\n"
                    for t in times)
    done = run_weir("replay", "--config", rules, "--decisions", "-", "-", stdin=trace)
    assert done.returncode == 0, done.stderr
    result = [json.loads(line) for line in done.stdout.splitlines()]
    assert [decision["allowed"] for decision in result] == [True, True, False, True, False, False,
                                                          True]
    assert all(len(decision["limits"]) == 1 for decision in result)
    seconds = [(decision["limits"][0]["remaining"],
                decision["limits"][0]["retry_after_ns"] // NS) for decision in result]
    assert seconds == [(1, 0), (0, 0), (0, 8), (0, 0), (0, 49), (0, 48), (1, 0)]
    report = next(line for line in done.stderr.splitlines() if line.startswith("api"))
    assert report.split() == ["api", "7", "4", "3", "1"]


# --- Quotas ---------------------------------------------------------------------------------------

ANCHORS = {"day": ["06:00", "02:30", "23:59"], "week": ["monday", "sun 02:30", "thu 06:00"],
           "month": ["31", "15 06:00", "29 02:30"], "year": ["02-29", "04-06 06:00", "12-31"]}
ZONES = ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
         "Asia/Kathmandu", "America/Santiago", "Africa/Casablanca", "UTC"]


CALENDARS_END_S = 2_700_000_000  # 2055: from 2060 on periods have a fixed length


def quota_entries(rng):
    zones = rng.sample(ZONES, 3) + [rng.choice(sorted(zoneinfo.available_timezones() -
                                                      {"Factory", "localtime"}))]
    for i, zone in enumerate(zones):
        unit = rng.choice(sorted(ANCHORS))
        entry = {"name": f"quota-{i}", "key": ["k"], "timezone": zone,
                 "quota": f"{rng.randint(1, 30)}/{unit}", "shadow": i > 0}
        if rng.random() < 0.7:
            entry["anchor"] = rng.choice(ANCHORS[unit])
        if rng.random() < 0.5:
            entry["rollover"] = rng.choice(["20%", "50%", "100%"])
        yield entry


def quota_trace(rng, entries, count):
    """Requests over several years, many of them near a moment at which something ends."""
    replay = Replay(load_rules(json.dumps({"version": 1, "limits": entries})))
    now, moments = rng.randint(1_000_000_000, 1_700_000_000) * NS, []
    for _ in range(count):
        if now > CALENDARS_END_S * NS:
            return
        ahead = [moment for moment in moments if moment > now]
        step = rng.random()
        if step < 0.3 and ahead:
            now = max(now, rng.choice(ahead) + rng.choice([-1, 0, 0, 1]))
        elif step < 0.8:
            now += rng.randint(0, 40 * 3600) * NS
        else:
            now += rng.randint(0, 40 * 86400) * NS
        attributes, cost = {"k": rng.choice("ab")}, rng.choice([1, 1, 1, 2, 5, 29, 60])
        line = json.dumps({"t": f"{now // NS}.{now % NS:09d}", "attributes": attributes,
                           "cost": cost})
        decision = replay.decide(*parse_json_line(line))
        moments = [now + limit["reset_after_ns"] for limit in decision["limits"]] + ahead[:4]
        yield line, decision


@pytest.mark.parametrize("seed", range(6))
def test_quotas_over_years_and_zones_give_what_zoneinfo_says(tmp_path, seed):
    rng = random.Random(f"quota-{seed}")
    entries = list(quota_entries(rng))
    pairs = list(quota_trace(rng, entries, 400))
    lines, expected = [line for line, _ in pairs], [decision for _, decision in pairs]
    rules = json.dumps({"version": 1, "limits": entries})
    assert_same(rules, lines, replay_decisions(tmp_path, rules, lines), expected)


# --- Schedules ------------------------------------------------------------------------------------

@pytest.mark.parametrize("zone", ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe"])
def test_a_limit_is_in_force_while_the_wall_shows_its_hours(tmp_path, zone):
    rng = random.Random(f"when-{zone}")
    rules = (f"version: 1\ntimezone: {zone}\nlimits:\n"
             "  - { name: work, key: [], rate: 0/s, when: 'Mon-Fri 09:00-18:00' }\n"
             "  - { name: night, key: [], rate: 0/s, shadow: true,\n"
             "      when: ['Fri,Sat 22:30-03:15', 'Sun 02:00-02:45'] }\n")
    start = 1_700_000_000
    times = sorted(start + rng.randint(0, 2 * 365 * 86400) for _ in range(3000))
    found = replay_decisions(tmp_path, rules, [f'{{"t": {t}}}' for t in times])
    for t, decision in zip(times, found):
        wall = datetime.fromtimestamp(t, zoneinfo.ZoneInfo(zone))
        day, minute = wall.weekday(), wall.hour * 60 + wall.minute
        expected = ["work"] if day < 5 and 540 <= minute < 1080 else []
        if (day in (4, 5) and minute >= 1350 or day in (5, 6) and minute < 195):
            expected.append("night")
        assert [limit["name"] for limit in decision["limits"]] == expected, (t, wall)
        assert decision["allowed"] == ("work" not in expected)


# --- Trials ---------------------------------------------------------------------------------------

def test_a_limit_that_is_rolled_out_denies_a_share_of_keys_that_only_grows(tmp_path):
    lines = [json.dumps({"t": 1_700_000_000, "attributes": {"user": f"u{i}"}})
             for i in range(400)] * 2
    before = set()
    for share in (0, 10, 50, 100):
        rules = ("version: 1\nlimits:\n"
                 f"  - {{ name: api, key: [user], rate: 1/min, enforce: {share}% }}\n")
        found = replay_decisions(tmp_path, rules, lines)
        assert all(decision["allowed"] for decision in found[:400])
        assert not any(decision["limits"][0]["allowed"] for decision in found[400:])
        denied = {i for i, decision in enumerate(found[400:]) if not decision["allowed"]}
        assert before <= denied
        assert abs(len(denied) - 4 * share) <= (0 if share % 100 == 0 else 50)
        before = denied
