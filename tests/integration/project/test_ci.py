# SPDX-License-Identifier: Apache-2.0
"""What .ci/run adds up, with scripts in place of the real ones; and script/debian-test where it
cannot run."""

import os
import shutil
import signal
import subprocess

import pytest

from daemon.waiting import SECONDS_MAX, wait_until
from model.program import ROOT


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    for folder in (".ci", "script"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    return tmp_path


def stand_in(tree, name, text):
    path = tree / "script" / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def start(tree):
    return subprocess.Popen([tree / ".ci" / "run"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("of_debian, status, last", [
    ("echo 7 passed, 0 failed", 0, "17 passed, 0 failed"),
    ("echo 6 passed, 1 failed, 2 skipped; exit 1", 1, "16 passed, 1 failed"),
    ("echo 7 passed, 0 failed; exit 1", 1, "17 passed, 1 failed"),
    ("echo no mirror", 1, "10 passed, 1 failed")])
def test_the_other_release_counts_and_is_never_skipped(tree, of_debian, status, last):
    stand_in(tree, "lint", "echo 3 passed, 0 failed")
    stand_in(tree, "test", "echo 5 passed, 0 failed, 1 skipped")
    stand_in(tree, "debian-test", of_debian)
    stand_in(tree, "cross-test", "echo 2 passed, 0 failed")
    with start(tree) as run:
        lines = run.communicate(timeout=SECONDS_MAX)[0].splitlines()
    assert (run.returncode, lines[-1]) == (status, last)
    assert [line.split()[0] for line in lines[-5:-1]] == [
        "script/lint", "script/test", "script/debian-test", "script/cross-test"]


def test_what_it_runs_ends_with_it(tree):
    stand_in(tree, "lint", "trap 'echo ended; exit 1' TERM; touch started; sleep 600 & wait")
    with start(tree) as run:
        wait_until((tree / "started").exists, what="the first script")
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=SECONDS_MAX)[0]  # until the last process has closed its output
    assert (run.returncode, said.splitlines()[-1]) == (143, "ended")


@pytest.mark.parametrize("release, says", [("trixie", "needs root"), ("sid", "usage: ")])
def test_where_the_other_release_cannot_run_it_has_failed(release, says):
    as_nobody = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    done = subprocess.run([*as_nobody, "bash", "-s", "--", release], input=(ROOT / "script" / "debian-test").read_text(),
                          cwd=ROOT / "script", capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 1 and says in done.stderr
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed"
