# SPDX-License-Identifier: Apache-2.0
"""A fleet without Redis: three weir nodes with `sticky`, of which one counts each user. Windows outlive
the test, so that what is used is a sum."""

import collections
import json
import re
import signal
import socket
import threading
from contextlib import ExitStack

import pytest

from daemon.certificates import Authority
from daemon.stopped import stop
from daemon.waiting import wait_until
from daemon.weir import Weir
from sticky_fleet import NAMES, RATE, TOKEN, USERS, Fleet, limit

def test_a_key_used_at_all_nodes_admits_exactly_the_limit(tmp_path):
    with Fleet(tmp_path) as fleet:
        homes = collections.Counter(fleet.home(user) for user in USERS)
        assert set(homes) == set(NAMES)
        for user in USERS:
            counts = [fleet.statuses(name, user, RATE).count(200) for name in NAMES]
            assert counts == [RATE, 0, 0]
        for user in ("x", "y", "z"):  # and in turns
            statuses = [fleet.statuses(name, user, 1)[0] for _ in range(RATE) for name in NAMES]
            assert statuses == [200] * RATE + [429] * 2 * RATE


def test_clients_of_all_nodes_at_once_are_admitted_exactly_the_limit(tmp_path):
    with Fleet(tmp_path) as fleet:
        admitted = collections.Counter()

        def client(name):
            for user in USERS:
                admitted[name, user] += fleet.statuses(name, user, RATE).count(200)

        threads = [threading.Thread(target=client, args=(name,)) for name in NAMES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for user in USERS:
            assert sum(admitted[name, user] for name in NAMES) == RATE


LIMITS = {
    "fixed_window": {"algorithm": "fixed_window", "rate": "20/300d"},
    "sliding_window": {"algorithm": "sliding_window", "rate": "20/300d"},
    "segments": {"algorithm": "sliding_window", "rate": "20/300d", "segments": 30},
    "sliding_log": {"algorithm": "sliding_log", "rate": "20/300d"},
    "token_bucket": {"algorithm": "token_bucket", "rate": "20/300d"},
    "gcra": {"algorithm": "gcra", "rate": "20/300d", "burst": 7},
    "quota": {"quota": "20/month", "algorithm": None},
}


@pytest.mark.parametrize("kind", LIMITS)
def test_every_node_answers_what_the_home_would(tmp_path, kind):
    """remaining, limit, the name, and times up to the moment that passes."""
    parts = {name: value for name, value in (limit() | LIMITS[kind]).items()
             if value is not None and not (name == "rate" and "quota" in LIMITS[kind])}
    with Fleet(tmp_path, parts) as fleet:
        user = fleet.user_of("b")
        answers = []
        for i in range(24):
            reply = fleet[NAMES[i % 3]].check(attributes={"user": user}, cost=1)
            (one,) = reply.json["limits"]
            answers.append((reply.status, one["name"], one["limit"], one["remaining"]))
            peeks = [fleet[name].check(attributes={"user": user}, dry_run=True) for name in NAMES]
            names = {tuple(sorted(peek.fields)) for peek in peeks}
            assert len(names) == 1 and len({peek["ratelimit-policy"] for peek in peeks}) == 1
            seen = {(peek.status, json.dumps([{key: value for key, value in one.items()
                                               if not key.endswith("_ms")}
                                              for one in peek.json["limits"]])) for peek in peeks}
            assert len(seen) == 1
        most = 7 if kind == "gcra" else 20
        assert answers == [(200, "per-user", most, most - 1 - i) for i in range(most)] + \
            [(429, "per-user", most, 0)] * (24 - most)


def test_several_limits_are_one_decision_and_per_node_limits_count_where_it_is_made(tmp_path):
    limits = (limit(rate="10/300d"), limit(name="path", key=["user", "item"], rate="4/300d"),
              limit(name="node", key=[], rate="1000/300d", per_node=True))
    with Fleet(tmp_path, *limits) as fleet:
        user, admitted = fleet.user_of("c"), 0
        for path, most in (("/1", 4), ("/2", 4), ("/3", 2), ("/4", 0)):
            for i in range(6):
                with fleet[NAMES[i % 3]].client() as client:
                    reply = client.check(attributes={"user": user, "item": path})
                admitted += reply.status == 200
                assert (reply.status == 200) == (i < most)
        assert admitted == 10
        used = [fleet[name].check(attributes={"user": fleet.user_of(name)}, dry_run=True)
                .json["limits"][-1]["remaining"] for name in NAMES]
        assert used == [1000, 1000, 990]


def test_plans_idempotency_keys_refunds_and_resets_reach_the_home(tmp_path):
    with Fleet(tmp_path) as fleet:
        user = fleet.user_of("a")
        for name in NAMES:
            assert fleet.statuses(name, user, 2, idempotency_key="once") == [200, 200]
        left = fleet["c"].check(attributes={"user": user}).json["limits"][0]["remaining"]
        assert left == RATE - 2
        assert command(fleet, "b", "WEIR.REFUND", "user", user)[:1] == b"*"
        assert fleet["c"].check(attributes={"user": user}, dry_run=True) \
            .json["limits"][0]["remaining"] == RATE - 1
        assert command(fleet, "b", "WEIR.RESET", "user", user) == b":1\r\n"
        assert fleet.statuses("c", user, RATE + 1).count(200) == RATE


@pytest.mark.parametrize("per_node", [True, False])
def test_each_node_warns_once_of_a_threshold(tmp_path, per_node):
    with Fleet(tmp_path, limit(rate="10/300d", warn_at="50%", per_node=per_node)) as fleet:
        used = {name: 6 if per_node else 3 for name in NAMES}
        for name in NAMES:
            assert fleet.statuses(name, "u", used[name]) == [200] * used[name]
        expected = [1, 1, 1] if per_node else [0, 1, 1]  # of 10 units, 3, 6 and 9 are used
        found = [sum(value for key, value in fleet[name].metrics().items()
                     if key.startswith("weir_warnings_total{")) for name in NAMES]
        assert found == expected


def test_a_quota_of_another_rate_is_counted_by_its_home(tmp_path):
    """The home has its calendar, and not the number: a file that is rolled out."""
    quota = {"name": "per-user", "key": ["user"], "quota": "20/year"}
    with Fleet(tmp_path, quota, on_store_error="closed") as fleet:
        user = fleet.user_of("b")
        fleet.limits = (quota | {"quota": "30/year"},)
        fleet["a"].write_rules(fleet.rules("a"))
        assert "event=reloaded" in fleet["a"].reload()
        assert fleet.statuses("a", user, 25) == [200] * 25
        assert fleet.statuses("c", user, 1) == [429]
        assert fleet.statuses("a", user, 6) == [200] * 5 + [429]


def encode(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def command(fleet, name, *words, token=TOKEN):
    with socket.create_connection(("127.0.0.1", fleet.ports[name]), 60) as sock:
        if token:
            sock.sendall(encode("AUTH", token))
            assert sock.recv(100) == b"+OK\r\n"
        sock.sendall(encode(*words))
        return sock.recv(65536)


def test_a_limit_of_a_command_is_one_limit_in_the_table(tmp_path):
    """It counts at the node that is asked, so it has no part for a store that fails."""
    with Fleet(tmp_path) as fleet:
        before = fleet["a"].metrics()["weir_table_params"]
        assert command(fleet, "a", "CL.THROTTLE", "k", "14", "100", "1000").startswith(b"*5\r\n:0")
        assert fleet["a"].metrics()["weir_table_params"] == before + 1


@pytest.mark.parametrize("failure, status", [("open", 200), ("closed", 503), ("local", None)])
def test_a_node_that_is_killed_costs_its_keys_and_no_others(tmp_path, failure, status):
    with Fleet(tmp_path, on_store_error=failure) as fleet:
        lost, kept = fleet.user_of("b"), fleet.user_of("c")
        assert fleet.statuses("a", lost, RATE + 1).count(200) == RATE
        assert fleet.statuses("a", kept, RATE + 1).count(200) == RATE
        fleet["b"].kill()
        wait_until(lambda: not fleet.up("a", "b"), what="the dead node's absence")
        assert set(fleet.statuses("a", kept, 3)) == {429}
        statuses = fleet.statuses("a", lost, RATE)
        if failure == "local":  # this node's third
            assert statuses.count(200) == RATE // 3
        else:
            assert set(statuses) == {status}
        fleet["b"].start()
        fleet.wait_up("a")
        assert fleet.statuses("a", lost, RATE + 5).count(200) == RATE  # it starts from nothing


def test_a_node_that_is_stopped_is_not_waited_for_and_comes_back_with_its_counts(tmp_path):
    with Fleet(tmp_path, deadline="200ms", on_store_error="closed") as fleet:
        user = fleet.user_of("b")
        wait_until(lambda: fleet.statuses("a", user, 1) == [200])  # a busy machine may be late
        stop(fleet["b"].process)
        try:
            assert set(fleet.statuses("a", user, 5)) == {503}
            wait_until(lambda: not fleet.up("a", "b"), what="the stopped node's absence")
        finally:
            fleet["b"].signal(signal.SIGCONT)
        fleet.wait_up("a")
        wait_until(lambda: 429 in fleet.statuses("a", user, 1), what="the counts that it had")
        used = fleet["b"].metrics()['weir_peer_up{peer="a"}']
        assert used == 1


def test_files_that_differ_send_nothing_in_circles(tmp_path):
    """Each takes another for the home of every key: the node that is asked decides."""
    fleet = Fleet(tmp_path)
    swapped = {"a": {"b": "c"}, "b": {"b": "c", "c": "b"}, "c": {}}
    with ExitStack() as stack:
        fleet.nodes = {}
        for name in NAMES:
            other = {key: fleet.ports[to] for key, to in swapped[name].items()}
            if len(set((fleet.ports | other).values())) < 3:
                other = {"b": fleet.ports["c"], "c": fleet.ports["b"]}
            fleet.nodes[name] = stack.enter_context(Weir(
                fleet.folder / name, fleet.rules(name, fleet.peers(**other)), "--workers", 1))
        for name in NAMES:
            fleet.wait_up(name)
        for user in USERS:
            admitted = sum(fleet.statuses(name, user, RATE + 5).count(200) for name in NAMES)
            assert RATE <= admitted <= 2 * RATE


def test_peers_over_tls(tmp_path):
    authority = Authority(tmp_path)
    with Fleet(tmp_path, tls=authority) as fleet:
        user = fleet.user_of("b")
        assert [fleet.statuses(name, user, RATE).count(200) for name in NAMES] == [RATE, 0, 0]


NONSENSE = {
    "a wrong type": b":1\r\n",
    "an error": b"-ERR no\r\n",
    "an empty answer": b"$0\r\n\r\n",
    "an answer of another version": b"$12\r\n\x02" + bytes(11) + b"\r\n",
    "no protocol": b"HTTP/1.1 200 OK\r\n\r\n",
    "a reply without an end": b"$99999999\r\n",
}


class Liar:
    """Answers the handshake as a server does, and WEIR.DECIDE with nonsense."""

    def __init__(self, port, nonsense):
        self.nonsense, self.asked = nonsense, 0
        self.socket = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                asked = data.count(b"WEIR.DECIDE")
                self.asked += asked
                words = re.findall(rb"\$\d+\r\n(AUTH|CLIENT|PING|ROLE|WEIR.DECIDE)\r\n", data)
                answers = {b"ROLE": b"-ERR unknown command\r\n", b"PING": b"+PONG\r\n",
                           b"WEIR.DECIDE": self.nonsense}
                try:
                    connection.sendall(b"".join(answers.get(word, b"+OK\r\n") for word in words))
                except OSError:
                    return

    def close(self):
        self.socket.close()


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_a_peer_that_answers_nonsense_decides_nothing(tmp_path, nonsense):
    fleet = Fleet(tmp_path, deadline="1s", on_store_error="closed")
    liar = Liar(fleet.ports["b"], NONSENSE[nonsense])
    with ExitStack() as stack:
        stack.callback(liar.close)
        fleet.nodes = {"a": stack.enter_context(Weir(tmp_path / "a", fleet.rules("a"), "--workers", 1))}
        user = fleet.user_of("b")
        wait_until(lambda: set(fleet.statuses("a", user, 1)) == {503} and liar.asked > 0)
        assert set(fleet.statuses("a", user, 3)) == {503}
        assert set(fleet.statuses("a", fleet.user_of("a"), 3)) == {200}


def test_only_a_trusted_listener_with_the_token_decides_for_others(tmp_path):
    with Fleet(tmp_path) as fleet:
        assert command(fleet, "a", "WEIR.DECIDE", "x", token=None).startswith(b"-NOAUTH")
        for message in (b"", b"x", b"\x01\x00\x00\x01" + bytes(12), b"\x02" + bytes(15), bytes(5000)):
            assert command(fleet, "a", "WEIR.DECIDE", message).startswith(b"-ERR WEIR.DECIDE: ")
        assert command(fleet, "a", "WEIR.DECIDE", b"\x01" + bytes(15)).startswith(b"$12\r\n\x01\x01")
    with Weir(tmp_path, json.dumps({"version": 1, "limits": []}), "--redis", "127.0.0.1:0") as weir:
        (line,) = [line for line in weir.text().splitlines() if "front=redis" in line]
        port = int(line.split("address=")[1].split()[0].rpartition(":")[2])
        fleet.ports["a"] = port
        assert b"without the section `sticky`" in command(fleet, "a", "WEIR.DECIDE", "x", token=None)


def test_a_reload_that_would_change_the_home_of_keys_is_refused(tmp_path):
    """By another attribute, or without the section: the node continues as it was. The same for a
    section that is new."""
    with Fleet(tmp_path, limit(key=["user", "path"])) as fleet:
        node, rules = fleet["a"], json.loads(fleet.rules("a"))
        node.write_rules(json.dumps(rules | {"sticky": rules["sticky"] | {"by": "path"}}))
        assert "`by` has changed" in node.reload()
        alone = {name: rules[name] for name in rules if name != "sticky"}
        node.write_rules(json.dumps(alone))
        assert "`sticky` was removed" in node.reload()
        assert fleet.up("a", "b")
    with Weir(tmp_path / "a", json.dumps(alone)) as node:
        node.write_rules(json.dumps(rules))
        assert "`sticky` is new" in node.reload()
