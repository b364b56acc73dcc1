# SPDX-License-Identifier: Apache-2.0
"""Quotas by calendar, over Python's own zoneinfo."""

import functools
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from . import algorithms

NS = 10**9
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def wall(zone, at_s):
    """What a clock on the wall shows."""
    return (EPOCH + timedelta(seconds=at_s)).astimezone(zone).replace(tzinfo=None)


def moment(zone, shown):
    """The first second at which the wall shows this time, or a later one where it is skipped."""
    at_s = int((shown.replace(tzinfo=zone) - EPOCH).total_seconds())
    if wall(zone, at_s) == shown:
        return at_s
    low, high = at_s - 86400, at_s + 86400  # skipped: the second at which the clocks do
    while high - low > 1:
        middle = (low + high) // 2
        if wall(zone, middle) >= shown:
            high = middle
        else:
            low = middle
    return high


class Calendar:
    """The periods of one unit, zone and anchor, by number."""

    def __init__(self, unit, zone, anchor):
        self.unit, self.zone = unit, ZoneInfo(zone)
        words = str(anchor or "").split()
        self.time = time.fromisoformat(words.pop()) if words and ":" in words[-1] else time()
        self.day = words[0] if words else None
        self.begins_at = functools.lru_cache(maxsize=None)(self._begins_at)

    def anchor_day(self, number):
        """The day on which a period begins."""
        if self.unit == "day":
            return date.fromordinal(number)
        if self.unit == "week":
            weekday = WEEKDAYS.index(self.day[:3]) if self.day else 0
            return date.fromordinal(number * 7 + 1 + weekday)
        if self.unit == "month":
            year, month, wanted = number // 12, number % 12 + 1, int(self.day or 1)
        else:
            year = number
            month, wanted = map(int, (self.day or "01-01").split("-"))
        following = date(year + month // 12, month % 12 + 1, 1)
        last = (following - timedelta(days=1)).day
        return date(year, month, min(wanted, last))

    def _begins_at(self, number):
        return moment(self.zone, datetime.combine(self.anchor_day(number), self.time)) * NS

    def period(self, t):
        """The number of the period that a time in nanoseconds is in."""
        day = wall(self.zone, t // NS).date()
        number = {"day": day.toordinal(), "week": (day.toordinal() - 1) // 7,
                  "month": day.year * 12 + day.month - 1, "year": day.year}[self.unit]
        while self.begins_at(number) > t:
            number -= 1
        while self.begins_at(number + 1) <= t:
            number += 1
        return number


class Quota:
    """count(period) + c <= N + min(R, what was left of N in the period before)."""

    def __init__(self, quota, zone, anchor, rollover):
        count, unit = quota.split("/")
        self.limit = int(count)
        self.rollover = (self.limit * int(rollover[:-1]) // 100 if isinstance(rollover, str)
                         else rollover)
        self.capacity = self.limit + self.rollover
        self.window = 86400 * NS
        self.calendar = calendar_of(unit, zone, str(anchor) if anchor is not None else None)
        self.counts = {}

    def admits(self, t, cost):
        period = self.calendar.period(t)
        left = max(0, self.limit - self.counts.get(period - 1, 0))
        return self.counts.get(period, 0) + cost <= self.limit + min(self.rollover, left)

    def is_fresh(self, t):
        oldest = self.calendar.period(t) - (1 if self.rollover else 0)
        return not any(period >= oldest and count for period, count in self.counts.items())

    def delay(self, t, cost):
        return 0

    def charge(self, t, cost):
        period = self.calendar.period(t)
        self.counts = {p: count for p, count in self.counts.items() if p >= period - 1}
        self.counts[period] = min(self.counts.get(period, 0) + cost, algorithms.COUNTER_MAX)

    charge_denied = charge

    def moments(self, t):
        period = self.calendar.period(t)
        return [self.calendar.begins_at(period + i) for i in (1, 2)]


calendar_of = functools.lru_cache(maxsize=None)(Calendar)
