# SPDX-License-Identifier: Apache-2.0
"""`weir reload`, by the admin listener and by the pid file; `weir help`, and commands that are misspelt."""

import os
import pty
import signal
import subprocess

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir, weir_path

API = {"name": "api", "key": ["client.ip"], "rate": "3/hour"}


def start(folder, *options):
    return Weir(folder, rules_of(API, server={"admin": {"address": f"unix:{folder}/admin"}}),
                "--workers", "1", "--pid-file", str(folder / "weir.pid"), *options, admin=None)


def test_over_the_listener_it_says_how_it_went(tmp_path):
    with start(tmp_path) as weir:
        done = run_weir("reload", "--admin", f"unix:{tmp_path}/admin")
        assert done.returncode == 0 and ": 1 limit is in use" in done.stdout
        weir.write_rules(weir.config.read_text(encoding="utf-8").replace("3/hour", "3/hoor"))
        done = run_weir("reload", "--admin", f"unix:{tmp_path}/admin")
        assert done.returncode == 1 and f"{weir.config}:1:" in done.stderr
        assert "the rules before stay in use" in done.stderr
        assert weir.check(ip="192.0.2.1").json["limits"][0]["limit"] == 3


def test_the_pid_file_reaches_the_server_and_nothing_else(tmp_path):
    with start(tmp_path) as weir:
        top = subprocess.Popen([weir_path(), "top", "--admin", f"unix:{tmp_path}/admin"],
                               stdout=subprocess.DEVNULL)
        done = run_weir("reload", "--pid-file", str(tmp_path / "weir.pid"))
        assert done.returncode == 0 and f"process {weir.process.pid}" in done.stdout
        weir.wait_event("reloaded")
        assert top.poll() is None
        top.kill()
        top.wait()
        second = subprocess.run([weir_path(), "serve", "--http", "127.0.0.1:0", "--admin", "off",
                                 "--pid-file", str(tmp_path / "weir.pid")], capture_output=True,
                                text=True, timeout=60, check=False)
        assert second.returncode == 1 and "another weir serve" in second.stderr
        assert weir.stop() == 0
    assert not (tmp_path / "weir.pid").exists()


def test_a_pid_file_that_was_left_behind_names_nobody(tmp_path):
    other = subprocess.Popen(["sleep", "60"])
    path = tmp_path / "weir.pid"
    path.write_text(f"{other.pid}\n", encoding="utf-8")
    done = run_weir("reload", "--pid-file", str(path))
    assert done.returncode == 1 and "no running weir serve" in done.stderr
    assert other.poll() is None
    other.kill()
    other.wait()
    assert run_weir("reload", "--pid-file", str(tmp_path / "none")).returncode == 1


def test_kill_9_ends_the_lock(tmp_path):
    with start(tmp_path) as weir:
        os.kill(weir.process.pid, signal.SIGKILL)
        weir.wait()
        wait_until(lambda: run_weir("reload", "--pid-file", str(tmp_path / "weir.pid")).returncode == 1,
                   what="the end of the lock")


@pytest.mark.parametrize("command", ["top", "standing", "reload", "serve"])
def test_help_of_a_command_is_its_option(command):
    asked, shown = run_weir("help", command), run_weir(command, "--help")
    assert asked.returncode == 0 and asked.stdout == shown.stdout != ""


@pytest.mark.parametrize("wrong, meant", [("denails", "denials"), ("relaod", "reload"),
                                          ("standin", "standing"), ("hlep", "help"), ("xyzzy", None)])
def test_a_misspelt_command_is_named(wrong, meant):
    for arguments in ((wrong,), ("help", wrong)):
        done = run_weir(*arguments)
        assert done.returncode == 2 and f"unknown command '{wrong}'" in done.stderr
        assert (f"did you mean '{meant}'" in done.stderr) == (meant is not None)


def at_terminal(*arguments, env):
    """What a command prints on a terminal."""
    master, slave = pty.openpty()
    child = subprocess.Popen([weir_path(), *arguments], stdin=subprocess.DEVNULL, stdout=slave,
                             stderr=slave, env=os.environ | env)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # its end
            break
        if not part:
            break
        shown += part
    child.wait(60)
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_shows_the_line_with_a_caret(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text("version: 1\nlimits:\n  - { name: a, key: [client.ip], rate: 5/mni }\n", encoding="utf-8")
    shown = at_terminal("validate", str(path), env={"NO_COLOR": "1"}).splitlines()
    place = shown[0].split(":")
    assert place[1] == "3" and "did you mean `min`" in shown[0]
    assert shown[1] == "      - { name: a, key: [client.ip], rate: 5/mni }"
    assert shown[2] == " " * (4 + int(place[2]) - 1) + "^"
    assert shown[1][shown[2].index("^"):].startswith("5/mni")
    assert "\033[" in at_terminal("validate", str(path), env={"NO_COLOR": ""})
    assert "^" not in run_weir("validate", str(path)).stderr  # programs read one line a problem
