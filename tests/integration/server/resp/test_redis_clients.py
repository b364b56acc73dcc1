# SPDX-License-Identifier: Apache-2.0
"""Clients that people use, unmodified and without options: redis-cli, redis-benchmark, redis-py
(with and without hiredis), ioredis."""

import json
import os
import shutil
import subprocess

import pytest

from daemon.redis import RedisWeir
from daemon.weir import rules_of

LOGIN = {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip"],
         "algorithm": "sliding_log", "rate": "2/hour"}
SECONDS_MAX = 120


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with RedisWeir(tmp_path_factory.mktemp("weir"), rules_of(LOGIN), "--workers", "1") as weir:
        yield weir


def needed(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return program


def run(*command, stdin=None, **options):
    done = subprocess.run([str(part) for part in command], input=stdin, capture_output=True,
                          text=True, timeout=SECONDS_MAX, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- Redis' own tools -----------------------------------------------------------------------------

def test_redis_cli(weir):
    cli = needed("redis-cli"), "-p", weir.redis_port
    assert run(*cli, "CL.THROTTLE", "cli", 15, 30, 60).split() == ["0", "16", "15", "-1", "2"]
    assert run(*cli, "-3", "WEIR.CHECK", "path", "/x", "method", "GET").startswith("allowed")
    assert run(*cli, stdin="PING\nSELECT 3\nEXISTS cli\n").split() == ["PONG", "OK", "0"]
    assert "redis_version" in run(*cli, "INFO")
    assert run(*cli, "--pipe", stdin="PING\r\n" * 1000).endswith("replies: 1000\n")
    assert "cl.throttle" in run(*cli, "COMMAND", "DOCS")


def test_redis_cli_shows_help_for_our_commands(weir):
    """From COMMAND DOCS."""
    text = run(needed("redis-cli"), "-p", weir.redis_port, stdin="help cl.throttle\nPING\n")
    assert "as redis-cell does" in text and "PONG" in text


@pytest.mark.parametrize("options", [("-t", "ping"), ("-P", "32", "CL.THROTTLE", "key:__rand_int__",
                                                      "15", "30", "60")])
def test_redis_benchmark(weir, options):
    text = run(needed("redis-benchmark"), "-p", weir.redis_port, "-n", 20000, "-r", 1000, "-q",
               *options)
    assert "requests per second" in text


# --- redis-py -------------------------------------------------------------------------------------

def redis_py():
    return pytest.importorskip("redis", reason="python3-redis is not installed")


@pytest.fixture(name="parser", params=["PythonParser", "HiredisParser"])
def fixture_parser(request):
    redis_py()
    if request.param == "HiredisParser":
        pytest.importorskip("hiredis", reason="python3-hiredis is not installed")
    from redis import connection
    name = request.param
    if not hasattr(connection, name):  # since redis-py 5
        if name == "HiredisParser" and not redis_py().utils.HIREDIS_AVAILABLE:
            pytest.skip("this redis-py wants a newer python3-hiredis")
        name = {"PythonParser": "_RESP2Parser", "HiredisParser": "_HiredisParser"}[name]
    return getattr(connection, name)


def client_of(weir, parser):
    redis = redis_py()
    pool = redis.ConnectionPool(port=weir.redis_port, parser_class=parser, decode_responses=True,
                                client_name="test")
    return redis.Redis(connection_pool=pool)


def test_redis_py(weir, parser):
    client = client_of(weir, parser)
    assert client.ping()
    key = f"py-{parser.__name__}"
    assert client.execute_command("CL.THROTTLE", key, 15, 30, 60) == [0, 16, 15, -1, 2]
    assert client.exists(key) == 1
    assert 0 < client.pttl(key) <= 2000 and client.ttl(key) in (1, 2)
    assert client.delete(key, "nobody") == 1
    assert client.ttl(key) == -2
    assert client.client_getname() == "test"
    assert client.client_id() > 0
    assert client.info()["redis_mode"] == "standalone"
    assert client.config_get("save") == {"save": ""}
    assert "cl.throttle" in client.command()
    assert client.command_count() == len(client.command())
    assert client.dbsize() >= 0
    with pytest.raises(redis_py().ResponseError, match="Couldn't parse as integer: x"):
        client.execute_command("CL.THROTTLE", key, "x", 1, 1)


def test_redis_py_pipelines(weir, parser):
    client = client_of(weir, parser)
    pipeline = client.pipeline(transaction=False)
    key = f"pipe-{parser.__name__}"
    for _ in range(500):
        pipeline.execute_command("THROTTLE", key, 400, 1, 100000)
    replies = pipeline.execute()
    assert [reply[2] for reply in replies[:400]] == list(range(399, -1, -1))
    assert sum(reply[0] for reply in replies) == 400


def test_redis_py_pipelines_are_transactions(weir, parser):
    """Unless their options say otherwise."""
    client = client_of(weir, parser)
    key = f"multi-{parser.__name__}"
    pipeline = client.pipeline()
    for _ in range(3):
        pipeline.execute_command("THROTTLE", key, 10, 1, 100000)
    assert [reply[2] for reply in pipeline.execute()] == [9, 8, 7]
    client.transaction(lambda pipe: pipe.execute_command("THROTTLE", key, 10, 1, 100000))
    assert client.execute_command("THROTTLE", key, 10, 1, 100000)[2] == 5
    pipeline.incr(f"n-{key}").expire(f"n-{key}", 100).ttl(f"n-{key}")
    count, expires, ttl = pipeline.execute()
    assert (count, expires) == (1, True) and 0 < ttl <= 100
    with pytest.raises(redis_py().ResponseError, match="WATCH is not served"):
        client.transaction(lambda pipe: pipe.incr(f"n-{key}"), f"n-{key}")
    assert client.get(f"n-{key}") == "1"


# --- ioredis --------------------------------------------------------------------------------------

SCRIPT = """
const Redis = require("ioredis");
(async () => {
  const redis = new Redis({ port: +process.argv[2] });
  const out = {};
  out.ping = await redis.ping();
  out.first = await redis.call("CL.THROTTLE", "io", 15, 30, 60);
  const pipeline = redis.pipeline();
  for (let i = 0; i < 100; i++) pipeline.call("THROTTLE", "iopipe", 50, 1, 100000);
  out.allowed = (await pipeline.exec()).filter(([error, reply]) => !error && reply[0] === 1).length;
  out.check = await redis.call("WEIR.CHECK", "method", "POST", "path", "/login", "ip", "192.0.2.9");
  out.deleted = await redis.del("io");
  out.error = await redis.call("CL.THROTTLE", "io", "x", 1, 1).catch((error) => error.message);
  console.log(JSON.stringify(out));
  await redis.quit();
})().catch((error) => { console.error(error); process.exit(1); });
"""


@pytest.fixture(scope="module", name="ioredis")
def fixture_ioredis(tmp_path_factory):
    """A folder with ioredis, from the registry; WEIR_IOREDIS names one that is there already."""
    needed("node")
    if "WEIR_IOREDIS" in os.environ:
        return os.environ["WEIR_IOREDIS"]
    needed("npm")
    folder = tmp_path_factory.mktemp("ioredis")
    try:
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
                               "ioredis@5"], cwd=folder, capture_output=True, text=True,
                              timeout=SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm could not install ioredis in time")
    if done.returncode != 0:
        pytest.skip(f"npm could not install ioredis: {done.stderr[-200:]}")
    return folder


def test_ioredis(weir, ioredis, tmp_path):
    script = tmp_path / "test.js"
    script.write_text(SCRIPT, encoding="utf-8")
    out = json.loads(run("node", script, weir.redis_port,
                         env={**os.environ, "NODE_PATH": f"{ioredis}/node_modules"}))
    assert out["ping"] == "PONG"
    assert out["first"] == [0, 16, 15, -1, 2]
    assert out["allowed"] == 50
    assert out["check"][:2] == ["allowed", 1]
    assert out["deleted"] == 1
    assert out["error"] == "Cell error: Store error: Couldn't parse as integer: x"
