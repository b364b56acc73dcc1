# SPDX-License-Identifier: Apache-2.0
"""Who uses what, and why somebody was denied: /v1/use, /v1/denials, /v1/series, `weir denials`."""

import hashlib
import json
import os
import re
import stat
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest

from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir, weir_path

YEAR = "366d"
PLANS = {"free": {"search": f"3/{YEAR}"}, "pro": {"search": f"100/{YEAR}"}}
LIMITS = [
    {"name": "search", "match": {"path": "/search/:what"}, "key": ["user"], "rate": "plan",
     "algorithm": "token_bucket"},
    {"name": "all", "key": ["user"], "rate": f"1000/{YEAR}", "algorithm": "gcra", "burst": 1000},
    {"name": "secret", "match": {"path": "/secret"}, "key": ["header.x-api-key"],
     "rate": f"1/{YEAR}", "algorithm": "gcra"},
]


ADMIN = {"admin": {"address": "127.0.0.1:0", "token": "s3cret"}}


def use_rules(*limits, **denials):
    return rules_of(*(limits or LIMITS), plans=PLANS, default_plan="free",
                    denials={"sample": 1000, **denials},
                    server=ADMIN)


def serve(folder, rules, *options):
    return Weir(folder, rules, *(options or ("--workers", "2")), admin=None)


def ask(weir, path, status=200, **query):
    with weir.admin() as admin:
        reply = admin.request("GET", path + ("?" + urlencode(query) if query else ""))
    assert reply.status == status, reply.body
    return reply.json


