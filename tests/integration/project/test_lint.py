# SPDX-License-Identifier: Apache-2.0
"""The project's own checks of words, of conditions and of commits: they find what they are for, and nothing else."""

import json
import os
import subprocess
import sys

import pytest

from model.program import ROOT

WORDS = ROOT / "script" / "checks" / "words.py"
NULLS = ROOT / "script" / "checks" / "nulls.py"
SUBJECTS = ROOT / "script" / "checks" / "subjects"
CIRCLES = ROOT / "script" / "checks" / "circles.py"
TALLY = ROOT / "script" / "checks" / "tally.py"
LONGEST = 72


def run(folder, *command, env=None):
    return subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True,
                          timeout=60, check=False, env=os.environ | (env or {}))


def words(folder, name, text):
    """What words.py finds in a file of this name: its exit status and output."""
    (folder / name).write_text(text, encoding="utf-8")
    done = run(folder, sys.executable, WORDS, name)
    assert not done.stderr
    return done.returncode, done.stdout


def nulls(folder, statement):
    (folder / "file.c").write_text(f"void f(void)\n{{\n    {statement}\n}}\n", encoding="utf-8")
    done = run(folder, sys.executable, NULLS, "file.c")
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("statement", [
    "if (p != NULL)", "while (list->next == NULL)", "return a && rows[i].at(x, y) == NULL;",
    "return *p != NULL;", "x = ok && (p = take()) != NULL ? 1 : 2;"])
def test_a_condition_with_null_is_found(tmp_path, statement):
    status, found = nulls(tmp_path, statement)
    assert status == 1 and found.startswith("file.c:3: ")


@pytest.mark.parametrize("statement", [
    "if (p && !q)", "count += p != NULL;", "/* if (p != NULL) */", 'puts("if (p != NULL)");',
    "if (__builtin_expect(p != NULL, 0))", "same = (p != NULL) == (q != NULL);", "p = NULL;"])
def test_numbers_texts_and_comments_may_say_null(tmp_path, statement):
    assert nulls(tmp_path, statement) == (0, "")


PHRASES = ["Whoever calls", "callers, who asks first", "it is elsewhere", "it stands in a list",
           "it stands behind", "it stands before", "it stands at one end", "he is told", "they are told",
           "nobody's", "in vain", "what is asked of it", "it goes on asking", "the answer fails and says so"]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_of_the_list_is_found(tmp_path, phrase):
    status, found = words(tmp_path, "page.md", f"A line.\n\nHere {phrase}.\n")
    assert status == 1
    assert found.startswith("page.md:3: ") and "write" in found


@pytest.mark.parametrize("name, text", [
    ("a.c", "/* What is\n * elsewhere. */\n"),
    ("a.h", 'puts("it is elsewhere");\n'),
    ("a.lua", "-- it is elsewhere\n"),
    ("a.py", '"""It is\n\nelsewhere."""\n'),
    ("script", "#!/usr/bin/env python3\nx = 'it is elsewhere now'\n"),
    ("other", "#!/bin/sh\nls # elsewhere\n"),
    ("rules.yaml", "limits:\n  # elsewhere\n"),
    ("page.md", "It is elsewhere.\n"),
])
def test_comments_strings_and_prose_are_read(tmp_path, name, text):
    status, found = words(tmp_path, name, text)
    assert status == 1 and '"elsewhere"' in found


@pytest.mark.parametrize("name, text", [
    ("a.c", "int elsewhere = 1;\n"),
    ("a.lua", "local elsewhere = 1\n"),
    ("a.py", "elsewhere = 1\n"),
    ("rules.yaml", "elsewhere: 1\n"),
    ("page.md", "The field `elsewhere`:\n\n```\nelsewhere\n```\n"),
])
def test_code_is_not_read(tmp_path, name, text):
    assert words(tmp_path, name, text) == (0, "")


def test_a_phrase_may_break_over_lines(tmp_path):
    status, found = words(tmp_path, "a.c", "int a;\n\n/* This is in\n * vain. */\n")
    assert status == 1 and found.startswith("a.c:3: ")
    status, found = words(tmp_path, "rules.yaml", "# This is in\n# vain.\n")
    assert status == 1 and found.startswith("rules.yaml:1: ")


def git(folder, *arguments):
    """Runs git as nobody in particular, whatever the machine has configured."""
    names = {f"GIT_{who}_{what}": "test@example.org" for who in ("AUTHOR", "COMMITTER")
             for what in ("NAME", "EMAIL")}
    done = run(folder, "git", *arguments, env=names | {"GIT_CONFIG_GLOBAL": os.devnull,
                                                       "GIT_CONFIG_NOSYSTEM": "1"})
    assert done.returncode == 0, done.stderr


def commit(folder, *subjects):
    for subject in subjects:
        git(folder, "commit", "--quiet", "--allow-empty", "-m", subject + "\n\n" + "body " * 30)


