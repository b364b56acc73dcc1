# SPDX-License-Identifier: Apache-2.0
"""What an attack has shown: rows of a table, each with a figure and the bound that it must keep."""

import json
from dataclasses import asdict, dataclass


@dataclass
class Row:
    """One figure of one case. `held` is None where there is no bound: the figure is only shown."""
    case: str
    tried: str
    times: int
    measured: str
    bound: str
    held: bool | None


def number(value):
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"


def verdict(row):
    return {True: "held", False: "FAILED", None: "–"}[row.held]


HEADS = ["case", "what was tried", "times", "measured", "bound", "held"]


def cells(row):
    return [row.case, row.tried, number(row.times), row.measured, row.bound, verdict(row)]


def text_line(row):
    mark = {True: "held  ", False: "FAILED", None: "      "}[row.held]
    bound = f"; bound: {row.bound}" if row.bound else ""
    return f"  {mark}  {row.tried} ({number(row.times)} times): {row.measured}{bound}"


def as_markdown(rows):
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    previous = tried = None
    for row in rows:
        parts = cells(row)
        parts[0] = "" if row.case == previous else f"`{row.case}`"
        parts[1] = "the same" if row.case == previous and row.tried == tried else row.tried
        previous, tried = row.case, row.tried
        lines.append("| " + " | ".join(part.replace("|", "\\|") for part in parts) + " |")
    return "\n".join(lines) + "\n"


def as_json(rows):
    return json.dumps([asdict(row) for row in rows], indent=1) + "\n"


def tally(rows):
    return (sum(row.held is True for row in rows), sum(row.held is False for row in rows))
