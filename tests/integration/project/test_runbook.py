# SPDX-License-Identifier: Apache-2.0
"""docs/operations/runbook.md has every event that the log can have at the level warning or error."""

import re

from model.program import ROOT

# Functions that log what they are given at one of these levels; their names of events are literals.
HELPERS = "listener_log_begin|listener_log|log_attempt|log_failure|log_state|log_series|line_make|tell_edge"


def calls(text):
    """The arguments of each call that logs a warning or an error."""
    for match in re.finditer(rf"\b(?:weir_log_\w+|log_text|{HELPERS})\(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        arguments = text[match.end():end]
        if re.search("WEIR_LOG_(WARNING|ERROR)", arguments) or re.match(HELPERS, match[0]):
            yield arguments


def events():
    found = set()
    for path in (ROOT / "src").rglob("*.c"):
        for arguments in calls(path.read_text(encoding="utf-8")):
            condition = re.search(r'\? "(\w+)"\s*: "(\w+)"', arguments)
            # Of two events in one call, the second is good news, where the level depends on it too.
            good_news = re.search(r"\? WEIR_LOG_(WARNING|ERROR) *: *WEIR_LOG_", arguments)
            names = ([condition[1]] if good_news else [*condition.groups()]) if condition else re.findall(r'"([a-z]+(?:_[a-z]+)*)"', arguments)[:1]
            found.update(names)
    # Those of the shared store come from the store, all but the good news; see tell in
    # server/stores/shared_store.c.
    store = (ROOT / "src" / "store" / "redis").rglob("*.c")
    of_store = {name for path in store for name in
                re.findall(r'store_tell\(\w+, "(\w+)"', path.read_text(encoding="utf-8"))}
    # The breaker that workers share is logged as a breaker is.
    return (found | of_store) - {"store_up", "breaker_closed", "state_file_found",
                                 "shared_breaker_open", "shared_breaker_closed"}


def test_the_runbook_has_every_warning_and_error():
    text = (ROOT / "docs" / "operations" / "runbook.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert len(listed) == len(set(listed))
    wanted = events()
    assert len(wanted) > 45
    assert set(listed) == wanted, (sorted(wanted - set(listed)), sorted(set(listed) - wanted))
