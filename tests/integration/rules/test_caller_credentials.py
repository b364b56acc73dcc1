# SPDX-License-Identifier: Apache-2.0
"""Who a credential is of, through every front end: one caller whatever its spelling, also as the hash
of what comes behind the scheme, and with `on_unknown: deny` nobody else."""

import hashlib
import json
import urllib.parse

import pytest

from daemon.nginx_module import Nginx, needs_module
from daemon.redis import RedisWeir
from daemon.weir import rules_of
from fronts.ask import FRONTS, Auth, Authz, Check, NginxFront, Resp
from model.program import run_weir

SPELLINGS = ["Bearer {}", "bearer {}", "BEARER  {}", "bEaReR \t {}"]
USER = {"name": "each", "key": ["user"], "rate": "1/day", "algorithm": "token_bucket"}
HEADER = {"name": "each", "key": ["header.authorization"], "rate": "1/day",
          "algorithm": "token_bucket"}
IDENTIFY = ["header.x-api-key", "header.authorization"]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def keys_file(folder, *entries):
    """`entries` are pairs of what is hashed and a user."""
    path = folder / "keys.yaml"
    path.write_text("".join(f"{digest(text)}: {json.dumps({'user': user})}\n"
                            for text, user in entries), encoding="utf-8")
    return str(path)


def weir_of(folder, *limits, **parts):
    return RedisWeir(folder, rules_of(*limits, server={"grpc": "127.0.0.1:0"}, **parts),
                     http="127.0.0.1:0", admin="127.0.0.1:0")


def nginx_of(folder, *limits, **parts):
    return Nginx(folder, rules_of(*limits, **parts), "location / { weir on; try_files /a.txt =404; }",
                 head="")


def bearer(text):
    return [("Authorization", text)]


@pytest.mark.parametrize("listed", ["Bearer K", "K", "bearer K"])
@pytest.mark.parametrize("front", FRONTS)
def test_a_key_is_one_caller_however_it_is_spelled_and_listed(tmp_path, front, listed):
    keys = keys_file(tmp_path, (listed, "ann"))
    with weir_of(tmp_path, USER, identify=IDENTIFY, keys=keys) as weir:
        spellings = [bearer(one.format("K")) for one in SPELLINGS]
        if listed == "bearer K":  # an older file with another spelling: that one stays valid
            spellings = [bearer("bearer K")] * 2
        if listed == "K":
            spellings.append([("X-Api-Key", "K")])
        assert [front(weir).ask(*one) for one in spellings] == (
            ["allowed"] + ["denied"] * (len(spellings) - 1))
        assert front(weir).ask(*bearer("Bearer k")) == "allowed"  # of nobody: no user, no limit
        assert front(weir).ask(*bearer("Bearer k")) == "allowed"


@needs_module
def test_a_key_is_one_caller_in_nginx(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    with nginx_of(tmp_path, USER, identify=IDENTIFY, keys=keys) as nginx:
        front = NginxFront(nginx)
        assert [front.ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
            ["allowed"] + ["denied"] * (len(SPELLINGS) - 1))


@pytest.mark.parametrize("front", FRONTS)
def test_unknown_credentials_are_denied_and_none_are_not(tmp_path, front):
    keys = keys_file(tmp_path, ("Bearer K", "ann"))
    limit = dict(USER, rate="1000/day")
    with weir_of(tmp_path, limit, identify=[*IDENTIFY, "client.ip"], keys=keys,
                 on_unknown="deny") as weir:
        ask = front(weir).ask
        assert ask() == "allowed"
        assert ask(("X-Api-Key", "")) == "allowed"
        assert ask(*bearer("bearer  K")) == "allowed"
        assert ask(("X-Api-Key", "other"), *bearer("Bearer K")) == "allowed"  # one is known
        assert ask(("X-Api-Key", "other")) == "denied"
        assert ask(*bearer("Bearer other")) == "denied"
        assert weir.metrics()['weir_decisions_total{limit="unknown",result="denied"}'] == 2


def test_metrics_have_refusals_of_unknown_callers_once(tmp_path):
    """A series that is there twice fails the whole scrape."""
    keys = keys_file(tmp_path, ("K", "ann"))
    with weir_of(tmp_path, USER, identify=IDENTIFY, keys=keys, on_unknown="deny") as weir:
        with weir.admin() as client:
            text = client.request("GET", "/metrics").body.decode()
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line[0] != "#"]
    assert series.count('weir_decisions_total{limit="unknown",result="denied"}') == 1
    assert len(series) == len(set(series))


