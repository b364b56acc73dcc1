#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir's HTTP beside nginx `return 200`: CPU time of the server per request.

    bench/http/run.py [--weir build/weir] [--runs 5] [--seconds 4] [--connections 64] [--pin]

Starts nginx and weir with one worker each, and drives them with wrk in turn: nginx, /v1/auth,
/v1/check, /v1/limit, and again, so that what else the machine does falls on all of them. CPU time is user
and system time of the server's processes from /proc, divided by the requests that wrk counted.
Prints each run, the medians, and their ratios to nginx. The targets are at most 1.0 for /v1/auth
and 1.5 for /v1/check and /v1/limit. With --pin, servers run on CPU 0 and wrk on CPU 1.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from processes import cpu_seconds, free_port, listens, pinned, wait_for  # noqa: E402


def drive(url, script, options):
    """One run of wrk. Returns the requests that were answered 2xx or 3xx, and the rate."""
    command = ["wrk", "-t1", f"-c{options.connections}", f"-d{options.seconds}s",
               "-s", str(HERE / script), url]
    done = subprocess.run(pinned(command, 1, options.pin), capture_output=True, text=True,
                          check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        sys.exit("bench/http: not every request was answered 200\n" + done.stdout)
    requests = int(re.search(r"(\d+) requests in", done.stdout).group(1))
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout).group(1))
    return requests, rate


def measure(pid, url, script, options):
    before = cpu_seconds(pid)
    requests, rate = drive(url, script, options)
    return (cpu_seconds(pid) - before) / requests * 1e6, rate


def start_nginx(folder, port, options):
    text = (HERE / "nginx.conf.in").read_text(encoding="utf-8")
    conf = folder / "nginx.conf"
    conf.write_text(text.replace("@PORT@", str(port)).replace("@DIR@", str(folder)),
                    encoding="utf-8")
    command = ["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(conf)]
    return subprocess.Popen(pinned(command, 0, options.pin), stderr=subprocess.DEVNULL)


def start_weir(port, options):
    command = [options.weir, "serve", "--config", str(HERE / "rules.yaml"), "--workers", "1",
               "--http", f"127.0.0.1:{port}", "--admin", "off"]
    return subprocess.Popen(pinned(command, 0, options.pin), stderr=subprocess.DEVNULL)


def run(options, nginx_pid, nginx_port, weir_pid, weir_port):
    cases = [("nginx return 200", nginx_pid, f"http://127.0.0.1:{nginx_port}/", "auth.lua"),
             ("/v1/auth", weir_pid, f"http://127.0.0.1:{weir_port}/v1/auth", "auth.lua"),
             ("/v1/check", weir_pid, f"http://127.0.0.1:{weir_port}/v1/check", "check.lua"),
             ("/v1/limit", weir_pid, f"http://127.0.0.1:{weir_port}/v1/limit", "limit.lua")]
    results = {name: [] for name, *_ in cases}
    print(f"{'':18} {'CPU us/request':>15} {'requests/s':>12}")
    for _ in range(options.runs):
        for name, pid, url, script in cases:
            cpu, rate = measure(pid, url, script, options)
            results[name].append(cpu)
            print(f"{name:18} {cpu:15.3f} {rate:12.0f}", flush=True)
    medians = {name: statistics.median(values) for name, values in results.items()}
    print(f"\n{'':18} {'median us':>15} {'of nginx':>12}")
    for name, median in medians.items():
        print(f"{name:18} {median:15.3f} {median / medians['nginx return 200']:12.2f}")


def main():
    parser = argparse.ArgumentParser(description="weir's HTTP beside nginx")
    parser.add_argument("--weir", default=str(HERE.parents[1] / "build" / "weir"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--pin", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        nginx_port, weir_port = free_port(), free_port()
        servers = [start_nginx(Path(name), nginx_port, options), start_weir(weir_port, options)]
        try:
            wait_for(servers[0], lambda: listens(nginx_port))
            wait_for(servers[1], lambda: listens(weir_port))
            run(options, servers[0].pid, nginx_port, servers[1].pid, weir_port)
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()


if __name__ == "__main__":
    main()
