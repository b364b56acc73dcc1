# SPDX-License-Identifier: Apache-2.0
"""The pacing fetch for browsers (bindings/node/pacing.mjs): in virtual time against servers that count, and without anything
that only Node has."""

import re
import shutil
import subprocess

import pytest

from model.program import ROOT, SECONDS_MAX

MODULE = ROOT / "bindings" / "node" / "pacing.mjs"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_the_pacing_fetch_in_virtual_time():
    done = subprocess.run(["node", ROOT / "tests/integration/bindings/node/pacing_test.mjs", MODULE.as_uri()],
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert (done.returncode, done.stdout) == (0, "all hold\n"), done.stderr


def test_the_module_is_one_file_for_browsers():
    text = re.sub(r"^//.*$", "", MODULE.read_text(encoding="utf-8"), flags=re.M)
    assert not re.search(r"\b(import|require|process|Buffer|node:)\b", text)


def test_its_types_name_its_options():
    types = MODULE.with_suffix(".d.mts").read_text(encoding="utf-8")
    body = re.search(r"interface PacingOptions \{(.*?)^\}", types, re.M | re.S)[1]
    made = re.search(r"const made = \{(.*?)\};", MODULE.read_text(encoding="utf-8"), re.S)[1]
    assert set(re.findall(r"^  (\w+)\?:", body, re.M)) == set(re.findall(r"\b([a-zA-Z]+):", made)) | {"rate"}
    assert set(re.findall(r"^export (?:async )?function (\w+)", types, re.M)) == set(
        re.findall(r"^export function (\w+)", MODULE.read_text(encoding="utf-8"), re.M))
