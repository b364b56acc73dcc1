# SPDX-License-Identifier: Apache-2.0
"""Units bought above a limit, over the slots of a Redis Cluster of three masters: the customer's
state, what was bought for him and a limit of all customers are on different servers."""

import random

import pytest

from daemon.nodes import Nodes, shared_rules
from daemon.redis_server import Cluster
from daemon.waiting import wait_until

TOKEN = {"Authorization": "Bearer s3cret"}
YEAR = "366d"
USERS = [f"u{i}" for i in range(9)]
OWN, ALL = 5, 400


@pytest.fixture(scope="module", name="cluster")
def fixture_cluster(tmp_path_factory, redis_program):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def start(folder, cluster, prefix, everything=ALL):
    limits = [{"name": "all", "key": [], "algorithm": "fixed_window", "rate": f"{everything}/360d"},
              {"name": "own", "key": ["user"], "algorithm": "fixed_window", "rate": f"{OWN}/{YEAR}",
               "top_up": YEAR}]
    rules = shared_rules(cluster.url, *limits, nodes=2, redis={"prefix": prefix, "remember": "off"},
                         store={"on_store_error": "closed"}, server={"admin": {"token": "s3cret"}})
    return Nodes(folder, 2, rules)


def admin(weir, method, target):
    with weir.admin() as client:
        return client.request(method, target, fields=TOKEN)


def give(weir, user, units):
    reply = admin(weir, "POST", f"/v1/limits/own/grant?key={user}&units={units}&above=true")
    assert reply.status == 200 and reply.json["granted"], reply.body
    return reply.json["bought"]


def bought(weir, user):
    return admin(weir, "GET", f"/v1/limits/own/state?key={user}&above=true").json["bought"]


def left_of_all(nodes):
    return nodes.ask(0, 0, dry_run=True, user="nobody else")[1]["all"]["remaining"]


def test_customers_on_all_servers_get_what_they_bought_and_no_more(tmp_path, cluster):
    with start(tmp_path, cluster, "model:") as nodes:
        draw = random.Random(1)
        used, units, left, taken = dict.fromkeys(USERS, 0), dict.fromkeys(USERS, 0), ALL, 0
        for _ in range(400):
            user, node, cost = draw.choice(USERS), draw.randrange(2), draw.choice([0, 1, 1, 2, 3, 7])
            if draw.random() < 0.15:
                units[user] += cost + 1
                assert give(nodes[node], user, cost + 1) == units[user]
                continue
            own = used[user] + cost <= OWN
            allowed = own or units[user] >= max(cost, 1)
            answered, limits = nodes.ask(node, cost, user=user)
            assert answered == allowed and ("bought" in limits["own"]) == (allowed and not own)
            used[user] += cost if own else 0
            units[user] -= cost if allowed and not own else 0
            taken += cost if allowed and not own else 0
            left -= cost if allowed else 0
        assert taken > 50 and left > 0
        assert nodes.metric("weir_bought_units_total") == taken
        assert {user: bought(nodes[0], user) for user in USERS} == units
        assert left_of_all(nodes) == left


def test_what_a_limit_in_another_slot_denies_takes_no_bought_units(tmp_path, cluster):
    everything = len(USERS) * OWN + 4
    with start(tmp_path, cluster, "deny:", everything) as nodes:
        for user in USERS:
            assert give(nodes[0], user, 6) == 6
            assert nodes.ask(1, OWN, user=user)[0]
        for user in USERS:  # more than is left of all
            assert not nodes.ask(0, 5, user=user)[0]
        assert [bought(nodes[1], user) for user in USERS] == [6] * len(USERS)
        assert sum(nodes.ask(i % 2, 1, user=USERS[i % len(USERS)])[0] for i in range(30)) == 4
        assert sum(6 - bought(nodes[1], user) for user in USERS) == 4
        assert left_of_all(nodes) == 0


def test_repeats_and_settlements_over_several_slots_are_exact(tmp_path, cluster):
    with start(tmp_path, cluster, "once:") as nodes:
        for user in USERS:
            give(nodes[0], user, 20)
            nodes.ask(1, OWN, user=user)
            asked = {"attributes": {"user": user}, "cost": 3, "idempotency_key": f"k{user}"}
            replies = [nodes[i % 2].check(**asked) for i in range(3)]
            assert [reply.status for reply in replies] == [200] * 3
            assert ["repeated" in reply.json for reply in replies] == [False, True, True]
            assert bought(nodes[0], user) == 17
            with nodes[0].client() as client:
                body = {"attributes": {"user": user}, "cost": 9}
                reserved = client.post("/v1/reserve", body)
                assert reserved.status == 200 and bought(nodes[1], user) == 8
            with nodes[1].client() as client:
                token = {"reservation": reserved.json["reservation"], "cost": 2}
                assert client.post("/v1/settle", token).status == 200
            assert bought(nodes[0], user) == 15
        assert left_of_all(nodes) == ALL - len(USERS) * (OWN + 3 + 2)


def test_bought_units_outlast_a_master_that_dies(tmp_path, cluster):
    with start(tmp_path, cluster, "died:") as nodes:
        for user in USERS:
            give(nodes[0], user, 9)
            assert nodes.ask(0, OWN, user=user)[0] and nodes.ask(1, 4, user=user)[0]
        for server in cluster.servers[:3]:
            assert server.ask("WAIT", 1, 10000) >= 1
        cluster.servers[1].kill()

        def seen():
            states = [admin(nodes[0], "GET", f"/v1/limits/own/state?key={user}&above=true")
                      for user in USERS]
            return [state.json["bought"] if state.status == 200 else None for state in states]
        wait_until(lambda: seen() == [5] * len(USERS), what="another master")
        wait_until(lambda: all(weir.check(attributes={"user": user}, dry_run=True).status != 503
                               for weir in nodes.running() for user in USERS), what="the store of each node")
        assert [nodes.ask(i % 2, 5, user=user)[0] for i, user in enumerate(USERS)] == [True] * len(USERS)
        assert not any(nodes.ask(i % 2, 1, user=user)[0] for i, user in enumerate(USERS))
