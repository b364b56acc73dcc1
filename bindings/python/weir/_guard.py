# SPDX-License-Identifier: Apache-2.0
"""What all middleware shares: a request's attributes, one decision, and what follows its end."""

import logging
import math
import operator
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
    skip         skip(request): true lets a request pass without a decision
    settle       settle(request, status) returns the true cost of a request that has ended with this
                 status; None: it stays as charged. It is not called where the client left before
                 there was an answer: that request stays as charged
    skip_successful, skip_failed
                 give back what requests with a status below 400, or from 400 on, were charged
    on_error     "open": where weir cannot decide, the request passes; "closed": it gets 503
    max_delay    seconds that a request may be held; one that would wait for longer gets 503, and
                 is not charged
    """

    def __init__(self, limiter, *, attributes=None, cost=1, on_limited=None, skip=None, settle=None,
                 skip_successful=False, skip_failed=False, on_error="open", max_delay=30.0):
        if on_error not in ("open", "closed"):
            raise ValueError(f'on_error is "open" or "closed", not {on_error!r}')
        self.limiter = limiter
        self.attributes = attributes
        self.cost = cost
        self.on_limited = on_limited
        self.skip = skip
        self.settle = settle
        self.skip_successful, self.skip_failed = skip_successful, skip_failed
        self.settles = bool(settle or skip_successful or skip_failed)
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
        limiter = self.limiter
        if self.skip is not None and self.skip(request):
            return Verdict(self, None, 200)
        if self.attributes is not None:
            values.update(self.attributes(request) or {})
        cost = self.cost(request) if callable(self.cost) else self.cost
        try:
            now = time.monotonic()
            if now - self.tended >= TEND_EVERY:
                self.tended = now
                limiter.tend()
            answer = limiter.reserve(values, cost=cost, client=client or None,
                                     forwarded_for=forwarded_for, forwarded=forwarded,
                                     trusted=False, life=SETTLE_LIFE,
                                     only_delayed=not (self.settles or limiter.refunds))
        except (RequestError, UnicodeError) as error:
            log.info("refused a request: %s", error)
            return Verdict(self, None, 400)
        except Error as error:
            log.warning("cannot decide, so the request %s: %s",
                        "passes" if self.open else "gets 503", error)
            return Verdict(self, None, 200 if self.open else 503)
        verdict = Verdict(self, answer, answer.status)
        if not answer.allowed:
            verdict.delay = min(answer.delay, self.max_delay)
        elif answer.delay > self.max_delay:
            verdict.cancel()
            verdict.status = 503
            verdict.headers = (*answer.headers, ("Retry-After", str(math.ceil(answer.delay))))
        else:
            verdict.delay = answer.delay
            verdict.request = request
            if limiter.outcomes:
                verdict.asked = values, client or None, forwarded_for, forwarded
        return verdict

    def cost_of(self, request, status):
        """The true cost of a request that has ended with this status; None: as charged."""
        cost = self.settle(request, status) if self.settle is not None else None
        if cost is not None:
            cost = operator.index(cost)
        elif self.skip_successful if status < 400 else self.skip_failed:
            cost = 0
        return cost


class Verdict:
    """What becomes of one request; finish or cancel it once."""

    __slots__ = ("guard", "limiter", "answer", "status", "headers", "delay", "lease", "reservation",
                 "renewed", "request", "asked", "loop", "timer")

    def __init__(self, guard, answer, status):
        self.guard = guard
        self.limiter = guard.limiter
        self.answer = answer  # None: weir could not decide
        self.status = status  # 200: the request passes
        self.headers = answer.headers if answer is not None else ()
        self.delay = 0.0
        self.lease = answer.lease if answer is not None else None
        self.reservation = answer.reservation if answer is not None else None
        self.renewed = time.monotonic() if self.lease else 0.0
        self.request = None  # what the guard's functions are called with
        self.asked = None  # what was decided, where its outcome may be a strike
        self.loop = self.timer = None  # an event loop, and its timer that renews the lease

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
        return self.lease is not None or self.reservation is not None or self.asked is not None

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
        asked, self.asked = self.asked, None
        limiter = self.limiter
        try:
            if asked is not None and status in limiter.outcomes:
                values, client, forwarded_for, forwarded = asked
                self._do(limiter.outcome, status, values, client=client,
                         forwarded_for=forwarded_for, forwarded=forwarded, trusted=False)
            if reservation is not None and 100 <= status <= 599:
                self._settle(reservation, status)
        finally:
            self._release()

    def _settle(self, reservation, status):
        try:
            cost = self.guard.cost_of(self.request, status)
        except Exception:  # the answer has been sent: the program's mistake must not break it
            log.exception("settle has failed, so the request keeps its charge")
            return
        if cost is not None:
            self._do(self.limiter.settle, reservation, cost)
        elif self.limiter.refunds:
            self._do(self.limiter.report, reservation, status)

    def leave(self):
        """The client left before there was an answer: the request keeps its charge, or clients that
        leave would start the same work again and again for nothing. It has no outcome."""
        self.asked = self.reservation = None
        self._release()

    def cancel(self):
        """The request did not happen."""
        self.asked = None
        reservation, self.reservation = self.reservation, None
        if reservation is not None:
            self._do(self.limiter.cancel, reservation)
        self._release()

    def _release(self):
        if self.timer is not None:
            self.timer.cancel()
        lease, self.lease = self.lease, None
        if lease is not None:
            self._do(self.limiter.release, lease)

    @staticmethod
    def _do(call, *arguments, **named):
        try:
            call(*arguments, **named)
        except (Error, OverflowError) as error:
            log.info("cannot settle a request: %s", error)


def plain_path(path):
    """A decoded path as weir reads paths: what delimits in an encoded one is encoded."""
    if "%" in path or "?" in path or "#" in path:
        path = path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    return path