def denials(weir, *options):
    done = run_weir("denials", "--admin", weir.admin_address, "--token", "s3cret", *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def search(weir, user, times=1, **fields):
    for _ in range(times):
        weir.check(method="GET", path="/search/shoes", attributes={"user": user}, **fields)


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("use")
    with serve(folder, use_rules(file="denials.log")) as weir:
        search(weir, "ann", 10)
        search(weir, "bob", 2)
        weir.check(method="GET", path="/other", attributes={"user": "bob"}, cost=500)
        for _ in range(2):
            weir.check(method="GET", path="/secret", attributes={"user": "cid"},
                       headers={"x-api-key": "very-secret-key"})
        yield weir


@pytest.fixture(scope="module", name="quiet")
def fixture_quiet(tmp_path_factory):
    """One that tests send to."""
    with serve(tmp_path_factory.mktemp("quiet"), use_rules()) as weir:
        yield weir


# --- Who uses what ---------------------------------------------------------------------------------

def test_top_lists_the_keys_routes_and_plans_that_use_most(weir):
    for window in ("hour", "day"):
        top = ask(weir, "/v1/use/top", window=window)
        keys = {(key["limit"], key["key"]): key for key in top["keys"]}
        ann = keys["search", "user=ann"]
        assert (ann["requests"], ann["error"], ann["denied"], ann["cost"]) == (10, 0, 7, 3)
        assert (ann["capacity"], ann["used"], ann["used_percent"]) == (3, 3, 100)
        assert ann["route"] == "/search/:what"
        assert keys["all", "user=bob"]["cost"] == 502
        assert top["keys"][0]["requests"] == 10
        assert [(route["route"], route["requests"], route["denied"])
                for route in top["routes"]] == [("/search/:what", 12, 7), ("/secret", 2, 1)]
        assert top["plans"][0]["plan"] == "free"
        assert top["sketch"] == {"weight": 29, "unlisted_most": 0}


@pytest.mark.parametrize("by, limit, first", [
    ("requests", "all", "user=ann"), ("cost", "all", "user=bob"), ("share", "all", "user=bob"),
    ("denied", "search", "user=ann")])
def test_top_sorts_by_requests_cost_share_and_denials(weir, by, limit, first):
    keys = ask(weir, "/v1/use/top", window="day", by=by, limit=limit)["keys"]
    assert keys[0]["key"] == first
    assert {key["limit"] for key in keys} == {limit}
    assert len(ask(weir, "/v1/use/top", window="day", count=1)["keys"]) == 1


def test_near_lists_who_is_above_a_share_of_a_limit(weir):
    def near(**query):
        return [key["key"] for key in ask(weir, "/v1/use/near", **query)["keys"]]

    assert near(limit="search") == ["user=ann"]
    assert near(limit="search", above=60) == ["user=ann", "user=bob"]
    assert near(limit="all", above=50) == ["user=bob"]


def test_near_looks_at_the_state_of_this_moment(tmp_path):
    with serve(tmp_path, use_rules()) as weir:
        search(weir, "ann", 3)
        assert len(ask(weir, "/v1/use/near", limit="search")["keys"]) == 1
        with weir.admin() as admin:
            removed = admin.request("DELETE", "/v1/limits/search/state?key=ann&plan=free")
        assert removed.status == 200
        assert ask(weir, "/v1/use/near", limit="search")["keys"] == []


def test_a_key_shows_every_limit_that_it_meets_and_its_denials(weir):
    page = ask(weir, "/v1/use/key", key="ann")
    limits = {limit["limit"]: limit for limit in page["limits"]}
    assert set(limits) == {"search", "all"}
    assert limits["search"]["day"] == {"requests": 10, "error": 0, "cost": 3, "denied": 7}
    assert limits["search"]["reset_after_ms"] > 0
    assert len(page["denials"]) == 7
    assert {denial["limit"] for denial in page["denials"]} == {"search"}
    whole = ask(weir, "/v1/use/key", key="user=ann")
    assert whole["denials"] == page["denials"]
    assert {limit["limit"]: limit["day"] for limit in whole["limits"]} == \
        {limit["limit"]: limit["day"] for limit in page["limits"]}
    assert ask(weir, "/v1/use/key", key="nobody")["limits"] == []


@pytest.mark.parametrize("path", [
    "/v1/use/top?window=week", "/v1/use/top?by=name", "/v1/use/top?count=-1", "/v1/use/key",
    "/v1/use/near?above=101", "/v1/denials?since=yesterday", "/v1/denials?wait=100",
    "/v1/series?resolution=1h", "/v1/series?nonsense=1", "/v1/use/top?limit=%ZZ"])
def test_what_a_call_does_not_take_is_refused_with_a_reason(weir, path):
    with weir.admin() as admin:
        reply = admin.request("GET", path)
    assert reply.status == 400 and reply.json["detail"]


def test_the_calls_need_the_token_and_known_names(weir):
    for path in ("/v1/use/top", "/v1/denials", "/v1/series"):
        with weir.admin() as admin:
            assert admin.request("GET", path, {"Authorization": "Bearer wrong"}).status == 401
    ask(weir, "/v1/use/nonsense", status=404)
    ask(weir, "/v1/series", status=404, limit="nonsense")


# --- Why somebody was denied -----------------------------------------------------------------------

def test_a_denial_has_its_rule_its_numbers_and_no_secret(weir):
    found = ask(weir, "/v1/denials", key="ann", count=1)["denials"]
    assert len(found) == 1
    denial = found[0]
    assert abs(denial["retry_after_ms"] - 366 * 86400_000 / 3) < 600_000
    expected = {"key": "user=ann", "limit": "search", "route": "/search/:what", "plan": "free",
                "cost": 1, "capacity": 3, "remaining": 0, "algorithm": "token_bucket",
                "policy": f"3;w={366 * 86400}", "action": "reject", "standing": "good",
                "source": "store", "more": 0}
    assert {name: denial[name] for name in expected} == expected
    assert denial["node"] and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z", denial["time"])
    everything = json.dumps([ask(weir, path) for path in ("/v1/denials", "/v1/use/top")])
    assert "shoes" not in everything


def test_secrets_are_shown_by_their_sha256(tmp_path):
    digest = hashlib.sha256(b"another").hexdigest()
    (tmp_path / "keys.yaml").write_text(f"{digest}: {{ user: other }}\n")
    rules = rules_of(LIMITS[2], identify=["header.x-api-key"], keys="keys.yaml",
                     denials={"file": "denials.log"},
                     server={"admin": {"address": "127.0.0.1:0", "token": "s3cret"}})
    with serve(tmp_path, rules) as weir:
        for _ in range(2):
            weir.check(method="GET", path="/secret", headers={"x-api-key": "very-secret-key"})
        shown = [json.dumps(ask(weir, path)) for path in (
            "/v1/denials", "/v1/use/top", "/v1/use/near")]
        shown.append(denials(weir))
        assert weir.stop() == 0
    shown.append((tmp_path / "denials.log").read_text())
    for text in shown:
        assert "very-secret-key" not in text and "header.x-api-key=sha256:" in text


def test_denials_are_filtered_and_newest_first(weir):
    def found(**query):
        return ask(weir, "/v1/denials", **query)["denials"]

    assert [denial["id"] for denial in found()] == list(range(8, 0, -1))
    assert {denial["limit"] for denial in found(limit="secret")} == {"secret"}
    assert found(key="bob") == found(limit="nonsense") == found(until=1) == []
    assert len(found(since="366d")) == len(found(since=1)) == 8


def test_more_denials_than_the_sample_are_counted_with_the_next_one(tmp_path):
    with serve(tmp_path, use_rules(sample=1), "--workers", "1") as weir:
        def seen():
            search(weir, "ann", 10)
            found = ask(weir, "/v1/denials")
            assert len(found["denials"]) + found["left_out"] == weir.sent - 3
            return any(denial["more"] > 0 for denial in found["denials"])

        def again():
            weir.sent += 10
            return seen()

        weir.sent = 0
        wait_until(again)
        weir.write_rules(use_rules(sample=0))
        weir.reload()
        before = ask(weir, "/v1/denials")["last"]
        search(weir, "ann", 3)
        assert ask(weir, "/v1/denials")["last"] == before


def test_a_call_waits_for_the_next_denial(quiet):
    weir = quiet
    last = ask(weir, "/v1/denials")["last"]
    with weir.admin() as admin:
        admin.send(("GET /v1/denials?" + urlencode({"after": last, "wait": 20}) +
                    " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer s3cret\r\n\r\n").encode())
        search(weir, "dora", 4)
        found = admin.reply().json["denials"]
    assert [denial["key"] for denial in found] == ["user=dora"]
    assert ask(weir, "/v1/denials", after=last, wait=1)["denials"] == found
    # an id of a run before this one is not waited for
    assert ask(weir, "/v1/denials", after=10**6, wait=20)["last"] == last + 1


def test_few_calls_wait_and_those_that_end_make_room(quiet):
    weir = quiet
    last = ask(weir, "/v1/denials")["last"]
    line = (f"GET /v1/denials?after={last}&wait=20 HTTP/1.1\r\nHost: localhost\r\n"
            "Authorization: Bearer s3cret\r\n\r\n").encode()
    clients = [weir.admin() for _ in range(65)]
    for client in clients:
        client.send(line)
    refused = None
    while refused is None:  # one of them is; which one, the kernel says
        refused = next((client for client in clients if readable(client)), None)
    assert refused.reply().status == 503
    for client in clients:
        client.close()
    wait_until(lambda: waits(weir, line))


def readable(client):
    client.socket.settimeout(0.01)
    try:
        data = client.socket.recv(65536)
    except TimeoutError:
        return False
    finally:
        client.socket.settimeout(SECONDS_MAX)
    client.buffer += data
    return bool(data)


def waits(weir, line):
    with weir.admin() as client:
        client.send(line)
        return not readable(client) or b" 200 " in client.buffer


def test_the_command_answers_why_a_key_was_denied(weir):
    text = denials(weir, "--key", "ann", "--since", "1d")
    assert text.count("search  user=ann  /search/:what") == 7
    assert "asked for 1 with 0 of 3 left; admitted in 122d" in text
    assert "token_bucket, 3 in 366d; plan free; reject; node " in text
    assert "What uses it up:\n" in text
    assert "10 (7) in the last day; most on /search/:what" in text
    lines = denials(weir, "--json", "--limit", "secret").splitlines()
    assert [json.loads(line)["limit"] for line in lines] == ["secret"]
    assert denials(weir, "--key", "nobody").startswith("no denials\n")
    assert len(denials(weir, "--json", "--count", "2").splitlines()) == 2


def test_the_command_follows(quiet):
    weir = quiet
    command = [weir_path(), "denials", "--admin", weir.admin_address, "--token", "s3cret",
               "--follow", "--json", "--count", "1", "--key", "eve"]
    search(weir, "eve", 4)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follows:
        try:
            first = json.loads(follows.stdout.readline())
            search(weir, "eve", 1)
            second = json.loads(follows.stdout.readline())
        finally:
            follows.kill()
    assert (first["key"], second["key"]) == ("user=eve", "user=eve")
    assert second["id"] > first["id"]


# --- The file --------------------------------------------------------------------------------------

def test_the_file_has_them_for_its_owner_alone_and_a_restart_shows_them(tmp_path):
    path = tmp_path / "denials.log"
    path.write_text('{"time_ns": 5, "limit": "cut by a cra')
    path.chmod(0o644)
    with serve(tmp_path, use_rules(file="denials.log")) as weir:
        search(weir, "ann", 5)
        assert weir.stop() == 0
    lines = path.read_text().splitlines()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert [json.loads(line)["key"] for line in lines[1:]] == ["user=ann"] * 2
    with serve(tmp_path, use_rules(file="denials.log")) as weir:
        assert len(ask(weir, "/v1/denials", key="ann")["denials"]) == 2
        assert weir.stop() == 0
    done = run_weir("denials", "--file", path, "--key", "ann", "--json")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    assert "1 lines are no denials" in done.stderr


def test_the_file_stays_within_its_size(tmp_path):
    path = tmp_path / "denials.log"
    with serve(tmp_path, use_rules(file="denials.log", size="64KiB"), "--workers", "1") as weir:
        with weir.client() as client:
            for i in range(400):
                client.check(method="GET", path="/search/x", attributes={"user": "u" * 60},
                             cost=1000)
                if i % 50 == 0:
                    ask(weir, "/v1/denials")
        assert weir.stop() == 0
    sizes = [os.stat(name).st_size for name in (path, f"{path}.1")]
    assert all(0 < size <= 40 * 1024 for size in sizes)
    assert stat.S_IMODE(os.stat(f"{path}.1").st_mode) == 0o600


def test_no_member_of_a_file_commands_the_terminal(tmp_path):
    members = ("limit", "key", "route", "plan", "node", "algorithm", "action", "source", "standing", "policy")
    path = tmp_path / "denials.log"
    denial = {name: f"\x1b]0;{name}\x07\x9b2J" for name in members} | {"time_ns": 1700000000 * 10**9}
    path.write_text(json.dumps(denial) + "\n", encoding="utf-8")
    for more in ([], ["--json"]):
        done = run_weir("denials", "--file", path, *more)
        assert (done.returncode, done.stderr) == (0, "")
        assert "]0;limit" in done.stdout or "]0;limit" in json.loads(done.stdout)["limit"]
        assert not [one for one in done.stdout if ord(one) < 0x20 and one != "\n" or 0x7f <= ord(one) < 0xa0]


@pytest.mark.parametrize("denials_part, message", [
    ({"keep": "1h"}, "`keep` of `denials` needs `file`"),
    ({"file": "x", "size": "1KiB"}, "`size` must be 64KiB to 16GiB, not `1KiB`"),
    ({"file": "x", "keep": "1s"}, "keep"),
    ({"sample": 1001}, "sample"),
    ({"nonsense": 1}, "nonsense"),
])
def test_wrong_settings_are_refused(tmp_path, denials_part, message):
    path = tmp_path / "weir.yaml"
    path.write_text(use_rules(**denials_part))
    done = run_weir("validate", path)
    assert done.returncode == 1 and message in done.stdout + done.stderr


def test_a_path_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "denials.log").symlink_to("target")
    (tmp_path / "weir.yaml").write_text(use_rules(file="denials.log"))
    done = run_weir("serve", "--config", tmp_path / "weir.yaml", "--http", "127.0.0.1:0")
    assert done.returncode == 1 and "denials.file" in done.stderr


