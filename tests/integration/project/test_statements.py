# SPDX-License-Identifier: Apache-2.0
"""docs/guides/statements.md: each statement names a test, and each named test exists."""

import re

import pytest

from model.program import ROOT

TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "guides" / "statements.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not re.match(r"\| (a guide says|statement) \|", line)]
# The last column: `FILE`, `FILE::CASE`, or `test_of_python` in any file.
NAMED = [(file, case) for line in ROWS
         for file, case in re.findall(r"`(?:tests/)?((?:integration|unit)/[\w/.]+)(?:::([^`]+))?`", line.rsplit(" | ", 1)[1])]
CASES = [case for line in ROWS for case in re.findall(r"`(test_\w+)`", line.rsplit(" | ", 1)[1])]


def test_each_statement_names_a_test():
    assert len(ROWS) >= 34 and NAMED and CASES
    assert [row for row in ROWS if not re.search(r"`[^`]*(test_\w+)", row.rsplit(" | ", 1)[1])] == []


@pytest.mark.parametrize("file, case", NAMED)
def test_the_named_test_exists(file, case):
    text = (TESTS / file).read_text(encoding="utf-8")
    if case and file.endswith(".py"):
        assert re.search(r"^(?:async )?def %s\(" % re.escape(case), text, re.M)
    elif case:
        assert f'TEST("{case}")' in text


def test_cases_without_a_file_exist_somewhere():
    texts = "".join(path.read_text(encoding="utf-8") for path in (TESTS / "integration").rglob("test_*.py"))
    assert [case for case in CASES if f"def {case}(" not in texts] == []
