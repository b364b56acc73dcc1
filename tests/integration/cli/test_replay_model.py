# SPDX-License-Identifier: Apache-2.0
"""`weir replay --decisions` against the independent model: every field of every decision.

Each case has its own random rules and a trace of thousands of requests, made from a seed that the
name of the test tells. A failure prints the rules, the line, and both decisions.
"""

import random

import pytest

from model.access_log import parse_access_line
from model.generator import Generator
from model.program import replay_decisions
from model.replay import Moving, Replay
from model.rules import STANDINGS, load_rules

REQUESTS = 2500
MIXED_CASES = 60
CASES_OF_ONE_ALGORITHM = 3
ALGORITHMS = ["fixed_window", "sliding_window", "sliding_log", "token_bucket", "gcra",
              "leaky_bucket", "queue", "concurrency"]


def assert_same(rules_text, lines, found, expected):
    for line, got, want in zip(lines, found, expected):
        assert got == want, f"\n{rules_text}\n{line}\nweir:  {got}\nmodel: {want}"
    assert len(found) == len(expected)


def compare(folder, generator, requests):
    pairs = list(generator.trace(requests))
    lines, expected = [line for line, _ in pairs], [decision for _, decision in pairs]
    generator.write_lists(folder)
    found = replay_decisions(folder, generator.rules_text(), lines)
    assert_same(generator.rules_text(), lines, found, expected)


@pytest.mark.parametrize("seed", range(MIXED_CASES))
def test_random_rules_and_traces_give_what_the_model_says(tmp_path, seed):
    compare(tmp_path, Generator(seed), REQUESTS)


@pytest.mark.parametrize("seed", range(CASES_OF_ONE_ALGORITHM))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_alone_gives_what_the_model_says(tmp_path, algorithm, seed):
    compare(tmp_path, Generator(f"{algorithm}-{seed}", algorithms=[algorithm], limits=1), REQUESTS)


SMALL_BURSTS = """\
version: 1
standing: {{ by: [user], lists: [{{ file: throttled, by: user, level: throttled }},
                               {{ file: warned, by: user, level: warned }}] }}
limits:
  - {{ name: own, key: [user], algorithm: {algorithm}, rate: 7/s, burst: {burst}, shadow: true,
      by_standing: {{ throttled: {low}%, warned: {high}% }} }}
  - {{ name: all, key: [], algorithm: {algorithm}, rate: 7/s, burst: {burst}, shadow: true,
      by_standing: {{ throttled: {low}%, warned: {high}% }} }}
"""


@pytest.mark.parametrize("algorithm", ["token_bucket", "gcra, on_deny: charge",
                                       "leaky_bucket, queue: true"])
@pytest.mark.parametrize("burst", range(1, 11))
def test_callers_of_different_standing_share_small_bursts_as_the_model_says(tmp_path, algorithm,
                                                                            burst):
    """Two callers and one of good standing on one state, and each alone on its own."""
    rng = random.Random(f"{algorithm}-{burst}")
    Generator.write_lists(tmp_path)
    for low, high in [(1, 9), (10, 100), (20, 50), *(sorted(rng.sample(range(1, 100), 2))
                                                     for _ in range(3))]:
        rules = SMALL_BURSTS.format(algorithm=algorithm, burst=burst, low=low, high=high)
        model, lines, expected, now = Replay(load_rules(rules), STANDINGS), [], [], 1_700_000_000 * 10**9
        for _ in range(400):
            user = rng.choice(["theo", "wendy", "ann"])
            cost = rng.choice([1, 1, 1, 1, 0, 2])
            lines.append(f'{{"t": "{now // 10**9}.{now % 10**9:09}", "cost": {cost}, '
                         f'"attributes": {{"user": "{user}"}}}}')
            expected.append(model.decide(now, {"user": user}, cost))
            retries = [limit["retry_after_ns"] for limit in expected[-1]["limits"]]
            now += rng.choice([0, 1, rng.randrange(10**9), *(max(r + rng.choice([-1, 0]), 0)
                                                             for r in retries)])
        assert_same(rules, lines, replay_decisions(tmp_path, rules, lines), expected)


MOVING = """\
version: 1
standing: {{ by: [user], file: standing.db }}
penalties:
  - {{ name: slowed, key: [user], strikes: 1/h, for: [], outcomes: [418], ladder: [throttle 2s] }}
  - {{ name: told, key: [user], strikes: 1/h, for: [], outcomes: [419], ladder: [warn 3s] }}
limits:
  - {{ name: own, key: [user], algorithm: {algorithm}, rate: 7/s, burst: {burst}, shadow: true,
      by_standing: {{ throttled: {low}%, warned: {high}% }} }}
  - {{ name: all, key: [], algorithm: {algorithm}, rate: 7/s, burst: {burst}, shadow: true,
      by_standing: {{ throttled: {low}%, warned: {high}% }} }}
"""
S = 10**9
TERMS = {"theo": ("throttled", 2 * S, 418), "wendy": ("warned", 3 * S, 419)}


class Strikes:
    """The second strike within an hour puts a term in force, and the count begins anew."""

    def __init__(self):
        self.standings, self.last = Moving(), {}

    def strike(self, user, now):
        level, life, _ = TERMS[user]
        if now < self.last.get(user, -3600 * S) + 3600 * S:
            self.standings.set(user, level, now + life)
            del self.last[user]
        else:
            self.last[user] = now


