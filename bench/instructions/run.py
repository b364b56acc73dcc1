#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of a check, each beside its bar: script/bench instructions

Valgrind counts the instructions of a process outside the kernel, which are the same on every machine and
whatever else it does: each row is the difference of two runs, divided by the calls that the longer one makes
more. A row above its bar fails. The last column is the figure to reach; until then the bar is what has been
reached, and it only goes down. Without LTO; the limits of buckets are plain
(include/weir/limit.h).

    bench/instructions/run.py [--build DIR] [ROW...]
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import server  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
CALLS = 1000, 5000  # of libweir
ROUNDS = 1, 2  # of bench-engine, of ROUND_REQUESTS each
ROUND_REQUESTS = 32000
REQUESTS = 1600, 8000  # of a server
SLACK = 1.01  # of another compiler

# Row, program, its arguments behind the count, bar, goal.
ROWS = (
    ("full_one", "bench-library", ["1"], 2950, 1150),
    ("full_one_fields", "bench-library", ["2"], 3595, 1350),
    ("full_three", "bench-library", ["3"], 5240, 2500),
    ("full_three_fields", "bench-library", ["4"], 6675, 3200),
    ("rules_10", "bench-engine", ["rules_10"], 4535, 2700),
    ("standing", "bench-engine", ["standing"], 6070, 3700),
    ("envoy_none", "bench-envoy", ["0"], 4200, 3000),
    ("envoy_one", "bench-envoy", ["1"], 6790, 5000),
    ("envoy_three", "bench-envoy", ["3"], 9900, 7000),
    ("pressure", "bench-engine", ["pressure"], 9890, 6000),
    ("check_http", "weir", ["http"], 6930, 4700),
    ("cl_throttle", "weir", ["redis"], 1905, 1500),
)


def total(program, count, arguments):
    """Instructions of one run, or of its rounds."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts"]
        if program.name == "bench-engine":
            command.append("--toggle-collect=round_ns*")
        done = subprocess.run([*command, str(program), str(count), *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        said = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode != 0 or not said:
            sys.exit(f"bench/instructions: {program.name}: {done.stderr}")
        return int(said[1])


def measure(build, row):
    _, program, arguments, _, _ = row
    if program == "weir":
        few, many = REQUESTS
        more = server.total(build / program, *arguments, many) - server.total(build / program, *arguments, few)
        return more / (many - few)
    path = build / "bench" / program
    engine = program == "bench-engine"
    few, many = ROUNDS if engine else CALLS
    more = total(path, many, arguments) - total(path, few, arguments)
    return more / ((many - few) * (ROUND_REQUESTS if engine else 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("rows", nargs="*", metavar="ROW")
    options = parser.parse_args()
    programs = sorted({row[1] if row[1] == "weir" else f"bench/{row[1]}" for row in ROWS})
    subprocess.run(["ninja", "-C", str(options.build), "--quiet", *programs], check=True)
    os.environ.pop("GLIBC_TUNABLES", None)
    failed = 0
    print(f"{'instructions of a check':<24}{'now':>9}{'bar':>9}{'goal':>9}")
    for row in ROWS:
        if options.rows and row[0] not in options.rows:
            continue
        now = measure(options.build, row)
        over = now > row[3] * SLACK
        failed += over
        print(f"{row[0]:<24}{now:>9.0f}{row[3]:>9}{row[4]:>9}{'  above its bar' if over else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
