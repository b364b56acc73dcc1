# SPDX-License-Identifier: Apache-2.0
"""What would keep `weir serve` from starting, `weir validate` says, and in the same words."""

import gzip
import os
import re
import socket
import subprocess

import pytest

from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir, weir_path

API = {"name": "api", "key": ["client.ip"], "rate": "5/min"}


def with_plans(count, **state):
    plans = {f"p{i}": {"api": f"{i + 1}/min"} for i in range(count)}
    return rules_of({**API, "rate": "plan"}, plans=plans, default_plan="p0", state=state)


def refusal_of(serve):
    """What weir serve says on stderr before it ends, without the warning about the rules."""
    lines = serve.stderr.splitlines()
    return [line for line in lines if " level=warning event=headers_not_chosen " not in line]


def judge(folder, text):
    """Both commands about one file: the statuses, and what validate says."""
    config = folder / "weir.yaml"
    config.write_text(text, encoding="utf-8")
    validate = run_weir("validate", config)
    serve = run_weir("serve", "--config", config, "--http", "off", "--admin", "off", "--redis", "off")
    assert serve.returncode == 1 and validate.returncode == 1, validate.stdout
    (line,) = validate.stderr.splitlines()
    assert line.startswith(f"weir: {config}: ")
    said = line.removeprefix(f"weir: {config}: ")
    assert refusal_of(serve) == [f"weir: {said}"]
    return said


def accepted(folder, text):
    config = folder / "weir.yaml"
    config.write_text(text, encoding="utf-8")
    done = run_weir("validate", config)
    assert done.returncode == 0, done.stderr
    with Weir(folder, text) as weir:
        assert weir.stop() == 0


def test_more_different_rates_than_the_state_has_room_for(tmp_path):
    said = judge(tmp_path, with_plans(3000, size="64MiB"))
    assert said.startswith("state: 3003 distinct limits") and "raise state.size" in said
    accepted(tmp_path, with_plans(2000, size="64MiB"))
    accepted(tmp_path, with_plans(3000, size="128MiB"))
    assert "fewer" in judge(tmp_path, with_plans(17000, size="1GiB"))


def few_keys(folder, *limits, **state):
    """What validate hints, and what the start says of the same file: {limit: "about N keys ... in S"}."""
    text = rules_of(*limits, state=state)
    config = folder / "weir.yaml"
    config.write_text(text, encoding="utf-8")
    done = run_weir("validate", config)
    assert done.returncode == 0, done.stderr
    with Weir(folder, text) as weir:
        lines = [line for line in weir.text().splitlines() if "event=few_keys" in line]
        assert weir.stop() == 0
    hints = [line.removeprefix(f"{config}: hint: ") for line in done.stdout.splitlines()[1:]]
    room = " room for about "
    said = dict(hint.split(":" + room) for hint in hints if room in hint)
    assert {re.search(r" limit=(\S+)", line)[1]: line.split(room.strip() + " ")[1].strip('"')
            for line in lines if " limit=" in line} == said
    return {name: text.removesuffix("; raise state.size or state.spans") for name, text in said.items()}, hints, lines


LOG = {"name": "log", "key": ["client.ip"], "rate": "1000/min", "algorithm": "sliding_log"}


def test_room_for_few_keys_of_a_limit_is_said(tmp_path):
    assert few_keys(tmp_path, API)[0] == {}
    assert few_keys(tmp_path, LOG)[0] == {"log": "4000 keys of this limit in 64MiB"}
    assert few_keys(tmp_path, {**LOG, "key": []})[0] == {}  # one key
    assert few_keys(tmp_path, LOG, size="256MiB")[0] == {}
    assert few_keys(tmp_path, LOG, size="32MiB")[0] == {"log": "2000 keys of this limit in 32MiB"}
    assert few_keys(tmp_path, LOG, spans="10%")[0] == {"log": "810 keys of this limit in 64MiB"}
    assert few_keys(tmp_path, API, size="256KiB")[0] == {"api": "4600 keys of this limit in 256KiB"}
    file = str(tmp_path / "state")
    assert few_keys(tmp_path, API, file=file)[0] == {}
    # The file was made for rules without logs and keeps its share, until another one is set.
    assert few_keys(tmp_path, LOG, file=file)[0] == {"log": "160 keys of this limit in 64MiB"}
    assert few_keys(tmp_path, LOG, file=file, spans="50%")[0] == {"log": "4000 keys of this limit in 64MiB"}


