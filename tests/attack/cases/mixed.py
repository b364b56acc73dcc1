# SPDX-License-Identifier: Apache-2.0
"""Attacks of other kinds: several limits of one request, commands, idempotency keys, plans, and what
a full table costs."""

import hashlib
import itertools
import json
import subprocess
import time

from cases.full_table import (CALLERS, by_user, known_at_nine, login, login_limit, networks_keys, newcomers,
                              say_room, user)
from cases.spans import LOG
from model.program import weir_path
from suite import case
from traffic import ask, check, command, each, flood, info


@case("commands", "made-up keys of CL.THROTTLE, and the callers of the rules' limits")
def commands(attack):
    weir = attack.serve(by_user("calm", "10/h"), by_user("log", "10/h", **LOG))
    keys = attack.scaled(4_000_000)
    tried = "CL.THROTTLE of so many made-up keys, one an hour"
    known = [known_at_nine(attack, weir, name, tried, keys) for name in ("calm", "log")]
    flood(weir.redis_address, command("CL.THROTTLE", "k%08d", "0", "1", "3600"), range(keys))
    for name in ("calm", "log"):
        newcomers(attack, weir, name, tried, keys)
    for afterwards in known:
        afterwards()
    say_room(attack, tried, keys, weir)


@case("meanwhile", "callers of a limit while `weir bench` floods another over 16 connections")
def meanwhile(attack):
    weir = attack.serve(by_user("flooded", "1/h"), by_user("calm", "10/h"),
                        options=("--workers", "2"))
    keys, requests = attack.scaled(100_000_000), attack.scaled(8_000_000)
    bench = [weir_path(), "bench", "--target", f"redis://{weir.redis_address}", "--resp",
             "WEIR.CHECK path /flooded user {key}", "--keys", str(keys), "-n", str(requests),
             "-c", "16", "-P", "64", "--json"]
    tried = "requests of made-up keys of a 1/h limit, on two workers"
    known, _ = each(weir.redis_address, user("calm", "k%08d"), range(CALLERS), 5)
    assert known == [5] * CALLERS
    denied = late = rounds = 0
    slowest = 0.0
    with subprocess.Popen(bench, stdout=subprocess.PIPE) as flooding:
        while flooding.poll() is None or rounds == 0:
            # four more of each known caller, and one of callers who are new each time
            got = ask(weir.redis_address, user("calm", "k%08d"), range(CALLERS))
            denied += got.denied if rounds < 5 else 0
            late += sum(got.admitted) if rounds >= 5 else 0
            started = time.monotonic()
            new = ask(weir.redis_address, user("calm", f"{rounds:04d}-%08d"), range(100))
            slowest = max(slowest, time.monotonic() - started)
            denied += new.denied
            rounds += 1
        result = json.loads(flooding.stdout.read())
    attack.at_most(tried, result["replies"], "known callers denied before their tenth, and new ones",
                   denied, 0)
    attack.at_most(tried, result["replies"], "admitted of known callers beyond 10", late, 0)
    attack.tell(tried, result["replies"], f"the flood's pace: {result['throughput']:,.0f} requests a "
                f"second; rounds of the callers: {rounds}; slowest 100 of them at once: "
                f"{1000 * slowest:.0f} ms")
    say_room(attack, tried, result["replies"], weir)


