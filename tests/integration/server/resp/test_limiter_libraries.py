# SPDX-License-Identifier: Apache-2.0
"""Limiter libraries as they are published, unchanged: the same calls to weir and to a real Redis are
answered alike, and of 8 clients at once exactly the limit is admitted. What ran is the table of
docs/limiter-libraries.md; `pytest --update` writes it.

They are installed from their registries by lock files with hashes; no script of a package is run at
its installation, and all of their code runs as a user without privileges. Where there is no registry,
the tests are skipped, and say so."""

import json
import re
import subprocess
import sys

import pytest

from daemon.redis import RedisWeir
from daemon.redis_server import RedisServer
from model.program import ROOT
from registry import Folder, needed

SOURCES = ROOT / "tests/integration/server/libraries"
PAGE = ROOT / "docs/limiter-libraries.md"
LIMIT = 25  # of each scenario
CALLS = 160  # of all clients at once

# Each library, its language, and its scenarios.
LIBRARIES = {
    "rate-limiter-flexible": ("node", [""]),
    "rate-limit-redis": ("node", [""]),
    "@fastify/rate-limit": ("node", [""]),
    "@nest-lab/throttler-storage-redis": ("node", [""]),
    "koa-ratelimit": ("node", [""]),
    "limits": ("python", ["FixedWindowRateLimiter", "MovingWindowRateLimiter",
                          "SlidingWindowCounterRateLimiter"]),
    "flask-limiter": ("python", [""]),
    "slowapi": ("python", [""]),
    "throttled-py": ("python", ["FIXED_WINDOW", "SLIDING_WINDOW", "TOKEN_BUCKET", "LEAKING_BUCKET",
                                "GCRA"]),
    "pyrate-limiter": ("python", ["sliding", "fixed", "gcra"]),
    "fastapi-limiter": ("python", [""]),
    "redis_rate": ("go", [""]),
    "throttled": ("go", [""]),
    "ulule/limiter": ("go", [""]),
    "rack-attack": ("ruby", [""]),
    "Laravel": ("php", [""]),
}
# Java's registry is none of those that tests ask: its script is known by its hash.
NOT_RUN = {"Spring Cloud Gateway": "java"}
SCENARIOS = [(library, kind) for library, (_, kinds) in LIBRARIES.items() for kind in kinds]
ran = {}  # (library, kind): what weir and Redis answered


@pytest.fixture(scope="module", name="folder")
def fixture_folder():
    folder = Folder(SOURCES)
    yield folder
    folder.remove()


def node_command(folder):
    needed("npm")
    folder.install("packages of npm", "npm", "ci", "--ignore-scripts", "--legacy-peer-deps",
                   "--no-audit", "--no-fund", "--silent")
    return ["node", "node.js"]


def python_command(folder):
    interpreter = folder.path / "work/venv/bin/python3"
    # fastapi-limiter, flask-limiter and slowapi import Debian's frameworks.
    folder.install("venv", sys.executable, "-m", "venv", "--system-site-packages", "venv")
    folder.install("packages of PyPI", interpreter, "-m", "pip", "install", "--quiet", "--no-input",
                   "--no-deps", "--only-binary=:all:", "--require-hashes",
                   "--disable-pip-version-check", "--no-cache-dir", "-r", "requirements.txt")
    return [interpreter, "limiters.py"]


def go_command(folder):
    needed("go")
    folder.install("modules of Go", "go", "build", "-o", "../limiters", ".", folder="work/go")
    return [folder.path / "work/limiters"]


def ruby_command(_):
    needed("ruby")
    if subprocess.run(["ruby", "-r", "rack/attack", "-r", "redis", "-e", ""], check=False,
                      capture_output=True).returncode:
        pytest.skip("ruby-rack-attack and ruby-redis are not installed")
    return ["ruby", "rack.rb"]


def php_command(_):
    needed("php")
    loads = "require '/usr/share/php/Illuminate/Redis/autoload.php'; exit(extension_loaded('redis') ? 0 : 1);"
    if subprocess.run(["php", "-r", loads], check=False, capture_output=True).returncode:
        pytest.skip("php-laravel-framework and php-redis are not installed")
    return ["php", "laravel.php"]


COMMANDS = {"node": node_command, "python": python_command, "go": go_command, "ruby": ruby_command,
            "php": php_command}


@pytest.fixture(scope="module", name="command_of")
def fixture_command_of(folder):
    """A function of a language: how its program is run. What it needs is installed once; what is
    not to be had skips each test that asks for it."""
    commands, missing = {}, {}

    def command_of(language):
        if language in missing:
            pytest.skip(missing[language])
        if language not in commands:
            try:
                commands[language] = COMMANDS[language](folder)
            except pytest.skip.Exception as reason:
                missing[language] = str(reason)
                raise
        return commands[language]
    return command_of


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with RedisWeir(tmp_path_factory.mktemp("weir"), None, "--workers", "2") as weir:
        yield weir


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory):
    needed("redis-server")
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


@pytest.fixture(name="run")
def fixture_run(folder, command_of, weir, redis):
    """A function of a library and a kind: its scenario over weir and over Redis, run once."""
    def scenario(library, kind, port):
        done = folder.run(*command_of(LIBRARIES[library][0]), port, f"{library}:{kind}" if kind else library)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def run(library, kind):
        if (library, kind) not in ran:
            ran[library, kind] = (scenario(library, kind, weir.redis_port), scenario(library, kind, redis.port))
        return ran[library, kind]
    return run


