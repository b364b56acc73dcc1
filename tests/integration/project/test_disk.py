# SPDX-License-Identifier: Apache-2.0
"""What a run of tests leaves on the disk: nothing of what passed (tests/integration/conftest.py)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

INTEGRATION = Path(__file__).parents[1]
FIXTURE = """
import pytest

@pytest.fixture(scope="module")
def made(tmp_path_factory):
    (tmp_path_factory.mktemp("{name}") / "state").write_text("x")

def test_passes(tmp_path, made):
    (tmp_path / "state").write_text("x")

def test_ends(tmp_path, made):
    (tmp_path / "state").write_text("x")
    assert {good}

@pytest.mark.skip(reason="the last one of a file")
def test_is_skipped(tmp_path):
    pass
"""


def run(folder, **files):
    shutil.copy(INTEGRATION / "conftest.py", folder)
    for name, good in files.items():
        (folder / f"test_{name}.py").write_text(FIXTURE.format(name=name, good=good))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp",
                           folder / "base", folder], env={**os.environ, "PYTHONPATH": str(INTEGRATION)},
                          stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == (0 if all(files.values()) else 1)  # of tests that ran
    left = [one for one in (folder / "base").rglob("*")
            if one.name == "state" or one.is_symlink()]
    return sorted(str(one.relative_to(folder / "base")) for one in left)


def test_nothing_is_left_of_what_passed(tmp_path):
    assert run(tmp_path, first=True, second=True) == []


def test_what_failed_and_its_fixtures_stay(tmp_path):
    assert run(tmp_path, first=True, second=False, third=True) == [
        "second0/state", "test_ends0/state"]