@case("global", "a limit for everybody, charged together with that of made-up keys")
def one_for_all(attack):
    """The one key of the first limit is the table's most wanted victim: it must not start again."""
    most = 100_000
    weir = attack.serve({"name": "all", "key": [], "rate": f"{most}/h", "match": {"path": "/api"},
                         "algorithm": "gcra", "burst": most},
                        by_user("api", "1/h"))
    keys = attack.scaled(3_000_000)
    tried = f"requests of made-up keys, of which each may make 1 an hour, and all {most:,}"
    started = time.monotonic()
    admitted = flood(weir.redis_address, user("api"), range(keys))
    again = flood(weir.redis_address, user("api"), range(0, keys, 10))
    refilled = int((time.monotonic() - started) * most / 3600) + 1
    attack.at_most(tried, keys * 11 // 10, f"admitted beyond {most:,} and what came back since",
                   max(0, admitted + again - most - refilled), 0)
    attack.at_most(tried, keys * 11 // 10, "of those too few", max(0, most - admitted - again), 0)


@case("pairs", "two limits of one request, by address and by user, each flooded by the other's keys")
def pairs(attack):
    both = {"match": {"path": "/both"}}
    weir = attack.serve({"name": "ip", "key": ["client.ip/64"], "rate": "5/h", **LOG, **both},
                        {"name": "user", "key": ["user"], "rate": "5/h", **both})
    keys = attack.scaled(400_000)
    template = check(path="/both", ip="%04x:%04x:%04x:%04x::1", user="u%08d")
    nets = networks_keys(keys, 64)
    tried = "requests under two limits, each with an address and a user of its own"
    known, _ = each(weir.redis_address, template,
                    [(0x2600, 1, i >> 16, i & 0xffff, 90_000_000 + i) for i in range(500)], 2)
    assert known == [2] * 500
    step = attack.scaled(20_000)
    for begin in range(0, keys, step):
        each(weir.redis_address, template,
             [(*nets[i], i) for i in range(begin, min(begin + step, keys))], 6)
    more, _ = each(weir.redis_address, template,
                   [(0x2600, 1, i >> 16, i & 0xffff, 90_000_000 + i) for i in range(500)], 6)
    attack.part_of(tried, keys * 6, "callers known before (2 of 5) denied one of their other three",
                   sum(got < 3 for got in more), 500)
    attack.at_most(tried, keys * 6, "admitted of a caller known before, at most", max(more) + 2, 5)
    say_room(attack, tried, keys * 6, weir)


@case("idempotency", "idempotency keys by the million, and clients that repeat an earlier request")
def idempotency(attack):
    weir = attack.serve(by_user("api", "1000000/h"), by_user("calm", "10/h"))
    keys = attack.scaled(3_000_000)
    tried = "requests of one caller with so many idempotency keys"
    mine = check(path="/calm", user="k%08d", idempotency_key="once-%08d")
    pairs_of = [(i, i) for i in range(1000)]
    first = ask(weir.redis_address, mine, pairs_of)
    assert first.denied == 0
    many = check(path="/api", user="attacker", idempotency_key="%08d")
    flood(weir.redis_address, many, range(keys))
    again = ask(weir.redis_address, mine, pairs_of)
    attack.all_of(tried, keys, "repeats of 1,000 earlier requests that were known as such",
                  again.repeats, 1000)
    newcomers(attack, weir, "calm", tried, keys)
    say_room(attack, tried, keys, weir)


def api_keys(plans):
    """A keys file: of each user one key for each plan."""
    lines = []
    for number, plan in itertools.product(range(100), plans):
        digest = hashlib.sha256(f"{plan}-{number:04d}".encode()).hexdigest()
        lines.append(f"{digest}: {{ user: u{number}, plan: {plan} }}\n")
    return "".join(lines)


@case("plans", "callers who have keys of several plans, and use them in turn")
def plans(attack):
    """What was used stays used, in units, where two plans have one window; each window of another
    length has its own count."""
    path = attack.folder / "keys.yaml"
    kinds = {"small": "10/h", "large": "100/h", "slow": "200/d"}
    path.write_text(api_keys(kinds), encoding="utf-8")
    rules = {"keys": str(path), "identify": ["header.x-api-key"], "default_plan": "small",
             "plans": {plan: {"log": rate, "bucket": rate} for plan, rate in kinds.items()}}
    limits = [{"name": "log", "match": {"path": "/log"}, "key": ["user"], "rate": "plan", **LOG},
              {"name": "bucket", "match": {"path": "/bucket"}, "key": ["user"], "rate": "plan",
               "algorithm": "token_bucket"}]
    weir = attack.serve(*limits, **rules)
    for name, window in (("log", "the window"), ("bucket", "the bucket")):
        got = [0] * 100
        for _ in range(400):
            for plan in kinds:
                template = check("header.x-api-key", f"{plan}-%04d", path=f"/{name}")
                answers = ask(weir.redis_address, template, range(100))
                got = [count + admitted for count, admitted in zip(got, answers.admitted)]
        tried = f"keys of 10/h, 100/h and 200/d of one user in turn, `{name}`"
        # the hour's plans share one count of at most 100; the day's has its own of 200
        most = 300 if name == "log" else 300 + 2
        attack.at_most(tried, 400 * 3 * 100, f"admitted of one user while {window} lasts, at most",
                       max(got), most)


@case("alternating", "CL.THROTTLE with two sets of numbers on each key, in turn")
def alternating(attack):
    weir = attack.serve(by_user("calm", "10/h"))
    got = [0] * 1000
    tried = "CL.THROTTLE k 9 10 3600 and k 19 20 3600 in turn"
    for burst, count in [("9", "10"), ("19", "20")] * 30:
        template = command("CL.THROTTLE", "k%04d", burst, count, "3600")
        answers = ask(weir.redis_address, template, range(1000))
        got = [total + admitted for total, admitted in zip(got, answers.admitted)]
    attack.at_most(tried, 60_000, "admitted of one key, at most", max(got), 21)
    attack.holds(tried, 60_000, f"distinct limits: {info(weir.redis_address)['distinct_limits']}",
                 "2", info(weir.redis_address)["distinct_limits"] == "2")


@case("price", "what a decision costs while the table is full")
def price(attack):
    weir = attack.serve(login_limit("5/h"), by_user("log", "1000/h", **LOG))
    nets = attack.scaled(640_000)
    keys = networks_keys(nets, 65536)
    template = login("%04x:%04x:%04x:%04x::1")
    tried = "six logins of each of so many /64s, then callers of a large log beside others of it"

    def pace(part):
        started = time.monotonic()
        flood(weir.redis_address, template, part)
        return len(part) / (time.monotonic() - started)

    empty = pace(keys[:nets // 8])
    step = attack.scaled(20_000)
    for begin in range(0, nets, step):
        each(weir.redis_address, template, keys[begin:begin + step], 5)
    full = pace([(0x3000 + a, b, c, d) for a, b, c, d in keys[:nets // 8]])
    draws = [(i * 7919) % 5000 for i in range(attack.scaled(1_000_000))]
    started = time.monotonic()
    flood(weir.redis_address, user("log"), draws)
    logs = len(draws) / (time.monotonic() - started)
    attack.tell(tried, nets * 6, f"new keys a second, weir and attacker on one machine: {empty:,.0f} "
                f"into an empty table, {full:,.0f} into a full one; requests of growing logs: "
                f"{logs:,.0f}")
    attack.holds(tried, nets * 6, f"a full table is slower by a factor of {empty / full:.1f}, with "
                 f"growing logs {empty / logs:.1f}", "at most 10", empty <= 10 * min(full, logs))
