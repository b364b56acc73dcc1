# SPDX-License-Identifier: Apache-2.0
"""script/release over a repository of a few files and a package made for the test, the SBOM, and the
version, which one place says."""

import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from model.program import ROOT, run_weir, weir_path

VERSION = re.search(r"version: '([^']*)',", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]
FILES = ("script/release", "script/build/sbom.py", "meson.build", "CHANGELOG.md",
         "bindings/node/package.json")
CHANGES = f"# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - 2026-11-23\n"
needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb")


def git(repository, *arguments):
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@weir.example", *arguments],
                   cwd=repository, check=True, capture_output=True)


@pytest.fixture(name="repository")
def fixture_repository(tmp_path):
    repository = tmp_path / "repository"
    for name in FILES:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, repository / name)
    (repository / "CHANGELOG.md").write_text(CHANGES, encoding="utf-8")
    (repository / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "all")
    return repository


@pytest.fixture(name="packages")
def fixture_packages(tmp_path):
    """A package weir with weir-kernel, which is linked with the C library alone, as both programs."""
    tree, folder = tmp_path / "tree", tmp_path / "packages"
    helper = Path(weir_path()).parent / "weir-kernel"
    for name in ("usr/bin/weir", "usr/libexec/weir-kernel"):
        (tree / name).parent.mkdir(parents=True)
        shutil.copy(helper, tree / name)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(
        f"Package: weir\nVersion: {VERSION}\nArchitecture: amd64\nMaintainer: a <a@weir.example>\n"
        "Depends: libc6 (>= 2.34), libuv1\nDescription: a\n", encoding="utf-8")
    folder.mkdir()
    subprocess.run(["dpkg-deb", "-b", str(tree), str(folder / f"weir_{VERSION}_amd64.deb")], check=True,
                   capture_output=True)
    return folder


def release(repository, *arguments, **env):
    return subprocess.run([str(repository / "script" / "release"), *map(str, arguments)],
                          capture_output=True, text=True, check=False, env={**os.environ, **env})


def sums_in(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
            if not path.name.startswith("SHA256SUMS")}


@needs_dpkg
def test_a_release_has_its_files_with_their_checksums_and_is_the_same_twice(repository, packages,
                                                                            tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        done = release(repository, "--no-tests", "--packages", packages, folder)
        assert done.returncode == 0, done.stderr
    sums = sums_in(first)
    assert sums == sums_in(second)
    listed = (first / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert listed == [f"{sums[name]}  {name}" for name in sorted(sums)]
    [programs] = first.glob(f"weir-{VERSION}-*-amd64.tar.gz")
    assert set(sums) == {f"weir-{VERSION}.tar.gz", f"weir_{VERSION}_amd64.deb",
                         f"weir-{VERSION}.spdx.json", programs.name}
    with tarfile.open(first / f"weir-{VERSION}.tar.gz") as archive:
        build = archive.extractfile(f"weir-{VERSION}/meson.build").read()
    own = (ROOT / "meson.build").read_bytes()
    assert build == own.replace(b", 'werror=true'", b"") != own
    with tarfile.open(programs) as archive:
        name = programs.name.removesuffix(".tar.gz")
        assert archive.getmember(f"{name}/usr/bin/weir").mode & 0o111
        assert archive.extractfile(f"{name}/PACKAGES").read() == b"libc6 (>= 2.34)\nlibuv1\n"


@needs_dpkg
def test_the_sbom_names_the_packages_that_programs_are_linked_with(tmp_path):
    helper = Path(weir_path()).parent / "weir-kernel"
    command = [sys.executable, str(ROOT / "script" / "build" / "sbom.py"), VERSION, str(helper)]
    made = subprocess.run(command, capture_output=True, text=True, check=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "86400"}).stdout
    found = json.loads(made)
    assert found["spdxVersion"] == "SPDX-2.3" and found["SPDXID"] == "SPDXRef-DOCUMENT"
    assert found["creationInfo"]["created"] == "1970-01-02T00:00:00Z"
    weir, libc = found["packages"]
    assert weir["versionInfo"] == VERSION
    assert hashlib.sha256(helper.read_bytes()).hexdigest() in weir["comment"]
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libc6"], check=True,
                             capture_output=True, text=True).stdout
    assert (libc["name"], libc["versionInfo"]) == ("libc6", version)
    assert f"/libc6@{version}?arch=" in libc["externalRefs"][0]["referenceLocator"]
    pairs = [(one["spdxElementId"], one["relationshipType"], one["relatedSpdxElement"])
             for one in found["relationships"]]
    assert pairs == [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-weir"),
                     ("SPDXRef-weir", "DYNAMIC_LINK", "SPDXRef-libc6")]


