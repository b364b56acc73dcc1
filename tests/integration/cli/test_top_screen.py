# SPDX-License-Identifier: Apache-2.0
"""`weir top` on a terminal: a real tmux shows it, and sends keys."""

import shutil
import subprocess

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")

LIMITS = [
    {"name": "search", "match": {"path": "/search/:what"}, "key": ["user"], "rate": "3/8d",
     "algorithm": "token_bucket"},
    {"name": "a-limit-with-a-very-long-name", "key": ["user"], "rate": "1000/366d"},
]


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, folder, columns, rows, *command, **env):
        self.tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        sets = [f"{name}={value}" for name, value in env.items()]
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), "env", *sets, *command)

    def run(self, *arguments):
        return subprocess.run([*self.tmux, *arguments], check=False, capture_output=True,
                              text=True, timeout=60)

    def text(self, *options):
        return self.run("capture-pane", "-p", *options).stdout

    def wait(self, holds, *options):
        return wait_until(lambda: holds(self.text(*options)) and self.text(*options))

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def ended(self):
        return self.run("list-sessions").returncode != 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("kill-server")


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weir")
    with Weir(folder, rules_of(*LIMITS)) as weir:
        for user, times in (("ann", 9), ("bob", 4), ("\x1b[31mred", 1)):
            for _ in range(times):
                weir.check(method="GET", path="/search/x", attributes={"user": user})
        yield weir


def top(weir, folder, columns=80, rows=24, **env):
    # The day, so that a slow machine sees the same.
    return Terminal(folder, columns, rows, weir_path(), "top", "--admin", weir.admin_address,
                    "--interval", "1", **({"LANG": "C.UTF-8"} | env))


def to_the_day(terminal):
    terminal.wait(lambda text: "user=ann" in text)
    terminal.keys("w", "w")
    terminal.wait(lambda text: "w day" in text and "user=ann" in text)


def keys_of(text):
    """The rows of keys: (limit, key)."""
    lines = text[text.index("KEY  "):].splitlines()[1:]
    return [tuple(line.split()[:2]) for line in lines if line.strip()]


def test_it_fits_80_columns_and_shows_how_full_keys_are_and_until_when(tmp_path, weir):
    with top(weir, tmp_path) as terminal:
        to_the_day(terminal)
        text = terminal.text()
        lines = text.splitlines()
        assert all(len(line) <= 80 for line in lines)
        assert "req/s" in lines[0] and lines[0].rstrip()[-3] == ":"
        assert "a-limit-with-a-very~ sliding_window" in text
        ann = next(line for line in lines if line.startswith("search") and "user=ann" in line)
        assert ann.split()[2:5] == ["9", "6", "100%"] and ("7d" in ann or "8d" in ann)
        assert "user=%1b[31mred" in text
        assert keys_of(text)[0][1] == "user=ann"


def test_keys_sort_filter_pause_and_end(tmp_path, weir):
    with top(weir, tmp_path, 100, 30) as terminal:
        to_the_day(terminal)
        terminal.keys("S")
        text = terminal.wait(lambda text: "S denied" in text and
                             keys_of(text)[:1] == [("search", "user=ann")])
        assert keys_of(text)[1] == ("search", "user=bob")
        terminal.keys("/")
        terminal.wait(lambda text: "filter: _" in text)
        terminal.keys("b", "o", "x", "BSpace", "b")
        text = terminal.wait(lambda text: "filter: bob_" in text)
        assert {key for _, key in keys_of(text)} == {"user=bob"}
        terminal.keys("Enter")
        terminal.wait(lambda text: "/ filter: bob" in text)
        terminal.keys("s", "s")
        terminal.wait(lambda text: "s name" in text)
        terminal.keys("p")
        terminal.wait(lambda text: "p PAUSED" in text)
        assert not terminal.ended()
        terminal.keys("q")
        wait_until(terminal.ended)


def test_sparklines_follow_the_locale_and_colours_the_environment(tmp_path, weir):
    def sparkline(text):
        line = text.splitlines()[1].removeprefix("requests, 1 min").strip()
        return line and line[-1]

    def spark_of(folder, **env):
        folder.mkdir()
        with top(weir, folder, **env) as terminal:
            def shown(text):
                weir.check(method="GET", path="/other", attributes={"user": "dora"})
                return "requests, 1 min" in text and sparkline(text)
            text = terminal.wait(shown, "-e")
            return text

    plain = spark_of(tmp_path / "ascii", LANG="C", LC_ALL="C", NO_COLOR="1")
    assert plain.isascii() and "\x1b[31m" not in plain
    rich = spark_of(tmp_path / "utf8")
    assert any(block in rich for block in "▁▂▃▄▅▆▇█") and "\x1b[36m" in rich
