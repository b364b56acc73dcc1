# SPDX-License-Identifier: Apache-2.0
"""Several costs in one reservation: each limit counts its own, and a settlement says each by name."""

import random

import pytest

from daemon.nodes import shared_rules
from daemon.redis import Error, RedisWeir
from daemon.weir import Weir, rules_of

HEADER = {"name": "header", "key": ["user"], "match": {"path": "/header"}, "rate": "9/300d",
          "cost": {"from": "header.X-N", "max": 9}}
CALLS = {"name": "calls", "key": ["user"], "algorithm": "fixed_window", "rate": "1000/300d",
         "refund_on": ["5xx"], "refund_cap": "1%"}


def counted(name, rate, **more):
    return {"name": name, "key": ["user"], "algorithm": "fixed_window", "rate": f"{rate}/300d",
            "cost": {"from": name, "max": 1000000}, **more}


TOKENS = counted("tokens", 100000)
MONEY = counted("microusd", 5000000, refund_on=["5xx"], refund_cap="100%", debt="0%")
NAMES = ("calls", "tokens", "microusd")


@pytest.fixture(scope="module", name="weir", params=["table", "redis"])
def fixture_weir(request, tmp_path_factory, redis):
    limits = CALLS, TOKENS, MONEY, HEADER
    rules = shared_rules(redis.url, *limits) if request.param == "redis" else rules_of(*limits)
    with RedisWeir(tmp_path_factory.mktemp("weir"), rules, "--workers", "2", http="127.0.0.1:0") as weir:
        yield weir


def post(weir, path, /, **fields):
    with weir.client() as client:
        return client.post(path, fields)


def reserve(weir, user, **costs):
    reply = post(weir, "/v1/reserve", attributes={"user": user}, costs=costs)
    assert reply.status == 200, reply.body
    return reply.json["reservation"]


def settle(weir, token, **truth):
    reply = post(weir, "/v1/settle", reservation=token, **truth)
    assert reply.status == 200, reply.body
    return reply.json


def used(weir, user):
    limits = post(weir, "/v1/check", attributes={"user": user}, dry_run=True, cost=0).json["limits"]
    return tuple(limit["limit"] - limit["remaining"] for limit in limits)


def changed(answer):
    return {limit["name"]: limit.get("charged", 0) - limit.get("refunded", 0) for limit in answer["limits"]}


def test_each_limit_is_charged_its_own_cost(weir):
    reserve(weir, "reserves", tokens=4818, microusd=1234)
    assert used(weir, "reserves") == (1, 4818, 1234)


def test_a_cost_goes_before_an_attribute_of_its_name(weir):
    post(weir, "/v1/reserve", attributes={"user": "both", "tokens": 7}, costs={"tokens": 9})
    assert used(weir, "both")[1] == 9


def test_a_check_takes_costs_as_well(weir):
    reply = post(weir, "/v1/check", attributes={"user": "checks"}, costs={"tokens": 100001})
    assert reply.status == 429
    assert post(weir, "/v1/check", attributes={"user": "checks"}, costs={"tokens": 1000}).status == 200
    assert used(weir, "checks") == (1, 1000, 1)


def test_one_is_given_back_and_the_other_charged_by_one_settlement(weir):
    token = reserve(weir, "mixed", tokens=500, microusd=1000)
    answer = settle(weir, token, costs={"tokens": 312, "microusd": 1700})
    assert changed(answer) == {"tokens": -188, "microusd": 700}
    assert used(weir, "mixed") == (1, 312, 1700)
    assert settle(weir, token, costs={"tokens": 1, "microusd": 1})["repeated"] is True
    assert used(weir, "mixed") == (1, 312, 1700)


@pytest.mark.parametrize("truth, charged", [(50, 50), (2**64 - 1, 200000)])
def test_an_estimate_of_nothing_is_settled_by_what_it_was(weir, truth, charged):
    user = f"nothing{truth}"
    token = reserve(weir, user, tokens=0, microusd=10)
    assert used(weir, user) == (1, 0, 10)
    answer = settle(weir, token, costs={"tokens": truth})
    assert changed(answer) == {"tokens": charged}
    assert used(weir, user) == (1, min(charged, 100000), 10)
    assert settle(weir, token, costs={"tokens": truth})["repeated"] is True


def test_an_estimate_of_nothing_gives_nothing_back(weir):
    assert changed(settle(weir, reserve(weir, "free", tokens=0, microusd=0), status=503)) == {"calls": -1}
    assert changed(settle(weir, reserve(weir, "free", tokens=0, microusd=0), costs={"tokens": 0})) == {}
    assert used(weir, "free") == (1, 0, 0)


def test_what_no_cost_names_keeps_its_estimate(weir):
    token = reserve(weir, "partly", tokens=500, microusd=1000)
    assert changed(settle(weir, token, costs={"tokens": 0})) == {"tokens": -500}
    assert used(weir, "partly") == (1, 0, 1000)


def test_a_call_that_failed_half_way_pays_what_it_used(weir):
    token = reserve(weir, "failed", tokens=500, microusd=1000)
    answer = settle(weir, token, costs={"tokens": 620}, status=503)
    assert changed(answer) == {"calls": -1, "tokens": 120, "microusd": -1000}
    assert used(weir, "failed") == (0, 620, 0)


def test_caps_hold_beside_costs(weir):
    """1% of 1,000 calls: ten may fail."""
    for i in range(12):
        token = reserve(weir, "capped", tokens=10, microusd=1)
        answer = settle(weir, token, costs={"tokens": 11, "microusd": 1}, status="5xx")
        assert answer["capped"] is (i >= 10)
    assert used(weir, "capped") == (2, 132, 12)


