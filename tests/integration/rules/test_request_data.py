# SPDX-License-Identifier: Apache-2.0
"""`query.NAME` and `cookie.NAME` on every front end, and that no cookie is shown anywhere."""

import hashlib

import pytest

from daemon import grpc as wire
from daemon.grpc import Stub
from daemon.redis import RedisWeir
from daemon.weir import rules_of
from model.program import replay_decisions, run_weir

SECRET = "c00kie-that-nobody-may-see"
LIMITS = [{"name": "parameter", "match": {"path": "/q"}, "key": ["query.api_key"], "rate": "1/day",
           "algorithm": "token_bucket"},
          {"name": "session", "match": {"path": "/c"}, "key": ["cookie.sid"], "rate": "1/day",
           "algorithm": "token_bucket"}]


class Front:
    """Asks whether a request may pass."""

    def __init__(self, weir):
        self.weir = weir

    def passes(self, target, cookie=None):
        raise NotImplementedError


class Check(Front):
    def passes(self, target, cookie=None):
        headers = {"cookie": cookie} if cookie else {}
        return self.weir.check(path=target, headers=headers).json["allowed"]


class Auth(Front):
    field = "X-Forwarded-Uri"

    def passes(self, target, cookie=None):
        fields = {self.field: target} | ({"Cookie": cookie} if cookie else {})
        with self.weir.client() as client:
            return client.request("GET", "/v1/auth", fields=fields).status == 200


class Original(Auth):
    field = "X-Original-URI"


class Authz(Front):
    def passes(self, target, cookie=None):
        asked = wire.CheckRequest()
        asked.attributes.request.http.path = target
        if cookie:
            asked.attributes.request.http.headers["cookie"] = cookie
        with Stub(self.weir.grpc_address) as stub:
            return stub.call("AuthCheck", asked).status.code == 0


class Resp(Front):
    def passes(self, target, cookie=None):
        fields = ["header.cookie", cookie] if cookie else []
        with self.weir.redis() as client:
            return client.ask("WEIR.CHECK", "path", target, *fields)[1] == 1


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    with RedisWeir(tmp_path, rules_of(*LIMITS, server={"grpc": "127.0.0.1:0"}, denials={"series": 5},
                                  state={"file": str(tmp_path / "state"), "size": "16MiB"}),
                   http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        yield weir


@pytest.mark.parametrize("front", [Check, Auth, Original, Authz, Resp])
def test_a_parameter_and_a_cookie_are_keys_on_every_front_end(weir, front):
    ask = front(weir)
    assert ask.passes("/q?api_key=a") and not ask.passes("/q?x=1&%61pi_key=%61&api_key=b")
    assert ask.passes("/q?api_key=b")
    assert ask.passes("/q") and ask.passes("/q")  # without it, the limit does not apply
    assert ask.passes("/c", f"a=b; sid={SECRET}") and not ask.passes("/c", f"sid={SECRET}; a=b")
    assert ask.passes("/c", "sid=other") and ask.passes("/c", "xsid=other")


def test_all_front_ends_count_together(weir):
    fronts = [front(weir) for front in (Check, Auth, Original, Authz, Resp)]
    for number, first in enumerate(fronts):
        assert first.passes(f"/q?api_key={number}")
        assert not any(ask.passes(f"/q?api_key={number}") for ask in fronts)


def test_a_cookie_is_shown_nowhere(weir):
    cookie = f"sid={SECRET}"
    answers = [weir.check(path="/c", headers={"cookie": cookie}) for _ in range(3)]
    assert [answer.json["allowed"] for answer in answers] == [True, False, False]
    texts = [answer.body for answer in answers]
    with weir.admin() as admin:
        for path in ("/v1/limits/session/top", "/v1/limits", "/v1/use/top?limit=session",
                     "/v1/denials", "/metrics"):
            answer = admin.request("GET", path)
            assert answer.status == 200, path
            texts.append(answer.body)
    assert b"sha256:" in texts[3]
    explained = run_weir("explain", "--config", weir.config, "--path", "/c", "--header",
                         f"Cookie: {cookie}", "--state", weir.folder / "state")
    assert "cookie.sid=sha256:" in explained.stdout and "denies" in explained.stdout
    other = run_weir("explain", "--config", weir.config, "--path", "/other", "--header",
                     f"Cookie: {cookie}")
    top = run_weir("top", "--once", "--admin", weir.admin_address)
    denials = run_weir("denials", "--admin", weir.admin_address)
    assert "sha256:" in top.stdout and "sha256:" in denials.stdout, denials.stderr
    for done in explained, other, top, denials:
        texts.append((done.stdout + done.stderr).encode())
    texts.append(weir.text().encode())
    assert not any(SECRET.encode() in text for text in texts)


def test_an_access_log_has_queries(tmp_path):
    line = '192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] "GET /q?api_key={} HTTP/1.1" 200 5'
    decisions = replay_decisions(tmp_path, rules_of(*LIMITS),
                                 [line.format(key) for key in ("a", "%61", "b")])
    assert [one["allowed"] for one in decisions] == [True, False, True]


def test_identities_and_tokens_can_come_from_them(tmp_path):
    keys = tmp_path / "keys.yaml"
    digest = hashlib.sha256(b"key-of-ann").hexdigest()
    keys.write_text(f"{digest}: {{ user: ann }}\n", encoding="utf-8")
    rules = tmp_path / "weir.yaml"
    rules.write_text(rules_of({"name": "user", "key": ["user"], "rate": "1/day"},
                              keys="keys.yaml", identify=["query.api_key", "cookie.key"]),
                     encoding="utf-8")
    for asked in (["--path", "/?api_key=key%2Dof-ann"], ["--header", "Cookie: key=key-of-ann"]):
        done = run_weir("explain", "--config", rules, *asked)
        assert "user ann\n" in done.stdout and "user=ann" in done.stdout, done.stdout + done.stderr


def test_validate_tells_of_names_that_are_not_declared(tmp_path):
    rules = tmp_path / "weir.yaml"
    limits = [{"name": "a", "key": ["query.account", "cookie.sid", "path"], "rate": "1/s"},
              {"name": "b", "key": ["api_key"], "rate": "1/s"}, {"name": "c", "key": ["tenant"],
                                                                "match": {"region": "eu"},
                                                                "rate": "1/s"}]
    rules.write_text(rules_of(*limits), encoding="utf-8")
    done = run_weir("validate", rules)
    assert done.returncode == 0
    named = {line.split("unknown attribute ")[1].split(";")[0]: line
             for line in done.stderr.splitlines()}
    assert set(named) == {"`api_key`", "`region`", "`tenant`"}
    assert "`query.api_key`" in named["`api_key`"]
    rules.write_text(rules_of(limits[0]), encoding="utf-8")
    assert run_weir("validate", "--strict", rules).stderr == ""