# --- Series ----------------------------------------------------------------------------------------

def test_series_have_what_limits_and_fronts_did(tmp_path):
    with serve(tmp_path, use_rules()) as weir:
        # Before the first second is whole, too, the series ends now and not in 1970.
        assert ask(weir, "/v1/series", count=600)["from_s"] > 10**9
        search(weir, "ann", 5)
        search(weir, "bob", 1)

        def sums(**query):
            answer = ask(weir, "/v1/series", count=600, **query)
            assert answer["count"] == 600 and answer["resolution_s"] in (1, 60)
            return {name: sum(values) for name, values in answer["values"].items()}

        wait_until(lambda: sums()["requests"] == 6)
        whole = sums()
        assert (whole["allowed"], whole["denied"]) == (4, 2)
        assert (whole["http"], whole["grpc"], whole["redis"]) == (6, 0, 0)
        assert whole["latency_p99_us"] > 0
        of_search = sums(limit="search")
        assert (of_search["allowed"], of_search["denied"], of_search["cost"]) == (4, 2, 4)
        every = ask(weir, "/v1/series", limit="*", count=600)["limits"]
        assert sum(every["all"]["allowed"]) == 6
        assert "secret" not in every  # never used
        minutes = ask(weir, "/v1/series", resolution="1min", limit="search")
        assert sum(minutes["values"]["allowed"]) == 4
        # a limit keeps its series over a reload, and its keys are counted in each second
        weir.write_rules(use_rules(*LIMITS[1:], LIMITS[0]))
        weir.reload()
        assert sums(limit="search")["allowed"] == 4

        def keys_of_a_second():
            for user in ("u1", "u2", "u3"):
                search(weir, user)
            series = ask(weir, "/v1/series", limit="search", count=60)["values"]
            return max(series["distinct_keys"]) == 3

        wait_until(keys_of_a_second)


