# SPDX-License-Identifier: Apache-2.0
"""A cable between two network namespaces: what the tests of the filter for packets attach to.

Both ends and a bpf file system are in namespaces of their own, which end with the processes that
hold them: nothing of the machine changes, and nothing is left.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import pytest

from daemon.waiting import wait_until
from model.program import weir_path

SENDER = r"""
import errno, json, os, socket, sys
cable = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
cable.bind(("far", 0))
for frame, count in json.load(sys.stdin):
    frame = bytes.fromhex(frame)
    while count:
        try:
            cable.send(frame)
            count -= 1
        except OSError as failure:  # the ring of the other end is full: it drops the frame
            if failure.errno != errno.ENOBUFS:
                raise
            os.sched_yield()
"""


def hold(stack, *command):
    """A process in namespaces of its own, until the stack ends. Returns its id."""
    process = stack.enter_context(subprocess.Popen(
        ["unshare", *command, "sh", "-c", "echo ready; exec cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    stack.callback(process.kill)
    if process.stdout.readline() != "ready\n":
        pytest.skip(f"no namespaces here: {process.stderr.read().strip()}")
    return process.pid


@lru_cache
def why_not():
    """Why the filter cannot be tried here; None: it can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    done = subprocess.run([weir_path(), "xdp", "status", "--interface=lo"], capture_output=True, text=True,
                          timeout=60, check=False)
    return "this weir was built without clang or libbpf" if "was built without" in done.stderr else None


class Cable:
    """`near` has the filter, `far` sends. A context manager."""

    def __init__(self, folder):
        self.pins = Path(folder) / "bpf"
        self.stack = ExitStack()

    def __enter__(self):
        reason = why_not()
        if reason:
            pytest.skip(reason)
        self.pins.mkdir()
        with ExitStack() as stack:
            self.near = hold(stack, "--net", "--mount", "--propagation=private")
            self.far = hold(stack, "--net")
            self._set_up()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *failure):
        self.stack.close()

    def _set_up(self):
        mounted = self.run("mount", "-t", "bpf", "bpf", self.pins, check=False)
        if mounted.returncode:
            pytest.skip(f"no bpf file system here: {mounted.stderr.strip()}")
        made = self.run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(self.far),
                        check=False)
        if made.returncode:
            pytest.skip(f"no veth here: {made.stderr.strip()}")
        for process, name in (self.near, "near"), (self.far, "far"):
            # Neighbour discovery would add packets of its own.
            self.run("sh", "-c", f"echo 1 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6", process=process)
            self.run("ip", "link", "set", name, "up", process=process)

    def inside(self, command, process=None):
        """The words that run a command on the near side, or in the network namespace of `process`."""
        return ["nsenter", "-t", str(process or self.near), "-n", *([] if process else ["-m"]), *map(str, command)]

    def start(self, *command, process=None, **more):
        """Starts a command there; it ends with the test."""
        started = subprocess.Popen(self.inside(command, process), text=True, **more)
        self.stack.callback(started.wait)
        self.stack.callback(started.kill)
        return started

    def run(self, *command, process=None, check=True, **more):
        """Runs a command on the near side, or in the namespaces of `process`."""
        done = subprocess.run(self.inside(command, process), capture_output=True, text=True, timeout=300, check=False,
                              **more)
        assert not check or done.returncode == 0, (command, done.stderr)
        return done

    def weir(self, *arguments, check=True):
        return self.run(weir_path(), "xdp", *arguments, f"--pins={self.pins}/weir", check=check)

    def rules(self, section):
        """The path of a rules file with this section `kernel.xdp`; JSON is YAML."""
        rules = self.pins.parent / "weir.yaml"
        xdp = {"interface": "near", "sample": 1, **section}
        rules.write_text(json.dumps({"version": 1, "limits": [], "kernel": {"xdp": xdp}}), encoding="utf-8")
        return rules

    def attach(self, section, *options, check=True):
        """Attaches the filter with this section."""
        done = self.weir("attach", f"--config={self.rules(section)}", *options, check=check)
        if done.returncode and "not permitted" in done.stderr:
            pytest.skip(f"the kernel admits no BPF programs here: {done.stderr.strip()}")
        return done

    def send(self, *frames):
        """Sends (frame, count) pairs from the far end."""
        self.run(sys.executable, "-c", SENDER, process=self.far,
                 input=json.dumps([(frame.hex(), count) for frame, count in frames]))

    def status(self):
        return json.loads(self.weir("status", "--interface=near", "--json").stdout)

    def counts(self):
        """reason -> packets, without those that are 0"""
        return {reason: count["packets"] for reason, count in self.status()["counts"].items() if count["packets"]}

    def wait_for(self, total):
        """Waits until this many packets were counted; returns the counts."""
        wait_until(lambda: sum(self.counts().values()) >= total)
        return self.counts()
