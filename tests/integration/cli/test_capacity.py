# SPDX-License-Identifier: Apache-2.0
"""`weir capacity`, and the numbers of docs/operations/capacity.md. That a state of the size which it
prints has room for the keys is tested where the table is: tests/unit/table/file/test_state_file.c."""

import re

import pytest

from daemon.weir import rules_of
from model.program import ROOT, run_weir

LIMITS = {
    "`token_bucket`, `gcra`, `leaky_bucket`, `fixed_window`, `sliding_window`":
        {"algorithm": "token_bucket", "rate": "100/min"},
    "two rates of these": {"algorithm": "token_bucket", "rate": ["10/s", "1000/h"]},
    "`quota: 10000/month`": {"quota": "10000/month"},
    "`sliding_window`, 10 `segments`": {"rate": "100/min", "segments": 10},
    "`sliding_log`, `5/min`": {"algorithm": "sliding_log", "rate": "5/min"},
    "`sliding_log`, `100/min`": {"algorithm": "sliding_log", "rate": "100/min"},
    "`concurrency`, `limit: 10`": {"algorithm": "concurrency", "limit": 10},
}
GIB = 1 << 30


def page():
    return (ROOT / "docs" / "operations" / "capacity.md").read_text(encoding="utf-8")


def written(folder, *limits, **parts):
    rules = folder / "weir.yaml"
    named = [{"name": "abcdef"[i], "key": ["user"], **limit} for i, limit in enumerate(limits)]
    rules.write_text(rules_of(*named, **parts), encoding="utf-8")
    return rules


def keys_in(rules, *options):
    shown = run_weir("capacity", "--config", rules, *options)
    assert shown.returncode == 0, shown.stderr
    return int(re.search(r"^a +(\d+)$", shown.stdout, re.M)[1])


def size_for(rules, keys):
    shown = run_weir("capacity", "--config", rules, "--keys", keys)
    assert shown.returncode == 0, shown.stderr
    return int(re.match(r"state: { size: (\d+)MiB }", shown.stdout)[1])


@pytest.mark.parametrize("name", LIMITS)
def test_the_table_of_the_docs_is_what_it_prints(tmp_path, name):
    row = next(line for line in page().splitlines() if line.startswith(f"| {name} |"))
    _, _, size, keys, _ = (cell.strip() for cell in row.split("|"))
    found = keys_in(written(tmp_path, LIMITS[name]), "--size", "1GiB")
    assert f"{found:,}" == keys and round(GIB / found) == int(size)


def test_the_example_of_the_docs_is_what_it_prints(tmp_path):
    rules = re.search(r"```yaml\n(.*?)```", page(), re.S)[1]
    command, shown = re.search(r"\$ weir (capacity .*)\n(.*)\n", page()).groups()
    (tmp_path / "weir.yaml").write_text(rules, encoding="utf-8")
    done = run_weir(*command.replace("weir.yaml", str(tmp_path / "weir.yaml")).split())
    assert done.stdout.strip() == shown


def test_a_state_of_that_size_is_full_to_nine_tenths(tmp_path):
    rules = written(tmp_path, LIMITS["`sliding_log`, `5/min`"])
    size = size_for(rules, 100000)
    room = [keys_in(rules, "--size", f"{mib}MiB") for mib in (size, size - 1)]
    assert room[0] * 0.9 >= 100000 > room[1] * 0.9


def test_keys_of_several_limits_add_up(tmp_path):
    limit = LIMITS["`concurrency`, `limit: 10`"]
    one, both = (size_for(written(tmp_path, *[limit] * count), 100000) for count in (1, 2))
    assert 1.9 * one <= both <= 2.1 * one


def test_the_state_of_the_rules_counts_and_that_of_the_plan_which_takes_most(tmp_path):
    limit = LIMITS["`sliding_log`, `100/min`"]
    rules = written(tmp_path, limit, state={"size": "256MiB"})
    whole = keys_in(rules)
    assert whole == keys_in(rules, "--size", "256MiB") > 3 * keys_in(rules, "--size", "64MiB")
    plans = {"small": {"a": "5/min"}, "large": {"a": "100/min"}}
    planned = written(tmp_path, {**limit, "rate": "plan"}, state={"size": "256MiB"}, plans=plans,
                      default_plan="small")
    assert whole * 0.9 < keys_in(planned) < whole * 1.1


def test_no_size_has_room_for_too_many(tmp_path):
    rules = written(tmp_path, LIMITS["`sliding_log`, `100/min`"])
    done = run_weir("capacity", "--config", rules, "--keys", 100000000000)
    assert done.returncode == 1 and "no state is large enough" in done.stderr


def test_limits_with_one_key_are_left_out(tmp_path):
    rules = written(tmp_path, {"key": [], "rate": "1/s"}, {"rate": "1/s"})
    shown = run_weir("capacity", "--config", rules).stdout
    assert re.findall(r"^([ab]) ", shown, re.M) == ["b"]


def test_states_in_redis_are_not_counted(tmp_path):
    rules = written(tmp_path, {"rate": "1/s"}, store={"redis": "redis://127.0.0.1:1", "nodes": 2})
    done = run_weir("capacity", "--config", rules)
    assert done.returncode == 1 and "are in Redis" in done.stderr


def test_a_command_line_that_is_wrong_is_refused(tmp_path):
    rules = written(tmp_path, {"rate": "1/s"})
    assert run_weir("capacity").returncode == 2
    assert run_weir("capacity", "--config", rules, "--keys", 1, "--size", "1MiB").returncode == 2
