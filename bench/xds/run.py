#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a changed configuration of a control plane is in force: bench/xds/run.py [--descriptors 10000] [--changes 20]

A control plane (python3-grpcio) serves one domain of so many descriptors, flat (values of one key) and as Envoy
Gateway nests them (routes, rules of a route), and changes every limit of it. Meanwhile one client asks for the last
descriptor without a pause. Prints, of the changes: the time from the control plane's send to the first answer
by the new limit and to the acknowledgement, the CPU time of weir, and the longest call, beside the longest of
as many seconds without a change. Target: 10,000 descriptors in force within 100 ms. Needs build/weir (or WEIR).
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests"), str(ROOT / "tests/integration"),
                str(ROOT / "tests/integration/server/envoy")]
os.environ.setdefault("WEIR", str(ROOT / "build/weir"))
from control_plane import ControlPlane, config  # noqa: E402
from daemon.envoy import rule  # noqa: E402
from daemon.grpc import Stub  # noqa: E402
from processes import cpu_seconds  # noqa: E402
from service import Service  # noqa: E402

RULES_OF_A_ROUTE = 100
WAIT_SECONDS_MAX = 60


def flat(count, requests):
    return [rule("user", "HOUR", requests, value=f"u{i}") for i in range(count)], [("user", f"u{count - 1}")]


def nested(count, requests):
    """As Envoy Gateway 1.9 does it: a descriptor for each route, below it one for each rule."""
    routes = []
    for route in range(count // RULES_OF_A_ROUTE):
        name = f"httproute/default/backend-{route}/rule/0/match/0/www_example_com"
        rules = [rule(f"rule-{i}-match-0", "HOUR", requests, value=f"rule-{i}-match-0")
                 for i in range(RULES_OF_A_ROUTE)]
        routes.append(rule(name, None, None, *rules, value=name))
    last = f"rule-{RULES_OF_A_ROUTE - 1}-match-0"
    return routes, [(name, name), (last, last)]


class Client:
    """One that asks without a pause, and keeps the longest call."""

    def __init__(self, stub, entries):
        self.stub, self.entries, self.longest = stub, entries, 0.0

    def limit(self):
        begin = time.monotonic()
        answer = self.stub.limit("bench", self.entries)
        self.longest = max(self.longest, time.monotonic() - begin)
        return answer.statuses[0].current_limit.requests_per_unit

    def run_for(self, seconds):
        end, self.longest = time.monotonic() + seconds, 0.0
        while time.monotonic() < end:
            self.limit()
        return self.longest


def acknowledged(plane, version):
    return any(one.version_info == version and one.response_nonce for _, one in reversed(plane.requests))


def change(plane, client, version, resource):
    """Returns the seconds to the first answer by the new limit, and to the acknowledgement."""
    begin = time.monotonic()
    plane.put(version, resource)
    while client.limit() != int(version):
        if time.monotonic() > begin + WAIT_SECONDS_MAX:
            sys.exit(f"version {version} did not come into force")
    in_force = time.monotonic() - begin
    while not acknowledged(plane, version):
        time.sleep(0.0002)
    return in_force, time.monotonic() - begin


def measure(name, shape, arguments):
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        resources = []
        for version in range(1, arguments.changes + 2):
            tree, entries = shape(arguments.descriptors, version)
            resources.append(config("bench", *tree).SerializeToString())
        plane.put("1", resources[0])
        with Service(Path(folder), plane.address, "--workers", 1) as weir, Stub(weir.grpc_address) as stub:
            plane.wait_version("1")
            client = Client(stub, entries)
            quiet = client.run_for(2)
            client.longest = 0.0
            took, acks, cpu = [], [], []
            for version in range(2, arguments.changes + 2):
                before = cpu_seconds(weir.process.pid)
                in_force, ack = change(plane, client, str(version), resources[version - 1])
                cpu.append(cpu_seconds(weir.process.pid) - before)
                took.append(in_force)
                acks.append(ack)
    print(f"{name}, {arguments.descriptors} descriptors, {len(resources[0]) // 1000} KB: in force after "
          f"{statistics.median(took) * 1000:.0f} ms ({min(took) * 1000:.0f} to {max(took) * 1000:.0f}), acknowledged after "
          f"{statistics.median(acks) * 1000:.0f} ms, CPU {statistics.mean(cpu) * 1000:.0f} ms a change (calls in it), "
          f"longest call {client.longest * 1000:.1f} ms, without changes {quiet * 1000:.1f} ms", flush=True)
    return statistics.median(took)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--descriptors", type=int, default=10000)
    parser.add_argument("--changes", type=int, default=20)
    arguments = parser.parse_args()
    took = [measure("flat", flat, arguments), measure("nested", nested, arguments)]
    if arguments.descriptors <= 10000 and max(took) > 0.1:
        sys.exit("above the bar: 100 ms")


if __name__ == "__main__":
    main()
