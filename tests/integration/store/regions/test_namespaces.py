# SPDX-License-Identifier: Apache-2.0
"""Three regions on machines of their own, each a network namespace with a node and a real Redis. Every
round trip between them takes 60 ms. nft rules cut a region off, in one way or both. All regions
together never admit more than the limit, a region that is alone has its part, and lending continues
after the cut."""

import os
from contextlib import ExitStack

import pytest

from daemon.fault_proxy import FaultProxy
from daemon.redis_server import RedisServer
from daemon.waiting import wait_until
from daemon.weir import Weir
from network.machines import CUTS, Machines
from region_world import FLOOR, HOME, RATE, REGIONS, RegionWorld

LIMIT = {"name": "a", "key": ["user"], "algorithm": "fixed_window", "rate": f"{RATE}/300d",
         "on_store_error": "closed", "global": {"floor": "10%", "home": "us"}}
LENT = 'weir_region_lent_total{limit="a"}'
ROUND_TRIP = 0.06


class FarWorld(RegionWorld):
    """A proxy on each machine makes its Redis as late for the other regions as it is far away. What
    nodes send to it crosses the cable, with its rules."""

    def __enter__(self):
        with ExitStack() as stack:
            self.machines = stack.enter_context(Machines(REGIONS))
            for name in REGIONS:
                with self.machines.entered(name):
                    redis = RedisServer(self.folder / f"redis-{name}")
                    self.redis[name] = stack.enter_context(redis)
                    proxy = FaultProxy(redis.port, self.machines.addresses[name])
                    self.proxies[name] = stack.enter_context(proxy)
                proxy.tell("delay", ROUND_TRIP)
            for name in REGIONS:
                folder = self.folder / name
                folder.mkdir()
                self.rules[name] = self.document(stack, name)
                with self.machines.entered(name):
                    self.nodes[name] = stack.enter_context(
                        Weir(folder, self.rules[name], http=f"unix:{folder}/http", admin=f"unix:{folder}/admin"))
            for name in REGIONS:
                wait_until(lambda name=name: self.sees_all(name), what=f"the regions that {name} reaches")
            self.stack = stack.pop_all()
        return self

    def admitted(self, name, user, requests=RATE + 20):
        """No request fails: one that waited for a region that is cut off would, after the deadline."""
        with self.nodes[name].client() as client:
            statuses = [client.check(attributes={"user": user}).status for _ in range(requests)]
        assert set(statuses) <= {200, 429}
        return statuses.count(200)

    def section(self, stack, name):
        urls = {other: self.proxies[other].url for other in REGIONS} | {name: self.redis[name].url}
        return {other: {"redis": {"url": url, "remember": "off"}} for other, url in urls.items()}

    def sees_all(self, name):
        return self.is_up(name) and all(self.reaches(name, other) for other in REGIONS if other != name)

    def cut_off(self, name, how):
        for other in REGIONS:
            if other != name:
                self.machines.cut(name, other, how)

    def heal(self, name):
        for other in REGIONS:
            if other != name:
                self.machines.heal(name, other)


@pytest.fixture(name="world", scope="module")
def fixture_world(tmp_path_factory, redis_program):
    with FarWorld(tmp_path_factory.mktemp("far"), LIMIT) as world:
        yield world


def spend(world, name, user, wanted):
    """Sends requests in a region until so many were admitted; returns how many were."""
    total = 0

    def enough():
        nonlocal total
        total += world.admitted(name, user, 10)
        return total >= wanted

    wait_until(enough, what=f"{wanted} requests in {name}")
    return total


def spend_all(world, user):
    """Sends requests in all regions until none is admitted in three rounds."""
    total, idle = 0, 0
    while idle < 3:
        found = sum(world.admitted(name, user, 40) for name in REGIONS)
        total += found
        idle = 0 if found else idle + 1
    return total


def knows_cut(world, name, user):
    """Whether a node knows that it does not reach the home: a call that is not answered says so.
    Requests beyond the floor make it ask."""
    world.admitted(name, user, FLOOR)
    return not world.reaches(name, "us")


@pytest.mark.parametrize("how", CUTS)
def test_a_region_that_is_cut_off_has_its_floor(world, how):
    user = f"floor, {how}"
    total = spend(world, "eu", user, 2 * FLOOR)
    world.cut_off("eu", how)
    try:
        fresh = [f"{user}, {number}" for number in range(4)]  # keys without shares
        for each in fresh:
            assert world.admitted("eu", each, FLOOR + 5) == FLOOR
        total += world.admitted("eu", user)  # what it holds
        total += world.admitted("us", user, 60) + world.admitted("ap", user, 60)
        assert FLOOR < total <= RATE
        if how == "both ways":  # the others show it as soon
            wait_until(lambda: knows_cut(world, "eu", fresh[0]), what="the cut")
        # the home lends to the others, and what the region asks for does not come
        assert spend(world, "ap", f"{user}, ap", 2 * FLOOR) > FLOOR
        assert not any(world.admitted("eu", each, 5) for each in fresh)
    finally:
        world.heal("eu")
    wait_until(lambda: world.sees_all("eu"), what="the return")
    before = world.nodes["eu"].metrics()[LENT]
    of_fresh = FLOOR + spend(world, "eu", fresh[0], 1)
    assert world.nodes["eu"].metrics()[LENT] > before
    assert of_fresh + spend_all(world, fresh[0]) <= RATE
    assert total + spend_all(world, user) <= RATE


def test_a_home_that_is_cut_off_has_what_it_has_not_lent(world):
    user = "home"
    total = spend(world, "eu", user, 2 * FLOOR) + spend(world, "ap", user, 2 * FLOOR)
    world.cut_off("us", "both ways")
    try:
        assert world.admitted("us", "home, unused") == HOME
        assert world.admitted("eu", "home, fresh") == FLOOR
        total += world.admitted("us", user) + world.admitted("eu", user) + world.admitted("ap", user)
        assert total <= RATE
        assert world.admitted("eu", "home, fresh", 5) == 0
    finally:
        world.heal("us")
    for name in REGIONS:
        wait_until(lambda name=name: world.sees_all(name), what="the return")
    assert total + spend_all(world, user) <= RATE


def test_all_regions_alone(world):
    user = "alone"
    total = spend(world, "eu", user, 2 * FLOOR)
    world.cut_off("eu", "both ways")
    world.machines.cut("ap", "us", "reset")
    try:
        for name in REGIONS:
            part = HOME if name == "us" else FLOOR
            assert world.admitted(name, "alone, unused") == part
            total += world.admitted(name, user)
        assert total <= RATE
    finally:
        world.heal("eu")
        world.machines.heal("ap", "us")
    for name in REGIONS:
        wait_until(lambda name=name: world.sees_all(name), what="the return")
    assert total + spend_all(world, user) <= RATE


def test_nothing_is_left_of_machines():
    try:
        with Machines(("a", "b")) as machines:
            holders = list(machines.holders.values())
            raise ValueError
    except ValueError:
        pass
    assert not any(os.path.exists(f"/proc/{holder}") for holder in holders)
