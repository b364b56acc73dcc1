# SPDX-License-Identifier: Apache-2.0
"""The shell blocks of README and of the guides, copied in order, as a reader copies them."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from model.program import SECONDS_MAX, weir_path

ROOT = Path(__file__).parents[3]
# What a page's blocks need that is not here: files of the reader, Envoy's folder, a build of packages.
NOT_RUN = {"envoy.md": "/data/ratelimit", "production.md": "script/package", "replay.md": "access.log",
           "redis-nodes.md": "redis"}
PAGES = [ROOT / "README.md", ROOT / "docs" / "getting-started.md",
         *sorted((ROOT / "docs" / "guides").glob("*.md"))]


def blocks(text):
    """Fenced blocks: language, content."""
    language, lines = None, []
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            if language is None:
                language, lines = line.strip()[3:].strip(), []
            else:
                yield language, lines
                language = None
        elif language is not None:
            lines.append(line)


def commands(lines):
    """What a reader types of a block: lines behind a prompt, with those that continue them."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append(line[2:])
        elif found and line.startswith("    ") and (found[-1].endswith("\\") or odd(found[-1])):
            found[-1] += "\n" + line
    return found


def odd(text):
    return text.count("'") % 2 == 1


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def script_of(page, port, admin_port):
    """A script that stops at the first command that fails, and ends what it has started."""
    lines = ["set -eu -o pipefail", "servers=", "trap 'kill $servers 2>/dev/null || :' EXIT"]
    for language, block in blocks(page.read_text(encoding="utf-8")):
        for text in commands(block) if language in ("", "sh", "console") else ():
            text = text.replace("build/weir", "weir").replace("127.0.0.1:8080", f"127.0.0.1:{port}")
            text = re.sub(r"\bcurl -s", "curl -fs", text)
            if " serve " in text:
                admin = "" if "--admin" in text else f" --admin 127.0.0.1:{admin_port}"
                text = (f"{text.rstrip('& ')} --http 127.0.0.1:{port} --workers 1{admin} &\n"
                        f'servers="$servers $!"\n'
                        f"until curl -s -o /dev/null http://127.0.0.1:{port}/; do sleep 0.05; done")
            if text.startswith("weir top"):
                text += f" --once --admin 127.0.0.1:{admin_port}"
            lines.append(text)
    return "\n".join(lines) + "\n"


def test_pages_that_are_not_run_need_what_is_named():
    for name, needed in NOT_RUN.items():
        assert needed in (ROOT / "docs" / "guides" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in NOT_RUN],
                         ids=lambda page: page.name)
def test_what_a_reader_copies_works(tmp_path, page):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    rules = [lines for language, lines in blocks(page.read_text(encoding="utf-8"))
             if language == "yaml" and lines[0].startswith("version:")]
    if rules:
        (tmp_path / "weir.yaml").write_text("\n".join(rules[0]) + "\n", encoding="utf-8")
    script = script_of(page, free_port(), free_port())
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=SECONDS_MAX, check=False,
                          env=os.environ | {"PATH": f"{Path(weir_path()).parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, script + done.stdout + done.stderr


@pytest.mark.parametrize("page, least", [("README.md", 3), ("getting-started.md", 4), ("logins.md", 5),
                                         ("language-models.md", 3), ("games.md", 2)])
def test_commands_are_found(page, least):
    path = next(one for one in PAGES if one.name == page)
    found = [text for language, block in blocks(path.read_text(encoding="utf-8"))
             if language in ("", "sh", "console") for text in commands(block)]
    assert len(found) >= least