@pytest.mark.parametrize("algorithm", ["token_bucket", "gcra, on_deny: charge",
                                       "leaky_bucket, queue: true"])
@pytest.mark.parametrize("burst", range(1, 11))
def test_scales_that_move_between_requests_are_those_of_the_model(tmp_path, algorithm, burst):
    """Two callers whose scales begin and end by penalties, and one of good standing, on one state,
    and each alone on its own. What was owed at one scale is owed at the next."""
    rng = random.Random(f"moving {algorithm}-{burst}")
    moved = 0
    for low, high in [(1, 9), (10, 100), *(sorted(rng.sample(range(1, 101), 2))
                                           for _ in range(2))]:
        rules = MOVING.format(algorithm=algorithm, burst=burst, low=low, high=high)
        strikes = Strikes()
        model, lines, expected = Replay(load_rules(rules), strikes.standings), [], []
        now = 1_700_000_000 * S
        for _ in range(400):
            user = rng.choice(["theo", "wendy", "ann"])
            cost = rng.choice([1, 1, 1, 1, 0, 2])
            status = TERMS[user][2] if user in TERMS and rng.random() < 0.3 else 200
            lines.append(f'{{"t": "{now // S}.{now % S:09}", "cost": {cost}, "status": {status}, '
                         f'"latency_ms": 0, "attributes": {{"user": "{user}"}}}}')
            expected.append(model.decide(now, {"user": user}, cost))
            if status != 200:
                strikes.strike(user, now)
            moved += "standing" in expected[-1]
            retries = [limit["retry_after_ns"] for limit in expected[-1]["limits"]]
            ends = [until - now for _, until in strikes.standings.terms.values() if until > now]
            now += rng.choice([0, 1, rng.randrange(S), *(max(after + rng.choice([-1, 0]), 0)
                                                         for after in retries + ends)])
        assert_same(rules, lines, replay_decisions(tmp_path, rules, lines), expected)
    assert moved > 100


def test_gcra_token_bucket_and_leaky_bucket_decide_identically(tmp_path):
    generator = Generator(7, algorithms=["token_bucket"], limits=1)
    generator.write_lists(tmp_path)
    decisions = []
    lines = [line for line, _ in generator.trace(REQUESTS)]
    for algorithm in ("token_bucket", "gcra", "leaky_bucket"):
        generator.entries[0]["algorithm"] = algorithm
        decisions.append(replay_decisions(tmp_path, generator.rules_text(), lines))
    assert decisions[0] == decisions[1] == decisions[2]


def test_seven_an_hour_is_seven_an_hour_to_the_nanosecond_for_a_year(tmp_path):
    rules = ("version: 1\nlimits:\n"
             "  - { name: seven, key: [], algorithm: token_bucket, rate: 7/h, burst: 2 }\n")
    start, hour = 1_700_000_000 * 10**9, 3600 * 10**9
    times = [start, start]  # empties the bucket, which never fills again
    for k in range(1, 7 * 24 * 366 + 1):
        due = start - -k * hour // 7  # rounded up
        times += [due - 1, due]
    lines = [f'{{"t": "{t // 10**9}.{t % 10**9:09}"}}' for t in times]
    found = replay_decisions(tmp_path, rules, lines)
    assert [decision["allowed"] for decision in found] == [True] * 2 + [False, True] * 7 * 24 * 366
    assert {decision["limits"][0]["retry_after_ns"] for decision in found} == {0, 1}


LOG_RULES = """\
version: 1
limits:
  - { name: per-host, key: [client.ip], rate: 2/min }
  - { name: posts, match: { method: POST }, key: [client.ip], algorithm: gcra, rate: 9/h burst 1 }
  - { name: browsers, key: [header.user-agent], algorithm: fixed_window, rate: 1/min }
  - { name: users, key: [user], algorithm: sliding_log, rate: 2/h }
  - { name: wiki, match: { path: /wiki/Main }, key: [], algorithm: token_bucket, rate: 2/min }
"""


def log_lines():
    """An access log of 40 minutes: common and combined lines, a name for a host, three zones."""
    hosts = ["192.0.2.1", "2001:db8::17", "client.example.net", "198.51.100.250"]
    for i in range(400):
        zone, hour = [("+0000", 10), ("-0800", 2), ("+0530", 15)][i % 3]
        minute, second = divmod(i * 6, 60)
        if zone == "+0530":
            minute += 30
            hour, minute = hour + minute // 60, minute % 60
        method = "POST" if i % 5 == 0 else "GET"
        user = "-" if i % 7 else "alice"
        path = "/wiki/Main?rev=1" if i % 2 else '/say\\"hi'
        line = (f"{hosts[i // 3 % 4]} - {user} [07/Mar/2004:{hour:02}:{minute:02}:{second:02} "
                f'{zone}] "{method} {path} HTTP/1.1" {200 + i % 2} {"-" if i % 9 == 0 else i}')
        if i % 4:
            line += f' "http://example.org/" "Browser/{i % 3}"'
        yield line


def test_an_access_log_gives_what_the_model_says(tmp_path):
    lines = list(log_lines())
    model = Replay(load_rules(LOG_RULES))
    expected = [model.decide(*parse_access_line(line)) for line in lines]
    found = replay_decisions(tmp_path, LOG_RULES, lines)
    assert_same(LOG_RULES, lines, found, expected)
    names = {limit["name"] for decision in found for limit in decision["limits"]
             if not limit["allowed"]}
    assert names == {"per-host", "posts", "browsers", "users", "wiki"}
