# SPDX-License-Identifier: Apache-2.0
"""Actions: steps below the limit, and denials as a limit words them, over every protocol."""

import json
import re
import select
import signal

import pytest

from daemon import grpc as wire
from daemon.grpc import Stub
from daemon.http import request_bytes
from daemon.nodes import Nodes, shared_rules
from daemon.redis import RedisWeir
from daemon.redis_server import RedisServer
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir

MARKED = {"name": "marked", "match": {"path": "/marked"}, "key": [], "rate": "10/h",
          "steps": [{"at": "80%", "mark": True}]}
SLOW = {"name": "slow", "match": {"path": "/slow"}, "key": [], "rate": "2/h",
        "steps": [{"at": "50%", "delay": "500ms"}], "reject": {"tarpit": "5s"}}
PROVEN = {"name": "proven", "match": {"path": "/proven"}, "key": [], "rate": "10/h",
          "steps": [{"at": "50%", "challenge": True}]}
SHAPED = {"name": "shaped", "match": {"path": "/shaped"}, "key": [], "rate": "1/h",
          "reject": {"status": 402, "headers": {"Link": "</plans>; rel=help", "X-Plan": "free"},
                     "body": '{"error":"rate_limit_exceeded","limit":"{{reason}}",'
                             '"retryAfter":{{ retry_after }},"of":{{limit}},"left":{{remaining}}}'}}
PAGE = {"name": "page", "match": {"path": "/page"}, "key": [], "rate": "0/h",
        "reject": {"status": 503, "content_type": "text/html; charset=utf-8",
                   "body": "<p>{{reason}}: come back {{retry_after}}</p>"}}
LIMITS = MARKED, SLOW, PROVEN, SHAPED, PAGE


def challenge(folder):
    """The section that a step with a challenge needs."""
    secret = folder / "challenge.key"
    secret.write_text("0123456789abcdef0123456789abcdef\n", encoding="ascii")
    return {"secret_file": str(secret)}


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    server = {"grpc": {"address": "127.0.0.1:0"}}
    with Weir(tmp_path, rules_of(*LIMITS, server=server, challenge=challenge(tmp_path)), "--workers", 1) as running:
        yield running


def authorize(stub, path):
    asked = wire.CheckRequest()
    asked.attributes.request.http.path = path
    return stub.call("AuthCheck", asked)


def fields_of(options):
    return {one.header.key.lower(): one.header.value for one in options}


def actions(weir, path, count):
    return [weir.check(path=path).json.get("action") for _ in range(count)]


def test_the_json_of_a_limit_has_the_totals_of_its_metrics(weir):
    actions(weir, "/marked", 11), actions(weir, "/proven", 6), actions(weir, "/shaped", 2)
    metrics = weir.metrics()
    with weir.admin() as admin:
        limits = admin.request("GET", "/v1/limits").json["limits"]
    series = {"actions": "weir_actions_total", "evictions": "weir_limit_evictions_total", "overflows": "weir_limit_overflows_total"}
    assert [limit["name"] for limit in limits] == [limit["name"] for limit in LIMITS]
    for limit in limits:
        labels = f'{{limit="{limit["name"]}"'
        assert {result: limit[result] for result in ("allowed", "denied", "shadow_denied")} == {
            result: metrics[f'weir_decisions_total{labels},result="{result}"}}'] for result in ("allowed", "denied", "shadow_denied")}
        assert limit["evictions"] == metrics[f"{series['evictions']}{labels}}}"]
        assert limit["overflows"] == metrics[f"{series['overflows']}{labels}}}"]
        assert limit["actions"] == {
            name.split('action="')[1][:-2]: count for name, count in metrics.items() if name.startswith(series["actions"] + labels)}
        assert "warnings" not in limit and "borrowed" not in limit and "bought" not in limit and "candidate" not in limit
    assert [limit["actions"] for limit in limits[::2]] == [{"mark": 3, "reject": 1}, {"challenge": 1, "reject": 0}, {"reject": 0}]


