#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What dropping a packet costs, in one run: XDP alone, weir xdp, nftables, hashlimit, a socket.

As root: bench/xdp/run.py. It works in a network namespace of its own, which ends with it. What is not
installed is left out.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build"))

NFT = {
    "netdev set": "table netdev t {{ set s {{ type ipv4_addr; elements = {{ 198.18.0.1 }} }}\n"
                  "chain c {{ type filter hook ingress device {0} priority 0; ip saddr @s drop; }}\n}}",
    "netdev meter": "table netdev t {{ chain c {{ type filter hook ingress device {0} priority 0; "
                    "meter m {{ ip saddr limit rate over 1/second burst 1 packets }} drop; }}\n}}",
    "inet meter": "table inet t {{ chain c {{ type filter hook input priority 0; "
                  "meter m {{ ip saddr limit rate over 1/second burst 1 packets }} drop; }}\n}}",
}
HASHLIMIT = ["iptables", "-A", "INPUT", "-m", "hashlimit", "--hashlimit-name", "x", "--hashlimit-mode", "srcip",
             "--hashlimit-above", "1/second", "--hashlimit-burst", "1", "-j", "DROP"]


def run(*command, **more):
    done = subprocess.run(command, check=False, text=True, capture_output=True, **more)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr}")
    return done.stdout


def cost(case, *arguments):
    return float(run(BUILD / "bench" / "xdp-driver", case, *arguments))


def show(what, ns):
    print(f"| {what} | {ns:.0f} |", flush=True)


def inside():
    """Within the namespace."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")
    for name in "near", "far":
        run("ip", "link", "set", name, "up")
    run("ip", "address", "add", "10.9.0.1/24", "dev", "near")
    run("ip", "route", "add", "default", "dev", "near")
    print("| the program alone | ns a packet |\n|---|---|")
    empty = cost("empty")
    show("returns at once", empty)
    show("weir, one source", cost("one"))
    show("weir, 32,768 sources", cost("many"))
    show("weir, four limits, one source", cost("four"))
    print("\n| a frame is dropped by | ns a packet |\n|---|---|")
    show("XDP_DROP and nothing else", cost("live-drop", "near"))
    show("weir xdp, at its limit", cost("live-weir", "near"))
    for name, rules in NFT.items():
        if shutil.which("nft"):
            run("nft", "-f", "-", input=rules.format("near"))
            show(f"nft, {name}", cost("live-pass", "near"))
            run("nft", "flush", "ruleset")
    if shutil.which("iptables"):
        run(*HASHLIMIT)
        show("iptables, hashlimit", cost("live-pass", "near"))
        run("iptables", "-F")
    show("nothing: IP finds no socket", cost("live-pass", "near"))


def main():
    if os.geteuid() != 0:
        print("xdp: skipped: only root can make a network namespace and load programs")
        return
    if "--inside" in sys.argv:
        inside()
        return
    run("ninja", "-C", BUILD, "--quiet", "bench/xdp-driver")
    sys.exit(subprocess.run(["unshare", "--net", "--mount", sys.executable, __file__, "--inside"], check=False).returncode)


if __name__ == "__main__":
    main()
