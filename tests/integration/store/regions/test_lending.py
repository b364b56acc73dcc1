# SPDX-License-Identifier: Apache-2.0
"""Homes that lend: three regions with a real Redis each. What a home does not use is admitted in
other regions, and all regions together never admit more than the limit, whatever stops."""

import json
import signal

from daemon.stopped import stop
from daemon.waiting import wait_until
from region_world import FLOOR, HOME, RATE, REGIONS, TOKEN, RegionWorld

LENT = 'weir_region_lent_total{limit="a"}'


def limit(**parts):
    return {"name": "a", "key": ["user"], "algorithm": "fixed_window", "rate": f"{RATE}/300d",
            "on_store_error": "closed", "global": {"floor": "10%", "home": "us"}} | parts


def drain(world, user="u0"):
    """Uses up what all regions have left, shares that come back included."""
    def round_of_requests():
        found = {name: world.admitted(name, user, 60) for name in REGIONS}
        return sum(found.values())

    total, idle = 0, 0
    while idle < 3:
        found = round_of_requests()
        total += found
        idle = idle + 1 if found == 0 else 0
    return total


def used_in(world, name, wanted, user="u0"):
    """Sends requests in one region until so many were admitted; returns how many were."""
    total = 0

    def enough():
        nonlocal total
        total += world.admitted(name, user, 20)
        return total >= wanted

    wait_until(enough, what=f"{wanted} requests in {name}")
    return total


def test_a_region_abroad_has_its_floor_and_what_the_home_lends(tmp_path):
    """All of the limit can be used, and no more."""
    with RegionWorld(tmp_path, limit()) as world:
        total = used_in(world, "eu", HOME)
        assert world.nodes["eu"].metrics()[LENT] == total - FLOOR
        assert world.nodes["us"].metrics()[LENT] == 0
        # shares that are not used come back after seconds
        while total < RATE:
            more = drain(world)
            total += more
        assert total == RATE


def test_a_home_an_ocean_away(tmp_path):
    with RegionWorld(tmp_path, limit(), links=True) as world:
        world.links["eu", "us"].tell("delay", 0.3)
        total = used_in(world, "eu", HOME - FLOOR)
        total += drain(world)
        assert total <= RATE
        assert world.nodes["eu"].metrics()['weir_region_round_trip_seconds{region="us"}'] > 0.03


class Remembering(RegionWorld):
    """Each node remembers denials of its own Redis, as by default."""

    def section(self, stack, name):
        section = super().section(stack, name)
        del section[name]["redis"]["remember"]
        return section


def test_a_key_has_one_share_whether_its_floor_was_asked_or_remembered(tmp_path):
    with Remembering(tmp_path, limit(), links=True) as world:
        world.links["eu", "us"].tell("delay", 0.1)
        with world.nodes["eu"].client() as client:  # one connection has one worker
            admitted, shares = 0, 0
            while admitted < 3 * FLOOR or shares != 1:
                for _ in range(50):
                    admitted += client.check(attributes={"user": "u0"}).status == 200
                shares = world.nodes["eu"].metrics()['weir_region_shares{region="us"}']
                assert shares <= 1


def test_a_home_in_leased_mode_lends_too(tmp_path):
    with RegionWorld(tmp_path, limit(mode="leased")) as world:
        total = used_in(world, "eu", 2 * FLOOR) + used_in(world, "us", FLOOR)
        total += drain(world)
        assert total <= RATE


def test_the_home_knows_no_texts_of_keys(tmp_path):
    with RegionWorld(tmp_path, limit()) as world:
        used_in(world, "eu", 2 * FLOOR)
        for name in ("eu", "us"):
            states = world.redis[name].states("weir:*")
            assert states and not any("u0" in state for state in states), states


