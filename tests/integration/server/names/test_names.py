# SPDX-License-Identifier: Apache-2.0
"""One name for one value: whatever a customer is called, the API, searches, bans and the commands
name it the same way; and denials say who has asked."""

import hashlib
import json
from urllib.parse import quote, urlencode

import pytest

from daemon.weir import Weir, rules_of
from model.program import run_weir

NAMES = ["ann", "علي بن أبي طالب", "Zoë, the 2nd", "100% sure", "sha256:abc", "-", "ip:1.2.3.4",
         "🦊" * 40, "x" * 300, "a=b", "<b>eve</b>", "back\\slash \"quoted\"", "o'neil\u202ekcab"]


def ascii_id(name):
    return name.encode("ascii", "replace").decode()[:12]


SECRET = "Bearer very-secret-key"


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("names")
    rules = rules_of(
        {"name": "one", "match": {"path": "/one"}, "key": ["user"], "rate": "1/366d"},
        {"name": "team", "match": {"path": "/team"}, "key": ["org"], "rate": "1/366d"},
        {"name": "pair", "match": {"path": "/pair"}, "key": ["user", "client.ip"], "rate": "1/366d"},
        {"name": "secret", "match": {"path": "/secret"}, "key": ["header.authorization"],
         "rate": "1/366d"},
        denials={"sample": 1000, "file": str(folder / "denials.log")},
        standing={"by": ["user", "client.ip", "header.authorization"],
                  "file": str(folder / "standing.db")},
        server={"admin": {"address": "127.0.0.1:0", "token": "s3cret"}})
    with Weir(folder, rules, "--workers", "2", admin=None) as weir:
        for name in NAMES:
            for _ in range(3):
                weir.check(path="/one", ip="192.0.2.1", attributes={"user": name})
        for user in ("bob", "eve"):
            for _ in range(3):
                weir.check(path="/team", ip="2001:db8::7", attributes={"user": user, "org": "acme"})
        for _ in range(2):
            weir.check(path="/pair", ip="192.0.2.9", attributes={"user": "ann"})
            weir.check(path="/secret", ip="192.0.2.9", headers={"authorization": SECRET})
        yield weir


def call(weir, method, path, body=None, status=200):
    with weir.admin() as admin:
        reply = admin.request(method, path, body=None if body is None else json.dumps(body).encode())
    assert reply.status == status, reply.body
    return reply.json


def ask(weir, path, **query):
    return call(weir, "GET", path + ("?" + urlencode(query) if query else ""))


def run(weir, *options):
    done = run_weir(*options, "--admin", weir.admin_address, "--token", "s3cret")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def value_of(name):
    if len(name.encode()) <= 96:
        return {"kind": "user", "value": name}
    begins = name.encode()[:96].decode(errors="ignore")
    return {"kind": "user", "begins": begins, "sha256": sha256(name)}


@pytest.mark.parametrize("name", NAMES, ids=ascii_id)
def test_the_api_has_the_real_value(weir, name):
    found = [key["values"] for key in ask(weir, "/v1/use/top", limit="one", window="day",
                                          count=100)["keys"]]
    assert found.count([value_of(name)]) == 1
    denied = [one["values"] for one in ask(weir, "/v1/denials", limit="one")["denials"]]
    assert denied.count([value_of(name)]) == 2


@pytest.mark.parametrize("name", NAMES, ids=ascii_id)
@pytest.mark.parametrize("form", ["{}", "user={}"])
def test_a_search_takes_the_real_value(weir, name, form):
    found = ask(weir, "/v1/denials", key=form.format(name), limit="one")["denials"]
    assert [one["values"] for one in found] == [[value_of(name)]] * 2
    limits = [one for one in ask(weir, "/v1/use/key", key=form.format(name))["limits"]
              if one["limit"] == "one"]
    assert [one["values"] for one in limits] == [[value_of(name)]]
    assert limits[0]["day"]["requests"] == 3
    printed = [json.loads(line) for line in
               run(weir, "denials", "--json", "--limit", "one", "--key", form.format(name)).splitlines()]
    assert [one["values"] for one in printed] == [[value_of(name)]] * 2


@pytest.mark.parametrize("name", NAMES, ids=ascii_id)
def test_what_is_shown_finds_it_too(weir, name):
    shown = {one["key"] for one in ask(weir, "/v1/denials", limit="one",
                                       key=f"user={name}")["denials"]}
    assert len(shown) == 1
    again = ask(weir, "/v1/denials", limit="one", key=shown.pop())["denials"]
    assert [one["values"] for one in again] == [[value_of(name)]] * 2


def test_the_link_of_a_denied_key_leads_to_its_own_state(weir):
    links = {one["key"]: one["state"] for one in ask(weir, "/v1/limits/one/top", count=100)["keys"]
             if "state" in one}
    assert set(links) == {one["key"] for one in ask(weir, "/v1/denials", limit="one")["denials"]
                          if "~" not in one["key"] and one["key"] != "user=%69p:1.2.3.4"}
    for key, path in links.items():
        state = call(weir, "GET", path)
        assert state["limits"][0]["remaining"] == 0, key


