# SPDX-License-Identifier: Apache-2.0
"""Claims of verified tokens as attributes and identities, on every front end."""

import json
import re
import time

import pytest

from daemon.grpc import CheckRequest, Stub
from daemon.tokens import Issuer, encode
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

API = {"name": "api", "key": ["user"], "algorithm": "fixed_window", "rate": "plan"}
PLANS = {"free": {"api": "3/day"}, "pro": {"api": "9/day"}}
SOON = 3600


@pytest.fixture(scope="module", name="issuer")
def fixture_issuer(tmp_path_factory):
    return Issuer(tmp_path_factory.mktemp("keys"))


def rules(issuer, *limits, **jwt):
    settings = {"keys": [{"file": str(issuer.public("rsa"))}, {"file": str(issuer.public("ec"))},
                         {"secret_file": str(issuer.public("secret"))}],
                "audience": "api", "plan": "plan", **jwt}
    plans = {} if limits else {"plans": PLANS, "default_plan": "free"}
    return rules_of(*(limits or [API]), jwt=settings, identify=["jwt", "client.ip/64"],
                    server={"grpc": "127.0.0.1:0"}, **plans)


@pytest.fixture(scope="module", name="weir")
def fixture_weir(issuer, tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("weir"), rules(issuer), "--workers", "1") as weir:
        yield weir


def claims_of(user, life=SOON, **more):
    return {"sub": user, "aud": "api", "exp": int(time.time()) + life, **more}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def left(weir, headers, **fields):
    reply = weir.check(headers=headers, **fields)
    assert reply.status in (200, 429), reply.body
    (limit,) = reply.json["limits"]
    return limit["remaining"]


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "HS256"])
def test_a_token_is_its_user_on_every_front_end(weir, issuer, algorithm):
    token = issuer.token(claims_of(f"u-{algorithm}", plan="pro"), algorithm)
    with weir.client() as client, Stub(weir.grpc_address) as stub:
        reply = client.auth(client="192.0.2.1", Authorization=f"Bearer {token}")
        assert reply.status == 200 and reply["x-ratelimit-remaining"] == "8"
        assert left(weir, bearer(token), ip="192.0.2.2") == 7
        asked = CheckRequest()
        asked.attributes.request.http.method = "GET"
        asked.attributes.request.http.path = "/"
        asked.attributes.request.http.headers["authorization"] = f"bearer {token}"
        asked.attributes.source.address.socket_address.address = "192.0.2.3"
        answer = stub.call("AuthCheck", asked)
        fields = {one.header.key.lower(): one.header.value for one in answer.ok_response.headers}
        assert fields["x-ratelimit-remaining"] == "6"


def test_what_is_not_valid_is_nobodys(weir, issuer):
    good = issuer.token(claims_of("mallory", plan="pro"))
    head, body, signature = good.split(".")
    bad = [
        f"{encode({'alg': 'none'})}.{body}.",
        f"{encode({'alg': 'none'})}.{body}.{signature}",
        f"{head}.{encode(claims_of('boss', plan='pro'))}.{signature}",
        issuer.token(claims_of("mallory", life=-10, plan="pro")),
        issuer.token(claims_of("mallory", plan="pro", aud="web")),
        issuer.token(claims_of("mallory", plan="pro", nbf=int(time.time()) + SOON)),
        issuer.token({"sub": "mallory", "aud": "api", "plan": "pro"}),
        issuer.token(claims_of("mallory", plan="pro"), crit=["x"]),
        f"{good} {good}",
        good + "=",
        good[:-1],
        "x" * 8000,
    ]
    before = weir.metrics()
    for i, token in enumerate(bad):
        ip = f"198.51.100.{i}"
        assert left(weir, bearer(token), ip=ip) == 2, token  # the free plan, by address
        assert left(weir, {}, ip=ip) == 1
    assert left(weir, {"authorization": f"Basic {good}"}, ip="198.51.100.99") == 2
    reply = weir.check(headers=bearer(f"{good}, {good}"), ip="198.51.100.98")  # two credentials
    assert reply.status == 400 and "more than once" in reply.json["detail"]
    after = weir.metrics()
    grown = {result: after[f'weir_jwt_total{{result="{result}"}}'] -
             before[f'weir_jwt_total{{result="{result}"}}']
             for result in ("valid", "cached", "malformed", "key", "audience", "expired",
                            "signature", "issuer")}
    assert grown == {"valid": 0, "cached": 0, "malformed": 6, "key": 1, "audience": 1, "expired": 3,
                     "signature": 1, "issuer": 0}


