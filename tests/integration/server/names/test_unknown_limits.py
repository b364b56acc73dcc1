# SPDX-License-Identifier: Apache-2.0
"""Names of limits that the rules do not have: every command and call that takes one says so, and which one may
be meant."""

import pytest

from daemon.weir import Weir, rules_of
from model.program import run_weir

TOKEN = "operator0123456789"
LIMITS = [{"name": "search", "match": {"path": "/search"}, "key": ["user"], "rate": "1/h"},
          {"name": "login", "match": {"path": "/login"}, "key": ["user"], "rate": "1/h"}]


def rules(*limits):
    return rules_of(*limits, server={"admin": {"listen": "127.0.0.1:0", "token": TOKEN}})


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    with Weir(tmp_path_factory.mktemp("limits"), rules(*LIMITS), admin=None) as weir:
        for _ in range(2):
            weir.check(path="/search", attributes={"user": "ann"})
        yield weir


def run(weir, command, *options):
    return run_weir(command, "--admin", weir.admin_address, "--token", TOKEN, *options)


def get(weir, path):
    with weir.admin() as admin:
        return admin.request("GET", path)


@pytest.mark.parametrize("name, hint", [("serach", "; did you mean 'search'?"), ("nothing-like-it", "")])
@pytest.mark.parametrize("options", [(), ("--json",), ("--follow",)])
def test_denials_of_an_unknown_limit_are_an_error(weir, name, hint, options):
    done = run(weir, "denials", "--limit", name, *options)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.rstrip().endswith(f"the rules have no limit '{name}'{hint}")


@pytest.mark.parametrize("name", ["search", "login", "standing"])
def test_denials_of_a_known_limit_are_none_or_shown(weir, name):
    done = run(weir, "denials", "--limit", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("user=ann" in done.stdout) == (name == "search") and ("no denials" in done.stdout) == (name != "search")


def test_denials_of_a_limit_that_a_reload_took_away_are_shown_with_a_line(tmp_path):
    with Weir(tmp_path, rules(*LIMITS), admin=None) as weir:
        for _ in range(2):
            weir.check(path="/search", attributes={"user": "ann"})
        weir.write_rules(rules(LIMITS[1]))
        assert "event=reloaded" in weir.reload()
        done = run(weir, "denials", "--limit", "search")
        assert done.returncode == 0 and "user=ann" in done.stdout
        assert "the rules have no limit 'search'" in done.stderr


def test_a_grant_to_an_unknown_limit_is_an_error(weir):
    done = run(weir, "grant", "--limit", "serach", "--units", "1", "--key", "ann")
    assert done.returncode == 1 and "no limit of that name; did you mean `search`?" in done.stderr


@pytest.mark.parametrize("path", ["/v1/series?limit=serach", "/v1/limits/serach", "/v1/limits/serach/top"])
def test_what_is_of_one_limit_is_not_found(weir, path):
    answer = get(weir, path)
    assert answer.status == 404 and answer.json["detail"] == "no limit of that name; did you mean `search`?"
    assert get(weir, path.replace("serach", "nothing-like-it")).json["detail"] == "no limit of that name"
    assert get(weir, path.replace("serach", "search")).status == 200


@pytest.mark.parametrize("path", ["/v1/denials", "/v1/denials/groups", "/v1/use/top", "/v1/use/near"])
def test_lists_say_whether_the_rules_have_the_limit(weir, path):
    unknown = get(weir, f"{path}?limit=serach").json
    assert unknown["limit_known"] is False and unknown["did_you_mean"] == "search"
    for known in ("search", "login", "standing"):
        answer = get(weir, f"{path}?limit={known}").json
        assert answer["limit_known"] is True and "did_you_mean" not in answer
    assert get(weir, f"{path}?limit=nothing-like-it").json["did_you_mean"] is None


@pytest.mark.parametrize("kind", ["usre", "client.ip/64/64"])
def test_standing_of_a_kind_that_is_none_is_an_error(tmp_path, kind):
    parts = {"standing": {"by": ["user", "client.ip"], "file": str(tmp_path / "standing.db")}}
    text = rules_of(*LIMITS, server={"admin": {"listen": "127.0.0.1:0", "token": TOKEN}}, **parts)
    with Weir(tmp_path, text, admin=None) as weir:
        for words in (("list",), ("history",)):
            done = run(weir, "standing", *words, "--kind", kind)
            assert done.returncode == 1 and "kind: not one of standing.by: client.ip, user" in done.stderr
            assert run(weir, "standing", *words, "--kind", "user").returncode == 0
