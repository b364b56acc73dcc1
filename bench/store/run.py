#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Redis store beside redis-benchmark, and leased mode beside exact.

    bench/store/run.py [--build build] [--runs 5] [--seconds 3] [--depth 256] [--keys 100000]
                       [--hot 1000] [--pin] [--no-daemon]

Starts a redis-server of its own, without persistence. In turn, so that what else the machine does
falls on all of them:

  redis-benchmark   the script call of one decision, as the store sends it, on one connection with
                    --depth calls pipelined
  exact             the store (store-driver), the same number of decisions in flight, one thread
  leased            the same, on --hot keys in leased mode; and exact mode on these
  weir, …           the same through the daemon with one worker, asked WEIR.CHECK over the Redis
                    protocol by weir bench, --depth requests in flight
  …, alone          one call at a time: what is added to a call's latency

CPU time is user and system time of the client's process (of the daemon, where there is one), and
that of redis-server, divided by the calls or decisions. Prints each run, the medians, and the
ratios that are aimed at. With --pin, redis-server runs on CPU 0 and the clients on CPU 1.
"""

import argparse
import csv
import json
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from processes import cpu_seconds, free_port, pinned, wait_for  # noqa: E402


CONNECTIONS = 16  # of weir bench, where more than one request is in flight

RULES = """version: 1
store: {{ redis: {{ url: "redis://127.0.0.1:{port}", mode: {mode} }}, nodes: 1, deadline: 1s }}
limits:
  - {{ name: bench, key: [client.ip/64], algorithm: gcra, rate: 1000000000/1000s }}
"""


def ask(port, *words):
    """One command of our own; its reply as it comes. Enough for PING and SCRIPT LOAD."""
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    command = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part)
                                                 for part in parts)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
        link.sendall(command)
        return link.recv(65536)


def answer(port, *words):
    """The same; nothing while nobody listens."""
    try:
        return ask(port, *words)
    except OSError:
        return b""


def start_redis(folder, options):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no",
               "--dir", str(folder), "--logfile", str(folder / "redis.log")]
    server = subprocess.Popen(pinned(command, 0, options.pin))
    wait_for(server, lambda: answer(port, "PING").startswith(b"+PONG"))
    return server, port


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
        done = subprocess.run(pinned(command, 1, self.options.pin), capture_output=True,
                              check=False)
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


    def scripts_run(self):
        stats = ask(self.port, "INFO", "commandstats").decode()
        return sum(int(calls) for calls in re.findall(r"cmdstat_evalsha:calls=(\d+)", stats))

    def daemon(self, mode, depth, keys, seconds):
        """weir serve and weir bench, for one run."""
        port, weir = free_port(), str(Path(self.options.build) / "weir")
        with tempfile.TemporaryDirectory() as folder:
            rules = Path(folder) / "rules.yaml"
            rules.write_text(RULES.format(port=self.port, mode=mode), encoding="utf-8")
            command = [weir, "serve", "--config", str(rules), "--workers", "1",
                       "--redis", f"127.0.0.1:{port}", "--http", "off", "--admin", "off"]
            server = subprocess.Popen(pinned(command, 1, self.options.pin),
                                      stderr=subprocess.DEVNULL)
            try:
                wait_for(server, lambda: b"allowed" in answer(port, "WEIR.CHECK", "client.ip",
                                                              "10.0.0.1"))
                return self.drive(weir, server.pid, port, depth, keys, seconds)
            finally:
                server.terminate()
                server.wait()

    def drive(self, weir, pid, port, depth, keys, seconds):
        connections = min(CONNECTIONS, depth)
        command = [weir, "bench", "--target", f"redis://127.0.0.1:{port}", "--command", "check",
                   "--keys", str(keys), "-c", str(connections), "-P", str(depth // connections),
                   "-d", str(seconds), "--json", "--pid", str(pid)]
        before = self.scripts_run()
        out, _, redis = self.measure(command)
        result = json.loads(out)
        if result["failed"] or result["denied"]:
            sys.exit(f"bench/store: not every request was allowed\n{out}")
        return {"throughput": result["throughput"], "cpu_us": result["server_cpu_us"],
                "redis_us": redis / result["replies"] * 1e6,
                "p99_us": result["latency_us"]["p99"], "decisions": result["replies"],
                "calls": self.scripts_run() - before}


def cases(bench, options):
    depth, seconds = options.depth, options.seconds
    rate = bench.redis_benchmark(depth, 20000)["throughput"]
    alone = bench.redis_benchmark(1, 2000)["throughput"]
    in_process = [
        ("redis-benchmark", lambda: bench.redis_benchmark(depth, int(rate * seconds))),
        ("exact", lambda: bench.store("exact", depth, options.keys, seconds)),
        ("exact, hot keys", lambda: bench.store("exact", depth, options.hot, seconds)),
        ("leased, hot keys", lambda: bench.store("leased", depth, options.hot, seconds)),
        ("redis-benchmark, alone", lambda: bench.redis_benchmark(1, int(alone * seconds))),
        ("exact, alone", lambda: bench.store("exact", 1, options.keys, seconds)),
    ]
    daemon = [
        ("weir, exact", lambda: bench.daemon("exact", depth, options.keys, seconds)),
        ("weir, exact, hot keys", lambda: bench.daemon("exact", depth, options.hot, seconds)),
        ("weir, leased, hot keys", lambda: bench.daemon("leased", depth, options.hot, seconds)),
        ("weir, alone", lambda: bench.daemon("exact", 1, options.keys, seconds)),
    ]
    return in_process + daemon if options.daemon else in_process


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
    def tell(text, value, aim):
        print(f"{text:64}{value:10.2f}  ({aim})")

    print()
    for exact, leased in [("exact", "leased, hot keys"), ("weir, exact", "weir, leased, hot keys")]:
        if exact not in results:
            continue
        redis, hot = "redis-benchmark", exact + ", hot keys"
        alone = exact.removesuffix(", exact") + ", alone"
        tell(f"{exact} to {redis}, throughput",
             median(exact, "throughput") / median(redis, "throughput"), "at least 1")
        tell("the same, CPU time with that of Redis",
             (median(exact, "cpu_us") + median(exact, "redis_us")) /
             (median(redis, "cpu_us") + median(redis, "redis_us")), "about 1")
        tell(f"{leased} to {hot}, throughput",
             median(leased, "throughput") / median(hot, "throughput"), "at least 10")
        tell(f"{leased}, decisions a call", median(leased, "per_call"), "at least 20")
        tell(f"{alone}, p99 added, us",
             median(alone, "p99_us") - median(redis + ", alone", "p99_us"), "at most 1000")


def main():
    parser = argparse.ArgumentParser(description="the Redis store beside redis-benchmark")
    parser.add_argument("--build", default=str(HERE.parents[1] / "build"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--depth", type=int, default=256)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--hot", type=int, default=1000)
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--no-daemon", dest="daemon", action="store_false")
    options = parser.parse_args()
    subprocess.run(["ninja", "-C", options.build, "--quiet", "bench/store-driver", "weir"],
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
