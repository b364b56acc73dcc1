# SPDX-License-Identifier: Apache-2.0
"""A test that speaks to weir-kernel in the place of a server, without a server's checks, and what is in the
kernel's table then."""

import ipaddress
import json
import os
import socket
import struct
import subprocess
from pathlib import Path

from model.program import weir_path
from network.namespaces import run

MAGIC = 0x336b7277
OPEN, APPLY, DONE, LOST, PROTECT = 1, 2, 5, 7, 8  # enum weir_kernel_type
REPLACE, BAN, ALLOW = 1, 0, 1
# By which the helper knows a set: the last network of a family.
MARKS = {"255.255.255.255", "255.255.255.0", "255.0.0.0", "255.255.0.0",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff::", "ffff::", "ffff:ffff::"}


class Speaker:
    """Says what a test wants to weir-kernel, as feature/kernel/message.h has it."""

    def __init__(self, opens=True):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        self.socket, self.number = ours, 0
        self.process = subprocess.Popen([Path(weir_path()).parent / "weir-kernel", "--fd", str(theirs.fileno())],
                                        pass_fds=[theirs.fileno()])
        theirs.close()
        if opens:
            self.send(OPEN, 0, struct.pack("=32sBB6x256s", b"weir", 1, 0, b""), 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.wait(60)

    def send(self, kind, flags, items, count):
        self.socket.send(struct.pack("=IHHII", MAGIC, kind, count, flags, self.number) + items)

    def networks(self, kind, flags, texts, which, removed=0):
        items = b""
        for text in texts:
            network = ipaddress.ip_network(text)
            items += struct.pack("=16sBBBB4xQ", network.network_address.packed, network.version,
                                 network.prefixlen, which, removed, 0)
        self.send(kind, flags, items, len(texts))

    def protect(self, *texts):
        self.networks(PROTECT, REPLACE, texts, ALLOW)

    def ban(self, *texts, flags=REPLACE):
        """One transaction; how many of its bans were left out."""
        self.number += 1
        self.networks(APPLY, flags, texts, BAN)
        return self.done()

    def receive(self):
        message = self.socket.recv(65536)
        return struct.unpack_from("=IHHII", message)[1], message[16:]

    def done(self, error=0):
        while True:
            kind, body = self.receive()
            if kind == DONE:
                result, skipped = struct.unpack_from("=iI", body)
                assert result == error, (os.strerror(result), body[8:])
                return skipped


def table(family="inet", name="weir"):
    """The table's elements by set; None: there is none."""
    done = run("nft", "-j", "list", "table", family, name, check=False)
    if done.returncode:
        return None
    sets = [part["set"] for part in json.loads(done.stdout)["nftables"] if "set" in part]
    return {one["name"]: [element["elem"]["val"] if isinstance(element, dict) else element
                          for element in one.get("elem", [])] for one in sets}


def banned(family="inet"):
    """All networks in the sets of bans, without the marks."""
    sets = table(family) or {}
    return {element for name, elements in sets.items() if name.startswith("ban")
            for element in elements if element not in MARKS}
