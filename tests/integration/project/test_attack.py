# SPDX-License-Identifier: Apache-2.0
"""script/attack runs: a few of its cases, on a small state."""

import json
import os
import subprocess
import sys

from model.program import ROOT

ATTACK = ROOT / "tests" / "attack"


def attack(*arguments, **environment):
    return subprocess.run([sys.executable, str(ATTACK), *map(str, arguments)], capture_output=True,
                          text=True, check=False, timeout=300, env={**os.environ, **environment})


def test_floods_of_a_small_state_are_held_and_written_down(tmp_path):
    rows, table = tmp_path / "rows", tmp_path / "table"
    cases = ["login-1", "other-limit", "at-limit", "leases-40000", "alternating"]
    done = attack("--size", 4, "--json", rows, "--markdown", table, *cases)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(rows.read_text(encoding="utf-8"))
    held = sum(row["held"] is True for row in found)
    assert done.stdout.splitlines()[-1] == f"{held} held, 0 failed"
    assert [name for name in cases if name not in {row["case"] for row in found}] == []
    lines = table.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("| case | what was tried |") and len(lines) == 2 + len(found)


def test_a_case_that_cannot_be_tried_says_so_and_has_not_failed(tmp_path):
    done = attack("kernel-own", PATH=str(tmp_path))  # neither ip nor nft
    assert "not tried: network namespaces need root, ip, nft" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 held, 0 failed" and done.returncode == 0


def test_cases_are_listed_by_name():
    done = attack("--list")
    assert done.returncode == 0
    assert {"login-48", "stopped-neighbour", "guesses"} <= {
        line.split()[0] for line in done.stdout.splitlines()}
    assert attack("no-such-case").returncode == 2
