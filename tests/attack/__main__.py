# SPDX-License-Identifier: Apache-2.0
"""Attacks a real weir and says what held; script/attack builds weir and calls this."""

import argparse
import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

# pylint: disable=wrong-import-position
import report  # noqa: E402
import suite  # noqa: E402
from cases import ORDER  # noqa: E402

assert ORDER  # importing these registers their cases


def machine():
    """What the figures come from."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{os.cpu_count()} × {model}, Linux {platform.release()}"


def arguments():
    parser = argparse.ArgumentParser(
        prog="script/attack", description="Attacks a real weir serve, and says what held.")
    parser.add_argument("case", nargs="*", help="of --list; without one: all")
    parser.add_argument("--list", action="store_true", help="names all cases")
    parser.add_argument("--json", metavar="FILE", help="writes the rows there, '-' to the output")
    parser.add_argument("--markdown", metavar="FILE", help="writes the table there, likewise")
    parser.add_argument("--size", metavar="MIB", type=int, default=64,
                        help="of the state that is attacked; the attacks are as much smaller (64)")
    given = parser.parse_args()
    unknown = [name for name in given.case if name not in suite.CASES]
    if unknown:
        parser.error(f"no case '{unknown[0]}'; --list names them")
    return given


def write(where, text):
    if where == "-":
        print(text, end="")
    elif where:
        Path(where).write_text(text, encoding="utf-8")


def main():
    given = arguments()
    if given.list:
        for name, (what, _) in suite.CASES.items():
            print(f"{name:24}{what}")
        return 0
    rows = suite.run(given.case or list(suite.CASES), given.size * suite.MIB,
                     lambda line: print(line, flush=True))
    write(given.json, report.as_json(rows))
    write(given.markdown, report.as_markdown(rows))
    held, failed = report.tally(rows)
    print(f"\n{machine()}, a state of {given.size} MiB")
    print(f"{held} held, {failed} failed")
    return 0 if failed == 0 and rows else 1  # a case that was not tried has not failed


if __name__ == "__main__":
    sys.exit(main())
