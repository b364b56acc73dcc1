#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three regions that share budgets, by where the requests are: bench/regions/run.py

    [--weir build/weir] [--runs 3] [--seconds 6] [--rate 200/2s] [--demand 1.5] [--keys 5]
    [--floor 5%] [--round-trips 80,150] [--skew NAME] [--lent 4000]

Starts a real Redis and a weir for each of three regions: `us`, the home of all keys, and `eu` and
`ap`, which are so many milliseconds away by the proxy of the tests. A client in each region sends
its requests at random moments (Poisson), for all keys alike; over all regions each key is asked
`demand` times its limit. By skew:

  home              all requests are in us
  one other         all are in eu
  evenly            a third in each region
  90/10             nine tenths in eu, the others in us
  moving sun        all in eu, then us, then ap, three seconds each
  thirds, one other all in eu, of a limit with equal parts (floor: 1/3): nothing is lent

Prints for each run, and as medians: what was admitted beside what one exact state that sees every
request would admit (the tests' model of a sliding window, fed with the same requests at the times
at which they were sent), how much of it the home lent; the median and p99 of the time from a
request to its answer; and calls and bytes (both ways, without headers of TCP) to other regions, for
each key and second. The first window of each run is not counted. Then the memory of a node for
each key that is lent, from --lent keys.
"""

import argparse
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INTEGRATION = ROOT / "tests" / "integration"
sys.path[:0] = [str(INTEGRATION), str(INTEGRATION / "store" / "regions")]

from daemon.http import Client  # noqa: E402
from daemon.load import check_request  # noqa: E402
from daemon.waiting import wait_until  # noqa: E402
from daemon.weir import memory_bytes  # noqa: E402
from model.algorithms import SlidingWindow  # noqa: E402
from region_world import REGIONS, RegionWorld  # noqa: E402

HOME, NEAR, FAR = "us", "eu", "ap"
SUN_S = 3
GIVES_BACK_S = 5  # after its last use, a share
STARTS_IN_S = 0.3  # until all clients have their requests
SKEWS = {  # what a request is counted by, and the parts of the regions at a time
    "home": ("lent", lambda t: {HOME: 1}),
    "one other": ("lent", lambda t: {NEAR: 1}),
    "evenly": ("lent", lambda t: {HOME: 1, NEAR: 1, FAR: 1}),
    "90/10": ("lent", lambda t: {NEAR: 9, HOME: 1}),
    "moving sun": ("lent", lambda t: {(NEAR, HOME, FAR)[int(t / SUN_S) % 3]: 1}),
    "thirds, one other": ("third", lambda t: {NEAR: 1}),
}
COLUMNS = [("percent", "admitted %", 1), ("lent", "lent %", 1), ("p50_us", "p50 us", 0),
           ("p99_us", "p99 us", 0), ("calls", "calls", 2), ("bytes", "bytes", 0)]


class World(RegionWorld):
    """Nodes reach the Redis of their own region directly, and the others' by the proxies."""

    def section(self, stack, name):
        section = super().section(stack, name)
        section[name] = {"redis": self.redis[name].url}
        return section

    def calls(self):
        metrics = (self.nodes[name].metrics() for name in REGIONS)
        return sum(value for each in metrics for key, value in each.items()
                   if key.startswith("weir_region_calls_total{"))

    def lent(self):
        return sum(self.nodes[name].metrics().get('weir_region_lent_total{limit="lent"}', 0)
                   for name in REGIONS)

    def bytes(self):
        return sum(sum(link.bytes()) for link in self.links.values())


def limits(options):
    def limit(name, **parts):
        return {"name": name, "key": [name], "on_missing": "skip", "rate": options.rate,
                "algorithm": "sliding_window", "on_store_error": "closed"} | parts

    return [limit("lent", **{"global": {"floor": options.floor, "home": HOME}}),
            limit("third", **{"global": {"floor": "1/3"}}),
            *(limit(name, rate="100/300d", **{"global": {"floor": "1%", "home": HOME, "lend": lend}})
              for name, lend in (("kept", False), ("held", True)))]


def drive(address, begin, schedule):
    """One region's client. Returns (when sent, by time.monotonic; seconds until the answer; whether
    admitted) of each request."""
    found = []
    with Client(address) as client:
        for due, attribute, value in schedule:
            request = check_request(f'{{"attributes":{{"{attribute}":"{value}"}}}}')
            time.sleep(max(begin + due - time.monotonic(), 0))
            sent = time.monotonic()
            client.send(request)
            status = client.reply().status
            found.append((sent, time.monotonic() - sent, status == 200))
            if status not in (200, 429):
                raise SystemExit(f"bench/regions: {status}")
    return found


def schedules(options, skew, number):
    """{region: [(seconds, attribute, key)]}, the same for each run of a number."""
    attribute, parts = SKEWS[skew]
    draw = random.Random(f"{skew} {number}")
    rate = options.demand * options.limit / options.window * options.keys
    found, t = {name: [] for name in REGIONS}, draw.expovariate(rate)
    while t < options.window + options.seconds:
        region, = draw.choices(*zip(*parts(t).items()))
        found[region].append((t, attribute, f"{skew} {number} {draw.randrange(options.keys)}"))
        t += draw.expovariate(rate)
    return found


