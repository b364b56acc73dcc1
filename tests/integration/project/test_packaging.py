# SPDX-License-Identifier: Apache-2.0
"""What is not run by weir itself: the systemd unit, packages, and the alerts of docs/metrics.md."""

import grp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
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


def packaged():
    """The files of the packages as patterns below their prefix, from their lists."""
    for file in (ROOT / "packaging" / "debian").iterdir():
        if file.suffix in (".install", ".manpages"):
            for line in file.read_text(encoding="utf-8").splitlines():
                yield line.split()[0].removeprefix("debian/tmp/")


def left_out():
    """What `ninja install` has and no package: patterns likewise. debian/rules switches off the
    packages for programs, and debhelper installs the other files by itself."""
    yield from ("usr/lib/*/nodejs/*", "usr/lib/python3*")
    for line in (ROOT / "packaging" / "debian" / "not-installed").read_text().splitlines():
        if not line.startswith("#"):
            yield line


@pytest.fixture(name="installed", scope="module")
def fixture_installed(tmp_path_factory):
    """What `ninja install` puts below a folder, twice; the rules are changed in between."""
    folder = tmp_path_factory.mktemp("installed")
    build = Path(weir_path()).parent
    if not (build / "build.ninja").exists() or not (build / "packaging" / "weir.1").exists():
        pytest.skip("this weir is not in a whole build folder")
    command = ["meson", "install", "-C", str(build), "--no-rebuild", "--quiet", "--destdir",
               str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    [rules] = folder.glob("**/etc/weir/weir.yaml")
    rules.write_text("# changed\n", encoding="utf-8")
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_an_installation_has_every_file_of_the_packages(installed):
    patterns = list(packaged())
    assert len(patterns) >= 10
    for pattern in patterns:
        if "nginx" in pattern and not list(installed.glob("**/nginx")):
            continue  # no nginx-dev here
        assert list(installed.glob("**/" + pattern.removeprefix("usr/").replace("lib/*/", "lib/**/"))), \
            pattern
    [unit_file] = installed.glob("**/lib/systemd/system/weir.service")
    [program] = installed.glob("**/bin/weir")
    [rules] = installed.glob("**/etc/weir/weir.yaml")
    text = unit_file.read_text(encoding="utf-8")
    below = len(str(installed))
    assert f"ExecStart={str(program)[below:]} serve --config {str(rules)[below:]}\n" in text


def test_the_packages_have_every_file_of_an_installation(installed):
    patterns = [*packaged(), *left_out()]
    options = (ROOT / "packaging" / "debian" / "rules").read_text(encoding="utf-8")
    assert "-Dpython=disabled" in options and "-Dnode=disabled" in options
    files = [path.relative_to(installed) for path in installed.rglob("*") if not path.is_dir()]
    assert len(files) > 30
    for file in files:
        name = str(file).replace("usr/local/", "usr/").replace("usr/etc/", "etc/")
        assert any(fnmatch(name, pattern) or fnmatch(name, pattern + "/*")
                   for pattern in patterns), name


def test_an_installation_keeps_rules_that_are_there(installed):
    [rules] = installed.glob("**/etc/weir/weir.yaml")
    assert rules.read_text(encoding="utf-8") == "# changed\n"


def test_the_rules_of_the_package_are_valid():
    subprocess.run([weir_path(), "validate", str(ROOT / "packaging" / "weir.yaml")], check=True,
                   capture_output=True)


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
