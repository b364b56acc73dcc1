# SPDX-License-Identifier: Apache-2.0
"""Floods of callers that earn penalties, and one caller whose failures are to lower everybody's limit."""



import traffic
from daemon.waiting import wait_until
from suite import case

NETWORKS = 30_000
CALLERS = 100_000  # of 27,300 that had room where 2 % of the state were for spans
REPORTS = 3000
MORE = 5  # strikes, where moves find no room: each time some 20,000 do at least

LOGIN = {"name": "login", "key": ["client.ip/64"], "rate": "1/d", "algorithm": "fixed_window"}
BRUTE = {"name": "brute", "key": ["client.ip/64"], "strikes": "2/h", "ladder": ["suspend 1h"]}
LADDER_MOVES = 'weir_penalty_moves_total{penalty="brute",standing="suspended"}'
EVICTED = 'weir_limit_evictions_total{limit="brute~strikes"}'


def network(**attributes):
    """A check of the /64 of a number below 2^32, in two fields."""
    return traffic.check("client.ip", "2001:db8:%04x:%04x::1", **attributes)


def parts(count):
    return [(i >> 16, i & 0xffff) for i in range(count)]


def deferred(metrics):
    return sum(value for name, value in metrics.items()
               if name.startswith("weir_penalty_deferred_total"))


def strike_all(attack, tried, count):
    weir = attack.serve(LOGIN, penalties=[BRUTE],
                        standing={"by": ["client.ip/64"], "file": str(attack.folder / "standing.db")})
    networks = parts(count)
    for _ in range(4):  # one that is allowed, three strikes
        traffic.flood(weir.redis_address, network(), networks)
    sent, metrics = 4 * count, wait_moves(weir, count)
    attack.tell(tried, sent, f"networks suspended by their third strike: {metrics[LADDER_MOVES]:,.0f}")
    for _ in range(MORE):
        if metrics[LADDER_MOVES] < count:
            sent += count
            traffic.flood(weir.redis_address, network(), networks)
            metrics = wait_moves(weir, count)
    attack.all_of(f"the same, and up to {MORE} more strikes of each", sent, "networks suspended",
                  metrics[LADDER_MOVES], count)
    again = traffic.ask(weir.redis_address, network(), networks[:1000])
    attack.all_of("the same", sent, "of the first of them, refused now", again.denied, min(1000, count))
    attack.tell("the same", sent, f"moves that had to wait for the next strike: {deferred(metrics):,.0f}")
    lines = sum("event=penalties_deferred" in line for line in weir.text().splitlines())
    attack.holds("the same", sent, f"lines of the log about these: {lines}",
                 "one a second, where there are some", (lines > 0) == (deferred(metrics) > 0))
    attack.at_most("the same", sent, "strikes' states that were evicted", metrics.get(EVICTED, 0), 0)


def wait_moves(weir, count):
    """The metrics, once all have moved or no more will."""
    last = -1

    def still():
        nonlocal last
        metrics = weir.metrics()
        moved = metrics[LADDER_MOVES]
        done = moved == count or moved == last
        last = moved
        return metrics if done and metrics["weir_standing_history_jobs"] == 0 else None

    return wait_until(still, what="the moves")


@case("penalty-flood", "30,000 networks come over the threshold of a penalty at once")
def penalty_flood(attack):
    strike_all(attack, "strikes 2/h by `client.ip/64`: each network at its limit, then over it",
               attack.scaled(NETWORKS))


@case("penalty-spans", "strikes of more callers than 2 % of the state have room for")
def penalty_spans(attack):
    strike_all(attack, "no limit needs spans, and more callers than a state without a share for strikes holds",
               attack.scaled(CALLERS))


def report(client, address, status, **more):
    return client.post("/v1/report", {"ip": address, "status": status, **more}).status


def scale_of(weir, name):
    with weir.admin() as client:
        limits = client.request("GET", "/v1/health").json["limits"]
    return next(limit for limit in limits if limit["name"] == name)


@case("failing-caller", "one caller whose requests fail, beside 100 others whose requests do not")
def failing_caller(attack):
    adaptive = {"backend": {"signals": {"errors": "outcomes"}, "table": [{"errors": "5%", "x": "40%"}]},
                "inflight": {"algorithm": "aimd", "min": 2, "max": 90}}
    weir = attack.serve(
        {"name": "api", "key": ["client.ip"], "rate": "100/min", "adaptive": "backend"},
        {"name": "slots", "key": [], "algorithm": "concurrency", "limit": 90, "adaptive": "inflight"},
        adaptive=adaptive)
    signal = 'weir_signal{controller="backend",signal="errors_percent"}'
    with weir.client() as client:
        for i in range(100):
            assert report(client, f"198.51.100.{i}", 200, latency_ms=1) == 200
        for _ in range(REPORTS):
            assert report(client, "192.0.2.1", 503, latency_ms=1) == 200
    reading = wait_until(lambda: weir.metrics().get(signal), what="the reading")
    attack.at_most("503 reported for one of 101 callers", REPORTS, "errors, percent", reading, 6)
    attack.holds("the same", REPORTS, f"scale of the table, percent: {scale_of(weir, 'api')['scale_percent']}",
                 "100", scale_of(weir, "api")["scale_percent"] == 100)
    attack.holds("the same", REPORTS, f"number of AIMD: {scale_of(weir, 'slots')['limit']} of 90", "90",
                 scale_of(weir, "slots")["limit"] == 90)


@case("report-untrusted", "reports of requests that nobody made, on a listener that is not trusted")
def report_untrusted(attack):
    rules = {"name": "slots", "key": [], "algorithm": "concurrency", "limit": 90, "adaptive": "inflight"}
    weir = attack.serve(rules, adaptive={"inflight": {"algorithm": "aimd", "min": 2, "max": 90}},
                        server={"http": {"address": "127.0.0.1:0", "trusted": False}})
    with weir.client() as client:
        refused = sum(report(client, f"192.0.2.{i % 250}", 503) == 403 for i in range(REPORTS))
    attack.all_of("/v1/report without a reservation", REPORTS, "reports answered 403", refused, REPORTS)
    attack.holds("the same", REPORTS, f"number of AIMD: {scale_of(weir, 'slots')['limit']} of 90", "90",
                 scale_of(weir, "slots")["limit"] == 90)