def test_check_says_the_action_in_its_envelope(weir):
    assert actions(weir, "/marked", 11) == [None] * 7 + ["mark"] * 3 + ["reject"]
    assert actions(weir, "/proven", 6) == [None] * 5 + ["challenge"]
    assert actions(weir, "/shaped", 2) == [None, "reject"]
    replies = [weir.check(path="/slow") for _ in range(3)]
    assert [(reply.status, reply.json["action"], reply.json["delay_ms"]) for reply in replies] == [
        (200, "delay", 500), (200, "delay", 500), (429, "tarpit", 5000)]
    denied = weir.check(path="/shaped")
    assert denied.status == 429 and denied["content-type"] == "application/json"
    assert denied.json["denied_by"] == "shaped" and denied["link"] is None


def test_a_dry_run_says_what_the_request_would_get(weir):
    assert weir.check(path="/marked", cost=8, dry_run=True).json["action"] == "mark"
    assert "action" not in weir.check(path="/marked", cost=7, dry_run=True).json
    assert "action" not in weir.check(path="/marked", cost=7).json


def test_auth_tells_the_upstream_and_shapes_denials(weir):
    with weir.client() as client:
        marked = [client.auth("/marked") for _ in range(9)]
        slow = [client.auth("/slow") for _ in range(3)]
        shaped = [client.auth("/shaped") for _ in range(2)][1]
        page = client.auth("/page")
        forbidden = client.auth("/page", query="?deny_status=403")
    assert [one["x-weir-action"] for one in marked] == [None] * 7 + ["mark"] * 2
    assert [(one.status, one["x-weir-action"], one["x-weir-delay-ms"]) for one in slow] == [
        (200, "delay", "500"), (200, "delay", "500"), (429, "tarpit", "5000")]
    assert shaped.status == 402 and shaped["x-weir-action"] == "reject"
    assert shaped["link"] == "</plans>; rel=help" and shaped["x-plan"] == "free"
    assert shaped["cache-control"] == "no-store"
    assert shaped["content-type"] == "application/json"
    assert 0 < int(shaped["retry-after"]) <= 3600
    assert shaped.json == {"error": "rate_limit_exceeded", "limit": "shaped",
                           "retryAfter": int(shaped["retry-after"]), "of": 1, "left": 0}
    assert page.status == 503 and page["content-type"] == "text/html; charset=utf-8"
    assert page.body == b"<p>page: come back never</p>"
    assert forbidden.status == 403 and forbidden["x-ratelimit-status"] == "503"
    assert forbidden.body == page.body


def test_envoy_gets_them_in_both_directions(weir):
    with Stub(weir.grpc_address) as stub:
        marked = [authorize(stub, "/marked") for _ in range(8)][7].ok_response
        slow = [authorize(stub, "/slow") for _ in range(3)]
        shaped = [authorize(stub, "/shaped") for _ in range(2)][1].denied_response
    assert fields_of(marked.headers)["x-weir-action"] == "mark"
    fields = fields_of(slow[0].ok_response.headers)
    assert (fields["x-weir-action"], fields["x-weir-delay-ms"]) == ("delay", "500")
    fields = fields_of(slow[2].denied_response.headers)
    assert (fields["x-weir-action"], fields["x-weir-delay-ms"]) == ("tarpit", "5000")
    fields = fields_of(shaped.headers)
    assert shaped.status.code == 402 and json.loads(shaped.body)["limit"] == "shaped"
    assert fields["x-weir-action"] == "reject" and fields["x-plan"] == "free"
    assert fields["content-type"] == "application/json"


