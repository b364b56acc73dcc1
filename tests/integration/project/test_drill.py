# SPDX-License-Identifier: Apache-2.0
"""The drill of docs/guides/production.md: a burst, a lost node, a lost Redis, its return. Two nodes, a
real redis-server; what the page does to processes is done to these, on free ports."""

import re
import subprocess

import pytest

from daemon.redis_server import RedisServer
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir
from model.program import ROOT, weir_path

PAGE = (ROOT / "docs" / "guides" / "production.md").read_text(encoding="utf-8")
RULES = (ROOT / "examples" / "drill" / "weir.yaml").read_text(encoding="utf-8")
SECTION = PAGE.split("## 7. Rehearse what goes wrong", 1)[1].split("\n## ", 1)[0]
SERVES = re.findall(r"^\$ (weir serve .*)$", SECTION, re.M)
COMMANDS = re.findall(r"^\$ (.*?)(?: +# .*)?$", SECTION, re.M)


def test_the_nodes_of_the_page_run_on_one_machine():
    addresses = [re.findall(r"--(?:http|admin) (\S+)", command) for command in SERVES]
    assert len(set(addresses[0] + addresses[1])) == 4 and SERVES[2:] == SERVES[:1]


def test_the_drill_has_all_its_steps():
    kinds = [command.split()[0] for command in COMMANDS]
    assert kinds.count("ask") == 11 and kinds.count("systemctl") == 2 and kinds.count("weir") == 3
    assert {command.split()[5] for command in COMMANDS if command.startswith("ask ")} == {"0", "25", "30", "35", "60", "200"}


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    with RedisServer(tmp_path / "redis") as redis:
        rules = RULES.replace("redis://127.0.0.1:6379", redis.url)
        folders = [tmp_path / "one", tmp_path / "two"]
        for folder in folders:
            folder.mkdir()
        with Weir(folders[0], rules) as one, Weir(folders[1], rules) as two:
            yield redis, one, two


def stores_are(up, *nodes):
    def all_are():
        return all(value == up for node in nodes for name, value in node.metrics().items() if name.startswith("weir_store_up"))
    wait_until(all_are, what=f"weir_store_up {up}")


def act(command, redis, one, two):
    """What an administrator does, and until each node has seen it."""
    if command == "systemctl stop redis-server":
        redis.kill()
        stores_are(0, one, two)
    elif command == "systemctl start redis-server":
        redis.start()
        stores_are(1, one, two)
    elif command == "kill -KILL %1":
        one.kill()
    else:
        assert command == SERVES[0]
        one.start()


def test_the_drill(site):
    redis, one, two = site
    define = next(command for command in COMMANDS if command.startswith("ask()"))
    asked = 0
    assert COMMANDS[:2] == SERVES[:2]
    for command in COMMANDS[2:]:
        if command.startswith(("systemctl", "kill", "weir serve")):
            act(command, redis, one, two)
        elif command.startswith("ask "):
            here = command.replace("8080", one.http_address.rpartition(":")[2]).replace(
                "8081", two.http_address.rpartition(":")[2])
            script = f"weir() {{ {weir_path()} \"$@\"; }}\n{define}\n{here}"
            done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
            assert done.returncode == 0, command + "\n" + done.stdout + done.stderr
            asked += 1
    assert asked == 11
