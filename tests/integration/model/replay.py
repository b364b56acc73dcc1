# SPDX-License-Identifier: Apache-2.0
"""Requests through limits: one atomic decision each, at a time that never goes back."""

import json
from decimal import Decimal

from . import algorithms
from .rules import COST_MAX


IDEMPOTENCY_NS = 600 * 10**9  # how long a key is remembered, by default


class Fixed:
    """Standing that stays: level -> the user who has it."""

    def __init__(self, levels):
        self.levels = levels

    def level(self, user, now):
        return next((level for level, has in self.levels.items() if has == user), None)


class Moving:
    """Standing that changes between requests: of each user a level, until some time."""

    def __init__(self):
        self.terms = {}

    def set(self, user, level, until):
        self.terms[user] = (level, until)

    def clear(self, user):
        self.terms.pop(user, None)

    def level(self, user, now):
        level, until = self.terms.get(user, (None, 0))
        return level if now < until else None


class Replay:
    def __init__(self, limits, standings=None):
        self.limits = limits
        self.standings = standings if isinstance(standings, Moving) else Fixed(standings or {})
        self.now = 0
        self.count = 0
        self.admitted = {}  # idempotency key and what is charged for it -> when

    def decide(self, t, attributes, cost=1, dry_run=False, idempotency_key=None):
        """One request; returns the object that one line of `--decisions` holds."""
        self.now = max(self.now, t)
        self.count += 1
        checks = []
        for limit in self.limits:
            met = {check["limit"].name for check in checks}
            if limit.matches(attributes) and not met.intersection(limit.unless):
                check = self.check(limit, attributes, min(cost * limit.cost, COST_MAX))
                if check:
                    checks.append(check)
        record = self.record(idempotency_key, checks)
        if self.now < self.admitted.get(record, -IDEMPOTENCY_NS) + IDEMPOTENCY_NS:
            return self.repeat(attributes, checks)
        allowed = all(check["allowed"] or check["limit"].shadow for check in checks)
        if not dry_run:
            for check in checks:
                self.settle(check, allowed)
        if record and allowed and not dry_run:
            self.admitted[record] = self.now
        return self.decision(allowed, attributes, checks)

    def decision(self, allowed, attributes, checks):
        line = {"n": self.count, "allowed": allowed}
        level = self.standings.level(attributes.get("user"), self.now)
        line |= {"standing": level} if level else {}
        return line | {"limits": [self.report(check) for check in checks]}

    def record(self, idempotency_key, checks):
        """What a request with an idempotency key is recognised by; None: nothing is remembered."""
        parts = [(check["limit"].name, check["key"], check["cost"]) for check in checks
                 if check["state"]]
        return (idempotency_key, *parts) if idempotency_key and parts else None

    def repeat(self, attributes, checks):
        """A request that was admitted before: all limits admit it, and it is charged nothing."""
        for check in checks:
            check |= {"allowed": True, "delay": 0, "denying": [False] * len(check["denying"])}
        return self.decision(True, attributes, checks)

    def check(self, limit, attributes, cost):
        """What one limit says, before anything is charged; None where it does not apply."""
        key = limit.key_of(attributes)
        if key is None and limit.on_missing == "deny":
            return {"limit": limit, "state": None, "cost": cost, "allowed": False, "delay": 0,
                    "denying": []}
        if key is None:
            return None
        if limit.unlimited:
            return {"limit": limit, "state": None, "cost": cost, "allowed": True, "delay": 0,
                    "denying": []}
        level = self.standings.level(attributes.get("user"), self.now)
        state = limit.met_by(attributes, limit.state(key), level)
        allowed = state.admits(self.now, cost)
        delay = state.delay(self.now, cost) if allowed else 0
        return {"limit": limit, "key": key, "state": state, "cost": cost, "allowed": allowed,
                "delay": delay,
                "denying": [not rate.admits(self.now, cost)
                            for rate in getattr(state, "states", [state])]}

    def settle(self, check, request_allowed):
        """Charges a check as its limit and the request's verdict ask."""
        state, limit = check["state"], check["limit"]
        if state is None:
            return
        if check["allowed"] and (request_allowed or limit.charge_on_deny):
            state.charge(self.now, check["cost"])
        elif limit.charge_on_deny:
            state.charge_denied(self.now, check["cost"])

    def report(self, check):
        state, limit = check["state"], check["limit"]
        line = {"name": limit.name, "allowed": check["allowed"], "delay_ns": check["delay"]}
        if limit.unlimited and check["allowed"]:
            return line | {"remaining": None, "retry_after_ns": 0, "reset_after_ns": 0}
        if state is None:
            return line | {"remaining": 0, "retry_after_ns": algorithms.NEVER,
                           "reset_after_ns": 0}
        retries = [algorithms.retry_after(rate, self.now, check["cost"]) if denies else 0
                   for rate, denies in zip(getattr(state, "states", [state]), check["denying"])]
        result = state.result(self.now, retries) if len(retries) > 1 else state
        retry = algorithms.NEVER if algorithms.NEVER in retries else max(retries)
        return line | {"remaining": algorithms.remaining(state, self.now),
                       "retry_after_ns": retry,
                       "reset_after_ns": algorithms.reset_after(result, self.now)}


def parse_time(value):
    """Seconds, a number or a string, to nanoseconds, exactly."""
    nanoseconds = Decimal(value) * 10**9
    if nanoseconds != int(nanoseconds):
        raise ValueError(f"{value} is finer than a nanosecond")
    return int(nanoseconds)


def parse_json_line(text):
    """One line of a trace -> (t, attributes, cost, dry_run)."""
    request = json.loads(text, parse_float=Decimal)
    attributes = dict(request.get("attributes", {}))
    for name, value in request.get("headers", {}).items():
        attributes["header." + name.lower()] = value
    for name, attribute in (("method", "method"), ("path", "path"), ("host", "host"),
                            ("ip", "client.ip")):
        if name in request:
            attributes[attribute] = request[name]
    return (parse_time(request["t"]), attributes, request.get("cost", 1),
            request.get("dry_run", False))
