# SPDX-License-Identifier: Apache-2.0
"""Scenarios of Python's limiter libraries: limiters.py PORT LIBRARY prints what happened as JSON.
`steps` are calls one after the other on one key, `ran` names them, `version` is the library's;
`admitted` is of 8 clients at once on another key.

Each scenario is a function of its kind. It returns a function that tells whether one more call is
admitted, the steps, and what `ran` says."""

import importlib.metadata
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
    return lambda: limiter.hit(item, "many", strategy), steps, strategy


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
    return lambda: not throttle.limit("many").limited, steps, algorithm


PYRATE = {
    "sliding": "RedisBucket, sliding window: put, waiting, count, peek, leak, flush",
    "fixed": "RedisBucket, FixedWindow: put, waiting, count, peek, leak, flush",
    "gcra": "StateBucket with GCRA: put, waiting, count, flush",
}


def of_pyrate(kind):
    """Two rates on one key, as logs, as fixed windows or as buckets."""
    import redis
    from pyrate_limiter import Duration, Rate, RateItem
    from pyrate_limiter.abstracts.algorithm import FixedWindow
    from pyrate_limiter.buckets import RedisBucket, RedisStateStore, StateBucket
    client = redis.Redis(port=PORT)
    # A fixed window whose end no test meets.
    longer = Duration.WEEK * 100 if kind == "fixed" else Duration.HOUR
    rates = [Rate(LIMIT, longer), Rate(10 * LIMIT, 10 * longer)]

    def bucket_of(name):
        if kind == "gcra":
            return StateBucket(rates, store=RedisStateStore(client, name))
        return RedisBucket.init(rates, client, name, FixedWindow() if kind == "fixed" else None)

    def now():
        return time.time_ns() // 1000000

    def take(bucket, weight=1):
        return bucket.put(RateItem("item", now(), weight=weight))

    def wait_for_the_server():
        seconds, us = client.time()
        server = seconds * 1000 + us // 1000
        assert server - now() < 1000
        while now() <= server:  # for less than a second
            pass

    def steps():
        bucket, began = bucket_of(f"{kind}-steps"), now()
        for weight in 1, 20, 10, 4, 1:
            yield take(bucket, weight)
            yield bucket.failing_rate and bucket.failing_rate.limit
            if kind == "gcra":  # it counts by its own clock, which may be some ms behind the server's
                wait_for_the_server()
            yield bucket.count()
        assert 0 < bucket.waiting(RateItem("item", now())) <= longer + 1
        bucket.leak(began - 20 * longer)
        if kind != "gcra":
            # Of a fixed window weir knows when it began.
            earliest = began - 1000 if kind == "sliding" else began - 10 * longer
            for index in 0, LIMIT - 1:
                assert earliest <= bucket.peek(index).timestamp <= now() + 1000
            yield bucket.peek(LIMIT)
        bucket.flush()
        yield take(bucket, LIMIT)

    many = bucket_of(f"{kind}-many")
    return lambda: take(many), steps, PYRATE[kind]


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
    return lambda: waits("many") == 0, steps, "the script, as RateLimiter calls it"


def of_flask_limiter(_):
    import flask
    import flask_limiter

    def client_of(name):
        app = flask.Flask("app")
        limiter = flask_limiter.Limiter(lambda: name, app=app, headers_enabled=True,
                                        storage_uri=f"redis://127.0.0.1:{PORT}")

        @app.get("/")
        @limiter.limit(f"{LIMIT}/hour")
        def page():
            return "hello"

        @app.get("/few")
        @limiter.limit("2/hour; 3/day")
        def few():
            return "few"
        return app.test_client()

    def steps():
        client = client_of("steps")
        for path in "/", "/few", "/few", "/few", "/":
            answer = client.get(path)
            yield answer.status_code
            yield answer.headers["X-RateLimit-Remaining"]
    many = client_of("many")
    return lambda: many.get("/").status_code == 200, steps, "decorators, two limits of one view, headers"


def of_slowapi(_):
    import slowapi
    import slowapi.errors
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    from starlette.testclient import TestClient

    def client_of(name):
        limiter = slowapi.Limiter(lambda: name, storage_uri=f"redis://127.0.0.1:{PORT}")

        @limiter.limit(f"{LIMIT}/hour")
        async def page(request):
            return PlainTextResponse("hello")

        @limiter.limit("2/hour")
        async def few(request):
            return PlainTextResponse("few")
        app = Starlette(routes=[Route("/", page), Route("/few", few)])
        app.state.limiter = limiter
        app.add_exception_handler(slowapi.errors.RateLimitExceeded, slowapi._rate_limit_exceeded_handler)
        return TestClient(app)

    def steps():
        client = client_of("steps")
        for path in "/", "/few", "/few", "/few", "/":
            yield client.get(path).status_code
    many = client_of("many")
    return lambda: many.get("/").status_code == 200, steps, "decorators"


# By the name of the package.
LIBRARIES = {
    "limits": of_limits, "throttled-py": of_throttled, "pyrate-limiter": of_pyrate,
    "fastapi-limiter": of_fastapi, "flask-limiter": of_flask_limiter, "slowapi": of_slowapi,
}


def main():
    name, _, kind = LIBRARY.partition(":")
    make = LIBRARIES[name]
    _, steps, ran = make(kind)
    results = list(steps())
    admitted = []

    def client():
        admits, _, _ = make(kind)
        admitted.extend(admits() for _ in range(CALLS))

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == CLIENTS * CALLS
    print(json.dumps({"version": importlib.metadata.version(name), "ran": ran, "steps": results,
                      "admitted": sum(admitted)}))


main()