def test_texts_differ_and_show_the_real_characters(weir):
    shown = {one["key"] for one in ask(weir, "/v1/denials", limit="one")["denials"]}
    assert len(shown) == len(NAMES)
    assert {"user=علي بن أبي طالب", "user=Zoë%2c the 2nd", "user=100%25 sure", "user=%2d",
            "user=<b>eve</b>"} <= shown
    assert f"user={'x' * 96}~{sha256('x' * 300)[:16]}" in shown
    assert not [text for text in shown if "\u202e" in text]


def test_the_commands_say_the_real_name(weir):
    real = [name for name in NAMES if len(name) < 40 and "\u202e" not in name]
    denied = run(weir, "denials", "--limit", "one", "--count", "100")
    most = run(weir, "top", "--once", "--count", "100")
    for name in real:
        assert f"  one  user={name}  /one" in denied, name
        assert [line for line in most.splitlines() if line.startswith("one ") and line.endswith(f"  user={name}")], name


def test_a_denial_by_standing_has_no_numbers_of_a_limit(weir):
    call(weir, "PUT", "/v1/standing", {"kind": "user", "value": "sue", "level": "suspended", "for_ms": 60000})
    assert weir.check(path="/one", ip="192.0.2.1", attributes={"user": "sue"}).json["denied_by"] == "standing"
    text = run(weir, "denials", "--limit", "standing", "--user", "sue")
    assert "standing  user=sue" in text and "\n    admitted in " in text and "asked for" not in text


@pytest.mark.parametrize("name", NAMES, ids=ascii_id)
def test_a_ban_of_the_value_that_is_shown_holds(weir, name):
    value = value_of(name)
    text = value.get("value") or f"sha256:{value['sha256']}"
    call(weir, "PUT", "/v1/standing", {"kind": "user", "value": text, "level": "suspended",
                                       "for_ms": 60000})
    try:
        denied = weir.check(path="/one", ip="192.0.2.1", attributes={"user": name})
        assert denied.json["denied_by"] == "standing"
        assert ask(weir, "/v1/standing", kind="user", value=text)["in_force"]["level"] == "suspended"
    finally:
        call(weir, "DELETE", f"/v1/standing?kind=user&value={quote(text)}")
    after = weir.check(path="/one", ip="192.0.2.1", attributes={"user": name})
    assert after.json["denied_by"] == "one"


def test_the_history_says_why_a_ban_by_digest_was_ended_by_the_value(weir):
    name, digest = "x" * 300, f"sha256:{sha256('x' * 300)}"
    call(weir, "PUT", "/v1/standing", {"kind": "user", "value": digest, "level": "suspended", "for_ms": 60000})
    call(weir, "DELETE", f"/v1/standing?kind=user&value={name}&by=kim&reason=sorry")
    newest = ask(weir, "/v1/standing/history", kind="user", value=digest)["changes"][0]
    assert (newest["level"], newest["by"], newest["reason"]) == (None, "kim", "sorry")


def test_a_secret_is_banned_by_its_digest(weir):
    shown = ask(weir, "/v1/denials", limit="secret")["denials"]
    assert [one["values"] for one in shown] == [[{"kind": "header.authorization",
                                                  "sha256": sha256(SECRET)}]]
    assert SECRET not in json.dumps(shown)
    for key in (SECRET, f"sha256:{sha256(SECRET)}", f"header.authorization=sha256:{sha256(SECRET)[:16]}"):
        assert ask(weir, "/v1/denials", key=key)["denials"] == shown
    call(weir, "PUT", "/v1/standing", {"kind": "header.authorization", "level": "suspended",
                                       "value": f"sha256:{sha256(SECRET)}", "for_ms": 60000})
    denied = weir.check(path="/secret", ip="192.0.2.9", headers={"authorization": SECRET})
    assert denied.json["denied_by"] == "standing"


def test_a_denial_says_who_has_asked(weir):
    bob = ask(weir, "/v1/denials", user="bob")["denials"]
    assert [one["limit"] for one in bob] == ["team"] * 2
    assert bob[0]["values"] == [{"kind": "org", "value": "acme"}]
    assert bob[0]["caller"] == [{"kind": "user", "value": "bob"}, {"kind": "org", "value": "acme"},
                                {"kind": "client.ip", "value": "2001:db8::7"}]
    assert len(ask(weir, "/v1/denials", org="acme")["denials"]) == 5
    assert len(ask(weir, "/v1/denials", org="acme", user="eve")["denials"]) == 3
    assert len(ask(weir, "/v1/denials", address="2001:db8::7")["denials"]) == 5
    assert ask(weir, "/v1/denials", user="acme")["denials"] == []
    printed = run(weir, "denials", "--user", "bob")
    assert printed.count("team  org=acme") == 2
    assert "asked by user=bob, client.ip=2001:db8::7" in printed
    of_file = run_weir("denials", "--file", str(weir.folder / "denials.log"), "--user", "bob", "--json")
    assert [json.loads(line)["caller"] for line in of_file.stdout.splitlines()] \
        == [one["caller"] for one in bob]


