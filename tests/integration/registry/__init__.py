# SPDX-License-Identifier: Apache-2.0
"""Published packages for a test: installed from their registries into a folder of its own, and run as
a user without privileges. Where there is no registry, the test is skipped, with the reason."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

INSTALL_SECONDS_MAX = 400
RUN_SECONDS_MAX = 120
NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}


class Folder:
    """A copy of `sources` that the user without privileges owns; `more`: {name in it: folder}."""

    def __init__(self, sources, **more):
        self.path = Path(tempfile.mkdtemp(prefix="weir-packages-"))
        self.path.chmod(0o755)
        shutil.copytree(sources, self.path / "work")
        for name, source in more.items():
            shutil.copytree(source, self.path / "work" / name)
        (self.path / "home").mkdir()
        if NOBODY:
            for each in [self.path, *self.path.rglob("*")]:
                shutil.chown(each, "nobody", "nogroup")
        kept = {name: value for name, value in os.environ.items()
                if re.match(r"(PIP|NPM|npm|GO|NODE|SSL|REQUESTS|http|HTTP|no_|NO_)", name)}
        kept.pop("GOPATH", None)
        self.environment = {**kept, "PATH": os.environ["PATH"], "HOME": str(self.path / "home"),
                            "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "LC_ALL": "C.UTF-8"}

    def run(self, *command, folder="work", seconds=RUN_SECONDS_MAX):
        return subprocess.run([str(part) for part in command], cwd=self.path / folder,
                              env=self.environment, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=seconds, **NOBODY)

    def install(self, what, *command, folder="work"):
        try:
            done = self.run(*command, folder=folder, seconds=INSTALL_SECONDS_MAX)
            said = (done.stderr or done.stdout or "no word").strip().splitlines()
            failed = done.returncode and said[-1]
        except (OSError, subprocess.TimeoutExpired) as error:
            failed = str(error)
        if failed:
            pytest.skip(f"no {what} to be had: {failed}")

    def remove(self):
        subprocess.run(["chmod", "-R", "u+w", self.path], check=False)  # Go's modules are read-only
        shutil.rmtree(self.path)


def needed(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
