# SPDX-License-Identifier: Apache-2.0
"""Scenarios of Python's limiter libraries: limiters.py PORT LIBRARY prints what happened as JSON.
`steps` are calls one after the other on one key; `admitted` is of 8 clients at once on another."""

import json
import sys
import threading
import time

PORT, LIBRARY = int(sys.argv[1]), sys.argv[2]
CLIENTS, CALLS, LIMIT, SECONDS = 8, 20, 25, 3600
WEEK = 7 * 24 * 3600  # some windows begin at multiples of their length


def of_limits(strategy):
    import limits
    from limits.storage import storage_from_string
    storage = storage_from_string(f"redis://127.0.0.1:{PORT}")
    limiter = getattr(limits.strategies, strategy)(storage)
    item = limits.RateLimitItemPerHour(LIMIT)

    def steps():
        for cost in 1, 20, 10, 4, 1:
            yield limiter.hit(item, "steps", strategy, cost=cost)
            stats = limiter.get_window_stats(item, "steps", strategy)
            yield stats.remaining
            assert -1 <= stats.reset_time - time.time() <= SECONDS + 1, stats  # 0: at this moment
            yield limiter.test(item, "steps", strategy)
    return lambda: limiter.hit(item, "many", strategy), steps


def of_throttled(algorithm):
    from throttled import RateLimiterType, Throttled, per_week
    from throttled.store import RedisStore
    store = RedisStore(server=f"redis://127.0.0.1:{PORT}/0")
    throttle = Throttled(using=getattr(RateLimiterType, algorithm).value,
                         quota=per_week(LIMIT, burst=LIMIT), store=store)

    def steps():
        for cost in 1, 20, 10, 4, 1:
            result = throttle.limit("steps", cost=cost)
            yield result.limited
            yield result.state.remaining
            assert 0 <= result.state.reset_after <= 2 * WEEK + 1, result
            assert 0 <= result.state.retry_after <= WEEK + 1, result
    return lambda: not throttle.limit("many").limited, steps


def main():
    name, _, kind = LIBRARY.partition(":")
    make = {"limits": of_limits, "throttled": of_throttled}[name]
    _, steps = make(kind)
    results = list(steps())
    admitted = []

    def client():
        admits, _ = make(kind)
        admitted.extend(admits() for _ in range(CALLS))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == CLIENTS * CALLS
    print(json.dumps({"steps": results, "admitted": sum(admitted)}))


main()
