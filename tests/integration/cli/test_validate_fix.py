# SPDX-License-Identifier: Apache-2.0
"""What is deprecated: how `weir validate`, the daemon and `weir doctor` tell of it, and `--fix`."""

import json
import os
import stat

import pytest
from daemon.weir import Weir
from model.program import run_weir

LATER = " (weir 0.5.0 will refuse this)"


def validate(path, *options):
    done = run_weir("validate", *options, path)
    return done.returncode, done.stdout, done.stderr


def write(tmp_path, text):
    path = tmp_path / "weir.yaml"
    path.write_text(text)
    return path


def test_a_deprecated_file_is_valid_and_with_strict_is_not(tmp_path):
    path = write(tmp_path, "limits:\n  - { name: a, key: [tenant], rate: 9/s }\n")
    status, out, line = validate(path)
    assert status == 0 and f"{path}: OK, 1 limit\n" in out
    assert line.startswith(f"{path}:2:22: unknown attribute `tenant`; ")
    assert line.endswith(LATER + "\n") and line.count("\n") == 1
    assert validate(path, "--strict")[::2] == (1, line)
    assert validate(path, "--strict", "--quiet") == (1, "", line)


def test_a_server_starts_and_reloads_with_it_and_says_so(tmp_path):
    text = "limits:\n  - { name: a, key: [tenant], rate: 9/s }\n"
    with Weir(tmp_path, text) as weir:
        assert "level=error" in weir.wait_event("rules_deprecated")
        assert weir.metrics()["weir_rules_deprecated"] == 1
        weir.write_rules(text + "  - { name: b, key: [tool], rate: 9/s }\n")
        assert "event=reloaded" in weir.reload()
        assert "`tool`" in weir.wait_event("rules_deprecated", 3)
        assert weir.metrics()["weir_rules_deprecated"] == 2
        weir.write_rules("attributes: [tenant]\n" + text)
        assert "event=reloaded" in weir.reload()
        assert weir.metrics()["weir_rules_deprecated"] == 0
        assert weir.text().count("event=rules_deprecated") == 3


def test_doctor_warns_of_it(tmp_path):
    path = write(tmp_path, "limits:\n  - { name: a, key: [tenant], rate: 9/s }\n")
    done = run_weir("doctor", "--json", "--config", path)
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert findings["rules_deprecated"]["level"] == "warning"
    assert "tenant" in findings["rules_deprecated"]["text"]


FIXES = [
    ("limits: [{ name: a, key: [t, u2], rate: 9/s }]\n",
     "attributes: [t, u2]\nlimits: [{ name: a, key: [t, u2], rate: 9/s }]\n"),
    ("# first\nversion: 1\nlimits: [{ name: a, key: [t], rate: 9/s }] # last\n",
     "# first\nversion: 1\nattributes: [t]\nlimits: [{ name: a, key: [t], rate: 9/s }] # last\n"),
    ("attributes: [own]\nlimits: [{ name: a, key: [t], rate: 9/s }]\n",
     "attributes: [own, t]\nlimits: [{ name: a, key: [t], rate: 9/s }]\n"),
    ("attributes: []\nlimits: [{ name: a, key: [t], rate: 9/s }]\n",
     "attributes: [t]\nlimits: [{ name: a, key: [t], rate: 9/s }]\n"),
    ("attributes:\n  - own\nlimits: [{ name: a, key: [t], rate: 9/s }]\n",
     "attributes:\n  - t\n  - own\nlimits: [{ name: a, key: [t], rate: 9/s }]\n"),
    ("---\nlimits: [{ name: a, key: [t], rate: 9/s }]\n",
     "---\nattributes: [t]\nlimits: [{ name: a, key: [t], rate: 9/s }]\n"),
]


@pytest.mark.parametrize("before, after", FIXES)
def test_fix_changes_what_is_deprecated_and_nothing_else(tmp_path, before, after):
    path = write(tmp_path, before)
    path.chmod(0o640)
    status, out, err = validate(path, "--fix", "--strict")
    assert (status, err) == (0, ""), err
    assert ": fixed " in out
    assert path.read_text() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["weir.yaml"]
    assert ": fixed " not in validate(path, "--fix", "--strict")[1]
    assert path.read_text() == after


@pytest.mark.parametrize("text", [
    "limits: [{ name: a, key: [], match: { paht: /a }, rate: 9/s }]\n",  # a mistake, not a name
    "{ limits: [{ name: a, key: [t], rate: 9/s }] }\n",  # no place for a line
    "attributes: own\nlimits: [{ name: a, key: [t], rate: 9/s }]\n",
    "limits: [{ name: a, key: [t], rate: 9/s, foo: 1 }]\n",  # has errors
])
def test_fix_leaves_what_it_cannot_mend(tmp_path, text):
    path = write(tmp_path, text)
    status, _, err = validate(path, "--fix", "--strict")
    assert status == 1 and err != ""
    assert path.read_text() == text


ESCAPES = [
    ("user-agent: ~*(bot)", r"user-agent: \~*(bot)"),
    ("user-agent: '^it''s'", r"user-agent: '\^it''s'"),
    ("user-agent: 'it''s [ab]'", r"user-agent: 'it''s \[ab]'"),
    ('user-agent: "a\\\\\\"b [é].*"', 'user-agent: "a\\\\\\"b \\\\[é]\\\\.*"'),
    ("user-agent: [x, 'é.*', 'a.*b.{c,d}']", r"user-agent: [x, 'é\.*', 'a\.*b.\{c,d}']"),
]


@pytest.mark.parametrize("before, after", ESCAPES)
def test_fix_puts_a_backslash_before_what_is_meant_as_it_stands(tmp_path, before, after):
    text = "limits:\n- name: a\n  key: []\n  rate: 9/s\n  match:\n    # é\n    header."
    path = write(tmp_path, text + before + "\n")
    status, _, err = validate(path, "--fix", "--strict")
    assert (status, err) == (0, ""), err
    assert path.read_text() == text + after + "\n"


def test_fix_declares_and_escapes_in_one_run(tmp_path):
    path = write(tmp_path, "limits: [{ name: a, key: [t], match: { u7: '^x' }, rate: 9/s }]\n")
    status, _, err = validate(path, "--fix", "--strict")
    assert (status, err) == (0, ""), err
    assert path.read_text() == ("attributes: [t, u7]\n"
                                "limits: [{ name: a, key: [t], match: { u7: '\\^x' }, rate: 9/s }]\n")