def oracle(options, requests, counted_from):
    """How many requests one exact state admits, of those that are counted."""
    offset = time.time() - time.monotonic()
    states, admitted = {}, 0
    for sent, key in sorted(requests):
        t = int((sent + offset) * 1e9)
        state = states.setdefault(key, SlidingWindow(options.limit, int(options.window * 1e9)))
        if state.admits(t, 1):
            state.charge(t, 1)
            admitted += sent >= counted_from
    return admitted


def measure(options, world, pool, skew, number):
    schedule = schedules(options, skew, number)
    begin = time.monotonic() + STARTS_IN_S
    clients = {name: pool.apply_async(drive, (world.nodes[name].http_address, begin, schedule[name]))
               for name in REGIONS}
    counted_from = begin + options.window
    time.sleep(counted_from - time.monotonic())
    calls, sizes, lent = world.calls(), world.bytes(), world.lent()
    answers = {name: client.get() for name, client in clients.items()}
    took = time.monotonic() - counted_from
    calls, sizes, lent = world.calls() - calls, world.bytes() - sizes, world.lent() - lent
    counted = [answer for each in answers.values() for answer in each if answer[0] >= counted_from]
    requests = [(answer[0], request[2]) for name in REGIONS
                for answer, request in zip(answers[name], schedule[name])]
    admitted = sum(answer[2] for answer in counted)
    times = sorted(answer[1] * 1e6 for answer in counted)
    return {"percent": 100 * admitted / oracle(options, requests, counted_from),
            "lent": 100 * lent / admitted, "p50_us": times[len(times) // 2],
            "p99_us": times[len(times) * 99 // 100], "calls": calls / took / options.keys,
            "bytes": sizes / took / options.keys}


def show(name, result):
    print(f"{name:20}" + "".join(f"{result[key]:12.{digits}f}" for key, _, digits in COLUMNS),
          flush=True)


def memory(options, world):
    """Of the node in eu, in bytes for each key that is lent: what so many more keys take, less what
    they take where nothing is lent. The keys before them have touched the tables."""
    node = world.nodes[NEAR]

    def ask(attribute, part):
        """Each key twice: the floor has one unit. Slow enough that calls don't pile up."""
        body = f'{{"attributes":{{"{attribute}":"{part}{{key}}"}}}}'
        subprocess.run([options.weir, "bench", "--target", f"http://{node.http_address}", "--http",
                        "POST /v1/check", "--header", "Content-Type: application/json", "--body", body,
                        "--keys", str(options.lent), "--requests", str(2 * options.lent), "--rate", "4000",
                        "--distribution", "sequential"], check=True, capture_output=True)
        wanted = {"kept": 0, "held": options.lent * (1 + (part == "b"))}[attribute]
        wait_until(lambda: held() >= wanted, seconds=GIVES_BACK_S, what="shares")
        return memory_bytes(node)

    def held():
        return node.metrics()[f'weir_region_shares{{region="{HOME}"}}']

    try:
        kept = -ask("kept", "a") + ask("kept", "b")
        lent = -ask("held", "a") + ask("held", "b")
    except AssertionError as late:
        print(f"\nmemory of a node: not measured, the machine is too slow: {late}")
        return
    print(f"\nmemory of a node: {(lent - kept) / options.lent:.0f} bytes for each key that is lent "
          f"({options.lent} keys)")


def run(options, world):
    print(f"{'':20}" + "".join(f"{title:>12}" for _, title, _ in COLUMNS))
    results = {}
    names = [name for name in SKEWS if options.skew in (None, name)]
    with multiprocessing.get_context("spawn").Pool(len(REGIONS)) as pool:
        pool.map(abs, range(len(REGIONS)), chunksize=1)  # they have started
        for number in range(options.runs):
            for name in names:
                results.setdefault(name, []).append(measure(options, world, pool, name, number))
                show(name, results[name][-1])
    print("\nmedians")
    for name in names:
        show(name, {key: statistics.median(result[key] for result in results[name])
                    for key, _, _ in COLUMNS})
    if options.lent:
        memory(options, world)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", default=str(ROOT / "build" / "weir"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rate", default="200/2s", help="of each key, N/SECONDSs")
    parser.add_argument("--demand", type=float, default=1.5, help="times the limit")
    parser.add_argument("--keys", type=int, default=5)
    parser.add_argument("--floor", default="5%")
    parser.add_argument("--round-trips", default="80,150", help="ms from eu, and from ap, to us")
    parser.add_argument("--skew", choices=SKEWS)
    parser.add_argument("--lent", type=int, default=4000, help="keys; 0: not measured")
    options = parser.parse_args()
    match = re.fullmatch(r"(\d+)/(\d+)s", options.rate)
    if not match:
        parser.error("--rate is N/SECONDSs")
    options.limit, options.window = map(int, match.groups())
    os.environ["WEIR"] = options.weir
    near, far = (float(each) / 1000 for each in options.round_trips.split(","))
    with tempfile.TemporaryDirectory() as folder, \
            World(Path(folder), *limits(options), links=True, deadline="1s") as world:
        for pair, link in world.links.items():
            link.tell("delay", far if FAR in pair else near)
        run(options, world)


if __name__ == "__main__":
    main()
