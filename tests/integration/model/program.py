# SPDX-License-Identifier: Apache-2.0
"""Running the weir that was built: WEIR names the program, build/weir without it."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RECIPES = ROOT / "examples" / "recipes"
SECONDS_MAX = 120
STATE_SIZE = "64MiB"  # the largest states (10,000 entries) of a dozen limits fit many times


def weir_path():
    return os.environ.get("WEIR", str(ROOT / "build" / "weir"))


def recipe(name):
    return (RECIPES / f"{name}.yaml").read_text(encoding="utf-8")


def run_weir(*arguments, stdin=None, env=None):
    """Runs one command to its end; returns the finished process with its outputs as text."""
    return subprocess.run([weir_path(), *map(str, arguments)], input=stdin, capture_output=True,
                          text=True, timeout=SECONDS_MAX, check=False,
                          env=None if env is None else os.environ | env)


def replay_decisions(folder, rules_text, lines, *options):
    """Replays lines under rules; returns what --decisions wrote, one object a line."""
    rules, trace, decisions = (folder / name for name in ("rules.yaml", "trace", "decisions"))
    rules.write_text(rules_text, encoding="utf-8")
    trace.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    done = run_weir("replay", "--config", rules, "--decisions", decisions, "--allow-disorder",
                    "--state-size", STATE_SIZE, *options, trace)
    assert done.returncode == 0, done.stderr
    assert "Not exact" not in done.stdout, done.stdout
    with open(decisions, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
