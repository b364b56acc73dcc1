# SPDX-License-Identifier: Apache-2.0
"""The table's list of limits: reloads and commands that make up limits never fill it for good."""

from daemon.redis import Error, RedisWeir
from daemon.waiting import wait_until
from daemon.weir import Weir

PLACES = 32  # of a region of 256 KiB


def rules(rate):
    return "version: 1\nstate: { size: 256KiB }\nlimits:\n" + "".join(
        f"  - {{ name: l{i}, key: [user], rate: {rate}/h, algorithm: fixed_window }}\n"
        for i in range(6))


def remaining(weir, cost):
    with weir.client() as client:
        reply = client.post("/v1/check", {"attributes": {"user": "a"}, "cost": cost})
        return reply.status, [limit["remaining"] for limit in reply.json["limits"]]


def reload(weir, rate):
    weir.write_rules(rules(rate))
    assert "event=reloaded" in weir.reload()


def test_limits_that_change_at_every_reload_never_fill_the_list(tmp_path):
    with Weir(tmp_path, rules(100)) as weir:
        assert remaining(weir, 50) == (200, [50] * 6)
        for rate in range(101, 141):
            reload(weir, rate)
        assert remaining(weir, 1) == (200, [89] * 6)
        wait_until(lambda: weir.metrics()["weir_table_params"] < PLACES)


def test_commands_that_make_up_limits_leave_room_for_rules(tmp_path):
    with RedisWeir(tmp_path, rules(100), http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        with weir.redis() as redis:
            replies = [redis.ask("CL.THROTTLE", f"k{i}", 5, 10 + i, 3600) for i in range(100)]
        refused = [reply for reply in replies if isinstance(reply, Error)]
        assert 8 <= len(replies) - len(refused) <= PLACES / 2
        assert set(refused) == {"ERR too many distinct limits"}
        reload(weir, 200)
        assert remaining(weir, 1) == (200, [199] * 6)
