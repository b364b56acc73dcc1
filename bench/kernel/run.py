#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs the kernel to drop a packet of a banned address, as root: run.py

One thread sends UDP packets over a veth pair, whose receiving side runs on the same core within the
same call. Each case is sent in turn, several times, and its shortest CPU time counts. The first one is a
packet that nobody listens for and that is dropped by a policy at the ingress, without a look-up: the
other times are shown as what they take more than that."""

import os
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "integration"))
from network.namespaces import HERE4, LINK, Network, run  # noqa: E402

PACKETS, ROUNDS = 20000, 15
SET = "set ban4_{bits} {{ type ipv4_addr; flags timeout; elements = {{ {element} }}; }}\n"
RULE = {32: "ip saddr @ban4_32 counter drop\n"}
MASKS = {24: "255.255.255.0", 22: "255.255.252.0", 20: "255.255.240.0", 16: "255.255.0.0"}
NETDEV = f"type filter hook ingress device {LINK} priority -500;"
INET = "type filter hook prerouting priority -300;"


def table(family, hook, lengths, last):
    """Look-ups of these lengths, the last of which finds the sender."""
    sets = "".join(SET.format(bits=bits, element="192.0.2.7" if (bits, last) == (32, 32) else "10.0.0.0")
                   for bits in lengths)
    rules = "".join(RULE.get(bits, f"ip saddr & {MASKS.get(bits)} @ban4_{bits} counter drop\n")
                    for bits in lengths)
    return f"table {family} bench {{\n{sets}chain c {{\n{hook}\n{rules}}}\n}}\n"


CASES = {
    "dropped at ingress without a look-up": f"table netdev bench {{\nchain c {{\n{NETDEV} policy drop;\n}}\n}}\n",
    "netdev, one set": table("netdev", NETDEV, [32], 32),
    "netdev, five lengths": table("netdev", NETDEV, [16, 20, 22, 24, 32], 32),
    "inet, one set": table("inet", INET, [32], 32),
    "to a socket": "",
}


def send(peer, address):
    begin = time.thread_time_ns()
    for _ in range(PACKETS):
        peer.sendto(b"x", address)
    return (time.thread_time_ns() - begin) / PACKETS


def main():
    best = {}
    with Network() as network, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
        here.bind((HERE4, 0))
        peer = network.socket_of_peer(socket.SOCK_DGRAM)
        peer.bind(("192.0.2.7", 0))
        peer.sendto(b"x", here.getsockname())
        here.recv(1)
        for _ in range(ROUNDS):
            for name, text in CASES.items():
                run("nft", "flush", "ruleset")
                run("nft", "-f", "-", stdin=text)
                best[name] = min(best.get(name, 1e9), send(peer, here.getsockname()))
        peer.close()
    least = best["dropped at ingress without a look-up"]
    for name, time_ns in best.items():
        print(f"{name:40} {time_ns - least:+6.0f} ns")


if __name__ == "__main__":
    main()
