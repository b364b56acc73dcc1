# SPDX-License-Identifier: Apache-2.0
"""Reservations of limits with different hash tags, beside an obvious model: random orders of reserving,
settling by a cost or by a status, repeating, and of lives that end, at any of three nodes, over one
Redis and over a Cluster. Every limit is counted by the model on its own; what all of them say must agree
after each step that can be predicted, and at the end for all."""

import random

import pytest

from daemon.nodes import Nodes, shared_rules
from daemon.redis_server import Cluster, RedisServer
from daemon.waiting import wait_until

# Windows that outlive the test, so that what is used is a sum. The first limit gives nothing back by a
# status: a settlement by a status then begins at another limit than one by a cost.
WINDOW = {"algorithm": "fixed_window", "debt": "1000%"}
LIMITS = [
    {**WINDOW, "name": "user", "key": ["user"], "rate": "100000/300d"},
    {**WINDOW, "name": "org", "key": ["org"], "rate": "100000/300d", "refund_on": ["404"],
     "refund_cap": "100%"},
    {**WINDOW, "name": "team", "key": ["team"], "rate": "1000/300d", "refund_on": ["404", "5xx"],
     "refund_cap": "10%"},
]
GIVES_BACK = {404: {"org": 100000, "team": 100}, 503: {"team": 100}, 200: {}}
STEPS = 250


class Model:
    """What each limit has used, and what its cap has let out."""

    def __init__(self):
        self.used = {limit["name"]: 0 for limit in LIMITS}
        self.given = {limit["name"]: 0 for limit in LIMITS}

    def charge(self, cost):
        for name in self.used:
            self.used[name] += cost

    def settle(self, estimate, truth):
        if "cost" in truth:
            self.charge(truth["cost"] - estimate)
            return
        for name, cap in GIVES_BACK[truth["status"]].items():
            if self.given[name] + estimate <= cap:
                self.given[name] += estimate
                self.used[name] -= estimate


class Run:
    """One user whose limits lie in several slots, and the tokens that he holds."""

    def __init__(self, nodes, seed):
        self.nodes, self.choose, self.model = nodes, random.Random(seed), Model()
        self.attributes = {key: f"{key}{seed}" for key in ("user", "org", "team")}
        self.open, self.short, self.done = [], [], []

    def node(self):
        return self.nodes[self.choose.randrange(len(self.nodes))]

    def post(self, path, **fields):
        with self.node().client() as client:
            return client.post(path, fields)

    def reserve(self):
        cost, short = self.choose.randint(1, 9), self.choose.random() < 0.2
        reply = self.post("/v1/reserve", attributes=self.attributes, cost=cost,
                          life=1 if short else 3600)
        assert reply.status == 200, reply.body
        (self.short if short else self.open).append((reply.json["reservation"], cost))
        self.model.charge(cost)

    def truth(self):
        if self.choose.random() < 0.5:
            return {"cost": self.choose.randint(0, 12)}
        return {"status": self.choose.choice(list(GIVES_BACK))}

    def settle(self):
        """One that is open. Of a short life, it may be too late: then its maker gives all back."""
        mine = self.short if self.short and self.choose.random() < 0.5 else self.open
        token, estimate = mine.pop(self.choose.randrange(len(mine)))
        truth = self.truth()
        reply = self.post("/v1/settle", reservation=token, **truth)
        if mine is self.short and (reply.status == 409 or reply.json.get("repeated")):
            self.model.charge(-estimate)
            return
        assert reply.status == 200 and reply.json["repeated"] is False, (truth, reply.body)
        self.model.settle(estimate, truth)
        self.done.append((token, mine is self.short))

    def repeat(self):
        token, short = self.choose.choice(self.done)
        reply = self.post("/v1/settle", reservation=token, **self.truth())
        assert (short and reply.status == 409) or reply.json["repeated"] is True, reply.body

    def step(self):
        draw = self.choose.random()
        if draw < 0.45 or not self.open:
            self.reserve()
        elif draw < 0.8 or not self.done:
            self.settle()
        else:
            self.repeat()

    def end(self):
        """All short lives end; their makers have tried to release each by the time that a later one of
        every node has been released."""
        for _, estimate in self.short:
            self.model.charge(-estimate)
        for i, weir in enumerate(self.nodes.weirs):
            later = {key: f"later{i}{value}" for key, value in self.attributes.items()}
            with weir.client() as client:
                assert client.post("/v1/reserve", {"attributes": later, "cost": 1, "life": 2}) \
                    .status == 200
            wait_until(lambda later=later: set(self.used(**later).values()) == {0},
                       what="the end of a later one")

    def used(self, **attributes):
        _, result = self.nodes.ask(0, cost=0, dry_run=True, **attributes)
        return {name: limit["limit"] - limit["remaining"] for name, limit in result.items()}


def start_server(folder, kind):
    return RedisServer(folder) if kind == "redis" else Cluster(folder)


def settles(nodes):
    """Whether what the first node signs is known to the others."""
    fields = {"attributes": {"user": "first"}, "cost": 1}
    with nodes[0].client() as client:
        token = client.post("/v1/reserve", fields).json["reservation"]
    for weir in nodes.weirs:
        with weir.client() as client:
            if client.post("/v1/settle", {"reservation": token, "cost": 1}).status != 200:
                return False
    return True


@pytest.mark.parametrize("kind", ["redis", "cluster"])
def test_whatever_the_order_each_reservation_is_settled_once(tmp_path, kind):
    with start_server(tmp_path / "store", kind) as store:
        rules = shared_rules(store.url, *LIMITS, store={"on_store_error": "closed"})
        with Nodes(tmp_path, 3, rules) as nodes:
            wait_until(lambda: settles(nodes), what="the secret at every node")
            for seed in range(3):
                run = Run(nodes, seed)
                for _ in range(STEPS):
                    run.step()
                run.end()
                assert run.used(**run.attributes) == run.model.used, f"seed {seed}"
