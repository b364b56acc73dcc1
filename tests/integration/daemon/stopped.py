# SPDX-License-Identifier: Apache-2.0
"""Processes that are stopped: for a while, or at a bad moment."""

import contextlib
import os
import signal
import threading

from daemon.http import Client, request_bytes
from daemon.waiting import wait_until

BATCH = 1000
TRIES = 4000  # of stops; it takes about 50


def stop(process):
    """SIGSTOP to a child, which has stopped when this returns: until all of its threads know, it may
    answer."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


@contextlib.contextmanager
def stopped(process):
    """SIGSTOP until the block ends, also by a failure: others use the process after this test. The
    kernel still takes connections and bytes for it."""
    stop(process)
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)


class Hammer(threading.Thread):
    """Asks for one key without a pause, until the server is gone."""

    def __init__(self, address, ip="192.0.2.1", path="/hot"):
        super().__init__(daemon=True)
        self.address = address
        one = f'{{"ip":"{ip}","path":"{path}"}}'
        self.batch = request_bytes("POST", "/v1/check", None,
                                   f"[{','.join([one] * BATCH)}]".encode())

    def run(self):
        try:
            with Client(self.address) as client:
                while True:
                    client.send(self.batch * 4)
                    for _ in range(4):
                        client.reply()
        except (EOFError, OSError):
            pass


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def readiness(weir):
    with weir.admin() as admin:
        answer = admin.request("GET", "/readyz")
    return answer.status, answer.body.decode()


def stop_with_a_lock(pid, weir, ask):
    """Stops a process again and again, until it holds a lock that `ask` needs: then the weir beside
    it is not ready. Returns how often."""
    for count in range(1, TRIES + 1):
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: is_stopped(pid))
        ask()
        if readiness(weir)[0] == 503:
            return count
        os.kill(pid, signal.SIGCONT)
    raise AssertionError(f"{TRIES} stops, and none with the lock held")
