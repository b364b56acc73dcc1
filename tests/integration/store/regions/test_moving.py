# SPDX-License-Identifier: Apache-2.0
"""A change of homes by a file with `moving: true`, while nodes run: floors only, no restart."""

import json

from daemon.waiting import wait_until
from region_world import FLOOR, HOME, REGIONS, RATE, RegionWorld

LENT = 'weir_region_lent_total{limit="a"}'
MOVING = 'weir_region_moving{limit="a"}'


def limit(**parts):
    return {"name": "a", "key": ["user"], "algorithm": "fixed_window", "rate": f"{RATE}/300d",
            "on_store_error": "closed", "global": {"floor": "10%"} | parts}


def reload(world, name, parts, weights=None, more=None):
    """Gives a node a file with other parts, weights of regions, and regions."""
    rules = json.loads(world.rules[name])
    rules["limits"][0]["global"] = {"floor": "10%"} | parts
    for region, extra in (weights or {}).items():
        rules["regions"][region] |= extra
    rules["regions"] |= more or {}
    node = world.nodes[name]
    node.write_rules(json.dumps(rules))
    line = node.reload()
    assert "event=reloaded" in line, line
    return node


def test_a_key_that_moves_has_floors_until_its_new_home_has_the_file(tmp_path):
    with RegionWorld(tmp_path, limit(home="us")) as world:
        assert world.admitted("eu", "u1", FLOOR) == FLOOR
        total = world.admitted("us", "u0", 100)
        # mixtures of the old and the moving file
        moving = {"home": "eu", "moving": True}
        for name in REGIONS:
            node = reload(world, name, moving)
            wait_until(lambda node=node: node.metrics()[MOVING] == 1, what="the file")
            assert "event=homes_moving limits=1 wait_seconds=51840000" in node.text()
            total += world.admitted(name, "u0", 2 * FLOOR)
        assert total <= 100 + 2 * FLOOR  # us has used more than its floor
        for name in REGIONS:
            assert world.explained(name, "u0") == \
                f"    region {name}, home eu, floor 10%, moving: floors only"
            assert world.admitted(name, "u2") == FLOOR
            assert world.nodes[name].metrics()[LENT] == 0
        # the new file: the new home has its part at once, and what was used stays used
        node = reload(world, "eu", {"home": "eu"})
        assert "event=homes_moved limits=1" in node.text()
        assert world.admitted("eu", "u2") == HOME - FLOOR
        assert world.admitted("eu", "u1") == HOME - FLOOR


def test_a_region_joins_without_a_restart(tmp_path):
    """Keys that stay keep their home's part and are lent; those of the new region have floors."""
    with RegionWorld(tmp_path, limit(lend=True)) as world:
        before = {str(user): world.explained("eu", str(user)) for user in range(30)}
        new = {"sa": {"redis": "redis://127.0.0.1:1", "weight_before": 0}}
        for name in REGIONS:
            node = reload(world, name, {"moving": True}, more=new)
            assert "setting=regions" in node.wait_event("restart_needed")
        lines = {user: world.explained("eu", user) for user in before}
        moving = [user for user, line in lines.items() if line.endswith("moving: floors only")]
        stays = [user for user in before if user not in moving]
        assert moving and stays
        for user in moving:
            assert ", home sa, " in lines[user]
        user = next(user for user in stays if ", home us, " in before[user])
        assert world.admitted("eu", user, FLOOR) == FLOOR
        wait_until(lambda: world.admitted("eu", user, 1) == 1, what="a lent unit")
        for name in REGIONS:
            assert world.admitted(name, moving[0], 2 * FLOOR) == FLOOR