def test_room_for_few_keys_is_said_of_the_plan_that_takes_most_and_of_five_limits_at_most(tmp_path):
    by_plan = {**LOG, "rate": "plan"}
    text = rules_of(by_plan, plans={"free": {"log": "10/min"}, "pro": {"log": "2000/min"}}, default_plan="free")
    config = tmp_path / "weir.yaml"
    config.write_text(text, encoding="utf-8")
    assert "log: room for about 2000 keys" in run_weir("validate", config).stdout
    limits = [{**LOG, "name": f"l{i}", "rate": f"{1000 + 512 * i}/min"} for i in range(8)]
    named, hints, lines = few_keys(tmp_path, *limits)
    assert list(named) == ["l7", "l6", "l5", "l4", "l3"]
    assert hints[-1] == "3 more limits have room for fewer than 10000 keys"
    assert "more_limits=3" in lines[-1]


def test_more_limits_of_equal_rates_than_the_state_has_places_share_them(tmp_path):
    limits = [{**API, "name": f"l{i}", "match": {"path": f"/{i}"}} for i in range(3000)]
    text = rules_of(*limits, state={"size": "64MiB"})
    accepted(tmp_path, text)
    with Weir(tmp_path, text) as weir:
        for path in "/0", "/1535", "/2999":
            assert weir.check(path=path, ip="192.0.2.1").status == 200


def test_a_state_file_of_weir_0_1_is_refused_with_what_to_do(tmp_path):
    state = tmp_path / "state"
    old = gzip.decompress((ROOT / "tests" / "integration" / "data" / "version1.state.gz").read_bytes())
    state.write_bytes(old)
    said = judge(tmp_path, rules_of(API, state={"file": str(state), "size": "1MiB"}))
    assert said == (f"state file {state}: a state file of weir 0.1: start weir 0.2 on it once, which copies it, or begin "
                    "anew (weir serve --reset-state)")
    assert state.read_bytes() == old and sorted(file.name for file in tmp_path.glob("state*")) == ["state"]


def test_a_state_file_that_is_there_is_read_and_not_disturbed(tmp_path):
    state = tmp_path / "state"
    few, many = with_plans(20, file=str(state), size="1MiB"), with_plans(100, file=str(state), size="1MiB")
    with Weir(tmp_path, few) as weir:
        assert weir.check(ip="192.0.2.1").status == 200
        before, times = state.read_bytes(), state.stat()
        (tmp_path / "many.yaml").write_text(many, encoding="utf-8")
        for text in few, many:
            (tmp_path / "other.yaml").write_text(text, encoding="utf-8")
            done = run_weir("validate", tmp_path / "other.yaml")
            assert done.returncode == (text is many)
        assert "103 distinct limits" in done.stderr and "room for 32" in done.stderr
        assert state.read_bytes()[:176] == before[:176]
        assert (state.stat().st_ino, state.stat().st_size) == (times.st_ino, times.st_size)
        assert weir.stop() == 0
    judge(tmp_path, many)
    accepted(tmp_path, few)


@pytest.mark.parametrize("content", [b"somebody's only copy\n" * 500, b"\0" * 4096],
                         ids=["text", "zeros"])
def test_a_state_file_that_is_none(tmp_path, content):
    state = tmp_path / "state"
    state.write_bytes(content)
    text = rules_of(API, state={"file": str(state), "size": "1MiB"})
    assert judge(tmp_path, text) == f"state file {state}: not a state file of weir"
    assert state.read_bytes() == content
    state.write_bytes(b"")
    accepted(tmp_path, text)


@pytest.mark.parametrize("kind", ["FIFO", "directory"])
def test_a_state_file_that_is_no_regular_file(tmp_path, kind):
    state = tmp_path / "state"
    os.mkfifo(state) if kind == "FIFO" else state.mkdir()
    said = judge(tmp_path, rules_of(API, state={"file": str(state), "size": "1MiB"}))
    assert said == f"state file {state}: not a regular file"


def test_certificates_that_are_not_there(tmp_path):
    tls = {"cert": str(tmp_path / "none.pem"), "key": str(tmp_path / "none.key")}
    server = {"http": {"address": "127.0.0.1:0", "tls": tls}}
    said = judge(tmp_path, rules_of(API, server=server))
    assert said.startswith("http: tls: ") and "none.pem: No such file" in said


