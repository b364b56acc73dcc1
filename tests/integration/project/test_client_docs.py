# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/client.md run as they are written, against a server of this test."""

import json
import os
import re
import shutil
import subprocess

import pytest

from daemon.proxies import App
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir
from model.program import ROOT, run_weir, weir_path

TEXT = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
BLOCKS = [block.splitlines() for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.M | re.S)]
COMMANDS = [line for line in BLOCKS[1] + BLOCKS[3] if line.startswith("weir fetch")]


def run(line, folder, **hosts):
    for before, after in hosts.values():
        line = line.replace(before, after)
    (folder / "build").mkdir(exist_ok=True)
    link = folder / "build" / "weir"
    if not link.exists():
        link.symlink_to(weir_path())
    path = f"{folder / 'build'}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-ec", line], cwd=folder, env=os.environ | {"PATH": path},
                          capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


def test_the_first_five_minutes(tmp_path):
    build, *commands = BLOCKS[0]
    assert build.endswith("ninja -C build") and len(commands) == 2
    rules = (ROOT / "examples" / "weir.yaml").read_text(encoding="utf-8")
    shutil.copy(ROOT / "examples" / "keys.yaml", tmp_path)
    with Weir(tmp_path, rules) as weir:
        for command in commands:
            said = run(command, tmp_path, port=("127.0.0.1:8080", weir.http_address))
    example = json.loads(re.search(r"^```json\n(.*?)^```", TEXT, re.M | re.S)[1])
    assert set(example) <= set(json.loads(said))
    assert json.loads(said)["outcome"] == "answered"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page(tmp_path, command):
    with App() as server:
        (tmp_path / "list.txt").write_text(f"http://{server.address}/a\nhttp://{server.address}/b\n",
                                           encoding="utf-8")
        run(command, tmp_path, host=("https://example.com", f"http://{server.address}"))
        assert server.seen


def test_the_commands_are_found():
    assert len(COMMANDS) == 9


def test_the_program_is_built_as_the_page_says():
    """tests/unit/client/installed.sh builds it against an installed tree."""
    assert BLOCKS[2][0].startswith("cc fetch.c $(pkg-config --cflags --libs weir-client) -o fetch")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_the_fetch_for_browsers(tmp_path):
    """With the package where npm puts it."""
    blocks = [block for block in re.findall(r"^```js\n(.*?)^```", TEXT, re.M | re.S) if "weir/pacing" in block]
    assert len(blocks) == 1
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "weir").symlink_to(ROOT / "bindings" / "node")
    with App() as server:
        program = blocks[0].replace("https://api.example.com", f"http://{server.address}")
        (tmp_path / "page.mjs").write_text(f"{program}console.log(answer.status);\n", encoding="utf-8")
        done = subprocess.run(["node", "page.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS_MAX,
                              check=False)
        assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
        assert len(server.seen) == 1


def test_the_options_of_the_page_are_those_of_the_program():
    said = run_weir("fetch", "--help").stdout
    table = TEXT.split("| option | meaning |", 1)[1].split("\n\n", 1)[0]
    for option in re.findall(r"`(--[a-z-]+)", table):
        assert option in said, option
    for option in re.findall(r"^ +(?:-., )?(--[a-z-]+)", said, re.M):
        if option not in ("--help", "--request", "--data", "--header", "--location"):
            assert f"`{option}" in table, option
