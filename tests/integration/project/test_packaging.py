# SPDX-License-Identifier: Apache-2.0
"""What is not run by weir itself: the systemd unit, packages, and the alerts of docs/metrics.md."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from daemon.proxies import DEPLOY
from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir, weir_path

NGINX = "www-data"
UID, GID = 64999, 64998  # as if they were those of the user and the group weir
CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
SHARED = "/run/weir-state 2770 root weir-state"
UNITS = ("weir.service", "weir-kernel.service", "weir-kernel.socket")


def unit(name="weir.service"):
    text = (ROOT / "packaging" / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.M))


@pytest.fixture(name="folder")
def fixture_folder():
    """A folder that any user reaches, with a copy of weir."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        shutil.copy(weir_path(), folder)
        yield Path(folder)


def connects(socket, *groups):
    """Whether a process of nginx's user with such groups reaches the socket."""
    given = [f"--groups={','.join(map(str, groups))}"] if groups else ["--clear-groups"]
    command = ["setpriv", f"--reuid={NGINX}", f"--regid={NGINX}", *given, sys.executable, "-c",
               CONNECT, str(socket)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be other users")
def test_members_of_the_units_group_reach_the_socket_and_others_do_not(folder):
    settings = unit()
    assert settings["User"] == settings["Group"] == "weir"
    runtime = folder / "run"
    runtime.mkdir()
    os.chown(runtime, UID, GID)
    prefix = ["setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups", "sh", "-c",
              f'umask {settings["UMask"]} && shift && exec "{folder}/weir" "$@"', "sh"]
    (folder / "home").mkdir()
    socket = runtime / "http.sock"
    rules = rules_of({"name": "api", "key": [], "rate": "1/s"})
    with Weir(folder / "home", rules, http=f"unix:{socket}", prefix=prefix):
        assert connects(socket, GID)
        assert not connects(socket)


def test_user_group_and_folders_are_made_by_systemd_as_the_units_name_them():
    sysusers = (ROOT / "packaging" / "weir.sysusers").read_text(encoding="utf-8")
    assert re.search(r"^g weir -$", sysusers, re.M) and re.search(r"^u weir - ", sysusers, re.M)
    folders = (ROOT / "packaging" / "weir.tmpfiles").read_text(encoding="utf-8")
    settings = unit()
    wanted = {f"/run/{settings['RuntimeDirectory']} 0755 weir weir",
              f"/var/lib/{settings['StateDirectory']} {settings['StateDirectoryMode']} weir weir",
              SHARED}
    assert set(re.findall(r"^d (.*)$", folders, re.M)) == wanted
    assert unit("weir-kernel.socket")["SocketUser"] == settings["User"]


def test_both_packages_share_a_folder_by_a_group_that_both_users_are_in():
    for name, user in (("weir", "weir"), ("weir-nginx", NGINX)):
        sysusers = (ROOT / "packaging" / f"{name}.sysusers").read_text(encoding="utf-8")
        assert re.search(r"^g weir-state -$", sysusers, re.M)
        assert re.search(rf"^m {user} weir-state$", sysusers, re.M)
        folders = (ROOT / "packaging" / f"{name}.tmpfiles").read_text(encoding="utf-8")
        assert re.search(rf"^d {SHARED}$", folders, re.M)
    folder = SHARED.split()[0]
    assert unit()["ReadWritePaths"] == f"-{folder}"
    example = (DEPLOY / "nginx" / "module.conf").read_text(encoding="utf-8")
    assert f"weir_state {folder}/state;" in example and "weir_strict on;" in example


def exposure_in_docs(name):
    """What docs/operations/security.md says of a unit, of 10."""
    text = (ROOT / "docs" / "operations" / "security.md").read_text(encoding="utf-8")
    return float(re.search(rf"^\| `{re.escape(name)}` \|.*\| (\d\.\d) \|$", text, re.M)[1])


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze (Debian: systemd)")
def test_systemd_reads_the_units_and_rates_them_as_the_docs_say(tmp_path):
    for name in UNITS:
        text = (ROOT / "packaging" / name).read_text(encoding="utf-8")
        text = re.sub(r"^(Exec\w+=)/\S+", r"\1/bin/true", text, flags=re.M)  # what is installed here
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                           *(str(tmp_path / name) for name in UNITS)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    for name in UNITS:
        if name.endswith(".service"):
            # Newer versions of systemd weigh a little differently from that of Debian 12.
            threshold = round(10 * exposure_in_docs(name)) + 2
            subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                            f"--threshold={threshold}", str(tmp_path / name)], check=True,
                           capture_output=True)


def packaged():
    """The files of the packages as patterns below their prefix, from their lists."""
    for file in (ROOT / "packaging" / "debian").iterdir():
        if file.suffix in (".install", ".manpages"):
            for line in file.read_text(encoding="utf-8").splitlines():
                yield line.split()[0].removeprefix("debian/tmp/")


def left_out():
    """What debhelper installs by itself: patterns likewise."""
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
        if any(f"/{part}/" in pattern and not list(installed.glob(f"**/{part}"))
               for part in ("nginx", "nodejs", "dist-packages")):
            continue  # what it is built with is not on this machine
        assert list(installed.glob("**/" + pattern.removeprefix("usr/").replace("lib/*/", "lib/**/"))), \
            pattern
    [helper_unit] = installed.glob("**/lib/systemd/system/weir-kernel.service")
    [helper] = installed.glob("**/libexec/weir-kernel")
    below = len(str(installed))
    assert f"ExecStart={str(helper)[below:]} --listen\n" in helper_unit.read_text(encoding="utf-8")
    [unit_file] = installed.glob("**/lib/systemd/system/weir.service")
    [program] = installed.glob("**/bin/weir")
    [rules] = installed.glob("**/etc/weir/weir.yaml")
    text = unit_file.read_text(encoding="utf-8")
    assert f"ExecStart={str(program)[below:]} serve --config {str(rules)[below:]}\n" in text


def test_the_packages_have_every_file_of_an_installation(installed):
    patterns = [*packaged(), *left_out()]
    options = (ROOT / "packaging" / "debian" / "rules").read_text(encoding="utf-8")
    for part in ("manuals", "nginx", "node", "playground", "python", "xdp"):
        assert f"-D{part}=enabled" in options
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


def test_the_files_of_the_container_agree():
    """script/container-test does what the Containerfile says."""
    folder = ROOT / "packaging" / "container"
    image = (folder / "Containerfile").read_text(encoding="utf-8")
    rules = yaml.safe_load((folder / "weir.yaml").read_text(encoding="utf-8"))
    service = yaml.safe_load((folder / "compose.yaml").read_text(encoding="utf-8"))["services"]["weir"]
    assert (folder / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == \
        folder / "Containerfile"
    assert re.search(r"--uid 850 ", image) and re.search(r"^USER 850:850$", image, re.M)
    [volume] = re.findall(r"^VOLUME (.*)$", image, re.M)
    assert rules["state"]["file"].startswith(f"{volume}/")
    assert service["volumes"][0].endswith(f":{volume}")
    [port] = re.findall(r"^EXPOSE (.*)$", image, re.M)
    assert rules["server"]["http"]["address"].endswith(f":{port}")
    assert service["ports"][0].endswith(f":{port}")
    health = json.loads(re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", image, re.M)[1])
    assert health[:2] == ["weir", "top"] and rules["server"]["admin"] == "127.0.0.1:9090"
    assert run_weir("validate", folder / "weir.yaml").returncode == 0
