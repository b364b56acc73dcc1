#!/usr/bin/env python3
"""The Redis store beside redis-benchmark, and leased mode beside exact.

    bench/store/run.py [--build build] [--runs 5] [--seconds 3] [--depth 64] [--keys 100000]
                       [--hot 1000] [--pin]

Starts a redis-server of its own, without persistence. In turn, so that what else the machine does
falls on all of them:

  redis-benchmark   the script call of one decision, as the store sends it, on one connection with
                    --depth calls pipelined
  exact             the store (store-driver), the same number of decisions under way, one thread
  leased            the same, on --hot keys in leased mode; and exact mode on these
  alone             both again with one call at a time: what the store adds to a call's latency

CPU time is user and system time of the client's process, and that of redis-server, divided by the
calls or decisions. Prints each run, the medians, and the ratios that are aimed at. With --pin,
redis-server runs on CPU 0 and the clients on CPU 1.
"""

import argparse
import csv
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, *words):
    """One command of our own; its reply as it comes. Enough for PING and SCRIPT LOAD."""
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    command = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part)
                                                 for part in parts)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
        link.sendall(command)
        return link.recv(65536)


def start_redis(folder, options):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no",
               "--dir", str(folder), "--logfile", str(folder / "redis.log")]
    server = subprocess.Popen(pinned(command, 0, options))
    for _ in range(200):
        try:
            if ask(port, "PING").startswith(b"+PONG"):
                return server, port
        except OSError:
            time.sleep(0.05)
    server.terminate()
    sys.exit("bench/store: redis-server does not answer")


def pinned(command, cpu, options):
    return ["taskset", "-c", str(cpu), *command] if options.pin else command


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def script_call(driver):
    """The words of the command that the driver prints, and the text of its script behind it."""
    raw = subprocess.run([driver, "--command"], capture_output=True, check=True).stdout
    head, _, rest = raw.partition(b"\r\n")
    words = []
    for _ in range(int(head[1:])):
        size, _, rest = rest.partition(b"\r\n")
        words.append(rest[:int(size[1:])])
        rest = rest[int(size[1:]) + 2:]
    return words, rest


class Bench:
    def __init__(self, options, redis_pid, port):
        self.options, self.redis_pid, self.port = options, redis_pid, port
        self.driver = str(Path(options.build) / "bench" / "store-driver")
        words, text = script_call(self.driver)
        # redis-benchmark ends an argument at its first zero byte. So it sends as many other bytes,
        # and the script takes those meant from its own text.
        packed = "".join(f"\\{byte:03}" for byte in words[4]).encode()
        loaded = ask(port, "SCRIPT", "LOAD", b"local ARGV = { '" + packed + b"' } " + text)
        if not loaded.startswith(b"$40\r\n"):
            sys.exit(f"bench/store: the script was not loaded: {loaded!r}")
        key = words[3][:-12] + b"__rand_int__"
        self.words = [words[0], loaded[5:45], words[2], key, b"x" * len(words[4])]

    def measure(self, command):
        """Runs a client. Returns its output, its CPU time and that of redis-server."""
        before = cpu_seconds(self.redis_pid), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(pinned(command, 1, self.options), capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench/store: {command[0]} failed:\n{done.stdout!r}\n{done.stderr!r}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = (after.ru_utime + after.ru_stime) - (before[1].ru_utime + before[1].ru_stime)
        return done.stdout.decode(), own, cpu_seconds(self.redis_pid) - before[0]

    def redis_benchmark(self, depth, calls):
        command = ["redis-benchmark", "-p", str(self.port), "-c", "1", "-P", str(depth),
                   "-n", str(calls), "-r", str(self.options.keys), "--csv", *self.words]
        out, own, redis = self.measure(command)
        row = next(csv.DictReader(out.splitlines()))
        return {"throughput": float(row["rps"]), "cpu_us": own / calls * 1e6,
                "redis_us": redis / calls * 1e6, "p99_us": float(row["p99_latency_ms"]) * 1e3,
                "calls": calls, "decisions": calls}

    def store(self, mode, depth, keys, seconds):
        command = [self.driver, f"redis://127.0.0.1:{self.port}", mode, str(depth), str(keys),
                   str(seconds)]
        out, _, redis = self.measure(command)
        result = json.loads(out)
        warm = (seconds + 0.5) / seconds  # the driver's own figures leave its first half second out
        result["redis_us"] = redis / (result["decisions"] * warm) * 1e6
        return result


def cases(bench, options):
    depth, seconds = options.depth, options.seconds
    rate = bench.redis_benchmark(depth, 20000)["throughput"]
    alone = bench.redis_benchmark(1, 2000)["throughput"]
    return [
        ("redis-benchmark", lambda: bench.redis_benchmark(depth, int(rate * seconds))),
        ("exact", lambda: bench.store("exact", depth, options.keys, seconds)),
        ("exact, hot keys", lambda: bench.store("exact", depth, options.hot, seconds)),
        ("leased, hot keys", lambda: bench.store("leased", depth, options.hot, seconds)),
        ("redis-benchmark, alone", lambda: bench.redis_benchmark(1, int(alone * seconds))),
        ("exact, alone", lambda: bench.store("exact", 1, options.keys, seconds)),
    ]


def run(bench, options):
    columns = [("throughput", "per second"), ("cpu_us", "client us"), ("redis_us", "redis us"),
               ("p99_us", "p99 us"), ("per_call", "per call")]
    results = {}
    print(f"{'':24}" + "".join(f"{title:>12}" for _, title in columns))
    todo = cases(bench, options)
    for _ in range(options.runs):
        for name, measure in todo:
            result = measure()
            result["per_call"] = result["decisions"] / max(1, result["calls"])
            results.setdefault(name, []).append(result)
            print(f"{name:24}" + "".join(f"{result[key]:12.2f}" for key, _ in columns), flush=True)

    def median(name, key):
        return statistics.median(result[key] for result in results[name])

    print("\nmedians")
    for name, _ in todo:
        print(f"{name:24}" + "".join(f"{median(name, key):12.2f}" for key, _ in columns))
    exact, redis = "exact", "redis-benchmark"
    hot, leased = "exact, hot keys", "leased, hot keys"
    ratio = median(exact, "throughput") / median(redis, "throughput")
    both = ((median(exact, "cpu_us") + median(exact, "redis_us")) /
            (median(redis, "cpu_us") + median(redis, "redis_us")))
    more = median(leased, "throughput") / median(hot, "throughput")
    added = median("exact, alone", "p99_us") - median("redis-benchmark, alone", "p99_us")
    print(f"\nexact to redis-benchmark, throughput   {ratio:8.2f}  (at least 1)")
    print(f"the same, CPU time of client and Redis {both:8.2f}  (at most 1)")
    print(f"leased to exact, throughput            {more:8.2f}  (at least 10)")
    print(f"leased, decisions a call               {median(leased, 'per_call'):8.2f}  (at least 20)")
    print(f"p99 added to a call alone, us          {added:8.2f}  (at most 1000)")


def main():
    parser = argparse.ArgumentParser(description="the Redis store beside redis-benchmark")
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--depth", type=int, default=64)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--hot", type=int, default=1000)
    parser.add_argument("--pin", action="store_true")
    options = parser.parse_args()
    driver = Path(options.build) / "bench" / "store-driver"
    subprocess.run(["ninja", "-C", options.build, "--quiet", str(driver.relative_to(options.build))],
                   check=True)
    with tempfile.TemporaryDirectory() as name:
        server, port = start_redis(Path(name), options)
        try:
            run(Bench(options, server.pid, port), options)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
