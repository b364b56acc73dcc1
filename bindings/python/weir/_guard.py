# SPDX-License-Identifier: Apache-2.0
"""What all middleware shares: a request's attributes, one decision, and what follows its end.

A function of the program may be a coroutine function where the framework can await it. So what calls
these functions is written once, as generators that yield what a function has returned and are sent what
became of it: drive() runs one on a thread, adrive() in a coroutine.

The cause of an error decides what follows it. The client, for a path that cannot be read: 400. The
program, for a function that raises or returns nonsense: an exception. All else: on_error.
"""

import collections.abc
import inspect
import logging
import math
import operator
import socket
import time

from weir._weir import Error, RequestError

log = logging.getLogger("weir")

SETTLE_LIFE = 600.0  # seconds; a request that takes longer keeps its charge
TEND_EVERY = 1.0  # seconds; weir_tend wants to be called about so often
COST_MAX = 2**53  # what every language of a program can count

NOBODY = object()  # in place of a peer's address: there is none, and no Unix socket either


def refuse(value):
    """What a function has returned where nothing can await it."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("an option has returned an awaitable, which only ASGI, Starlette, Flask and "
                        "Django can wait for")
    return value


def wait_by_asgiref(value):
    """The same on a thread, as Flask and Django run coroutines of a program."""
    if not inspect.isawaitable(value):
        return value
    from asgiref.sync import async_to_sync

    async def wait():
        return await value

    return async_to_sync(wait)()


def drive(steps, wait=refuse):
    """Runs a generator to its end; `wait` makes of what it yields what it is sent."""
    send, given = steps.send, None
    while True:
        try:
            value = send(given)
        except StopIteration as end:
            return end.value
        try:
            send, given = steps.send, wait(value)
        except Exception as error:
            send, given = steps.throw, error


async def adrive(steps):
    """Runs a generator to its end, and awaits what it yields."""
    send, given = steps.send, None
    while True:
        try:
            value = send(given)
        except StopIteration as end:
            return end.value
        send, given = steps.send, value
        if inspect.isawaitable(value):
            try:
                given = await value
            except BaseException as error:  # CancelledError, too
                send, given = steps.throw, error


def whole(given, name):
    """A cost as the program gives it."""
    value = given
    try:
        value = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        value = None
    if value is None:
        raise TypeError(f"{name}: must be a whole number, not {given!r}")
    if not 0 <= value <= COST_MAX:
        raise ValueError(f"{name}: {value} is not from 0 to {COST_MAX}")
    return value


def _is_address(text):
    for family in socket.AF_INET, socket.AF_INET6:
        try:
            socket.inet_pton(family, text.partition("%")[0])
            return True
        except (OSError, ValueError):
            pass
    return False


class Guard:
    """How requests are decided.

    limiter      of weir.open
    attributes   attributes(request) returns a dict of attributes beside those of HTTP (user, org,
                 plan, or any other that the rules read), or None. Numbers and UUIDs become texts
    cost         what a request takes: a whole number, or cost(request)
    on_limited   on_limited(request, answer) is called for each denial. What it returns, unless
                 None, is sent in place of the denial
    skip         skip(request): True lets a request pass without a decision
    settle       settle(request, status) returns the true cost of a request that has ended with this
                 status; None: it stays as charged. It is not called where the client left before
                 there was an answer: that request stays as charged
    skip_successful, skip_failed
                 give back what requests with a status below 400, or from 400 on, were charged
    on_error     "open": where the limiter cannot be asked, the request passes; "closed", which None
                 means, too: it gets 503. A state that does not answer, or cannot be opened, is for
                 `on_store_error` of the rules
    max_delay    seconds that a request may be held; one that would wait for longer gets 503, and
                 is not charged
    ip           ip(request) returns the client's address, in place of the peer's; X-Forwarded-For
                 and Forwarded do not count then. None: it has none

    Functions may be coroutine functions, except in WSGI. What they raise is raised, and a value of a
    wrong type is a TypeError: frameworks answer both with 500, and nothing is charged.
    """

    wait = staticmethod(refuse)  # see drive

    def __init__(self, limiter, *, attributes=None, cost=1, on_limited=None, skip=None, settle=None,
                 skip_successful=False, skip_failed=False, on_error=None, max_delay=30.0, ip=None):
        if on_error not in (None, "open", "closed"):
            raise ValueError(f'on_error is "open" or "closed", not {on_error!r}')
        for name, value in (("attributes", attributes), ("on_limited", on_limited), ("skip", skip),
                            ("settle", settle), ("ip", ip)):
            if value is not None and not callable(value):
                raise TypeError(f"{name}: must be a function, not {value!r}")
        for name, value in ("skip_successful", skip_successful), ("skip_failed", skip_failed):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: must be True or False, not {value!r}")
        if not callable(cost):
            whole(cost, "cost")
        if not max_delay >= 0:
            raise ValueError(f"max_delay: must be a number of seconds, not {max_delay!r}")
        self.limiter = limiter
        self.attributes = attributes
        self.cost = cost
        self.on_limited = on_limited
        self.skip = skip
        self.settle = settle
        self.skip_successful, self.skip_failed = skip_successful, skip_failed
        self.settles = bool(settle or skip_successful or skip_failed)
        self.on_error = on_error
        self.max_delay = max_delay
        self.ip = ip
        self.tended = time.monotonic()
        self.reads = self.fields = None

    def refuse_coroutine_functions(self):
        """Where nothing can await them."""
        for name in "attributes", "cost", "on_limited", "skip", "settle", "ip":
            if inspect.iscoroutinefunction(getattr(self, name)):
                raise TypeError(f"{name}: must be no coroutine function: WSGI cannot wait for it")
        return self

    def fields_read(self, translate):
        """The header fields that the rules read, as a dict from the name that the protocol has for
        them to the attribute; recreated when the rules have been read again."""
        reads = self.limiter.reads
        if reads is not self.reads:
            self.fields = {translate(name[7:]): name for name in reads if name.startswith("header.")}
            self.reads = reads
        return self.fields

    # --- Deciding ---------------------------------------------------------------------------------

    def _met(self, met):
        """What this guard has decided of the request before, in a list, or None. `met`: (guard,
        answer) of the guards that the request has met."""
        for guard, answer in met:
            if guard is self:
                return [answer]
            if guard.limiter is self.limiter:
                raise RuntimeError("two guards of one limiter meet one request, which would be charged "
                                   "twice: use one, with all options, or weir.open the rules of each")
        return None

    def deciding(self, request, met, values, client, forwarded_for, forwarded):
        """A generator that returns the Verdict on a request with these attributes; `met` is the
        request's own list of what has decided it."""
        before = self._met(met)
        if before:
            verdict = Verdict(self, None, 200)
            verdict.answer = before[0]
            return verdict
        if self.skip is not None:
            skipped = yield self.skip(request)
            if skipped is not None and not isinstance(skipped, bool):
                raise TypeError(f"skip: must return True, False or None, not {skipped!r}")
            if skipped:
                return Verdict(self, None, 200)
        if self.ip is not None:
            client = yield self.ip(request)
            forwarded_for = forwarded = None
            if client is None:
                client = NOBODY
            elif not isinstance(client, str) or not _is_address(client):
                raise TypeError(f"ip: must return an address or None, not {client!r}")
        if self.attributes is not None:
            more = yield self.attributes(request)
            if more is not None and not isinstance(more, collections.abc.Mapping):
                raise TypeError(f"attributes: must return a dict or None, not {more!r}")
            values.update(more or {})
        cost = self.cost
        if callable(cost):
            cost = whole((yield cost(request)), "cost")
        if client is NOBODY:
            return self._no_address("none")
        return self._decide(request, met, values, cost, client or None, forwarded_for, forwarded)

    def _no_address(self, client):
        passes = self.on_error == "open"
        log.error("the peer's address is %s, so the request %s: say it by the option `ip`, or in tests by "
                  "weir.testing.peer", client, "passes" if passes else "gets 503")
        return Verdict(self, None, 200 if passes else 503)

    def _decide(self, request, met, values, cost, client, forwarded_for, forwarded):
        limiter = self.limiter
        try:
            now = time.monotonic()
            if now - self.tended >= TEND_EVERY:
                self.tended = now
                limiter.tend()
            answer = limiter.reserve(values, cost=cost, client=client,
                                     forwarded_for=forwarded_for, forwarded=forwarded,
                                     trusted=False, life=SETTLE_LIFE,
                                     only_delayed=not (self.settles or limiter.refunds))
        except (RequestError, UnicodeError) as error:
            if client is not None and not _is_address(client):
                return self._no_address(repr(client))
            log.info("refused a request: %s", error)
            return Verdict(self, None, 400)
        except Error as error:
            passes = self.on_error == "open" if self.on_error else limiter.passes(error.code)
            log.warning("cannot decide, so the request %s: %s", "passes" if passes else "gets 503",
                        error)
            return Verdict(self, None, 200 if passes else 503)
        met.append((self, answer))
        return self._verdict(request, answer, (values, client, forwarded_for, forwarded))

    def _verdict(self, request, answer, asked):
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
            if self.limiter.outcomes:
                verdict.asked = asked
        return verdict

    def limiting(self, request, verdict):
        """A generator that returns what on_limited has for a denial; None: the denial itself."""
        if not verdict.limited or self.on_limited is None:
            return None
        return (yield self.on_limited(request, verdict.answer))

    def costing(self, request, status):
        """A generator that returns the true cost of a request that has ended with this status; None:
        as charged."""
        cost = None
        if self.settle is not None:
            cost = yield self.settle(request, status)
        if cost is not None:
            return whole(cost, "settle")
        return 0 if (self.skip_successful if status < 400 else self.skip_failed) else None


