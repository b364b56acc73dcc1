# SPDX-License-Identifier: Apache-2.0
"""Random rules and traces over the whole range of what weir accepts, from a seed.

Requests are made while the model decides them, so that they come at the moments that matter: the
nanosecond at which a denial ends, the one before, the start of a window; and ask for the costs that
matter: what remains, and one more.
"""

import json
import random

from .replay import Replay
from .rules import CLASSES, PRIORITY, STANDINGS, UNITS_NS, Limit

DAY_NS = UNITS_NS["day"]
WINDOW_MAX_MS = 366 * 86400 * 1000
RATE_MAX = 2**32 - 1
BUCKET_MAX = 2**40
DEPTH_MAX_NS = 2**62
LOG_MAX = 10000
COST_MAX = 2**64 - 1
TIME_MAX_NS = 4611686018 * 10**9 - 1  # whole seconds below 2^62 ns
NARROW_WINDOW_MS = 1100  # below, counters of two-counter windows may saturate before 2^32 - 1
KEYS = ["a", "b", "c"]
IDS = ["A", "B"]  # idempotency keys
KINDS = ["read", "write"]
WINDOW_ALGORITHMS = ["fixed_window", "sliding_window", "sliding_log"]
BUCKET_ALGORITHMS = ["token_bucket", "gcra", "leaky_bucket"]


def log_uniform(rng, low, high):
    """An integer of low..high, each order of magnitude as likely as another."""
    value = int(low * (high / low) ** rng.random()) if low else 0
    return min(max(value, low), high)


def pick(rng, *choices):
    """One of (weight, function) pairs, called."""
    function = rng.choices([f for _, f in choices], [w for w, _ in choices])[0]
    return function()


