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


def of_pyrate(kind):
    """Two rates on one key, as logs or as buckets."""
    import redis
    from pyrate_limiter import Duration, Rate, RateItem
    from pyrate_limiter.buckets import RedisBucket, RedisStateStore, StateBucket
    client = redis.Redis(port=PORT)
    rates = [Rate(LIMIT, Duration.HOUR), Rate(10 * LIMIT, Duration.DAY)]

    def bucket_of(name):
        if kind == "log":
            return RedisBucket.init(rates, client, name)
        return StateBucket(rates, store=RedisStateStore(client, name))

    def take(bucket, weight=1):
        return bucket.put(RateItem("item", time.time_ns() // 1000000, weight=weight))

    def steps():
        bucket = bucket_of(f"{kind}-steps")
        for weight in 1, 20, 10, 4, 1:
            yield take(bucket, weight)
            yield bucket.failing_rate and bucket.failing_rate.limit
        bucket.leak(time.time_ns() // 1000000 - 2 * 24 * 3600 * 1000)
        assert 0 < bucket.waiting(RateItem("item", time.time_ns() // 1000000)) <= SECONDS * 1000 + 1

    many = bucket_of(f"{kind}-many")
    return lambda: take(many), steps


def of_fastapi(_):
    """The script of fastapi-limiter 0.1 and how its RateLimiter calls it."""
    import redis
    from fastapi_limiter import FastAPILimiter
    client = redis.Redis(port=PORT)
    sha = client.script_load(FastAPILimiter.lua_script)

    def waits(key, times=LIMIT):
        return client.evalsha(sha, 1, f"fastapi-limiter:{key}", str(times), str(SECONDS * 1000))

    def steps():
        for _ in range(5):
            wait = waits("steps", 3)
            assert 0 <= wait <= SECONDS * 1000
            yield wait > 0
    return lambda: waits("many") == 0, steps


def main():
    name, _, kind = LIBRARY.partition(":")
    make = {"limits": of_limits, "throttled": of_throttled, "pyrate": of_pyrate,
            "fastapi": of_fastapi}[name]
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
