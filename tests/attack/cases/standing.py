# SPDX-License-Identifier: Apache-2.0
"""Files of standing and of denials that fail: a history that is locked or on a full disk, a map that is deleted,
replaced or cut short, a file of denials that cannot grow."""

import json
import os
import resource
import shutil
import sqlite3
import struct
import time

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from suite import case

USERS = 20
LATE_MS = 1000   # WEIR_KEEPER_LATE_MS
STOP_MS = 5000   # WEIR_KEEPER_STOP_MS
BUSY_MS = 2000   # what a busy machine adds


def serve(attack, **parts):
    """A weir with standing, a penalty and a state file; its admin listener is a Unix socket."""
    folder = attack.folder
    limits = [{"name": "all", "key": ["user"], "rate": "1000/s"},
              {"name": "one", "match": {"path": "/one"}, "key": ["user"], "rate": "1/d"}]
    standing = {"by": ["user"], "file": str(folder / "standing.db"), "entries": 10000}
    penalty = {"name": "greedy", "key": "user", "strikes": "3/h", "for": ["one"], "ladder": ["suspend 1h"]}
    rules = rules_of(*limits, standing=standing, penalties=[penalty],
                     state={"file": str(folder / "state"), "size": "4MiB"},
                     server={"admin": {"address": f"unix:{folder}/admin"}}, **parts)
    return attack.stack.enter_context(Weir(folder, rules, "--workers", "1", admin=None))


def ban(weir, user):
    """The status of the answer, and how long it took."""
    started = time.monotonic()
    with weir.admin() as client:
        body = json.dumps({"kind": "user", "value": user, "level": "suspended"}).encode()
        return client.request("PUT", "/v1/standing", body=body).status, (time.monotonic() - started) * 1000


def banned(weir, users):
    return sum(weir.check(attributes={"user": user}).json.get("standing", {}).get("level") == "suspended"
               for user in users)


def timed_stop(weir):
    started = time.monotonic()
    weir.stop()
    return (time.monotonic() - started) * 1000


def meanwhile(attack, weir, tried):
    """What holds while the history takes nothing."""
    users = [f"u{i}" for i in range(USERS)]
    answers = [ban(weir, user) for user in users]
    attack.all_of(tried, USERS, "changes answered 202", sum(status == 202 for status, _ in answers), USERS)
    attack.at_most(tried, USERS, "slowest answer, ms", round(max(took for _, took in answers)), LATE_MS + BUSY_MS)
    attack.all_of(tried, USERS, "bans in force at once", banned(weir, users), USERS)
    passed = 0
    with weir.client() as client:
        for _ in range(200):
            passed += "standing" not in client.check(path="/one", attributes={"user": "eve"}).json
            if banned(weir, ["eve"]):
                break
    attack.at_most(tried, 200, "requests of one caller until its penalty is in force", passed, 100)
    with weir.admin() as client:
        reply = client.request("GET", "/readyz")
    attack.holds(tried, 1, f"`/readyz`: {reply.status}", "200, and names the history",
                 reply.status == 200 and b"history" in reply.body)


@case("history-locked", "a history of standing that another process has locked, and a stop meanwhile")
def history_locked(attack):
    weir = serve(attack)
    tried = "the history is locked by another process"
    other = sqlite3.connect(attack.folder / "standing.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    meanwhile(attack, weir, tried)
    took = timed_stop(weir)
    other.execute("ROLLBACK")
    other.close()
    attack.at_most(tried + ", SIGTERM", 1, "the stop, ms", round(took), STOP_MS + LATE_MS + BUSY_MS)
    lost = weir.text().count("event=standing_change_lost")
    attack.holds(tried + ", SIGTERM", USERS, f"lines of lost changes: {lost}", f"one for each, {USERS} or more",
                 lost >= USERS)
    weir.start()
    attack.all_of("the next start, from the map", USERS, "bans in force",
                  banned(weir, [f"u{i}" for i in range(USERS)]), USERS)


@case("history-full", "a history of standing, and its server's other files, on a disk that is full")
def history_full(attack):
    weir = serve(attack, denials={"file": str(attack.folder / "denials.log")})
    tried = "no file may grow (RLIMIT_FSIZE, like a full disk)"
    pid = weir.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    meanwhile(attack, weir, tried)
    weir.wait_event("denials_dropped")
    attack.holds(tried, 1, "`denials.log`: a line says how many it lacks", "one line", True)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
    wait_until(lambda: weir.metrics()["weir_standing_history_jobs"] == 0)
    with sqlite3.connect(attack.folder / "standing.db") as history:
        written = {value for value, in history.execute("SELECT value FROM entry")}
    attack.all_of("room again", USERS, "changes written afterwards",
                  len(written & {f"u{i}" for i in range(USERS)}), USERS)


def cut(file):
    os.truncate(file, 0)


def replace(file):
    os.rename(file.parent / "backup", file)


def generation(file):
    return struct.unpack("=Q", file.read_bytes()[64:72])[0]


@case("map-lost", "a map of standing that is deleted, replaced by an old one and cut short, and bans meanwhile")
def map_lost(attack):
    weir = serve(attack)
    file = attack.folder / "standing.db.map"
    for round_, (what, harm) in enumerate([("deleted", os.unlink), ("replaced by a copy of before", replace),
                                           ("cut short", cut)]):
        tried = f"the map is {what}"
        shutil.copy(file, file.parent / "backup")
        before, old = weir.metrics()["weir_standing_map_remakes_total"], generation(file)
        harm(file)
        started = time.monotonic()
        users = [f"r{round_}u{i}" for i in range(USERS)]
        answers = [ban(weir, user)[0] for user in users]
        attack.all_of(tried, USERS, "bans answered 200", answers.count(200), USERS)
        wait_until(lambda before=before: weir.metrics()["weir_standing_map_remakes_total"] > before)
        attack.at_most(tried, 1, "until it was recreated, ms", round((time.monotonic() - started) * 1000),
                       1000 + BUSY_MS)
        attack.all_of(tried, USERS, "bans in force at the server", banned(weir, users), USERS)
        attack.holds(tried, 1, f"generation of the file at its path: {generation(file)}",
                     f"greater than {old}", generation(file) > old)
    attack.holds("all three", 1, "the server", "runs", weir.process.poll() is None)
