#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a decision costs in a fleet without Redis, and in one with it: bench/sticky/run.py

Starts three weir nodes on this machine, and asks the first one WEIR.CHECK in three ways:

  home    of keys that it counts itself
  peer    of keys that another node counts
  redis   with the same limit, of a weir that shares a Redis (exact)

Rounds of the ways alternate, and the medians of rounds are printed: CPU time of all servers for a
decision (100 connections, each with one question at a time), time to the answer (one connection),
and bytes that servers exchange for a decision, without TCP's. Needs redis-server and ss.
"""
import argparse
import json
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from processes import cpu_seconds, free_port, listens, wait_for  # noqa: E402

LIMIT = {"name": "api", "key": ["user"], "rate": "1000000000/s"}
NAMES = ("a", "b", "c")
CONNECTIONS = 100


def question(user):
    words = ("WEIR.CHECK", "user", user)
    return (f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)).encode()


class Servers:
    def __init__(self, folder, binary):
        self.folder, self.binary = folder, binary
        self.processes, self.ports = [], {name: free_port() for name in (*NAMES, "redis", "shared")}

    def start(self, command, port):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        wait_for(process, lambda: listens(port))
        return process.pid

    def weir(self, name, **sections):
        path = self.folder / f"{name}.yaml"
        server = {"http": "off", "admin": "off", "workers": 1,
                  "redis": f"127.0.0.1:{self.ports[name]}"}
        path.write_text(json.dumps({"version": 1, "server": server, "limits": [LIMIT]} | sections),
                        encoding="utf-8")
        return path, self.start([self.binary, "serve", "--config", str(path)], self.ports[name])

    def open(self):
        (self.folder / "peers").write_text("".join(
            f"{name} redis://127.0.0.1:{self.ports[name]}\n" for name in NAMES), encoding="ascii")
        nodes = {name: self.weir(name, sticky={"by": "user", "self": name, "peers": "peers",
                                               "deadline": "1s", "on_store_error": "closed"})
                 for name in NAMES}
        redis = self.start(["redis-server", "--port", str(self.ports["redis"]), "--save", "",
                            "--bind", "127.0.0.1", "--dir", str(self.folder)], self.ports["redis"])
        _, shared = self.weir("shared", store={
            "redis": {"url": f"redis://127.0.0.1:{self.ports['redis']}"}, "deadline": "1s",
            "on_store_error": "closed"})
        pids = [pid for _, pid in nodes.values()]
        return {"home": ("a", self.users(nodes["a"][0], "a"), pids, NAMES),
                "peer": ("a", self.users(nodes["a"][0], "b"), pids, NAMES),
                "redis": ("shared", [f"user{i}" for i in range(50)], [redis, shared], ("redis",))}

    def users(self, config, home):
        """50 keys of a home."""
        found, number = [], 0
        while len(found) < 50:
            shown = subprocess.run([self.binary, "explain", "--config", str(config), "--attribute",
                                    f"user=user{number}"], capture_output=True, text=True, check=True)
            if re.search(rf"^ +node {home}$", shown.stdout, re.M):
                found.append(f"user{number}")
            number += 1
        return found

    def close(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def read_reply(sock):
    """A reply of WEIR.CHECK: what comes at once is all of it."""
    data = sock.recv(65536)
    if not data.startswith((b"*", b"%")) or b"unavailable" in data:
        sys.exit(f"bench: {data!r}")


def latencies(port, users, count):
    found = []
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(count):
            asked = question(users[i % len(users)])
            began = time.perf_counter()
            sock.sendall(asked)
            read_reply(sock)
            found.append((time.perf_counter() - began) * 1e6)
    found.sort()
    return found[len(found) // 2], found[len(found) * 99 // 100]


def ask_all(port, users, count):
    """`count` questions over all connections."""
    questions = [question(user) for user in users]
    with selectors.DefaultSelector() as selector:
        for i in range(CONNECTIONS):
            sock = socket.create_connection(("127.0.0.1", port))
            selector.register(sock, selectors.EVENT_READ)
            sock.sendall(questions[i % len(questions)])
        sent, answered = CONNECTIONS, 0
        while answered < count:
            for key, _ in selector.select():
                read_reply(key.fileobj)
                answered += 1
                if sent < count:
                    key.fileobj.sendall(questions[sent % len(questions)])
                    sent += 1
        for key in list(selector.get_map().values()):
            key.fileobj.close()


def exchanged(ports):
    """Payload of the connections that are open to these ports, in both directions."""
    total = 0
    for port in ports:
        shown = subprocess.run(["ss", "-tinHO", "dst", f"127.0.0.1:{port}"], capture_output=True,
                               text=True, check=True).stdout
        for name in ("bytes_sent", "bytes_received"):
            total += sum(map(int, re.findall(rf"\b{name}:(\d+)", shown)))
    return total


def measure(servers, way, count):
    front, users, pids, places = way
    port = servers.ports[front]
    ports = [servers.ports[name] for name in places if name != front]
    p50, p99 = latencies(port, users, count // 10)
    before, bytes_before = sum(map(cpu_seconds, pids)), exchanged(ports)
    ask_all(port, users, count)
    return ((sum(map(cpu_seconds, pids)) - before) / count * 1e6, p50, p99,
            (exchanged(ports) - bytes_before) / count)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--weir", default=str(ROOT / "build" / "weir"))
    parser.add_argument("--decisions", type=int, default=100000, help="of a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of each way (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(Path(folder), options.weir)
        try:
            ways = servers.open()
            for way in ways.values():
                measure(servers, way, 2000)
            found = {name: [] for name in ways}
            for _ in range(options.rounds):
                for name, way in ways.items():
                    found[name].append(measure(servers, way, options.decisions))
        finally:
            servers.close()
    print(f"{'':8}{'CPU us':>10}{'p50 us':>10}{'p99 us':>10}{'bytes':>10}")
    medians = {name: [statistics.median(each) for each in zip(*rounds)] for name, rounds in found.items()}
    for name, row in medians.items():
        print(f"{name:8}" + "".join(f"{value:10.1f}" for value in row))
    print(f"CPU time: peer is {medians['peer'][0] / medians['home'][0]:.2f} times home, "
          f"redis {medians['redis'][0] / medians['peer'][0]:.2f} times peer")


if __name__ == "__main__":
    main()
