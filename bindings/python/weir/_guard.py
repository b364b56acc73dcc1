# SPDX-License-Identifier: Apache-2.0
"""What all middleware shares: a request's attributes, one decision, and what follows its end."""

import logging
import math
import time

from weir._weir import Error, RequestError

log = logging.getLogger("weir")

SETTLE_LIFE = 600.0  # seconds; a request that takes longer keeps its charge
TEND_EVERY = 1.0  # seconds; weir_tend wants to be called about so often


class Guard:
    """How requests are decided.

    limiter      of weir.open
    attributes   attributes(request) returns a dict of attributes beside those of HTTP (user, org,
                 plan, or any other that the rules read), or None
    cost         what a request takes: a number, or cost(request)
    on_limited   on_limited(request, answer) is called for each denial. What it returns, unless
                 None, is sent in place of the denial
    on_error     "open": where weir cannot decide, the request passes; "closed": it gets 503
    max_delay    seconds that a request may be held; one that would wait for longer gets 503, and
                 is not charged
    """

    def __init__(self, limiter, *, attributes=None, cost=1, on_limited=None, on_error="open",
                 max_delay=30.0):
        if on_error not in ("open", "closed"):
            raise ValueError(f'on_error is "open" or "closed", not {on_error!r}')
        self.limiter = limiter
        self.attributes = attributes
        self.cost = cost
        self.on_limited = on_limited
        self.open = on_error == "open"
        self.max_delay = max_delay
        self.tended = time.monotonic()
        self.reads = self.fields = None

    def fields_read(self, translate):
        """The header fields that the rules read, as a dict from the name that the protocol has for
        them to the attribute; made anew when the rules have been read again."""
        reads = self.limiter.reads
        if reads is not self.reads:
            self.fields = {translate(name[7:]): name for name in reads if name.startswith("header.")}
            self.reads = reads
        return self.fields

    def decide(self, request, values, client, forwarded_for, forwarded):
        """The Verdict on a request with these attributes."""
        if self.attributes is not None:
            values.update(self.attributes(request) or {})
        cost = self.cost(request) if callable(self.cost) else self.cost
        limiter = self.limiter
        try:
            now = time.monotonic()
            if now - self.tended >= TEND_EVERY:
                self.tended = now
                limiter.tend()
            answer = limiter.reserve(values, cost=cost, client=client or None,
                                     forwarded_for=forwarded_for, forwarded=forwarded,
                                     trusted=False, life=SETTLE_LIFE,
                                     only_delayed=not limiter.refunds)
        except (RequestError, UnicodeError) as error:
            log.info("refused a request: %s", error)
            return Verdict(limiter, None, 400)
        except Error as error:
            log.warning("cannot decide, so the request %s: %s",
                        "passes" if self.open else "gets 503", error)
            return Verdict(limiter, None, 200 if self.open else 503)
        verdict = Verdict(limiter, answer, answer.status)
        if not answer.allowed:
            verdict.delay = min(answer.delay, self.max_delay)
        elif answer.delay > self.max_delay:
            verdict.cancel()
            verdict.status = 503
            verdict.headers = (*answer.headers, ("Retry-After", str(math.ceil(answer.delay))))
        else:
            verdict.delay = answer.delay
        return verdict


class Verdict:
    """What becomes of one request; finish or cancel it once."""

    __slots__ = ("limiter", "answer", "status", "headers", "delay", "lease", "reservation", "renewed")

    def __init__(self, limiter, answer, status):
        self.limiter = limiter
        self.answer = answer  # None: weir could not decide
        self.status = status  # 200: the request passes
        self.headers = answer.headers if answer is not None else ()
        self.delay = 0.0
        self.lease = answer.lease if answer is not None else None
        self.reservation = answer.reservation if answer is not None else None
        self.renewed = time.monotonic() if self.lease else 0.0

    @property
    def passes(self):
        return self.status == 200

    @property
    def limited(self):
        """Whether a limit has denied it."""
        return self.answer is not None and not self.answer.allowed

    @property
    def open(self):
        """Whether something is left to do at the request's end."""
        return self.lease is not None or self.reservation is not None

    @property
    def denial(self):
        """The header fields and the body of a request that does not pass."""
        headers = list(self.headers)
        body = self.answer.body if self.limited else b""
        if body:
            headers.append(("Content-Type", self.answer.content_type))
        headers.append(("Content-Length", str(len(body))))
        return headers, body

    @property
    def life(self):
        """Seconds that the lease lives."""
        return min((limit.window for limit in self.answer.limits
                    if limit.algorithm == "concurrency"), default=math.inf)

    def renew(self):
        """Keeps the lease of a request that takes long."""
        self.renewed = time.monotonic()
        if self.lease is not None:
            self._do(self.limiter.renew, self.lease)

    def renew_if_due(self):
        if self.lease is not None and time.monotonic() - self.renewed > self.life / 3:
            self.renew()

    def finish(self, status):
        """The request has ended with this status."""
        reservation, self.reservation = self.reservation, None
        if reservation is not None and self.limiter.refunds and 100 <= status <= 599:
            self._do(self.limiter.report, reservation, status)
        self._release()

    def cancel(self):
        """The request did not happen."""
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            self._do(self.limiter.cancel, reservation)
        self._release()

    def _release(self):
        lease, self.lease = self.lease, None
        if lease is not None:
            self._do(self.limiter.release, lease)

    @staticmethod
    def _do(call, *arguments):
        try:
            call(*arguments)
        except Error as error:
            log.info("cannot settle a request: %s", error)


def plain_path(path):
    """A decoded path as weir reads paths: what delimits in an encoded one is encoded."""
    if "%" in path or "?" in path or "#" in path:
        path = path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    return path

