# SPDX-License-Identifier: Apache-2.0
"""A history of standing on a disk that hangs: calls that write it do not return. Decisions, changes and the stop
do not wait for it longer than they say."""

from server.standing.hung_disk import HungDisk
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from server.test_standing_history import ban, entries, expect_waiting, expect_written, level


def start(folder):
    disk = HungDisk(folder, folder / "standing.db")
    limits = [{"name": "all", "key": ["user"], "rate": "1000/s"},
              {"name": "one", "match": {"path": "/one"}, "key": ["user"], "rate": "1/d"}]
    penalty = {"name": "greedy", "key": "user", "strikes": "3/h", "for": ["one"], "ladder": ["suspend 1h"]}
    rules = rules_of(*limits, standing={"by": ["user"], "file": str(folder / "standing.db"), "entries": 1000},
                     penalties=[penalty], state={"file": str(folder / "state"), "size": "1MiB"},
                     server={"admin": {"address": f"unix:{folder}/admin"}})
    return disk, Weir(folder, rules, "--workers", "1", admin=None, env=disk.env)


def test_changes_and_penalties_are_in_force_while_the_disk_hangs_and_written_afterwards(tmp_path):
    disk, server = start(tmp_path)
    with server as weir:
        assert ban(weir, "before")[0] == 200
        with disk:
            expect_waiting(weir, "ann")
            assert ban(weir, "bob")[0] == 202 and level(weir, "bob") == "suspended"
            with weir.client() as client:
                for _ in range(10):
                    client.check(path="/one", attributes={"user": "eve"})
            wait_until(lambda: level(weir, "eve") == "suspended", what="the penalty")
            assert weir.check(attributes={"user": "good"}).status == 200
        expect_written(weir, tmp_path, {"before", "ann", "bob", "eve"})
        assert weir.stop() == 0


def test_a_stop_does_not_wait_for_a_disk_that_hangs(tmp_path):
    disk, server = start(tmp_path)
    with server as weir:
        assert ban(weir, "before")[0] == 200
        with disk:
            expect_waiting(weir, "ann")
            assert weir.stop() == 0
            lost = [line for line in weir.text().splitlines() if "event=standing_change_lost" in line]
            assert any("ann" in line for line in lost)
        weir.start()  # by the map
        assert level(weir, "ann") == level(weir, "before") == "suspended"
        wait_until(lambda: "before" in entries(tmp_path))
