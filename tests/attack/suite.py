# SPDX-License-Identifier: Apache-2.0
"""The cases, and what each is given: a folder of its own, weirs to attack, and rows to fill."""

import math
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

import report
from daemon.redis import RedisWeir
from daemon.weir import rules_of

MIB = 1 << 20
STANDARD_BYTES = 64 * MIB  # weir's own default; what cases count is meant for it

CASES = {}  # by name, in the order of the sections


def case(name, what):
    """Registers a function of an Attack as the case `name`; `what` is one line about it."""
    def register(function):
        assert name not in CASES, name
        CASES[name] = (what, function)
        return function
    return register


class Attack:
    """One run of one case."""

    def __init__(self, name, size=STANDARD_BYTES, show=print):
        self.name, self.size, self.show = name, size, show
        self.rows = []
        self.stack = ExitStack()
        self.started = time.monotonic()

    def __enter__(self):
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def scaled(self, count):
        """A number of keys that is meant for a state of 64 MiB, for the state of this run."""
        return max(1, count * self.size // STANDARD_BYTES)

    def serve(self, *limits, options=(), folder=None, state=None, prefix=(), **parts):
        """A weir with these limits that has HTTP, Redis and admin listeners; it ends with the
        case. One worker, so that one core is left to the attacker."""
        where = self.folder / (folder or "weir")
        where.mkdir(exist_ok=True)
        state = {"size": f"{self.size // 1024}KiB", **(state or {})}
        rules = rules_of(*limits, state=state, **parts)
        if "--workers" not in options:
            options = ("--workers", "1", *options)
        return self.stack.enter_context(RedisWeir(
            where, rules, *options, http="127.0.0.1:0", admin="127.0.0.1:0", prefix=prefix))

    def end(self):
        """Ends all that the case has started, before its end."""
        self.stack.pop_all().close()
        self.folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))

    # --- What was measured -------------------------------------------------------------------------

    def tell(self, tried, times, measured):
        """A figure without a bound."""
        self._add(report.Row(self.name, tried, times, measured, "", None))

    def holds(self, tried, times, measured, bound, held):
        self._add(report.Row(self.name, tried, times, measured, bound, bool(held)))

    def at_most(self, tried, times, what, value, most):
        """`value` of what must be at most `most`."""
        self.holds(tried, times, f"{what}: {report.number(value)}",
                   f"at most {report.number(most)}" if most else "none", value <= most)

    def all_of(self, tried, times, what, value, of):
        """`value` must be all `of` them."""
        self.holds(tried, times, f"{what}: {report.number(value)} of {report.number(of)}", "all",
                   value == of)

    def part_of(self, tried, times, what, value, of, percent=0):
        """Of `of`, at most a part has fared badly."""
        most = math.floor(of * percent / 100)
        self.holds(tried, times, f"{what}: {report.number(value)} of {report.number(of)}",
                   f"at most {percent} %" if percent else "none", value <= most)

    def _add(self, row):
        self.rows.append(row)
        self.show(report.text_line(row))


def run(names, size, show):
    """Runs these cases; returns all their rows. A case that fails to run is a row that failed."""
    rows = []
    for name in names:
        what, function = CASES[name]
        show(f"\n== {name}: {what}")
        with Attack(name, size, show) as attack:
            try:
                function(attack)
            except Exception as error:  # pylint: disable=broad-except
                what = f"{type(error).__name__}: {error}"[:200].partition("\n")[0]
                attack.holds("the case itself", 1, what, "runs to its end", False)
                show("".join(traceback.format_exception(error))[:10000])
            show(f"  {time.monotonic() - attack.started:.1f} s")
            rows += attack.rows
    return rows

