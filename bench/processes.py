# SPDX-License-Identifier: Apache-2.0
"""The processes that the benches measure. `sys.path` of a bench has this folder."""

import os
import socket
import sys
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
STARTS_WITHIN_S = 15


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(process, answers):
    """Until a server that was just started answers; ends the bench if it does not."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while not answers():
        if process.poll() is not None:
            sys.exit(f"bench: {process.args} ended with {process.returncode}")
        if time.monotonic() > deadline:
            process.terminate()
            sys.exit(f"bench: {process.args} does not answer")
        time.sleep(0.05)


def pinned(command, cpu, pin):
    """On one core, where --pin says so."""
    return ["taskset", "-c", str(cpu), *command] if pin else command


def cpu_seconds(pid):
    """User and system time of a server: the process, its threads, its worker processes."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    total = 0
    for each in (pid, *children):
        fields = Path(f"/proc/{each}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS
