# SPDX-License-Identifier: Apache-2.0
"""Adds up test results: tally.py FILE..., or names what is worth a second run: tally.py --again FILE

Each file is meson's log of one run (one JSON object a line) or pytest's JUnit XML. A cmocka program
counts with its cases, any other test of meson's as one. Beside NAME.xml or NAME.json, NAME-alone has
the failed tests that were run once more, alone: one that passes there has passed, and is listed. A
file that is missing, empty or unreadable is one failure: a run that left no results is never a
success. The last line printed reads "N passed, N failed[, N skipped]"; exit status 1 when anything
failed or nothing passed.

A test that fails beside others and passes alone takes a state for granted on a busy machine. More
than three of them are no accident; and a crash, what a sanitizer found, and what a model or a test of
threads found are faults however seldom they are seen: --again names none then.
"""
import json
import os
import re
import signal
import sys
import xml.etree.ElementTree as ElementTree

CMOCKA_PASSED = re.compile(r"^\[  PASSED  \] (\d+) test", re.M)
CMOCKA_FAILED = re.compile(r"^\[  FAILED  \] [^\n]*?(\d+) test\(s\), listed below", re.M)
SANITIZER = re.compile(r"Sanitizer|runtime error:")
CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL}
AGAIN_MAX = 3
CMOCKA_SKIPPED = re.compile(r"^\[  SKIPPED \] [^\n]*?(\d+) test\(s\), listed below", re.M)


def total(pattern, text):
    return sum(int(number) for number in pattern.findall(text))


def beside(path):
    """Where the results of the second run are."""
    stem, suffix = os.path.splitext(path)
    return f"{stem}-alone{suffix}"


def meson_tests(path):
    """The tests of a log by their names."""
    with open(path, encoding="utf-8") as log:
        tests = [json.loads(line) for line in log]
    return {test["name"]: test for test in tests}


def has_failed(test):
    return test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP")


def output_of(test):
    return (test.get("stdout") or "") + (test.get("stderr") or "")


def is_fault(test):
    suites = re.split("[:+]", test["name"].partition(" / ")[0])
    return ("model" in suites or "threads" in suites or test.get("returncode") in CRASHES or
            SANITIZER.search(output_of(test)))


def again(path):
    """The failed tests of meson's log, as `meson test` takes them."""
    failed = [test for test in meson_tests(path).values() if has_failed(test)]
    if len(failed) > AGAIN_MAX or any(map(is_fault, failed)):
        return []
    return [test["name"].rpartition(" / ")[2] for test in failed]


def count_meson_test(test):
    output = output_of(test)
    if has_failed(test):
        print(f"   {test['result']}: {test['name']}")
        return total(CMOCKA_PASSED, output), max(1, total(CMOCKA_FAILED, output)), 0
    if test["result"] == "SKIP":
        return 0, 0, 1
    passed, skipped = total(CMOCKA_PASSED, output), total(CMOCKA_SKIPPED, output)
    return passed if passed or skipped else 1, 0, skipped


def meson_log(path):
    tests = meson_tests(path)
    if os.path.exists(beside(path)):
        for name, test in meson_tests(beside(path)).items():
            if not has_failed(test) and has_failed(tests.get(name, test)):
                tests[name] = test
                print(f"   passed only when it ran alone: {name}")
    return tuple(map(sum, zip((0, 0, 0), *map(count_meson_test, tests.values()))))


def junit_cases(path):
    """The result of each test by its name; of a test with several results, the worst."""
    order = ("passed", "skipped", "failed")
    cases = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
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
    if os.path.exists(beside(path)):
        for name, result in junit_cases(beside(path)).items():
            if result == "passed" and cases.get(name) == "failed":
                cases[name] = "passed"
                print(f"   passed only when it ran alone: {name}")
    results = list(cases.values())
    return tuple(results.count(kind) for kind in ("passed", "failed", "skipped"))


def main(paths):
    totals = [0, 0, 0]
    for path in paths:
        try:
            counts = junit_xml(path) if path.endswith(".xml") else meson_log(path)
            if not any(counts):
                raise ValueError("no test ran")
        except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
            print(f"   {path}: {error}")
            counts = (0, 1, 0)
        print("   {}: {} passed, {} failed, {} skipped".format(path, *counts))
        totals = [a + b for a, b in zip(totals, counts)]
    passed, failed, skipped = totals
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--again"]:
        print("\n".join(again(sys.argv[2])))
    else:
        sys.exit(main(sys.argv[1:]))
