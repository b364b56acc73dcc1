# SPDX-License-Identifier: Apache-2.0
"""Limiter libraries as they are published, unchanged: the same calls to weir and to a real Redis are
answered alike, and of 8 clients at once exactly the limit is admitted.

They are installed from their registries by lock files with hashes; no script of a package is run at
its installation, and all of their code runs as a user without privileges. Where there is no registry,
the tests are skipped, and say so."""

import json
import subprocess
import sys

import pytest

from daemon.redis import RedisWeir
from daemon.redis_server import RedisServer
from model.program import ROOT
from registry import Folder, needed

SOURCES = ROOT / "tests/integration/server/libraries"
LIMIT = 25  # of each scenario


@pytest.fixture(scope="module", name="folder")
def fixture_folder():
    folder = Folder(SOURCES)
    yield folder
    folder.remove()


@pytest.fixture(scope="module", name="node")
def fixture_node(folder):
    needed("npm")
    folder.install("packages of npm", "npm", "ci", "--ignore-scripts", "--legacy-peer-deps",
                   "--no-audit", "--no-fund", "--silent")
    return ["node", "node.js"]


@pytest.fixture(scope="module", name="python")
def fixture_python(folder):
    interpreter = folder.path / "work/venv/bin/python3"
    # fastapi-limiter imports Debian's fastapi.
    folder.install("venv", sys.executable, "-m", "venv", "--system-site-packages", "venv")
    folder.install("packages of PyPI", interpreter, "-m", "pip", "install", "--quiet", "--no-input",
                   "--no-deps", "--only-binary=:all:", "--require-hashes",
                   "--disable-pip-version-check", "--no-cache-dir", "-r", "requirements.txt")
    return [interpreter, "limiters.py"]


@pytest.fixture(scope="module", name="go")
def fixture_go(folder):
    needed("go")
    folder.install("modules of Go", "go", "build", "-o", "../limiters", ".", folder="work/go")
    return [folder.path / "work/limiters"]


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with RedisWeir(tmp_path_factory.mktemp("weir"), None, "--workers", "2") as weir:
        yield weir


@pytest.fixture(scope="module", name="redis")
def fixture_redis(tmp_path_factory):
    needed("redis-server")
    with RedisServer(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


def scenario(folder, command, library, port):
    done = folder.run(*command, port, library)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def compare(folder, command, library, weir, redis):
    ours = scenario(folder, command, library, weir.redis_port)
    theirs = scenario(folder, command, library, redis.port)
    assert ours["steps"] == theirs["steps"]
    assert ours["admitted"] == LIMIT
    assert theirs["admitted"] >= LIMIT  # some of them check first and count then


@pytest.mark.parametrize("library", [
    "rate-limiter-flexible", "rate-limit-redis", "@fastify/rate-limit",
    "@nest-lab/throttler-storage-redis", "koa-ratelimit"])
def test_node(folder, node, weir, redis, library):
    compare(folder, node, library, weir, redis)


@pytest.mark.parametrize("library", [
    "limits:FixedWindowRateLimiter", "limits:MovingWindowRateLimiter",
    "limits:SlidingWindowCounterRateLimiter", "throttled:FIXED_WINDOW", "throttled:SLIDING_WINDOW",
    "throttled:TOKEN_BUCKET", "throttled:LEAKING_BUCKET", "throttled:GCRA", "pyrate:log",
    "pyrate:gcra", "fastapi:0.1"])
def test_python(folder, python, weir, redis, library):
    compare(folder, python, library, weir, redis)


@pytest.mark.parametrize("library", ["redis_rate", "throttled"])
def test_go(folder, go, weir, redis, library):
    compare(folder, go, library, weir, redis)


def test_ruby(folder, weir, redis):
    needed("ruby")
    if subprocess.run(["ruby", "-r", "rack/attack", "-r", "redis", "-e", ""], check=False,
                      capture_output=True).returncode:
        pytest.skip("ruby-rack-attack and ruby-redis are not installed")
    compare(folder, ["ruby", "rack.rb"], "rack-attack", weir, redis)


# --- The examples of docs/limiter-libraries.md ------------------------------------------------------

def examples(language, port):
    text = (ROOT / "docs/limiter-libraries.md").read_text(encoding="utf-8")
    found = [part.split("```", 1)[0] for part in text.split(f"```{language}\n")[1:]]
    assert found and all("6380" in example for example in found)
    return [example.replace("6380", str(port)) for example in found]


def run_example(folder, weir, language, name, *command, work="work"):
    for example in examples(language, weir.redis_port):
        (folder.path / work / name).write_text(example, encoding="utf-8")
        done = folder.run(*command, folder=work)
        assert done.stdout.split() == ["allowed", "allowed", "denied"], done.stdout + done.stderr


def test_examples_of_node(folder, node, weir):
    run_example(folder, weir, "js", "example.js", node[0], "example.js")


def test_examples_of_python(folder, python, weir):
    run_example(folder, weir, "python", "example.py", python[0], "example.py")


def test_examples_of_go(folder, go, weir):
    assert go
    (folder.path / "work/go/example").mkdir(mode=0o755)
    run_example(folder, weir, "go", "main.go", "go", "run", "main.go", work="work/go/example")
