# SPDX-License-Identifier: Apache-2.0
"""Three weir nodes over one Redis, exact mode: what all of them admit together, to the unit."""

import json
import random
import time

import pytest

from daemon.certificates import Authority
from daemon.load import Load, admitted, check_request, denied, full_windows, windows
from daemon.nodes import Nodes, off_by, shared_rules
from daemon.redis import Redis, RedisWeir
from daemon.redis_server import RedisServer, free_port
from daemon.waiting import wait_until
from model import algorithms
from model.redis_commands import play

SECOND_NS = 10**9
DAY_NS = 86400 * SECOND_NS

# Windows so long that none ends while a test runs.
BUDGETS = {
    "fixed_window": {"algorithm": "fixed_window", "rate": "300/366d"},
    "sliding_window": {"algorithm": "sliding_window", "rate": "300/360d"},
    "segments": {"algorithm": "sliding_window", "rate": "300/360d", "segments": 60, "strict": True},
    "sliding_log": {"algorithm": "sliding_log", "rate": "300/360d"},
    "token_bucket": {"algorithm": "token_bucket", "rate": "1/day", "burst": 300},
    "gcra": {"algorithm": "gcra", "rate": "1/day", "burst": 300},
    "leaky_bucket": {"algorithm": "leaky_bucket", "rate": "1/day", "burst": 300},
}
SECONDS = {"name": "seconds", "match": {"kind": "seconds"}, "key": ["user"],
           "algorithm": "fixed_window", "rate": "200/s"}
RATE = 200
FLOW = {"name": "flow", "match": {"kind": "flow"}, "key": ["user"], "algorithm": "gcra",
        "rate": "150/s", "burst": 100}
# One request, two limits of different keys: both are charged or none is.
PAIR = [{"name": "pair-user", "match": {"kind": "pair"}, "key": ["user"], "rate": "100/360d"},
        {"name": "pair-all", "match": {"kind": "pair"}, "key": [], "rate": "150/360d"}]
SLOTS = {"name": "slots", "match": {"kind": "slots"}, "key": ["user"], "algorithm": "concurrency",
         "limit": 5, "life": "60s"}


def limits_of_kinds():
    return [{"name": name.replace("_", "-"), "match": {"kind": name}, "key": ["user"], **budget}
            for name, budget in BUDGETS.items()] + [SECONDS, FLOW, *PAIR, SLOTS]


@pytest.fixture(scope="module", name="nodes")
def fixture_nodes(tmp_path_factory, redis):
    rules = shared_rules(redis.url, *limits_of_kinds())
    clocks = [off_by(+1), off_by(-1), None]
    with Nodes(tmp_path_factory.mktemp("nodes"), 3, rules, env=clocks) as nodes:
        yield nodes


# --- Sixteen clients on one key. The clocks of the three nodes are an hour apart -------------------

def test_the_clocks_of_the_nodes_do_differ(nodes):
    """Else what follows says nothing about clocks."""
    offsets = []
    for weir in nodes.weirs:
        reply = weir.check(attributes={})
        offsets.append(round((time.mktime(time.strptime(reply["date"], "%a, %d %b %Y %H:%M:%S GMT"))
                              - time.timezone - time.time()) / 3600))
    assert offsets == [1, -1, 0]


def test_a_wrong_clock_is_reported_beside_the_time_of_redis(nodes):
    def offsets():
        return [round(weir.metrics()["weir_clock_offset_seconds"] / 3600) for weir in nodes.weirs]

    wait_until(lambda: offsets() == [1, -1, 0], what="the offsets in hours")
    assert "offset_ms=3" in nodes[0].wait_event("wall_clock_differs")
    assert "offset_ms=-3" in nodes[1].wait_event("wall_clock_differs")


def everybody_was_denied(answers):
    return len({answer.client for answer in answers if answer.status == 429}) == 16


@pytest.mark.parametrize("kind", BUDGETS)
def test_sixteen_clients_get_the_budget_and_not_one_more(nodes, kind):
    for i in range(3):  # some by each node, however the machine lets them run
        assert nodes.ask(i, kind=kind, user="all")[0]
    with nodes.load(16, {"kind": kind, "user": "all"}) as load:
        answers = load.until(everybody_was_denied, "the end of the budget")
    assert admitted(answers) == 297


