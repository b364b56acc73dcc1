# SPDX-License-Identifier: Apache-2.0
"""Three regions with a real Redis each: what they admit together, while all is well, while a region
is cut off from its Redis, and while its Redis is dead. No region lends: test_lending.py."""

import json

import pytest

from daemon.waiting import wait_until
from region_world import FLOOR, HOME, RATE, REGIONS, RegionWorld


SMALL = {"size": "256KiB"}


def limit(**parts):
    return {"name": "a", "key": ["user"], "algorithm": "fixed_window", "rate": f"{RATE}/300d",
            "global": {"floor": "10%", "home": "hash", "lend": False}} | parts


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_all_regions_admit_the_limit_together(tmp_path, mode):
    """The home has what the floors leave; each region has its part, in any order."""
    with RegionWorld(tmp_path, limit(mode=mode)) as world:
        homes = set()
        for user in ("0", "1", "4", "16"):
            home = world.home(user)
            homes.add(home)
            for name in REGIONS:
                part = HOME if name == home else FLOOR
                found = world.admitted(name, user)
                # a leased share may be in another place when the last request comes
                assert found == part if mode == "exact" else found <= part
        assert homes == set(REGIONS)


def test_equal_parts(tmp_path):
    with RegionWorld(tmp_path, limit(**{"global": {"floor": "1/3"}})) as world:
        assert [world.admitted(name, "u0", 120) for name in REGIONS] == [100, 100, 100]


def test_explain_names_region_home_and_part(tmp_path):
    named = limit(**{"global": {"floor": "10%", "home": "us", "lend": False}})
    with RegionWorld(tmp_path, named) as world:
        assert world.explained("us", "u0") == "    region us, home us, home_share 80%"
        assert world.explained("eu", "u0") == "    region eu, home us, floor 10%"


def test_metrics_name_the_region_and_count_what_floors_deny(tmp_path):
    named = limit(**{"global": {"floor": "10%", "home": "us", "lend": False}})
    denials = 'weir_region_floor_denials_total{limit="a"}'
    with RegionWorld(tmp_path, named) as world:
        assert world.admitted("eu", "u0", FLOOR + 7) == FLOOR
        assert world.admitted("us", "u0", HOME + 5) == HOME
        assert world.nodes["eu"].metrics()[denials] == 7
        assert world.nodes["us"].metrics()[denials] == 0  # the home's part denied
        for name in REGIONS:
            assert world.nodes[name].metrics()[f'weir_region_up{{region="{name}"}}'] == 1
        world.redis["eu"].kill()
        wait_until(lambda: world.nodes["eu"].metrics()['weir_region_up{region="eu"}'] == 0)


@pytest.mark.parametrize("fault", ["hold", "refuse"])
def test_a_region_cut_off_from_its_redis(tmp_path, fault):
    """`closed`: never above the limit, whatever is cut off; it continues where it was. The others
    notice nothing."""
    named = limit(on_store_error="closed", **{"global": {"floor": "10%", "home": "us", "lend": False}})
    with RegionWorld(tmp_path, named, deadline="1s") as world:
        before = world.admitted("us", "u0", 100)
        world.proxies["us"].tell(fault)
        wait_until(lambda: world.admitted("us", "u0", 1) == 0 and not world.is_up("us"),
                   what="the fault")
        assert world.admitted("us", "u0", 20) == 0
        assert world.admitted("eu", "u0") == FLOOR
        assert world.admitted("ap", "u0") == FLOOR
        world.proxies["us"].tell("pass")
        wait_until(lambda: world.is_up("us"), what="the return")
        # what was on its way when the fault came may have been charged
        after = world.admitted("us", "u0")
        assert HOME - 30 <= before + after <= HOME
        assert world.admitted("us", "u0", 5) == 0


