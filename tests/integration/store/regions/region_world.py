# SPDX-License-Identifier: Apache-2.0
"""Three regions with a node and a real Redis each, behind proxies, for tests of what they admit
together. Windows outlive the test, so that what is used is a sum."""

import json
from contextlib import ExitStack

from daemon.fault_proxy import FaultProxy
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import run_weir

REGIONS = ("ap", "eu", "us")
RATE = 300
FLOOR = 30  # 10 %
HOME = 240
TOKEN = "s3cret"  # of the admin listeners


class RegionWorld:
    """`with RegionWorld(folder, limit) as world`: each region's node, Redis and proxy to it.

    `links`: the way from each region to each other one's Redis has a proxy of its own."""

    def __init__(self, folder, *limits, links=False, state=None, **store):
        self.folder, self.limits = folder, limits
        self.store = {"nodes": 1, "deadline": "5s"} | store
        self.parts = {"state": state} if state else {}
        self.redis, self.proxies, self.nodes, self.rules = {}, {}, {}, {}
        self.links = {} if links else None
        self.stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            for name in REGIONS:
                self.redis[name] = stack.enter_context(RedisServer(self.folder / f"redis-{name}"))
                proxy = stack.enter_context(FaultProxy(self.redis[name].port))
                self.proxies[name] = proxy
            for name in REGIONS:
                folder = self.folder / name
                folder.mkdir()
                self.rules[name] = self.document(stack, name)
                self.nodes[name] = stack.enter_context(Weir(folder, self.rules[name]))
            for name in REGIONS:
                wait_until(lambda name=name: self.is_up(name), what=f"the store of {name}")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def document(self, stack, name):
        """The rules of a region's node."""
        return json.dumps({
            "version": 1, "store": self.store, "server": {"admin": {"token": TOKEN}},
            "regions": {"self": name} | self.section(stack, name), "limits": self.limits} | self.parts)

    def section(self, stack, name):
        """Where the node of a region finds the Redis of each. A remembered denial would outlive the
        Redis that gave it, for 100 ms."""
        section = {}
        for other in REGIONS:
            proxy = self.proxies[other]
            if self.links is not None and other != name:
                proxy = stack.enter_context(FaultProxy(self.redis[other].port))
                self.links[name, other] = proxy
            section[other] = {"redis": {"url": proxy.url, "remember": "off"}}
        return section

    def is_up(self, name):
        return self.nodes[name].metrics().get("weir_store_up") == 1

    def reaches(self, name, other):
        """Whether the node of one region reaches another one's Redis."""
        return self.nodes[name].metrics().get(f'weir_region_up{{region="{other}"}}') == 1

    def admitted(self, name, user, requests=RATE + 20):
        """How many of that many requests in one region are admitted."""
        with self.nodes[name].client() as client:
            statuses = [client.check(attributes={"user": user}).status for _ in range(requests)]
        assert set(statuses) <= {200, 429, 503}
        return statuses.count(200)

    def home(self, user):
        """By what `weir explain` prints, which is the same in every region."""
        homes = {line.partition(", home ")[2].partition(",")[0] for line in
                 (self.explained(name, user) for name in REGIONS)}
        assert len(homes) == 1
        return homes.pop()

    def explained(self, name, user):
        done = run_weir("explain", "--config", str(self.nodes[name].config), "--attribute",
                        f"user={user}")
        assert done.returncode in (0, 1), done.stderr
        return next(line for line in done.stdout.splitlines() if line.startswith("    region "))
