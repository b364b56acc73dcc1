# SPDX-License-Identifier: Apache-2.0
"""A process that shares the state file, and is stopped while it holds a lock of it (docs/state.md, "A
neighbour that is stopped")."""

import os
import signal
import time

from daemon.stopped import Hammer, is_stopped, readiness, stop_with_a_lock
from daemon.waiting import wait_until
from suite import case

LIMIT = 1000
STOPS = 8
PATIENCE_S = 0.1  # WEIR_STATE_PATIENCE_NS, once
SHUTDOWN_S = 10   # WEIR_SHUTDOWN_MS


def limits(on_store_error):
    return [{"name": "hot", "match": {"path": "/hot"}, "key": ["client.ip"], "rate": f"{LIMIT}/day",
             "algorithm": "sliding_log", "on_store_error": on_store_error},
            {"name": "calm", "match": {"path": "/calm"}, "key": ["client.ip"], "rate": "10/day"}]


def ask(weir, path="/hot"):
    with weir.client() as client:
        started = time.monotonic()
        reply = client.check(ip="192.0.2.1", path=path)
        return reply.status, time.monotonic() - started


def ask_many(weir, count):
    """Admitted of so many requests for the hot key."""
    admitted = 0
    with weir.client() as client:
        for _ in range(count // LIMIT):
            batch = [{"ip": "192.0.2.1", "path": "/hot"}] * LIMIT
            admitted += sum(answer["allowed"] for answer in client.post("/v1/check", batch).json)
    return admitted


class Beside:
    """Two weirs on one state file, of which the first serves the hot key, which is used up."""

    def __init__(self, attack, how):
        state = {"file": str(attack.folder / "state"), "size": "4MiB"}
        self.neighbour = attack.serve(*limits(how), folder="a", state=state)
        self.weir = attack.serve(*limits(how), folder="b", state=state,
                                 options=("--workers", "2"))
        self.pid = self.neighbour.process.pid
        for _ in range(2):
            Hammer(self.neighbour.http_address).start()
        wait_until(lambda: ask(self.weir)[0] == 429)
        self.slowest, self.stops = 0.0, 0

    def stop(self):
        def timed():
            self.slowest = max(self.slowest, ask(self.weir)[1])
        self.stops += stop_with_a_lock(self.pid, self.weir, timed)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)
        wait_until(lambda: readiness(self.weir) == (200, "ready\n"))


@case("stopped-neighbour", "SIGSTOP of a process that has a lock of the shared state file")
def stopped_neighbour(attack):
    for how in ("local", "closed", "open"):
        stopped(attack, how)
        attack.end()


def stopped(attack, how):
    pair = Beside(attack, how)
    tried = f"SIGSTOP with the lock of a hot key held, `on_store_error: {how}`"
    healthy = result = again = 0
    local, calm = [], 0
    for _ in range(STOPS):
        pair.stop()
        with pair.weir.admin() as admin:
            healthy += admin.request("GET", "/healthz").status == 200
        result += f"is stopped (pid {pair.pid})" in readiness(pair.weir)[1]
        local.append(ask_many(pair.weir, 2 * LIMIT))
        calm += ask(pair.weir, "/calm")[0] == 200
        pair.go_on()
        again += ask(pair.weir)[0] == 429
    # What was asked for while it looked for the lock is admitted by `local` and `open` as well.
    attack.at_most(tried, STOPS, "slowest answer, ms", 1000 * pair.slowest,
                   1000 * PATIENCE_S + 400)
    attack.all_of(tried, STOPS, "`/healthz` said 200", healthy, STOPS)
    attack.all_of(tried, STOPS, "`/readyz` said 503 and named the process", result, STOPS)
    if how == "local":
        attack.at_most(tried, STOPS, "admitted of the hot key meanwhile, in all", sum(local), LIMIT)
    elif how == "closed":
        attack.at_most(tried, STOPS, "admitted of the hot key meanwhile", sum(local), 0)
    else:
        attack.all_of(tried, STOPS, "admitted of the hot key meanwhile", sum(local),
                      STOPS * 2 * LIMIT)
    attack.all_of(tried, STOPS, "keys of other buckets served meanwhile", calm, STOPS)
    attack.all_of(tried, STOPS, "the hot key denied as before, after SIGCONT", again, STOPS)
    attack.tell(tried, STOPS, f"stops that it took to meet the lock so often: {pair.stops:,}")

    pair.stop()
    started = time.monotonic()
    pair.weir.signal(signal.SIGTERM)
    status = pair.weir.wait()
    took = time.monotonic() - started
    still = is_stopped(pair.pid)
    attack.holds(tried, 1, f"SIGTERM beside it: status {status} after {took:.1f} s",
                 f"0 within {SHUTDOWN_S} s", status == 0 and took <= SHUTDOWN_S + 1 and still)
