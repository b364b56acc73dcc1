# SPDX-License-Identifier: Apache-2.0
"""The tests that a change touches: touched.py BUILD PATH... (the paths that changed)

Prints a line for each: `unit NAME TARGET` (meson's names) or `integration FILE`. A unit test is touched by
its own sources, by headers of tests/ that it includes and the sources beside these, and by a module whose
header it includes; a module that no test includes touches the tests of the folder of its name. An integration
test is touched by itself, by the helpers that it imports, and by a changed folder or module whose
name is in its path. It is a choice for while one works: script/test alone runs all.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
IMPORT = re.compile(r"^(?:from|import) ([\w.]+)", re.M)
# Names of layers, which are in too many paths to say anything.
COMMON = {"src", "feature", "server", "rules", "engine", "cli", "load", "match", "core", "daemon",
          "wire", "store", "tests", "lib", "unit", "integration", "section", "charge", "table"}
# Where unit tests find headers, beside their own folder.
SHARED = (pathlib.Path("tests/lib"), pathlib.Path("tests/sentence"), pathlib.Path("tests/fuzz"))


def included(path):
    try:
        return set(INCLUDE.findall(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return set()


def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", "--" + what, build],
                                     capture_output=True, text=True, check=True).stdout)


def programs(build):
    """{program: its sources}, relative to the working folder; {program: its target}."""
    sources, targets = {}, {}
    for target in introspect(build, "targets"):
        if target["type"] == "executable":
            program = target["filename"][0]
            sources[program] = {pathlib.Path(os.path.relpath(source)) for group in
                                target["target_sources"] for source in group.get("sources", [])}
            targets[program] = os.path.relpath(program, build)
    return sources, targets


def headers_of(sources):
    """What a test includes, itself or by a header of tests/: the names, and the paths of these headers."""
    found, paths, more = set(), set(), list(sources)
    while more:
        path = more.pop()
        for name in included(path):
            if name in found:
                continue
            found.add(name)
            for near in {folder / name for folder in (path.parent, *SHARED)}:
                if near.exists():
                    paths.add(str(near))
                    more.append(near)
    return found, paths


def unit(build, changed):
    sources, targets = programs(build)
    modules = {re.sub(r"^(src|include|tests/lib)/|\.[ch]$", "", path) for path in changed
               if path.endswith((".c", ".h"))}
    seen, rows = set(), []
    for test in introspect(build, "tests"):
        program = test["cmd"][0]
        own = sources.get(program, set())
        included_names, headers = headers_of(own)
        names = {name.removesuffix(".h") for name in included_names}
        if ({str(path) for path in own} | headers) & set(changed) or names & modules:
            seen |= names & modules
            rows.append((test, program))
        else:
            rows.append((test, None))
    folders = {os.path.basename(os.path.dirname(module)) for module in modules - seen} - COMMON
    for test, program in rows:
        name = test["name"].split(" / ")[-1]
        near = set(re.split(r"[/_]", name)) & folders
        if program or near:
            yield name, targets.get(program or test["cmd"][0], "")


def words(path):
    parts = pathlib.PurePath(path)
    return {*parts.parent.parts, parts.stem} - COMMON


def integration(changed):
    wanted = set().union(*(words(path) for path in changed if path.startswith(("src/", "dashboard/",
                                                                               "playground/"))))
    if any(path.endswith(".md") for path in changed):
        wanted |= {"docs", "guides"}
    helpers = {path.removeprefix("tests/integration/").removesuffix(".py").replace("/", ".")
               for path in changed if path.startswith("tests/integration/")}
    for path in sorted(pathlib.Path("tests/integration").rglob("test_*.py")):
        parts = {part for piece in path.relative_to("tests/integration").with_suffix("").parts
                 for part in (piece, *piece.split("_"))}
        imports = set(IMPORT.findall(path.read_text(encoding="utf-8")))
        if str(path) in changed or parts & wanted or imports & helpers:
            yield str(path)


def main(build, *changed):
    for name, target in unit(build, changed):
        print("unit", name, target)
    for path in integration(changed):
        print("integration", path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