def test_envoy_removes_what_a_client_says_of_its_action_and_standing(tmp_path):
    standing = {"by": ["client.ip"], "file": str(tmp_path / "standing.db")}
    rules = rules_of(MARKED, headers=["standing"], standing=standing,
                     server={"grpc": {"address": "127.0.0.1:0"}})
    with Weir(tmp_path, rules) as weir, Stub(weir.grpc_address) as stub:
        for _ in range(7):
            allowed = authorize(stub, "/marked").ok_response
            assert set(allowed.headers_to_remove) == {
                "X-Weir-Lease", "X-Weir-Action", "X-Weir-Delay-Ms", "X-RateLimit-Standing"}
        marked = authorize(stub, "/marked").ok_response
        assert fields_of(marked.headers)["x-weir-action"] == "mark"
        assert "X-Weir-Action" not in marked.headers_to_remove


def test_the_redis_protocol_says_the_action(tmp_path):
    with RedisWeir(tmp_path, rules_of(*LIMITS, challenge=challenge(tmp_path))) as weir, weir.redis() as client:
        answers = []
        for path in ["/marked"] * 8 + ["/shaped"] * 2:
            flat = client.ask("WEIR.CHECK", "path", path)
            answers.append(dict(zip(flat[::2], flat[1::2])).get("action"))
    assert answers == [None] * 7 + ["mark", None, "reject"]


def test_nodes_that_share_redis_take_the_same_steps(tmp_path):
    drained = {"name": "drained", "match": {"path": "/drained"}, "key": [], "algorithm": "gcra",
               "rate": "4/h", "steps": [{"at": "50%", "delay": True}]}
    with RedisServer(tmp_path) as server, Nodes(
            tmp_path, 2, shared_rules(server.url, MARKED, PROVEN, drained, mode="leased",
                                      challenge=challenge(tmp_path))) as nodes:
        replies = [nodes[i % 2].check(path="/marked").json for i in range(11)]
        assert [one.get("action") for one in replies] == [None] * 7 + ["mark"] * 3 + ["reject"]
        replies = [nodes[i % 2].check(path="/proven").json for i in range(6)]
        assert [one.get("action") for one in replies] == [None] * 5 + ["challenge"]
        replies = [nodes[i % 2].check(path="/drained").json for i in range(4)]
        assert [one.get("action") for one in replies[:1]] == [None]
        assert [one.get("action") for one in replies[2:]] == ["delay"] * 2
        assert 890_000 < replies[2]["delay_ms"] <= 900_000 < replies[3]["delay_ms"] <= 1_800_000


def test_the_example_of_the_page_does_what_the_page_says(tmp_path):
    page = (ROOT / "docs/actions.md").read_text(encoding="utf-8")
    rules = re.search(r"^```yaml\n(.*?)^```", page, re.M | re.S)[1]
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        searches = [client.auth("/search", client="192.0.2.1") for _ in range(21)]
        exports = [client.auth("/exports/1", X_Api_Key="k") for _ in range(6)]
        logins = [client.auth("/login", "POST", "192.0.2.1") for _ in range(6)]
    result = [one["x-weir-action"] for one in searches]
    assert result[:9] == [None] * 9 and "mark" in result and result[18:] == ["delay", "delay", "reject"]
    assert 0 < int(searches[19]["x-weir-delay-ms"]) <= 500
    assert [one.status for one in exports] == [200] * 5 + [429]
    for line in re.search(r"^HTTP/1.1 429.*?\n```", page, re.M | re.S)[0].splitlines()[1:-2]:
        name, _, value = line.partition(": ")
        if line and name != "Retry-After":
            assert exports[5][name] == value, name
    assert exports[5].json["error"] == "rate_limit_exceeded" and exports[5].json["limit"] == "exports"
    assert (logins[5].status, logins[5]["x-weir-action"]) == (403, "tarpit")
    assert logins[5]["x-weir-delay-ms"] == "5000"


