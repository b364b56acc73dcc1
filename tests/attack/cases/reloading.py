# SPDX-License-Identifier: Apache-2.0
"""Reloads that are slow or hang: nothing else waits for them."""

import hashlib
import os
import signal
import threading
import time

from daemon.weir import rules_of
from model.program import run_weir
from suite import case

API = {"name": "api", "key": ["client.ip"], "algorithm": "gcra", "rate": "1/hour", "burst": 3}


class Asker(threading.Thread):
    """Asks /healthz and for a decision, one after the other; keeps the slowest answers."""

    def __init__(self, weir):
        super().__init__()
        self.weir, self.stopping = weir, threading.Event()
        self.health = self.check = 0.0
        self.asked = self.failed = 0

    def run(self):
        with self.weir.admin() as admin, self.weir.client() as client:
            while not self.stopping.is_set():
                started = time.monotonic()
                healthy = admin.request("GET", "/healthz").status == 200
                between = time.monotonic()
                decided = client.check(ip="192.0.2.1").status in (200, 429)
                self.health = max(self.health, between - started)
                self.check = max(self.check, time.monotonic() - between)
                self.asked += 1
                self.failed += not (healthy and decided)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join()


def keys_rules(path):
    return rules_of(API, keys=str(path), identify=["header.x-api-key"])


def write_keys(path, count):
    with open(path, "w", encoding="utf-8") as file:
        for i in range(count):
            digest = hashlib.sha256(b"%d" % i).hexdigest()
            file.write(f"{digest}: {{ user: u{i} }}\n")


def serve(attack, keys):
    return attack.serve(API, keys=str(keys), identify=["header.x-api-key"])


@case("slow-reload", "reloads of a keys file of 300,000 keys, while others ask")
def slow_reload(attack):
    keys = attack.folder / "keys.yaml"
    write_keys(keys, 300_000)
    weir = serve(attack, keys)
    with Asker(weir) as asker:
        started = time.monotonic()
        done = sum("event=reloaded" in weir.reload() for _ in range(5))
        took = time.monotonic() - started
    tried = "reloads of 300,000 keys, one after the other"
    attack.all_of(tried, 5, "reloads done", done, 5)
    attack.tell(tried, 5, f"time of one: {took / 5:.2f} s")
    attack.all_of(tried, 5, "answers of `/healthz` and decisions meanwhile",
                  asker.asked - asker.failed, asker.asked)
    attack.at_most(tried, 5, "slowest `/healthz`, ms", round(1000 * asker.health), 250)
    attack.at_most(tried, 5, "slowest decision, ms", round(1000 * asker.check), 250)


@case("fifo", "a keys file that becomes a FIFO, which nobody writes to")
def fifo(attack):
    keys = attack.folder / "keys.yaml"
    write_keys(keys, 10)
    weir = serve(attack, keys)
    keys.unlink()
    os.mkfifo(keys)
    tried = "SIGHUP with a FIFO as keys file"
    with Asker(weir) as asker:
        lines = [weir.reload() for _ in range(20)]
    refused = sum("event=reload_failed" in line for line in lines)
    attack.all_of(tried, 20, "reloads refused, the old rules in force", refused, 20)
    attack.at_most(tried, 20, "slowest `/healthz`, ms", round(1000 * asker.health), 250)
    done = run_weir("validate", weir.config)
    attack.holds(tried, 20, f"`weir validate`: status {done.returncode}", "ends, with status 1",
                 done.returncode == 1)
    started = time.monotonic()
    weir.signal(signal.SIGTERM)
    status = weir.wait()
    took = time.monotonic() - started
    attack.holds(tried, 20, f"SIGTERM: status {status} after {took:.1f} s", "0 within 10 s",
                 status == 0 and took < 10)
