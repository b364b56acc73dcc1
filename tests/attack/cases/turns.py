# SPDX-License-Identifier: Apache-2.0
"""What keeps a server busy for long, while one honest client asks: batches of others, and a reload of very
many limits."""

import multiprocessing
import time

from cases.reloading import Asker
from daemon.http import Client
from daemon.redis import Redis, command_bytes
from daemon.waiting import wait_until
from daemon.weir import rules_of
from suite import case

GREEDY = 8
BATCH = 1000
SECONDS = 8
PAUSE = 0.002
LATE_MS = 250  # what a busy machine adds to a turn
LIMITS = 100_000
RELOADS = 5
PLAIN = {"name": "all", "key": ["user"], "rate": "1000/s"}


def batches(address, number):
    """Sends batches until it is ended."""
    body = [{"path": "/", "attributes": {"user": f"greedy{number}-{i}"}} for i in range(BATCH)]
    with Client(address) as client:
        while True:
            client.post("/v1/check", body)


def pipelines(address, number):
    mark = "--mark--"
    data = b"".join(command_bytes("WEIR.CHECK", "user", f"greedy{number}-{i}") for i in range(BATCH))
    with Redis(address) as redis:
        while True:
            redis.send(data + command_bytes("ECHO", mark))
            tail = b""
            while not tail.endswith(mark.encode() + b"\r\n"):
                tail = (tail + redis.socket.recv(1 << 18))[-64:]


def ask(weir, seconds):
    """How long the answers to one client took that asks now and then, in ms, sorted."""
    times, end = [], time.monotonic() + seconds
    with weir.client() as client:
        while time.monotonic() < end:
            began = time.monotonic()
            assert client.check(path="/", attributes={"user": "honest"}).status == 200
            times.append((time.monotonic() - began) * 1000)
            time.sleep(PAUSE)  # an honest client asks at this pace; nothing is waited for
    return sorted(times)


def against(attack, weir, what, send, address):
    others = [multiprocessing.Process(target=send, args=(address, number), daemon=True) for number in range(GREEDY)]
    for other in others:
        other.start()
    try:
        begun = weir.metrics()
        wait_until(lambda: decisions(weir.metrics()) - decisions(begun) > 2 * GREEDY * BATCH)
        before = weir.metrics()
        times = ask(weir, SECONDS)
        after = weir.metrics()
    finally:
        for other in others:
            other.kill()
            other.join()
    made = decisions(after) - decisions(before)
    turns = after["weir_turn_seconds_count"] - before["weir_turn_seconds_count"]
    tried = f"{GREEDY} clients send {what} of {BATCH:,} checks"
    attack.at_most(tried, int(made), "decisions of a turn, on average", round(made / turns), 1000)
    attack.tell(tried, int(made), f"median of an honest client's answers: {times[len(times) // 2]:.2f} ms")
    attack.at_most(tried, int(made), "p99 of an honest client's answers, ms", round(times[len(times) * 99 // 100], 1),
                   LATE_MS)


def decisions(metrics):
    return sum(value for name, value in metrics.items() if name.startswith("weir_decisions_total"))


@case("turns", "clients that send batches of 1,000 checks without a pause, and an honest one beside them")
def turns(attack):
    weir = attack.serve(PLAIN)
    times = ask(weir, SECONDS / 4)
    attack.tell("one honest client alone", len(times), f"median of its answers: {times[len(times) // 2]:.2f} ms, "
                f"p99 {times[len(times) * 99 // 100]:.2f} ms")
    against(attack, weir, "batches", batches, weir.http_address)
    against(attack, weir, "pipelines", pipelines, weir.redis_address)


def many_limits(rate):
    limits = [{"name": f"l{i}", "match": {"path": f"/p{i}"}, "key": ["client.ip"], "rate": rate}
              for i in range(LIMITS)]
    return [PLAIN, *limits]


@case("many-limits-reload", "reloads of 100,000 limits, while others ask")
def many_limits_reload(attack):
    state = {"size": "64MiB"}
    weir = attack.serve(*many_limits("100/h"), state=state)
    files = []
    for i in range(RELOADS):  # before others ask: to make such a text holds this process up
        files.append(attack.folder / f"rules{i}")
        files[-1].write_text(rules_of(*many_limits(f"{101 + i}/h"), state=state), encoding="utf-8")
    with Asker(weir) as asker:
        time.sleep(SECONDS)  # this long is measured; nothing is waited for
    attack.tell("no reload: what the machine alone makes of it", asker.asked,
                f"slowest `/healthz`: {1000 * asker.health:.0f} ms, slowest decision: {1000 * asker.check:.0f} ms")
    with Asker(weir) as asker:
        started, done = time.monotonic(), 0
        for file in files:
            file.replace(weir.config)
            done += "event=reloaded" in weir.reload()
        took = time.monotonic() - started
    tried = f"reloads of {LIMITS:,} limits that change, one after the other"
    attack.all_of(tried, RELOADS, "reloads done", done, RELOADS)
    attack.tell(tried, RELOADS, f"time of one: {took / RELOADS:.2f} s")
    attack.all_of(tried, RELOADS, "answers of `/healthz` and decisions meanwhile", asker.asked - asker.failed,
                  asker.asked)
    attack.at_most(tried, RELOADS, "slowest `/healthz`, ms", round(1000 * asker.health), LATE_MS)
    attack.at_most(tried, RELOADS, "slowest decision, ms", round(1000 * asker.check), LATE_MS)