def test_explain_and_the_list_of_limits_show_steps(tmp_path):
    with Weir(tmp_path, rules_of(MARKED, SLOW, PROVEN, challenge=challenge(tmp_path))) as weir, weir.admin() as admin:
        shown = {one["name"]: one["steps"] for one in admin.request("GET", "/v1/limits").json["limits"]}
        assert shown == {"marked": [{"at_percent": 80, "action": "mark"}],
                         "slow": [{"at_percent": 50, "action": "delay", "delay_ms": 500}],
                         "proven": [{"at_percent": 50, "action": "challenge"}]}
        for path, line in (("/marked", "mark from 80%"), ("/slow", "delay by 500ms from 50%"),
                           ("/proven", "challenge from 50%")):
            result = run_weir("explain", "--config", weir.config, "--path", path).stdout
            assert f"    steps  {line}\n" in result
        result = run_weir("explain", "--config", weir.config, "--path", "/slow", "--cost", 2).stdout
        assert "    reject 429 after 5s\n" in result and "\naction delay, by 500ms\n" in result
        result = run_weir("explain", "--config", weir.config, "--path", "/proven", "--cost", 6).stdout
        assert "    scale  50%: challenge not passed 50%\n" in result
        assert "\naction challenge\nThe request is denied by proven" in result


# --- hold -----------------------------------------------------------------------------------------

def holding(folder, *limits):
    server = {"http": {"address": "127.0.0.1:0", "hold": True}}
    return Weir(folder, rules_of(*limits, server=server), "--workers", 1, http=None)


def ask_auth(weir, path, address):
    """A client that has asked, and has not read the answer."""
    client = weir.client()
    client.send(request_bytes("GET", "/v1/auth", {"X-Forwarded-Uri": path,
                                                  "X-Forwarded-For": address}))
    return client


def test_eight_late_denials_of_a_prefix_are_held_until_weir_ends(tmp_path):
    late = {"name": "late", "key": [], "rate": "0/h", "reject": {"tarpit": "1min"}}
    with holding(tmp_path, late) as weir:
        clients = {one.socket: one for one in
                   [ask_auth(weir, "/", f"2001:db8::{i}") for i in range(9)]}
        answered, _, _ = select.select(list(clients), [], [], SECONDS_MAX)
        assert len(answered) == 1
        at_once = clients.pop(answered[0]).reply()
        assert (at_once.status, at_once["x-weir-delay-ms"]) == (429, "60000")
        with weir.client() as client:
            assert client.auth("/", client="2001:db8::a")["x-weir-delay-ms"] == "60000"
        other = ask_auth(weir, "/", "2001:db8:0:1::1")
        with weir.client() as client:  # by now that has been read
            assert client.auth("/", client="2001:db8::a").status == 429
        assert select.select(list(clients) + [other.socket], [], [], 0)[0] == []
        weir.signal(signal.SIGTERM)
        for client in list(clients.values()) + [other]:
            reply = client.reply()
            assert (reply.status, reply["x-weir-action"]) == (429, "tarpit")
            assert reply["x-weir-delay-ms"] is None
        assert weir.wait() == 0


def test_late_denials_of_a_translators_clients_are_held_by_their_ipv4_addresses(tmp_path):
    """All of 64:ff9b::/96 is one /64. Eight are held of each client, whichever address he uses."""
    late = {"name": "late", "key": [], "rate": "0/h", "reject": {"tarpit": "1min"}}
    with holding(tmp_path, late) as weir:
        crowd = [ask_auth(weir, "/", f"64:ff9b::8.8.{i}.8") for i in range(12)]
        held = [ask_auth(weir, "/", "64:ff9b::8.8.8.8") for _ in range(4)]
        held += [ask_auth(weir, "/", "8.8.8.8") for _ in range(3)]  # eight, with that of the crowd
        with weir.client() as client:
            assert client.auth("/", client="8.8.8.8")["x-weir-delay-ms"] == "60000"
            assert client.auth("/", client="64:ff9b::808:808")["x-weir-delay-ms"] == "60000"
        waiting = [client.socket for client in crowd + held]
        assert select.select(waiting, [], [], 0)[0] == []
        for client in crowd + held:
            client.close()