def test_an_unknown_caller_is_named_so(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    limit = dict(USER, match={"path": "/never"})  # no limit needs the caller: it is looked up
    with weir_of(tmp_path, limit, identify=IDENTIFY, keys=keys, on_unknown="deny") as weir:
        reply = weir.check(path="/", headers={"x-api-key": "other"})
        assert reply.status == 429 and reply.json["denied_by"] == "unknown"
        with weir.client() as client:
            reply = client.auth("/", X_Api_Key="other")
            assert reply.status == 403
            assert reply.json["detail"] == "the credentials are unknown"
        assert weir.check(path="/", attributes={"user": "eve"},
                          headers={"x-api-key": "other"}).status == 200  # a trusted sender knows


@needs_module
def test_unknown_credentials_are_denied_in_nginx(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    with nginx_of(tmp_path, dict(USER, rate="1000/day"), identify=IDENTIFY, keys=keys,
                  on_unknown="deny") as nginx:
        front = NginxFront(nginx)
        assert front.ask() == "allowed"
        assert front.ask(*bearer("bearer K")) == "allowed"
        assert front.ask(*bearer("bearer other")) == "denied"


@pytest.mark.parametrize("parts,problem", [
    ({"on_unknown": "deny"}, "needs a source in `identify` that reads credentials"),
    ({"on_unknown": "deny", "identify": ["client.ip"]}, "needs a source in `identify`"),
    ({"on_unknown": "refuse"}, "`on_unknown` must be"),
])
def test_on_unknown_needs_credentials(tmp_path, parts, problem):
    with RedisWeir(tmp_path, rules_of(**parts), wait=False) as weir:
        assert weir.wait() == 1
        assert problem in weir.text()


def test_a_directory_that_does_not_answer_knows_nobody_and_denies_nobody(tmp_path):
    limit = dict(USER, rate="1000/day")
    for on_error, status in (("unknown", 200), ("deny", 503)):
        folder = tmp_path / on_error
        folder.mkdir()
        with weir_of(folder, limit, identify=IDENTIFY, on_unknown="deny",
                     identities={"redis": "redis://127.0.0.1:1", "on_error": on_error}) as weir:
            reply = weir.check(path="/", headers={"x-api-key": "K"})
            assert reply.status == status, reply.body


@pytest.mark.parametrize("front", FRONTS)
def test_all_spellings_of_a_credential_are_one_key(tmp_path, front):
    with weir_of(tmp_path, HEADER) as weir:
        ask = front(weir).ask
        assert [ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
            ["allowed"] + ["denied"] * (len(SPELLINGS) - 1))
        assert ask(*bearer("Bearer k")) == "allowed"
        assert [ask(*bearer("ACME x")), ask(*bearer("acme  x"))] == ["allowed", "denied"]


STANDING = {"by": ["header.authorization"]}
FREE = {"name": "free", "key": [], "rate": "100000/day"}


OPERATOR = {"Authorization": "Bearer s3cret"}


def operated(folder, *limits, **parts):
    server = {"grpc": "127.0.0.1:0", "admin": {"token": "s3cret"}}
    return RedisWeir(folder, rules_of(*limits, server=server, **parts), http="127.0.0.1:0",
                     admin="127.0.0.1:0")


def put(weir, value, level):
    with weir.admin() as client:
        reply = client.request("PUT", "/v1/standing", OPERATOR, json.dumps(
            {"kind": "header.authorization", "value": value, "level": level}).encode())
    assert reply.status == 200, reply.body
    return reply.json["value"]


def forget(weir, value):
    with weir.admin() as client:
        query = urllib.parse.urlencode({"kind": "header.authorization", "value": value})
        return client.request("DELETE", f"/v1/standing?{query}", OPERATOR).status


@pytest.mark.parametrize("front", FRONTS)
def test_a_ban_of_one_spelling_is_a_ban_of_all(tmp_path, front):
    standing = {**STANDING, "file": str(tmp_path / "standing.db")}
    with operated(tmp_path, FREE, standing=standing) as weir:
        ask = front(weir).ask
        shown = {put(weir, one.format("K"), "suspended") for one in SPELLINGS}
        assert shown == {"sha256:" + digest("Bearer K")}
        assert [ask(*bearer(one.format("K"))) for one in SPELLINGS] == ["denied"] * len(SPELLINGS)
        assert ask(*bearer("Bearer k")) == ask(*bearer("Basic K")) == "allowed"
        assert forget(weir, "BEARER   K") == 200
        assert [ask(*bearer(one.format("K"))) for one in SPELLINGS] == ["allowed"] * len(SPELLINGS)
        put(weir, "K", "suspended")  # what comes behind the scheme alone: of any scheme
        assert [ask(*bearer(one.format("K"))) for one in SPELLINGS] == ["denied"] * len(SPELLINGS)
        assert ask(*bearer("K")) == ask(*bearer("acme K")) == "denied"
        put(weir, "Bearer K", "trusted")  # the worse of the two counts
        assert ask(*bearer("bearer K")) == "denied"
        assert forget(weir, "K") == 200
        assert ask(*bearer("bearer K")) == "allowed"


@pytest.mark.parametrize("listed", ["bearer   K", "K"])
def test_a_list_may_have_any_spelling(tmp_path, listed):
    (tmp_path / "listed.txt").write_text(f"# leaked\n{listed}\n", encoding="utf-8")
    standing = {**STANDING, "lists": [{"file": "listed.txt", "by": "header.authorization",
                                       "level": "revoked"}]}
    with weir_of(tmp_path, FREE, standing=standing) as weir:
        for front in FRONTS:
            assert [front(weir).ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
                ["denied"] * len(SPELLINGS))
            assert front(weir).ask(*bearer("Bearer other")) == "allowed"


@needs_module
def test_a_list_may_have_any_spelling_in_nginx(tmp_path):
    (tmp_path / "listed.txt").write_text("BEARER K\n", encoding="utf-8")
    standing = {**STANDING, "lists": [{"file": str(tmp_path / "listed.txt"), "level": "revoked",
                                       "by": "header.authorization"}]}
    with nginx_of(tmp_path, FREE, standing=standing) as nginx:
        front = NginxFront(nginx)
        assert [front.ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
            ["denied"] * len(SPELLINGS))
        assert front.ask(*bearer("Bearer k")) == "allowed"


@pytest.mark.parametrize("value", ["bearer  K", "BEARER K*", ["Basic x", "bearer K"]])
def test_a_match_may_have_any_spelling(tmp_path, value):
    limit = dict(HEADER, match={"header.authorization": value}, key=[])
    with weir_of(tmp_path, limit) as weir:
        assert [Check(weir).ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
            ["allowed"] + ["denied"] * (len(SPELLINGS) - 1))
        assert Check(weir).ask(*bearer("Bearer other")) == "allowed"


def test_an_operator_may_spell_a_key_as_clients_do(tmp_path):
    limit = dict(HEADER, rate="9/day", top_up="1d")
    with operated(tmp_path, limit) as weir, weir.admin() as admin:
        weir.check(headers={"authorization": "Bearer K"}, cost=9)

        def operate(method, what, value, query=""):
            key = urllib.parse.urlencode({"key": value})
            return admin.request(method, f"/v1/limits/each/{what}?{key}{query}", OPERATOR).json

        assert operate("POST", "grant", "bearer  K", "&units=4")["limits"][0]["remaining"] == 4
        assert operate("POST", "grant", " BEARER K", "&units=5&above=true")["bought"] == 5
        assert operate("GET", "state", "BEARER\tK")["limits"][0]["remaining"] == 4
        assert operate("DELETE", "state", "bearer K")["removed"] is True
        assert operate("GET", "state", "Bearer K")["limits"][0]["remaining"] == 9


REPEATING = [Auth, Authz]  # in JSON and over the Redis protocol, a name twice is an error


@pytest.mark.parametrize("field,first,second", [("X-Api-Key", "K", "x"), ("X-Api-Key", "x", "K"),
                                                ("Authorization", "Bearer K", "Bearer x")])
@pytest.mark.parametrize("front", REPEATING)
def test_repeated_credentials_that_differ_are_unread(tmp_path, front, field, first, second):
    keys = keys_file(tmp_path, ("K", "ann"))
    lines = [(field, first), (field.lower(), second)]
    limit = dict(USER, rate="1000/day")
    with weir_of(tmp_path, limit, identify=IDENTIFY, keys=keys) as weir:
        assert front(weir).ask(*lines) == "unread"
        assert front(weir).ask(lines[0], (field.lower(), first)) == "allowed"
        assert front(weir).ask(("Cookie", "a=1"), ("cookie", "a=2")) == "allowed"
        assert front(weir).ask(("X-Tag", "a"), ("x-tag", "b")) == "allowed"
    for which, said in (("first", first), ("last", second)):
        folder = tmp_path / which
        folder.mkdir()
        with weir_of(folder, limit, identify=IDENTIFY, keys=keys, on_unknown="deny",
                     repeated_credentials=which) as weir:
            assert front(weir).ask(*lines) == ("allowed" if "K" in said else "denied")


@pytest.mark.parametrize("first,second", [("K", "x"), ("x", "K")])
@pytest.mark.parametrize("front", FRONTS)
def test_a_key_that_the_query_has_twice_is_unread(tmp_path, front, first, second):
    keys, identify = keys_file(tmp_path, ("K", "ann")), ["query.api_key", "client.ip"]
    path, limit = f"/a?api_key={first}&t=1&%61pi_key={second}&t=2", dict(USER, rate="1000/day")
    with weir_of(tmp_path, limit, identify=identify, keys=keys) as weir:
        ask = front(weir).ask
        assert ask(path=path) == "unread"
        assert ask(path=f"/a?api_key={first}&api_key={first}&t=1&t=2") == "allowed"
        assert ask(path="/a?api_key=K,x") == "allowed"  # no header field, whose lines are joined
    for which, said in (("first", first), ("last", second)):
        folder = tmp_path / which
        folder.mkdir()
        with weir_of(folder, limit, identify=["query.api_key"], keys=keys, on_unknown="deny",
                     repeated_credentials=which) as weir:
            assert front(weir).ask(path=path) == ("allowed" if said == "K" else "denied")


@pytest.mark.parametrize("front", [Check, Resp])
def test_a_field_twice_is_an_error_where_programs_name_it(tmp_path, front):
    with weir_of(tmp_path, HEADER) as weir:
        assert front(weir).ask(("Authorization", "Bearer K"), ("authorization", "x")) == "unread"


@pytest.mark.parametrize("front", FRONTS)
def test_an_empty_user_agent_is_none_and_header_host_is_the_host(tmp_path, front):
    nameless = {"name": "nameless", "match": {"path": "/a", "header.user-agent": "absent"}, "key": [],
                "rate": "1/day", "algorithm": "token_bucket"}
    host = {"name": "host", "match": {"path": "/h"}, "key": ["header.host"], "rate": "1/day",
            "algorithm": "token_bucket"}
    with weir_of(tmp_path, nameless, host) as weir:
        ask = front(weir).ask
        assert ask(("User-Agent", "curl"), path="/a") == "allowed"
        assert [ask(("User-Agent", ""), path="/a"), ask(("X-Other", "1"), path="/a")] == [
            "allowed", "denied"]
        assert [ask(path="/h", host="Shop.Example"), ask(path="/h", host="shop.example:80"),
                ask(path="/h", host="other.example")] == ["allowed", "denied", "allowed"]


@pytest.mark.parametrize("key,parts,said", [
    *[([f"header.{name}"], {}, "warning: each: clients write")
      for name in ("X-Forwarded-For", "forwarded", "x-real-ip", "x-client-ip", "true-client-ip",
                   "cf-connecting-ip")],
    (["path", "header.x-forwarded-for"], {}, "use `client.ip`"),
    (["header.x-tenant"], {}, "hint: each: a client can send another header.x-tenant"),
    (["header.x-tenant", "client.ip"], {}, None),
    (["header.x-api-key"], {"identify": IDENTIFY}, None),
    (["header.x-tenant"], {"identify": IDENTIFY, "on_unknown": "deny"}, None),
    (["header.host"], {}, None),
    (["user"], {}, None),
])
def test_validate_tells_of_keys_that_a_client_chooses(tmp_path, key, parts, said):
    if parts:
        parts = parts | {"keys": keys_file(tmp_path, ("K", "ann"))}
    file = tmp_path / "weir.yaml"
    file.write_text(rules_of({"name": "each", "key": key, "rate": "10/day",
                              "algorithm": "token_bucket"}, **parts), encoding="utf-8")
    done = run_weir("validate", str(file))
    assert done.returncode == 0, done.stderr
    if said:
        assert said in done.stdout
    else:
        assert "clients write" not in done.stdout and "a client can send" not in done.stdout


@needs_module
def test_repeated_credentials_and_spellings_in_nginx(tmp_path):
    keys = keys_file(tmp_path, ("K", "ann"))
    with nginx_of(tmp_path, dict(USER, rate="1000/day"), dict(HEADER, name="spelled"),
                  identify=IDENTIFY, keys=keys) as nginx:
        ask = NginxFront(nginx).ask
        assert ask(("X-Api-Key", "K"), ("X-Api-Key", "x")) == "unread"
        assert ask(("X-Api-Key", "K"), ("X-Api-Key", "K")) == "allowed"
        assert ask(*bearer("Bearer K"), *bearer("Bearer x")) == "unread"
        assert [ask(*bearer(one.format("K"))) for one in SPELLINGS] == (
            ["allowed"] + ["denied"] * (len(SPELLINGS) - 1))
        assert ask(("Cookie", "a=1"), ("Cookie", "a=2")) == "allowed"
