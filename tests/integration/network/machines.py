# SPDX-License-Identifier: Apache-2.0
"""Machines of a test: network namespaces with a cable between each two of them, and nft rules that
cut the cables.

No namespace has a name. Each ends with the process that holds it and with what runs in it, so that
nothing of the machine changes, nothing is left, and tests may run beside each other."""

import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from network.namespaces import CLONE_NEWNET, LIBC, THREAD
from packets.cable import hold

DROP_IN, DROP_OUT = "ip saddr {} drop", "ip daddr {} drop"
RESET_IN, RESET_OUT = ("ip saddr {} meta l4proto tcp reject with tcp reset",
                       "ip daddr {} meta l4proto tcp reject with tcp reset")
# what a machine does with packets from and to another one
CUTS = {
    "both ways": (DROP_IN, DROP_OUT),
    "what comes": (DROP_IN, None),
    "what goes": (None, DROP_OUT),
    "reset": (RESET_IN, RESET_OUT),
}


class Machines:
    """`with Machines(("a", "b")) as machines`; skips the test where there can be none."""

    def __init__(self, names):
        self.addresses = {name: f"192.0.2.{number}" for number, name in enumerate(names, 1)}
        self.holders = {}
        self.ready = False
        self.stack = ExitStack()

    def __enter__(self):
        missing = [name for name in ("ip", "nft", "unshare") if not shutil.which(name)]
        if os.geteuid() != 0 or missing:
            pytest.skip(f"network namespaces need root{', '.join(['', *missing])}")
        with ExitStack() as stack:
            for name in self.addresses:
                self.holders[name] = hold(stack, "--net")
            for name in self.addresses:
                self._join(name)
            self._try_cuts()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _join(self, name):
        """Its address, a cable to each machine before it, and what can cut them."""
        lines = ["link set lo up", f"address add {self.addresses[name]}/32 dev lo"]
        others = list(self.addresses)[:list(self.addresses).index(name)]
        for other in others:
            lines += [f"link add to-{other} type veth peer name to-{name} netns {self.holders[other]}",
                      *self._routed(name, other)]
        self._run(name, "ip", "-batch", "-", stdin="\n".join(lines))
        for other in others:
            self._run(other, "ip", "-batch", "-", stdin="\n".join(self._routed(other, name)))

    def _routed(self, name, other):
        return [f"link set to-{other} up",
                f"route add {self.addresses[other]} dev to-{other} src {self.addresses[name]}"]

    def _run(self, name, *command, stdin):
        with self.entered(name):
            done = subprocess.run(command, input=stdin + "\n", capture_output=True, text=True, timeout=120,
                                  check=False)
        if done.returncode and not self.ready:
            pytest.skip(f"{' '.join(command)} fails here: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr

    def _try_cuts(self):
        """Whether this kernel knows all of the rules."""
        first, second, *_ = self.addresses
        for how in CUTS:
            self.cut(first, second, how)
            self.heal(first, second)
        self.ready = True

    @contextmanager
    def entered(self, name):
        """While the body runs, this thread is on that machine, and what it starts remains there."""
        with ExitStack() as stack:
            home = os.open(THREAD, os.O_RDONLY)
            stack.callback(os.close, home)
            there = os.open(f"/proc/{self.holders[name]}/ns/net", os.O_RDONLY)
            stack.callback(os.close, there)
            assert LIBC.setns(there, CLONE_NEWNET) == 0
            try:
                yield
            finally:
                assert LIBC.setns(home, CLONE_NEWNET) == 0

    def cut(self, name, other, how="both ways"):
        """Until heal: on one machine, rules against packets from and to another one."""
        rules = zip(("input", "output"), CUTS[how])
        chains = "\n".join(
            f"chain {hook} {{ type filter hook {hook} priority 0; {rule.format(self.addresses[other])}; }}"
            for hook, rule in rules if rule)
        self._run(name, "nft", "-f", "-", stdin=f"table inet cut_{other} {{\n{chains}\n}}")

    def heal(self, name, other):
        self._run(name, "nft", "-f", "-", stdin=f"delete table inet cut_{other}")
