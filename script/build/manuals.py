#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the manual pages: manuals.py WEIR DOCS VERSION FOLDER

weir(1) and a page for each command, from the program's own tables of options and from docs/;
weir.yaml(5) from docs/rules.md.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from options_table import Option, read_commands
from roff import escape, inline, prose, roff, section, tidy

# Where docs/ describes a command: a file, and a heading; without one, the part before its second.
PAGES = {
    "serve": ("cli.md", "weir serve"), "envoy": ("cli.md", "weir envoy"),
    "validate": ("cli.md", "weir validate"), "replay": ("replay.md", "The report"),
    "explain": ("cli.md", "weir explain"), "fetch": ("client.md", "weir fetch"),
    "bench": ("bench.md", "Requests"), "top": ("cli.md", "weir top"),
    "grant": ("cli.md", "weir grant"), "denials": ("use.md", "Why was Ann denied"),
    "ban": ("standing.md", "Ban, unban, allow"), "unban": ("standing.md", "Ban, unban, allow"),
    "allow": ("standing.md", "Ban, unban, allow"),
    "nft": ("kernel.md", "weir nft"),
    "standing": ("standing.md", "Ban, unban, allow"), "doctor": ("cli.md", "weir doctor"),
    "capacity": ("cli.md", "weir capacity"), "document": ("cli.md", "weir document"),
    "xdp": ("xdp.md", "weir xdp"),
}


class Release(NamedTuple):
    version: str
    date: str  # of the newest one in CHANGELOG.md


DOCUMENTATION = "/usr/share/doc/weir/docs"


def title(name, part, release):
    manual = "User commands" if part == 1 else "File formats"
    return f'.TH "{escape(name.upper())}" {part} "{release.date}" "weir {release.version}" "{manual}"'


def name_section(name, summary):
    return [".SH NAME", f"{escape(name)} \\- {inline(summary)}"]


def synopsis(usage):
    """The lines of a usage text that show command lines, and the text behind them."""
    lines = usage.strip().splitlines()
    shown = [line for line in lines if re.match(r"^(Usage:|  or:|  +weir) ", line)]
    out = [".SH SYNOPSIS", ".nf"]
    out += [escape(re.sub(r"^(Usage:|  or:| +) *", "", line)) for line in shown]
    return out + [".fi"], [line for line in lines if line not in shown]


def option_entry(option):
    flag = f"\\fB\\-{option.letter}\\fR, " if option.letter else ""
    value = f"=\\fI{escape(option.value)}\\fR" if option.value else ""
    text = prose(option.help.splitlines()) if option.help else ["\\&"]
    return [".TP", f"{flag}\\fB\\-\\-{escape(option.name)}\\fR{value}"] + text


def options_section(command):
    out = [".SH OPTIONS"]
    for entry in command.entries:
        if isinstance(entry, Option):
            out += option_entry(entry)
        else:
            out.append('.SS "' + inline(entry.strip(" :")) + '"')
    if command.notes:
        out += [".PP"] + prose(command.notes.split("\n"))
    return out


def statuses(docs):
    text = (docs / "cli.md").read_text(encoding="utf-8")
    rows = re.search(r"^\| exit status .*?(?=\n\n)", text, re.M | re.S).group(0)
    return [".SH EXIT STATUS"] + roff(rows, 2)


def see_also(names):
    pages = [f"\\fB{escape(name)}\\fR({part})" for name, part in names]
    return [".SH SEE ALSO", ", ".join(pages) + ";", f"the documentation in {escape(DOCUMENTATION)}."]


def command_page(command, docs, release):
    name = f"weir-{command.name}"
    shown, text = synopsis(command.usage)
    out = [title(name, 1, release)] + name_section(name, command.summary) + shown
    out += [".SH DESCRIPTION"] + prose(text) + options_section(command)
    if command.name in PAGES:
        file, heading = PAGES[command.name]
        body, level = section((docs / file).read_text(encoding="utf-8"), heading)
        out += [".SH DETAILS"] + roff(body, level)
    return out + statuses(docs) + see_also([("weir", 1), ("weir.yaml", 5)])


def main_page(commands, docs, release):
    out = [title("weir", 1, release)] + name_section("weir", "exact rate limiter for HTTP services")
    out += [".SH SYNOPSIS", "\\fBweir\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...", ".SH DESCRIPTION"]
    out += prose(["weir decides, for each request, whether a caller may pass. Its rules are a YAML "
                  "file: see `weir.yaml`(5). Each command has a manual page of its own, and `--help`."])
    out.append(".SH COMMANDS")
    for command in commands:
        out += [".TP", f"\\fB{escape(command.name)}\\fR", inline(command.summary)]
    out += [".SH FILES", ".TP", "\\fI/etc/weir/weir.yaml\\fR", "the rules of the service weir",
            ".TP", "\\fI/var/lib/weir\\fR", "its counts and the history of standing"]
    pages = [(f"weir-{command.name}", 1) for command in commands] + [("weir.yaml", 5)]
    return out + statuses(docs) + see_also(pages)


def rules_page(docs, release):
    text = (docs / "rules.md").read_text(encoding="utf-8").split("\n", 1)[1]
    out = [title("weir.yaml", 5, release)] + name_section("weir.yaml", "rules of the rate limiter weir")
    return out + [".SH DESCRIPTION"] + roff(text, 2) + see_also([("weir", 1), ("weir-validate", 1)])


def main(program, docs, version, folder):
    docs, folder = Path(docs), Path(folder)
    changes = (docs.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    release = Release(version, re.search(r"^## \[[0-9.]+\] - (\S+)", changes, re.M).group(1))
    commands = read_commands(program)
    pages = {f"weir-{command.name}.1": command_page(command, docs, release) for command in commands}
    pages["weir.1"] = main_page(commands, docs, release)
    pages["weir.yaml.5"] = rules_page(docs, release)
    for name, lines in pages.items():
        head = '.\\" Made from the program and docs/ by script/build/manuals.py'
        (folder / name).write_text("\n".join([head] + tidy(lines)) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
