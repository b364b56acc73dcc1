# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces for a test, joined by a cable: this thread and what it starts are in one,
and a peer that attacks is in the other. Both are gone when the test ends."""

import ctypes
import os
import shutil
import socket
import subprocess

import pytest

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
THREAD = "/proc/thread-self/ns/net"

HERE4, HERE6 = "192.0.2.254", "2001:db8:1::254"
LINK = "weir0"


def run(*command, stdin=None, check=True):
    return subprocess.run(list(map(str, command)), input=stdin, capture_output=True, text=True, timeout=120,
                          check=check)


class Network:
    """`peer4`, `peer6`: addresses from which the peer can reach HERE4 and HERE6."""

    peer4 = ["192.0.2.7", "192.0.2.8", "198.51.100.8", "198.51.100.9"]
    peer6 = ["2001:db8:1:7::1"]

    def __enter__(self):
        missing = [name for name in ("ip", "nft") if not shutil.which(name)]
        if os.geteuid() != 0 or missing:
            pytest.skip(f"network namespaces need root{', '.join([''] + missing)}")
        self.home = os.open(THREAD, os.O_RDONLY)
        self.peer = self.own = None
        self.away = False
        try:
            self.peer, self.own = self._make(), self._make()
            if run("nft", "list", "tables", check=False).returncode:
                pytest.skip("this kernel has no nf_tables")
            self._join()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.away:
            self._set(self.home)
        for fd in (self.home, self.own, self.peer):
            if fd is not None:
                os.close(fd)

    def _make(self):
        """Enters a new namespace."""
        if LIBC.unshare(CLONE_NEWNET):
            pytest.skip(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        self.away = True
        run("ip", "link", "set", "lo", "up")
        return os.open(THREAD, os.O_RDONLY)

    @staticmethod
    def _set(fd):
        assert LIBC.setns(fd, CLONE_NEWNET) == 0

    def _join(self):
        run("ip", "link", "add", LINK, "type", "veth", "peer", "name", "peer0", "netns",
            f"/proc/{os.getpid()}/fd/{self.peer}")
        run("ip", "address", "add", f"{HERE4}/24", "dev", LINK)
        run("ip", "address", "add", f"{HERE6}/32", "dev", LINK, "nodad")
        run("ip", "link", "set", LINK, "up")
        run("ip", "route", "add", "198.51.100.0/24", "dev", LINK)
        self._set(self.peer)
        try:
            for address in self.peer4:
                run("ip", "address", "add", f"{address}/24", "dev", "peer0")
            for address in self.peer6:
                run("ip", "address", "add", f"{address}/32", "dev", "peer0", "nodad")
            run("ip", "link", "set", "peer0", "up")
        finally:
            self._set(self.own)

    def socket_of_peer(self, kind, family=socket.AF_INET):
        self._set(self.peer)
        try:
            return socket.socket(family, kind)
        finally:
            self._set(self.own)

    def connect(self, source, address, seconds=1):
        """A connection from one of the peer's addresses, or None: nothing answers within a time."""
        family = socket.AF_INET6 if ":" in source else socket.AF_INET
        one = self.socket_of_peer(socket.SOCK_STREAM, family)
        one.settimeout(seconds)
        try:
            one.bind((source, 0))
            one.connect(address)
        except TimeoutError:
            one.close()
            return None
        return one

    def reaches(self, source, address, seconds=1):
        one = self.connect(source, address, seconds)
        if one:
            one.close()
        return one is not None
