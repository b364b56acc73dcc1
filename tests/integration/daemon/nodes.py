# SPDX-License-Identifier: Apache-2.0
"""Several weir nodes over one store, each a process with a folder of its own."""

import json
import os
from contextlib import ExitStack

from daemon.load import Load, check_request
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def off_by(hours):
    """The environment of a node whose wall clock is wrong by so much; the monotonic ones are not."""
    return {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{hours:+d}h",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def step_clock(folder, seconds):
    """Steps the wall clock of those that were started with stepped_clock(folder): Debian's libfaketime reads
    this file at every reading of it. Once before they start."""
    beside = folder / "faketime.new"
    beside.write_text(f"{seconds:+d}\n", encoding="ascii")
    beside.rename(folder / "faketime")  # who reads an empty one ends


def stepped_clock(folder):
    return {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(folder / "faketime"),
            "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}


def shared_rules(url, *limits, mode="exact", nodes=3, deadline="5s", redis=None, **parts):
    """A rules file. The deadline is long, so that a slow machine fails no test that is about
    something else; what is about failing says its own."""
    store = {"redis": {"url": url, "mode": mode} | (redis or {}), "nodes": nodes,
             "deadline": deadline} | parts.pop("store", {})
    return json.dumps({"version": 1, "store": store, "limits": list(limits), **parts})


class Nodes:
    """`with Nodes(folder, 3, rules) as nodes`: nodes[0].check(user="a"), nodes.load(...)."""

    def __init__(self, folder, count, rules, *options, env=None, redis=False, workers=1):
        self.weirs = []
        for i in range(count):
            home = folder / f"weir{i}"
            home.mkdir(parents=True, exist_ok=True)
            more = ["--redis", "127.0.0.1:0"] if redis else []
            self.weirs.append(Weir(home, rules, "--workers", workers, *more, *options,
                                   env=env[i] if env else None))
        self.stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            for weir in self.weirs:
                stack.enter_context(weir)
            self.wait_up()
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def __getitem__(self, index):
        return self.weirs[index]

    def __len__(self):
        return len(self.weirs)

    def running(self):
        return [weir for weir in self.weirs if weir.process.poll() is None]

    def up(self):
        """Whether every node says that it reaches the store."""
        return all(weir.metrics().get("weir_store_up") == 1 for weir in self.running())

    def wait_up(self, seconds=SECONDS_MAX):
        wait_until(self.up, seconds, "the store of every node")

    def load(self, clients, attributes, pace=0.0, fields=None):
        """Clients that ask all nodes about one request."""
        body = json.dumps({"attributes": attributes})
        return Load([weir.http_address for weir in self.running()], clients,
                    check_request(body, fields), pace)

    def ask(self, index, cost=1, dry_run=False, **attributes):
        """One check: (allowed, {limit's name: what is reported of it})."""
        fields = {"attributes": attributes, "cost": cost}
        reply = self.weirs[index].check(**fields | ({"dry_run": True} if dry_run else {}))
        assert reply.status in (200, 429), reply.body
        return reply.status == 200, {limit["name"]: limit for limit in reply.json["limits"]}

    def metric(self, name):
        """The sum of a metric over all running nodes and labels."""
        return sum(value for weir in self.running() for key, value in weir.metrics().items()
                   if key.partition("{")[0] == name)

    def memory(self):
        """Resident bytes of all running nodes."""
        page = os.sysconf("SC_PAGE_SIZE")
        total = 0
        for weir in self.running():
            with open(f"/proc/{weir.process.pid}/statm", encoding="ascii") as file:
                total += int(file.read().split()[1]) * page
        return total
