# SPDX-License-Identifier: Apache-2.0
"""The same 200 requests through every door: /v1/check, /v1/auth, WEIR.CHECK, ext_authz, nginx, Node, Python, Go and
replay. All live doors count on one state. A trace of all that was sent, in that order, is then replayed under the same
rules: where a door had another key, another verdict or another limit in mind, its answer differs from the replay's."""

import contextlib
import hashlib
import json
from dataclasses import dataclass

import pytest

from bindings import python_package
from daemon.grpc import Stub
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import ROOT, run_weir

from . import door as reasons
from .asked import COUNT, LONG, Request, requests
from .door import Answer
from .programs import GoDoor, NginxDoor, NodeDoor, PythonDoor
from .servers import Auth, Authz, Check, Resp

DAY = "30d"


def limit(name, key, match=None, rate=5000, **more):
    return {"name": name, "key": key, "rate": f"{rate}/{DAY}", "algorithm": "sliding_log",
            **({"match": match} if match else {}), **more}


LIMITS = [
    limit("user", ["user"]), limit("org", ["org", "plan"], on_missing="shared"), limit("field", ["header.x-a"]),
    limit("shared", ["header.x-b"], on_missing="shared"), limit("cookie", ["cookie.session"]),
    limit("cookies", ["header.cookie"]), limit("query", ["query.q"]), limit("host", ["host"]),
    limit("item", ["path.id"], {"path": "/items/:id"}), limit("network", ["client.ip/64"]),
    limit("address", ["client.ip"]), limit("tenant", ["tenant"]),
    limit("agentless", [], {"header.user-agent": "absent"}), limit("method", ["method"], {"method": ["POST", "DELETE"]}),
    limit("certificate", ["tls.client.cn"]), limit("hosted", [], {"header.host": "example.org"}),
    limit("trust", ["standing", "client.ip"]),
    limit("in-turn", ["tenant"], {"path": ["/items/:id", "/**"]},
          on_missing=["path.id", "header.x-a", "cookie.session", "shared"]),
    # More than there ever is: denied through every door.
    limit("refused", [], {"path": "/refused"}, rate=10, cost=10000),
    limit("barred", [], {"tenant": "t2", "user": "bob"}, rate=10, cost=10000)]


def rules_text(folder, trusted):
    keys = folder / "keys.yaml"
    keys.write_text(f"{hashlib.sha256(b'known').hexdigest()}: {{ user: carl, org: acme }}\n",
                    encoding="utf-8")
    keys.chmod(0o600)
    listener = {"address": "127.0.0.1:0", "trusted": trusted}
    return json.dumps({
        "version": 1, "attributes": ["tenant"], "headers": ["draft"], "identify": ["header.x-api-key"],
        "keys": str(keys), "standing": {"by": ["user"]},
        "server": {"http": listener, "redis": listener, "grpc": listener, "trusted_proxies": ["127.0.0.1"]},
        "state": {"file": str(folder / "state"), "size": "4MiB"}, "limits": LIMITS})


@dataclass(frozen=True)
class Asked:
    door: str
    request: Request
    answer: Answer
    line: int  # of the trace


class Table:
    """What each door answered, and what the trace says that it should have."""

    def __init__(self):
        self.asked, self.lines, self.absent, self.expected = [], [], {}, []

    def open(self, stack, name, make):
        try:
            return stack.enter_context(make())
        except pytest.skip.Exception as skip:
            self.absent[name] = str(skip)
            return None

    def ask(self, doors):
        for request in requests():
            for door in doors:
                if door.skipped(request):
                    continue
                self.asked.append(Asked(door.name, request, door.ask(request), len(self.lines)))
                self.lines.append(json.dumps({"t": 1700000000 + len(self.lines), **door.line(request)}))

    def first_difference(self):
        """A door that counts on another key is the first that differs: the others then find other counts."""
        one = next(one for one in self.asked if one.answer != self.expected[one.line])
        expected = self.expected[one.line]
        here, there = set(one.answer.remaining), set(expected.remaining)
        return (f"{one.door} says {one.answer.verdict} and {sorted(here - there)}, the replay {expected.verdict} and "
                f"{sorted(there - here)}, of {one.request}").replace(LONG, "<long>")

    def replay(self, folder, rules):
        trace, decisions = folder / "trace.jsonl", folder / "decisions.jsonl"
        trace.write_text("".join(line + "\n" for line in self.lines), encoding="utf-8")
        done = run_weir("replay", "--config", rules, "--decisions", decisions, "--skip-bad", trace)
        assert done.returncode == 0, done.stderr
        self.expected = [Answer("unreadable")] * len(self.lines)
        for line in decisions.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            self.expected[one["n"] - 1] = Answer.of_limits(
                one["allowed"], [(limit["name"], limit["remaining"]) for limit in one["limits"]])