def test_ten_windows_of_a_second_admit_their_limit_each(nodes):
    """The server's time is this machine's, so one knows in which window what was decided, except
    what was in flight at a border."""
    with nodes.load(16, {"kind": "seconds", "user": "all"}) as load:
        answers = load.until(lambda answers: full_windows(answers) >= 10, "ten full windows")
    found = windows(answers).values()
    assert all(window.certain <= RATE for window in found)
    assert all(window.possible >= RATE for window in found if window.full)
    assert RATE * full_windows(answers) <= admitted(answers) <= RATE * len(found)


def test_a_flow_is_the_burst_and_the_rate(nodes):
    with nodes.load(16, {"kind": "flow", "user": "all"}) as load:
        answers = load.until(lambda answers: denied(answers) > 200 and admitted(answers) > 500,
                             "the burst, what flows in, and denials between")
    longest = max(answer.received for answer in answers) - min(answer.sent for answer in answers)
    assert admitted(answers) <= 100 + 150 * longest
    # At a denial there is less than one: from the first to the last, what flows in is admitted, except
    # for what flows over while a busy machine lets nobody ask.
    denials = sorted((answer for answer in answers if answer.status == 429),
                     key=lambda answer: answer.sent)
    over = sum(max(0, 150 * (later.received - sooner.sent) - 100)
               for sooner, later in zip(denials, denials[1:]))
    shortest = denials[-1].sent - min(answer.received for answer in denials)
    assert admitted(answers) >= 100 + 150 * shortest - over - 2


def test_limits_of_one_request_are_charged_together_or_not_at_all(nodes):
    bodies = [json.dumps({"attributes": {"kind": "pair", "user": f"user{i % 4}"}})
              for i in range(16)]
    addresses = [weir.http_address for weir in nodes.weirs]
    with Load(addresses, 16, lambda i: check_request(bodies[i])) as load:
        answers = load.until(
            lambda answers: admitted(answers) >= 150 and everybody_was_denied(answers),
            "the end of what both have")
    assert admitted(answers) == 150
    used = 0
    for i in range(4):
        _, result = nodes.ask(i % 3, dry_run=True, kind="pair", user=f"user{i}")
        used += 100 - result["pair-user"]["remaining"]
        assert result["pair-all"]["remaining"] == 0
    assert used == 150


def test_leases_are_taken_on_one_node_and_given_back_on_another(nodes):
    def take(weir):
        return weir.check(attributes={"kind": "slots", "user": "all"})

    leases = [take(nodes[i % 3]) for i in range(6)]
    assert [reply.status for reply in leases] == [200] * 5 + [429]
    for i, reply in enumerate(leases[:5]):
        with nodes[(i + 1) % 3].client() as client:
            lease = {"lease": reply.json["lease"]}
            assert client.post("/v1/release", lease).status in (200, 204)
            assert client.post("/v1/release", lease).status == 404
    assert [take(nodes[i % 3]).status for i in range(6)] == [200] * 5 + [429]


# --- A request that is repeated -------------------------------------------------------------------

def test_an_idempotency_key_charges_once_whichever_node_is_asked(nodes):
    fields = {"attributes": {"kind": "gcra", "user": "retried"}}

    def left():
        return nodes.ask(0, dry_run=True, **fields["attributes"])[1]["gcra"]["remaining"]

    assert left() == 300
    for weir in nodes.weirs * 2:
        assert weir.check(**fields, idempotency_key="order 66").status == 200
    assert left() == 299
    with nodes[1].client() as client:
        for _ in range(2):
            reply = client.post("/v1/check", fields, {"Idempotency-Key": '"order 67"'})
            assert reply.status == 200
    assert left() == 298


# --- The models ------------------------------------------------------------------------------------