def test_no_request_can_say_a_claim(weir):
    reply = weir.check(ip="203.0.113.9", attributes={"jwt.sub": "boss", "jwt.plan": "pro"})
    assert reply.json["limits"][0]["remaining"] == 2


def test_known_tokens_are_not_verified_again(weir, issuer):
    token = issuer.token(claims_of("known"), "RS256")
    before = weir.metrics()
    for _ in range(5):
        left(weir, bearer(token))
    after = weir.metrics()
    valid, cached = ('weir_jwt_total{result="valid"}', 'weir_jwt_total{result="cached"}')
    assert (after[valid] - before[valid], after[cached] - before[cached]) == (1, 4)


def test_a_known_token_is_nobodys_from_the_second_it_expires(weir, issuer):
    token = issuer.token(claims_of("short", life=3, plan="pro"))
    end = int(time.time()) + 3
    assert left(weir, bearer(token), ip="192.0.2.77", dry_run=True) == 9

    def expired():
        remaining = left(weir, bearer(token), ip="192.0.2.77", dry_run=True)
        assert remaining in (3, 9)
        return remaining == 3

    wait_until(expired)
    assert time.time() >= end - 1  # weir's timeline may be ahead of the clock by less


def test_a_change_of_plan_counts_with_the_next_token_and_used_stays_used(weir, issuer):
    for _ in range(3):
        left(weir, bearer(issuer.token(claims_of("upgraded", plan="free"))))
    assert weir.check(headers=bearer(issuer.token(claims_of("upgraded")))).status == 429
    assert left(weir, bearer(issuer.token(claims_of("upgraded", plan="pro")))) == 5
    assert weir.check(headers=bearer(issuer.token(claims_of("upgraded", plan="gold")))).status == 429


def test_claims_stand_in_match_key_and_cost(issuer, tmp_path):
    limits = [
        {"name": "tenant", "key": ["jwt.tenant.id"], "algorithm": "fixed_window", "rate": "9/day",
         "cost": {"from": "jwt.weight", "max": 5}},
        {"name": "bots", "match": {"jwt.scope": "*bot*"}, "key": ["jwt.sub"],
         "algorithm": "fixed_window", "rate": "2/day"},
    ]
    with Weir(tmp_path, rules(issuer, *limits)) as weir:
        token = issuer.token(claims_of("b", tenant={"id": 7}, weight=4, scope="read bot"))
        names = {one["name"]: one["remaining"]
                 for one in weir.check(headers=bearer(token)).json["limits"]}
        assert names == {"tenant": 5, "bots": 1}
        other = issuer.token(claims_of("c", tenant={"id": 7}, scope="read"))
        names = {one["name"]: one["remaining"]
                 for one in weir.check(headers=bearer(other)).json["limits"]}
        assert names == {"tenant": 4}
        with weir.admin() as admin:
            reply = admin.request("GET", "/v1/limits/tenant/state?key=7")
            assert reply.status == 200 and '"remaining": 4' in json.dumps(reply.json)
        heavy = issuer.token(claims_of("c", tenant={"id": 7}, weight=6))
        assert weir.check(headers=bearer(heavy)).status == 400


def write_set(path, *keys):
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"keys": list(keys)}))
    beside.rename(path)