class Generator:
    def __init__(self, seed, algorithms=None, limits=None):
        self.rng = random.Random(seed)
        self.algorithms = algorithms or WINDOW_ALGORITHMS * 2 + BUCKET_ALGORITHMS + [
            "queue", "queue", "concurrency"]
        count = limits or pick(self.rng, (5, lambda: 1), (4, lambda: self.rng.randint(2, 4)),
                               (1, lambda: self.rng.randint(5, 12)))
        self.entries = [self.limit_entry(f"limit-{i}") for i in range(count)]
        for i in range(1, count):
            if self.rng.random() < 0.15:
                earlier = self.rng.sample(self.entries[:i], self.rng.randint(1, min(i, 3)))
                self.entries[i]["unless"] = [entry["name"] for entry in earlier]

    # --- rules ------------------------------------------------------------------------------

    def window_ms(self):
        rng = self.rng
        return pick(rng, (3, lambda: log_uniform(rng, 1, WINDOW_MAX_MS)),
                    (4, lambda: rng.choice([1000, 60000, 3600000, 86400000])),
                    (2, lambda: rng.choice([1, 7, 1001, 604800000, WINDOW_MAX_MS])))

    def duration_text(self, milliseconds):
        fitting = [unit for unit, ns in UNITS_NS.items() if milliseconds * 10**6 % ns == 0]
        unit = self.rng.choice(fitting)
        count = milliseconds * 10**6 // UNITS_NS[unit]
        return unit if count == 1 and self.rng.random() < 0.7 else f"{count}{unit}"

    def rate(self, most):
        rng = self.rng
        return pick(rng, (6, lambda: rng.randint(1, 12)), (4, lambda: log_uniform(rng, 1, most)),
                    (1, lambda: most), (0.3, lambda: 0))

    def segments(self, window_ms):
        fitting = [s for s in range(1, 121) if window_ms * 10**6 % s == 0]
        return self.rng.choice([fitting[-1], self.rng.choice(fitting), 1])

    def bucket_fields(self, window_ms, queue):
        """N and B with B*W/N (for the queue (B+1)*W/N) in range."""
        while True:
            count = self.rate(BUCKET_MAX)
            burst = pick(self.rng, (4, lambda: None), (4, lambda: self.rng.randint(1, 20)),
                         (3, lambda: log_uniform(self.rng, 1, BUCKET_MAX)),
                         (1, lambda: BUCKET_MAX))
            if count == 0:
                return count, None
            depth = (count if burst is None else burst) + (1 if queue else 0)
            if depth * window_ms * 10**6 <= DEPTH_MAX_NS * count:
                return count, burst

    def limit_entry(self, name):
        rng = self.rng
        algorithm = rng.choice(self.algorithms)
        entry = {"name": name, "algorithm": algorithm}
        window_ms = self.window_ms()
        period = self.duration_text(window_ms)
        if algorithm == "concurrency":
            entry["limit"] = pick(rng, (4, lambda: rng.randint(1, 8)),
                                  (1, lambda: log_uniform(rng, 1, LOG_MAX)))
            entry["life"] = period if period[0].isdigit() else "1" + period
        elif algorithm in BUCKET_ALGORITHMS or algorithm == "queue":
            if algorithm == "queue":
                entry |= {"algorithm": "leaky_bucket", "queue": True}
            count, burst = self.bucket_fields(window_ms, algorithm == "queue")
            entry["rate"] = f"{count}/{period}"
            if burst is not None and rng.random() < 0.5:
                entry["burst"] = burst
            elif burst is not None:
                entry["rate"] += f" burst {burst}"
        else:
            entry["rate"] = f"{self.rate(LOG_MAX if algorithm == 'sliding_log' else RATE_MAX)}/{period}"
            if algorithm == "sliding_window" and rng.random() < 0.7:
                entry["segments"] = self.segments(window_ms)
            if algorithm == "sliding_window" and rng.random() < 0.4:
                entry["strict"] = True
        self.add_manners(entry)
        two_counters = algorithm == "sliding_window" and entry.get("segments", 1) == 1
        if two_counters and window_ms < NARROW_WINDOW_MS:
            entry.pop("on_deny", None)
        return entry

    def add_manners(self, entry):
        """Keys, matches, costs: what is independent of the algorithm."""
        rng = self.rng
        entry["key"] = rng.choice([["k"], ["k"], ["k", "kind"], [], ["user"], ["user", "k"]])
        if rng.random() < 0.3:
            entry["match"] = {"kind": rng.choice(KINDS)}
        if entry["key"] and rng.random() < 0.1:
            end = rng.choice(["skip", "shared", "deny"])
            instead = rng.sample(["user", "kind", "k"], rng.randint(0, 2))
            entry["key"], entry["on_missing"] = ["rare"], [*instead, end] if instead else end
        if rng.random() < 0.2:
            entry["cost"] = pick(rng, (3, lambda: rng.randint(1, 20)),
                                 (1, lambda: log_uniform(rng, 1, RATE_MAX)))
        if rng.random() < 0.15:
            entry["shadow"] = True
        if rng.random() < 0.25:
            low, high = sorted(rng.choice([1, 50, 60, 90, 99, 100, rng.randint(1, 100)])
                               for _ in range(2))
            entry["shed"] = {"sheddable": f"{low}%", "normal": f"{high}%"}
        if rng.random() < 0.35:
            entry["by_standing"] = {level: f"{rng.choice([1, 20, 50, 99, rng.randint(1, 100)])}%"
                                    for level in STANDINGS}
        if rng.random() < 0.2 and entry["algorithm"] != "concurrency":
            entry["on_deny"] = "charge"
        if rng.random() < 0.03 and entry["algorithm"] != "concurrency":
            for name in ("burst", "segments", "strict", "queue", "by_standing", "shed"):
                entry.pop(name, None)
            entry["rate"] = "unlimited"

    def rules_text(self):
        """The rules file. JSON is YAML."""
        limits = ",\n".join("  " + json.dumps(entry) for entry in self.entries)
        lists = [{"file": level, "by": "user", "level": level} for level in STANDINGS]
        head = {"priority": PRIORITY, "standing": {"by": ["user"], "lists": lists}}
        sections = "".join(f"{name}: {json.dumps(value)}\n" for name, value in head.items())
        return f"version: 1\n{sections}limits: [\n{limits}\n]\n"

    @staticmethod
    def write_lists(folder):
        """The files that the rules name."""
        for level, user in STANDINGS.items():
            (folder / level).write_text(user + "\n", encoding="utf-8")

    # --- requests ---------------------------------------------------------------------------

    def scale_ns(self):
        """A time in which something happens to one of the limits."""
        state = Limit(self.rng.choice(self.entries)).new_state_or_none()
        if state is None or not getattr(state, "window", 0):
            return log_uniform(self.rng, 1, DAY_NS)
        period = state.window // max(1, getattr(state, "rate", state.capacity))
        return self.rng.choice([state.window, state.window * 2, max(1, period), 10])

    def step(self, now, moments):
        """The time of the next request."""
        rng = self.rng
        t = pick(rng, (30, lambda: now),
                 (30, lambda: now + log_uniform(rng, 1, max(1, self.scale_ns()))),
                 (30, lambda: rng.choice(moments or [now]) + rng.choice([0, 0, -1, 1])),
                 (4, lambda: max(0, now - log_uniform(rng, 1, 10 * DAY_NS))),
                 (1, lambda: now + 400 * DAY_NS))
        return t if 0 <= t <= TIME_MAX_NS else now

    def cost(self, replay):
        rng = self.rng
        limit = rng.choice(replay.limits)
        states = list(limit.states.values())
        capacity = states[0].capacity if states else 1
        low = log_uniform(rng, 1, max(1, capacity))
        cost = pick(rng, (70, lambda: 1), (5, lambda: 0), (10, lambda: rng.randint(2, 5)),
                    (8, lambda: max(0, capacity // limit.cost + rng.choice([-1, 0, 0, 1]))),
                    (12, lambda: low // limit.cost), (1, lambda: COST_MAX),
                    (1, lambda: log_uniform(rng, 1, COST_MAX)))
        if any(limit.charge_on_deny for limit in replay.limits):
            cost = min(cost, 2**31)
        return min(cost, COST_MAX)

    def request(self, replay):
        rng = self.rng
        attributes = {"k": rng.choice(KEYS), "kind": rng.choice(KINDS)}
        if rng.random() < 0.2:
            attributes["rare"] = "x"
        if rng.random() < 0.8:
            attributes["user"] = rng.choice([*STANDINGS.values(), *STANDINGS.values(), "ann"])
        if rng.random() < 0.7:
            attributes[PRIORITY["from"]] = rng.choice([*CLASSES, "sheddable"])
        return {"attributes": attributes, "cost": self.cost(replay),
                "dry_run": rng.random() < 0.05,
                "idempotency_key": pick(rng, (9, lambda: None), (1, lambda: rng.choice(IDS)))}

    def trace(self, count):
        """Yields (line of the trace, the decision that the model expects)."""
        rng = self.rng
        replay = Replay([Limit(entry) for entry in self.entries], STANDINGS)
        now = pick(rng, (6, lambda: 1_700_000_000 * 10**9 + rng.randrange(10**12)),
                   (1, lambda: 0), (1, lambda: log_uniform(rng, 1, TIME_MAX_NS // 2)))
        moments = []
        for _ in range(count):
            t = self.step(now, moments)
            request = self.request(replay)
            decision = replay.decide(t, request["attributes"], request["cost"],
                                     request["dry_run"], request["idempotency_key"])
            now = max(now, t)
            moments = [moment for moment in moments if moment >= now][-6:]
            for limit in decision["limits"]:
                for field in ("retry_after_ns", "reset_after_ns"):
                    if 0 < limit[field] < 800 * DAY_NS:
                        moments.append(now + limit[field])
            yield self.line(t, request), decision

    def line(self, t, request):
        """A request as a line of a trace; defaults are left out now and then."""
        rng = self.rng
        seconds = f"{t // 10**9}.{t % 10**9:09d}"
        if rng.random() < 0.3:
            seconds = seconds.rstrip("0").rstrip(".")
        if rng.random() < 0.3:
            seconds = f'"{seconds}"'
        fields = [f'"t": {seconds}', f'"attributes": {json.dumps(request["attributes"])}']
        if request["cost"] != 1 or rng.random() < 0.2:
            fields.append(f'"cost": {request["cost"]}')
        if request["dry_run"]:
            fields.append('"dry_run": true')
        if request["idempotency_key"]:
            fields.append(f'"idempotency_key": "{request["idempotency_key"]}"')
        rng.shuffle(fields)
        return "{" + ", ".join(fields) + "}"
