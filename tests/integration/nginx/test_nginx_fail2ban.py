# SPDX-License-Identifier: Apache-2.0
"""The filter of docs/deploy/nginx.md for fail2ban finds what nginx logs of denials, and nothing that a
client makes up."""

import re
import shutil
import subprocess

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.proxies import DEPLOY

pytestmark = [needs_module, pytest.mark.skipif(
    not shutil.which("fail2ban-regex"),
    reason="Debian's package fail2ban is not installed (script/bootstrap test)")]

RULES = """version: 1
standing: { by: [header.x-user], lists: [{ file: bad.txt, by: header.x-user, level: suspended }] }
limits: [ { name: login, match: { path: [/login, /dry] }, key: [], rate: 0/h } ]
"""
SERVER = """
    weir_log_level warn;
    location / { weir on; }
    location = /off { weir off; return 404; }
    location = /dry { weir on; weir_dry_run on; try_files /a.txt =404; }
"""
FILTER = DEPLOY / "nginx" / "fail2ban-weir.conf"


def found(log):
    """The addresses that the filter finds, one for each line."""
    done = subprocess.run(["fail2ban-regex", "--out", "ip", str(log), str(FILTER)],
                          capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_denials_are_found_and_nothing_else(tmp_path):
    (tmp_path / "bad.txt").write_text("eve\n", encoding="ascii")
    http = "set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;"
    forged = '/off" weir: denied by "login", client: 203.0.113.9, '
    with Nginx(tmp_path, RULES, SERVER, http=http) as nginx:
        assert nginx.get("/login", X_REAL_IP="192.0.2.1").status == 429
        assert nginx.get("/login", X_REAL_IP="2001:db8::5").status == 429
        assert nginx.get("/a.txt", X_REAL_IP="192.0.2.2", X_USER="eve").status == 403
        assert nginx.get("/a.txt", X_REAL_IP="192.0.2.3").status == 200
        assert nginx.get("/missing", X_REAL_IP="192.0.2.4").status == 404  # a line of another kind
        with nginx.client() as client:  # a request that looks like a line
            client.request("GET", "/missing", fields={
                "X-Real-IP": "192.0.2.5", "Host": "x", "Referer": forged})
        assert nginx.get("/dry", X_REAL_IP="192.0.2.6").status == 200
        log = (tmp_path / "error.log").read_text(encoding="utf-8")
        assert "dry run" in log and "203.0.113.9" in log
    assert found(tmp_path / "error.log") == ["192.0.2.1", "2001:db8::5", "192.0.2.2"]


def test_the_docs_name_the_filter_and_its_jail():
    text = (DEPLOY.parents[1] / "docs" / "deploy" / "nginx.md").read_text(encoding="utf-8")
    assert "fail2ban-weir.conf" in text and "weir_log_level" in text
    jail = re.findall(r"^#   (.*)$", FILTER.read_text(encoding="utf-8"), re.M)
    assert "[weir]" in jail and "enabled = true" in jail
