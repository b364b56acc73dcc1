# SPDX-License-Identifier: Apache-2.0
"""The commands and options of weir, from `weir --help=tsv` and `weir COMMAND --help=tsv`."""

import re
import subprocess
from typing import NamedTuple


class Option(NamedTuple):
    letter: str
    name: str
    value: str
    help: str

    def choices(self):
        """The words that its help lists in quotes, where a value can be only one of them."""
        words = re.findall(r"'([a-z][a-z0-9_-]*)'", self.help)
        return words if self.value and not re.search("FILE|DIR|FOLDER", self.value) else []


class Command(NamedTuple):
    name: str
    summary: str
    usage: str
    notes: str
    entries: list  # of Option, and of str: a heading

    def options(self):
        return [entry for entry in self.entries if isinstance(entry, Option)]


def lines_of(program, *arguments):
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        yield [re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), field)
               for field in line.split("\t")]


def read_command(program, name, summary):
    texts, entries = {}, []
    for kind, *fields in lines_of(program, name, "--help=tsv"):
        if kind == "option":
            entries.append(Option(*fields))
        elif kind == "heading":
            entries.append(fields[0])
        else:
            texts[kind] = fields[0]
    return Command(name, summary, texts["usage"], texts["notes"], entries)


def read_commands(program):
    return [read_command(program, name, summary) for _, name, summary in lines_of(program, "--help=tsv")]