class Verdict:
    """What becomes of one request; finish, leave or cancel it once."""

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
        drive(self._finishing(status), self.guard.wait)

    async def afinish(self, status):
        """The same in a coroutine, which awaits the program's `settle`."""
        await adrive(self._finishing(status))

    def _finishing(self, status):
        reservation, self.reservation = self.reservation, None
        asked, self.asked = self.asked, None
        limiter = self.limiter
        self._release()
        if asked is not None and status in limiter.outcomes:
            values, client, forwarded_for, forwarded = asked
            self._do(limiter.outcome, status, values, client=client,
                     forwarded_for=forwarded_for, forwarded=forwarded, trusted=False)
        if reservation is not None and 100 <= status <= 599:
            yield from self._settling(reservation, status)

    def _settling(self, reservation, status):
        try:
            cost = yield from self.guard.costing(self.request, status)
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


def sent_path(path, raw, decode):
    """The path as the client sent it, where the server says it (`raw`, maybe with a query; None: it
    does not) and it means what the application reads, `path`; else `path`, as weir reads paths.
    `decode` is how the server has decoded it. An encoded slash is a slash, as frameworks of Python
    take it: else a client could write a path so that no limit matches, and the route still does."""
    if raw is not None and "%" in raw:
        raw = raw.partition("?")[0]
        if decode(raw) == path:
            return raw.replace("%2F", "/").replace("%2f", "/")
    return plain_path(path)
