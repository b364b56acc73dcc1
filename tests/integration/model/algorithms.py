# SPDX-License-Identifier: Apache-2.0
"""The algorithms, one class each, over exact integers.

A state answers only obvious questions, always about one moment `t` in nanoseconds:

    admits(t, cost)     would the cost be admitted, were nothing else to happen until t?
    is_fresh(t)         is the state at t the same as one that was never used?
    delay(t, cost)      how long an admitted cost has to wait (the queue only)
    charge(t, cost)     the cost is used up
    charge_denied(t, c) the cost was denied and is charged nevertheless (`on_deny: charge`)

What a client learns (remaining, retry, reset) is found by searching for the smallest time or the
largest cost for which the answer is yes: straight from the definition, with no formula to get
wrong. A state may offer a guess to shorten the search; the guess is proven before it is used.
"""

import math

NEVER = -1
TIME_END = 1 << 64
COUNTER_MAX = (1 << 32) - 1


class FixedWindow:
    """count of window floor(t/W); count + c <= N."""

    def __init__(self, limit, window):
        self.capacity = limit
        self.limit, self.window = limit, window
        self.index, self.count = 0, 0

    def used(self, t):
        return self.count if t // self.window == self.index else 0

    def admits(self, t, cost):
        return self.used(t) + cost <= self.limit

    def is_fresh(self, t):
        return self.used(t) == 0

    def delay(self, t, cost):
        return 0

    def charge(self, t, cost):
        self.index, self.count = t // self.window, min(self.used(t) + cost, COUNTER_MAX)

    charge_denied = charge

    def moments(self, t):
        """Times at which the answers may change."""
        return [(self.index + 1) * self.window]


class SlidingWindow:
    """S+1 counters of segments of w = W/S; the oldest is weighted by what still overlaps the
    window, or counts in full when strict."""

    def __init__(self, limit, window, segments=1, strict=False):
        assert window % segments == 0
        self.capacity = limit
        self.limit, self.segments, self.strict = limit, segments, strict
        self.width = window // segments
        self.counts = {}

    def used(self, t):
        newest, offset = divmod(t, self.width)
        oldest = newest - self.segments
        total = 0
        for index, count in self.counts.items():
            if oldest < index <= newest:
                total += count
            elif index == oldest:
                left = self.width if self.strict else self.width - offset
                total += count * left // self.width
        return total

    def admits(self, t, cost):
        return self.used(t) + cost <= self.limit

    def is_fresh(self, t):
        oldest = t // self.width - self.segments
        return not any(index >= oldest and count for index, count in self.counts.items())

    def delay(self, t, cost):
        return 0

    def charge(self, t, cost):
        newest = t // self.width
        self.counts = {i: k for i, k in self.counts.items() if i >= newest - self.segments}
        self.counts[newest] = min(self.counts.get(newest, 0) + cost, COUNTER_MAX)

    charge_denied = charge

    def moments(self, t):
        times = []
        for index in self.counts:
            times += [(index + self.segments) * self.width, (index + self.segments + 1) * self.width]
        return times


class SlidingLog:
    """The admission times in (t-W, t] with their costs; sum + c <= N. At most N entries (one for
    N = 0): a charge of a denied cost that finds no room joins the newest entry."""

    def __init__(self, limit, window):
        self.capacity = limit
        self.limit, self.window = limit, window
        self.entries = []

    def used(self, t):
        return sum(cost for time, cost in self.entries if time > t - self.window)

    def admits(self, t, cost):
        return self.used(t) + cost <= self.limit

    def is_fresh(self, t):
        return all(time <= t - self.window for time, _ in self.entries)

    def delay(self, t, cost):
        return 0

    def charge(self, t, cost):
        self.entries = [entry for entry in self.entries if entry[0] > t - self.window]
        if cost == 0:
            return
        room = max(self.limit, 1)
        if self.entries and (self.entries[-1][0] == t or len(self.entries) == room):
            cost += self.entries.pop()[1]
        self.entries.append((t, min(cost, COUNTER_MAX)))

    charge_denied = charge

    def moments(self, t):
        return [time + self.window for time, _ in self.entries]


