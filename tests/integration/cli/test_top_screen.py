# SPDX-License-Identifier: Apache-2.0
"""`weir top` on a terminal: a real tmux shows it, and sends keys."""

import json
import re
import shutil
import subprocess
import unicodedata

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir, weir_path

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")

TOKEN = "operator0123456789"
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


def top(weir, folder, columns=80, rows=24, options=(), **env):
    # The day, so that a slow machine sees the same.
    return Terminal(folder, columns, rows, weir_path(), "top", "--admin", weir.admin_address,
                    *(["--token", weir.admin_token] if weir.admin_token else []),
                    "--interval", "1", *options, **({"LANG": "C.UTF-8"} | env))


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
        assert r"user=\x1b[31mred" in text
        assert keys_of(text)[0][1] == "user=ann"


def test_names_of_all_scripts_are_cut_and_aligned_by_what_a_terminal_shows(tmp_path):
    names = {"小林": "小林", "小" * 40: "小" * 10 + "~", "ä" * 60: "ä" * 21 + "~", "100% ann": "100%"}
    with Weir(tmp_path, rules_of(*LIMITS)) as weir:
        for user in names:
            weir.check(method="GET", path="/search/x", attributes={"user": user})
        with top(weir, tmp_path) as terminal:
            to_the = {f"user={shown}" for shown in names.values()}
            text = terminal.wait(lambda text: to_the <= {key for _, key in keys_of(text)} if "KEY  " in text else False)
        rows = text[text.index("KEY  "):].splitlines()[1:]
        ends = {width(row[:row.rindex("%")]) for row in rows if "user=" in row}
        assert len(ends) == 1, text


def width(text):
    """The columns of a terminal."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


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
        terminal.keys("Escape", "s", "s")  # a lone Escape swallows no key
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


def test_a_wide_terminal_shows_more_of_names(tmp_path, weir):
    with top(weir, tmp_path, 140, 24) as terminal:
        to_the_day(terminal)
        lines = terminal.text().splitlines()
    assert any(line.startswith("a-limit-with-a-very-long-name ") for line in lines)
    heading = next(line for line in lines if "ALGORITHM" in line)
    assert len(heading.rstrip()) > 80 and all(len(line) <= 140 for line in lines)


@pytest.fixture(scope="module", name="many")
def fixture_many(tmp_path_factory):
    """Thirty keys; a limit that only counts; one whose scale is 50 %."""
    limits = [{"name": "plain", "key": ["user"], "rate": "1000/366d"},
              {"name": "counts", "key": ["user"], "rate": "1/366d", "shadow": True},
              {"name": "halved", "key": [], "rate": "1000/366d", "adaptive": "backend"}]
    backend = {"signals": {"queue": "pushed"}, "table": [{"queue": 100, "x": "50%"}]}
    rules = rules_of(*limits, adaptive={"backend": backend},
                     server={"admin": {"listen": "127.0.0.1:0", "token": TOKEN}})
    with Weir(tmp_path_factory.mktemp("many"), rules, admin=None) as weir:
        with weir.admin() as admin:
            assert admin.post("/v1/health", {"signals": {"queue": 150}, "ttl": 600}).status == 200
            wait_until(lambda: b'"scale_percent":50' in admin.request("GET", "/v1/limits").body, what="the scale")
        for i in range(30):
            for _ in range(2):
                weir.check(attributes={"user": f"u{i:02d}"})
        yield weir


def test_keys_scroll_and_the_last_one_stays(tmp_path, many):
    with top(many, tmp_path) as terminal:
        terminal.wait(lambda text: "user=u" in text)
        terminal.keys("w", "w")
        terminal.wait(lambda text: "w day" in text and len(keys_of(text)) > 5)
        terminal.keys("/", "p", "l", "a", "i", "n", "Enter")
        before = keys_of(terminal.wait(lambda text: "/ filter: plain" in text and
                                       all(limit == "plain" for limit, _ in keys_of(text))))
        terminal.keys("j", "Down", "j")
        after = keys_of(terminal.wait(lambda text: keys_of(text)[:1] == before[3:4]))
        assert after[:len(before) - 3] == before[3:]
        terminal.keys("k", "Up")
        terminal.wait(lambda text: keys_of(text)[:1] == before[1:2])
        terminal.keys(*["j"] * 50)
        last = keys_of(terminal.wait(lambda text: len(keys_of(text)) == 1))
        terminal.keys("k")
        assert keys_of(terminal.wait(lambda text: len(keys_of(text)) == 2))[1:] == last


def test_limits_that_only_count_or_are_scaled_are_marked(tmp_path, many):
    with top(many, tmp_path) as terminal:
        text = terminal.wait(lambda text: "counts" in text and "halved" in text)
    rows = {line.split()[0]: line for line in reversed(text.splitlines()) if line.strip()}  # keys come last
    assert rows["counts"].split()[1] == "shadow"
    assert re.match(r"halved +sliding_w\S* 50%", rows["halved"])
    assert rows["plain"].split()[1] == "sliding_window"


def test_it_connects_again(tmp_path):
    limits = rules_of(*LIMITS)
    with Weir(tmp_path, limits) as weir:
        address = weir.admin_address
        weir.check(method="GET", path="/search/x", attributes={"user": "ann"})
        for name in ("terminal", "again"):
            (tmp_path / name).mkdir()
        with top(weir, tmp_path / "terminal") as terminal:
            terminal.wait(lambda text: "user=ann" in text)
            weir.stop()
            terminal.wait(lambda text: "no connection, trying again: " in text)
            assert "user=ann" in terminal.text()  # what was known stays on the screen
            with Weir(tmp_path / "again", limits, admin=address) as again:
                again.check(method="GET", path="/search/x", attributes={"user": "bob"})
                terminal.wait(lambda text: "user=bob" in text and "no connection" not in text)


@pytest.mark.parametrize("options, zone, ends", [((), "IST-5:30", r"\d\d:\d\d:\d\d\+05:30"),
                                                 (("--utc",), "IST-5:30", r"\d\d:\d\d:\d\dZ")])
def test_the_time_on_top_has_its_zone(tmp_path, weir, options, zone, ends):
    with top(weir, tmp_path, options=options, TZ=zone) as terminal:
        text = terminal.wait(lambda text: "req/s" in text)
    assert re.search(ends + "$", text.splitlines()[0].rstrip())


def test_rounds_as_json(many):
    command = ("top", "--admin", many.admin_address, "--token", TOKEN, "--json")
    done = run_weir(*command, "--once", "--count", "3")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1
    said = json.loads(done.stdout)
    limits = {limit["name"]: limit for limit in said["limits"]["limits"]}
    assert limits["counts"]["shadow"] is True and limits["halved"]["scale_percent"] == 50
    assert len(said["keys"]["keys"]) <= 3 and "values" in said["last_second"]
    with subprocess.Popen([weir_path(), *command, "--interval", "1"], stdout=subprocess.PIPE,
                          text=True) as program:
        rounds = [json.loads(program.stdout.readline()) for _ in range(2)]
        program.kill()
    assert [sorted(one) for one in rounds] == [sorted(said)] * 2
