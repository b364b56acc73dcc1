# SPDX-License-Identifier: Apache-2.0
"""The soak of the module for some rounds, judged by what it counts (bench/nginx/soak.py)."""

import subprocess
import sys
from pathlib import Path

import pytest

from daemon.nginx_module import MODULE, PRELOAD, needs_module

pytestmark = needs_module

SOAK = Path(__file__).resolve().parents[3] / "bench" / "nginx" / "soak.py"


@pytest.mark.skipif(bool(PRELOAD), reason="a sanitizer keeps memory that was freed")
def test_mixed_load_with_a_reload_leaves_no_lease_descriptor_or_memory():
    done = subprocess.run([sys.executable, SOAK, "--module", MODULE, "--rounds", "6"],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "nothing has grown" in done.stdout, done.stdout + done.stderr
