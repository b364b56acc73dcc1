# SPDX-License-Identifier: Apache-2.0
"""Floods of keys: an attacker that fills the table takes no more than the part of its limit, and is
not let through by it (docs/state.md, "When it is full").

Limits are by the hour here, where nothing else is said, so that no state becomes fresh while a case
runs, however slow the machine is."""

import math

from suite import case
from traffic import ask, check, command, each, flood

INNOCENTS = 500
CALLERS = 1000


def login_limit(rate):
    return {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip/64"],
            "algorithm": "sliding_log", "rate": rate}


def by_user(name, rate, **more):
    return {"name": name, "match": {"path": f"/{name}"}, "key": ["user"], "rate": rate, **more}


def login(ip):
    return check(method="POST", path="/login", ip=ip)


def user(name, pattern="u%08d", **more):
    return check(path=f"/{name}", user=pattern, **more)


def say_room(attack, tried, times, weir):
    metrics = weir.metrics()
    evictions, overflows = (int(metrics[f"weir_table_{name}_total"])
                            for name in ("evictions", "overflows"))
    attack.tell(tried, times, f"evictions: {evictions:,}, overflows: {overflows:,}")


# --- Logins --------------------------------------------------------------------------------------

INNOCENT_IP = "%02d.%02d.7.9"  # each of a /16 of its own
KNOWN_IP = "1%02d.%02d.8.9"