@pytest.mark.parametrize("library, kind", SCENARIOS)
def test_a_library(run, library, kind):
    ours, theirs = run(library, kind)
    assert ours["steps"] == theirs["steps"]
    assert ours["admitted"] == LIMIT
    assert theirs["admitted"] >= LIMIT  # some of them check first and count then


# --- The tables of docs/limiter-libraries.md --------------------------------------------------------

HEAD = "| library | version | what ran | answers that are Redis's | admitted at once |\n|---|---|---|---|---|\n"


def row(library, results):
    """What ran, as the page says it."""
    same = sum(mine == other for ours, theirs in results
               for mine, other in zip(ours["steps"], theirs["steps"]))
    steps = sum(len(theirs["steps"]) for _, theirs in results)
    admitted = sorted({ours["admitted"] for ours, _ in results})
    (version,) = {ours["version"] for ours, _ in results}
    what = "; ".join(ours["ran"] for ours, _ in results)
    return (f"| {library} | {version} | {what} | {same} of {steps} | "
            f"{', '.join(map(str, admitted))} of {CALLS}, limit {LIMIT} |")


def test_the_table_is_what_ran(run, request):
    """The rows of libraries that cannot be run here stay as they are."""
    before, table, after = re.fullmatch(
        rf"(.*\n## What ran\n.*?{re.escape(HEAD)})((?:\|[^\n]*\n)+)(\n.*)", PAGE.read_text(encoding="utf-8"), re.S).groups()
    written = {line.split(" | ")[0][2:]: line for line in table.splitlines()}
    rows, skipped = dict.fromkeys(LIBRARIES), {}
    for library, (_, kinds) in LIBRARIES.items():
        try:
            rows[library] = row(library, [run(library, kind) for kind in kinds])
        except pytest.skip.Exception as reason:
            rows[library] = written.get(library)
            skipped[library] = str(reason)
    if request.config.getoption("--update"):
        lines = "".join(f"{line}\n" for line in rows.values() if line)
        PAGE.write_text(before + lines + after, encoding="utf-8")
    else:
        assert list(written.values()) == list(rows.values()), "pytest --update writes the table anew"
    if skipped:
        pytest.skip(f"rows that nothing was compared with: {skipped}")


def test_what_the_pages_promise_is_what_runs():
    """The first table, and README, name the libraries that are run, and those that are known by hash."""
    first = PAGE.read_text(encoding="utf-8").split("**Contents:**")[0]
    names = [re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", name) for name in re.findall(r"^\| ([^|]+?) \(", first, re.M)]
    assert names == [*LIBRARIES, *NOT_RUN]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"The libraries of\s+\[this list\]\(docs/limiter-libraries.md\), which count in Redis, run unchanged",
                     readme)
    count, languages = re.search(r"\[(\d+) of ([^]]+)\]\(docs/limiter-libraries.md\)", readme).groups()
    assert int(count) == len(names)
    of = {language for language, _ in LIBRARIES.values()} | set(NOT_RUN.values())
    assert {language.lower() for language in languages.split(", ")} == of


def ends_of(versions):
    """The first and the last of some versions, to the minor one."""
    numbers = sorted(tuple(map(int, re.findall(r"\d+", version)[:2])) for version in versions)
    return numbers[0], numbers[-1]


def test_the_page_lists_the_versions_whose_scripts_are_known():
    known, listed = {}, {}
    source = (ROOT / "src/server/resp/script/known.c").read_text(encoding="utf-8")
    for library, first, last in re.findall(r"/\* (.+) (\S+) to (\S+) \*/", source):
        known.setdefault(library, []).extend((first, last))
    table = PAGE.read_text(encoding="utf-8").split("## Recognised scripts")[1].split("## Differences")[0]
    for library, versions in re.findall(r"^\| ([^|]+?)(?:, of [^|]+)? \| (v?\d[^|]*) \|", table, re.M):
        listed.setdefault(library, []).extend(re.findall(r"\d+(?:\.\d+)*", versions))
    assert known and {library: ends_of(versions) for library, versions in known.items()} == {
        library: ends_of(versions) for library, versions in listed.items()}


# --- The examples of docs/limiter-libraries.md ------------------------------------------------------

def examples(language, port):
    text = PAGE.read_text(encoding="utf-8")
    found = [part.split("```", 1)[0] for part in text.split(f"```{language}\n")[1:]]
    assert found and all("6380" in example for example in found)
    return [example.replace("6380", str(port)) for example in found]


def run_example(folder, weir, language, name, *command, work="work"):
    for example in examples(language, weir.redis_port):
        (folder.path / work / name).write_text(example, encoding="utf-8")
        done = folder.run(*command, folder=work)
        assert done.stdout.split() == ["allowed", "allowed", "denied"], done.stdout + done.stderr


def test_examples_of_node(folder, command_of, weir):
    run_example(folder, weir, "js", "example.js", command_of("node")[0], "example.js")


def test_examples_of_python(folder, command_of, weir):
    run_example(folder, weir, "python", "example.py", command_of("python")[0], "example.py")


def test_examples_of_go(folder, command_of, weir):
    assert command_of("go")
    (folder.path / "work/go/example").mkdir(mode=0o755)
    run_example(folder, weir, "go", "main.go", "go", "run", "main.go", work="work/go/example")