@pytest.fixture(name="repository")
def new_repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def test_subjects_of_72_characters_pass(repository):
    commit(repository, "a", "b" * LONGEST, "ü" * LONGEST)
    done = run(repository, SUBJECTS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_each_longer_subject_is_named(repository):
    commit(repository, "b" * (LONGEST + 1), "fine", "ü" * (LONGEST + 2))
    done = run(repository, SUBJECTS)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and len(lines) == 2
    assert "has 74 characters, more than 72: üü" in lines[0]
    assert "has 73 characters, more than 72: bb" in lines[1]


def test_only_the_last_50_commits_count(repository):
    commit(repository, "b" * (LONGEST + 1), *(f"commit {i}" for i in range(49)))
    assert run(repository, SUBJECTS).returncode == 1
    commit(repository, "commit 50")
    assert run(repository, SUBJECTS).returncode == 0


def test_subjects_of_merges_may_be_long(repository):
    commit(repository, "first")
    git(repository, "checkout", "--quiet", "-b", "side")
    commit(repository, "second")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-ff", "-m", "m" * (LONGEST + 1), "side")
    assert run(repository, SUBJECTS).returncode == 0


def test_a_shallow_clone_is_checked_as_far_as_it_goes(repository, tmp_path):
    commit(repository, "b" * (LONGEST + 1), "fine", "fine too")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=2", repository.as_uri(), clone)
    done = run(clone, SUBJECTS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    commit(clone, "c" * (LONGEST + 1))
    assert run(clone, SUBJECTS).returncode == 1


def test_without_a_repository_the_check_fails(tmp_path):
    done = run(tmp_path, SUBJECTS, env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert done.returncode != 0 and "not a git repository" in done.stderr


# --- The sum of the results ----------------------------------------------------------------------

def compiled(tmp_path, calls):
    """A build folder of sources n0.c, n1.c, ..., each of which calls those that `calls` names for it."""
    (tmp_path / "src").mkdir()
    library = tmp_path / "build" / "src" / "lib.a.p"
    library.mkdir(parents=True)
    commands = []
    for i, others in enumerate(calls):
        source = tmp_path / "src" / f"n{i}.c"
        body = "".join(f"void f{j}(void);\n" for j in others) + f"void f{i}(void) {{ "
        source.write_text(body + " ".join(f"f{j}();" for j in others) + " }\n", encoding="utf-8")
        subprocess.run(["cc", "-c", source, "-o", library / f"n{i}.c.o"], check=True)
        commands.append({"file": f"../src/n{i}.c", "output": f"src/lib.a.p/n{i}.c.o"})
    (tmp_path / "build" / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    return tmp_path / "build"


@pytest.mark.parametrize("objects, found", [(7, 0), (8, 1)])
def test_a_circle_of_more_than_seven_objects_is_found(tmp_path, objects, found):
    build = compiled(tmp_path, [[(i + 1) % objects] for i in range(objects)])
    done = run(tmp_path, sys.executable, CIRCLES, build, "--root", tmp_path)
    assert done.returncode == found, done.stderr
    assert done.stdout.endswith(f"{objects} objects, {found} circles with too many\n")
    assert ("src/n0.c -> src/n1.c: f1" in done.stdout) == (found == 1)


def test_what_calls_downwards_only_is_no_circle(tmp_path):
    build = compiled(tmp_path, [list(range(i)) for i in range(9)])
    done = run(tmp_path, sys.executable, CIRCLES, build, "--root", tmp_path)
    assert (done.returncode, done.stdout) == (0, "9 objects, 0 circles with too many\n")


def junit(path, **results):
    cases = "".join(f'<testcase classname="file" name="{name}">{result}</testcase>' for name, result in results.items())
    path.write_text(f'<testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>', encoding="utf-8")


@pytest.mark.parametrize("alone, status, last", [
    ({"b": ""}, 1, "2 passed, 1 failed, 1 skipped"),
    ({"b": "", "c": ""}, 0, "3 passed, 0 failed, 1 skipped"),
    ({"b": "", "c": "<error/>"}, 1, "2 passed, 1 failed, 1 skipped"),
    ({"d": "<failure/>"}, 1, "1 passed, 2 failed, 1 skipped")])
def test_what_passes_alone_has_passed_and_is_listed(tmp_path, alone, status, last):
    junit(tmp_path / "all.xml", a="", b="<failure/>", c="<error/>", d="<skipped/>")
    junit(tmp_path / "all-alone.xml", **alone)
    done = run(tmp_path, sys.executable, TALLY, "all:9:all.xml:")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last)
    for name, result in alone.items():
        assert (f"passed only when it ran alone: file::{name}" in done.stdout) == (result == "")


def test_a_run_without_results_has_failed(tmp_path):
    junit(tmp_path / "empty.xml")
    for path in ("empty.xml", "missing.xml"):
        done = run(tmp_path, sys.executable, TALLY, f"all:9:{path}:")
        assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "0 passed, 1 failed")


def test_the_table_says_which_parts_did_not_run_and_why(tmp_path):
    junit(tmp_path / "all.xml", a="", b="")
    text = (tmp_path / "all.xml").read_text(encoding="utf-8")
    (tmp_path / "all.xml").write_text(text.replace('name="b"', 'name="b" time="2.5"'), encoding="utf-8")
    done = run(tmp_path, sys.executable, TALLY, "unit:12:all.xml:",
               "sanitize:3:missing.xml:not built: a.c:1: error: no", "nginx:0::left out: no nginx-dev")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert done.returncode == 1 and lines == [
        "the tests that took longest:", "2.5 s all.xml: file::b", "0.0 s all.xml: file::a",
        "part passed failed skipped seconds", "unit 2 0 0 12",
        "sanitize 0 1 0 3 not built: a.c:1: error: no", "nginx 0 0 0 0 left out: no nginx-dev",
        "2 passed, 1 failed"]