def test_a_dead_redis_costs_its_part_at_most(tmp_path):
    """`local`: the region's node decides its region's part alone, so at most that part more."""
    named = limit(on_store_error="local", **{"global": {"floor": "10%", "home": "us", "lend": False}})
    with RegionWorld(tmp_path, named) as world:
        assert world.admitted("eu", "u0") == FLOOR
        world.redis["eu"].kill()
        wait_until(lambda: not world.is_up("eu"), what="the loss of Redis")
        assert world.admitted("eu", "u0") == FLOOR
        assert world.admitted("us", "u0") == HOME
        world.redis["us"].kill()
        wait_until(lambda: not world.is_up("us"), what="the loss of Redis")
        assert world.admitted("us", "u0") == HOME
        world.redis["eu"].start()  # and has forgotten all: its part again
        wait_until(lambda: world.is_up("eu"), what="the return of Redis")
        assert world.admitted("eu", "u0") == FLOOR


def test_a_reservation_is_settled_in_its_region(tmp_path):
    """Its token is signed by the secret of its region's Redis: what was charged in one region never
    comes back in another."""
    with RegionWorld(tmp_path, limit()) as world:
        def post(name, path, **fields):
            with world.nodes[name].client() as client:
                return client.post(path, fields)

        token = wait_until(
            lambda: post("us", "/v1/reserve", attributes={"user": "u0"},
                         cost=20).json.get("reservation"), what="the store's secret")
        for name in ("eu", "ap"):
            reply = post(name, "/v1/settle", reservation=token, cost=1)
            assert reply.status == 400, reply.body
        part = HOME if world.home("u0") == "us" else FLOOR
        assert world.admitted("us", "u0") == part - 20
        reply = post("us", "/v1/settle", reservation=token, cost=1)
        assert reply.status == 200, reply.body
        assert world.admitted("us", "u0") == 19


def test_a_running_node_stays_in_its_region(tmp_path):
    """With `self` changed, a node would admit one region's part by another one's Redis."""
    named = limit(**{"global": {"floor": "10%", "home": "us", "lend": False}})
    with RegionWorld(tmp_path, named) as world:
        node = world.nodes["eu"]
        node.write_rules(world.rules["us"])
        assert "event=reload_failed" in (line := node.reload()), line
        assert "regions" in line and "restart" in line
        assert world.admitted("eu", "u0") == FLOOR
        node.write_rules(world.rules["eu"].replace('"10%"', '"20%"'))
        assert "event=reloaded" in node.reload()
        assert world.admitted("eu", "u0") == FLOOR  # twice the floor, less what was used


def test_a_candidate_counts_its_part_in_each_region(tmp_path):
    named = limit(candidate=f"{RATE // 2}/300d",
                  **{"global": {"floor": "10%", "home": "us", "lend": False}})
    with RegionWorld(tmp_path, named) as world:
        for name, part in ("us", HOME), ("eu", FLOOR):
            node = world.nodes[name]
            assert world.admitted(name, "u0", part) == part

            def counted(outcome, node=node):
                return node.metrics()[f'weir_candidate_total{{limit="a",outcome="{outcome}"}}']

            wait_until(lambda part=part: counted("both_allow") + counted("stricter") == part,
                       what="the candidate's verdicts")
            assert counted("both_allow") == part // 2


def test_a_refused_reload_keeps_no_places_in_the_table(tmp_path):
    """Each refused file has 10 limits of its own; a few such files would fill the table."""
    named = limit(**{"global": {"floor": "10%", "home": "us", "lend": False}})

    def rules(text, number):
        others = [{"name": f"other{i}", "key": ["user"], "rate": f"{1000 + 10 * number + i}/h"}
                  for i in range(10)]
        return json.dumps(json.loads(text) | {"limits": [named, *others], "state": SMALL})

    with RegionWorld(tmp_path, named, state=SMALL) as world:
        node = world.nodes["eu"]
        for number in range(20):
            node.write_rules(rules(world.rules["us"], number))
            line = node.reload()
            assert "event=reload_failed" in line and "another Redis" in line, line
        node.write_rules(rules(world.rules["eu"], 20))
        assert "event=reloaded" in (line := node.reload()), line
