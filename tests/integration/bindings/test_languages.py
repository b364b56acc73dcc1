# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/languages (those for Node and Python have tests of their own): over HTTP
against a weir of this test; and the package for Go, with its own tests."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from daemon.http import connect
from daemon.proxies import App, free_port
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir
from model.program import ROOT, weir_path
from penalties import guessing_rules
from registry import Folder, needed

LIBRARY = Path(weir_path()).resolve().parent
GO = ROOT / "bindings/go"


def blocks(page, language):
    text = (ROOT / f"docs/languages/{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def block(page, language):
    return blocks(page, language)[0]


# Of each page that is tested here, its blocks, all of which are run.
BLOCKS = {"go": {"go": 3, "sh": 1, "yaml": 1}, "java": {"java": 1, "yaml": 1}, "php": {"php": 1, "yaml": 1},
          "ruby": {"ruby": 1, "yaml": 1}, "rust": {"rust": 1, "yaml": 1}}


def test_every_block_of_each_page_is_run():
    pages = sorted(path.stem for path in (ROOT / "docs/languages").glob("*.md"))
    assert pages == sorted([*BLOCKS, "node", "python"])
    for page, found in BLOCKS.items():
        text = (ROOT / f"docs/languages/{page}.md").read_text(encoding="utf-8")
        languages = re.findall(r"^```(\w+)$", text, re.M)
        assert {language: languages.count(language) for language in languages} == found, page


def lasting(rules):
    """The same limits in windows whose ends no test meets."""
    assert "/min" in rules
    return rules.replace("/min", "/day")


@pytest.mark.parametrize("page, name, commands", [
    ("php", "app.php", [["php", "app.php"]]),
    ("ruby", "app.rb", [["ruby", "app.rb"]]),
    ("java", "App.java", [["javac", "App.java"], ["java", "-Xshare:auto", "App"]]),
    ("rust", "app.rs", [["rustc", "app.rs"], ["./app"]]),
])
def test_a_program_that_asks_a_server(tmp_path, page, name, commands):
    needed(commands[0][0])
    with Weir(tmp_path, lasting(block(page, "yaml"))) as weir:
        host, port = weir.http_address.split(":")
        text = block(page, page).replace("127.0.0.1", host).replace("8080", port)
        (tmp_path / name).write_text(text, encoding="utf-8")
        for command in commands:
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False,
                                  timeout=SECONDS_MAX)
            assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.split() == ["allowed", "allowed", "denied"], done.stdout + done.stderr


# --- Go ---------------------------------------------------------------------------------------------

@pytest.fixture(name="go", scope="module")
def fixture_go(tmp_path_factory):
    """The environment of go. Its cache is the user's: the standard library is compiled once."""
    needed("go")
    needed("gcc")
    folder = tmp_path_factory.mktemp("go")
    if not (LIBRARY / "meson-uninstalled/weir-uninstalled.pc").is_file():
        pytest.skip("weir is not in a build folder of meson")
    return ({} if "HOME" in os.environ else {"GOCACHE": str(folder / "cache")}) | os.environ | {
        "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "1",
        "GOPROXY": "off", "GOPATH": str(folder / "path"), "GO111MODULE": "on",
        "PKG_CONFIG_PATH": str(LIBRARY / "meson-uninstalled"),
        "LD_LIBRARY_PATH": f"{LIBRARY}/src/library:{LIBRARY}/src/client"}


def run_go(go, folder, *arguments):
    done = subprocess.run(["go", *arguments], cwd=folder, env=go, capture_output=True, text=True, check=False,
                          timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_for_go(go, tmp_path):
    with Weir(tmp_path, guessing_rules(tmp_path), "--workers", "1") as server:
        run_go({**go, "WEIR_TEST_RULES": str(server.config)}, GO, "test", "-count=1", "-vet=off", ".")
        assert server.text().count("event=penalty_moved") == 2


def test_the_client_for_go(go):
    run_go(go, GO, "test", "-count=1", "-vet=off", "./client")


def test_the_client_of_the_page_for_go(go, tmp_path):
    program_of_the_page(go, tmp_path, block("go", "yaml"), "main.go", blocks("go", "go")[2])
    with App() as server:
        done = subprocess.run(["go", "run", ".", f"http://{server.address}/"], cwd=tmp_path, env=go, capture_output=True,
                              text=True, check=False, timeout=580)
    assert done.stdout == "200\n", done.stderr


def first_status(port):
    with connect(f"127.0.0.1:{port}") as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return int(one.recv(16).split()[1])


def listens(port):
    try:
        connect(f"127.0.0.1:{port}").close()
    except OSError:
        return False
    return True


def program_of_the_page(go, tmp_path, rules, name, program):
    """A folder as the page makes it."""
    (tmp_path / name).write_text(program, encoding="utf-8")
    (tmp_path / "go.mod").write_text("module app\n\ngo 1.19\n", encoding="utf-8")
    (tmp_path / "weir.yaml").write_text(rules, encoding="utf-8")
    shutil.copytree(GO, tmp_path / "weir/bindings/go")
    edit = re.search(r"^go (mod edit .*)$", block("go", "sh"), re.M)[1]
    run_go(go, tmp_path, *edit.split())


def test_the_test_of_the_page_for_go(go, tmp_path):
    """As it is written, with the rules as they are written: it waits for nothing."""
    _, program, _ = blocks("go", "go")
    program_of_the_page(go, tmp_path, block("go", "yaml"), "limits_test.go", program)
    run_go(go, tmp_path, "test", "-count=1", "-vet=off", ".")


def test_the_published_routers(go, tmp_path):
    """As a user without privileges, with a copy of libweir."""
    folder = Folder(ROOT / "tests/integration/bindings/go_frameworks", weir=GO, include=ROOT / "include")
    try:
        library = folder.path / "work/lib"
        library.mkdir(mode=0o755)
        for each in (LIBRARY / "src/library").glob("libweir.so*"):
            if each.is_file():
                shutil.copy(each, library)
        headers = library.parent / "include"
        (library / "weir.pc").write_text(
            f"Name: weir\nDescription: weir\nVersion: 0\nCflags: -I{headers}\n"
            f"Libs: -L{library} -lweir\n", encoding="utf-8")
        folder.environment |= {"PKG_CONFIG_PATH": str(library), "LD_LIBRARY_PATH": str(library), "CGO_ENABLED": "1"}
        folder.install("modules of Go", "go", "mod", "tidy")
        done = folder.run("go", "test", "-count=1", "-vet=off", ".", seconds=580)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        folder.remove()


def test_the_program_of_the_page_for_go(go, tmp_path):
    port = free_port()
    program_of_the_page(go, tmp_path, lasting(block("go", "yaml")), "main.go",
                        block("go", "go").replace("3000", str(port)))
    run_go(go, tmp_path, "build", "-o", "app", ".")
    with subprocess.Popen(["./app"], cwd=tmp_path, env=go, stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is not None or listens(port), SECONDS_MAX, "the server")
            assert process.poll() is None
            assert [first_status(port) for _ in range(6)] == [200] * 5 + [429]
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS_MAX)
