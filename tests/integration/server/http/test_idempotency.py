# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: a request is charged once, over workers, repeats at one time, and kill -9."""

import threading

import pytest

from daemon.http import Client
from daemon.redis import Error, RedisWeir
from daemon.weir import Weir, rules_of

RATE = {"name": "rate", "key": ["client.ip"], "algorithm": "fixed_window", "rate": "5/day"}
SLOTS = {"name": "slots", "match": {"path": "/work"}, "key": ["client.ip"],
         "algorithm": "concurrency", "limit": 2, "life": "1h"}


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules_of(RATE, SLOTS), "--workers", "2") as weir:
        yield weir


def remaining(weir, address):
    (limit,) = weir.check(ip=address, dry_run=True).json["limits"]
    return limit["remaining"]


def post(weir, check, key_field):
    with weir.client() as client:
        return client.post("/v1/check", check, {"Idempotency-Key": key_field})


def test_a_repeat_may_come_by_the_other_address_of_a_translators_client(weir):
    """64:ff9b::/96 holds everybody: a repeat is by the IPv4 client inside, not by his neighbour."""
    asked = [weir.check(ip=address, idempotency_key="nat") for address in
             ("64:ff9b::8.8.4.1", "8.8.4.1", "64:ff9b::808:401", "64:ff9b::8.8.4.2", "8.8.4.2")]
    assert [reply.status for reply in asked] == [200] * 5
    assert ["repeated" in reply.json for reply in asked] == [False, True, True, False, True]
    assert [remaining(weir, address) for address in ("8.8.4.1", "64:ff9b::8.8.4.2", "8.8.4.3")] == [4, 4, 5]


def test_a_repeat_is_allowed_tells_so_and_charges_nothing(weir):
    first, *repeats = [weir.check(ip="192.0.2.1", idempotency_key="k1") for _ in range(9)]
    assert first.status == 200 and "repeated" not in first.json
    for reply in repeats:
        assert reply.status == 200 and reply.json["repeated"] is True
        assert [limit["name"] for limit in reply.json["limits"]] == ["rate"]
        assert reply.json["limits"][0]["remaining"] == 4
        assert reply["x-ratelimit-remaining"] == "4"
    assert remaining(weir, "192.0.2.1") == 4


def test_another_cost_or_caller_with_the_same_key_is_another_request(weir):
    weir.check(ip="192.0.2.2", idempotency_key="k1")
    assert "repeated" not in weir.check(ip="192.0.2.2", idempotency_key="k1", cost=2).json
    assert "repeated" not in weir.check(ip="192.0.2.3", idempotency_key="k1").json
    assert remaining(weir, "192.0.2.2") == 2
    assert remaining(weir, "192.0.2.3") == 4


def test_a_denied_request_is_decided_anew(weir):
    for _ in range(2):
        reply = weir.check(ip="192.0.2.4", cost=6, idempotency_key="big")
        assert reply.status == 429 and "repeated" not in reply.json
    weir.check(ip="192.0.2.4", cost=5)
    for _ in range(2):
        assert weir.check(ip="192.0.2.4", idempotency_key="late").status == 429


def test_a_repeat_goes_through_where_the_limit_denies_by_now(weir):
    assert weir.check(ip="192.0.2.5", idempotency_key="early").status == 200
    weir.check(ip="192.0.2.5", cost=4)
    assert weir.check(ip="192.0.2.5").status == 429
    assert weir.check(ip="192.0.2.5", idempotency_key="early").json["repeated"] is True


def test_a_repeat_gets_the_lease_of_the_first(weir):
    with weir.client() as client:
        asked = {"ip": "192.0.2.6", "path": "/work", "idempotency_key": "job"}
        leases = {client.check(**asked).json["lease"] for _ in range(5)}
        assert len(leases) == 1
        assert client.check(ip="192.0.2.6", path="/work").status == 200  # the other slot
        assert client.check(ip="192.0.2.6", path="/work").status == 429
        assert client.post("/v1/release", {"lease": leases.pop()}).status == 200
        assert client.check(ip="192.0.2.6", path="/work").status == 200


def test_the_field_and_the_body_say_the_same_key(weir):
    asked = {"ip": "192.0.2.7"}
    assert "repeated" not in post(weir, asked, '"8e03-\\"x"').json
    assert post(weir, asked, '"8e03-\\"x"; version=1').json["repeated"] is True
    assert weir.check(**asked, idempotency_key='8e03-"x').json["repeated"] is True
    assert post(weir, {**asked, "idempotency_key": "bare"}, "bare").status == 200
    assert post(weir, asked, '"bare"').json["repeated"] is True
    reply = post(weir, {**asked, "idempotency_key": "one"}, "another")
    assert reply.status == 400 and "idempotency_key" in reply.json["detail"]
    assert remaining(weir, "192.0.2.7") == 3


@pytest.mark.parametrize("key", ["", '""', '"open', "a b", "k" * 256, '"\\x"'])
def test_a_field_that_is_no_key_is_400(weir, key):
    reply = post(weir, {"ip": "192.0.2.8"}, key)
    assert reply.status == 400
    assert reply.json["detail"].startswith("Idempotency-Key: ")


