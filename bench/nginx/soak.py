#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ngx_http_weir_module under mixed load for a given time: nothing may grow.

    bench/nginx/soak.py [--module FILE] [--seconds 600 | --rounds N] [--workers 2]

One nginx answers in rounds of about the same requests: admitted, denied and delayed ones, leases that
end, clients that leave while they wait, fields that are repeated, new keys in each round, and after
every few rounds a reload. After each round, all leases must be free again, the descriptors of the workers
must become as few as after the first rounds, and their private memory no more than ROOM_KIB above
what it was then. Prints a line for each look, and ends with status 1 and what has grown.
"""

import argparse
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import configured  # noqa: E402
from processes import free_port, listens, wait_for  # noqa: E402

WARM_ROUNDS = 3  # buffers and the allocator's pools have their size then
RELOAD_EVERY = 5  # rounds
QUIET_WITHIN_S = 30
# What fragmentation of the heap may add. A leak of 16 bytes a request passes it within 300,000.
ROOM_KIB = 4096

RULES = """version: 1
limits:
  - { name: free, match: { path: /free }, key: [k], rate: 1000000/s, algorithm: gcra }
  - { name: log, match: { path: /log }, key: [k], rate: 20/min, algorithm: sliding_log }
  - { name: few, match: { path: /few }, key: [k], rate: 5/h, algorithm: sliding_window }
  - { name: queue, match: { path: /queue }, key: [], rate: 200/s, burst: 400,
      algorithm: leaky_bucket, queue: true }
  - { name: open, match: { path: /open }, key: [k], algorithm: concurrency, limit: 2, life: 1min }
"""

HTTP = """keepalive_requests 1000;
    weir_state @DIR@/run/state size=4m;"""

SERVER = "location / { weir on; empty_gif; }"

PATHS = ("/free", "/log", "/few", "/queue", "/open")


class Soak:
    def __init__(self, folder, module, options):
        self.folder, self.options, self.port = folder, options, free_port()
        command = configured.write(folder, module, self.port, RULES, HTTP, SERVER, workers=options.workers)
        self.requests = 0
        self.master = subprocess.Popen(command)

    def workers(self):
        children = Path(f"/proc/{self.master.pid}/task/{self.master.pid}/children")
        return sorted(int(pid) for pid in children.read_text(encoding="ascii").split())

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def send(self, path, key, count, leave=False):
        """`count` requests on one connection; `leave`: without reading the answers."""
        with self.connect() as client:
            one = f"GET {path}?k={key} HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nX-A: 2\r\n"
            client.sendall((one + "\r\n").encode() * (count - 1) +
                           (one + "Connection: close\r\n\r\n").encode())
            self.requests += count
            while not leave and client.recv(65536):
                pass

    def round(self, number):
        for i in range(40):
            for path in PATHS:
                self.send(path, f"{number}-{i}", 10)
            self.send("/queue", "x", 3, leave=True)
            self.send("/open", "x", 2, leave=True)

    def reload(self):
        before = set(self.workers())
        self.master.send_signal(signal.SIGHUP)
        self.wait(lambda: len(self.workers()) == self.options.workers
                  and not before & set(self.workers()), "the new workers")

    @staticmethod
    def wait(done, what):
        deadline = time.monotonic() + QUIET_WITHIN_S
        while not done():
            if time.monotonic() > deadline:
                sys.exit(f"bench/nginx: {what} did not come within {QUIET_WITHIN_S} s")
            time.sleep(0.05)

    def descriptors(self):
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self.workers())

    def memory_kib(self):
        total = 0
        for pid in self.workers():
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            total += sum(int(size) for size in re.findall(r"^Private_\w+:\s+(\d+)", rollup, re.M))
        return total

    def free_leases(self):
        """How many leases of the key that clients left behind can be had: the limit, if none is kept."""
        with self.connect() as client:
            client.sendall(b"GET /open?k=x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            text = b""
            while more := client.recv(65536):
                text += more
        found = re.search(rb"RateLimit: \"open\";r=(\d+)", text)
        return int(found.group(1)) if found else 0

    def look(self, first):
        """Waits until no request is open, and returns what must not grow; `first`: what it was."""
        # A lease that this request has is one of the two.
        self.wait(lambda: self.free_leases() == 1, "the end of all leases")
        if first:  # the connection of that request may be closing still
            self.wait(lambda: self.descriptors() <= first[0], "the end of all connections")
        return self.descriptors(), self.memory_kib()


def run(soak, options):
    end, number, first, grown = time.monotonic() + options.seconds, 0, None, []
    while not first or (number < options.rounds if options.rounds else time.monotonic() < end):
        soak.round(number)
        number += 1
        if number % RELOAD_EVERY == 0:
            soak.reload()
            soak.round(number)
        descriptors, kib = soak.look(first)
        print(f"round {number:5} requests {soak.requests:9} descriptors {descriptors:4} "
              f"private KiB {kib:7}", flush=True)
        if number == WARM_ROUNDS:
            first = descriptors, kib
        if first and kib > first[1] + ROOM_KIB:
            grown.append(f"private memory: {kib} KiB, after {WARM_ROUNDS} rounds {first[1]} KiB")
    print(f"{soak.requests} requests, {number} rounds: " + ("; ".join(grown) or "nothing has grown"))
    return 1 if grown else 0


def main():
    parser = argparse.ArgumentParser(description="a soak of limits inside nginx")
    configured.add_module(parser)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rounds", type=int, default=0, help="instead of --seconds")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    module = configured.module_of(options)
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(Path(name), module, options)
        try:
            wait_for(soak.master, lambda: listens(soak.port))
            return run(soak, options)
        finally:
            soak.master.terminate()
            soak.master.wait()


if __name__ == "__main__":
    sys.exit(main())
