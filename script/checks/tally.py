# SPDX-License-Identifier: Apache-2.0
"""Adds up test results: tally.py PART:SECONDS:FILE:WHY...

FILE is meson's log of one run (one JSON object a line) or pytest's JUnit XML. A cmocka program
counts with its cases, any other test of meson's as one. Beside FILE.xml, FILE-alone.xml has the failed tests
that were run once more, alone: one that passes there has passed, and is listed. A file that is missing, empty or unreadable
is one failure: a run that left no results is never a success. WHY says what kept the part from running. A
part without a FILE was left out.

Prints what failed, the 20 tests that took longest, and a table of the parts. The last line reads "N passed, N failed[, N skipped]";
exit status 1 when anything failed or nothing passed.
"""
import json
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

CMOCKA_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.M)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] [^\n]*?(\d+) test\(s\), listed below", re.M)
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] [^\n]*?(\d+) test\(s\), listed below", re.M)


SLOWEST = 20
times = []  # (seconds, part's file, test)


def total(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def meson_log(path):
    passed = failed = skipped = 0
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            times.append((test.get("duration", 0), path, test["name"]))
            output = (test.get("stdout") or "") + (test.get("stderr") or "")
            if test["result"] in ("OK", "EXPECTEDFAIL"):
                cases = total(CMOCKA_PASSED, output)
                skips = total(CMOCKA_SKIPPED, output)
                passed += cases if cases or skips else 1
                skipped += skips
            elif test["result"] == "SKIP":
                skipped += 1
            else:
                passed += total(CMOCKA_PASSED, output)
                failed += max(1, total(CMOCKA_FAILED, output))
                print(f"   {test['result']}: {test['name']}")
    return passed, failed, skipped


def junit_cases(path):
    """The result of each test by its name; of a test with several results, the worst."""
    order = ("passed", "skipped", "failed")
    cases = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        times.append((float(case.get("time", 0)), path, name))
        result = "passed"
        for child in case:
            if child.tag in ("failure", "error"):
                result = "failed"
            elif child.tag == "skipped" and result == "passed":
                result = "skipped"
        cases[name] = max(result, cases.get(name, result), key=order.index)
    return cases


def junit_xml(path):
    cases = junit_cases(path)
    alone = path.removesuffix(".xml") + "-alone.xml"
    if os.path.exists(alone):
        for name, result in junit_cases(alone).items():
            if result == "passed" and cases.get(name) == "failed":
                cases[name] = "passed"
                print(f"   passed only when it ran alone: {name}")
    results = list(cases.values())
    return tuple(results.count(kind) for kind in ("passed", "failed", "skipped"))


def read(path):
    counts = junit_xml(path) if path.endswith(".xml") else meson_log(path)
    if not any(counts):
        raise ValueError("no test ran")
    return counts


def row_of(argument):
    """The counts of a part, and its row of the table."""
    part, seconds, path, why = argument.split(":", 3)
    counts, note = (0, 0, 0), why
    if path:
        try:
            counts = read(path)
        except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
            counts, note = (0, 1, 0), why or f"did not run: {path}: {error}"
    return counts, [part, *(str(count) for count in counts), seconds, note]


def print_slowest():
    print("   the tests that took longest:")
    for seconds, path, name in sorted(times, reverse=True)[:SLOWEST]:
        print(f"   {seconds:7.1f} s  {path.split('/')[0]}: {name}")


def main(arguments):
    rows = [row_of(argument) for argument in arguments]
    if times:
        print_slowest()
    for cells in [["part", "passed", "failed", "skipped", "seconds", ""], *(cells for _, cells in rows)]:
        print("   {:12} {:>7} {:>7} {:>7} {:>8}  {}".format(*cells).rstrip())
    passed, failed, skipped = (sum(column) for column in zip(*(counts for counts, _ in rows)))
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
