# SPDX-License-Identifier: Apache-2.0
"""Requests with what makes doors differ: repeated lines, empty and long values, spellings of hosts and
addresses, names that only some may say. Drawn, and the same in each run."""

import random
from dataclasses import dataclass, field, replace

COUNT = 200
LONG = "v" * 2000

METHODS = ["GET", "POST", "DELETE"]
TARGETS = ["/", "/items/7", "/items/%37", "//items//7", "/items/7;v=1", "/a/../items/7", "/items/8?q=a%20b",
           "/items/7?q=a+b", "/search?q=1&q=2", "/search?%71=1", "/search?q=", "/search?q", "/search?x=1&q=%C3%A4",
           "/search?q=%zz", "/items/a%2Fb", "/items/%ff%C3%a4", "/items/%2525", "/refused", "/" + "p" * 300]
BAD_TARGETS = ["/%zz", "/x/..;/login", "/" + "p" * 7000]
HOSTS = ["example.org", "Example.ORG", "example.org:8080", "EXAMPLE.org.", "[2001:db8::1]:80", "192.0.2.9"]
ADDRESSES = ["192.0.2.7", "192.0.2.8", "2001:db8::7", "2001:DB8:0:0::7", "2001:db8::8", "::ffff:192.0.2.7"]
ZONES = ["fe80::1%eth0", "fe80::1%1", "fe80::1%25eth0"]
HOPS = ["192.0.2.7:443", "[2001:db8::7]", "[2001:db8::7]:443"]
BAD_ADDRESSES = ["192.0.2.07", "localhost", "2001:db8::g", "192.0.2.7%eth0"]
FIELD_VALUES = ["1", "2", "a, b", "", "\u00e9", LONG]
COOKIES = ["session=s1", "session=s2; b=1", "a=1; session=s1", "session=\"s1\"", "session=", "b=1", "session"]
AGENTS = ["curl/8", "Mozilla/5.0 (X11)"]
CALLERS = ["ann", "bob", "\u00fcmit", LONG[:300]]
TENANTS = ["t1", "t2", "", "\u00fc"]
UNKNOWN = ["paht", "Tenant", "x"]
MADE = [("standing", "trusted"), ("client.class", "legitimate"), ("challenge", "passed"), ("jwt.sub", "ann")]


@dataclass(frozen=True)
class Request:
    """`fields` are lines of the header, `named` is what is given by name, by a sender that is `trusted`."""

    method: str = "GET"
    target: str = "/"
    host: str = "example.org"
    ip: str = "192.0.2.7"
    fields: tuple = ()
    named: dict = field(default_factory=dict)
    trusted: bool = True

    def with_(self, **changes):
        return replace(self, **changes)

    def lines(self, name):
        return [value for key, value in self.fields if key.lower() == name]

    def joined(self):
        """The fields as one value each, as JSON has them."""
        found = {}
        for name, value in self.fields:
            key, between = name.lower(), "; " if name.lower() == "cookie" else ", "
            found[key] = value if key not in found else found[key] + between + value
        return found

    @property
    def repeats(self):
        return len(self.joined()) < len(self.fields)


def draw_fields(draw):
    fields = []
    for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
        fields.append((draw.choice(["X-A", "x-a", "X-B", "X-a"]), draw.choice(FIELD_VALUES)))
    for _ in range(draw.choice([0, 0, 1, 1, 2])):
        fields.append((draw.choice(["Cookie", "cookie"]), draw.choice(COOKIES)))
    if draw.random() < 0.5:
        fields.append(("User-Agent", draw.choice(AGENTS)))
    if draw.random() < 0.3:
        fields.append(("X-Api-Key", draw.choice(["known", "other"])))
    draw.shuffle(fields)
    return tuple(fields)


def draw_named(draw):
    named = {}
    if draw.random() < 0.5:
        return named
    for name in ("user", "org", "plan"):
        if draw.random() < 0.3:
            named[name] = draw.choice(CALLERS) if name != "plan" else draw.choice(["free", "pro", "none"])
    if draw.random() < 0.5:
        named["tenant"] = draw.choice(TENANTS)
    if draw.random() < 0.3:
        named["header.X-A"] = draw.choice(FIELD_VALUES[:3])
    if draw.random() < 0.2:
        named["tls.client.cn"] = "client.example"
    if draw.random() < 0.2:
        named[draw.choice(UNKNOWN)] = "1"
    if draw.random() < 0.2:
        name, value = draw.choice(MADE)
        named[name] = value
    return named


def requests():
    draw = random.Random(28)
    found = [Request(target=target) for target in TARGETS + BAD_TARGETS]
    found += [Request(host=host) for host in HOSTS]
    found += [Request(ip=ip) for ip in ADDRESSES + ZONES + HOPS + BAD_ADDRESSES]
    found += [Request(named={"user": "ann"}, trusted=False), Request(named={"user": "ann"}),
              Request(named={"user": "bob", "tenant": "t2"}),
              Request(fields=(("Cookie", "session=s1"), ("Cookie", "session=s2"))),
              Request(fields=(("X-A", "field"),), named={"header.X-A": "name"})]
    while len(found) < COUNT:
        found.append(Request(method=draw.choice(METHODS), target=draw.choice(TARGETS), host=draw.choice(HOSTS),
                             ip=draw.choice(ADDRESSES), fields=draw_fields(draw), named=draw_named(draw),
                             trusted=draw.random() < 0.6))
    return found
