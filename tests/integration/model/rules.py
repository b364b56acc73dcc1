# SPDX-License-Identifier: Apache-2.0
"""The part of a rules file that the model understands."""

import re

import yaml

from . import algorithms, calendars

UNITS_NS = {
    "ms": 10**6, "s": 10**9, "sec": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
    "hour": 3600 * 10**9, "d": 86400 * 10**9, "day": 86400 * 10**9, "w": 604800 * 10**9,
    "week": 604800 * 10**9,
}
KNOWN = {"name", "match", "key", "algorithm", "rate", "burst", "segments", "strict", "queue",
         "limit", "life", "cost", "shadow", "on_deny", "on_missing", "unless", "quota",
         "timezone", "anchor", "rollover", "shed", "by_standing"}
PRIORITY = {"from": "header.x-priority"}
CLASSES = ["critical", "normal", "sheddable"]
# Who has which standing: lists of users.
STANDINGS = {"warned": "wendy", "throttled": "theo"}
COST_MAX = (1 << 64) - 1


def parse_duration(text):
    number, unit = re.fullmatch(r"(\d*)([a-z]+)", text).groups()
    return int(number or 1) * UNITS_NS[unit]


def parse_rate(text):
    """'N/unit', 'N/Kunit', either with ' burst B' -> (N, W, B or None)."""
    count, period, burst = re.fullmatch(r"(\d+)/(\d*[a-z]+)(?: burst (\d+))?", text).groups()
    return int(count), parse_duration(period), int(burst) if burst else None


class Limit:
    """One limit of the file: whom it applies to, under which key, and how it decides."""

    def __init__(self, entry):
        unknown = set(entry) - KNOWN
        if unknown:
            raise ValueError(f"the model does not know {unknown}")
        self.entry = entry
        self.name = entry["name"]
        self.match = entry.get("match", {})
        self.key = entry.get("key", [])
        self.cost = entry.get("cost", 1)
        self.shadow = entry.get("shadow", False)
        self.charge_on_deny = entry.get("on_deny", "none") == "charge"
        self.unless = entry.get("unless", [])
        missing = entry.get("on_missing", "skip")
        missing = missing if isinstance(missing, list) else [missing]
        self.on_missing = missing[-1] if missing[-1] in ("shared", "deny") else "skip"
        self.instead = [name for name in missing if name not in ("skip", "shared", "deny")]
        self.algorithm = entry.get("algorithm", "sliding_window")
        self.unlimited = entry.get("rate") == "unlimited"
        self.shed = entry.get("shed", {})
        self.by_standing = entry.get("by_standing", {})
        self.states = {}

    def matches(self, attributes):
        return all(attributes.get(name) == value for name, value in self.match.items())

    def key_of(self, attributes):
        """The key's values, or None where one is missing."""
        values = tuple(self.value_of(attributes, name) for name in self.key)
        return None if None in values and self.on_missing != "shared" else values

    def value_of(self, attributes, name):
        """An attribute of the key, or the first that takes its place, with its name; None: neither is there."""
        return next(((at, attributes[at]) for at in [name, *self.instead]
                     if attributes.get(at) is not None), None)

    def new_state(self):
        rates = self.entry.get("rate")
        if isinstance(rates, list):
            return algorithms.Several([self.new_state_of(rate) for rate in rates])
        return self.new_state_of(rates)

    def new_state_of(self, rate):
        entry = self.entry
        if "quota" in entry:
            return calendars.Quota(entry["quota"], entry.get("timezone", "UTC"),
                                   entry.get("anchor"), entry.get("rollover", 0))
        if self.algorithm == "concurrency":
            return algorithms.Concurrency(entry["limit"], parse_duration(entry["life"]))
        limit, window, burst = parse_rate(rate)
        burst = entry.get("burst", burst)
        if self.algorithm == "fixed_window":
            return algorithms.FixedWindow(limit, window)
        if self.algorithm == "sliding_window":
            return algorithms.SlidingWindow(limit, window, entry.get("segments", 1),
                                            entry.get("strict", False))
        if self.algorithm == "sliding_log":
            return algorithms.SlidingLog(limit, window)
        burst = limit if burst is None else burst
        if self.algorithm == "leaky_bucket" and entry.get("queue", False):
            return algorithms.Queue(limit, window, burst)
        if self.algorithm in ("token_bucket", "gcra", "leaky_bucket"):
            return algorithms.Bucket(limit, window, burst)
        raise ValueError(f"the model does not know the algorithm {self.algorithm}")

    def new_state_or_none(self):
        """None for a limit that keeps no state."""
        return None if self.unlimited else self.new_state()

    def state(self, key):
        if key not in self.states:
            self.states[key] = self.new_state()
        return self.states[key]


    def met_by(self, attributes, state, level):
        """The state as a request meets it, by its class and its caller's standing at that moment:
        the smaller percentage counts, and of equal ones that of the standing."""
        priority = attributes.get(PRIORITY["from"])
        shed = percent_of(self.shed, priority if priority in CLASSES else "normal")
        standing = percent_of(self.by_standing, level)
        if min(shed, standing) == 100:
            return state
        if standing <= shed:
            return self.scaled(state, lambda rate: self.rated(rate, standing))
        return self.scaled(state, lambda rate: algorithms.Shed(rate, shed))

    def rated(self, state, percent):
        if isinstance(state, (algorithms.Bucket, algorithms.Queue)):
            return algorithms.Rated(state, percent, "user" in self.key)
        return algorithms.Shed(state, percent)

    @staticmethod
    def scaled(state, scale):
        if isinstance(state, algorithms.Several):
            return algorithms.Several([scale(each) for each in state.states])
        return scale(state)


def percent_of(percents, name):
    return int(percents.get(name, "100%").rstrip("%"))


def load_rules(text):
    document = yaml.safe_load(text)
    if set(document) - {"version", "limits", "priority", "standing", "attributes", "penalties"}:
        raise ValueError("the model does not read all of this file")
    if document.get("priority", PRIORITY) != PRIORITY:
        raise ValueError(f"the model knows the priority {PRIORITY} only")
    return [Limit(entry) for entry in document["limits"]]
