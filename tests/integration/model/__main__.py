# SPDX-License-Identifier: Apache-2.0
"""python3 -m model --config RULES [--format jsonl|access] TRACE: the model as a program."""

import argparse
import json
import sys

from .access_log import parse_access_line
from .replay import Replay, parse_json_line
from .rules import load_rules


def main():
    parser = argparse.ArgumentParser(prog="model", description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--format", choices=["jsonl", "access"], default="jsonl")
    parser.add_argument("trace")
    arguments = parser.parse_args()
    with open(arguments.config, encoding="utf-8") as file:
        replay = Replay(load_rules(file.read()))
    parse = parse_json_line if arguments.format == "jsonl" else parse_access_line
    with open(arguments.trace, encoding="utf-8") as file:
        for line in file:
            decision = replay.decide(*parse(line))
            json.dump(decision, sys.stdout, separators=(",", ":"))
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
