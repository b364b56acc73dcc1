# SPDX-License-Identifier: Apache-2.0
"""/v1/denials/groups against what was sent, and pages of /v1/denials."""

from collections import Counter

import pytest

from daemon.weir import Weir, rules_of

LIMITS = [{"name": "api", "match": {"path": "/api/**"}, "key": ["user"], "rate": "2/day"},
          {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "1/day"}]
NINE = ",".join(f"k{i}=v" for i in range(9))


def start(folder, **parts):
    return Weir(folder, rules_of(*LIMITS, **parts), "--workers", "2")


def groups(weir, query=""):
    reply = weir.admin().request("GET", f"/v1/denials/groups{query}")
    assert reply.status == 200, reply.body
    return reply.json


def names(group):
    return {one.get("name", one.get("key")): one["denials"] for one in group}


def send(weir, sent, path, times, **caller):
    """Counts what is denied, by what it should be grouped by."""
    with weir.client() as client:
        for _ in range(times):
            reply = client.check(path=path, ip=caller.get("ip"),
                                 attributes={"user": caller["user"]} if "user" in caller else {})
            if reply.status != 429:
                continue
            who = f"user={caller['user']}" if "user" in caller else f"client.ip={caller['ip']}"
            route = "/login" if path == "/login" else "/api/**"
            sent.update([("limit", "login" if path == "/login" else "api"), ("caller", who),
                         ("route", route), ("cause", "limit")])


def test_groups_have_all_that_was_denied_kept_or_not(tmp_path):
    """`sample` is 5 a second for each key: of ann's 40 most are counted only."""
    sent = Counter()
    with start(tmp_path) as weir:
        send(weir, sent, "/api/x", 42, user="ann", ip="192.0.2.1")
        send(weir, sent, "/api/y", 4, user="bob", ip="192.0.2.2")
        send(weir, sent, "/login", 3, ip="192.0.2.3")
        found = groups(weir)
        kept = weir.admin().request("GET", "/v1/denials?count=10000").json["denials"]
        # What was left out since a key's last denial that is kept is counted by the next one.
        most = sum(sent[cause] for cause in sent if cause[0] == "cause")
        assert found["kept"] == len(kept) < most
        assert found["denials"] == len(kept) + sum(one["more"] for one in kept) <= most
        for kind in ("limit", "caller", "route", "cause"):
            shown = names(found["groups"][kind])
            assert set(shown) == {name for of, name in sent if of == kind}
            assert sum(shown.values()) == found["denials"]
            assert all(count <= sent[kind, name] for name, count in shown.items())
            assert found["others"][kind] == 0
        assert names(found["groups"]["caller"])["user=bob"] == 2
        assert names(found["groups"]["limit"])["login"] == 2
        assert sum(found["counts"]) == found["denials"]
        assert found["groups"]["caller"][0]["values"] == [{"kind": "user", "value": "ann"}]


@pytest.mark.parametrize(("query", "expected"), [
    ("?limit=login", {"login": 2}), ("?route=/login", {"login": 2}), ("?cause=limit", {"api": 2, "login": 2}),
    ("?cause=standing", {}), ("?key=user%3Dbob", {"api": 2}), ("?address=192.0.2.3", {"login": 2}),
    ("?since=1&until=2", {}), ("?since=1h", {"api": 2, "login": 2}), ("?cause=limit&cause=store", {"api": 2, "login": 2})])
def test_a_filter_holds_for_all_of_it(tmp_path, query, expected):
    with start(tmp_path) as weir:
        send(weir, Counter(), "/api/y", 4, user="bob", ip="192.0.2.2")
        send(weir, Counter(), "/login", 3, ip="192.0.2.3")
        found = groups(weir, query)
        assert names(found["groups"]["limit"]) == expected
        assert found["denials"] == sum(expected.values()) == sum(found["counts"])


def test_only_the_greatest_are_listed_and_the_others_counted(tmp_path):
    with start(tmp_path) as weir:
        for i in range(14):
            send(weir, Counter(), "/api/x", 3 + (i < 3), user=f"user{i}", ip="192.0.2.1")
        found = groups(weir)
        callers = found["groups"]["caller"]
        assert [one["denials"] for one in callers] == [2, 2, 2] + [1] * 7
        assert {one["key"] for one in callers[:3]} == {"user=user0", "user=user1", "user=user2"}
        assert found["others"]["caller"] == 4 and found["denials"] == 17


@pytest.mark.parametrize(("span_s", "step_s"), [(60, 1), (600, 10), (3600, 60), (86400, 1200), (604800, 7200),
                                                (86400 * 400, 86400 * 4)])
def test_bars_are_few_and_begin_where_they_are_read_easily(tmp_path, span_s, step_s):
    with start(tmp_path) as weir:
        until = 1_790_000_003
        found = groups(weir, f"?since={until - span_s}&until={until}")
        assert found["step_s"] == step_s and found["from_s"] % step_s == 0
        assert found["from_s"] <= until - span_s < found["from_s"] + step_s
        assert len(found["counts"]) == (until - found["from_s"]) // step_s + 1 <= 120


def test_an_unknown_limit_is_said_to_be_unknown(tmp_path):
    with start(tmp_path) as weir:
        assert groups(weir, "?limit=login")["limit_known"]
        assert groups(weir, "?limit=standing")["limit_known"]
        assert not groups(weir, "?limit=logni")["limit_known"]


def test_what_is_not_kept_any_more_is_said(tmp_path):
    with start(tmp_path) as weir:
        known = groups(weir, "?since=1d")["known_from_s"]
        assert groups(weir, "?since=1d")["from_s"] < known  # before the start nothing is known
    with start(tmp_path, denials={"file": str(tmp_path / "denials.log")}) as weir:
        assert groups(weir, "?since=1d")["known_from_s"] == 0


def test_pages_have_each_denial_once(tmp_path):
    with start(tmp_path, denials={"sample": 1000}) as weir:
        send(weir, Counter(), "/api/x", 27, user="ann", ip="192.0.2.1")
        with weir.admin() as client:
            seen, before = [], ""
            for expected in (10, 10, 5, 0):
                page = client.request("GET", f"/v1/denials?count=10{before}").json["denials"]
                assert len(page) == expected
                seen += [one["id"] for one in page]
                before = f"&before={seen[-1]}"
            assert seen == sorted(set(seen), reverse=True) and len(seen) == 25
            for wrong in ("before=0", "before=x", "cause=nope", "cause=unreadable", "route=%zz", f"key={NINE}"):
                assert client.request("GET", f"/v1/denials?{wrong}").status == 400, wrong
            assert client.request("GET", f"/v1/use/key?key={NINE}").status == 400
            assert client.request("GET", "/v1/use/key?count=x").status == 400  # one answer, not two
            assert client.request("GET", "/v1/denials/nothing").status == 404


def test_a_series_has_the_fields_that_are_asked_for(tmp_path):
    with start(tmp_path) as weir, weir.admin() as client:
        values = client.request("GET", "/v1/series?fields=denied,edge_denied&count=3").json["values"]
        assert values == {"denied": [0, 0, 0], "edge_denied": [0, 0, 0]}
        assert set(client.request("GET", "/v1/series?fields=denied&limit=api").json["values"]) == {"denied"}
        for wrong in ("fields=", "fields=nope", "fields=denied,"):
            reply = client.request("GET", f"/v1/series?{wrong}")
            assert reply.status == (200 if wrong == "fields=denied," else 400), wrong
