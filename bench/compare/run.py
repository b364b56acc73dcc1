#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir beside redis-server: CPU time, throughput, latency and memory, in one run.

    bench/compare/run.py [--build build] [--quick] [--dry-run]

One weir worker and redis-server run on core 0, the load (`weir bench`, 50 connections, a million
keys) on core 1. Redis does INCR and GET in one process, and EVALSHA of gcra.lua in another, each
with the million keys in it. The cases take turns, so that whatever else the machine does falls on
all of them; medians are reported. Measured as well: what a million keys add to each process, p99 at
half of the highest throughput, two workers beside one by CPU time, libuv beside a bare epoll loop.

Writes the section between the markers of docs/performance.md and docs/performance-compare.svg,
unless --dry-run. Takes about four minutes; --quick takes one and is for trying it out.
"""

import argparse
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import report
from servers import Failure, load, redis_server, responder, weir_server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PIPELINES = (1, 16, 64)
# A key of this rate never comes back to fresh during a run, and a burst of 1000 is never used up.
LIMIT = "1000 1 3600"
THROTTLE = "CL.THROTTLE key:{key} " + LIMIT
WARMUP_S = 0.2


class Comparison:
    """The servers and what was measured on them."""

    def __init__(self, options, stack):
        self.options = options
        self.stack = stack
        self.weir = self.start(weir_server(options, "weir"))
        self.redis = self.start(redis_server(options, "redis-server"))
        self.scripted = self.start(redis_server(options, "redis-server with a script"))
        sha = self.scripted.ask("SCRIPT", "LOAD", (HERE / "gcra.lua").read_text(encoding="utf-8"))
        self.cases = {
            "weir CL.THROTTLE": (self.weir, THROTTLE),
            "Redis GET": (self.redis, "GET key:{key}"),
            "Redis INCR": (self.redis, "INCR key:{key}"),
            "Redis EVALSHA": (self.scripted, f"EVALSHA {sha} 1 key:{{key}} {LIMIT}"),
        }

    def start(self, server):
        self.stack.callback(server.stop)
        return server

    def say(self, text):
        if not self.options.silent:
            print(text, flush=True)

    def runs(self, cases):
        """Runs each case in turn, again and again: {case: [results]}. A case is (server, command,
        options of the load, CPUs of the load)."""
        results = {name: [] for name in cases}
        for seed in range(1, self.options.runs + 1):
            for name, (server, command, more, cpus) in cases.items():
                result = load(self.options, server, command, "--seed", seed, "-d",
                              self.options.seconds, "--warmup", WARMUP_S, *more, cpus=cpus)
                results[name].append(result)
                self.say(f"  {str(name):36} {result['server_cpu_us']:8.3f} us CPU "
                         f"{result['throughput']:10.0f}/s  p99 {result['latency_us']['p99']:8.1f} us")
        return results

    def memory(self):
        """Fills the servers; bytes a key that they grew by. weir's table is its whole size, as
        though all of it had been touched."""
        grown = {}
        fill = ["-n", self.options.keys, "--distribution", "sequential", "-P", 64]
        for name in ("weir CL.THROTTLE", "Redis INCR", "Redis EVALSHA"):
            server, command = self.cases[name]
            load(self.options, server, command, "-n", 300, "--distribution", "hot", "-P", 64)
            before = server.resident_bytes()
            load(self.options, server, command, *fill)
            grown[name] = server.resident_bytes() - before
            self.say(f"  {name:36} {grown[name] / self.options.keys:8.1f} bytes a key")
        grown["weir CL.THROTTLE"] = max(grown["weir CL.THROTTLE"], report.STATE_BYTES)
        return {name: bytes_ / self.options.keys for name, bytes_ in grown.items()}

    def matrix(self):
        cases = {(name, depth): (server, command, ["-P", depth], "1")
                 for depth in PIPELINES for name, (server, command) in self.cases.items()}
        return self.runs(cases)

    def half_rate(self, matrix):
        """p99 of an open loop at half of what each did unpipelined."""
        cases = {}
        for name in ("weir CL.THROTTLE", "Redis GET"):
            server, command = self.cases[name]
            rate = round(median_of(matrix[name, 1], "throughput") / 2)
            cases[name] = (server, command, ["--rate", rate, "--spin"], "1")
        return self.runs(cases)

    def workers(self):
        two = self.start(weir_server(self.options, "weir, two workers", 2, "0,1"))
        load(self.options, two, THROTTLE, "-n", self.options.keys, "--distribution", "sequential",
             "-P", 64)
        return self.runs({"one worker": (self.weir, THROTTLE, ["-P", 64], "1"),
                          "two workers": (two, THROTTLE, ["-P", 64], "0,1")})

    def loops(self):
        servers = {loop: self.start(responder(self.options, loop)) for loop in ("uv", "epoll")}
        return self.runs({(loop, depth): (server, THROTTLE, ["-P", depth], "1")
                          for depth in (1, 64) for loop, server in servers.items()})


def median_of(results, field):
    return statistics.median(result[field] for result in results)


def measure(options):
    with ExitStack() as stack:
        comparison = Comparison(options, stack)
        comparison.say("memory")
        memory = comparison.memory()
        comparison.say("side by side")
        matrix = comparison.matrix()
        comparison.say("half of the highest throughput")
        half = comparison.half_rate(matrix)
        comparison.say("two workers")
        workers = comparison.workers()
        comparison.say("libuv and a bare epoll loop")
        loops = comparison.loops()
    return {
        "memory": memory,
        "cpu": {case: median_of(runs, "server_cpu_us") for case, runs in matrix.items()},
        "throughput": {case: median_of(runs, "throughput") for case, runs in matrix.items()},
        "client_cpu": {case: median_of(runs, "client_cpu_us") for case, runs in matrix.items()},
        "half_rate": {name: runs[0]["plan"]["rate"] for name, runs in half.items()},
        "p99": {name: statistics.median(run["latency_us"]["p99"] for run in runs)
                for name, runs in half.items()},
        "workers": {name: median_of(runs, "server_cpu_us") for name, runs in workers.items()},
        "loops": {case: median_of(runs, "server_cpu_us") for case, runs in loops.items()},
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description="weir beside redis-server")
    parser.add_argument("--build", default=str(ROOT / "build"), help="the build folder")
    parser.add_argument("--redis-server", default="redis-server")
    parser.add_argument("--quick", action="store_true", help="a minute instead of four")
    parser.add_argument("--dry-run", action="store_true", help="print the section, write nothing")
    parser.add_argument("--silent", action="store_true", help="print no single runs")
    parser.add_argument("--keys", type=int, default=1000000)
    options = parser.parse_args()
    options.runs, options.seconds = (3, 0.6) if options.quick else (5, 2)
    options.weir = Path(options.build) / "weir"
    options.responder = Path(options.build) / "bench" / "loop-responder"
    return options


def main():
    options = parse_arguments()
    try:
        subprocess.run(["ninja", "-C", options.build, "--quiet", "weir", "bench/loop-responder"],
                       check=True, stdout=subprocess.DEVNULL)
        measured = measure(options)
    except (Failure, OSError, subprocess.CalledProcessError) as problem:
        sys.exit(f"bench/compare: {problem}")
    facts = report.facts(options)
    print("\n" + report.section(measured, facts))
    if not options.dry_run:
        report.write(ROOT / "docs", measured, facts)


if __name__ == "__main__":
    main()