def test_the_sbom_takes_libraries_of_weir_for_weir(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "script" / "build"))
    sbom = importlib.import_module("sbom")
    addon, library = str(tmp_path / "weir.node"), str(tmp_path / "libweir.so.0")
    names = {addon: ["libweir.so.0", "libc.so.6"], library: ["libyaml-0.so.2"], "/libyaml": ["libc.so.6"],
             "/libc": []}
    paths = {"libweir.so.0": library, "libc.so.6": "/libc", "libyaml-0.so.2": "/libyaml"}
    monkeypatch.setattr(sbom, "needed", names.get)
    monkeypatch.setattr(sbom, "resolved", lambda _: paths)
    monkeypatch.setattr(sbom, "package_of", {"/libc": "libc6", "/libyaml": "libyaml-0-2"}.__getitem__)
    assert sbom.links([addon, library]) == {(None, "libc6"), (None, "libyaml-0-2"),
                                            ("libyaml-0-2", "libc6")}


@needs_dpkg
@pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg (Debian: gnupg)")
def test_checksums_are_signed_by_the_key_that_is_given(repository, packages, tmp_path):
    out, home = tmp_path / "out", tempfile.mkdtemp()  # short: the agent's socket is in it
    env = {"GNUPGHOME": home}
    gpg = ["gpg", "--homedir", home, "--batch"]
    subprocess.run([*gpg, "--passphrase", "", "--quick-generate-key", "weir <a@weir.example>", "ed25519",
                    "sign", "never"], check=True, capture_output=True)
    try:
        done = release(repository, "--no-tests", "--packages", packages, "--key", "a@weir.example", out,
                       **env)
        assert done.returncode == 0, done.stderr
        subprocess.run([*gpg, "--verify", str(out / "SHA256SUMS.asc"), str(out / "SHA256SUMS")],
                       check=True, capture_output=True)
        done = release(repository, "--dry-run", "--key", "b@weir.example", **env)
        assert done.returncode == 1 and "no secret key 'b@weir.example'" in done.stderr
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
        shutil.rmtree(home, ignore_errors=True)


def test_a_dry_run_names_the_steps_and_makes_nothing(repository, tmp_path):
    out = tmp_path / "out"
    done = release(repository, "--dry-run", out)
    assert done.returncode == 0, done.stderr
    for step in ("script/lint and script/test", "script/package", "script/package-test", "SBOM",
                 "checksums"):
        assert step in done.stdout
    assert not out.exists() and not (repository / "build-package").exists()


def test_what_cannot_be_released_is_refused(repository, tmp_path):
    def refused(*arguments):
        done = release(repository, "--no-tests", "--packages", tmp_path, *arguments)
        assert done.returncode == 1 and done.stdout.count("==") == 0
        return done.stderr

    (repository / "CHANGELOG.md").write_text("# Changelog\n", encoding="utf-8")
    assert f"no section '## [{VERSION}] - DATE'" in refused()
    (repository / "CHANGELOG.md").write_text(CHANGES + "\nmore\n", encoding="utf-8")
    assert "the work tree has changes" in refused()
    package = repository / "bindings" / "node" / "package.json"
    text = package.read_text(encoding="utf-8")
    package.write_text(text.replace(VERSION, "9.9.9"), encoding="utf-8")
    assert "is of another version" in refused()
    package.write_text(text, encoding="utf-8")
    git(repository, "tag", f"v{VERSION}")
    git(repository, "commit", "-q", "-a", "-m", "more")
    assert "is the tag of another commit" in refused()


def test_one_place_says_the_version():
    package = json.loads((ROOT / "bindings" / "node" / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == VERSION
    assert run_weir("version").stdout == f"weir {VERSION}\n"
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[([\d.]+)\] - 20\d\d-\d\d-\d\d$", text, re.M)[0] == VERSION
