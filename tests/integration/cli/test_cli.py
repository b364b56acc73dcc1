# SPDX-License-Identifier: Apache-2.0
"""The manners of the command line: help, usage errors, and the small commands."""

import json
import subprocess

import pytest

from model.program import run_weir, weir_path

COMMANDS = ["serve", "validate", "replay", "explain", "top", "version"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_on_standard_output(command):
    done = run_weir(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: weir {command}")
    assert run_weir(command, "-h").stdout == done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_help_of_weir_lists_the_commands():
    done = run_weir("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("arguments", [
    [], ["nonsense"], ["replay"], ["replay", "--config=x"], ["replay", "-"], ["replay", "--nonsense"],
    ["replay", "--format=xml", "-"], ["replay", "--top=many", "-"], ["replay", "--top=-1", "-"],
    ["replay", "--state-size=1", "-"], ["replay", "--state-size=1MB", "-"],
    ["replay", "--max-keys=", "-"], ["replay", "--config"],
    ["validate"], ["validate", "--nonsense"],
    ["explain"], ["explain", "--config=x", "y"], ["explain", "--config=x", "--cost=1x"],
    ["explain", "--config=x", "--header=nonsense"], ["explain", "--config=x", "--attribute=a"],
    ["explain", "--config=x", "--json={"], ["explain", "--config=x", "--json=[]"],
    ["explain", "--config=x", "--json={} {}"], ["explain", "--config=x", "--json={}", "--cost=1"],
    ["top", "extra"], ["top", "--nonsense"], ["top", "--count=x"], ["top", "--interval=0"],
    ["version", "extra"], ["version", "--nonsense"],
])
def test_a_wrong_command_line_exits_with_2_and_points_to_help(arguments):
    done = run_weir(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weir: ") or arguments == []
    assert "--help" in done.stderr


@pytest.mark.parametrize("command", ["--help", "version", "--version"])
def test_output_that_cannot_be_written_is_a_failure(command):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([weir_path(), command], stdout=full, stderr=subprocess.PIPE,
                              timeout=60, check=False)
    assert done.returncode == 1
    assert b"weir: cannot write to standard output" in done.stderr


def test_version_tells_the_version():
    done = run_weir("version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("weir ")
    assert run_weir("--version").stdout == done.stdout


# --- validate ----------------------------------------------------------------------------------

GOOD = """\
version: 1
identify: [client.ip]
limits:
  - { name: login, match: { method: POST, path: /login }, key: [client.ip/64], rate: 5/min }
  - { name: api, key: [user], algorithm: token_bucket, rate: 10/s burst 20 }
  - { name: rest, unless: [login], key: [client.ip], rate: 200/min, shadow: true }
"""


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_validate_says_ok_of_good_files(tmp_path):
    good = write(tmp_path, "good.yaml", GOOD)
    done = run_weir("validate", good)
    assert (done.returncode, done.stderr) == (0, "")
    assert lines_but_hints(done) == [f"{good}: OK, 3 limits (1 shadow)"]
    assert run_weir("validate", "--quiet", good).stdout == ""


def lines_but_hints(done):
    return [line for line in done.stdout.splitlines() if ": hint: " not in line]


def hints(folder, *limits):
    """{the limits that a hint is about: its text}"""
    rules = write(folder, "rules.yaml", "limits:\n" + "".join(
        f"  - {{ name: {name}, key: [client.ip], {rest} }}\n" for name, rest in limits))
    done = run_weir("validate", rules)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if ": hint: " in line]
    return dict(line.split(": hint: ")[1].split(": ", 1) for line in lines)


def test_validate_hints_at_what_two_counters_admit(tmp_path):
    exact = [("log", "rate: 5/min, algorithm: sliding_log"),
             ("strict", "rate: 5/min, strict: true"),
             ("bucket", "rate: 5/s, algorithm: gcra"), ("ten", "rate: 5/min, segments: 10"),
             ("many", "rate: 500/min, segments: 60"), ("none", "rate: 0/min"),
             ("all", "rate: unlimited"), ("month", "quota: 5/month")]
    assert hints(tmp_path, *exact) == {}
    found = hints(tmp_path, ("a", "rate: 20/min"), *exact, ("b", "rate: 21/min"),
                  ("c", "rate: [5/s, 100/h]"), ("d", "rate: 100/h, segments: 6"))
    assert list(found) == ["a, c", "b, d"]
    assert "`algorithm: sliding_log` or `strict: true`" in found["a, c"]
    assert "`segments: 10`" in found["b, d"]
    assert "2N" in hints(tmp_path, ("fixed", "rate: 5/s, algorithm: fixed_window"), *exact)["fixed"]
    found = hints(tmp_path, *((f"l{i}", "rate: 100/h") for i in range(7)))
    assert list(found) == ["l0, l1, l2, l3, l4 and 2 more"]


def test_validate_says_how_much_of_the_state_is_for_spans(tmp_path):
    limits = ("limits:\n  - { name: a, key: [user], algorithm: sliding_log, rate: 5/s }\n"
              "  - { name: b, key: [user], algorithm: gcra, rate: 5/s }\n")
    chosen = write(tmp_path, "chosen.yaml", "version: 1\n" + limits)
    given = write(tmp_path, "given.yaml", "version: 1\nstate: { spans: 40% }\n" + limits)
    wrong = write(tmp_path, "wrong.yaml", "version: 1\nstate: { spans: 95% }\n" + limits)
    assert run_weir("validate", chosen).stdout == (
        f"{chosen}: OK, 2 limits, 26% of a new state for spans\n")
    assert run_weir("validate", given).stdout == (
        f"{given}: OK, 2 limits, 40% of the state for spans (26% would suit)\n")
    done = run_weir("validate", wrong)
    assert done.returncode == 1
    assert "`spans`" in done.stderr and "90%" in done.stderr


def test_validate_tells_of_each_name_that_is_not_declared_once(tmp_path):
    """A limit by an attribute that none says limits nobody: a mistaken name is to be seen."""
    rules = write(tmp_path, "rules.yaml", "version: 1\nlimits:\n"
                  "  - { name: a, key: [usr, user], rate: 1/s }\n"
                  "  - { name: b, key: [header.x-key, client.ip/64, host, model], rate: 1/s }\n"
                  "  - { name: c, match: { path: '/:id' }, key: [path.id, usr], rate: 1/s }\n")
    done = run_weir("validate", rules)
    assert lines_but_hints(done) == [f"{rules}: OK, 3 limits"]
    assert [line.split("; ")[0] for line in done.stderr.splitlines()] == [
        f"{rules}:3:22: unknown attribute `usr`", f"{rules}:4:56: unknown attribute `model`"]
    assert "did you mean `user`?" in done.stderr


def test_validate_names_every_problem_of_every_file_in_one_run(tmp_path):
    good = write(tmp_path, "good.yaml", GOOD)
    bad = write(tmp_path, "bad.yaml", "version: 1\nlimits:\n"
                "  - { name: a, key: [], rate: 1/min, typo: 1 }\n"
                "  - { name: a, key: [], rate: 1/fortnight }\n"
                "  - { name: c, key: [], algorithm: magic, rate: 1/s }\n")
    broken = write(tmp_path, "broken.yaml", "version: [1\n")
    done = run_weir("validate", bad, good, broken, tmp_path / "missing.yaml")
    assert done.returncode == 1
    assert lines_but_hints(done) == [f"{good}: OK, 3 limits (1 shadow)"]
    result = done.stderr.splitlines()
    for line in (3, 4, 5):
        assert any(text.startswith(f"{bad}:{line}:") for text in result), (line, result)
    assert any(text.startswith(f"{broken}:") for text in result)
    assert any("missing.yaml" in text for text in result)
    for text in result:
        assert text.startswith("weir: ") or text.split(":")[1].isdigit()


# --- explain -----------------------------------------------------------------------------------


def explain(folder, *options, rules=GOOD):
    path = write(folder, "rules.yaml", rules)
    return run_weir("explain", "--config", path, *options)


def test_explain_names_what_it_leaves_out_of_the_request(tmp_path):
    rules = "version: 1\nattributes: [tenant, tool]\nlimits:\n- {name: a, key: [header.x-a, tenant], rate: 10/h}\n"
    given = ["-H", "X-A: 1", "-H", "X-B: 2", "-a", "tenant=1", "-a", "tool=x", "-a", "standing=trusted", "-a", "tenat=2"]
    lines = explain(tmp_path, *given, rules=rules).stdout.splitlines()
    assert lines[:4] == ["header X-B: no limit reads it", "attribute tool: no limit reads it",
                         "attribute standing: no request can say it; it is the caller's standing",
                         "attribute tenat: unknown, so it is ignored; did you mean tenant?"]
    assert lines[4] == "a: applies"


def test_explain_tells_which_limits_apply_and_why_others_do_not(tmp_path):
    done = explain(tmp_path, "--method", "GET", "--path", "/login", "--ip", "192.0.2.7")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert any(line.startswith("login: ") and "POST" in line and "GET" in line for line in lines)
    assert "api: applies" in lines and "rest: applies" in lines
    assert any(line.split() == ["key", "client.ip=192.0.2.7"] for line in lines)
    assert "allows: 19 of 20" not in done.stdout  # nothing is charged
    assert "allows: 20 of 20 remaining" in done.stdout
    assert lines[-1] == "The request is allowed."


def test_explain_tells_who_would_deny_and_for_how_long(tmp_path):
    done = explain(tmp_path, "-m", "POST", "-p", "/login", "--ip", "192.0.2.7", "--cost", "6")
    assert done.returncode == 0
    assert "denies: 5 of 5 remaining, retry after: never" in done.stdout
    assert done.stdout.endswith("The request is denied by login, retry after: never.\n")
    assert "rest: " in done.stdout and "rest: applies" not in done.stdout


@pytest.mark.parametrize("cost,status", [("1", 0), ("6", 1)])
def test_explain_ends_with_1_for_a_denial_where_that_is_asked_for(tmp_path, cost, status):
    request = ["-m", "POST", "-p", "/login", "--ip", "192.0.2.7", "--cost", cost]
    asked = explain(tmp_path, *request, "--exit-code")
    assert (asked.returncode, asked.stderr) == (status, "")
    plain = explain(tmp_path, *request)
    assert (plain.returncode, plain.stdout) == (0, asked.stdout)


def test_explain_tells_what_a_limit_warns_at(tmp_path):
    rules = ("version: 1\nlimits:\n"
             "  - { name: a, key: [], quota: 10/day, warn_at: [95%, 80%] }\n"
             "  - { name: b, key: [], rate: 10/s, warn_at: 80%, shadow: true }\n")
    done = explain(tmp_path, "--method", "GET", rules=rules)
    assert done.stdout.count("warns") == 1  # a shadow limit warns of nothing
    assert "    now    allows: 10 of 10 remaining\n    warns  at 80%, 95%\nb: " in done.stdout


def test_explain_takes_the_request_as_json_or_in_parts_alike(tmp_path):
    rules = ("version: 1\nlimits:\n  - { name: a, match: { header.x-tier: gold }, "
             "key: [color], rate: 5/s }\n")
    parts = explain(tmp_path, "-H", "X-Tier: gold", "-a", "color=red", "--cost", "2", rules=rules)
    request = {"headers": {"x-tier": "gold"}, "attributes": {"color": "red"}, "cost": 2}
    whole = explain(tmp_path, "--json", json.dumps(request), rules=rules)
    assert parts.returncode == 0 and parts.stdout == whole.stdout
    assert "color=red" in parts.stdout


def test_explain_shows_the_path_that_was_compared(tmp_path):
    rules = ("paths: { case: insensitive, trailing_slash: ignore }\nlimits:\n"
             "  - { name: login, match: { path: /login }, key: [path], rate: 5/s }\n")
    done = explain(tmp_path, "--path", "/Login;x/", rules=rules)
    assert done.stdout.startswith("path /login\nlogin: applies\n    key    path=/login\n")
    assert explain(tmp_path, "--path", "/login", rules=rules).stdout.startswith("login: applies")
    refused = explain(tmp_path, "--path", "/x/..;/login", rules=rules)
    assert refused.returncode == 1
    assert refused.stderr == "weir: request: path: parameters (`;`) on a dot segment\n"


def test_explain_refuses_what_is_no_request_or_no_state(tmp_path):
    assert explain(tmp_path, "--ip", "here").stderr == "weir: request: ip: not an IP address\n"
    assert explain(tmp_path, "--path", "/%zz").returncode == 1
    done = explain(tmp_path, "--state", tmp_path / "none")
    assert done.returncode == 1 and "No such file" in done.stderr
    assert not (tmp_path / "none").exists()
    for name, text in (("empty", ""), ("short", "limits: []\n")):
        done = explain(tmp_path, "--state", write(tmp_path, name, text))
        assert done.returncode == 1
        assert done.stderr == f"weir: {tmp_path / name}: not a state file of weir\n"
        assert (tmp_path / name).read_text(encoding="utf-8") == text
    foreign = write(tmp_path, "foreign", "this is no state file\n" * 20000)
    done = explain(tmp_path, "--state", foreign)
    assert done.returncode == 1 and str(foreign) in done.stderr
    assert foreign.read_text(encoding="utf-8") == "this is no state file\n" * 20000
