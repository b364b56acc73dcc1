#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon bans are in force in the kernel, as root: run.py

Against a `weir serve` of the build folder (WEIR names another program) in a network namespace of its
own, medians and the longest of several times:

- 60,000 bans: from the end of weir-kernel, by a signal, until another one has put all of them into
  the kernel's sets anew. So starting a process counts, and reading a list of bans does not.
- one ban: from the answer of the admin listener until no packet of the address arrives any more. The
  peer sends one every 100 microseconds over a veth pair."""

import json
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
os.environ.setdefault("WEIR", str(ROOT / "build" / "weir"))
from daemon.waiting import wait_until  # noqa: E402
from daemon.weir import Weir, rules_of  # noqa: E402
from network.namespaces import HERE4, Network  # noqa: E402

MANY, MANY_ROUNDS, ROUNDS = 60000, 9, 50
PEER = "192.0.2.7"
SILENT_NS = 50_000_000  # without a packet for so long, none comes
PAUSE_S = 0.0001
LIMIT = {"name": "all", "key": ["client.ip/64"], "rate": "100/s"}


def present(client):
    state = json.loads(client.request("GET", "/v1/kernel").body)
    return state["present"]["ban"] if state["connected"] and state["agrees"] else None


def helper_of(server):
    for task in Path(f"/proc/{server}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                if Path(f"/proc/{child}/comm").read_text() == "weir-kernel\n":
                    return int(child)
            except FileNotFoundError:  # it has just ended
                pass
    return None


def many(weir, client):
    """Seconds from the end of the helper until all bans are there again."""
    helper = wait_until(lambda: helper_of(weir.process.pid))
    began = time.monotonic()
    os.kill(helper, signal.SIGKILL)
    wait_until(lambda: present(client) != MANY, what="the end of the helper")
    wait_until(lambda: present(client) == MANY, what=f"{MANY} bans")
    return time.monotonic() - began


def one(client, peer, here):
    """Seconds from the answer to a ban until the last packet that arrives."""
    caller = {"kind": "client.ip", "value": PEER, "by": "bench", "reason": "bench"}
    ban = {**caller, "level": "suspended", "for_ms": 3600000}
    answer = client.request("PUT", "/v1/standing", {"Content-Type": "application/json"}, json.dumps(ban).encode())
    assert answer.status == 200, answer
    began = last = time.monotonic_ns()
    while time.monotonic_ns() - last < SILENT_NS or last == began:
        peer.sendto(b"x", here.getsockname())
        try:
            here.recv(1)
            last = time.monotonic_ns()
        except BlockingIOError:
            if last == began:  # it was in force before the first packet
                break
        time.sleep(PAUSE_S)
    answer = client.request("DELETE", f"/v1/standing?{urllib.parse.urlencode(caller)}")
    assert answer.status == 200, answer
    wait_until(lambda: present(client) == 0)
    return (last - began) / 1e9


def show(what, seconds):
    print(f"{what:40} {1000 * statistics.median(seconds):7.0f} ms, at most {1000 * max(seconds):5.0f} ms", flush=True)


def serve(folder, **standing):
    rules = rules_of(LIMIT, standing={"by": ["client.ip/64"], "file": f"{folder}/standing", **standing},
                     server={"admin": {"address": f"unix:{folder}/admin"},
                             "http": {"address": f"{HERE4}:0", "open": True}}, kernel={"nftables": {}})
    return Weir(folder, rules, "--workers", "1", http=None, admin=None)


def main():
    with Network() as network, tempfile.TemporaryDirectory() as folder:
        listed = Path(folder) / "bad.txt"
        listed.write_text("".join(f"10.{i >> 8}.{i & 255}.1\n" for i in range(MANY)), encoding="utf-8")
        with serve(folder, lists=[{"file": str(listed), "by": "client.ip", "level": "suspended"}]) as weir, \
                weir.admin() as client:
            wait_until(lambda: present(client) == MANY)
            show(f"{MANY} bans", [many(weir, client) for _ in range(MANY_ROUNDS)])
        with serve(folder) as weir, weir.admin() as client, network.socket_of_peer(socket.SOCK_DGRAM) as peer, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            wait_until(lambda: present(client) == 0)
            here.bind((HERE4, 0))
            here.setblocking(False)
            peer.bind((PEER, 0))
            show("one ban, as the admin listener takes it", [one(client, peer, here) for _ in range(ROUNDS)])


if __name__ == "__main__":
    main()
