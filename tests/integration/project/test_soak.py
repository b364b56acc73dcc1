# SPDX-License-Identifier: Apache-2.0
"""The soak of weir serve for some rounds, judged by what it counts (bench/soak/run.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

from model.program import ROOT, weir_path


@pytest.mark.skipif(b"__asan_init" in Path(weir_path()).read_bytes(), reason="a sanitizer keeps memory that was freed")
def test_mixed_load_leaves_no_descriptor_thread_or_memory():
    done = subprocess.run([sys.executable, ROOT / "bench" / "soak" / "run.py", "--weir", weir_path(), "--rounds", "6",
                           "--requests", "300"], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0 and "nothing has grown" in done.stdout, done.stdout + done.stderr
