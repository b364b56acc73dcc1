# SPDX-License-Identifier: Apache-2.0
"""A queue for each class of callers, of which one lends the places that it has not given yet: beside an
exact model in fractions, and where counts are in Redis."""

import json
import random
from fractions import Fraction

import pytest

from daemon.nodes import Nodes, shared_rules
from model.program import replay_decisions

SECOND = 1_000_000_000


class Line:
    """A queue: one place each `period`, of which `places` may be given ahead, beside the one that passes at once."""

    def __init__(self, rate, places):
        self.period, self.places, self.next = Fraction(SECOND, rate), places, Fraction(0)

    def delay(self, now, places):
        """The wait of the next place; None where as many wait already."""
        wait = max(self.next - now, Fraction(0))
        return wait if wait <= places * self.period else None

    def give(self, now):
        self.next = max(self.next, Fraction(now)) + self.period


class Classes:
    """What the rules below say: each class has its line, and free callers may have places of the other's."""

    def __init__(self, paid, free, reserve):
        (self.rate, self.burst), self.reserve = paid, reserve
        self.paid, self.free = Line(*paid), Line(*free)

    def ask(self, plan, now):
        """The line that gives a place, and the wait; None: neither does."""
        own = {"paid": self.paid, "free": self.free}[plan]
        ways = [(plan, own, own.places)]
        if plan == "free":
            ways.append(("paid", self.paid, self.burst - -(-self.burst * self.reserve // 100)))
        for name, line, places in ways:
            wait = line.delay(now, places)
            if wait is not None:
                line.give(now)
                return name, wait
        return None


def limits(paid, free, reserve, unit="s"):
    def limit(name, numbers, **more):
        return {"name": name, "match": {"plan": name}, "key": [], "algorithm": "leaky_bucket", "queue": True,
                "rate": f"{numbers[0]}/{unit}", "burst": numbers[1], **more}
    return [limit("paid", paid, borrow=True, reserve=f"{reserve}%"), limit("free", free, pool="paid")]


def rules(*numbers):
    return json.dumps({"version": 1, "plans": {"paid": {}, "free": {}}, "limits": limits(*numbers)})


def arrivals(chance, count):
    """Times and plans: mostly floods of free callers, and some paid ones at any time."""
    now = SECOND
    for _ in range(count):
        now += chance.choice([0, 0, 0, chance.randrange(SECOND // 20), chance.randrange(SECOND)])
        yield now, chance.choices(["free", "paid"], [4, 1])[0]


@pytest.mark.parametrize("seed", range(4))
def test_classes_have_their_part_and_lend_places_that_are_not_given_yet(tmp_path, seed):
    chance = random.Random(seed)
    paid = chance.choice([(7, 14), (3, 5), (11, 100)])
    free = chance.choice([(3, 6), (1, 1), (7, 2)])
    reserve = chance.choice([10, 50, 75])
    asked = list(arrivals(chance, 1500))
    lines = [json.dumps({"t": f"@{now}", "attributes": {"plan": plan}}).replace(f'"@{now}"',
             f"{now // SECOND}.{now % SECOND:09}") for now, plan in asked]
    found = replay_decisions(tmp_path, rules(paid, free, reserve), lines)
    model, released, lent = Classes(paid, free, reserve), [], 0
    for (now, plan), decision in zip(asked, found, strict=True):
        wanted = model.ask(plan, now)
        assert decision["allowed"] == (wanted is not None), (now, plan, decision)
        if wanted:
            name, wait = wanted
            limit = decision["limits"][0]
            assert limit["name"] == name
            assert limit.get("delay_ns", 0) == -(-wait.numerator // wait.denominator)
            released.append((now + wait, name, plan))
            lent += name != plan
    assert lent > 20
    # Each line releases evenly, also the places that are lent, so the sum is exact.
    for name, (rate, _) in (("paid", paid), ("free", free)):
        times = [at for at, line, _ in released if line == name]
        assert all(after - before >= Fraction(SECOND, rate) for before, after in zip(times, times[1:]))


def test_counts_in_redis_lend_the_same_places(tmp_path, redis):
    redis.ask("FLUSHALL")
    made = limits((7, 14), (3, 6), 50, "100d")
    with Nodes(tmp_path, 2, shared_rules(redis.url, *made, nodes=2, plans={"paid": {}, "free": {}})) as nodes:
        def admitted(plan, count):
            return sum(nodes.ask(i % 2, plan=plan)[0] for i in range(count))
        assert admitted("free", 30) == 7 + 8
        assert admitted("paid", 30) == 7
        assert nodes.metric("weir_borrowed_total") == 8
