# SPDX-License-Identifier: Apache-2.0
"""Small attacks and faults: a signal, a damaged file, texts that command a terminal, a foreign page, an easy
puzzle, a disk that hangs."""

import json
import os
import resource
import struct

import pytest

from cases.standing import BUSY_MS, LATE_MS, STOP_MS, USERS, ban, banned, meanwhile, serve, timed_stop
from daemon.challenge import ChallengeWeir, solve
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir
from suite import case

ONE = {"name": "one", "key": ["user"], "rate": "1/d"}
DENIALS = 20


def deny(weir, names):
    with weir.client() as client:
        return sum(client.check(attributes={"user": name}).status == 429 for name in names for _ in range(2))


def keys_of(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {json.loads(line)["key"] for line in lines}


@case("file-size", "a limit on the size of files (SIGXFSZ), and a file of denials that is moved or deleted")
def file_size(attack):
    path = attack.folder / "denials.log"
    rules = rules_of(ONE, denials={"file": str(path)}, state={"file": str(attack.folder / "state"), "size": "4MiB"})
    weir = attack.stack.enter_context(Weir(attack.folder, rules, "--workers", "1"))
    tried = "no file may grow (RLIMIT_FSIZE), which sends SIGXFSZ"
    pid = weir.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    made = deny(weir, [f"u{i}" for i in range(DENIALS)])
    wait_until(lambda: weir.metrics()['weir_denials_total{result="unwritten"}'] == DENIALS)
    attack.all_of(tried, DENIALS, "denials that the metric says are not written", made, DENIALS)
    attack.holds(tried, 1, "the server", "runs", weir.process.poll() is None)
    attack.holds(tried, 1, "a line in the log says how many", "one line", bool(weir.wait_event("denials_dropped")))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    for what, harm in (("moved", lambda: path.rename(path.with_suffix(".old"))), ("deleted", path.unlink)):
        deny(weir, [f"before-{what}"])
        wait_until(lambda what=what: f"user=before-{what}" in keys_of(path))
        harm()
        count = 0

        def comes_back(what=what):
            nonlocal count
            count += 1
            deny(weir, [f"{what}{count}"])
            return keys_of(path)
        wait_until(comes_back)
        attack.holds(f"`denials.log` is {what}", 1, "a new file", "is written without SIGHUP", path.exists())


def damage(state):
    """Makes the counters of each account in a state file what a page of 0xff says. Returns how many it has."""
    size, counters = 32, 16  # struct table_account, and where its counters are
    count = 0
    with open(state, "r+b") as file:
        accounts_at, pins_at = struct.unpack_from("=QQ", file.read(48), 32)  # of struct table_header
        for at in range(accounts_at, pins_at - size + 1, size):
            file.seek(at)
            if file.read(8) == b"\0" * 8:  # no name: the place is free
                continue
            file.seek(at + counters)
            file.write(b"\xff" * 16)
            count += 1
    assert count, "the state has no account"
    return count


@case("damaged-counters", "counters of a state file that are damaged while the server is stopped")
def damaged_counters(attack):
    state = attack.folder / "state"
    rules = rules_of(ONE, state={"file": str(state), "size": "4MiB"})
    weir = attack.stack.enter_context(Weir(attack.folder, rules, "--workers", "1"))
    deny(weir, ["ann"])
    weir.stop()
    places = damage(state)
    weir.start()
    tried = "counters of evictions and overflows are 2^64 - 1"
    with weir.admin() as client:
        reply = client.request("GET", "/readyz")
    shown = [value for name, value in weir.metrics().items()
             if name.startswith(("weir_limit_evictions_total", "weir_limit_overflows_total"))]
    attack.holds(tried, places, f"`/readyz`: {reply.status}, {reply.body.decode().strip()}", "200, ready",
                 (reply.status, reply.body) == (200, b"ready\n"))
    attack.at_most(tried, places, "evictions and overflows in the metrics, at most", int(max(shown, default=0)), 0)
    attack.holds(tried, places, "a caller who had used its limit", "is denied", deny(weir, ["ann"]) == 2)


@case("terminal", "a file of denials whose members command the terminal")
def terminal(attack):
    names = ("limit", "key", "route", "plan", "node", "algorithm", "action", "source", "standing", "policy")
    path = attack.folder / "denials.log"
    denial = {name: f"\x1b]0;{name}\x07\x9b2J" for name in names} | {"time_ns": 1700000000 * 10**9}
    path.write_text(json.dumps(denial) + "\n", encoding="utf-8")
    raw = 0
    for more in ([], ["--json"]):
        done = run_weir("denials", "--file", path, *more)
        raw += sum(ord(one) < 0x20 and one != "\n" or 0x7f <= ord(one) < 0xa0 for one in done.stdout)
        attack.holds(f"`weir {' '.join(['denials', '--file', *more])}`", len(names), f"status {done.returncode}",
                     "0, with its line", done.returncode == 0 and "]0;limit" in done.stdout)
    attack.at_most("both", len(names), "control characters in what is printed", raw, 0)


@case("foreign-page", "pages of other sites that ask an admin socket behind a proxy, in a browser's name")
def foreign_page(attack):
    rules = rules_of(ONE, server={"admin": {"address": f"unix:{attack.folder}/admin"}})
    weir = attack.stack.enter_context(Weir(attack.folder, rules, "--workers", "1", admin=None))
    host = {"Host": "rebound.example"}
    asked = [host | more for more in ({"Origin": "http://rebound.example"}, {"Origin": "null"},
                                      {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Mode": "cors"},
                                      {"Sec-Fetch-Dest": "empty"})]
    with weir.admin() as client:
        refused = sum(client.request("GET", "/v1/limits", fields).status == 403 for fields in asked)
        open_ = client.request("GET", "/v1/limits", host).status
    tried = "Origin or Sec-Fetch-* alone, without Accept-Language, over a Unix socket"
    attack.all_of(tried, len(asked), "requests refused", refused, len(asked))
    attack.holds(tried, 1, f"a program without these fields: {open_}", "200", open_ == 200)


@case("easy-puzzle", "the token of the easy puzzle of a browser, shown by what looks like a tool")
def easy_puzzle(attack):
    score = {"key": ["client.ip/64"], "debug": True, "signals": [
        {"name": "tool", "when": {"header.user-agent": ["curl/*", "wget"]}, "add": 70}]}
    limits = [{"name": "passed", "match": {"challenge": "passed"}, "key": ["client.ip"], "rate": "1000/h"}]
    weir = attack.stack.enter_context(ChallengeWeir(
        attack.folder, limits=limits, score=score, difficulty={"legitimate": 4, "suspicious": 6, "malicious": 9}))
    client = {"X-Forwarded-For": "192.0.2.1"}
    browser, tool = client | {"User-Agent": "Mozilla"}, client | {"User-Agent": "wget"}

    def token(fields):
        puzzle = weir.challenge(fields=fields).json
        solution = solve(puzzle["puzzle"], puzzle["difficulty"])
        return {"X-Weir-Challenge": weir.post({"puzzle": puzzle["puzzle"], "solution": solution, "to": "/"},
                                              fields).json["token"]}

    def passes(fields):
        return '"passed"' in (weir.auth(fields)["ratelimit"] or "")
    easy, hard = token(browser), token(tool)
    attack.holds("the easy token, as a browser", 1, "the challenge", "is passed", passes(browser | easy))
    attack.holds("the easy token, as a tool", 1, "the challenge", "is not passed", not passes(tool | easy))
    attack.holds("the hard token, as either", 2, "the challenge", "is passed",
                 passes(browser | hard) and passes(tool | hard))


@case("history-hung", "a history of standing on a disk that hangs, and a stop meanwhile")
def history_hung(attack):
    from server.standing.hung_disk import HungDisk
    tried = "writes to the history do not return"
    try:
        disk = HungDisk(attack.folder, attack.folder / "standing.db")
    except pytest.skip.Exception as reason:
        attack.tell(tried, 1, f"not tried: {reason}")
        return
    before = {name: os.environ.get(name) for name in disk.env}
    os.environ.update(disk.env)
    try:
        weir = serve(attack)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    assert ban(weir, "before")[0] == 200
    with disk:
        meanwhile(attack, weir, tried)
        attack.at_most(tried + ", SIGTERM", 1, "the stop, ms", round(timed_stop(weir)), STOP_MS + LATE_MS + BUSY_MS)
        lost = weir.text().count("event=standing_change_lost")
        attack.holds(tried + ", SIGTERM", USERS, f"lines of lost changes: {lost}", f"one for each, {USERS} or more",
                     lost >= USERS)
    weir.start()
    attack.all_of("the next start, from the map", USERS, "bans in force", banned(weir, [f"u{i}" for i in range(USERS)]),
                  USERS)
