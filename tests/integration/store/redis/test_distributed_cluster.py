# SPDX-License-Identifier: Apache-2.0
"""Three weir nodes over a Redis Cluster of six on loopback: slots that move, a master that dies."""

import json

import pytest

from daemon.load import Load, admitted, check_request
from daemon.nodes import Nodes, shared_rules
from daemon.redis_server import Cluster
from daemon.waiting import wait_until

USERS = 60
EACH = 150  # a budget a user, in a window that outlives the test
LIMITS = [
    {"name": "budget", "match": {"kind": "budget"}, "key": ["user"], "algorithm": "fixed_window",
     "rate": f"{EACH}/366d"},
    # Two limits of one request, in two slots, and in one.
    {"name": "pair-user", "match": {"kind": "pair"}, "key": ["user"], "rate": "100/360d"},
    {"name": "pair-all", "match": {"kind": "pair"}, "key": [], "rate": "150/360d"},
    {"name": "tag-user", "match": {"kind": "tag"}, "key": ["user"], "rate": "100/360d",
     "hash_tag": "user"},
    {"name": "tag-page", "match": {"kind": "tag"}, "key": ["path", "user"], "rate": "100/360d",
     "hash_tag": "user"},
]


@pytest.fixture(scope="module", name="cluster")
def fixture_cluster(tmp_path_factory, redis_program):
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def start(folder, cluster, prefix, mode="exact"):
    """on_store_error: closed, so that whatever is admitted was admitted by Redis."""
    return Nodes(folder, 3, shared_rules(cluster.url, *LIMITS, mode=mode,
                                         redis={"prefix": prefix},
                                         store={"on_store_error": "closed"}))


def requests_of(kind):
    return [check_request(json.dumps({"attributes": {"kind": kind, "user": f"user{i}"}}))
            for i in range(USERS)]


def users_in_turn(nodes, kind="budget", pace=0.0):
    """Clients that go round all users, each from another one on."""
    requests = requests_of(kind)
    return Load([weir.http_address for weir in nodes.weirs], 16,
                lambda i: requests[i * 3:] + requests[:i * 3], pace)


def nothing_is_left(load):
    """Whether all clients went round all users twice and Redis itself denied each time. A 503 says
    nothing of what is left: a busy machine makes one now and then, so it is not counted."""
    rounds = 2 * 16 * USERS
    decided = [answer.status for answer in load.answers[-2 * rounds:] if answer.status != 503]
    return len(decided) >= rounds and set(decided[-rounds:]) == {429}


def calls(cluster):
    return sum(server.commands("evalsha") for server in cluster.alive())


def are_connected(cluster):
    """Whether every node's worker, and what looks after the node, has ended its handshake with every
    master: by a call of a script, which is none of a decision."""
    greetings = ("cmd=auth", "cmd=client", "cmd=role", "cmd=script")
    masters = [cluster.server_of(port) for _, port, flags, _ in cluster.nodes() if "master" in flags]
    return all(sum(" name=weir " in line and not any(word in line for word in greetings)
                   for line in master.ask("CLIENT", "LIST").splitlines()) >= 3 * 2
               for master in masters)


def test_limits_in_several_slots_are_charged_together_or_not_at_all(tmp_path, cluster):
    with start(tmp_path, cluster, "pair:") as nodes:
        with users_in_turn(nodes, "pair") as load:
            answers = load.until(lambda answers: admitted(answers) >= 150 and
                                 len({answer.client for answer in answers[-200:]
                                      if answer.status == 429}) == 16, "the end of what both have")
        assert admitted(answers) == 150
        used = [100 - nodes.ask(i % 3, dry_run=True, kind="pair",
                                user=f"user{i}")[1]["pair-user"]["remaining"]
                for i in range(USERS)]
        assert sum(used) == 150  # what was reserved and then denied was given back


def test_limits_with_one_hash_tag_are_one_call(tmp_path, cluster):
    with start(tmp_path, cluster, "tag:") as nodes:
        wait_until(lambda: are_connected(cluster), what="all connections")
        before = calls(cluster)
        for i in range(30):
            assert nodes[i % 3].check(path="/", attributes={"kind": "tag", "user": f"u{i}"}).status \
                == 200
        assert calls(cluster) - before == 30


def test_slots_that_move_under_load_lose_and_double_nothing(tmp_path, cluster):
    with start(tmp_path, cluster, "moved:") as nodes:
        masters = [node for node in cluster.nodes() if "master" in node[2]]
        source, target = masters[0], masters[1]
        with users_in_turn(nodes, pace=0.01) as load, load.running():
            wait_until(lambda: admitted(load.answers) > 500, what="some load")
            load.pace = 0.2  # the budget is to outlast what follows
            cluster.cli("--cluster", "reshard", cluster.alive()[0].address, "--cluster-from",
                        source[0], "--cluster-to", target[0], "--cluster-slots", 1500,
                        "--cluster-yes")
            during = admitted(load.answers)
            load.pace = 0
            wait_until(lambda: nothing_is_left(load), what="the end of the budget")
        print(f"resharding: {during} admitted before its end, {admitted(load.answers)} at all, "
              f"{nodes.metric('weir_store_redirects_total'):.0f} redirects")
        assert admitted(load.answers) == USERS * EACH
        assert nodes.metric("weir_store_redirects_total") > 0
    wait_until(cluster.complete, what="the cluster")


def test_a_planned_failover_loses_nothing(tmp_path, cluster):
    """CLUSTER FAILOVER: the old master waits for the new one to have everything."""
    with start(tmp_path, cluster, "planned:") as nodes:
        with users_in_turn(nodes, pace=0.01) as load, load.running():
            wait_until(lambda: admitted(load.answers) > 500, what="some load")
            master, (replica, *_) = cluster.master_of("{foo}")
            assert replica.ask("CLUSTER", "FAILOVER") == "OK"
            wait_until(lambda: replica.info("role") == "master", what="the failover")
            load.pace = 0
            wait_until(lambda: nothing_is_left(load), what="the end of the budget")
        # Not one more; one less for each client whose answer the old master took with it.
        assert USERS * EACH - 16 <= admitted(load.answers) <= USERS * EACH
        assert master.info("role") == "slave"
    wait_until(cluster.complete, what="the cluster")


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_a_master_that_dies_under_load_costs_at_most_what_it_had_not_reported(tmp_path, cluster, mode):
    """Redis answers before its replica has the write: what was admitted in the last moments may be
    admitted again, and no more. The old master returns as a replica for the next test."""
    master, _ = cluster.master_of("{foo}")
    with start(tmp_path, cluster, f"died-{mode}:", mode) as nodes:
        with users_in_turn(nodes, pace=0.01) as load, load.running():
            wait_until(lambda: admitted(load.answers) > 2000, what="some load")
            master.kill()
            try:
                killed = load.answers[-1].received
                wait_until(lambda: cluster.master_of("{foo}")[0] is not master
                           and "cluster_state:ok" in cluster.alive()[0].ask("CLUSTER", "INFO"),
                           what="the failover")
                nodes.wait_up()
                load.pace = 0
                wait_until(lambda: nothing_is_left(load), what="the end of the budget")
            finally:
                master.start()
        last = sum(answer.status == 200 and killed - 1 < answer.received <= killed
                   for answer in load.answers)
        total = admitted(load.answers)
        print(f"failover ({mode}): {total} of {USERS * EACH} admitted, {last} in the last second")
        assert 0.9 * USERS * EACH <= total <= USERS * EACH + last
    wait_until(cluster.complete, what="the cluster")
