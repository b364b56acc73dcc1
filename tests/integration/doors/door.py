# SPDX-License-Identifier: Apache-2.0
"""What a door is: a way by which a request reaches weir's rules."""

import re
from dataclasses import dataclass

from .asked import ADDRESSES, HOPS


@dataclass(frozen=True)
class Answer:
    """The verdict ("allowed", "denied", "unreadable"), and what remains of each limit that the request met."""

    verdict: str
    remaining: tuple = ()

    @classmethod
    def of_limits(cls, allowed, limits):
        return cls("allowed" if allowed else "denied", tuple(sorted(limits)))

    @classmethod
    def of_fields(cls, status, ratelimit):
        """By the status and the field RateLimit."""
        if status in (400, 413, 414):
            return cls("unreadable")
        assert status in (200, 405, 429), status
        limits = re.findall(r'"([^"]+)";r=(\d+)', ratelimit or "")
        return cls.of_limits(status != 429, [(name, int(rest)) for name, rest in limits])


# What a door cannot do, and why. docs/rules.md has the same list: see test_doors.
NAMED = "a client of a proxy gives nothing by name"
LINES = "JSON and commands have each field once: their senders join lines"
UNTRUSTED = "what a program or a configuration says is trusted"
EMPTY = "in nginx an empty variable is an absent attribute"
HOP = "a hop in X-Forwarded-For may have a port, and brackets"
DECODED = "frameworks of Python take an encoded slash in a path for a slash, and so does weir"
REALIP = "nginx reads addresses itself, and keeps the peer's where it cannot"


class Door:
    """Enter it, then ask. `differs` is what of a request it cannot say, or says in another way."""

    name = ""
    differs = ()

    def skipped(self, request):
        """Why this request cannot be sent through the door; None: it can."""
        if EMPTY in self.differs and "" in request.named.values():
            return EMPTY
        if UNTRUSTED in self.differs and request.named and not request.trusted:
            return UNTRUSTED
        if DECODED in self.differs and "%2f" in request.target.lower():
            return DECODED
        if REALIP in self.differs and request.ip not in ADDRESSES:
            return REALIP
        return None

    def line(self, request):
        """The request as a trace records it: what counts of it."""
        named = {} if NAMED in self.differs else dict(request.named)
        if not request.trusted:
            named = {name: value for name, value in named.items() if name not in ("user", "org", "plan")}
        if UNTRUSTED not in self.differs:
            named.pop("tls.client.cn", None)  # of a certificate
        ip = request.ip
        if HOP in self.differs and ip in HOPS:
            ip = re.sub(r":443$", "", ip).strip("[]")
        return {"method": request.method, "path": request.target, "host": request.host, "ip": ip,
                "headers": request.joined(), "attributes": named}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, request):
        raise NotImplementedError