MODELS = {
    "fixed_window": lambda: algorithms.FixedWindow(20, 366 * DAY_NS),
    "sliding_log": lambda: algorithms.SlidingLog(20, 360 * DAY_NS),
    "token_bucket": lambda: algorithms.Bucket(3, 7000 * SECOND_NS, 20),
    "gcra": lambda: algorithms.Bucket(3, 7000 * SECOND_NS, 20),
    "leaky_bucket": lambda: algorithms.Bucket(3, 7000 * SECOND_NS, 20),
    "queue": lambda: algorithms.Queue(3, 7000 * SECOND_NS, 20),
    "strict": lambda: algorithms.SlidingWindow(20, 360 * DAY_NS, 60, True),
    "concurrency": lambda: algorithms.Concurrency(20, 3600 * SECOND_NS),
}
MODEL_LIMITS = {
    "fixed_window": {"algorithm": "fixed_window", "rate": "20/366d"},
    "sliding_log": {"algorithm": "sliding_log", "rate": "20/360d"},
    "token_bucket": {"algorithm": "token_bucket", "rate": "3/7000s", "burst": 20},
    "gcra": {"algorithm": "gcra", "rate": "3/7000s", "burst": 20},
    "leaky_bucket": {"algorithm": "leaky_bucket", "rate": "3/7000s", "burst": 20},
    "queue": {"algorithm": "leaky_bucket", "queue": True, "rate": "3/7000s", "burst": 20},
    "strict": {"algorithm": "sliding_window", "rate": "20/360d", "segments": 60, "strict": True},
    "concurrency": {"algorithm": "concurrency", "limit": 20, "life": "1h"},
}
BOTH = 2  # ms: what is reported is rounded up, and the clock is read in whole microseconds


@pytest.fixture(scope="module", name="modelled")
def fixture_modelled(tmp_path_factory, redis):
    limits = [{"name": name.replace("_", "-"), "match": {"kind": name}, "key": ["user"], **limit}
              for name, limit in MODEL_LIMITS.items()]
    rules = shared_rules(redis.url, *limits, redis={"prefix": "models:", "remember": "off"})
    with Nodes(tmp_path_factory.mktemp("models"), 2, rules) as nodes:
        yield nodes