def test_a_field_that_stands_twice_is_400(weir):
    with weir.client() as client:
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: w\r\nIdempotency-Key: a\r\n"
                    b"Idempotency-Key: a\r\nContent-Length: 2\r\n\r\n{}")
        assert client.reply().status == 400


@pytest.mark.parametrize("key", ["", "k" * 256, 7, None])
def test_a_body_whose_key_is_none_is_400(weir, key):
    reply = weir.check(ip="192.0.2.8", idempotency_key=key)
    assert reply.status == 400
    assert reply.json["detail"].startswith("idempotency_key: ")


def test_the_longest_key_is_taken(weir):
    asked = {"ip": "192.0.2.9", "idempotency_key": "k" * 255}
    assert "repeated" not in weir.check(**asked).json
    assert weir.check(**asked).json["repeated"] is True


def test_in_a_batch_each_check_has_its_key(weir):
    one = {"ip": "192.0.2.10", "idempotency_key": "a"}
    with weir.client() as client:
        answers = client.post("/v1/check", [one, one, {**one, "idempotency_key": "b"},
                                            {"ip": "192.0.2.10"}]).json
        assert [answer.get("repeated", False) for answer in answers] == [False, True, False, False]
        assert remaining(weir, "192.0.2.10") == 2
        reply = client.post("/v1/check", [one], {"Idempotency-Key": "a"})
        assert reply.status == 400 and "batch" in reply.json["detail"]


def test_a_dry_run_tells_of_a_repeat_and_is_none(weir):
    asked = {"ip": "192.0.2.11", "idempotency_key": "d"}
    assert "repeated" not in weir.check(**asked, dry_run=True).json
    assert "repeated" not in weir.check(**asked).json
    assert weir.check(**asked, dry_run=True).json["repeated"] is True


def test_forward_authentication_knows_no_keys(weir):
    with weir.client() as client:
        for _ in range(2):
            client.auth(client="192.0.2.12", Idempotency_Key="k")
    assert remaining(weir, "192.0.2.12") == 3


def test_of_repeats_at_one_time_one_is_charged(weir):
    """16 connections over both workers, the same 20 requests on each."""
    gate, firsts = threading.Barrier(16), []

    def work():
        with weir.client() as client:
            gate.wait()
            for i in range(20):
                reply = client.check(ip=f"198.51.100.{i}", idempotency_key=f"r{i}")
                assert reply.status == 200
                if "repeated" not in reply.json:
                    firsts.append(i)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(firsts) == list(range(20))
    assert all(remaining(weir, f"198.51.100.{i}") == 4 for i in range(20))


def test_over_kill_9_a_request_is_charged_once(tmp_path):
    """A client that repeats what was not answered, as clients do, until all of it is: each request
    is charged exactly once."""
    total, state = 3000, {"file": str(tmp_path / "state"), "size": "1MiB"}
    limit = {**RATE, "rate": "100000/day"}
    with Weir(tmp_path, rules_of(limit, state=state), "--workers", "2") as weir:
        answered, kills = 0, 0
        while answered < total:
            kill_at = answered + 150 if kills < 10 else total
            with Client(weir.http_address) as client:
                killer = threading.Thread(target=weir.kill)
                try:
                    while answered < total:
                        if answered == kill_at:
                            killer.start()
                        reply = client.check(ip="192.0.2.1", idempotency_key=f"request {answered}")
                        assert reply.status == 200
                        answered += 1
                except (EOFError, OSError):
                    pass
                if killer.ident:
                    killer.join()
            if answered < total:
                weir.start()
                kills += 1
        assert kills == 10
        assert remaining(weir, "192.0.2.1") == 100000 - total


def test_over_the_redis_protocol(tmp_path):
    with RedisWeir(tmp_path, rules_of(RATE), "--workers", "2") as weir, weir.redis() as redis:
        def ask(*words, command="WEIR.CHECK", address="192.0.2.1"):
            reply = redis.ask(command, "ip", address, *words)
            return dict(zip(reply[::2], reply[1::2]))

        assert "repeated" not in ask("idempotency_key", "k")
        assert ask("idempotency_key", "k")["repeated"] == 1
        assert ask("idempotency_key", "k", command="WEIR.PEEK")["repeated"] == 1
        assert "repeated" not in ask("idempotency_key", "k", "COST", 2)
        assert "repeated" not in ask()
        for wrong in (("idempotency_key", ""), ("idempotency_key", "k" * 256), ("idempotency_key",),
                      ("idempotency_key", "a", "idempotency_key", "b")):
            reply = redis.ask("WEIR.CHECK", "ip", "192.0.2.1", *wrong)
            assert isinstance(reply, Error) and reply.startswith("ERR idempotency_key")
        remaining_now = ask("COST", 0)["limits"][0]
        assert dict(zip(remaining_now[::2], remaining_now[1::2]))["remaining"] == 1