def test_a_pair_is_found_as_it_is_shown(weir):
    found = ask(weir, "/v1/denials", key="user=ann,client.ip=192.0.2.9")["denials"]
    assert [one["limit"] for one in found] == ["pair"]


SPELLINGS = [
    ("team", {"address": "2001:DB8:0:0::0007"}), ("team", {"key": "client.ip=2001:db8:0::7"}),
    ("team", {"key": "2001:DB8::7"}), ("team", {"address": "2001:db8::7%eth0"}),
    ("pair", {"address": "::ffff:192.0.2.9"}), ("pair", {"key": "::FFFF:192.0.2.9"}),
    ("pair", {"key": "client.ip=192.0.2.9,user=ann"}), ("pair", {"key": "user=ann,client.ip=::ffff:192.0.2.9"}),
    ("secret", {"key": "header.authorization=bearer  very-secret-key"}),
    ("secret", {"key": "BEARER very-secret-key"}),
]


@pytest.mark.parametrize("limit,query", SPELLINGS, ids=[f"{limit} {query}" for limit, query in SPELLINGS])
def test_values_are_found_however_they_are_spelled(weir, limit, query):
    every = ask(weir, "/v1/denials", limit=limit)["denials"]
    assert every and ask(weir, "/v1/denials", limit=limit, **query)["denials"] == every
    options = [word for name, value in query.items() for word in (f"--{name}", value)]
    printed = run(weir, "denials", "--json", "--limit", limit, *options).splitlines()
    of_file = run_weir("denials", "--json", "--limit", limit, "--file",
                       str(weir.folder / "denials.log"), *options).stdout.splitlines()
    for lines in (printed, of_file):
        assert [json.loads(line)["values"] for line in lines] == [one["values"] for one in every]


@pytest.mark.parametrize("query", [
    {"key": "user=ann,client.ip=192.0.2.8"}, {"key": "user=an,client.ip=192.0.2.9"},
    {"key": "client.ip=192.0.2.9,"}, {"key": ",user=ann"}, {"key": "user=ann,org=acme"},
    {"key": "Bearer very-secret"}, {"address": "192.0.2.90"}, {"user": "BOB"}, {"key": "user="}])
def test_what_is_nearly_a_value_finds_nothing(weir, query):
    assert ask(weir, "/v1/denials", **query)["denials"] == []


def test_values_with_commas_and_signs_are_found_among_several(weir):
    name = "Chloë, the 3rd"
    weir.check(path="/pair", ip="192.0.2.10", attributes={"user": name})
    weir.check(path="/pair", ip="192.0.2.10", attributes={"user": name})
    for key in (f"client.ip=192.0.2.10,user={name}", f"user={name},client.ip=192.0.2.10"):
        assert [one["limit"] for one in ask(weir, "/v1/denials", key=key)["denials"]] == ["pair"]


def test_a_client_behind_a_translator_has_one_name(tmp_path):
    """64:ff9b::/96 is one /64 of everybody."""
    each = {"name": "each", "key": ["client.ip"], "rate": "1/366d"}
    with Weir(tmp_path, rules_of(each, denials={"sample": 1000})) as weir:
        for number in range(3):
            for address in (f"64:ff9b::8.8.8.{number}", f"8.8.8.{number}"):
                weir.check(path="/", ip=address, attributes={"user": f"u{number}"})
        callers = ask(weir, "/v1/use/callers", window="day", kind="client.ip")["callers"]
        assert sorted((one["key"], one["requests"], one["denied"]) for one in callers) == \
            [(f"client.ip=8.8.8.{number}", 2, 1) for number in range(3)]
        for text in ("8.8.8.1", "64:ff9b::808:801", "64:FF9B::8.8.8.1"):
            denied, = ask(weir, "/v1/denials", address=text)["denials"]
            assert {"kind": "client.ip", "value": "8.8.8.1"} in denied["caller"]


def test_callers_have_their_share_of_requests(weir):
    answer = ask(weir, "/v1/use/callers", window="day")
    org = [one for one in answer["callers"] if one["values"][0]["kind"] == "org"]
    assert len(org) == 1
    assert (org[0]["key"], org[0]["requests"], org[0]["denied"]) == ("org=acme", 6, 5)
    assert org[0]["share_percent"] == round(600 / answer["requests"], 1)
    addresses = ask(weir, "/v1/use/callers", window="day", kind="client.ip")["callers"]
    assert [one["key"] for one in addresses][-1] != "org=acme"
    assert "client.ip=2001:db8::/64" in [one["key"] for one in addresses]
    call(weir, "GET", "/v1/use/callers?kind=plan", status=400)
