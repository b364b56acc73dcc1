#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one decision costs redis-server: microseconds of its script call, by algorithm.

    bench/calls/run.py [--weir build/weir ...] [--runs 5] [--seconds 2] [--keys 10000] [--realtime]

Starts a redis-server of its own on CPU 0, without persistence, and one weir with one worker on
CPU 1, which `weir bench` asks WEIR.CHECK. Prints the median, the least and the most of what INFO
commandstats calls usec_per_call of EVALSHA. With several --weir, the programs take turns, so that
what else the machine does falls on all of them. usec_per_call is no CPU time: on a machine that does
other things, --realtime (chrt, as root) keeps them out.
"""

import argparse
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from processes import free_port, listens, pinned, wait_for  # noqa: E402

# Windows that stay the same for the whole run, and limits that deny nobody.
ALGORITHMS = {
    "fixed_window": "algorithm: fixed_window, rate: 4000000000/h",
    "sliding_window": "algorithm: sliding_window, rate: 4000000000/h",
    "gcra": "algorithm: gcra, rate: 1000000000/1000s",
}


def placed(options, command, cpu):
    return (["chrt", "-f", "5"] if options.realtime else []) + pinned(command, cpu, True)


def ask(port, *words):
    """One command over a connection of its own; what the server says until it closes it."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as reply:
        for command in words, ("QUIT",):
            connection.sendall(b"*%d\r\n" % len(command) + b"".join(
                b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in command))
        return reply.read().decode()


def per_call(options, folder, redis, program, algorithm):
    """One run; the microseconds of a call."""
    port = free_port()
    rules = folder / "weir.yaml"
    rules.write_text(f"""version: 1
store: {{ redis: {{ url: "redis://127.0.0.1:{redis}", mode: exact }}, nodes: 1, deadline: 1s }}
server: {{ workers: 1 }}
limits:
  - {{ name: b, key: [client.ip/64], {ALGORITHMS[algorithm]} }}
""", encoding="utf-8")
    ask(redis, "FLUSHALL")
    weir = subprocess.Popen(
        placed(options, [program, "serve", "--config", str(rules), "--http", "off", "--admin", "off",
                         "--redis", f"127.0.0.1:{port}"], 1), stderr=subprocess.DEVNULL)
    try:
        wait_for(weir, lambda: listens(port))
        bench = placed(options, [options.weir[-1], "bench", f"--target=redis://127.0.0.1:{port}",
                                 "--command=check", "-c", "16", "-P", "16",
                                 f"--keys={options.keys}"], 1)
        subprocess.run([*bench, "-d", "1"], check=True, stdout=subprocess.DEVNULL)
        ask(redis, "CONFIG", "RESETSTAT")
        subprocess.run([*bench, "-d", str(options.seconds)], check=True, stdout=subprocess.DEVNULL)
        stats = ask(redis, "INFO", "commandstats")
    finally:
        weir.terminate()
        weir.wait()
    return float(re.search(r"cmdstat_evalsha:.*?usec_per_call=([\d.]+)", stats)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", action="append")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--keys", type=int, default=10000)
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    options.weir = options.weir or [str(HERE.parents[1] / "build" / "weir")]
    port, found = free_port(), {}
    with tempfile.TemporaryDirectory() as folder:
        redis = subprocess.Popen(
            placed(options, ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no",
                             "--dir", folder], 0), stdout=subprocess.DEVNULL)
        try:
            wait_for(redis, lambda: listens(port))
            for _ in range(options.runs):
                for algorithm in ALGORITHMS:
                    for program in options.weir:
                        found.setdefault((algorithm, program), []).append(
                            per_call(options, Path(folder), port, program, algorithm))
        finally:
            redis.terminate()
            redis.wait()
    for (algorithm, program), times in found.items():
        print(f"{algorithm:16} {program}: {statistics.median(times):.2f} us a call "
              f"({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    main()
