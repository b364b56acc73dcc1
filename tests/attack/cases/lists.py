# SPDX-License-Identifier: Apache-2.0
"""Lists that fill up: of limits, of reservations, of connections."""

import signal
import subprocess
from contextlib import ExitStack

from daemon.http import Client, connect
from daemon.redis import Error, Redis
from daemon.waiting import wait_until
from daemon.weir import rules_of
from suite import case
from traffic import ask, check, command, info

PLACES = 2048           # of a state of 64 MiB, for different limits
COMMANDS = PLACES // 2  # of which commands may have so many
RESERVATIONS = 16384


def changing(count, rate):
    return [{"name": f"l{i}", "key": ["user"], "rate": f"{rate}/h", "algorithm": "fixed_window"}
            for i in range(count)]


def left_of(weir, **fields):
    with weir.client() as client:
        return [limit["remaining"] for limit in client.check(**fields).json["limits"]]


def reload(weir, rules):
    """Whether it was done: as the metrics say, for the log leaves lines out that come too fast."""
    def counts():
        metrics = weir.metrics()
        return [metrics[f'weir_reloads_total{{result="{result}"}}'] for result in ("ok", "failed")]
    before = counts()
    weir.write_rules(rules)
    weir.signal(signal.SIGHUP)
    wait_until(lambda: sum(counts()) > sum(before))
    return counts()[0] > before[0]