def test_a_worker_that_holds_many_replies_answers_others(tmp_path):
    late = {"name": "late", "match": {"path": "/late"}, "key": ["client.ip"], "rate": "0/h",
            "reject": {"tarpit": "1min"}}
    with holding(tmp_path, late) as weir:
        held = [ask_auth(weir, "/late", f"192.0.2.{i % 100}") for i in range(300)]
        with weir.client() as client:
            assert client.auth("/").status == 200
        assert select.select([client.socket for client in held], [], [], 0)[0] == []
        for client in held:
            client.close()


def test_held_replies_of_delays_tarpits_and_queues_come_in_their_time(tmp_path):
    slow = {"name": "slow", "match": {"path": "/slow"}, "key": [], "rate": "10/h",
            "steps": [{"at": "10%", "delay": "3ms"}]}
    late = {"name": "late", "match": {"path": "/late"}, "key": [], "rate": "0/h",
            "reject": {"tarpit": "2ms", "status": 403}}
    queue = {"name": "queue", "match": {"path": "/queue"}, "key": [], "rate": "100/s",
             "algorithm": "leaky_bucket", "queue": True}
    with holding(tmp_path, slow, late, queue) as weir, weir.client() as client:
        for path, status, action in (("/slow", 200, "delay"), ("/late", 403, "tarpit")):
            reply = client.auth(path)
            assert (reply.status, reply["x-weir-action"]) == (status, action)
            assert reply["x-weir-delay-ms"] is None
        assert [client.auth("/queue").status for _ in range(3)] == [200] * 3
        assert client.check(path="/late").json["delay_ms"] == 2  # an application holds by itself


# --- One body for the whole API ---------------------------------------------------------------------

DOCS = "https://example.com/docs/limits"
ONE_BODY = {"form": "json", "documentation": DOCS, "above_status": 413,
            "headers": {"X-Why": "{{reason}}", "X-Ratelimit-Retry-After": "{{retry_after}}"}}
PLAIN = {"name": "plain", "match": {"path": "/plain"}, "key": [], "rate": "5/h"}
OWN = {"name": "own", "match": {"path": "/own"}, "key": [], "rate": "0/h",
       "reject": {"status": 403, "form": "problem", "headers": {"X-Own": "{{limit}}"}}}


def one_body(folder, **more):
    return Weir(folder, rules_of(PLAIN, OWN, server={"grpc": {"address": "127.0.0.1:0"}}, reject=ONE_BODY,
                                 headers=["draft", "x-epoch", "dimension"], **more), "--workers", 1)


def test_one_body_for_the_whole_api(tmp_path):
    with one_body(tmp_path) as weir, weir.client() as client, \
            Stub(weir.grpc_address) as stub:
        assert weir.check(path="/plain", cost=5).status == 200
        checked, auth = weir.check(path="/plain"), client.auth("/plain")
        envoy = authorize(stub, "/plain").denied_response
        wait = int(auth["retry-after"])
        assert auth.status == 429 and auth["content-type"] == "application/json"
        assert auth["x-why"] == auth["x-ratelimit-dimension"] == "plain"
        assert auth["x-ratelimit-retry-after"] == str(wait)
        assert auth.json == {
            "error": "Too Many Requests", "code": "RATE_LIMIT_EXCEEDED", "retryAfter": wait, "limit": 5,
            "remaining": 0, "cost": 1, "documentation": DOCS,
            "message": f"Rate limit exceeded for plain. Retry after {wait} seconds."}
        told = checked.json["reject"]
        assert checked.status == told["status"] == 429 and checked.json["denied_by"] == "plain"
        assert told["content_type"] == "application/json"
        assert told["headers"]["X-Why"] == "plain" and set(told["body"]) == set(auth.json)
        assert envoy.status.code == 429 and set(json.loads(envoy.body)) == set(auth.json)
        assert fields_of(envoy.headers)["x-why"] == "plain"
        batch = client.request("POST", "/v1/check", body=b'[{"path": "/plain"}]').json
        assert batch[0]["reject"]["body"]["code"] == "RATE_LIMIT_EXCEEDED"
        assert "reject" not in weir.check(path="/unlimited").json