def judge(state, result, cost, sent, received, late):
    """One answer, which must be the model's at some time between sending and receiving. `late`: by
    how many milliseconds the model may have charged too early."""
    admits = state.admits(sent, cost)
    assert admits == state.admits(received, cost), "the test is slow"
    assert result["allowed"] == admits
    retry = None if admits else algorithms.retry_after(state, received, cost)
    if admits:
        state.charge(sent, cost)
    ends = [algorithms.remaining(state, t) for t in (sent, received)]
    assert min(ends) <= result["remaining"] <= max(ends)
    if retry == algorithms.NEVER:
        assert result["retry_after_ms"] is None
    elif not admits:
        assert abs(result["retry_after_ms"] - retry // 10**6) <= late
    reset = algorithms.reset_after(state, received) // 10**6
    assert abs(result["reset_after_ms"] - reset) <= late


@pytest.mark.parametrize("kind", MODELS)
def test_random_requests_are_decided_as_the_model_decides(modelled, kind):
    """To either node; the time of the models is this machine's, which is the server's too."""
    rng, states, name = random.Random(kind), {}, kind.replace("_", "-")
    users = [f"{kind}{i}" for i in range(4)]
    slowest = 0  # ms: a state was charged so much later than its model at most
    with modelled[0].client() as first, modelled[1].client() as second:
        for step in range(200):
            user, cost = rng.choice(users), rng.choice([0, 1, 1, 1, 2, 5, 20, 21])
            if kind == "queue":
                cost = max(cost, 1)
            state = states.setdefault(user, MODELS[kind]())
            sent = time.time_ns()
            reply = rng.choice([first, second]).check(
                attributes={"kind": kind, "user": user}, cost=cost)
            received = time.time_ns()
            took = (received - sent) // 10**6
            late = BOTH + slowest + took
            slowest = max(slowest, took)
            (result,) = (limit for limit in reply.json["limits"] if limit["name"] == name)
            try:
                judge(state, result, cost, sent, received, late)
            except AssertionError as error:
                raise AssertionError(f"step {step}: cost {cost}: {result}: {error}") from error


@pytest.mark.parametrize("seed", range(20, 23))
def test_random_commands_are_decided_as_the_model_decides(tmp_path, redis, seed):
    """CL.THROTTLE, THROTTLE, GCRA and DEL over the Redis protocol, with the states in Redis."""
    rng = random.Random(seed)
    period = rng.randrange(10**6, 10**7)
    limits = [(rng.randrange(1, 40), rng.randrange(1, 10), period) for _ in range(3)]
    rules = shared_rules(redis.url, redis={"prefix": f"commands{seed}:", "remember": "off"})
    with RedisWeir(tmp_path, rules, "--workers", "1") as weir:
        weir.wait_event("store_up")
        play(weir, seed, limits)


# --- What Redis holds -------------------------------------------------------------------------------

def test_every_key_is_named_for_its_limit_and_expires(redis, nodes):
    for kind in BUDGETS:
        nodes.ask(0, kind=kind, user="named")
    nodes.ask(0, kind="slots", user="named")
    keys = redis.states()
    assert any(key.startswith("weir:{") and key.endswith("}gcra:user=named") for key in keys), keys
    with Redis(redis.address) as client:
        for key in keys:
            left = client.ask("PTTL", key)
            assert 0 < left <= 732 * 86400 * 1000, (key, left)  # two windows of the longest
    assert not any("Idempotency" in key or "order 66" in key for key in keys)  # nor any secret


def test_limits_with_one_hash_tag_share_a_slot(tmp_path, redis):
    limits = [{"name": "user", "key": ["user"], "rate": "5/h", "hash_tag": "user"},
              {"name": "page", "key": ["path", "user"], "rate": "5/h", "hash_tag": "user"},
              {"name": "own", "key": ["user"], "rate": "5/h"}]
    rules = shared_rules(redis.url, *limits, redis={"prefix": "tags:"})
    with Nodes(tmp_path, 1, rules) as nodes:
        for path in ("/a", "/b"):
            assert nodes[0].check(path=path, attributes={"user": "bob"}).status == 200
    tags = {key.partition("}")[2].lstrip(":"): key.partition("{")[2].partition("}")[0]
            for key in redis.states("tags:*")}
    assert len(tags) == 4
    assert len({tag for name, tag in tags.items() if not name.startswith("own")}) == 1
    assert len(set(tags.values())) == 2


# --- How it is reached -------------------------------------------------------------------------------

BUDGET = {"name": "budget", "key": ["user"], **BUDGETS["gcra"]}

# What docs/distributed.md says that weir needs, and no more.
ACL = ("~weir:*", "-@all", "+evalsha", "+script|load", "+time", "+get", "+set", "+del", "+getrange",
       "+setrange", "+strlen", "+hset", "+hdel", "+hgetall", "+pexpireat", "+ping", "+role")


def decides(nodes):
    """Whether what it counts is what Redis keeps."""
    allowed, result = nodes.ask(0, user="reached")
    return allowed and result["budget"]["remaining"] == 299


def test_a_unix_socket_will_do(tmp_path, redis):
    rules = shared_rules(f"unix:{redis.socket}", BUDGET, redis={"prefix": "unix:"})
    with Nodes(tmp_path, 1, rules) as nodes:
        assert decides(nodes)
    assert len(redis.states("unix:*")) == 1


def test_a_database_is_selected(tmp_path, redis):
    rules = shared_rules(redis.url + "/3", BUDGET, redis={"prefix": "db:"})
    with Nodes(tmp_path, 1, rules) as nodes:
        assert decides(nodes)
    assert not redis.keys("db:*")
    with Redis(redis.address) as client:
        assert client.ask("SELECT", 3) == "OK"
        assert len(client.ask("KEYS", "db:{*")) == 1


@pytest.mark.parametrize("mode", ["exact", "leased"])
def test_a_user_with_the_documented_rights_is_enough(tmp_path, redis, mode):
    password = tmp_path / "password"
    password.write_text("s3 cret\n", encoding="utf-8")
    redis.ask("ACL", "SETUSER", "weir", "on", ">s3 cret", *ACL)
    try:
        rules = shared_rules(redis.url, *limits_of_kinds(), mode=mode,
                             redis={"user": "weir", "password_file": str(password),
                                    "prefix": f"weir:acl:{mode}:"})
        with Nodes(tmp_path, 1, rules) as nodes:
            for kind in [*BUDGETS, "seconds", "flow", "pair", "slots"]:
                assert nodes.ask(0, kind=kind, user="acl")[0], kind
                with nodes.load(2, {"kind": kind, "user": "hot"}) as load:
                    load.run(0.1)  # until it is shared out, where it is leased
            assert (nodes.metric("weir_store_lease_decisions_total") > 0) == (mode == "leased")
            assert nodes.metric("weir_store_errors_total") == 0
            assert nodes.metric("weir_store_call_errors_total") == 0
    finally:
        redis.ask("ACL", "DELUSER", "weir")


def test_redis_is_reached_over_tls_and_known_by_its_certificate(tmp_path):
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    cert, key = authority.sign("redis")
    options = {"tls-port": free_port(), "tls-cert-file": cert, "tls-key-file": key,
               "tls-ca-cert-file": authority.cert, "tls-auth-clients": "yes"}
    own_cert, own_key = authority.sign("weir")
    tls = {"ca": str(authority.cert), "cert": str(own_cert), "key": str(own_key)}
    with RedisServer(tmp_path / "redis", options) as server:
        url = f"rediss://127.0.0.1:{options['tls-port']}"
        with Nodes(tmp_path / "known", 1, shared_rules(url, BUDGET, redis={"tls": tls})) as nodes:
            assert decides(nodes)
        assert len(server.states()) == 1
        tls["ca"] = str(other.cert)
        rules = shared_rules(url, BUDGET, redis={"tls": tls}, store={"on_store_error": "closed"})
        nodes = Nodes(tmp_path / "unknown", 1, rules)
        with nodes[0] as weir:
            assert "certificate" in weir.wait_event("store_down")
            assert weir.check(attributes={"user": "unknown"}).status == 503  # closed


def test_one_node_tells_what_another_has_done(nodes):
    """An operator may ask any of them."""
    assert nodes.ask(0, kind="gcra", user="seen", cost=7)[0]
    with nodes[2].admin() as admin:
        state = admin.request("GET", "/v1/limits/gcra/state?key=seen")
        assert state.status == 200 and state.json["limits"][0]["remaining"] == 293


def test_denials_are_remembered_until_they_can_change(redis, nodes):
    """A key that is denied for days is asked for in Redis ten times a second and node, however
    often it is asked for here; one that is admitted is asked for each time."""
    with nodes.load(16, {"kind": "sliding_log", "user": "remembered"}) as load:
        assert admitted(load.until(everybody_was_denied, "the end of the budget")) == 300
        before, began = redis.commands("evalsha"), time.monotonic()
        answers = load.until(lambda answers: len(answers) > 3000, "many denials")
        turns = 1 + 10 * (time.monotonic() - began)
    assert admitted(answers) == 0
    asked = redis.commands("evalsha") - before
    assert asked <= 3 * turns * 16  # each client may ask as one ends
    assert asked < len(answers)


def test_a_candidate_is_compared_with_what_its_limit_says_now(tmp_path, redis):
    """Where another limit has denied and that is remembered, the limit of the candidate was asked a
    moment ago, and others have used it up since."""
    orgs = 60
    rules = shared_rules(
        redis.url, {"name": "user", "key": ["user"], "algorithm": "fixed_window", "rate": "2/300d"},
        {"name": "org", "key": ["org"], "algorithm": "fixed_window", "rate": "4/300d",
         "candidate": {"rate": "4/300d"}}, redis={"prefix": "candidate:"})
    with Nodes(tmp_path, 1, rules) as nodes, nodes[0].client() as client:
        for org in range(orgs):
            result = [client.post("/v1/check", {"attributes": {"user": f"{user}{org}", "org": f"{org}"}})
                    .status for user in "aaabba"]
            assert result == [200, 200, 429, 200, 200, 429]
        wait_until(lambda: nodes.metric("weir_candidate_total") == 6 * orgs, what="all trials")
        outcomes = {name: value for name, value in nodes[0].metrics().items()
                    if name.startswith("weir_candidate_total") and value > 0}
        assert outcomes == {
            'weir_candidate_total{limit="org",outcome="both_allow"}': 5 * orgs,
            'weir_candidate_total{limit="org",outcome="both_deny"}': orgs,
        }