class Bucket:
    """token_bucket, gcra and leaky_bucket as a meter. The level is counted in pieces of 1/W of a
    token (N pieces come in every nanosecond), so that nothing is ever rounded."""

    def __init__(self, limit, window, burst):
        self.capacity = burst if limit else 0
        self.rate, self.window = limit, window
        self.full = self.capacity * window
        self.level, self.time = self.full, 0

    def level_at(self, t):
        return min(self.full, self.level + (t - self.time) * self.rate)

    def admits(self, t, cost):
        return self.level_at(t) >= cost * self.window

    def is_fresh(self, t):
        return self.level_at(t) == self.full

    def delay(self, t, cost):
        return 0

    def charge(self, t, cost):
        self.level, self.time = self.level_at(t) - cost * self.window, t

    def charge_denied(self, t, cost):
        self.fill(t, cost * self.window, self.full)

    def owed(self, t):
        """In pieces; and what it takes to owe more, or to owe more up to a depth."""
        return self.full - self.level_at(t)

    def owe(self, t, pieces):
        self.level, self.time = self.level_at(t) - pieces, t

    def fill(self, t, pieces, depth):
        if self.owed(t) <= depth:
            self.owe(t, min(pieces, depth - self.owed(t)))

    def moments(self, t):
        if not self.rate:
            return []
        return [self.time + -(-(self.full - self.level) // self.rate)]


class Queue:
    """leaky_bucket with `queue: true`: the time at which the next slot is free, in pieces of 1/N
    of a nanosecond; T = W/N is then W pieces."""

    def __init__(self, limit, window, burst):
        self.capacity = burst + 1 if limit else 0
        self.rate, self.window, self.burst = limit, window, burst
        self.next = 0

    def wait(self, t):
        return max(self.next, t * self.rate) - t * self.rate

    def admits(self, t, cost):
        if not self.rate:
            return cost == 0
        return self.wait(t) + (cost - 1) * self.window <= self.burst * self.window

    def is_fresh(self, t):
        return self.wait(t) == 0

    def delay(self, t, cost):
        return -(-self.wait(t) // self.rate) if self.rate else 0

    def charge(self, t, cost):
        self.next = max(self.next, t * self.rate) + cost * self.window

    def charge_denied(self, t, cost):
        if self.rate:
            self.fill(t, cost * self.window, self.capacity * self.window)

    def owed(self, t):
        """As of Bucket."""
        return self.wait(t)

    def owe(self, t, pieces):
        self.next = max(self.next, t * self.rate) + pieces

    def fill(self, t, pieces, depth):
        if self.owed(t) <= depth and pieces:
            self.owe(t, min(pieces, depth - self.owed(t)))

    def moments(self, t):
        return [-(-self.next // self.rate)] if self.rate else []


class Concurrency:
    """Leases in flight, each with its cost and the time at which it ends by itself."""

    def __init__(self, limit, life):
        self.capacity = limit
        self.limit, self.life = limit, life
        self.leases = []

    def used(self, t):
        return sum(cost for expiry, cost in self.leases if expiry > t)

    def admits(self, t, cost):
        return self.used(t) + cost <= self.limit

    def is_fresh(self, t):
        return all(expiry <= t for expiry, _ in self.leases)

    def delay(self, t, cost):
        return 0

    def charge(self, t, cost):
        self.leases = [lease for lease in self.leases if lease[0] > t]
        if cost:
            self.leases.append((t + self.life, cost))

    def moments(self, t):
        return [expiry for expiry, _ in self.leases]


class Shed:
    """A state as a request of some class meets it: of its capacity C a part is kept for others, so a
    cost is admitted where C minus that part of more would be. The cost is charged unchanged."""

    def __init__(self, state, percent):
        self.state = state
        self.capacity = max(state.capacity * percent // 100, min(state.capacity, 1))
        self.window = getattr(state, "window", 0)

    def admits(self, t, cost):
        return self.state.admits(t, cost + self.state.capacity - self.capacity if cost else 0)

    def is_fresh(self, t):
        return self.state.is_fresh(t)

    def delay(self, t, cost):
        return self.state.delay(t, cost)

    def charge(self, t, cost):
        self.state.charge(t, cost)

    def charge_denied(self, t, cost):
        self.state.charge_denied(t, cost)

    def moments(self, t):
        return self.state.moments(t)


class Rated:
    """A Bucket or Queue as a caller meets it whose standing leaves it some percent of rate and burst:
    each cost takes more, of which the part of 1/denom of a nanosecond is cut off (`unit` pieces).
    Where that leaves not one request of the burst, one passes when nothing is owed; it takes its
    whole weight if all callers of this state have that percentage (`alone`), else the burst."""

    def __init__(self, state, percent, alone):
        self.state, self.percent = state, percent
        self.window = state.window
        self.depth = state.capacity * state.window
        self.unit = math.gcd(state.rate, state.window)
        self.capacity = max(state.capacity * percent // 100, min(state.capacity, 1))
        self.one_by_one = state.capacity * percent < 100
        if self.one_by_one and alone:
            self.depth = max(self.depth, self.weight(1))

    def weight(self, cost):
        return cost * (self.window // self.unit) * 100 // self.percent * self.unit

    def takes(self, cost):
        return min(self.weight(1), self.depth) if cost == 1 else self.weight(cost)

    def admits(self, t, cost):
        if cost == 0 or not self.state.rate:
            return self.state.admits(t, cost)
        if self.one_by_one:
            return cost == 1 and self.state.owed(t) == 0
        return self.state.owed(t) + self.weight(cost) <= self.depth

    def is_fresh(self, t):
        return self.state.is_fresh(t)

    def delay(self, t, cost):
        return self.state.delay(t, cost)

    def charge(self, t, cost):
        if self.state.rate:
            self.state.owe(t, self.takes(cost))

    def charge_denied(self, t, cost):
        if self.state.rate:
            self.state.fill(t, self.takes(cost), self.depth)

    def moments(self, t):
        return self.state.moments(t)


class Several:
    """Several rates of one limit: each has a state of its own, and all have to admit."""

    def __init__(self, states):
        self.states = states
        self.capacity = min(state.capacity for state in states)
        self.window = max(getattr(state, "window", 0) for state in states)

    def admits(self, t, cost):
        return all(state.admits(t, cost) for state in self.states)

    def is_fresh(self, t):
        return all(state.is_fresh(t) for state in self.states)

    def delay(self, t, cost):
        return max(state.delay(t, cost) for state in self.states)

    def charge(self, t, cost):
        for state in self.states:
            state.charge(t, cost)

    def charge_denied(self, t, cost):
        """The rates that admit it charge it as any, the others as a denied one."""
        for state in self.states:
            (state.charge if state.admits(t, cost) else state.charge_denied)(t, cost)

    def moments(self, t):
        return [moment for state in self.states for moment in state.moments(t)]

    def result(self, t, denying):
        """The rate that a client sees: of those in `denying` the one with the longest retry,
        else the one with the least remaining, then with the longest reset; the first of equals.
        `denying` has for each rate the nanoseconds until it admits; 0: it does."""
        longest = max(denying, key=lambda retry: TIME_END if retry == NEVER else retry)
        if longest != 0:
            return self.states[denying.index(longest)]
        return min(self.states, key=lambda state: (remaining(state, t), -reset_after(state, t)))


def first_time(holds, t, guesses):
    """The smallest time >= t at which `holds` is true; once true it stays true. None: never."""
    if holds(t):
        return t
    if not holds(TIME_END):
        return None
    times = [t] + sorted(guess for guess in guesses if t < guess < TIME_END) + [TIME_END]
    low, high = 0, len(times) - 1
    while high - low > 1:  # between which two of the guesses is it?
        middle = (low + high) // 2
        if holds(times[middle]):
            high = middle
        else:
            low = middle
    low, high = times[low], times[high]
    if not holds(high - 1):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def remaining(state, t):
    """The largest cost that would be admitted now."""
    low, high = 0, state.capacity + 1
    while high - low > 1:
        middle = (low + high) // 2
        if state.admits(t, middle):
            low = middle
        else:
            high = middle
    return low


def retry_after(state, t, cost):
    if cost > state.capacity:
        return NEVER
    time = first_time(lambda at: state.admits(at, cost), t, state.moments(t))
    return NEVER if time is None else time - t


def reset_after(state, t):
    return first_time(state.is_fresh, t, state.moments(t)) - t