@pytest.fixture(scope="module", name="table")
def fixture_table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doors")
    table = Table()
    with contextlib.ExitStack() as stack:
        servers = {}
        for trusted in (True, False):
            (folder / str(trusted)).mkdir()
            servers[trusted] = stack.enter_context(
                Weir(folder / str(trusted), rules_text(folder, trusted), "--workers", "1", http=None))
        rules, state = servers[True].config, folder / "state"
        weir = python_package.load()
        makes = [("/v1/check", lambda: Check(servers)), ("/v1/auth", lambda: Auth(servers)),
                 ("WEIR.CHECK", lambda: Resp(servers)), ("ext_authz", lambda: Authz(servers)),
                 ("nginx", lambda: NginxDoor(folder / "nginx", rules, state)),
                 ("Node", lambda: NodeDoor(folder / "node", rules, state)),
                 ("Python", lambda: PythonDoor(weir and python_package.load("weir.asgi") and weir, rules, state)),
                 ("Go", lambda: GoDoor(folder / "go", rules, state))]
        table.ask([door for door in (table.open(stack, name, make) for name, make in makes) if door])
        table.replay(folder, rules)
    return table


NAMES = ["/v1/check", "/v1/auth", "WEIR.CHECK", "ext_authz", "nginx", "Node", "Python", "Go"]


@pytest.mark.parametrize("name", NAMES)
def test_a_door_has_the_keys_the_verdicts_and_the_answers_of_a_replay(table, name):
    if name in table.absent:
        pytest.skip(table.absent[name])
    asked = [one for one in table.asked if one.door == name]
    assert all(one.answer == table.expected[one.line] for one in asked), table.first_difference()
    assert len(asked) >= COUNT // 2
    assert {one.answer.verdict for one in asked} == {"allowed", "denied", "unreadable"}


def test_every_limit_is_met(table):
    met = {name for answer in table.expected for name, _ in answer.remaining}
    assert met == {one["name"] for one in LIMITS}


# --- Buckets ----------------------------------------------------------------------------------------

# Entries of a bucket's id, of the quota service, and the check that says the same.
BUCKETS = [
    ({"method": "POST", "path": "/items/7?q=a", "host": "Example.org:80", "client.ip": "2001:db8::7"},
     {"method": "POST", "path": "/items/7?q=a", "host": "example.org", "ip": "2001:db8::7"}),
    ({"user": "ann", "tenant": "t1", "paht": "x"}, {"attributes": {"user": "ann", "tenant": "t1"}}),
    ({"header.X-A": "1", "cookie.session": "s", "tls.client.cn": "c", "standing": "trusted"},
     {"headers": {"x-a": "1"}, "attributes": {"cookie.session": "s"}}),
    ({"ip": "192.0.2.1"}, {"ip": "192.0.2.1"})]


def remaining(weir, asked):
    return {one["name"]: one["remaining"]
            for one in weir.check(**{"headers": {}, **asked}, dry_run=True).json["limits"]}


def charge(weir, bucket, asked):
    """The limits that a bucket was charged for, once it was."""
    before = remaining(weir, asked)

    def charged():
        return {name for name, rest in remaining(weir, asked).items() if rest < before[name]}

    with Stub(weir.grpc_address) as stub:
        while not charged():
            with stub.quotas() as quotas:  # which weir resets where this machine is too busy to answer in a second
                quotas.report(bucket, allowed=20)
                wait_until(lambda quotas=quotas: charged() or quotas.error)
    return charged()


@pytest.mark.parametrize("trusted", [True, False])
def test_a_bucket_of_the_quota_service_has_the_keys_of_a_check(tmp_path, trusted):
    buckets = [{**one, "algorithm": "token_bucket", "rate": "100000/h"} for one in LIMITS if one["rate"] != f"10/{DAY}"]
    rules = {**json.loads(rules_text(tmp_path, trusted)), "limits": buckets}
    with Weir(tmp_path, json.dumps(rules), "--workers", "1", http=None) as weir:
        for bucket, asked in BUCKETS:
            met = set(remaining(weir, asked))
            assert charge(weir, bucket, asked) == met
            assert ("user" in met) == (trusted and "user" in bucket)


# --- Where doors differ -----------------------------------------------------------------------------

def test_what_doors_do_otherwise_is_documented():
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8").replace("\n  ", " ")
    for name in ("NAMED", "LINES", "UNTRUSTED", "EMPTY", "HOP", "DECODED", "REALIP"):
        assert getattr(reasons, name) in page, name