# --- Metrics ---------------------------------------------------------------------------------------

def test_metrics_count_waits_fronts_and_the_log(tmp_path):
    with serve(tmp_path, use_rules(series=1)) as weir:
        search(weir, "ann", 5)
        search(weir, "bob", 4)
        metrics = weir.metrics()
        assert metrics['weir_retry_after_seconds_bucket{le="86400"}'] == 0
        assert metrics["weir_retry_after_seconds_count"] == 3
        assert metrics["weir_retry_after_seconds_sum"] > 3 * 86400
        assert metrics['weir_front_decisions_total{front="http"}'] == 9
        assert metrics['weir_front_turn_seconds_count{front="http"}'] > 0
        assert metrics['weir_front_turn_seconds_count{front="grpc"}'] == 0
        assert metrics['weir_denials_total{result="kept"}'] == 3
        assert metrics['weir_use_samples_total'] == 9
        assert metrics['weir_denied_key_total{limit="search",key="user=ann"}'] == 2
        assert not any("user=bob" in name for name in metrics)
        search(weir, "bob", 1, cost=4)  # never admitted
        assert weir.metrics()["weir_retry_never_total"] == 1

        def used():
            search(weir, "ann")
            return weir.metrics().get('weir_limit_used_percent{limit="search"}') == 100

        wait_until(used)