def test_a_cost_above_the_limit_says_that_waiting_does_not_help(tmp_path):
    with one_body(tmp_path) as weir, weir.client() as client:
        denied = client.auth("/plain", query="?cost=6")
        assert denied.status == 413 and denied["retry-after"] is None
        assert denied.json["code"] == "COST_ABOVE_LIMIT" and denied.json["limit"] == 5
        assert "retryAfter" not in denied.json and "never" == denied["x-ratelimit-retry-after"]
        own = client.auth("/own")
        assert own.status == 403 and own["content-type"] == "application/problem+json"
        assert own["x-own"] == "0" and own["x-why"] is None
        assert own.json["documentation"] == DOCS and own.json["cost"] == 1


def test_a_standing_is_refused_in_the_same_form(tmp_path):
    lists = [{"file": "listed.txt", "by": "client.ip", "level": "suspended", "reason": "abuse"}]
    (tmp_path / "listed.txt").write_text("192.0.2.0/24\n", encoding="ascii")
    with one_body(tmp_path, standing={"by": ["client.ip"], "lists": lists}) as weir, weir.client() as client:
        denied = client.auth("/plain")
        assert denied.status == 403 and denied.json == {
            "error": "Forbidden", "code": "ACCESS_DENIED", "message": "abuse", "documentation": DOCS}
        assert denied["x-why"] == denied["x-ratelimit-dimension"] == "standing"


def test_a_store_that_fails_is_told_in_the_same_form_by_check_and_reserve(tmp_path):
    limit = {"name": "shared", "key": [], "rate": "5/h", "on_store_error": "closed"}
    with RedisServer(tmp_path / "redis") as redis:
        rules = shared_rules(redis.url, limit, reject=ONE_BODY)
        with Weir(tmp_path, rules, "--workers", 1) as weir, weir.client() as client:
            assert weir.check().status == 200
            redis.kill()
            for path in ("/v1/check", "/v1/reserve"):
                told = client.request("POST", path, body=b'{"path": "/"}')
                assert told.status == 503 and told["content-type"] == "application/json"
                assert told["cache-control"] == "no-store"
                assert told.json["code"] == "SERVICE_UNAVAILABLE" and told.json["documentation"] == DOCS


def test_explain_and_the_list_of_limits_show_the_reject_of_the_file(tmp_path):
    with one_body(tmp_path) as weir, weir.admin() as admin:
        shown = {one["name"]: one["reject"] for one in admin.request("GET", "/v1/limits").json["limits"]}
        assert shown == {"plain": {"status": 429, "above_status": 413, "headers": 2, "body": False, "form": "json"},
                         "own": {"status": 403, "above_status": 413, "headers": 1, "body": False}}
        for path, line in (("/plain", "429, 413 for a cost above the limit, with 2 header fields, "
                                      "with a body of application/json"),
                           ("/own", "403, 413 for a cost above the limit, with 1 header fields")):
            result = run_weir("explain", "--config", weir.config, "--path", path).stdout
            assert f"    reject {line}\n" in result


def test_the_reset_is_a_unix_time_and_a_start_says_so(tmp_path):
    with Weir(tmp_path, rules_of(PLAIN), "--workers", 1) as weir:
        asked = weir.check(path="/plain")
        assert int(asked["x-ratelimit-reset"]) > 1_700_000_000
        assert "headers_not_chosen" in weir.text()
    (tmp_path / "chosen").mkdir()
    with Weir(tmp_path / "chosen", rules_of(PLAIN, headers=["x-delta"]), "--workers", 1) as weir:
        assert 0 <= int(weir.check(path="/plain")["x-ratelimit-reset"]) <= 3600
        assert "headers_not_chosen" not in weir.text()
