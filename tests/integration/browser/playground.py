# SPDX-License-Identifier: Apache-2.0
"""The playground as static files, as `python3 -m http.server` serves them, and its page in a browser."""

import os
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from daemon.proxies import Application, Handler
from model.program import SECONDS_MAX, weir_path

BUILD = Path(weir_path()).parent
FILES = BUILD / "playground"
STEPS = BUILD / "tests" / "playground" / "playground_steps"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}

needs_playground = pytest.mark.skipif(
    not (FILES / "core.js").exists(),
    reason=f"no {FILES}/core.js: it is built where clang and lld are installed")


def steps(which):
    """The random requests of an algorithm with native decisions; see tests/playground/steps.c."""
    return subprocess.run([STEPS, str(which)], capture_output=True, timeout=SECONDS_MAX,
                          check=True).stdout


class StaticFiles(Application):
    """Serves the files, /steps/NUMBER, and an empty page at /empty, which may import the modules."""

    def __init__(self):
        class Files(Handler):
            def do_GET(self):
                path = urlsplit(self.path).path
                name = os.path.basename(path) or "index.html"
                if path == "/empty":
                    self.reply("text/html", b"<!doctype html><title>empty</title>")
                elif path.startswith("/steps/"):
                    self.reply("application/octet-stream", steps(name))
                elif (FILES / name).is_file() and os.path.splitext(name)[1] in TYPES:
                    self.reply(TYPES[os.path.splitext(name)[1]], (FILES / name).read_bytes())
                else:
                    self.send_error(404)

            def reply(self, kind, body):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Files)

    @property
    def url(self):
        return f"http://{self.address}/"
