#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the dashboard costs: bench/dashboard/run.py [--limits N] [--keys N] [--browsers N] [--seconds N]

Serves N limits, has N keys ask once each, then prints how long each answer of the page takes, and
what threads of weir use while browsers listen and while none does, under a steady load.
Needs build/weir (or WEIR).
"""
import argparse
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TICK = os.sysconf("SC_CLK_TCK")
CALLS = ["/v1/session", "/v1/series?count=600", "/v1/series?resolution=1min&count=1440",
         "/v1/series?limit=*&count=60", "/v1/use/top?count=1", "/v1/use/top?window=day&by=share&count=50",
         "/v1/use/key?key=user1", "/v1/limits", "/v1/denials?count=200", "/v1/health", "/v1/rules"]


def start(folder, limits):
    rules = {"version": 1, "server": {"workers": 2}, "limits": [
        {"name": f"limit-{i}", "match": {"path": f"/route-{i}/**"}, "key": ["user"],
         "algorithm": "gcra", "rate": "100/min"} for i in range(limits)]}
    config = Path(folder) / "weir.yaml"
    config.write_text(json.dumps(rules), encoding="utf-8")
    process = subprocess.Popen(
        [os.environ.get("WEIR", ROOT / "build" / "weir"), "serve", "--config", config, "--http",
         "127.0.0.1:0", "--admin", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    addresses = {}
    for line in process.stderr:
        addresses.update(re.findall(r"event=listening front=(\w+) address=\S+:(\d+)", line))
        if "event=started" in line:
            break
    threading.Thread(target=process.stderr.read, daemon=True).start()
    return process, int(addresses["http"]), int(addresses["admin"])


def bodies(limits, keys, first=0):
    """Requests of so many keys, over all limits."""
    for key in range(first, first + keys):
        body = json.dumps({"path": f"/route-{key % limits}/x", "attributes": {"user": f"user{key}"}})
        yield (f"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
               f"{body}").encode()


def send(port, requests, batch=100):
    """Pipelined, so that the load takes little of the machine."""
    with socket.create_connection(("127.0.0.1", port)) as sock:
        waiting = []

        def flush():
            sock.sendall(b"".join(waiting))
            seen, tail = 0, b""
            while seen < len(waiting):
                data = tail + sock.recv(1 << 20)
                seen += data.count(b"HTTP/1.1 ")
                tail = data[-8:] if b"HTTP/1.1 " not in data[-8:] else b""
            waiting.clear()
            sock.settimeout(0.05)
            try:
                while sock.recv(1 << 20):
                    pass
            except TimeoutError:
                pass
            sock.settimeout(None)

        for request in requests:
            waiting.append(request)
            if len(waiting) == batch:
                flush()
        if waiting:
            flush()


def threads_cpu(pid):
    """CPU seconds of each thread: the main one first, which serves the admin listener."""
    used = {}
    for task in sorted(Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name)):
        fields = (task / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
        used[int(task.name)] = (int(fields[11]) + int(fields[12])) / TICK
    return used


def measure(process, http_port, admin_port, options, browsers):
    """CPU of the main thread and of the others, in percent of one core."""
    stop = threading.Event()

    def load():
        first = 0
        while not stop.is_set():
            send(http_port, bodies(options.limits, 100, first))
            first += 100

    def listen():
        with socket.create_connection(("127.0.0.1", admin_port)) as sock:
            sock.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            sock.settimeout(0.5)
            while not stop.is_set():
                try:
                    sock.recv(1 << 20)
                except TimeoutError:
                    pass

    threads = [threading.Thread(target=load)]
    threads += [threading.Thread(target=listen) for _ in range(browsers)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    before, began = threads_cpu(process.pid), time.monotonic()
    time.sleep(options.seconds)
    after, took = threads_cpu(process.pid), time.monotonic() - began
    stop.set()
    for thread in threads:
        thread.join()
    used = {task: 100 * (after[task] - before.get(task, 0)) / took for task in after}
    main = used.pop(process.pid)
    return main, sum(used.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limits", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--browsers", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, http_port, admin_port = start(folder, options.limits)
        try:
            began = time.monotonic()
            send(http_port, bodies(options.limits, options.keys), 1000)
            print(f"{options.keys} keys on {options.limits} limits, in {time.monotonic() - began:.0f} s")
            client = http.client.HTTPConnection("127.0.0.1", admin_port)
            for path in CALLS:
                times, size = [], 0
                for _ in range(5):
                    began = time.monotonic()
                    client.request("GET", path)
                    reply = client.getresponse()
                    size = len(reply.read())
                    times.append(1000 * (time.monotonic() - began))
                    if reply.status != 200:
                        sys.exit(f"{path}: {reply.status}")
                print(f"{path:45} {statistics.median(times):7.1f} ms {size:9} bytes")
            for browsers in (0, options.browsers):
                main_cpu, workers = measure(process, http_port, admin_port, options, browsers)
                print(f"{browsers:3} browsers: main thread {main_cpu:5.2f} %, workers and others "
                      f"{workers:5.2f} % of one core")
            client.request("GET", "/metrics")
            text = client.getresponse().read().decode()
            for line in text.splitlines():
                if line.startswith("weir_dashboard"):
                    print(line)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
