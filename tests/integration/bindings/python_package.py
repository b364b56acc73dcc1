# SPDX-License-Identifier: Apache-2.0
"""The package weir for Python as this build has made it, and servers that run applications with it."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.http import Client, connect
from daemon.proxies import free_port
from daemon.waiting import wait_until
from model.program import weir_path

FOLDER = Path(weir_path()).parent / "bindings" / "python"

needs_package = pytest.mark.skipif(
    not (FOLDER / "weir" / "_weir.abi3.so").exists(),
    reason=f"no package in {FOLDER}: it is built where the package python3-dev is installed")


def load(name="weir"):
    """A module of the package; None where it was not built."""
    if not (FOLDER / "weir" / "_weir.abi3.so").exists():
        return None
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))
    return importlib.import_module(name)


def environment(**more):
    paths = [str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1",
            **more}


class Server:
    """A server of Python applications: a master and its workers, ended by its process id."""

    def __init__(self, folder, *command, **variables):
        self.folder, self.port = Path(folder), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.command = [sys.executable, "-m", *(str(part).replace("PORT", str(self.port))
                                                for part in command)]
        self.variables, self.process = variables, None

    def __enter__(self):
        with open(self.folder / "server.log", "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, cwd=self.folder,
                                            env=environment(**self.variables))
        wait_until(self.listens, what="the server")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def listens(self):
        assert self.process.poll() is None, self.log()
        try:
            connect(self.address).close()
        except ConnectionRefusedError:
            return False
        return True

    def log(self):
        return (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")

    def request(self, method, path, **fields):
        """One request over a connection of its own, so that any worker may take it."""
        fields = {"Connection": "close", **{key.replace("_", "-"): fields[key] for key in fields}}
        with Client(self.address) as client:
            return client.request(method, path, fields=fields)
