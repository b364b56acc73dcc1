# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, in one thread: each asks one node, waits for the answer, asks again.

Every request is recorded with the times between which it was decided, so that a test can say what
must have been admitted, and how long answers took."""

import itertools
import re
import selectors
import threading
import time
from collections import namedtuple
from contextlib import contextmanager

from daemon.http import connect, request_bytes
from daemon.waiting import SECONDS_MAX

# sent, received: time.monotonic(); status: 200 or 429, None when the connection was lost
Answer = namedtuple("Answer", "sent received status node client")

LOOK_EVERY = 0.1  # seconds
CLOCKS_DIFFER = 0.01  # seconds: the offset of the wall clock is read at another moment

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Window:
    """Of one window: how many were certainly admitted in it, how many at most, and whether one was
    certainly denied, so that it was used up."""

    certain = possible = 0
    full = False


class _Client:
    def __init__(self, number, node, address, data):
        self.number, self.node = number, node
        self.requests = itertools.cycle([data] if isinstance(data, bytes) else data)
        self.socket = connect(address)
        self.socket.setblocking(False)
        self.buffer, self.sent, self.due = b"", None, 0.0


class Load:
    """`clients` connections, client i to addresses[i % len]. `request` is the bytes to send, a list
    of such to send in turn, or a function of the client's number that returns either.

    `pace` is the least time between two requests of one client; 0: as fast as it goes."""

    def __init__(self, addresses, clients, request, pace=0.0):
        make = request if callable(request) else lambda _: request
        self.clients = [_Client(i, i % len(addresses), addresses[i % len(addresses)], make(i))
                        for i in range(clients)]
        self.pace = pace
        self.answers = []
        self.settled = True
        self.stopping = threading.Event()
        self.selector = selectors.DefaultSelector()
        for client in self.clients:
            self.selector.register(client.socket, selectors.EVENT_READ, client)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.socket.close()
        self.selector.close()

    def run(self, seconds, settle=SECONDS_MAX):
        """Asks for so long, then waits for what is in flight. Returns the answers of this run."""
        first = len(self.answers)
        self.stopping.clear()
        self._ask_until(time.monotonic() + seconds, settle)
        assert self.settled, "an answer is missing"
        return self.answers[first:]

    def until(self, enough, what):
        """Asks until enough(answers of this run); returns those. How many come in a time is the
        machine's affair: what a test is about is counted, not timed."""
        first = len(self.answers)
        self.stopping.clear()
        came = self._ask_until(time.monotonic() + SECONDS_MAX, SECONDS_MAX,
                               lambda: enough(self.answers[first:]))
        assert came, f"{what} did not come within {SECONDS_MAX} s"
        assert self.settled, "an answer is missing"
        return self.answers[first:]

    @contextmanager
    def running(self, settle=SECONDS_MAX):
        """Asks for as long as the body runs."""
        self.stopping.clear()
        thread = threading.Thread(target=self._ask_until, args=(float("inf"), settle))
        thread.start()
        try:
            yield self
        finally:
            self.stopping.set()
            thread.join()
        assert self.settled, "an answer is missing"

    def _ask_until(self, end, settle, enough=None):
        """Returns whether there was enough before `end`."""
        self.settled, came, look = False, False, 0.0
        while not came and (now := time.monotonic()) < end and not self.stopping.is_set():
            for client in self.clients:
                if client.sent is None and client.due <= now:
                    self._send(client, now)
            self._receive(min(end - now, self.pace or 0.005))
            if enough and now >= look:  # seldom: to look takes time from those who ask
                came, look = enough(), time.monotonic() + LOOK_EVERY
        end = time.monotonic() + settle
        while any(client.sent is not None for client in self.clients):
            if time.monotonic() > end:
                return came
            self._receive(0.1)
        self.settled = True
        return came

    @staticmethod
    def _send(client, now):
        client.sent = now
        client.due = now
        try:
            # Small: goes whole or, to a node that died, not at all.
            client.socket.send(next(client.requests))
        except OSError:
            pass  # the read reports it

    def _receive(self, timeout):
        for key, _ in self.selector.select(max(timeout, 0)):
            client = key.data
            try:
                data = client.socket.recv(65536)
            except OSError:
                data = b""
            client.buffer += data
            if not data:
                self._lost(client)
                continue
            head, found, rest = client.buffer.partition(b"\r\n\r\n")
            if not found:
                continue
            size = int(LENGTH.search(head)[1])
            if len(rest) >= size:
                client.buffer = rest[size:]
                self._record(client, int(head[9:12]))

    def _record(self, client, status):
        now = time.monotonic()
        if client.sent is not None:
            self.answers.append(Answer(client.sent, now, status, client.node, client.number))
        client.due = client.sent + self.pace if client.sent is not None else now
        client.sent = None

    def _lost(self, client):
        """A node ended: this client is done."""
        self.selector.unregister(client.socket)
        client.socket.close()
        if client.sent is not None:
            self._record(client, None)
        client.due = float("inf")


def check_request(body, fields=None):
    """The bytes of a POST /v1/check; `body` is JSON text."""
    fields = {"Content-Type": "application/json"} | (fields or {})
    return request_bytes("POST", "/v1/check", fields, body.encode())


def admitted(answers):
    return sum(answer.status == 200 for answer in answers)


def denied(answers):
    return sum(answer.status == 429 for answer in answers)


def windows(answers, seconds=1):
    """What is known of each window of the wall clock, by its number. An answer that was asked for
    and given within one was decided there; any other may belong to either side of a border."""
    offset = time.time() - time.monotonic()
    found = {}
    for answer in answers:
        first = int((answer.sent + offset - CLOCKS_DIFFER) // seconds)
        last = int((answer.received + offset + CLOCKS_DIFFER) // seconds)
        for number in range(first, last + 1):
            window = found.setdefault(number, Window())
            window.possible += answer.status == 200
            if first == last:
                window.certain += answer.status == 200
                window.full |= answer.status == 429
    return found


def full_windows(answers):
    return sum(window.full for window in windows(answers).values())


def percentile(answers, part):
    """Of the times that answers took, in milliseconds."""
    times = sorted(answer.received - answer.sent for answer in answers)
    return times[min(int(len(times) * part), len(times) - 1)] * 1000 if times else 0.0
