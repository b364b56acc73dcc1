#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What windows of one browser cost: bench/dashboard/bandwidth.py [--pages N] [--minutes N] [--limits N]

Opens pages of the dashboard in windows of one real Chromium, all views in turn, under a steady load of
many callers, of which some are denied, and prints the bytes that the server has sent to the browser:
with heads, as a relay between them counts. Needs build/weir (or WEIR), chromium, python3-selenium.
"""
import argparse
import json
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integration"))

from browser.chromium import open_browser  # noqa: E402
from browser.dashboard import Dashboard  # noqa: E402
from browser.relay import Relay  # noqa: E402
from daemon.weir import Weir  # noqa: E402

VIEWS = ["overview", "limits", "denials", "key/user=user1", "standing", "health", "rules",
         "limits/limit-0", "overview", "denials?last=10min"]
USERS, REQUESTS_A_SECOND = 500, 50


def rules(folder, limits):
    return json.dumps({
        "version": 1, "server": {"admin": "127.0.0.1:0"},
        "standing": {"by": ["user"], "file": str(Path(folder) / "standing.db")},
        "limits": [{"name": f"limit-{i}", "match": {"path": f"/route-{i}/**"}, "key": ["user"],
                    "algorithm": "gcra", "rate": "10/min"} for i in range(limits)]})


def load(weir, limits, stop):
    """Few users ask most, as in life: the busiest are denied."""
    at = 0
    with weir.client() as client:
        while not stop.is_set():
            began = time.monotonic()
            for _ in range(REQUESTS_A_SECOND):
                at += 1
                user = (at * at) % USERS if at % 3 else at % 3
                client.check(path=f"/route-{at % limits}/x", ip=f"192.0.2.{at % 200}",
                             attributes={"user": f"user{user}"})
            stop.wait(max(0, 1 - (time.monotonic() - began)))


def measure(options, folder):
    stop = threading.Event()
    with Weir(folder, rules(folder, options.limits), "--workers", "2", admin=None) as weir, \
            Relay(weir.admin_address) as relay:
        loading = threading.Thread(target=load, args=(weir, options.limits, stop))
        loading.start()
        browser = open_browser(folder)
        try:
            began = time.monotonic()
            for i in range(options.pages):
                browser.switch_to.new_window("window")
                Dashboard(browser, None, relay.address).open(f"#{VIEWS[i % len(VIEWS)]}")
            opened, took = relay.received, time.monotonic() - began
            time.sleep(max(0, 60 * options.minutes - took))
            print(f"{options.pages} pages, {options.limits} limits: {opened / 1e6:.2f} MB to open them, "
                  f"{relay.received / 1e6:.2f} MB in {(time.monotonic() - began) / 60:.1f} minutes; "
                  f"at most {relay.most_open} connections; of snapshots "
                  f"{weir.metrics()['weir_dashboard_event_bytes_total'] / 1e6:.2f} MB")
        finally:
            browser.quit()
            stop.set()
            loading.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--limits", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