def test_beyond_the_floor_of_debt_it_is_dropped_and_said(weir):
    token = reserve(weir, "debts", tokens=500, microusd=999999)
    answer = settle(weir, token, costs={"tokens": 1, "microusd": 6000000})
    money = next(limit for limit in answer["limits"] if limit["name"] == "microusd")
    assert (money["charged"], money["dropped"]) == (4000001, 1000000)
    assert used(weir, "debts") == (1, 1, 5000000)


def test_what_is_dropped_whole_is_none_that_was_given_back(weir):
    for _ in range(4):
        assert post(weir, "/v1/check", attributes={"user": "broke"}, costs={"microusd": 1000000}).status == 200
    token = reserve(weir, "broke", tokens=500, microusd=1000000)
    answer = settle(weir, token, costs={"tokens": 1, "microusd": 1500000})
    money = next(limit for limit in answer["limits"] if limit["name"] == "microusd")
    assert (money.get("charged"), money.get("refunded"), money["dropped"]) == (0, None, 500000)
    assert changed(answer)["tokens"] == -499


def test_a_name_that_no_limit_counts_is_an_error_and_charges_nothing(weir):
    reply = post(weir, "/v1/reserve", attributes={"user": "misspelt"}, costs={"token": 5})
    assert reply.status == 400 and "costs.token: " in reply.json["detail"]
    token = reserve(weir, "misspelt", tokens=5)
    reply = post(weir, "/v1/settle", reservation=token, costs={"tokn": 5})
    assert reply.status == 400 and "costs.tokn: " in reply.json["detail"]
    assert used(weir, "misspelt") == (1, 5, 1)


def test_a_limit_that_a_reload_has_changed_is_gone_and_the_answer_says_so(tmp_path):
    with Weir(tmp_path, rules_of(CALLS, TOKENS)) as weir:
        tokens = [reserve(weir, f"gone{i}", tokens=500) for i in range(3)]
        weir.write_rules(rules_of(CALLS, {**TOKENS, "algorithm": "token_bucket"}))
        weir.reload()
        for token, truth in zip(tokens, (900, 500, 100)):
            answer = settle(weir, token, costs={"tokens": truth})
            assert (answer["gone"], answer["limits"]) == (1, [])


def test_two_spellings_of_a_field_are_one_name(weir):
    twice = {"header.x-n": 1, "header.X-N": 5}
    for path, body in (("/v1/check", {"path": "/header"}), ("/v1/reserve", {"path": "/header"}),
                       ("/v1/settle", {"reservation": reserve(weir, "spells", tokens=1)})):
        reply = post(weir, path, costs=twice, **body)
        assert reply.status == 400 and "costs: one is given twice" in reply.json["detail"], path


@pytest.mark.parametrize("truth, says", [
    ({"cost": 1, "costs": {}}, "one of cost and costs is enough"),
    ({"costs": {"tokens": -1}}, "costs: not an unsigned integer"),
    ({"costs": {"tokens": 1.5}}, "costs: not an unsigned integer"),
    ({"costs": [1]}, "costs: "),
    ({"costs": {"tokens": 2**64}}, "costs: "),
    ({}, "required")])
def test_bad_costs_are_said_and_settle_nothing(weir, truth, says):
    token = reserve(weir, "wrong", tokens=5)
    reply = post(weir, "/v1/settle", reservation=token, **truth)
    assert reply.status == 400 and says in reply.json["detail"]
    assert settle(weir, token, costs={"tokens": 5})["repeated"] is False


def test_more_than_eight_costs_are_too_many(weir):
    reply = post(weir, "/v1/reserve", attributes={"user": "many"}, costs={f"a{i}": 1 for i in range(9)})
    assert reply.status == 413 and "costs: more than 8" in reply.json["detail"]


@pytest.mark.parametrize("wrong", [
    ["COSTS", 9, "tokens", 1], ["COSTS", 2, "tokens", 1, "tokens", 2], ["COSTS", 1, "tokens"], ["COSTS", 1, "other", 1], ["COSTS", 1, "tokens", -1],
    ["COST", 1, "COSTS", 1, "tokens", 1], ["STATUS", 503, "STATUS", 503], ["STATUS"]])
def test_wrong_settlements_in_the_redis_protocol(weir, wrong):
    with weir.redis() as client:
        token = client.ask("WEIR.RESERVE", "user", "wrong", "tokens", 500)
        token = dict(zip(token[::2], token[1::2]))["reservation"]
        assert isinstance(client.ask("WEIR.SETTLE", token, *wrong), Error)
        assert not isinstance(client.ask("WEIR.SETTLE", token, "COST", 0), Error)


def test_settlements_in_the_redis_protocol(weir):
    with weir.redis() as client:
        answer = client.ask("WEIR.RESERVE", "user", "redis", "tokens", 500, "microusd", 1000)
        token = dict(zip(answer[::2], answer[1::2]))["reservation"]
        client.ask("WEIR.SETTLE", token, "COSTS", 2, "tokens", 620, "microusd", 0, "STATUS", 503)
    assert used(weir, "redis") == (0, 620, 0)


def test_random_settlements_leave_what_the_true_costs_say(weir):
    draw = random.Random(36)
    total = [0, 0, 0]
    for _ in range(150):
        estimate = {name: draw.randrange(1, 300) for name in NAMES[1:]}
        token = reserve(weir, "random", **estimate)
        truth = {name: draw.choice([0, estimate[name], draw.randrange(600)])
                 for name in NAMES[1:] if draw.random() < 0.7}
        for _ in range(draw.choice([1, 1, 2])):
            settle(weir, token, costs=truth)
        total[0] += 1
        for i, name in enumerate(NAMES[1:], 1):
            total[i] += truth.get(name, estimate[name])
    assert used(weir, "random") == tuple(total)
