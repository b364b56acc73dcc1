# SPDX-License-Identifier: Apache-2.0
"""Manual pages and completions, which script/build makes from the program's own tables."""

import re
import shutil
import subprocess
import sys

import pytest

from model.program import ROOT, weir_path

sys.path.append(str(ROOT / "script" / "build"))

import options_table  # noqa: E402

COMMANDS = options_table.read_commands(weir_path())
VERSION = "0.0.0"


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=True, **more).stdout


def build(script, *arguments):
    run(sys.executable, ROOT / "script" / "build" / script, weir_path(), *arguments)


@pytest.fixture(name="pages", scope="module")
def fixture_pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    build("manuals.py", ROOT / "docs", VERSION, folder)
    return {page.name: page for page in folder.iterdir()}


@pytest.fixture(name="completions", scope="module")
def fixture_completions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completions")
    build("completions.py", folder)
    return folder


def words_of(page):
    """What a page says, without its formatting."""
    text = page.read_text(encoding="ascii")
    return re.sub(r"\\f.", "", text).replace("\\-", "-").replace("\\&", "").replace("\\(ga", "`")


def test_every_command_of_the_help_has_a_page_and_no_other(pages):
    listed = re.findall(r"^  ([a-z]+) +\S", run(weir_path(), "--help"), re.M)
    assert listed == [command.name for command in COMMANDS]
    assert set(pages) == {f"weir-{name}.1" for name in listed} | {"weir.1", "weir.yaml.5"}
    text = (ROOT / "packaging" / "meson.build").read_text(encoding="utf-8")
    built = re.search(r"commands = \[(.*?)\]", text, re.S).group(1)
    assert sorted(listed) == re.findall(r"'([a-z]+)'", built)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_page_has_the_options_that_the_help_shows(pages, command):
    shown = re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)", run(weir_path(), command.name, "--help"),
                       re.M)
    page = words_of(pages[f"weir-{command.name}.1"])
    in_page = re.findall(r"^\.TP\n(?:-\w, )?--([a-z0-9-]+)(?:=.*)?$", page.split(".SH DETAILS")[0],
                         re.M)
    assert shown == in_page == [option.name for option in command.options()]
    for option in command.options():
        assert " ".join(option.help.split()) in " ".join(page.split())


def test_the_page_of_the_rules_file_has_every_heading_of_its_documentation(pages):
    text = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    page = words_of(pages["weir.yaml.5"]).upper()
    for heading in re.findall(r"^##+ (.*)$", text, re.M):
        assert f'"{heading.upper()}"' in page


@pytest.mark.skipif(not shutil.which("mandoc"), reason="needs mandoc")
def test_mandoc_finds_nothing_wrong_with_the_pages(pages):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, pages.values())],
                          capture_output=True, text=True, check=False)
    assert done.stdout + done.stderr == ""


def test_a_form_of_the_help_that_is_not_known_is_refused():
    done = subprocess.run([weir_path(), "top", "--help=pdf"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("weir: --help: 'tsv' or nothing, not 'pdf'\n")


def bash_completes(completions, *words):
    """What bash offers for the last word."""
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _weir; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    return run("bash", "-c", script, "bash", completions / "weir", "weir", *words).split()


def test_bash_offers_the_commands(completions):
    names = [command.name for command in COMMANDS]
    assert bash_completes(completions, "") == names + ["--help", "--version"]
    assert bash_completes(completions, "exp") == ["explain"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_bash_offers_the_options_of_a_command(completions, command):
    offered = bash_completes(completions, command.name, "-")
    assert offered == [f"--{option.name}" for option in command.options()]


def test_bash_offers_the_values_of_an_option(completions, tmp_path):
    assert bash_completes(completions, "serve", "--log-format", "") == ["text", "json"]
    assert bash_completes(completions, "serve", "--log-format", "=", "j") == ["json"]
    assert bash_completes(completions, "serve", "--http", "") == []
    assert bash_completes(completions, "standing", "sh") == ["show"]
    (tmp_path / "rules.yaml").touch()
    for words in (["validate"], ["serve", "--config"], ["serve", "-c"]):
        assert bash_completes(completions, *words, tmp_path / "ru") == [str(tmp_path / "rules.yaml")]


@pytest.mark.parametrize("shell,file", [("bash", "weir"), ("zsh", "_weir"), ("fish", "weir.fish")])
def test_a_shell_can_read_its_completion(completions, shell, file):
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    run(shell, "-n", completions / file)


@pytest.mark.parametrize("file", ["_weir", "weir.fish"])
def test_zsh_and_fish_know_every_option(completions, file):
    text = (completions / file).read_text(encoding="utf-8")
    for command in COMMANDS:
        for option in command.options():
            wanted = f"--{option.name}" if file == "_weir" else f"from {command.name}' -l {option.name}"
            assert wanted in text
