# SPDX-License-Identifier: Apache-2.0
"""Three nodes over one Redis are upgraded one after the other: scripts of both versions decide on the
same states, and what all nodes admit together stays exact."""

import hashlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon.nodes import Nodes, shared_rules
from daemon.redis import Redis
from model.program import weir_path

BUDGET = 120
EACH = 8  # requests of one client for each limit: 120 in three upgrades
# Windows so long that none ends while a test runs.
LIMITS = {
    "fixed_window": {"algorithm": "fixed_window", "rate": f"{BUDGET}/366d"},
    "sliding_window": {"algorithm": "sliding_window", "rate": f"{BUDGET}/360d"},
    "segments": {"algorithm": "sliding_window", "rate": f"{BUDGET}/360d", "segments": 60, "strict": True},
    "sliding_log": {"algorithm": "sliding_log", "rate": f"{BUDGET}/360d"},
    "gcra": {"algorithm": "gcra", "rate": "1/366d", "burst": BUDGET},
}
PAIR = [{"name": f"pair-{i}", "match": {"kind": "pair"}, "key": [] if i else ["user"], **LIMITS[kind]}
        for i, kind in enumerate(("gcra", "sliding_log"))]
SLOTS = {"name": "slots", "match": {"kind": "slots"}, "key": [], "algorithm": "concurrency",
         "limit": 3, "life": "1h"}
KINDS = [*LIMITS, "pair"]


def scripts_in(program):
    """(offset, text) of each script: a string whose SHA-1 is in the program, too."""
    offset, hashes = 0, set(re.findall(rb"\b[0-9a-f]{40}(?=\0)", program))
    for string in program.split(b"\0"):
        if len(string) > 200 and hashlib.sha1(string).hexdigest().encode() in hashes:
            yield offset, string
        offset += len(string) + 1


@pytest.fixture(name="older", scope="module")
def fixture_older(tmp_path_factory):
    """The program as of another version: each of its scripts ends otherwise, and has another hash.
    Also the pairs of hashes, (its own, this version's)."""
    program = bytearray(Path(weir_path()).read_bytes())
    pairs = []
    for offset, text in list(scripts_in(bytes(program))):
        assert text.endswith(b"\n")
        changed = text[:-1] + b" "
        old, new = (hashlib.sha1(one).hexdigest() for one in (changed, text))
        program[offset:offset + len(text)] = changed
        at = program.index(new.encode())
        program[at:at + len(new)] = old.encode()
        pairs.append((old, new))
    path = tmp_path_factory.mktemp("older") / "weir"
    path.write_bytes(program)
    os.chmod(path, 0o755)
    return path, pairs


def ask_all(nodes, index):
    """EACH requests for each limit, at one node: how many were admitted, by limit."""
    return {kind: sum(nodes.ask(index, kind=kind, user="all")[0] for _ in range(EACH))
            for kind in KINDS}


def used(nodes, index):
    """What a node says is used of each limit."""
    found = {}
    for kind in KINDS:
        _, limits = nodes.ask(index, dry_run=True, kind=kind, user="all")
        [remaining] = {limit["remaining"] for limit in limits.values()}
        found[kind] = BUDGET - remaining
    return found


def scripts_known(redis, hashes):
    with Redis(f"127.0.0.1:{redis.port}") as client:
        return client.ask("SCRIPT", "EXISTS", *hashes)


def test_counts_stay_exact_while_three_nodes_are_upgraded_in_turn(tmp_path, redis, older):
    program, pairs = older
    assert len(pairs) >= 10  # one for each algorithm, and those of several
    limits = [{"name": name.replace("_", "-"), "match": {"kind": name}, "key": ["user"], **limit}
              for name, limit in LIMITS.items()]
    rules = shared_rules(redis.url, *limits, *PAIR, SLOTS)
    nodes = Nodes(tmp_path, 3, rules)
    for weir in nodes.weirs:
        weir.command[0] = str(program)
    with nodes:
        leases = [nodes[i].check(attributes={"kind": "slots"}).json["lease"] for i in range(3)]
        assert not any(scripts_known(redis, [new for _, new in pairs]))
        admitted = dict.fromkeys(KINDS, 0)
        for i, weir in enumerate(nodes.weirs):
            others = [other for other in range(3) if other != i]
            with ThreadPoolExecutor(4) as pool:
                asked = [pool.submit(ask_all, nodes, other) for other in others * 2]
                assert weir.stop() == 0
                weir.command[0] = weir_path()
                weir.start()
            nodes.wait_up()
            for some in [*(one.result() for one in asked), ask_all(nodes, i)]:
                admitted = {kind: admitted[kind] + some[kind] for kind in KINDS}
            assert admitted == dict.fromkeys(KINDS, 5 * EACH * (i + 1))
            assert all(used(nodes, node) == admitted for node in range(3))
        assert not any(sum(ask_all(nodes, node).values()) for node in range(3))  # nothing is left
        # Leases of the old version end at the new one.
        assert nodes[0].check(attributes={"kind": "slots"}).status == 429
        for i, lease in enumerate(leases):
            with nodes[i].client() as client:
                assert client.post("/v1/release", {"lease": lease}).status in (200, 204)
        assert nodes[0].check(attributes={"kind": "slots"}).status == 200
    # Both versions of what was used are in this Redis, side by side.
    old, new = (scripts_known(redis, hashes) for hashes in zip(*pairs))
    assert old == new and sum(old) >= 8
