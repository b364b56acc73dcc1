# SPDX-License-Identifier: Apache-2.0
"""Homes that are waited for: three regions with a real Redis each. What a floor denies is decided
exactly in the home's Redis, and all regions together never admit more than the limit."""

import json
import signal
import socket
import struct

from daemon.stopped import stop
from daemon.waiting import wait_until
from model.program import run_weir
from region_world import FLOOR, HOME, RATE, REGIONS, TOKEN, RegionWorld

SMALL = 10


def limit(**parts):
    """A limit below 50 that is decided in its home's Redis alone."""
    return {"name": "a", "key": ["user"], "algorithm": "fixed_window", "rate": f"{SMALL}/300d",
            "on_store_error": "closed",
            "global": {"floor": "0", "home": "us", "wait": "1s"} | parts.pop("of", {})} | parts


def asked(world, name, result, home="us"):
    """How many questions of a region's node to a home had this result."""
    sample = f'weir_region_questions_total{{region="{home}",result="{result}"}}'
    return world.nodes[name].metrics()[sample]


def unused(world, name, result="returned", home="us"):
    return world.nodes[name].metrics()[f'weir_region_unused_total{{region="{home}",result="{result}"}}']


def reached(world, *names, home="us"):
    wait_until(lambda: all(world.reaches(name, home) for name in names), what="the home")


def used_up(world, names, wanted, user="u0"):
    """Asks in these regions in turn until so many requests were admitted."""
    total = 0

    def enough():
        nonlocal total
        total += sum(world.admitted(name, user, 1) for name in names)
        return total >= wanted

    wait_until(enough, what=f"{wanted} requests")
    return total


def leave_a_check(node, user):
    """Sends a request, and resets the connection before its answer."""
    body = json.dumps({"attributes": {"user": user}})
    host, port = node.http_address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
                           f"\r\n{body}".encode())
        node.metrics()  # the request is most likely read by then
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def operate(world, name, method, path):
    """An operation on a key, at the admin listener of a region's node."""
    with world.nodes[name].admin() as client:
        return client.request(method, f"/v1/limits/a/{path}", {"Authorization": f"Bearer {TOKEN}"})


def test_a_small_limit_is_exact_in_all_regions(tmp_path):
    """10 in all regions together, whichever is asked; a repeated request is charged once."""
    with RegionWorld(tmp_path, limit()) as world:
        reached(world, "ap", "eu")
        assert used_up(world, REGIONS, SMALL) == SMALL
        assert [world.admitted(name, "u0", 3) for name in REGIONS] == [0, 0, 0]
        assert used_up(world, ["eu"], SMALL, "u1") == SMALL  # in one region alone
        assert asked(world, "eu", "denied") >= 3
        with world.nodes["eu"].client() as client:
            def once():
                return client.check(attributes={"user": "u2"}, idempotency_key="k")

            wait_until(lambda: once().status == 200, what="the home")
            assert all(once().json["repeated"] for _ in range(3))
        assert used_up(world, ["us"], SMALL - 1, "u2") == SMALL - 1
        assert world.admitted("us", "u2", 3) == 0
        reply = world.nodes["ap"].check(attributes={"user": "u0"})
        assert reply.status == 429 and int(reply["retry-after"]) > 60
        assert world.explained("ap", "u0") == \
            "    region ap, home us, floor 0%, then us decides, waited for 1s"
        done = run_weir("explain", "--config", str(world.nodes["ap"].config), "--attribute",
                        "user=u0")
        assert "    now    denies: the floor is 0; a server asks the key's home\n" in done.stdout
        states = world.redis["us"].states("weir:*")
        assert not any("u0" in state for state in states), states
        assert not world.redis["eu"].states("weir:*a:*")  # a floor that is nothing has no state

        # an operator may ask any region
        def reset():
            reply = operate(world, "eu", "DELETE", "state?key=u0")
            return reply.status == 200 and reply.json

        assert wait_until(reset, what="the home") == {"regions": ["eu", "us"], "removed": True}
        assert used_up(world, REGIONS, SMALL) == SMALL

        def grant():
            reply = operate(world, "ap", "POST", "grant?key=u0&units=2")
            return reply.status == 200 and reply.json

        granted = wait_until(grant, what="the home")
        assert granted["granted"] and granted["regions"] == ["ap", "us"]
        assert granted["limits"][0]["remaining"] == 2, granted
        assert used_up(world, REGIONS, 2) == 2
        assert world.admitted("us", "u0", 3) == 0


