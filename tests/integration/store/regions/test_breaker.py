# SPDX-License-Identifier: Apache-2.0
"""A home that is silent: the workers of a node have one breaker for it, so it costs the node what it
would cost one worker."""

import json
import signal
from contextlib import ExitStack

from daemon.stopped import stop
from daemon.waiting import wait_until
from region_world import RegionWorld

# The kernel gives connections to workers by their ports. One late call of each is enough for the
# breaker of a node, which takes 10 calls, and too few for one of a worker.
CONNECTIONS = 16
EVENTS = ("region_breaker_open", "region_down")
LIMIT = {"name": "a", "key": ["user"], "algorithm": "fixed_window", "rate": "100000/300d",
         "on_store_error": "closed",
         "global": {"floor": "0", "home": "us", "lend": False, "wait": "20ms"}}


class FourWorkers(RegionWorld):
    def document(self, stack, name):
        rules = json.loads(super().document(stack, name))
        rules["server"]["workers"] = 4
        return json.dumps(rules)


def asked(node, result):
    return node.metrics()[f'weir_region_questions_total{{region="us",result="{result}"}}']


def lines(node, event):
    return node.text().count(f"event={event} ")


def test_a_silent_home_is_found_once_for_all_workers(tmp_path):
    """Late calls of all workers add up, no worker waits after that, and each change is one line."""
    with FourWorkers(tmp_path, LIMIT) as world, ExitStack() as stack:
        node, home = world.nodes["eu"], world.redis["us"].process
        clients = [stack.enter_context(node.client()) for _ in range(CONNECTIONS)]

        def ask():
            return [client.check(attributes={"user": "u0"}).status for client in clients]

        def opened():
            wait_until(lambda: world.reaches("eu", "us") and ask() == CONNECTIONS * [200],
                       what="the home")
            before = [lines(node, event) for event in EVENTS]
            stop(home)
            try:
                assert ask() == CONNECTIONS * [429]
                wait_until(lambda: before != [lines(node, event) for event in EVENTS],
                           what="the silence")
                if lines(node, "region_breaker_open") == before[0]:
                    return False  # a slow machine has given up the connections before: again
                assert not world.reaches("eu", "us")
                late, failed = asked(node, "late"), asked(node, "failed")
                assert ask() + ask() == 2 * CONNECTIONS * [429]
                assert asked(node, "late") == late
                assert asked(node, "failed") == failed + 2 * CONNECTIONS
                assert lines(node, "region_breaker_open") == before[0] + 1
                return True
            finally:
                home.send_signal(signal.SIGCONT)

        wait_until(opened, what="the open breaker")
        node.wait_event("region_breaker_closed")
        wait_until(lambda: world.reaches("eu", "us"), what="the home")
        wait_until(lambda: ask() == CONNECTIONS * [200], what="all workers")
        wait_until(lambda: lines(node, "region_breaker_open") ==
                   lines(node, "region_breaker_closed"), what="as many lines of its end")
