# SPDX-License-Identifier: Apache-2.0
"""Requests by the million: whole batches of bytes over one connection of the Redis protocol.

A batch is built by formatting, and its replies are read by one regular expression, so that Python
makes some 300,000 requests a second. The next batch is sent before the replies of the last are
read, so that weir works meanwhile."""

import re
import select
from collections import Counter

from daemon.http import connect
from daemon.redis import Redis
from daemon.waiting import SECONDS_MAX

BATCH = 2000

MARK = b"*2\r\n$4\r\nECHO\r\n$8\r\n--mark--\r\n"
MARK_REPLY = b"$8\r\n--mark--\r\n"

# WEIR.CHECK answers "allowed" first; CL.THROTTLE answers five integers, of which 0 is "not limited".
CHECKED = re.compile(rb"\*\d+\r\n\$7\r\nallowed\r\n:([01])\r\n")
THROTTLED = re.compile(rb"\*5\r\n:([01])\r\n")
REMAINING = re.compile(rb"\$9\r\nremaining\r\n:(\d+)\r\n")
OVERFLOW = b"$8\r\noverflow\r\n:1\r\n"
REPEATED = b"$8\r\nrepeated\r\n:1\r\n"
ERROR = re.compile(rb"(?:^|(?<=\r\n))-([^\r]*)\r\n")


class Pipe:
    """One connection."""

    def __init__(self, address):
        self.socket = connect(address)
        self.socket.setblocking(False)
        self.buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _read(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError("weir closed the connection")
        self.buffer += data

    def _wait(self, writing):
        ready = select.select([self.socket], [self.socket] if writing else [], [], SECONDS_MAX)
        if not any(ready):
            raise TimeoutError(f"weir said nothing for {SECONDS_MAX} s")
        return ready

    def _send(self, data):
        view = memoryview(data)
        while view:
            readable, writable, _ = self._wait(True)
            if readable:
                self._read()
            if writable:
                view = view[self.socket.send(view):]

    def _replies(self):
        """What was answered up to the next mark."""
        looked = 0
        while (end := self.buffer.find(MARK_REPLY, looked)) < 0:
            looked = max(0, len(self.buffer) - len(MARK_REPLY))
            self._wait(False)
            self._read()
        replies = bytes(self.buffer[:end])
        del self.buffer[:end + len(MARK_REPLY)]
        return replies

    def exchange(self, batches):
        """Sends each batch; yields the replies to each, as bytes."""
        under_way = 0
        for batch in batches:
            self._send(batch + MARK)
            under_way += 1
            if under_way > 1:
                yield self._replies()
                under_way -= 1
        while under_way > 0:
            yield self._replies()
            under_way -= 1


class Answers:
    """What a list of requests was answered: `admitted[i]`, how many answers were estimates of overflow
    cells, how many were reported as repeats, and what the errors said."""

    def __init__(self):
        self.admitted, self.overflows, self.repeats, self.errors = [], 0, 0, Counter()

    def add(self, replies, pattern, count):
        verdicts = pattern.findall(replies)
        yes = b"1" if pattern is CHECKED else b"0"
        if len(verdicts) == count:
            self.admitted += [verdict == yes for verdict in verdicts]
        else:  # some are errors: their requests were not admitted
            self._add_with_errors(replies, pattern, count, yes)
        self.overflows += replies.count(OVERFLOW)
        self.repeats += replies.count(REPEATED)

    def _add_with_errors(self, replies, pattern, count, yes):
        found = sorted([(match.start(), match[1] == yes, None)
                        for match in pattern.finditer(replies)]
                       + [(match.start(), False, match[1].decode())
                          for match in ERROR.finditer(replies)])
        assert len(found) == count, f"{len(found)} replies to {count} requests"
        self.admitted += [verdict for _, verdict, _ in found]
        self.errors.update(text for _, _, text in found if text is not None)

    @property
    def denied(self):
        return len(self.admitted) - sum(self.admitted)


def check(*words, **attributes):
    """A WEIR.CHECK with these attributes, in which %-fields may stand; `cost` is its COST, `words`
    are attributes whose names Python does not have."""
    return command("WEIR.CHECK", *words, *attribute_words(attributes))


def peek(**attributes):
    return command("WEIR.PEEK", *attribute_words(attributes))


def attribute_words(attributes):
    words = []
    for key, value in attributes.items():
        words += ["COST" if key == "cost" else key, str(value)]
    return words


def command(*words):
    """A command as a template: the %-fields of its words have a fixed width, such as %07d, %04x."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        width = len(re.sub(r"%0(\d+)[dx]", lambda field: "0" * int(field[1]), word))
        parts.append(b"$%d\r\n%b\r\n" % (width, word.encode()))
    return b"".join(parts)


def _batches(template, keys, size):
    for first in range(0, len(keys), size):
        part = keys[first:first + size]
        yield b"".join([template % key for key in part]) if b"%0" in template \
            else template * len(part)


def ask(address, template, keys, batch=BATCH):
    """One request for each of `keys`: a number, or a tuple where the template has several fields."""
    keys = keys if isinstance(keys, (list, range)) else list(keys)
    pattern = THROTTLED if b"THROTTLE" in template else CHECKED
    answers, left = Answers(), len(keys)
    with Pipe(address) as pipe:
        for replies in pipe.exchange(_batches(template, keys, batch)):
            answers.add(replies, pattern, min(batch, left))
            left -= batch
    return answers


def flood(address, template, keys, batch=BATCH):
    """The same where nobody needs to know which were admitted: how many."""
    yes = b"\r\nallowed\r\n:1\r\n$9\r\ndenied_by" if b"WEIR" in template else b"*5\r\n:0\r\n"
    with Pipe(address) as pipe:
        return sum(replies.count(yes)
                   for replies in pipe.exchange(_batches(template, keys, batch)))


def remaining(address, template, keys, batch=BATCH):
    """What the answer to each says is left of its one limit."""
    left = []
    with Pipe(address) as pipe:
        for replies in pipe.exchange(_batches(template, keys, batch)):
            left += [int(value) for value in REMAINING.findall(replies)]
    assert len(left) == len(keys), f"{len(left)} replies to {len(keys)} requests"
    return left


def each(address, template, keys, times):
    """`times` rounds of one request of each key; of each key, how many were admitted.

    A round is a batch of its own at least, since requests that weir decides at one time are one
    event of a log."""
    many = list(keys) * times
    answers = ask(address, template, many, min(BATCH, max(len(keys), 1)))
    return [sum(answers.admitted[i::len(keys)]) for i in range(len(keys))], answers


def info(address):
    """INFO as a dictionary."""
    redis = Redis(address)
    try:
        text = redis.ask("INFO")
    finally:
        redis.socket.close()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