def test_keys_rotate_by_a_reload_and_used_stays_used(issuer, tmp_path):
    later = Issuer(tmp_path, "later")
    keys = tmp_path / "jwks.json"
    write_set(keys, issuer.jwk())
    old = issuer.token(claims_of("r"), kid="issuer")
    new = later.token(claims_of("r"), kid="later")
    with Weir(tmp_path, rules(issuer, keys=[{"file": str(keys)}])) as weir:
        assert [left(weir, bearer(old)), left(weir, bearer(new), ip="192.0.2.1")] == [2, 2]
        write_set(keys, issuer.jwk(), later.jwk())
        assert "reloaded" in weir.reload()
        assert [left(weir, bearer(old)), left(weir, bearer(new))] == [1, 0]
        write_set(keys, later.jwk())
        assert "reloaded" in weir.reload()
        assert weir.check(headers=bearer(new)).status == 429
        assert left(weir, bearer(old), ip="192.0.2.1") == 1  # by its address again
        keys.write_text('{"keys": []}')
        assert "reload_failed" in weir.reload()
        assert "has no key that is allowed" in weir.text()
        assert weir.check(headers=bearer(new)).status == 429  # the keys before still count
        assert weir.metrics()['weir_jwt_total{result="key"}'] >= 2


def test_tokens_are_nowhere_to_be_read(issuer, tmp_path):
    limits = [{"name": "raw", "key": ["header.authorization"], "algorithm": "fixed_window",
               "rate": "1/day"},
              {"name": "match", "match": {"header.authorization": "x"}, "key": [], "rate": "1/s"},
              {"name": "sub", "key": ["jwt.sub"], "rate": "1/day"}]
    state = tmp_path / "state"
    text = json.loads(rules(issuer, *limits))
    text["state"] = {"file": str(state), "size": "4MiB"}
    token = issuer.token(claims_of("private"))
    parts = token.split(".")[1:]
    with Weir(tmp_path, json.dumps(text)) as weir:
        for _ in range(3):
            reply = weir.check(headers=bearer(token))
        broken = weir.check(headers={"authorization": f"Bearer {token}x"}, path="%zz")
        with weir.admin() as admin:
            shown = [admin.request("GET", path).body.decode() for path in
                     ("/metrics", "/v1/limits", "/v1/limits/raw/top", "/v1/limits/sub/top")]
        explained = run_weir("explain", "--config", weir.config, "--state", state, "-H",
                             f"Authorization: Bearer {token}")
        assert weir.stop() == 0
        shown += [reply.body.decode(), broken.body.decode(), weir.text(), explained.stdout,
                  explained.stderr, state.read_bytes().decode("latin-1")]
    assert any("sha256:" in one for one in shown) and any("private" in one for one in shown)
    for one in shown:
        assert not any(part in one for part in parts)


def test_explain_tells_what_a_token_is(issuer, tmp_path):
    config = tmp_path / "weir.yaml"
    config.write_text(rules(issuer))

    def explain(token):
        done = run_weir("explain", "--config", config, "-H", f"Authorization: Bearer {token}")
        assert done.returncode == 0, done.stderr
        return done.stdout

    seen = explain(issuer.token(claims_of("alice", plan="pro")))
    assert re.search(r"^user alice$", seen, re.M) and re.search(r"^token valid$", seen, re.M)
    assert "9 of 9 remaining" in seen
    seen = explain(issuer.token(claims_of("alice", life=-5)))
    assert "alice" not in seen and re.search(r"^token refused: expired$", seen, re.M)
    assert "token refused: malformed" in explain("x")
    assert "token" not in run_weir("explain", "--config", config, "--ip", "192.0.2.1").stdout


def test_replay_takes_tokens_at_the_time_of_their_lines(issuer, tmp_path):
    config = tmp_path / "weir.yaml"
    config.write_text(rules(issuer, {**API, "key": ["jwt.sub"], "rate": "5/day"}))
    token = issuer.token({"sub": "a", "aud": "api", "exp": 1700000010})
    lines = [{"t": 1700000000 + t, "headers": {"Authorization": f"Bearer {token}"}}
             for t in (0, 5, 9.75, 10, 11)]
    done = run_weir("replay", "--config", config, "--decisions", "-", "-",
                    stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert done.returncode == 0, done.stderr
    decisions = [json.loads(line) for line in done.stdout.splitlines()]
    assert [[one["remaining"] for one in each["limits"]] for each in decisions] == [
        [4], [3], [2], [], []]