def test_what_only_looks_or_gives_back_is_no_request(tmp_path):
    """A dry run, and the end of a lease that is none (which the engine calls a denial)."""
    slots = {"name": "slots", "key": ["user"], "algorithm": "concurrency", "limit": 5, "match": {"path": "/slots"}}
    with serve(tmp_path, use_rules(*LIMITS, slots)) as weir, weir.client() as client:
        search(weir, "ann", 4)
        lease = client.check(path="/slots", attributes={"user": "ann"}).json["lease"]
        assert [client.post("/v1/release", {"lease": lease}).status for _ in range(2)] == [200, 404]
        dry = {"method": "GET", "path": "/search/shoes", "attributes": {"user": "ann"}, "dry_run": True}
        assert client.check(**dry).status == 429
        metrics = weir.metrics()
        assert metrics['weir_front_decisions_total{front="http"}'] == metrics["weir_requests_decided_total"] == 5
        assert metrics['weir_requests_refused_total{cause="limit"}'] == 1
        assert ask(weir, "/v1/limits")["requests"] == {
            "decided": 5, "refused": {"limit": 1, "standing": 0, "unknown": 0, "challenge": 0, "store": 0, "unreadable": 0}}


def test_routes_bursts_and_waits_have_bounded_series(tmp_path):
    limits = [{"name": f"l{i}", "match": {"path": f"/p{i}/:id"}, "key": ["user"], "algorithm": "gcra", "rate": "1/h"}
              for i in range(60)]  # its wait does not depend on the time of day
    with serve(tmp_path, rules_of(*limits, denials={"top": 3}, server=ADMIN)) as weir:
        waits = 0
        for i in range(60):
            for _ in range(3 if i == 0 else 1):
                reply = weir.check(method="GET", path=f"/p{i}/7", attributes={"user": "ann"})
                waits += int(reply["retry-after"] or 0)  # seconds, rounded up
        metrics = weir.metrics()
        routes = {name: value for name, value in metrics.items() if name.startswith("weir_route_requests_total")}
        assert len(routes) == 2 * 51 and sum(routes.values()) == 62
        assert routes['weir_route_requests_total{route="other",result="allowed"}'] == 10
        assert not any("/7" in name for name in routes)
        assert sum(value for name, value in routes.items() if "denied" in name) == 2
        bursts = {name: value for name, value in metrics.items() if name.startswith("weir_limit_exhausted_total")}
        assert len(bursts) == 51 and sum(bursts.values()) == 60
        assert metrics['weir_limit_retry_after_seconds_count{limit="l0"}'] == 2
        assert metrics['weir_limit_retry_after_seconds_bucket{limit="l0",le="3600"}'] == 2
        assert metrics['weir_limit_retry_after_seconds_bucket{limit="l0",le="900"}'] == 0
        assert waits - 2 <= metrics['weir_limit_retry_after_seconds_sum{limit="l0"}'] <= waits <= 7200
        top = {name: value for name, value in metrics.items() if name.startswith("weir_top{")}
        assert len(top) == 3 and top['weir_top{limit="l0",key="user=ann"}'] == 3