def test_listeners_that_stand_in_each_others_way(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one = {"address": f"127.0.0.1:{port}"}
    config = tmp_path / "weir.yaml"
    config.write_text(rules_of(API, server={"http": one, "redis": one}), encoding="utf-8")
    validate = run_weir("validate", config)
    serve = run_weir("serve", "--config", config)
    assert validate.returncode == serve.returncode == 1
    assert "another listener of this server has the port" in validate.stderr
    assert [line.replace(f"{config}: ", "") for line in validate.stderr.splitlines()] == refusal_of(serve)


def test_a_file_takes_variables_of_the_environment(tmp_path):
    file = tmp_path / "weir.yaml"
    file.write_text('version: 1\nstate: {file: "${WEIR_TEST_STATE}/state"}\nlimits: []\n',
                    encoding="utf-8")
    done = run_weir("validate", file, env={"WEIR_TEST_STATE": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    done = run_weir("validate", file)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{file}:2:16: `file`: the environment has no variable "
                                  "WEIR_TEST_STATE; set it, or give a default")


LIMITS = "limits:\n- {name: a, key: [user], rate: 5/min}\n"
PLACES = {"state.file": ("state: {file: %s}\n", "4KiB"),
          "standing.file": ("standing: {by: [user], file: %s}\n", "")}


def validate_from(cwd, rules):
    return subprocess.run([weir_path(), "validate", rules], cwd=cwd, capture_output=True, text=True,
                          timeout=60, check=False)


@pytest.mark.parametrize("setting", PLACES)
def test_a_relative_path_starts_at_the_folder_of_the_rules_file(tmp_path, setting):
    """A file that is still in the working directory is used, and said to be in the wrong place."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    rules = there / "rules.yaml"
    rules.write_text("version: 1\n" + PLACES[setting][0] % "kept" + LIMITS, encoding="utf-8")
    assert "working directory" not in validate_from(here, rules).stderr
    (here / "kept").write_bytes(b"")
    line = validate_from(here, rules).stderr
    assert f"`{setting}`: kept is in the working directory" in line
    assert f"move it to {there}/kept" in line
    (there / "kept").write_bytes(b"")
    assert "working directory" not in validate_from(here, rules).stderr
    (there / "kept").unlink()
    assert "working directory" not in validate_from(there, rules).stderr


def test_a_fixed_window_is_hinted_at_with_what_it_admits(tmp_path):
    config = tmp_path / "weir.yaml"
    limits = [{**API, "name": f"fixed{i}", "algorithm": "fixed_window"} for i in range(2)]
    config.write_text(rules_of(*limits, {**API, "algorithm": "sliding_log"}), encoding="utf-8")
    lines = [line for line in run_weir("validate", config).stdout.splitlines() if "2N" in line]
    assert len(lines) == 1 and lines[0].startswith(f"{config}: hint: fixed0, fixed1: a fixed window of N admits up to 2N")


def test_a_file_of_envoys_service_is_told_from_a_rules_file(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("domain: x\ndescriptors:\n  - key: a\n    rate_limit: {unit: second, requests_per_unit: 5}\n")
    done = run_weir("validate", config)
    assert done.returncode == 1 and "weir validate --envoy-config DIR" in done.stderr.splitlines()[-1]
    assert run_weir("validate", "--envoy-config", tmp_path).returncode == 0
    config.write_text("domain: x\n")
    assert "--envoy-config" not in run_weir("validate", config).stderr


def test_limits_that_one_throttled_caller_can_fill_are_named(tmp_path):
    rules = """\
standing: {by: [user, client.ip/64]}
limits:
- {name: own, key: [user, client.ip], algorithm: gcra, rate: 5/min, burst: 1, by_standing: {throttled: 20%}}
- {name: half, key: [user], algorithm: gcra, rate: 5/min, burst: 1, by_standing: {throttled: 20%}}
- {name: all, key: [], algorithm: gcra, rate: 5/min, burst: 4, by_standing: {throttled: 20%}}
- {name: deep, key: [], algorithm: gcra, rate: 5/min, burst: 5, by_standing: {throttled: 20%}}
- {name: window, key: [], algorithm: sliding_log, rate: 1/min, by_standing: {throttled: 20%}}
"""
    (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
    done = validate_from(tmp_path, "rules.yaml")
    assert done.returncode == 0, done.stderr
    named = [line.split(": ")[2] for line in done.stdout.splitlines()
             if "one throttled caller can fill this for all" in line]
    assert named == ["half", "all"]
    assert "burst of at least 5" in done.stdout
