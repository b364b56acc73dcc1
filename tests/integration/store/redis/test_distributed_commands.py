# SPDX-License-Identifier: Apache-2.0
"""The distributed mode is one command: script/server --redis, examples/cluster/run."""

import os
import signal
import subprocess
import threading

import pytest

from daemon.http import Client
from daemon.nodes import shared_rules
from daemon.redis_server import RedisServer, free_port
from daemon.waiting import wait_until
from model.program import ROOT, run_weir, weir_path

LOGIN = {"method": "POST", "path": "/login", "ip": "192.0.2.1"}


class Script:
    """A script in the foreground, as in a terminal: in a process group of its own."""

    def __init__(self, *command, **env):
        self.command, self.env = command, env
        self.process = self.reader = None
        self.lines = []

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=os.environ | {"WEIR": weir_path()} | self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stdout),
                                       daemon=True)
        self.reader.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_for(self, text):
        wait_until(lambda: any(text in line for line in self.lines) or self.process.poll() is not None)
        assert any(text in line for line in self.lines), "".join(self.lines)

    def children(self):
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit()
                and status(pid)[1:2] == [str(self.process.pid)]]


def status(pid):
    """[state, parent's pid, …]; nothing when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def gone(pid):
    """A zombie too: its parent has died, and perhaps nobody waits for it."""
    return status(pid)[:1] in ([], ["Z"])


def assert_five_a_minute(address):
    """Five are admitted. On a machine that is busy Redis may answer too late (503), and such a check
    may have been charged or not."""
    result = []
    with Client(address) as client:
        wait_until(lambda: result.append(client.check(**LOGIN).status) or result[-1] == 429,
                   what="a denial")
    assert set(result) <= {200, 429, 503}
    assert 5 - result.count(503) <= result.count(200) <= 5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_script_server_starts_a_redis_of_its_own_and_ends_it(number):
    http, admin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    with Script("script/server", "--http", http, "--redis", "--admin", admin) as script:
        script.wait_for(f"http://{admin}/playground/")
        script.wait_for("event=store_up")
        (redis,) = script.children()
        assert_five_a_minute(http)
        script.process.send_signal(number)
        assert script.process.wait(30) == (0 if number == signal.SIGTERM else -signal.SIGKILL)
        wait_until(lambda: gone(redis), what="the end of its redis-server")


def test_script_server_takes_a_redis_that_runs(tmp_path):
    http = f"127.0.0.1:{free_port()}"
    with RedisServer(tmp_path) as redis:
        with Script("script/server", "--redis", redis.url, "--http", http, "--admin",
                    "off") as script:
            script.wait_for("event=store_up")
            assert not script.children()
            assert not any("The playground:" in line for line in script.lines)  # --admin off
            assert_five_a_minute(http)
            assert any("login" in key for key in redis.keys())


def test_three_nodes_behind_haproxy_are_one_command():
    port = free_port()
    with Script("examples/cluster/run", PORT=str(port)) as script:
        script.wait_for("Ctrl-C")
        # Redis, three nodes, HAProxy; what prints the text that was waited for may not have ended yet.
        wait_until(lambda: len(script.children()) == 5)
        children = script.children()
        assert_five_a_minute(f"127.0.0.1:{port}")
        for node in (1, 2, 3):
            with Client(f"127.0.0.1:{port + 1010 + node}") as admin:
                text = admin.request("GET", "/metrics").body.decode()
            assert "\nweir_requests_decided_total 0\n" not in text, f"node {node} was not asked"
        script.process.send_signal(signal.SIGTERM)
        assert script.process.wait(30) == 0
        assert all(gone(pid) for pid in children)


# --- Without a Redis ---------------------------------------------------------------------------------

LIMITS = [{"name": "all", "key": [], "rate": "1000/s", "mode": "leased"},
          {"name": "user", "key": ["path", "user"], "rate": "5/s", "hash_tag": "user"}]


def test_validate_asks_no_redis_and_knows_its_urls(tmp_path):
    rules = tmp_path / "weir.yaml"
    rules.write_text(shared_rules("redis-cluster://redis.invalid:7000", *LIMITS), encoding="utf-8")
    done = run_weir("validate", rules)
    assert done.stdout.startswith(f"{rules}: OK, 2 limits, in Redis: 1 exact, 1 leased\n")
    rules.write_text(shared_rules("redis://:secret@redis.invalid:70000", *LIMITS), encoding="utf-8")
    done = run_weir("validate", rules)
    assert done.returncode == 1 and "the port must be a number" in done.stderr
    assert "secret" not in done.stderr
    rules.write_text(shared_rules("redis://h", *LIMITS, nodes=0), encoding="utf-8")
    assert "`nodes` must be 1 to 1000" in run_weir("validate", rules).stderr


def test_explain_tells_where_a_limit_lives(tmp_path):
    rules = tmp_path / "weir.yaml"
    rules.write_text(shared_rules("redis://redis.invalid", *LIMITS), encoding="utf-8")
    done = run_weir("explain", "--config", rules, "--path", "/", "--attribute", "user=bob")
    assert done.returncode == 0, done.stderr
    assert "    store  redis, leased\n" in done.stdout
    assert "    store  redis, exact, placed by user\n" in done.stdout
