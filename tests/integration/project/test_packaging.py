# SPDX-License-Identifier: Apache-2.0
"""What is not run by weir itself: the systemd unit, and the alerts of docs/metrics.md."""

import grp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from daemon.weir import Weir, rules_of
from model.program import ROOT, weir_path

NGINX = "www-data"
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


def unit():
    text = (ROOT / "packaging" / "weir.service").read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


@pytest.fixture(name="folder")
def fixture_folder():
    """A folder that any user reaches, with a copy of weir."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copy(weir_path(), folder)
        yield Path(folder)


def group_of(settings):
    try:
        return grp.getgrnam(settings.get("Group", settings["User"])).gr_gid
    except KeyError:  # systemd makes one
        return 64999


def connects(user, socket):
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", sys.executable,
               "-c", CONNECT, str(socket)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be other users")
def test_nginx_reaches_the_socket_of_the_unit_and_others_do_not(folder):
    settings = unit()
    runtime = folder / "run"
    runtime.mkdir()
    uid, gid = 64999, group_of(settings)
    os.chown(runtime, uid, gid)
    prefix = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "sh", "-c",
              f'umask {settings["UMask"]} && shift && exec "{folder}/weir" "$@"', "sh"]
    (folder / "home").mkdir()
    socket = runtime / "http.sock"
    rules = rules_of({"name": "api", "key": [], "rate": "1/s"})
    with Weir(folder / "home", rules, http=f"unix:{socket}", prefix=prefix):
        assert connects(NGINX, socket)
        assert not connects("daemon", socket)


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (Debian: prometheus)")
def test_the_alerts_of_the_docs_are_promql(tmp_path):
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    block = re.search(r"^Worth an alert:\n\n```\n(.*?)```", text, re.M | re.S).group(1)
    alerts = [line.partition("#")[0].strip() for line in block.splitlines()]
    assert len(alerts) >= 6
    rules = "".join(f"  - alert: A{i}\n    expr: '{alert}'\n" for i, alert in enumerate(alerts))
    file = tmp_path / "alerts.yaml"
    file.write_text("groups:\n- name: weir\n  rules:\n" + rules, encoding="utf-8")
    done = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
