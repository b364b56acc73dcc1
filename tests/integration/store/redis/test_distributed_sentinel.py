# SPDX-License-Identifier: Apache-2.0
"""Three weir nodes over a Sentinel group: the master dies, another takes over, the old one returns."""

import pytest

from daemon.load import admitted
from daemon.nodes import Nodes, shared_rules
from daemon.redis_server import SentinelGroup
from daemon.waiting import wait_until

BUDGET = {"name": "budget", "key": ["user"], "algorithm": "fixed_window", "rate": "6000/366d"}


@pytest.fixture(scope="module", name="group")
def fixture_group(tmp_path_factory, redis_program):
    with SentinelGroup(tmp_path_factory.mktemp("sentinel")) as group:
        yield group


def test_a_master_that_dies_is_replaced_and_not_missed_when_it_returns(tmp_path, group):
    rules = shared_rules(group.url, BUDGET, store={"on_store_error": "closed"})
    with Nodes(tmp_path, 3, rules) as nodes:
        with nodes.load(16, {"user": "all"}, pace=0.01) as load, load.running():
            wait_until(lambda: admitted(load.answers) > 1000, what="some load")
            load.pace = 0.05  # the budget is to outlast what follows
            old = group.master()
            old.kill()
            killed = load.answers[-1].received
            new = wait_until(lambda: group.master() is not old and group.master(),
                             what="the failover")
            wait_until(lambda: new.info("role") == "master", what="the new master")
            nodes.wait_up()
            some = admitted(load.answers)
            wait_until(lambda: admitted(load.answers) > some + 200, what="what goes on")
            before = new.commands("evalsha")  # now: denials are remembered once the budget has ended
            old.start()  # as a master, until a sentinel tells it otherwise
            wait_until(lambda: new.commands("evalsha") > before + 400, what="calls to the new")
            load.pace = 0
            wait_until(lambda: all(answer.status == 429 for answer in load.answers[-2000:]),
                       what="the end of the budget")
        last = sum(answer.status == 200 and killed - 1 < answer.received <= killed
                   for answer in load.answers)
        total = admitted(load.answers)
        print(f"Sentinel failover: {total} of 6000 admitted, {last} in the last second")
        assert 0.9 * 6000 <= total <= 6000 + last
        assert old.commands("evalsha") == 0


def test_nodes_that_start_find_the_master_of_the_day(tmp_path, group):
    rules = shared_rules(group.url, BUDGET, redis={"prefix": "later:"})
    with Nodes(tmp_path, 1, rules) as nodes:
        assert nodes.ask(0, user="later")[1]["budget"]["remaining"] == 5999
    assert group.master().keys("later:*")
