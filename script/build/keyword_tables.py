#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of keywords in docs/ from the loader's own: keyword_tables.py WEIR DOCS [--check]

A table stands between two comments, of which the first says what is in it:

    <!-- keywords of PLACE... -->          the keywords of these mappings; `top`: those of the file
    <!-- keywords with reasons of KEY... -->  all in these sections that say why their default is what it is
    <!-- end of keywords -->

With --check it writes nothing and ends with 1 if a page is not as it would be.
"""

import re
import subprocess
import sys
from pathlib import Path

PAGES = ("rules.md", "operations/defaults.md", "actions.md", "challenge.md", "distributed.md", "identities.md", "jwt.md",
         "kernel.md", "score.md", "standing.md", "webhooks.md", "xdp.md")
MARKED = re.compile(r"(<!-- keywords (with reasons )?of ([^>]*?) -->\n).*?(<!-- end of keywords -->)", re.S)
LISTENERS = ("server.http", "server.redis", "server.grpc", "server.admin")


class Row:
    """A line of `weir validate --keywords`."""

    def __init__(self, line):
        self.place, _, _, _, _, _, otherwise, absent, self.doc, self.why = line.split("\t")
        self.name = self.place.rsplit(".", 1)[-1]
        if otherwise.endswith(":"):  # else YAML reads a mapping
            otherwise = f'"{otherwise}"'
        self.value = f"`{otherwise}`" if otherwise else absent if re.fullmatch("`[^`]*`", absent) else ""
        self.default = absent or self.value

    def is_in(self, place):
        return self.place == f"{place}.{self.name}" if place != "top" else "." not in self.place


def rows_of(program):
    done = subprocess.run([program, "validate", "--keywords"], check=True, capture_output=True, text=True)
    return [Row(line) for line in done.stdout.splitlines()]


def table_row(*cells):
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells).rstrip() + " |"


def listener_table(rows):
    """The keywords of all listeners, with that of the one listener that has it."""
    lines = ["| key of a listener | meaning | default |", "|---|---|---|"]
    seen = {}
    for row in rows:
        for listener in LISTENERS:
            if row.is_in(listener):
                seen.setdefault(row.name, (row, []))[1].append(listener.split(".")[1])
    for name, (row, listeners) in seen.items():
        only = f"`{listeners[0]}` only: " if len(listeners) == 1 else ""
        lines.append(table_row(f"`{name}`", only + row.doc, row.default))
    return lines


def keyword_table(rows, places):
    full = len(places) > 1
    of = f" of `{places[0].rsplit('.', 1)[-1]}`" if places[0] not in ("top", "limits") and not full else ""
    lines = [f"| key{of} | value | default |", "|---|---|---|"]
    for place in places:
        for row in rows:
            if row.is_in(place) if place != "headers" else row.place == place:
                name = row.place if full else row.name if place != "top" else row.place
                lines.append(table_row(f"`{name}`", row.doc, row.default))
    return lines


def reasons_table(rows, sections):
    lines, seen = ["| key | default | why |", "|---|---|---|"], set()
    for section in sections:
        for row in rows:
            same = (row.name, row.doc, row.why)  # of two mappings with one table the first is shown
            if row.why and row.place.split(".")[0] == section and same not in seen:
                seen.add(same)
                lines.append(table_row(f"`{row.place}`", row.value, row.why))
    return lines


def written(text, rows):
    def table(match):
        places = match[3].split()
        lines = (reasons_table(rows, places) if match[2] else listener_table(rows)
                 if places == ["listeners"] else keyword_table(rows, places))
        return match[1] + "\n" + "\n".join(lines) + "\n\n" + match[4]
    return MARKED.sub(table, text)


def main(program, docs, *options):
    rows, wrong = rows_of(program), []
    for name in PAGES:
        page = Path(docs) / name
        text = page.read_text(encoding="utf-8")
        made = written(text, rows).replace(f"]({name}#", "](#")
        if made != text:
            wrong.append(name)
            if "--check" not in options:
                page.write_text(made, encoding="utf-8")
    if "--check" in options and wrong:
        sys.exit(f"{', '.join(wrong)}: not as the loader's tables; run script/build/keyword_tables.py WEIR docs")


if __name__ == "__main__":
    main(*sys.argv[1:])
