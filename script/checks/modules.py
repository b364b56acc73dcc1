# SPDX-License-Identifier: Apache-2.0
"""Checks the shape of modules: modules.py FILE... (of src/, include/ and tests/)

  - every .c of src/ has a .h beside it, defines main, or is the source of a public header
  - no folder holds more than 35 files (.c, .h and .py); core 40, the tests' library 45, the
    integration tests 20
  - in src/ and include/, no struct and no function with external linkage has two definitions
    (universal-ctags)

modules.txt lists the findings that are known: `KIND NAME` a line. Only a finding that is not listed
fails the check. Remove lines of findings that are gone: the list only shrinks.
"""
import collections
import os
import re
import subprocess
import sys

FILES_MAX = 35
FLAT = {"src/core": 40, "tests/lib": 45}
INTEGRATION_MAX = 20
MAIN = re.compile(r"^int main\(", re.M)


def without_header(paths):
    """Sources that have no header of their own."""
    known = set(paths)
    public = {os.path.basename(path) for path in paths if path.startswith("include/")}
    for path in paths:
        if not path.endswith(".c") or path[:-1] + "h" in known:
            continue
        header = os.path.basename(path)[:-1] + "h"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not MAIN.search(text) and not (header in public and f"<weir/{header}>" in text):
            yield "header", path


def crowded(paths):
    """Folders with too many files."""
    counts = collections.Counter(os.path.dirname(path) for path in paths)
    for folder, count in counts.items():
        most = INTEGRATION_MAX if folder.startswith("tests/integration") else FILES_MAX
        if not folder.startswith("include/") and count > FLAT.get(folder, most):
            yield "folder", folder


def defined_twice(paths):
    """Names of structs, and of functions that are not static, with several definitions."""
    # --kinds: functions and structs. A static function has the field `file:`.
    tags = subprocess.run(
        ["ctags", "-f", "-", "--sort=no", "--languages=C", "--langmap=C:.c.h", "--kinds-C=fs",
         "--fields=kf", "-L", "-"],
        input="\n".join(paths), stdout=subprocess.PIPE, text=True, check=True).stdout
    places = collections.defaultdict(set)
    for line in tags.splitlines():
        if line.startswith("!"):
            continue
        name, path, rest = line.split("\t", 2)
        fields = rest.rsplit(';"\t', 1)[1].split("\t")
        # A struct of one source is its own affair, as a static function is; one of a header is not.
        shared = path.endswith(".h") if fields[0] == "s" else "file:" not in fields
        if shared and name != "main" and not name.startswith("__anon"):
            places[fields[0], name].add(path)
    for (kind, name), where in places.items():
        if len(where) > 1:
            yield "struct" if kind == "s" else "function", name


def main(paths):
    product = [path for path in paths if not path.startswith("tests/")]
    found = {f"{kind} {name}" for kind, name in crowded(paths)}
    for check in without_header, defined_twice:
        found |= {f"{kind} {name}" for kind, name in check(product)}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules.txt"),
              encoding="utf-8") as file:
        known = {line.strip() for line in file if line.strip() and not line.startswith("#")}
    for finding in sorted(found - known):
        print(f"new: {finding}")
    for finding in sorted(known - found):
        print(f"gone: remove it from script/checks/modules.txt: {finding}")
    if found & known:
        print(f"{len(found & known)} known findings are left in script/checks/modules.txt")
    return 1 if found - known else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
