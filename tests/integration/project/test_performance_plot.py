# SPDX-License-Identifier: Apache-2.0
"""The plot of docs/performance.md: it shows the page's numbers, names its axes, and has a dark form."""

import importlib.util
import re

from model.program import ROOT


def report():
    spec = importlib.util.spec_from_file_location("report", ROOT / "bench" / "compare" / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_plot_is_what_the_script_draws_of_the_table_beside_it():
    module = report()
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = page[page.index(f"({module.PLOT})"):].split("\n\n")[1]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([\d, |]+) \|", table, re.M))
    numbers = {(name, depth): int(cell.replace(",", "")) for name in module.CASES
               for depth, cell in zip(module.PIPELINES, rows[name].split(" | "))}
    assert len(numbers) == len(module.CASES) * len(module.PIPELINES)
    assert (ROOT / "docs" / module.PLOT).read_text(encoding="utf-8") == module.plot(numbers)


def test_it_names_its_axes_and_has_a_dark_form():
    module = report()
    drawn = module.plot({(name, depth): depth * 1e5 for name in module.CASES for depth in module.PIPELINES})
    assert ">decisions a second on one core, in millions</text>" in drawn
    assert ">pipelining: requests sent before their answers</text>" in drawn
    dark = re.search(r"@media\(prefers-color-scheme:dark\)\{(.*)\}</style>", drawn)[1]
    used = set(re.findall(r'class="([\w-]+)"', drawn))
    assert used == set(re.findall(r"\.([\w-]+)\{", dark)) and "fill=" not in drawn