def test_a_reset_finds_the_states_that_are_named_by_digests(tmp_path):
    with RegionWorld(tmp_path, limit()) as world:
        world.admitted("us", "u0", HOME)
        wait_until(lambda: world.admitted("eu", "u0", 20) == 0, what="the end of the limit")
        assert world.admitted("us", "u0", 5) == 0
        with world.nodes["us"].admin() as client:
            assert client.request("DELETE", "/v1/limits/a/state?key=u0",
                                  {"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert world.admitted("us", "u0", 5) == 5


def test_a_stopped_home_costs_what_it_would_lend(tmp_path):
    """Floors remain; shares run out; nothing is above the limit when the home continues."""
    with RegionWorld(tmp_path, limit()) as world:
        total = used_in(world, "eu", 2 * FLOOR)
        stop(world.redis["us"].process)
        try:
            # asks until the breaker is open: no request waits for another region
            wait_until(lambda: world.admitted("ap", "u1", 5) >= 0 and
                       world.admitted("eu", "u1", 5) >= 0 and not world.reaches("eu", "us"),
                       what="the breaker")
            assert "event=region_down" in world.nodes["eu"].text() or \
                "event=region_breaker_open" in world.nodes["eu"].text()
            total += world.admitted("ap", "u0")
            total += world.admitted("eu", "u0")
            assert total <= RATE
            assert world.is_up("eu") and world.admitted("ap", "u2") >= FLOOR
        finally:
            world.redis["us"].process.send_signal(signal.SIGCONT)
        wait_until(lambda: world.reaches("eu", "us") and world.is_up("us"), what="the return")
        total += used_in(world, "eu", 1)
        total += drain(world)
        assert total <= RATE


def test_a_home_that_forgets_costs_its_part_at_most(tmp_path):
    with RegionWorld(tmp_path, limit()) as world:
        total = used_in(world, "eu", 3 * FLOOR)
        world.redis["us"].kill()
        world.redis["us"].start()
        wait_until(lambda: world.reaches("eu", "us") and world.is_up("us"), what="the return")
        total += drain(world)
        assert RATE <= total <= RATE + HOME


def test_a_region_that_is_cut_off_keeps_its_floor(tmp_path):
    with RegionWorld(tmp_path, limit(), links=True) as world:
        world.links["eu", "us"].tell("refuse")
        wait_until(lambda: not world.reaches("eu", "us"), what="the cut")
        assert world.admitted("eu", "u0") == FLOOR
        assert world.reaches("ap", "us") and world.is_up("eu")
        assert world.nodes["eu"].text().count("event=region_down") == 1
        world.links["eu", "us"].tell("pass")
        wait_until(lambda: world.reaches("eu", "us"), what="the return")
        total = FLOOR + used_in(world, "eu", FLOOR)
        assert total + drain(world) <= RATE


def test_shares_of_another_form_are_named_and_not_lent(tmp_path):
    """As a newer weir would keep them. When they are gone, lending continues."""
    with RegionWorld(tmp_path, limit()) as world:
        home, node = world.redis["us"], world.nodes["eu"]
        total = used_in(world, "eu", FLOOR + 1)
        shares = next(state for state in home.states() if "^" in state)
        home.ask("HSET", shares, "1", "x" * 89)

        def refused():
            nonlocal total
            total += world.admitted("eu", "u0", 20)
            return "event=region_error" in node.text()

        wait_until(refused, what="the error")
        line = node.wait_event("region_error")
        assert "level=warning" in line and "region=us" in line, line
        assert "holds shares of form 120, and this weir knows form 1" in line, line
        assert "u0" not in line
        assert world.is_up("eu") and world.reaches("eu", "us")
        home.ask("HDEL", shares, "1")
        total += used_in(world, "us", 1)
        while total < RATE:
            total += drain(world)
        assert total == RATE


def test_beside_shares_of_another_form_a_home_decides_exactly(tmp_path):
    """In leased mode: no request is left to `on_store_error`."""
    with RegionWorld(tmp_path, limit(mode="leased")) as world:
        home, node = world.redis["us"], world.nodes["us"]
        with node.client() as client:
            def ask():
                return client.check(attributes={"user": "u0"}).status

            wait_until(lambda: ask() and any("^" in state for state in home.states()),
                       what="a share")
            shares = next(state for state in home.states() if "^" in state)
            home.ask("HSET", shares, "1", "x" * 89)
            statuses = [ask() for _ in range(HOME)]
        assert set(statuses) <= {200, 429}
        assert "holds shares of form 120" in node.wait_event("store_error")


def test_a_node_that_stops_gives_its_shares_back(tmp_path):
    with RegionWorld(tmp_path, limit()) as world:
        total = used_in(world, "eu", 2 * FLOOR)
        world.nodes["eu"].stop()
        total += world.admitted("us", "u0") + world.admitted("ap", "u0")
        assert total <= RATE
        world.nodes["eu"].start()
        wait_until(lambda: world.is_up("eu") and world.reaches("eu", "us"), what="the node")
        assert total + drain(world) == RATE


def test_units_go_back_where_another_limit_denies(tmp_path):
    """The second decision is denied by a limit of its own region: what was lent is not lost."""
    own = {"name": "b", "key": ["user", "tier"], "on_missing": "skip", "rate": f"{FLOOR + 5}/300d",
           "algorithm": "fixed_window"}
    with RegionWorld(tmp_path, limit(), own) as world:
        with world.nodes["eu"].client() as client:
            def ask():
                return client.check(attributes={"user": "u0", "tier": "t"}).status == 200

            admitted = 0
            while admitted < FLOOR + 5:
                admitted += wait_until(ask, what="a lent unit")
            assert not any(ask() for _ in range(200))
        assert world.nodes["eu"].metrics()[LENT] == 5
        used_in(world, "us", HOME - 5)  # what eu held comes back


def test_metrics_explain_and_reload(tmp_path):
    with RegionWorld(tmp_path, limit()) as world:
        assert world.explained("eu", "u0") == \
            "    region eu, home us, floor 10%, then what us lends"
        assert world.explained("us", "u0") == "    region us, home us, home_share 80%"
        used_in(world, "eu", 2 * FLOOR)
        node = world.nodes["eu"]
        metrics = node.metrics()
        for name in REGIONS:
            assert metrics[f'weir_region_up{{region="{name}"}}'] == 1
        assert metrics['weir_region_round_trip_seconds{region="us"}'] > 0
        assert metrics['weir_region_calls_total{region="us"}'] > 0
        assert metrics['weir_region_shares{region="us"}'] >= 0
        assert metrics['weir_region_shares{region="ap"}'] == 0
        # another Redis for a region that lends: shares of the old one are out
        node.write_rules(world.rules["eu"].replace(world.proxies["us"].url, "redis://127.0.0.1:1"))
        line = node.reload()
        assert "event=reload_failed" in line and "restart" in line, line
        # another user of it: its connections stay those of the old one
        there = f'"{world.proxies["us"].url}"'
        node.write_rules(world.rules["eu"].replace(there, there + ', "user": "a", "password": "b"'))
        assert "event=reloaded" in node.reload()
        assert "setting=regions.redis" in node.wait_event("restart_needed")
        node.write_rules(world.rules["eu"].replace('"home": "us"', '"home": "us", "lend": false'))
        assert "event=reloaded" in node.reload()


RIGHTS = ("-@all", "+evalsha", "+script|load", "+time", "+get", "+set", "+del", "+getrange",
          "+setrange", "+strlen", "+hset", "+hdel", "+hgetall", "+pexpireat", "+ping", "+role")


def test_a_region_borrows_with_the_documented_rights(tmp_path):
    """And its user reaches neither the secret nor a key with another prefix."""
    with RegionWorld(tmp_path, limit()) as world:
        for name in ("us", "ap"):
            world.redis[name].ask("ACL", "SETUSER", "weir-eu", "on", ">secret", "~weir:{*", *RIGHTS)
        rules = json.loads(world.rules["eu"])
        for name in ("us", "ap"):
            rules["regions"][name]["redis"] |= {"user": "weir-eu", "password": "secret"}
        node = world.nodes["eu"]
        node.stop()
        node.write_rules(json.dumps(rules))
        node.start()
        wait_until(lambda: world.is_up("eu") and world.reaches("eu", "us"), what="the regions")
        used_in(world, "eu", 2 * FLOOR)
        assert node.metrics()[LENT] > 0
        assert "NOPERM" not in node.text()
        for words, allowed in ((("GET", "weir:{x}~y"), True), (("GET", "other"), False),
                               (("GET", "weir:secret"), False), (("FLUSHALL",), False)):
            reply = world.redis["us"].ask("ACL", "DRYRUN", "weir-eu", *words)
            assert (reply == "OK") == allowed, reply
