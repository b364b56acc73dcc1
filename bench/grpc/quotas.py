#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of weir for an assignment of Envoy's quota service, over the table and over Redis.

    /usr/bin/python3 bench/grpc/quotas.py [--weir build/weir] [--runs 3] [--buckets 2000] [--seconds 20]

One stream, with weir's one worker, has that many buckets, each with a limit of its own. All are
assigned first; then weir renews each every 2.5 s. Prints for each run the CPU time of weir's and of
Redis' process in that time, divided by the assignments. Needs python3-grpcio and redis-server, as the
tests do, whose programs it starts.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests" / "integration")]
from processes import cpu_seconds  # noqa: E402
from daemon.grpc import Stub  # noqa: E402
from daemon.nodes import shared_rules  # noqa: E402
from daemon.redis_server import RedisServer  # noqa: E402
from daemon.waiting import wait_until  # noqa: E402
from daemon.weir import Weir, rules_of  # noqa: E402

LIMIT = {"name": "each", "key": ["n"], "rate": "100000/day", "algorithm": "fixed_window"}
ASSIGNED = 'weir_quota_assignments_total{kind="assigned"}'


def measure(folder, rules, redis, options):
    """Microseconds of weir and of Redis for an assignment, and assignments a second."""
    folder.mkdir()
    servers = [redis.process.pid] if redis else []
    with Weir(folder, rules, "--grpc", "127.0.0.1:0", "--workers", 1) as weir, \
            Stub(weir.grpc_address) as stub, stub.quotas() as quotas:
        for first in range(0, options.buckets, 1000):
            quotas.report(*({"n": str(n)} for n in
                            range(first, min(first + 1000, options.buckets))))
        wait_until(lambda: len(quotas.actions) == options.buckets or quotas.error)
        assert not quotas.error, quotas.error
        pids = [weir.process.pid] + servers
        count, began = weir.metrics()[ASSIGNED], [cpu_seconds(pid) for pid in pids]
        time.sleep(options.seconds)
        count = weir.metrics()[ASSIGNED] - count
        took = [cpu_seconds(pid) - since for pid, since in zip(pids, began)]
    return [seconds / count * 1e6 for seconds in took], count / options.seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default=str(ROOT / "build" / "weir"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--buckets", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    os.environ["WEIR"] = options.weir
    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder) / "redis") as redis:
        for run in range(options.runs):
            for name, server, rules in (("table", None, rules_of(LIMIT)),
                                        ("redis", redis, shared_rules(redis.url, LIMIT))):
                costs, rate = measure(Path(folder) / f"{name}{run}", rules, server, options)
                print(f"{name}: {costs[0]:5.1f} us of weir" +
                      "".join(f", {cost:5.1f} us of Redis" for cost in costs[1:]) +
                      f" an assignment, {rate:.0f} a second", flush=True)


if __name__ == "__main__":
    main()