def test_the_top_is_off_by_default_and_hides_secrets(tmp_path):
    limit = {"name": "l", "key": ["header.authorization"], "rate": "9/h"}
    with serve(tmp_path, rules_of(limit, server=ADMIN)) as weir:
        weir.check(path="/", headers={"Authorization": "Bearer sesame"})
        assert not any(name.startswith("weir_top") for name in weir.metrics())
        weir.write_rules(rules_of(limit, denials={"top": 1}, server=ADMIN))
        weir.reload()
        weir.check(path="/", headers={"Authorization": "Bearer sesame"})
        top = [name for name in weir.metrics() if name.startswith("weir_top{")]
        assert len(top) == 1 and "sesame" not in top[0] and "sha256" in top[0]


# --- The documentation -----------------------------------------------------------------------------

DOCS = Path(__file__).parents[4] / "docs" / "use.md"


def shape(text):
    """What of an output is the same on each machine and at each time."""
    text = re.sub(r"node \S+", "node N", text)
    return re.sub(r"[0-9]+(?:min|s|h)?(?: [0-9]+(?:min|s|h))?", "0", text)


def test_the_example_of_the_documentation_is_what_the_command_prints(tmp_path):
    document = DOCS.read_text(encoding="utf-8")
    rules = re.search(r"```yaml\n(.*?)```", document, re.S)[1]
    shown = re.search(r"\$ weir denials --key ann --count 1\n(.*?)```", document, re.S)[1]
    with Weir(tmp_path, rules) as weir:
        search(weir, "ann", 5)
        done = run_weir("denials", "--key", "ann", "--count", "1", "--admin", weir.admin_address)
        example = r"\$ curl -s 'http://127.0.0.1:9090(/[^']+)'\n(.*?)```"
        for path, answer in re.findall(example, document, re.S):
            with weir.admin() as admin:
                reply = admin.request("GET", path)
            assert reply.status == 200
            assert fields_of(reply.json) == fields_of(json.loads(answer.replace("\n", "")))
    assert shape(done.stdout) == shape(shown)


def fields_of(json_value):
    """The names in an answer, in their order."""
    if isinstance(json_value, dict):
        return [(name, fields_of(value)) for name, value in json_value.items()]
    return [fields_of(value) for value in json_value[:1]] if isinstance(json_value, list) else []
