#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir serve under mixed load for a given time, with all that happens to a server in its life: nothing may grow.

    bench/soak/run.py [--weir build/weir] [--minutes 60 | --rounds N] [--rate 100]

Two servers are asked at an even rate: one with a state file, TLS, standing, penalties and a file of
denials; one with Redis as its store. Their requests are single checks of old and new keys, batches,
/v1/auth, logs, leases that end and leases that are left, commands of the Redis protocol, bans, and
clients that leave without reading. Beside these

    every 10 s   both servers reload rules that differ: a rate changes, a limit comes or goes
    every 30 s   the certificate is replaced by a new one, and the log files are reopened
    every 60 s   Redis is killed, and comes back empty 5 s later

Each minute (a round of so many requests with --rounds) prints a line for each server: private memory, descriptors,
threads, the median and p99 of answers, CPU time a request, and answers that failed. A sixth of the time
is for warming up. Then the median of the memory of the last sixth may be ROOM_KIB above that of the second
sixth, and there may be FILES_ROOM more descriptors and no more threads. Ends with status 1 and what has grown.
"""

import argparse
import itertools
import json
import os
import re
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "integration")]

from processes import cpu_seconds  # noqa: E402

RELOAD_S, CERTIFICATE_S, KILL_S, DOWN_S = 10, 30, 60, 5
ROUND_S = 60
# What fragmentation of the heap may add: a leak of 64 bytes a request passes it within 70,000 requests.
ROOM_KIB = 4096
FILES_ROOM = 8  # connections that are being closed
SIXTHS = 6
STATE = {"size": "4MiB"}

LIMITS = [
    {"name": "log", "match": {"path": "/log"}, "key": ["user"], "rate": "20/min", "algorithm": "sliding_log"},
    {"name": "few", "match": {"path": "/few"}, "key": ["user"], "rate": "3/h", "algorithm": "sliding_window"},
    {"name": "open", "match": {"path": "/open"}, "key": ["user"], "algorithm": "concurrency", "limit": 2,
     "life": "5s"},
    {"name": "web", "match": {"method": "GET"}, "key": ["client.ip"], "rate": "100/s"},
]


def rules(turn, **parts):
    """Those of a reload: the rate of one limit changes each time, and every third time one more is there."""
    limits = [{"name": "all", "key": ["user"], "rate": f"{100 + turn % 7}/s"}, *LIMITS]
    if turn % 3 == 0:
        limits.append({"name": "sometimes", "key": ["user"], "rate": "50/s", "algorithm": "fixed_window"})
    from daemon.weir import rules_of
    return rules_of(*limits, **parts)


class Asked:
    """A server, the connections that are kept to it, and what its answers took since the last look."""

    def __init__(self, name, weir, parts, context):
        self.name, self.weir, self.parts, self.context = name, weir, parts, context
        self.redis_address = weir.redis_address  # from the log, of which little is kept
        self.kept, self.times, self.failed, self.requests = [], [], 0, 0
        self.turn, self.cpu = 0, cpu_seconds(weir.process.pid)
        self.numbers = itertools.count()
        self.kinds = itertools.cycle([self.old_key, self.new_key, self.few, self.log, self.lease,
                                      self.left_lease, self.batch, self.auth, self.command, self.leaves])
        self.samples = []

    def client(self):
        return self.weir.client(tls=self.context)

    def keep(self, count=4):
        self.kept = [self.client() for _ in range(count)]

    # --- Requests ----------------------------------------------------------------------------------

    def old_key(self, client, _):
        return client.check(path="/", attributes={"user": "old"}).status in (200, 429)

    def new_key(self, client, number):
        return client.check(path="/", attributes={"user": f"new{number}"}).status in (200, 429)

    def few(self, client, number):
        """Denied mostly: denials, strikes, and in the end penalties."""
        return client.check(path="/few", attributes={"user": f"few{number // 100 % 50}"}).status in (200, 403, 429)

    def log(self, client, number):
        return client.check(path="/log", attributes={"user": f"log{number % 300}"}).status in (200, 429)

    def lease(self, client, number):
        reply = client.check(path="/open", attributes={"user": f"open{number}"})
        if reply.status != 200 or "lease" not in reply.json:
            return reply.status in (200, 429)
        return client.post("/v1/release", {"lease": reply.json["lease"]}).status in (200, 404, 503)

    def left_lease(self, client, number):
        return client.check(path="/open", attributes={"user": f"left{number % 100}"}).status in (200, 429)

    def batch(self, client, number):
        checks = [{"path": "/", "attributes": {"user": f"batch{number}-{i}"}} for i in range(20)]
        return len(client.post("/v1/check", checks).json) == 20

    def auth(self, client, number):
        return client.auth("/auth", client=f"192.0.2.{number % 250}").status in (200, 429)

    def command(self, _, number):
        """Over a connection of its own, which the server forgets again."""
        from daemon.redis import Redis
        with Redis(self.redis_address) as redis:
            return isinstance(redis.ask("WEIR.CHECK", "user", f"redis{number}"), list)

    def leaves(self, _, number):
        """A new connection whose client does not wait for its answers."""
        from daemon.load import check_request
        with self.client() as client:
            client.send(check_request(json.dumps({"path": "/open", "attributes": {"user": f"gone{number}"}})) * 3)
        return True

    def ask(self):
        number = next(self.numbers)
        place = number % len(self.kept)
        began = time.monotonic()
        try:
            good = next(self.kinds)(self.kept[place], number)
        except (OSError, EOFError):
            good = False
            self.kept[place].close()
            self.kept[place] = self.client()
        self.times.append(time.monotonic() - began)
        self.requests += 1
        self.failed += not good
        if number % 200 == 0:  # so that new certificates are used
            self.kept[place].close()
            self.kept[place] = self.client()

    # --- What happens ------------------------------------------------------------------------------

    def reload(self):
        self.turn += 1
        self.weir.write_rules(rules(self.turn, **self.parts))
        line = self.weir.reload()
        assert "event=reloaded" in line, line
        with self.weir.changed:  # the log is not what is measured
            del self.weir.lines[:-50]

    def ban(self):
        if "standing" not in self.parts:
            return
        with self.weir.admin() as admin:
            value = {"kind": "user", "value": f"banned{self.turn % 100}", "level": "suspended", "for_ms": 60000}
            status = admin.request("PUT", "/v1/standing", body=json.dumps(value).encode()).status
            self.failed += status not in (200, 202)

    # --- What must not grow ------------------------------------------------------------------------

    def look(self):
        pid = self.weir.process.pid
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        memory = sum(int(size) for size in re.findall(r"^Private_\w+:\s+(\d+)", rollup, re.M))
        files, threads = (len(os.listdir(f"/proc/{pid}/{what}")) for what in ("fd", "task"))
        times, cpu = sorted(self.times), cpu_seconds(pid)
        sample = {"memory": memory, "files": files, "threads": threads,
                  "p50": times[len(times) // 2] * 1000, "p99": times[len(times) * 99 // 100] * 1000,
                  "cpu": (cpu - self.cpu) / len(times) * 1e6}
        self.cpu, self.times = cpu, []
        self.samples.append(sample)
        print(f"{len(self.samples):4} {self.name:6} {memory:8} KiB {files:4} files {threads:3} threads  "
              f"p50 {sample['p50']:6.2f} ms  p99 {sample['p99']:7.2f} ms  {sample['cpu']:6.0f} us CPU a request  "
              f"{self.requests} requests, {self.failed} failed", flush=True)

    def sixth(self, which, what):
        size = max(1, len(self.samples) // SIXTHS)
        part = self.samples[which * size:][:size] if which >= 0 else self.samples[-size:]
        return [sample[what] for sample in part]

    def grown(self):
        found = []
        memory = [statistics.median(self.sixth(which, "memory")) for which in (1, -1)]
        for what in ("p50", "p99", "cpu"):
            print(f"{self.name}: median {what} of the second sixth {statistics.median(self.sixth(1, what)):.2f}, "
                  f"of the last {statistics.median(self.sixth(-1, what)):.2f}")
        print(f"{self.name}: {self.requests} requests, {self.turn} reloads, "
              f"memory {memory[0]:.0f} to {memory[1]:.0f} KiB")
        if memory[1] > memory[0] + ROOM_KIB:
            found.append(f"{self.name}: memory")
        if max(self.sixth(-1, "files")) > max(self.sixth(1, "files")) + FILES_ROOM:
            found.append(f"{self.name}: descriptors")
        if max(self.sixth(-1, "threads")) > max(self.sixth(1, "threads")):
            found.append(f"{self.name}: threads")
        if self.failed:
            found.append(f"{self.name}: {self.failed} answers failed")
        return found


class Soak:
    """Both servers, and what happens to them when."""

    def __init__(self, stack, folder):
        from daemon.certificates import Authority
        from daemon.redis import RedisWeir
        from daemon.redis_server import RedisServer
        self.folder = folder
        self.redis = stack.enter_context(RedisServer(folder / "store"))
        self.authority = Authority(folder)
        self.authority.sign("server")
        table = {
            "state": {**STATE, "file": str(folder / "state")},
            "standing": {"by": ["user"], "file": str(folder / "standing.db"), "entries": 10000},
            "penalties": [{"name": "greedy", "key": "user", "strikes": "30/h", "for": ["few"],
                           "ladder": ["throttle 1min", "suspend 1min"]}],
            "denials": {"file": str(folder / "denials.log")},
            "server": {"http": {"address": "127.0.0.1:0", "tls": {
                           "cert": str(folder / "server.pem"), "key": str(folder / "server.key")}},
                       "admin": {"address": "127.0.0.1:0", "token": "soak" * 8}},
        }
        redis = {"state": STATE, "store": {"redis": {"url": self.redis.url}, "nodes": 1, "deadline": "20ms"}}
        self.asked = []
        for name, parts, context in ("table", table, self.authority.client()), ("redis", redis, None):
            (folder / name).mkdir()
            weir = stack.enter_context(RedisWeir(folder / name, rules(0, **parts), "--workers", "2",
                                                 http=None if context else "127.0.0.1:0",
                                                 admin=None if context else "127.0.0.1:0"))
            self.asked.append(Asked(name, weir, parts, context))
            self.asked[-1].keep()
        self.due = {self.reload: RELOAD_S, self.certify: CERTIFICATE_S, self.kill: KILL_S}
        self.up_at = None

    def reload(self):
        for server in self.asked:
            server.reload()
            server.ban()

    def certify(self):
        self.authority.sign("server")
        log = self.folder / "denials.log"
        if log.exists():
            log.replace(self.folder / "denials.old")

    def kill(self):
        self.redis.kill()
        self.up_at = time.monotonic() + DOWN_S

    def happen(self, began, last):
        """What was due between these times."""
        now = time.monotonic()
        for what, every in self.due.items():
            if int((now - began) / every) > int((last - began) / every):
                what()
        if self.up_at and now >= self.up_at:
            self.redis.start()
            self.up_at = None
        return now

    def run(self, options):
        began = last = look = time.monotonic()
        rounds = options.rounds or round(options.minutes * 60 / ROUND_S)
        size = options.requests
        while len(self.asked[0].samples) < rounds:
            for server in self.asked:
                server.ask()
            last = self.happen(began, last)
            enough = len(self.asked[0].times) >= size if options.rounds else last - look >= ROUND_S
            if enough:
                look = last
                for server in self.asked:
                    server.look()
            if not options.rounds:
                ahead = began + self.asked[0].requests / options.rate - time.monotonic()
                time.sleep(max(0, ahead))
        return [what for server in self.asked for what in server.grown()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build" / "weir"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=0, help="instead of --minutes, as fast as it goes")
    parser.add_argument("--requests", type=int, default=2000, help="of a round, to each server")
    parser.add_argument("--rate", type=float, default=100, help="requests a second to each server")
    options = parser.parse_args()
    os.environ["WEIR"] = options.weir
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        grown = Soak(stack, folder).run(options)
    print("; ".join(grown) or "nothing has grown")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