def test_without_its_home_a_region_has_its_floor(tmp_path):
    """Cut off, and hanging; nothing is above the limit when the home is back."""
    large = limit(rate=f"{RATE}/300d", of={"floor": "10%", "lend": False, "wait": "20ms"})
    with RegionWorld(tmp_path, large, links=True) as world:
        reached(world, "ap", "eu")
        world.links["eu", "us"].tell("refuse")
        wait_until(lambda: not world.reaches("eu", "us"), what="the cut")
        assert world.admitted("eu", "u0", FLOOR + 5) == FLOOR
        assert asked(world, "eu", "failed") >= 5
        partly = operate(world, "eu", "DELETE", "state?key=u0")
        assert partly.status == 503 and b"not in the key's home, us" in partly.body, partly.body
        partly = operate(world, "eu", "POST", "grant?key=u0&units=1")  # nothing was used here
        assert partly.status == 503 and b"at a node of its region" in partly.body, partly.body
        assert world.admitted("eu", "u0", FLOOR + 5) == FLOOR
        stop(world.redis["us"].process)
        try:
            assert world.admitted("ap", "u0", FLOOR + 3) == FLOOR
            assert asked(world, "ap", "late") + asked(world, "ap", "failed") == 3
            assert asked(world, "ap", "late") >= 1  # the first one: the breaker was closed
        finally:
            world.redis["us"].process.send_signal(signal.SIGCONT)
        world.links["eu", "us"].tell("pass")
        wait_until(lambda: world.is_up("us"), what="the return of the home")
        reached(world, "ap", "eu")
        total = 2 * FLOOR + used_up(world, ["ap", "eu"], 20)  # and a floor that was reset
        assert total + world.admitted("us", "u0", RATE) <= RATE


def test_what_comes_too_late_goes_back(tmp_path):
    """The home answers after `wait`: the request was denied, and is charged nowhere."""
    large = limit(rate=f"{RATE}/300d", of={"floor": "10%", "lend": False, "wait": "100ms"})
    with RegionWorld(tmp_path, large, links=True) as world:
        reached(world, "eu")
        assert world.admitted("eu", "u0", FLOOR) == FLOOR
        world.links["eu", "us"].tell("delay", 0.25)

        def late():
            assert world.admitted("eu", "u0", 1) == 0
            return unused(world, "eu") >= 3

        wait_until(late, what="late answers")
        lost = asked(world, "eu", "late") - unused(world, "eu")
        assert HOME - lost <= world.admitted("us", "u0", RATE) <= HOME

        # a client that does not wait; the next one is another chance to leave in time
        def left():
            leave_a_check(world.nodes["eu"], "u1")
            return asked(world, "eu", "left") >= 1

        assert world.admitted("eu", "u1", FLOOR) == FLOOR
        wait_until(left, what="a client that left")


def test_two_homes_admit_together_or_give_back(tmp_path):
    other = limit(name="c", key=["user", "tier"], on_missing="skip", rate="5/300d",
                  of={"home": "ap"})
    with RegionWorld(tmp_path, limit(), other) as world:
        reached(world, "eu")
        reached(world, "eu", home="ap")
        with world.nodes["eu"].client() as client:
            def ask():
                return client.check(attributes={"user": "u0", "tier": "t"}).status == 200

            admitted = 0
            while admitted < 5:
                admitted += wait_until(ask, what="both homes")
            assert not any(ask() for _ in range(5))
        assert asked(world, "eu", "denied", home="ap") >= 1
        # what us has charged for those that ap denied is back: 10 in all
        assert used_up(world, ["us"], SMALL - 5) == SMALL - 5
        assert world.admitted("us", "u0", 3) == 0
        assert unused(world, "eu") >= 1

        # regions that were not reached at the start are reached after a restart
        node = world.nodes["eu"]
        node.write_rules(world.rules["eu"].replace('"home": "ap"', '"home": "us"'))
        assert "event=reloaded" in node.reload()


def test_a_node_begins_to_wait_at_its_start(tmp_path):
    large = limit(rate=f"{RATE}/300d", of={"floor": "10%", "lend": False, "wait": "0"})
    with RegionWorld(tmp_path, large) as world:
        node = world.nodes["eu"]
        assert "weir_region_questions_total" not in "".join(node.metrics())
        node.write_rules(world.rules["eu"].replace('"wait": "0"', '"wait": "50ms"'))
        line = node.reload()
        assert "event=reload_failed" in line and "restart" in line, line
