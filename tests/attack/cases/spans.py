# SPDX-License-Identifier: Apache-2.0
"""Floods of states that are larger than a slot: logs, leases, quotas."""

import random

from cases.full_table import Excess, by_user, known_at_nine, newcomers, say_room, user
from suite import case
from traffic import ask, each, flood, peek, remaining

LOG = {"algorithm": "sliding_log"}
LEASES = {"algorithm": "concurrency", "limit": 1000, "life": "1h"}


def evictions(weir):
    metrics = weir.metrics()
    return int(metrics["weir_table_evictions_total"] + metrics["weir_table_overflows_total"])


def leases_limit(name, limit=1000):
    return {"name": name, "match": {"path": f"/{name}"}, "key": ["user"], **LEASES, "limit": limit}


def used_of(weir, template, keys, limit):
    """How much each key has in use, as WEIR.PEEK tells."""
    return [limit - left for left in remaining(weir.redis_address, template, keys)]


@case("log-fits", "1,000 callers of `sliding_log` 1000 at 60 requests each")
def log_fits(attack):
    weir = attack.serve(by_user("api", "1000/h", **LOG))
    callers = attack.scaled(1000)
    tried = "`sliding_log` 1000/h: 1,000 callers make 60 requests each"
    got, _ = each(weir.redis_address, user("api"), range(callers), 60)
    attack.all_of(tried, callers * 60, "callers admitted all 60", got.count(60), callers)
    attack.at_most(tried, callers * 60, "evictions and overflows", evictions(weir), 0)
    metrics = weir.metrics()
    part = metrics["weir_table_span_bytes_used"] / metrics["weir_table_span_bytes"]
    attack.holds(tried, callers * 60, f"of the memory for spans in use: {100 * part:.1f} %",
                 "at most 10 %", part <= 0.1)


def over_limit_in_turn(attack, weir, name, callers, requests, pattern="c%08d"):
    """Rounds of one request of each caller, in random order; how many each was admitted."""
    draw, got, order = random.Random(5), [0] * callers, list(range(callers))
    for _ in range(requests):
        draw.shuffle(order)
        answers = ask(weir.redis_address, user(name, pattern), order)
        for caller, admitted in zip(order, answers.admitted):
            got[caller] += admitted
    return got


@case("log-600", "600 callers over the limit of a large log, and one who hopes to be forgotten")
def log_600(attack):
    weir = attack.serve(by_user("api", "1000/h", **LOG))
    callers = attack.scaled(601)
    times = callers * 1200
    tried = "`sliding_log` 1000/h: 601 callers make 1,200 requests each, in turn"
    got = over_limit_in_turn(attack, weir, "api", callers, 1200)
    attack.at_most(tried, times, "admitted of one caller, at most", max(got), 1000)
    attack.all_of(tried, times, "callers that got exactly 1000", got.count(1000), callers)
    say_room(attack, tried, times, weir)


@case("log-6000", "6,000 callers over the limit of a large log, of which 4,000 have room")
def log_6000(attack):
    weir = attack.serve(by_user("api", "1000/h", **LOG), by_user("calm", "10/h", **LOG))
    callers = attack.scaled(6000)
    times = callers * 1200
    tried = "`sliding_log` 1000/h: 6,000 callers make 1,200 requests each, in turn"
    afterwards = known_at_nine(attack, weir, "calm", tried, times)
    excess = Excess(weir, "api", 1000)
    got = over_limit_in_turn(attack, weir, "api", callers, 1200)
    excess.add(got)
    excess.tell(attack, tried, times, "requests")
    attack.tell(tried, times, f"most that one caller was admitted: {max(got):,}; callers admitted more "
                f"than 1,000: {sum(count > 1000 for count in got):,}")
    newcomers(attack, weir, "calm", tried, times)
    afterwards()
    say_room(attack, tried, times, weir)


@case("leases-40000", "40,000 callers of a concurrency limit of 1000, each with a lease")
def leases_40000(attack):
    weir = attack.serve(leases_limit("work"))
    callers = attack.scaled(40_000)
    tried = "`concurrency` 1000: a lease each of 40,000 callers"
    got = ask(weir.redis_address, user("work"), range(callers))
    attack.at_most(tried, callers, "callers denied", got.denied, 0)
    used = used_of(weir, peek(path="/work", user="u%08d"), range(callers), 1000)
    attack.all_of(tried, callers, "callers whose lease is known", used.count(1), callers)
    attack.at_most(tried, callers, "evictions and overflows", evictions(weir), 0)


@case("leases-full", "callers who take all leases that they may have, until no memory is left")
def leases_full(attack):
    weir = attack.serve(leases_limit("work", 100), by_user("calm", "10/h", **LOG))
    callers = attack.scaled(16_000)
    times = callers * 101
    tried = "`concurrency` 100: 101 leases each of so many callers that not all have room"
    known, _ = each(weir.redis_address, user("work", "k%08d"), range(500), 1)
    assert known == [1] * 500
    afterwards = known_at_nine(attack, weir, "calm", tried, times)
    excess, step = Excess(weir, "work", 100), attack.scaled(500)
    for begin in range(0, callers, step):
        excess.add(each(weir.redis_address, user("work"), range(begin, min(begin + step, callers)),
                        101)[0])
    excess.tell(attack, tried, times, "leases")
    used = used_of(weir, peek(path="/work", user="k%08d"), range(500), 100)
    attack.all_of(tried, times, "callers known before whose lease is still known", used.count(1),
                  500)
    newcomers(attack, weir, "calm", tried, times)
    afterwards()
    say_room(attack, tried, times, weir)


@case("quotas", "made-up keys of a monthly quota, and the callers of another limit")
def quotas(attack):
    month = {"name": "month", "match": {"path": "/month"}, "key": ["user"], "quota": "1/month"}
    weir = attack.serve(month, by_user("calm", "10/h"), by_user("log", "10/h", **LOG))
    keys = attack.scaled(2_000_000)
    tried = "one request each of so many made-up keys of a quota of 1/month"
    known = [known_at_nine(attack, weir, name, tried, keys) for name in ("calm", "log")]
    flood(weir.redis_address, user("month"), range(keys))
    newcomers(attack, weir, "calm", tried, keys)
    newcomers(attack, weir, "log", tried, keys)
    for afterwards in known:
        afterwards()
    say_room(attack, tried, keys, weir)

