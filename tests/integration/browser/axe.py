# SPDX-License-Identifier: Apache-2.0
"""axe-core, the checker of accessibility, run in a page: https://github.com/dequelabs/axe-core"""

import registry

VERSION = "4.10.3"
# WCAG 2.2 to level AA, and what axe-core recommends beyond.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, { runOnly: arguments[0], resultTypes: ["violations"] }).then((found) =>
  done(found.violations.flatMap((one) => one.nodes.map((node) =>
    `${one.id}: ${node.target.join(" ")}: ${node.failureSummary.replace(/\\s+/g, " ")}`))),
  (error) => done([`axe: ${error}`]));
"""


def axe_source(folder):
    """The text of axe-core from npm; without a registry the test is skipped, with the reason."""
    registry.needed("npm")
    (folder / "empty").mkdir()
    packages = registry.Folder(folder / "empty")
    try:
        packages.install("axe-core of npm", "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
                         "--silent", f"axe-core@{VERSION}")
        return (packages.path / "work/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    finally:
        packages.remove()


def violations(browser, source):
    """What axe-core finds in the page as it is now: "rule: element: what to do" each."""
    browser.execute_script(source)
    return browser.execute_async_script(RUN, TAGS)