def addresses(count):
    return [(10 + i % 80, 10 + i // 80) for i in range(count)]


class Excess:
    """What keys of a limit were admitted beyond their limit, from the making of this on: an eviction
    forgives what its key had used, at most `most` - 1 since one that denies is spared."""

    def __init__(self, weir, name, most):
        self.weir, self.name, self.most = weir, name, most
        self.before, self.beyond = self._evictions(), 0

    def _evictions(self):
        return int(self.weir.metrics()[f'weir_limit_evictions_total{{limit="{self.name}"}}'])

    def add(self, admitted):
        self.beyond += sum(count - self.most for count in admitted if count > self.most)

    def tell(self, attack, tried, times, whose):
        evicted = self._evictions() - self.before
        what = f"{whose} admitted beyond {self.most}, all together: {self.beyond:,}"
        bound = f"at most what {evicted:,} evictions forgave" if evicted else "none"
        attack.holds(tried, times, what, bound, self.beyond <= evicted * (self.most - 1))


def network_cells(attack):
    """Of row 1, for a limit with one account of three (docs/state.md, "Overflow")."""
    return 96 * min(255, attack.size // 65536 // 3)


def innocents_log_in(attack, weir, tried, times, percent=1):
    """Fresh IPv4 clients at their first login, and then at so many that nobody may have."""
    first = ask(weir.redis_address, login(INNOCENT_IP), addresses(INNOCENTS))
    what = "fresh clients denied their first login"
    if percent >= 100:
        attack.tell(tried, times, f"{what}: {first.denied} of {INNOCENTS}")
    else:
        attack.part_of(tried, times, what, first.denied, INNOCENTS, percent)
    excess = Excess(weir, "login", 5)
    more, _ = each(weir.redis_address, login(INNOCENT_IP), addresses(INNOCENTS), 6)
    excess.add(a + b for a, b in zip(first.admitted, more))
    excess.tell(attack, tried, times, "logins of fresh clients")


@case("login-48", "the /64s of one /48 log in, six times each; then fresh IPv4 clients do")
def login_48(attack):
    weir = attack.serve(login_limit("5/min"))
    nets = 32768
    tried = "5/min `sliding_log` by `client.ip/64`: six logins of each /64 of one /48"
    admitted, _ = each(weir.redis_address, login("2001:db8:1:%04x::1"), range(nets), 6)
    attack.at_most(tried, nets * 6, "admitted of one /64, at most", max(admitted), 5)
    attack.all_of(tried, nets * 6, "/64s that got exactly 5", admitted.count(5), nets)
    innocents_log_in(attack, weir, tried, nets * 6)
    say_room(attack, tried, nets * 6, weir)


def networks_keys(nets, networks):
    """/64s, those of all /32s in turn."""
    return [(0x2400 + (i % networks >> 16), i % networks & 0xffff, i // networks >> 16,
             i // networks & 0xffff) for i in range(nets)]


def login_flood(attack, networks, times, percent):
    """More /64s than there is room for, of so many /32s; each logs in so often."""
    weir = attack.serve(login_limit("5/h"))
    nets = attack.scaled(800_000)
    count = nets * times
    tried = f"5/h `sliding_log`: {times} logins each of {nets:,} /64s of {networks:,} /32s"
    known, _ = each(weir.redis_address, login(KNOWN_IP), addresses(INNOCENTS), 2)
    assert known == [2] * INNOCENTS

    keys = networks_keys(nets, networks)
    template, step = login("%04x:%04x:%04x:%04x::1"), attack.scaled(20_000)
    excess = Excess(weir, "login", 5)
    for begin in range(0, nets, step):
        excess.add(each(weir.redis_address, template, keys[begin:begin + step], times)[0])
    excess.tell(attack, tried, count, "logins of those /64s")
    innocents_log_in(attack, weir, tried, count, percent)
    more, _ = each(weir.redis_address, login(KNOWN_IP), addresses(INNOCENTS), 6)
    attack.part_of(tried, count, "clients known before (2 of 5) denied one of their other three",
                   sum(got < 3 for got in more), INNOCENTS)
    excess.beyond = 0
    excess.add(got + 2 for got in more)
    excess.tell(attack, tried, count, "logins of clients known before")
    say_room(attack, tried, count, weir)


def share_of_cells(attack, networks):
    """In percent, rounded up, with room for chance: newcomers whose cell a flooding network has."""
    part = 100 * (1 - (1 - 1 / network_cells(attack)) ** networks)
    return max(1, math.ceil(1.5 * part)) if part < 50 else 100


for _networks in (1, 64, 200, 1000, 8192, 65536):
    @case(f"login-{_networks}",
          f"more /64s than there is room for, of {_networks:,} /32s, all over their limit")
    def _login_over(attack, networks=_networks):
        login_flood(attack, networks, 6, share_of_cells(attack, networks))


@case("login-two-steps", "/64s of 65,536 /32s that stop one below their limit, and later go on")
def login_two_steps(attack):
    """What remains: an attacker that holds the table with keys below their limit has others forgotten, who
    have used less; when he uses his up, those are newcomers."""
    weir = attack.serve(login_limit("5/h"))
    nets, networks = attack.scaled(800_000), 65536
    tried = f"5/h `sliding_log`: 4 logins each of {nets:,} /64s of 65,536 /32s, then 2 more"
    known, _ = each(weir.redis_address, login(KNOWN_IP), addresses(INNOCENTS), 2)
    assert known == [2] * INNOCENTS
    keys, template = networks_keys(nets, networks), login("%04x:%04x:%04x:%04x::1")
    for times in (4, 2):
        step = attack.scaled(20_000)
        for begin in range(0, nets, step):
            each(weir.redis_address, template, keys[begin:begin + step], times)
    more, _ = each(weir.redis_address, login(KNOWN_IP), addresses(INNOCENTS), 6)
    attack.tell(tried, nets * 6, "clients known before (2 of 5) denied one of their other three: "
                f"{sum(got < 3 for got in more)} of {INNOCENTS}")
    say_room(attack, tried, nets * 6, weir)


@case("login-below", "the same of 65,536 /32s, but each /64 stops one login below its limit")
def login_below(attack):
    login_flood(attack, 65536, 4, 1)


# --- Other limits --------------------------------------------------------------------------------

def known_at_nine(attack, weir, name, tried, times):
    """1,000 callers use 9 of 10; a second call of what is returned says how they fare afterwards."""
    used, _ = each(weir.redis_address, user(name, "k%08d"), range(CALLERS), 9)
    assert used == [9] * CALLERS

    def afterwards():
        got, _ = each(weir.redis_address, user(name, "k%08d"), range(CALLERS), 4)
        attack.part_of(tried, times, f"`{name}`: callers at 9 of 10 who were denied the tenth",
                       got.count(0), CALLERS)
        attack.part_of(tried, times, f"`{name}`: callers at 9 of 10 who started again",
                       sum(count > 1 for count in got), CALLERS)
    return afterwards


def newcomers(attack, weir, name, tried, times, percent=0):
    """New callers of a limit of ten."""
    excess = Excess(weir, name, 10)
    got = ask(weir.redis_address, user(name, "n%08d"), range(CALLERS))
    what = f"`{name}`: new callers denied"
    if percent is None:
        attack.tell(tried, times, f"{what}: {got.denied:,} of {CALLERS:,}")
    else:
        attack.part_of(tried, times, what, got.denied, CALLERS, percent)
    more, _ = each(weir.redis_address, user(name, "n%08d"), range(CALLERS), 12)
    excess.add(a + b for a, b in zip(got.admitted, more))
    excess.tell(attack, tried, times, f"`{name}`: requests of new callers")


def commands(attack, weir, tried, times):
    throttle = command("CL.THROTTLE", "k%08d", "4", "5", "3600")
    got, _ = each(weir.redis_address, throttle, range(200), 7)
    attack.all_of(tried, times, "CL.THROTTLE keys that got exactly 5", got.count(5), 200)


@case("other-limit", "made-up keys of one limit, and the callers of another")
def other_limit(attack):
    weir = attack.serve(by_user("flooded", "1/h"), by_user("calm", "10/h"))
    keys = attack.scaled(4_000_000)
    tried = "one request each of so many made-up keys of a 1/h limit"
    afterwards = known_at_nine(attack, weir, "calm", tried, keys)
    flood(weir.redis_address, user("flooded"), range(keys))
    newcomers(attack, weir, "calm", tried, keys)
    commands(attack, weir, tried, keys)
    afterwards()
    say_room(attack, tried, keys, weir)


@case("many-limits", "seven limits are flooded at once, and the callers of an eighth")
def many_limits(attack):
    names = [f"flooded{i}" for i in range(7)]
    weir = attack.serve(*[by_user(name, "1/h") for name in names], by_user("calm", "10/h"))
    keys = attack.scaled(7_000_000) // 7
    tried = "one request each of so many made-up keys of seven limits in turn"
    afterwards = known_at_nine(attack, weir, "calm", tried, keys * 7)
    for first in range(0, keys, 10_000):
        for name in names:
            flood(weir.redis_address, user(name), range(first, min(first + 10_000, keys)))
    newcomers(attack, weir, "calm", tried, keys * 7)
    commands(attack, weir, tried, keys * 7)
    afterwards()
    say_room(attack, tried, keys * 7, weir)


# --- The same limit ------------------------------------------------------------------------------

@case("random-keys", "10 million made-up keys, and callers at 9 of 10 of the same limit")
def random_keys(attack):
    weir = attack.serve(by_user("api", "10/h"))
    keys = attack.scaled(10_000_000)
    tried = "one request each of so many made-up keys of a 10/h limit"
    afterwards = known_at_nine(attack, weir, "api", tried, keys)
    flood(weir.redis_address, user("api"), range(keys))
    newcomers(attack, weir, "api", tried, keys, 1)
    afterwards()
    say_room(attack, tried, keys, weir)


@case("below-limit", "keys that are kept just below the limit, so that none of them denies")
def below_limit(attack):
    weir = attack.serve(by_user("api", "10/h"), by_user("calm", "10/h"))
    keys = attack.scaled(4_000_000)
    tried = "9 of 10 at once of so many made-up keys"
    afterwards = known_at_nine(attack, weir, "calm", tried, keys)
    used = ask(weir.redis_address, user("api", "o%08d"), range(CALLERS))
    assert used.denied == 0
    excess = Excess(weir, "api", 10)
    flood(weir.redis_address, user("api", cost=9), range(keys))
    newcomers(attack, weir, "api", tried, keys, 1)
    newcomers(attack, weir, "calm", tried, keys)
    got, _ = each(weir.redis_address, user("api", "o%08d"), range(CALLERS), 12)
    attack.part_of(tried, keys, "`api`: callers at 1 of 10 denied", got.count(0), CALLERS)
    excess.add(count + 1 for count in got)
    excess.tell(attack, tried, keys, "`api`: requests of callers at 1 of 10")
    afterwards()
    say_room(attack, tried, keys, weir)


@case("at-limit", "keys that are at their limit, more than there is room for")
def at_limit(attack):
    weir = attack.serve(by_user("api", "10/h"), by_user("calm", "10/h"))
    keys = attack.scaled(4_000_000)
    tried = "10 of 10 at once of so many made-up keys"
    afterwards = known_at_nine(attack, weir, "calm", tried, keys)
    mine = known_at_nine(attack, weir, "api", tried, keys)
    flood(weir.redis_address, user("api", cost=10), range(keys))
    again = flood(weir.redis_address, user("api"), range(0, keys, 10))
    attack.at_most(tried, keys, "of every tenth of them, admitted once more", again, 0)
    newcomers(attack, weir, "api", tried, keys, None)
    newcomers(attack, weir, "calm", tried, keys)
    mine()
    afterwards()
    say_room(attack, tried, keys, weir)