@case("reloads", "11 limits that change at each of 250 reloads")
def reloads(attack):
    state = {"size": "64MiB"}
    weir = attack.serve(*changing(11, 1000), state=state)
    user = {"attributes": {"user": "a"}, "dry_run": True}
    left_of(weir, attributes={"user": "a"}, cost=500)
    failed = sum(not reload(weir, rules_of(*changing(11, rate), state=state))
                 for rate in range(1001, 1251))
    tried = "11 limits change their rate at each reload"
    attack.at_most(tried, 250, "reloads that failed", failed, 0)
    # a dry run costs 1 that is not charged
    attack.all_of(tried, 250, "limits where the 500 used at first are still counted",
                  [1250 - left for left in left_of(weir, **user)].count(500), 11)
    wait_until(lambda: weir.metrics()["weir_table_params"] < PLACES / 2 + 11)
    attack.at_most(tried, 250, "places of the list taken afterwards",
                   int(weir.metrics()["weir_table_params"]), PLACES // 2 + 11)


@case("command-limits", "CL.THROTTLEs with 3,000 different numbers, then rules that need places")
def command_limits(attack):
    file = attack.folder / "state"
    state = {"file": str(file), "size": "64MiB"}
    weir = attack.serve(*changing(11, 1000), state=state)
    tried, times = "CL.THROTTLE with so many different limits", 3000
    numbers = command("CL.THROTTLE", "key", "5", "%07d", "3600")
    # A key of each its own, or each limit would be given up for the next one.
    numbers = numbers.replace(b"$3\r\nkey", b"$10\r\nkey%07d")
    got = ask(weir.redis_address, numbers, [(i, 10 + i) for i in range(times)])
    taken = times - sum(got.errors.values())
    attack.at_most(tried, times, "distinct limits that commands got", taken, COMMANDS)
    attack.holds(tried, times, f"the others got: {', '.join(got.errors)}",
                 "ERR too many distinct limits",
                 list(got.errors) == ["ERR too many distinct limits"])
    counted = int(info(weir.redis_address)["distinct_limits"])
    attack.all_of(tried, times, "`distinct_limits` of INFO", counted, taken)
    attack.holds(tried, times, "a reload of 11 new rules", "is done",
                 reload(weir, rules_of(*changing(11, 2000), state=state)))
    weir.stop()

    weir.write_rules(rules_of(*others(700), state=state))
    weir.start()
    attack.holds(tried, times, "a restart on that file with 700 new rules", "serves",
                 weir.process.poll() is None)
    left = ask(weir.redis_address, command("CL.THROTTLE", "key%07d", "5", "%07d", "3600"),
               [(i, 10 + i) for i in range(taken)])
    attack.all_of(tried, times, "keys of before that are one call further on", left.denied
                  + sum(left.admitted), taken)
    weir.stop()


def others(count):
    return [{"name": f"o{i}", "match": {"path": f"/{i}"}, "key": ["user"], "rate": f"{i + 1}/h"}
            for i in range(count)]


@case("reset-state", "a state file that is damaged, and --reset-state on it and on a good one")
def reset_state(attack):
    file = attack.folder / "state"
    state = {"file": str(file), "size": "64MiB"}
    weir = attack.serve(*changing(1, 10), state=state)
    left_of(weir, attributes={"user": "a"}, cost=7)
    numbers = command("CL.THROTTLE", "key%07d", "5", "%07d", "3600")
    taken = sum(ask(weir.redis_address, numbers, [(i, 10 + i) for i in range(1500)]).admitted)
    weir.stop()
    weir.command.append("--reset-state")
    weir.start()
    left = left_of(weir, attributes={"user": "a"}, dry_run=True)
    places = int(weir.metrics()["weir_table_params"])
    attack.holds(f"`--reset-state` on a good file with {taken:,} limits of commands", 1,
                 f"left of 10: {left[0]}; places taken: {places}", "10; fewer than 10",
                 left == [10] and places < 10)
    weir.stop()
    data = bytearray(file.read_bytes())
    data[:4096] = bytes(4096)
    file.write_bytes(data)
    refused = subprocess.run([word for word in weir.command if word != "--reset-state"],
                             capture_output=True, text=True, check=False, timeout=60)
    line = refused.stderr.strip().splitlines()[-1].replace(str(attack.folder), "…")
    attack.holds("a file whose header is overwritten", 1, line, "one line, and no start",
                 refused.returncode != 0)
    weir.start()
    left = left_of(weir, attributes={"user": "a"}, dry_run=True)
    attack.holds("`--reset-state` on that file", 1, f"left of 10: {left[0]}", "10", left == [10])
    weir.stop()


# --- Reservations --------------------------------------------------------------------------------

def reserve(weir, words, keys):
    """(granted, what the others got)"""
    template = command("WEIR.RESERVE", *words, "COST", "1", "LIFE", "3600000")
    got = ask(weir.redis_address, template, keys)
    return sum(got.admitted), got.errors


def reservation_limits():
    return [{"name": "api", "match": {"path": "/user/*"}, "key": ["user"], "algorithm": "gcra",
             "rate": "1000000/h"}]


@case("reservations", "reservations of one caller and of many, with a charge and without")
def reservations(attack):
    weir = attack.serve(*reservation_limits())
    tried, times = "reservations that no limit applies to", RESERVATIONS - 1
    granted, _ = reserve(weir, ("path", "/none"), range(times))
    attack.all_of(tried, times, "granted", granted, times)
    attack.at_most(tried, times, "places taken", int(weir.metrics()["weir_reservations"]), 0)

    tried, times = "charged reservations of one caller", RESERVATIONS
    granted, reply = reserve(weir, ("path", "/user/a", "user", "greedy"), range(times))
    attack.at_most(tried, times, "granted", granted, RESERVATIONS // 2)
    others_granted, _ = reserve(weir, ("path", "/user/a", "user", "u%04d"), range(1000))
    attack.all_of(tried, times, "other callers granted one afterwards", others_granted, 1000)

    tried, times = "charged reservations of 100,000 made-up callers", 100_000
    granted, reply = reserve(weir, ("path", "/user/a", "user", "m%06d"), range(times))
    attack.tell(tried, times, f"granted: {granted:,}; the others: {'; '.join(reply)}")
    checks = ask(weir.redis_address, check(path="/user/a", user="c%04d"), range(1000))
    attack.at_most(tried, times, "plain checks denied meanwhile", checks.denied, 0)


# --- Connections ---------------------------------------------------------------------------------

@case("full-listener", "a listener with as many connections as it takes, and clients of another")
def full_listener(attack):
    weir = attack.serve({"name": "api", "key": ["client.ip"], "rate": "1000000/h"},
                        prefix=("prlimit", "--nofile=256:256"))
    most = int(weir.metrics()['weir_listener_connections_max{front="http"}'])
    tried = "HTTP connections that say nothing, with 256 files"
    with ExitStack() as stack:
        for _ in range(most + 200):
            stack.enter_context(connect(weir.http_address))
        wait_until(lambda: weir.metrics()[
            'weir_listener_connections_refused_total{front="http"}'] >= 1)
        served = 0
        for _ in range(50):
            with Redis(weir.redis_address) as redis:
                served += redis.ask("CL.THROTTLE", "k", 1000, 1000, 60)[0] == 0
        attack.all_of(tried, most + 200, "Redis clients served meanwhile", served, 50)
        health = 0
        for _ in range(50):
            with weir.admin() as admin:
                health += admin.request("GET", "/healthz").status == 200
        attack.all_of(tried, most + 200, "`/healthz` answered 200 meanwhile", health, 50)

    def serves_again():
        with Client(weir.http_address) as client:
            return client.check(ip="192.0.2.1").status == 200
    wait_until(serves_again)
    refusing = isinstance(Redis(weir.redis_address).ask("PING"), Error)
    attack.holds(tried, most + 200, "HTTP after they are gone", "served", not refusing)
