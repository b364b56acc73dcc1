# SPDX-License-Identifier: Apache-2.0
"""Doors: guesses of passwords, and heads that grow when they are read."""

import os
import threading
import time

from daemon.frames import (END_HEADERS, END_STREAM, GOAWAY, HEADERS, RST_STREAM, Frames, frame, head,
                           request)
from daemon.http import connect
from daemon.redis import Redis, command_bytes
from suite import case

API = {"name": "api", "key": ["client.ip"], "rate": "1000000/h"}
WRONG = b"WRONGPASS"


def cpu_seconds(weir):
    with open(f"/proc/{weir.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Guesser(threading.Thread):
    """Guesses without a pause, on one connection after the other."""

    def __init__(self, address, end):
        super().__init__()
        self.address, self.end, self.result, self.sent = address, end, 0, 0

    def run(self):
        batch = command_bytes("AUTH", "guess") * 100
        while time.monotonic() < self.end:
            try:
                with connect(self.address, 10) as sock:
                    sock.sendall(batch)
                    self.sent += 100
                    while data := sock.recv(1 << 16):
                        self.result += data.count(WRONG)
            except OSError:
                pass


@case("guesses", "passwords of the Redis protocol, guessed over 50 connections for 10 s")
def guesses(attack):
    weir = attack.serve(API, server={"redis": {"address": "127.0.0.1:0", "token": "sesame"}},
                        options=("--workers", "2"))
    with Redis(weir.redis_address) as friend:
        assert friend.ask("AUTH", "sesame") == "OK"
        seconds = 10
        began, before = time.monotonic(), cpu_seconds(weir)
        guessers = [Guesser(weir.redis_address, began + seconds) for _ in range(50)]
        for one in guessers:
            one.start()
        served = slow = 0
        while time.monotonic() < began + seconds:
            started = time.monotonic()
            served += friend.ask("CL.THROTTLE", "k", 1000000, 1000000, 60)[0] == 0
            slow = max(slow, time.monotonic() - started)
        for one in guessers:
            one.join()
        took = time.monotonic() - began
    sent, result = (sum(getattr(one, name) for one in guessers) for name in ("sent", "result"))
    tried = f"AUTH with wrong passwords over 50 connections for {took:.0f} s"
    attack.at_most(tried, sent, "guesses that were looked at", result, 5 + 5 + int(took) + 1)
    attack.holds(tried, sent, f"logged {weir.text().count('event=auth_failed')} times",
                 "at least once, and at most 10 a second",
                 1 <= weir.text().count("event=auth_failed") <= 10 * took)
    attack.tell(tried, sent, f"a client that had authenticated made {served:,} checks meanwhile, "
                f"the slowest in {1000 * slow:.0f} ms; weir took {cpu_seconds(weir) - before:.1f} s "
                "of CPU")


@case("hpack", "320 MB of references to the table of a head's compressor")
def hpack(attack):
    """A reference is one byte, of which weir makes a field; on streams that weir has closed."""
    weir = attack.serve(API, server={"grpc": {"address": "127.0.0.1:0"}})
    tried, total = "heads of references on closed streams, of 16 KB each", 320_000_000
    flood = frame(HEADERS, END_HEADERS, 1, b"\xbe" * 16000) * 100
    connections = total // len(flood)
    before = cpu_seconds(weir)
    for _ in range(connections):
        with Frames(weir.grpc_address) as frames:
            frames.send(frame(HEADERS, END_HEADERS, 1, head("/nobody/Nothing")))
            frames.read_until(RST_STREAM, stream=1)
            frames.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, head() + b"\x40\x01x\x01y"))
            frames.end_of(3)
            frames.try_send(flood)
            frames.closed_with()
    used = cpu_seconds(weir) - before
    attack.holds(tried, connections * 100, f"CPU of weir: {used:.2f} s, over {connections:,} "
                 "connections, each of which it ends", "at most 20 ms a connection",
                 used <= 0.02 * connections)
    with Frames(weir.grpc_address) as frames:
        frames.send(request(1))
        one = frames.read_until(HEADERS, GOAWAY)
        attack.holds(tried, connections, "another client afterwards", "served",
                     one is not None and one[0] == HEADERS)
