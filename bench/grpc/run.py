#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir's gRPC beside nghttpd: CPU time of the server per call, latency, memory.

    bench/grpc/run.py [--weir build/weir] [--runs 5] [--calls 200000] [--pin]

Starts nghttpd with a static file of 16 bytes, and weir with one worker, and drives them with h2load
in turn over 16 connections of 100 streams: nghttpd, ShouldRateLimit with one descriptor, with ten,
ext_authz, and again, so that what else the machine does falls on all of them. CPU time is user and
system time of the server's process from /proc, divided by the calls that h2load counted. Prints
each run, the medians, and their ratios. Then: latency at half of the rate that was reached with one
descriptor, of each call by itself, and the memory that 1,000 idle connections take.

Targets: calls per CPU second at least 0.5 of nghttpd's; ten descriptors at most 2 times the CPU
time of one; p99 below 1 ms at half load; 1,000 idle connections below 64 MB. With --pin, servers
run on CPU 0 and h2load on CPU 1.
"""

import argparse
import re
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from processes import cpu_seconds, free_port, listens, pinned, wait_for  # noqa: E402

CONNECTIONS, STREAMS = 16, 100
IDLE_CONNECTIONS = 1000
MAGIC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + struct.pack(">IBI", 0x400, 0, 0)[1:] + b"\0"

RULES = """
version: 1
server: {{ grpc: "127.0.0.1:{port}" }}
envoy: {{ config: {folder} }}
limits:
  - {{ name: auth, key: [client.ip], rate: 4000000000/h }}
"""
DESCRIPTORS = "domain: bench\ndescriptors:\n" + "".join(
    f"  - {{ key: key{i}, rate_limit: {{ unit: hour, requests_per_unit: 4000000000 }} }}\n"
    for i in range(10))


def resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * \
        resource.getpagesize()


# --- Messages ------------------------------------------------------------------------------------

def field(number, data):
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def framed(message):
    return b"\0" + struct.pack(">I", len(message)) + message


def rate_limit_request(count):
    descriptors = (field(1, field(1, b"key%d" % i) + field(2, b"value")) for i in range(count))
    return framed(field(1, b"bench") + b"".join(field(2, one) for one in descriptors))


def check_request():
    socket_address = field(1, field(2, b"192.0.2.1"))
    http = field(2, field(2, b"GET") + field(4, b"/") + field(5, b"example.com"))
    return framed(field(1, field(1, field(1, socket_address)) + field(4, http)))


# --- Load ----------------------------------------------------------------------------------------

class Target:
    def __init__(self, name, pid, url, body=None, folder=None):
        self.name, self.pid, self.url, self.options = name, pid, url, []
        if body is not None:
            data = Path(folder) / f"{name}.bin"
            data.write_bytes(body)
            self.options = ["-d", str(data), "-H", "content-type: application/grpc",
                            "-H", "te: trailers"]


def drive(target, options, *more):
    """One run of h2load: calls that succeeded, and their rate."""
    command = ["h2load", "-t1", f"-c{CONNECTIONS}", f"-m{STREAMS}", *target.options, *more,
               target.url]
    done = subprocess.run(pinned(command, 1, options.pin), capture_output=True, text=True,
                          check=True)
    succeeded = int(re.search(r"(\d+) succeeded", done.stdout).group(1))
    failed = int(re.search(r"(\d+) failed", done.stdout).group(1))
    if failed or not succeeded:
        sys.exit("bench/grpc: not every call was answered\n" + done.stdout)
    return succeeded, float(re.search(r"([\d.]+) req/s", done.stdout).group(1))


def measure(target, options):
    before = cpu_seconds(target.pid)
    calls, rate = drive(target, options, f"-n{options.calls}")
    return (cpu_seconds(target.pid) - before) / calls * 1e6, rate


def latency(target, rate, options, folder):
    """Times of single calls at a steady rate, in microseconds, sorted."""
    log = Path(folder) / "latency.log"
    each = max(1, round(rate / CONNECTIONS))
    drive(target, options, f"--rps={each}", "-D5", f"--log-file={log}")
    lines = log.read_text(encoding="ascii").splitlines()
    return sorted(int(line.split("\t")[2]) for line in lines), each * CONNECTIONS


def idle_memory(pid, port):
    before = resident_bytes(pid)
    sockets = []
    for _ in range(IDLE_CONNECTIONS):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(MAGIC)
        sock.recv(4096)
        sockets.append(sock)
    after = resident_bytes(pid)
    for sock in sockets:
        sock.close()
    return after - before


# --- Report --------------------------------------------------------------------------------------

def compare(targets, options):
    times = {target.name: [] for target in targets}
    rates = {target.name: [] for target in targets}
    for run in range(options.runs):
        for target in targets:
            us, rate = measure(target, options)
            times[target.name].append(us)
            rates[target.name].append(rate)
            print(f"run {run + 1}  {target.name:16} {us:7.2f} us CPU/call {rate:10.0f} calls/s")
    base = statistics.median(times["nghttpd"])
    print()
    for name, values in times.items():
        us = statistics.median(values)
        print(f"median {name:16} {us:7.2f} us CPU/call {statistics.median(rates[name]):10.0f} "
              f"calls/s   {base / us:5.2f} of nghttpd's calls per CPU second")
    ten, one = (statistics.median(times[name]) for name in ("descriptors-10", "descriptor-1"))
    print(f"ten descriptors take {ten / one:.2f} times the CPU time of one")
    return statistics.median(rates["descriptor-1"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weir", default="build/weir")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200000)
    parser.add_argument("--pin", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config, files = Path(folder) / "envoy", Path(folder) / "files"
        config.mkdir()
        files.mkdir()
        (config / "bench.yaml").write_text(DESCRIPTORS, encoding="utf-8")
        (files / "small").write_text("sixteen bytes...", encoding="utf-8")
        port, static_port = free_port(), free_port()
        rules = Path(folder) / "weir.yaml"
        rules.write_text(RULES.format(port=port, folder=config), encoding="utf-8")
        commands = (["nghttpd", "--no-tls", "-n1", "-d", str(files), str(static_port)],
                    [options.weir, "serve", "--config", str(rules), "--http", "off",
                     "--admin", "off", "--workers", "1"])
        nghttpd, weir = (subprocess.Popen(pinned(command, 0, options.pin),
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                         for command in commands)
        try:
            wait_for(nghttpd, lambda: listens(static_port))
            wait_for(weir, lambda: listens(port))
            base = f"http://127.0.0.1:{port}"
            method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
            targets = [
                Target("nghttpd", nghttpd.pid, f"http://127.0.0.1:{static_port}/small"),
                Target("descriptor-1", weir.pid, base + method, rate_limit_request(1), folder),
                Target("descriptors-10", weir.pid, base + method, rate_limit_request(10), folder),
                Target("ext_authz", weir.pid, base + "/envoy.service.auth.v3.Authorization/Check",
                       check_request(), folder),
            ]
            rate = compare(targets, options)
            times, steady = latency(targets[1], rate / 2, options, folder)
            print(f"at {steady} calls/s: p50 {times[len(times) // 2]} us, "
                  f"p99 {times[len(times) * 99 // 100]} us, max {times[-1]} us")
            memory = idle_memory(weir.pid, port)
            print(f"{IDLE_CONNECTIONS} idle connections: {memory / 1e6:.1f} MB")
        finally:
            for server in nghttpd, weir:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
