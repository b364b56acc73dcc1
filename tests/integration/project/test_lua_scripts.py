# SPDX-License-Identifier: Apache-2.0
"""docs/coming-from/lua-scripts.md: each script in a real Redis and the rule beside it in weir replay, on the same requests;
and what the page says that a script gets wrong."""

import json
import random
import re

import pytest

from daemon.redis_server import RedisServer
from model.program import ROOT, run_weir

PAGE = (ROOT / "docs" / "coming-from" / "lua-scripts.md").read_text(encoding="utf-8")
START = 1700000000  # a multiple of ten seconds, in which the windows of the page begin, and a third into a minute


def section(name):
    """The script and the rule of a section."""
    text = PAGE.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    return re.search(r"```lua\n(.*?)```", text, re.S)[1], re.search(r"```yaml\n(.*?)```", text, re.S)[1]


@pytest.fixture(name="redis", scope="module")
def fixture_redis(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


class Script:
    """A script with a key of its own; `admits(...)` runs it. What it stores does not expire: its requests have times
    of their own, and Redis would count down by the clock of the machine."""

    keys = 0
    ENDLESS = """local function script()
{text}
end
local said = script()
for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do redis.call('PERSIST', key) end
return said"""

    def __init__(self, redis, text):
        Script.keys += 1
        self.redis, self.text, self.key = redis, self.ENDLESS.format(text=text), f"key{Script.keys}"

    def admits(self, *arguments):
        return self.redis.ask("EVAL", self.text, "1", self.key, *map(str, arguments)) == 1


def by_rule(tmp_path, rules, times):
    """What weir says to requests of one user at these times, in seconds behind START."""
    (tmp_path / "weir.yaml").write_text(rules, encoding="utf-8")
    (tmp_path / "trace").write_text("".join(
        json.dumps({"t": f"{START + t:.6f}", "path": "/", "attributes": {"user": "ann"}}) + "\n" for t in times))
    done = run_weir("replay", "-c", tmp_path / "weir.yaml", "-d", tmp_path / "decisions", tmp_path / "trace")
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["allowed"] for line in (tmp_path / "decisions").read_text().splitlines()]


def times_of(seed, count, step, most):
    """Times in multiples of `step`, so that doubles are exact."""
    dice, now = random.Random(seed), 0
    for _ in range(count):
        now += dice.choice([0, 0, 0, 1, 1, 2, dice.randint(0, most)])
        yield now * step


def test_a_token_bucket_decides_alike(redis, tmp_path):
    script, rule = section("Token bucket")
    times, bucket = list(times_of(1, 2000, 0.125, 2)), Script(redis, script)
    said = [bucket.admits(10, 20, START + t, 1) for t in times]
    assert said == by_rule(tmp_path, rule, times) and 200 < sum(said) < 1900


def test_a_token_bucket_of_two_clocks_never_empties(redis, tmp_path):
    script, rule = section("Token bucket")
    bucket = Script(redis, script)
    assert all(bucket.admits(10, 20, START + i % 2, 1) for i in range(500))
    # weir reads its own clock: 500 requests in an instant, of any clock
    assert sum(by_rule(tmp_path, rule, [1] * 500)) == 20


def test_a_sorted_set_decides_alike_until_it_denies(redis, tmp_path):
    script, rule = section("Window in a sorted set")
    times, log = [i * 12.5 for i in range(40)], Script(redis, script)
    assert [log.admits(60, START + t, 5, i) for i, t in enumerate(times)] == by_rule(tmp_path, rule, times) == [True] * 40


def test_a_sorted_set_punishes_those_who_ask_and_forgets_twins(redis, tmp_path):
    script, rule = section("Window in a sorted set")
    times, log = list(range(600)), Script(redis, script)
    assert sum(log.admits(60, START + t, 5, t) for t in times) == 5
    assert sum(by_rule(tmp_path, rule, times)) == 50
    twins = Script(redis, script)
    assert all(twins.admits(60, START, 5, START) for _ in range(50))
    assert sum(by_rule(tmp_path, rule, [0] * 50)) == 5


def test_two_counters_decide_alike(redis, tmp_path):
    script, rule = section("Two counters")
    times, counters = list(times_of(2, 2000, 0.125, 30)), Script(redis, script)
    said = [counters.admits(10, START + t, 20) for t in times]
    assert said == by_rule(tmp_path, rule, times) and 200 < sum(said) < 1900
    assert counters.key not in redis.keys() and any(key.startswith(counters.key + ":") for key in redis.keys())


def test_gcra_decides_alike_where_its_interval_is_whole(redis, tmp_path):
    script, rule = section("GCRA")
    times, cell = list(times_of(3, 2000, 0.05, 6)), Script(redis, script)
    said = [cell.admits(100, round((START + t) * 1000), 20) for t in times]
    assert said == by_rule(tmp_path, rule, times) and 200 < sum(said) < 1900


def test_a_rounded_interval_is_another_rate(redis, tmp_path):
    script, rule = section("GCRA")
    exact = rule.replace("rate: 10/s, burst: 20", "rate: 7/s, burst: 1")
    assert exact != rule
    often = [i * 142 for i in range(1000)]  # a request each 142 ms
    cell = Script(redis, script)
    assert all(cell.admits(142, START * 1000 + t, 1) for t in often)
    assert sum(by_rule(tmp_path, exact, [t / 1000 for t in often])) == 500


def test_incr_and_expire_admit_alike_within_a_window(redis, tmp_path):
    script, rule = section("INCR and EXPIRE")
    window = Script(redis, script)
    assert [window.admits(5, 60) for _ in range(9)] == by_rule(tmp_path, rule, [20 + i for i in range(9)])


def test_a_counter_without_an_end_denies_for_ever(redis, tmp_path):
    script, rule = section("INCR and EXPIRE")
    window = Script(redis, script)
    redis.ask("INCR", window.key)  # and the process dies before it says EXPIRE
    assert [window.admits(5, 60) for _ in range(6)] == [True] * 4 + [False] * 2
    assert redis.ask("TTL", window.key) == -1
    # twice the limit around a border, at 40 s of the trace: validate says it
    assert sum(by_rule(tmp_path, rule, [39.9] * 9 + [40.1] * 9)) == 10
    assert "2N" in run_weir("validate", tmp_path / "weir.yaml").stdout


def test_the_table_names_all_sections():
    named = re.findall(r"^\| \[[^]]+\]\(#([a-z-]+)\)", PAGE, re.M)
    assert named == [title.lower().replace(" ", "-") for title in re.findall(r"^## (.*)$", PAGE, re.M)]
