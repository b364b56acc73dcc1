# SPDX-License-Identifier: Apache-2.0
"""A fleet without Redis whose list of nodes changes while it is used."""

import collections
import json
import threading
from contextlib import contextmanager

from daemon.certificates import Authority
from daemon.proxies import free_port
from daemon.waiting import wait_until
from sticky_fleet import NAMES, RATE, USERS, Fleet

FRESH = [f"fresh{i}" for i in range(12)]


@contextmanager
def load(fleet, names):
    """One client a node asks for all users again and again; {(user, status): number}."""
    counts, stop, lock = collections.Counter(), threading.Event(), threading.Lock()

    def client(name):
        with fleet[name].client() as connection:
            while not stop.is_set():
                for user in (*USERS, *FRESH):
                    status = connection.check(attributes={"user": user}).status
                    with lock:
                        counts[user, status] += 1

    threads = [threading.Thread(target=client, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def change(fleet, names, members):
    """Gives the list to nodes, one after the other, and waits until they reach all of it."""
    text = "".join(line for line in fleet.peers().splitlines(True) if line.split()[0] in members)
    for name in names:
        (fleet.folder / name / "peers").write_text(text, encoding="utf-8")
        assert "event=reloaded" in fleet[name].reload()
    for name in names:
        fleet.wait_up(name, members)
        assert f"event=peers_changed nodes={len(members)} " in fleet[name].text()


def use_up(fleet, names, users, counts):
    for name in names:
        for user in users:
            for status in fleet.statuses(name, user, RATE + 1):
                counts[user, status] += 1


def homes_of(fleet, by):
    return {user: fleet.home(user, by) for user in (*USERS, *FRESH)}


def test_a_node_joins_and_another_leaves_under_load(tmp_path):
    """No request fails; a key whose home stays has its limit once, one that moves at most twice."""
    with Fleet(tmp_path, on_store_error="closed", deadline="10s") as fleet:
        total = collections.Counter()
        use_up(fleet, ("a",), USERS, total)
        before = homes_of(fleet, "a")
        fleet.ports["d"] = free_port()
        fleet.start("d")
        with load(fleet, NAMES) as counts:
            change(fleet, NAMES, (*NAMES, "d"))
            use_up(fleet, ("d", *NAMES), (*USERS, *FRESH), total)
        total += counts
        after = homes_of(fleet, "a")
        moved = {user for user in before if before[user] != after[user]}
        assert {after[user] for user in moved} == {"d"}
        assert moved & set(USERS)
        for user in before:
            most = 2 * RATE if user in moved else RATE
            assert RATE <= total[user, 200] <= most
            if user in USERS:  # used up before the list changed
                assert total[user, 200] == most
        rest, first = ("a", "c", "d"), total.copy()
        with load(fleet, rest) as counts:
            change(fleet, rest, rest)
            use_up(fleet, rest, (*USERS, *FRESH), total)
            assert fleet["b"].stop() == 0  # nobody asks it any more
            use_up(fleet, rest, USERS[:1], total)
        total += counts
        for user in before:
            assert total[user, 200] - first[user, 200] == (RATE if after[user] == "b" else 0)
        assert {status for _, status in total} == {200, 429}
        assert not any('peer="b"' in name for name in fleet["a"].metrics())


def test_a_list_in_which_this_node_is_another_one_is_refused(tmp_path):
    with Fleet(tmp_path, names=("a", "b")) as fleet:
        node, rules = fleet["a"], json.loads(fleet.rules("a"))
        (fleet.folder / "a" / "peers").write_text(fleet.peers().replace("a redis", "x redis"))
        assert "event=reload_failed" in node.reload()
        assert "names no peer of the file: `a`" in node.text()
        node.write_rules(json.dumps(rules | {"sticky": rules["sticky"] | {"self": "x"}}))
        assert "`self` was a and is x" in node.reload()
        peers = fleet.peers() + "c redis://:hidden@127.0.0.1:99999\n"
        node.write_rules(fleet.rules("a", peers))
        line = node.reload()
        assert "event=reload_failed" in line and "sticky.peers, c: " in line, line
        assert fleet.up("a", "b")
        assert "peers_changed" not in node.text() and "hidden" not in node.text()


def test_another_token_or_authority_is_used_from_a_reload_on(tmp_path):
    """Also by --watch, which sees the list alone change."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    with Fleet(tmp_path, names=("a", "b"), tls=authority, options=("--watch",)) as fleet:
        node, rules = fleet["a"], json.loads(fleet.rules("a"))
        for wrong in ({"token": "x" * 32}, {"tls": {"ca": str(other.cert)}}):
            node.write_rules(json.dumps(rules | {"sticky": rules["sticky"] | wrong}))
            wait_until(lambda: not fleet.up("a", "b"), what="the refusal")
            node.write_rules(json.dumps(rules))
            fleet.wait_up("a", ("b",))
        assert "restart_needed" not in node.text()
        (fleet.folder / "a" / "peers").write_text(fleet.peers() + "c rediss://localhost:1\n")
        assert "nodes=3 joined=c" in wait_line(node, "joined=c")


def wait_line(node, part):
    wait_until(lambda: part in node.text(), what=part)
    return next(line for line in node.text().splitlines() if part in line)
