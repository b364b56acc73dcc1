# SPDX-License-Identifier: Apache-2.0
"""Where root has no capabilities, as in many containers, tests of the kernel are skipped and counted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


def test_what_needs_rights_is_skipped_with_its_reason(tmp_path):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can drop capabilities, by setpriv")
    done = subprocess.run(
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "pytest", "-q", "-rs",
         "-p", "no:cacheprovider", f"--basetemp={tmp_path}/inner",
         TESTS / "kernel/test_weir_nft.py::test_a_dry_run_counts_and_drops_nothing",
         TESTS / "xdp/test_xdp.py::test_what_is_no_ip_passes"],
        cwd=TESTS.parents[1], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "2 skipped" in done.stdout, done.stdout
    reasons = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert len(reasons) == 2 and all("namespace" in line or "without clang" in line for line in reasons)
