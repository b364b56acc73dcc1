# SPDX-License-Identifier: Apache-2.0
"""What docs/operations says to operators, done: copies of the state and of the history, a state of
another version, defaults of the server, alerts."""

import re
import shutil
import sqlite3

from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir

PAGES = ROOT / "docs" / "operations"
QUOTA = {"name": "quota", "key": ["user"], "quota": "100/year"}
VERSION_AT = 8  # of the state file's header: a 32-bit number


def page(name):
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def used(weir):
    """How much a user has used before this request, which counts too."""
    answer = weir.check(attributes={"user": "ann"}).json
    return 99 - answer["limits"][0]["remaining"]


def test_a_copy_of_the_state_brings_back_its_counts(tmp_path):
    state, copy = tmp_path / "state", tmp_path / "copy"
    rules = rules_of(QUOTA, state={"file": str(state), "size": "1MiB"})
    weir = Weir(tmp_path, rules)
    with weir:
        assert [used(weir) for _ in range(3)] == [0, 1, 2]
        weir.stop()
        shutil.copy2(state, copy)
        weir.start()
        assert [used(weir) for _ in range(2)] == [3, 4]
        weir.stop()
        shutil.copy2(copy, state)
        weir.start()
        assert used(weir) == 3
        weir.stop()
    shown = run_weir("explain", "--config", weir.config, "--state", copy, "-a", "user=ann")
    assert re.search(r"\b97\b", shown.stdout), shown.stdout


def test_a_copy_of_the_history_brings_back_bans(tmp_path):
    """Made by SQLite while weir runs, as the page has it."""
    history, copy = tmp_path / "standing", tmp_path / "copy"
    socket = f"unix:{tmp_path}/admin.sock"
    rules = rules_of(standing={"by": ["user"], "file": str(history)})
    weir = Weir(tmp_path, rules, admin=socket)
    with weir:
        assert run_weir("ban", "user=ann", "1h", "--yes", "--admin", socket).returncode == 0
        with sqlite3.connect(history) as source, sqlite3.connect(copy) as target:
            source.backup(target)
        source.close()
        target.close()
        assert run_weir("unban", "user=ann", "--admin", socket).returncode == 0
        assert "ann" not in run_weir("standing", "list", "--admin", socket).stdout
        weir.stop()
        for name in ("standing.map", "standing-wal", "standing-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        shutil.copy(copy, history)
        weir.start()
        assert "user=ann" in run_weir("standing", "list", "--admin", socket).stdout


def test_a_state_of_a_later_version_is_refused_in_the_words_of_the_page_and_kept(tmp_path):
    state = tmp_path / "state"
    rules = rules_of(QUOTA, state={"file": str(state), "size": "1MiB"})
    weir = Weir(tmp_path, rules)
    with weir:
        weir.stop()
    content = bytearray(state.read_bytes())
    version = int.from_bytes(content[VERSION_AT:VERSION_AT + 4], "little")
    content[VERSION_AT:VERSION_AT + 4] = (version + 1).to_bytes(4, "little")
    state.write_bytes(content)
    done = run_weir("serve", "--config", weir.config, "--http", "127.0.0.1:0", "--admin", "off")
    [words] = re.findall(r"refused: `(a state file .*?)`", page("upgrade"))
    assert done.returncode == 1 and f"{state}: {words}: " in done.stderr
    assert state.read_bytes() == content


def test_the_defaults_of_the_server_are_those_of_the_page(tmp_path):
    """Those of the loader: tests/unit/rules/test_defaults.c."""
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `(.*?)` \|", page("defaults"), re.M))
    usage = run_weir("serve", "--help").stdout
    for listener in ("http", "admin"):
        assert re.search(rf"--{listener}=.*\(default (.*)\)", usage)[1] == rows[f"server.{listener}"]
    rules = tmp_path / "weir.yaml"
    rules.write_text(rules_of({"name": "a", "key": ["user"], "rate": "1/s"}), encoding="utf-8")
    shown = run_weir("capacity", "--config", rules).stdout
    assert int(re.search(r"in a state of (\d+) KiB", shown)[1]) == 1024 * int(
        rows["state.size"].removesuffix("MiB"))


def test_the_page_of_monitoring_has_every_alert():
    rules = (ROOT / "packaging" / "prometheus" / "weir.rules.yml").read_text(encoding="utf-8")
    alerts = re.findall(r"- alert: (\w+)", rules)
    assert re.findall(r"^\| `(Weir\w+)` \|", page("monitoring"), re.M) == alerts


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in PAGES.glob("*.md"):
        assert f"(operations/{path.name}" in index, path.name
