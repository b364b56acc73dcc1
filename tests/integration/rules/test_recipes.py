# SPDX-License-Identifier: Apache-2.0
"""examples/recipes: each rules file does what its page in docs/guides says, in replay and in a daemon."""

import csv
import datetime
import hashlib
import ipaddress
import json
import re
import time
from pathlib import Path

import pytest
import yaml

from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import RECIPES, ROOT, recipe, run_weir

START = 1700000000  # a Tuesday, 23:13 in Zurich


class Trace:
    """Requests in virtual time, and what the recipe says of each."""

    def __init__(self, folder, rules, keys=None):
        self.folder, self.lines = Path(folder), []
        (self.folder / "weir.yaml").write_text(rules, encoding="utf-8")
        if keys is not None:
            (self.folder / "public-api-keys.yaml").write_text(keys, encoding="utf-8")

    def add(self, t, path=None, **request):
        if path is not None:
            request["path"] = path
        self.lines.append((t, len(self.lines), request))

    def replay(self):
        """One decision for each request, in the order in which they were added."""
        ordered = sorted(self.lines, key=lambda line: line[:2])
        trace, found = self.folder / "trace", self.folder / "decisions"
        trace.write_text("".join(json.dumps({"t": f"{START + t:.6f}", **request}) + "\n"
                                 for t, _, request in ordered), encoding="utf-8")
        done = run_weir("replay", "-c", self.folder / "weir.yaml", "-d", found,
                        "--state-size", "64MiB", trace)
        assert done.returncode == 0, done.stderr
        decisions = [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]
        by_number = {number: decision for (_, number, _), decision in zip(ordered, decisions)}
        return [by_number[i] for i in range(len(self.lines))]


def release(weir, reply):
    with weir.client() as client:
        assert client.post("/v1/release", {"lease": reply.json["lease"]}).status == 200


def allowed(decisions):
    return sum(decision["allowed"] for decision in decisions)


def names(decision):
    return [limit["name"] for limit in decision["limits"]]


def denying(decision):
    return [limit["name"] for limit in decision["limits"] if not limit["allowed"]]


@pytest.mark.parametrize("name", sorted(path.stem for path in RECIPES.glob("*.yaml")
                                        if not path.stem.endswith("-keys")))
def test_a_recipe_is_valid_and_documented(name):
    done = run_weir("validate", RECIPES / f"{name}.yaml")
    assert done.returncode == 0, done.stderr
    pages = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert f"examples/recipes/{name}.yaml" in pages
    guides = [page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "guides").glob("*.md")]
    (pages,) = [page for page in guides if f"examples/recipes/{name}.yaml" in page]
    for limit in re.findall(r"^  - name: (\S+)", recipe(name), re.MULTILINE):
        assert f"`{limit}`" in pages, limit


# --- A public API -----------------------------------------------------------------------------------

def keys_file(*keys):
    """Lines for (API key, user, org, plan)."""
    return "".join(f"{hashlib.sha256(key.encode()).hexdigest()}: "
                   f"{{ user: {user}, org: {org}, plan: {plan} }}\n"
                   for key, user, org, plan in keys)


def many_keys(org, plan, count):
    return [(f"{org}-{i}", f"{org}-user-{i}", org, plan) for i in range(count)]


def public_api(folder, keys=None):
    if keys is None:
        return Trace(folder, recipe("public-api"),
                     (RECIPES / "public-api-keys.yaml").read_text(encoding="utf-8"))
    return Trace(folder, recipe("public-api"), keys_file(*keys))


def host(number):
    """An address in a network (/48, or /20) of its own."""
    return str(ipaddress.ip_address(int(ipaddress.ip_address("2001:db8::1")) + (number << 80)))


def ask(trace, t, key, ip="192.0.2.1", path="/v1/things"):
    trace.add(t, path, ip=ip, headers={"x-api-key": key} if key else {})


def test_a_request_is_counted_by_key_network_and_organisation_at_once(tmp_path):
    trace = public_api(tmp_path)
    ask(trace, 0, "pro-key-1")
    assert names(trace.replay()[0]) == ["api-key", "network-64", "network-56", "network-48",
                                        "organisation", "month"]


def most_in_a_minute(times):
    """The most in any half-open window of a minute; `times` ascend."""
    first = most = 0
    for last, t in enumerate(times):
        while t - times[first] >= 60:
            first += 1
        most = max(most, last - first + 1)
    return most


@pytest.mark.parametrize("plan, most", [("free", 60), ("pro", 3000)])
def test_making_100_keys_gains_an_organisation_nothing(tmp_path, plan, most):
    """Each key from a network of its own, five minutes, asking for twice what the plan gives."""
    total = {}
    for count in (1 if plan == "free" else 5, 100):
        keys = many_keys("acme", plan, count)
        trace = public_api(tmp_path, keys)
        for i in range(most * 10):
            ask(trace, i * 30 / most, keys[i % count][0], host(i % count))
        decisions = trace.replay()
        times = [line[0] for line, decision in zip(trace.lines, decisions) if decision["allowed"]]
        total[count] = len(times)
        assert most_in_a_minute(times) <= most * 1.05  # segments of 5 s
    few, many = sorted(total)
    assert total[many] <= total[few] * 1.02
    assert total[many] <= most * 6  # five minutes and what was saved before them


def test_an_organisation_is_no_concern_of_another(tmp_path):
    trace = public_api(tmp_path, many_keys("acme", "free", 100) + many_keys("other", "free", 1))
    for i in range(100):
        ask(trace, i / 1000, f"acme-{i}", host(i))
    ask(trace, 1, "other-0", host(200))
    decisions = trace.replay()
    assert allowed(decisions[:-1]) == 60
    assert decisions[-1]["allowed"]


def test_networks_are_counted_within_networks(tmp_path):
    """Enterprise keys, each of an organisation of its own, so that only the network is in the way."""
    def count(ips, seed):
        keys = [(f"k{i}", f"u{i}", f"o{i}", "enterprise") for i in range(60)]
        folder = tmp_path / str(seed)
        folder.mkdir()
        trace = public_api(folder, keys)
        for i in range(12000):
            ask(trace, i / 12000, f"k{i % 60}", ips[i % len(ips)])
        decisions = trace.replay()
        return allowed(decisions), {name for d in decisions for name in denying(d)}
    assert count(["2001:db8::1", "2001:db8::2"], 1) == (1200, {"network-64"})
    in_56 = [f"2001:db8:0:{i:x}::1" for i in range(16)]
    assert count(in_56, 2) == (3600, {"network-56"})
    in_48 = [f"2001:db8:0:{i * 256:x}::{i}" for i in range(16)]
    assert count(in_48, 3) == (9000, {"network-48"})
    assert count([f"2001:db8:{i:x}::1" for i in range(16)], 4) == (12000, set())


def each_64_of(prefix48):
    """An address in each of the 65,536 /64s of a /48, one /56 after the other."""
    return [f"{prefix48}:{i:x}::1" for i in range(65536)]


def own_keys(count):
    """Enterprise keys, each of an organisation of its own: only the network is in the way."""
    return [(f"k{i}", f"u{i}", f"o{i}", "enterprise") for i in range(count)]


def test_65536_networks_of_one_company_are_bounded_as_one(tmp_path):
    """One request from each /64: none of them, and no /56, comes near its own limit."""
    trace = public_api(tmp_path, own_keys(60))
    for i, ip in enumerate(each_64_of("2001:db8:7")):
        ask(trace, 30 * i / 65536, f"k{i % 60}", ip)
    ask(trace, 31, "k1", "2001:db8:8::1")
    decisions = trace.replay()
    assert allowed(decisions[:-1]) == 9000
    assert {name for decision in decisions for name in denying(decision)} == {"network-48"}
    assert decisions[-1]["allowed"]  # the neighbour


def test_65536_networks_are_bounded_in_a_daemon_too(tmp_path):
    (tmp_path / "public-api-keys.yaml").write_text(keys_file(*own_keys(60)), encoding="utf-8")
    addresses, began = each_64_of("2001:db8:7"), time.monotonic()
    with Weir(tmp_path, recipe("public-api"), "--workers", "2") as weir, weir.client() as client:
        count = 0
        for first in range(0, 65536, 512):  # every /56 in turn, two of them at once
            reply = client.post("/v1/check", [
                {"path": "/v1/things", "ip": ip, "headers": {"x-api-key": f"k{first % 59}"}}
                for ip in addresses[first:first + 512]])
            assert reply.status == 200, reply.body
            for answer in reply.json:
                count += answer["allowed"]
                assert answer["allowed"] or answer["denied_by"] == "network-48"
        minutes = 1 + (time.monotonic() - began) // 60  # a slow machine's
        assert 9000 <= count <= 9000 * minutes
        assert weir.check(path="/v1/things", ip="2001:db8:8::1",
                          headers={"x-api-key": "k1"}).status == 200


@pytest.mark.parametrize("plan, most", [("free", 60), ("pro", 3000)])
def test_in_a_daemon_100_keys_of_an_organisation_have_what_few_have(tmp_path, plan, most):
    """Every key asks for all that a key may have at once, from a network of its own."""
    keys = many_keys("acme", plan, 100) + many_keys("few", plan, 1 if plan == "free" else 20)
    (tmp_path / "public-api-keys.yaml").write_text(keys_file(*keys), encoding="utf-8")
    began = time.monotonic()
    with Weir(tmp_path, recipe("public-api")) as weir, weir.client() as client:
        total = {}
        for i, (key, _, org, _) in enumerate(keys):
            reply = client.post("/v1/check", [{"path": "/v1/things", "ip": host(i),
                                               "headers": {"x-api-key": key}}] * 210)
            total[org] = total.get(org, 0) + sum(answer["allowed"] for answer in reply.json)
        minutes = 1 + (time.monotonic() - began) // 60
    assert total["acme"] <= most * minutes
    assert total["acme"] >= most - 1 and total["few"] >= (30 if plan == "free" else most)


def test_free_plans_share_a_bucket_for_what_costs_much_and_paid_ones_do_not(tmp_path):
    keys = many_keys("hobby", "free", 20) + many_keys("acme", "pro", 20)
    trace = public_api(tmp_path, [(key, user, f"{org}-{user}", plan)
                                  for key, user, org, plan in keys])
    for i in range(20):
        ask(trace, i / 1000, f"hobby-{i}", host(i), "/v1/reports/7")
    ask(trace, 0.5, None, host(99), "/v1/reports/7")  # without a key: on the free plan too
    for i in range(20):
        ask(trace, 1 + i / 1000, f"acme-{i}", host(i), "/v1/reports/7")
    for i in range(15):
        ask(trace, 2 + i / 1000, "acme-0", host(50), "/v1/reports/7")
    decisions = trace.replay()
    assert allowed(decisions[:20]) == 10
    assert denying(decisions[20]) == ["reports-free"]
    assert allowed(decisions[21:41]) == 20
    assert allowed(decisions[41:]) == 9  # of its own bucket of 10, one was used


def test_paid_keys_borrow_what_free_plans_leave_but_for_their_half(tmp_path):
    trace = public_api(tmp_path, many_keys("acme", "pro", 2) + many_keys("hobby", "free", 1))
    for i in range(40):
        ask(trace, i / 1000, f"acme-{i % 2}", host(i % 2), "/v1/reports/7")
    for i in range(10):
        ask(trace, 1 + i / 1000, "hobby-0", host(50), "/v1/reports/7")
    decisions = trace.replay()
    assert allowed(decisions[:40]) == 2 * 10 + 5
    assert "reports-free" in names(decisions[20])  # charged in place of its own
    assert allowed(decisions[40:]) == 5


def test_a_month_is_one_of_the_calendar_and_a_fifth_of_it_comes_over(tmp_path):
    trace = public_api(tmp_path, many_keys("acme", "free", 1))
    zurich_december = 1701385200 - START  # 2023-12-01 00:00 in Zurich
    zurich_january = 1704063600 - START
    ask(trace, 0, "acme-0")
    ask(trace, zurich_december, "acme-0")
    ask(trace, zurich_january, "acme-0")
    left = [{limit["name"]: limit for limit in decision["limits"]}["month"]
            for decision in trace.replay()]
    assert [limit["remaining"] for limit in left] == [11999, 11999, 11999]
    assert left[0]["reset_after_ns"] == zurich_january * 10**9  # until it has no part in a month


def test_other_routes_have_a_limit_too(tmp_path):
    trace = public_api(tmp_path)
    for i in range(70):
        ask(trace, i / 1000, "pro-key-1", path="/wp-login.php")
    decisions = trace.replay()
    assert names(decisions[0]) == ["other-routes"]
    assert allowed(decisions) == 60


def test_a_daemon_tells_a_client_what_is_left(tmp_path):
    (tmp_path / "public-api-keys.yaml").write_text(
        (RECIPES / "public-api-keys.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    with Weir(tmp_path, recipe("public-api")) as weir:
        def call(key):
            return weir.check(method="GET", path="/v1/things", ip="192.0.2.1",
                              headers={"x-api-key": key})
        replies = [call("free-key") for _ in range(32)]
        assert replies[0].status == 200
        left = {limit["name"]: limit["remaining"] for limit in replies[0].json["limits"]}
        assert (left["api-key"], left["organisation"], left["month"]) == (29, 59, 11999)
        assert replies[-1].status == 429 and replies[-1].json["denied_by"] == "api-key"
        assert call("pro-key-1").status == 200
        left = {limit["name"]: limit["remaining"] for limit in call("pro-key-2").json["limits"]}
        assert (left["api-key"], left["organisation"]) == (199, 2998)


def test_a_key_near_its_burst_is_marked(tmp_path):
    (tmp_path / "public-api-keys.yaml").write_text(
        (RECIPES / "public-api-keys.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    with Weir(tmp_path, recipe("public-api")) as weir:
        actions = [weir.check(path="/v1/things", ip="192.0.2.1", cost=cost,
                              headers={"x-api-key": "free-key"}).json.get("action")
                   for cost in (20, 6, 30)]  # of 30; a second gives one back
        assert actions == [None, "mark", "reject"]


def test_an_operator_tops_up_the_pool_and_a_month(tmp_path):
    (tmp_path / "public-api-keys.yaml").write_text(
        (RECIPES / "public-api-keys.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    admin = f"unix:{tmp_path}/admin.sock"  # over TCP it needs a token
    with Weir(tmp_path, recipe("public-api"), admin=admin) as weir:
        def report(key):
            return weir.check(path="/v1/reports/7", ip="192.0.2.1", headers={"x-api-key": key})

        def grant(*options):
            done = run_weir("grant", "--admin", admin, *options)
            assert done.returncode == 0, done.stderr

        assert [report("free-key").status for _ in range(11)] == [200] * 10 + [429]
        grant("--limit", "reports-free", "--key", "free", "--units", 5)
        assert [report("free-key").status for _ in range(6)] == [200] * 5 + [429]
        grant("--limit", "month", "--key", "hobby", "--plan", "free", "--units", 14)
        grant("--limit", "reports-free", "--key", "free", "--units", 5)
        left = {limit["name"]: limit["remaining"] for limit in report("free-key").json["limits"]}
        assert left["month"] == 12000 - 15 + 14 - 1


# --- Login ------------------------------------------------------------------------------------------

def login(trace, t, account, ip):
    trace.add(t, "/login", method="POST", ip=ip, attributes={"account": account} if account else {})


def test_guessing_one_account_from_one_network_is_stopped_and_stays_stopped(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(40):
        login(trace, 30 * i, "alice", f"2001:db8::{i:x}")  # one /64
    login(trace, 1200, "bob", "2001:db8::1")
    decisions = trace.replay()
    assert [decision["allowed"] for decision in decisions[:40]] == [True] * 5 + [False] * 35
    assert "login-pair" in denying(decisions[39])
    assert decisions[40]["allowed"]


def test_guessing_one_account_from_everywhere_is_stopped(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(100):
        login(trace, i, "alice", host(i))
    assert allowed(trace.replay()) == 20


def test_guessing_many_accounts_from_one_network_is_stopped(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(200):
        login(trace, 15 * i, f"user{i}", "192.0.2.1")
    decisions = trace.replay()
    assert allowed(decisions) == 60
    assert denying(decisions[100]) == ["login-network"]
    assert decisions[-1]["limits"] == []  # suspended, as it went on


def test_stolen_lists_from_everywhere_are_seen_but_not_yet_denied(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(1000):
        login(trace, i / 100, f"user{i}", host(i))
    decisions = trace.replay()
    assert allowed(decisions) == 1000
    assert sum("login-all" in denying(decision) for decision in decisions) > 600


def test_logins_without_a_name_are_one_account(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(50):
        login(trace, i, None, host(i))
    assert allowed(trace.replay()) == 20


def test_mails_of_a_reset_and_guesses_of_its_token_are_few(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(100):
        trace.add(61 * i, "/password-reset", method="POST", ip=host(i),
                  attributes={"account": "alice"})
    trace.add(0, "/password-reset", method="POST", ip=host(200))
    for i in range(100):
        trace.add(i, f"/password-reset/token{i}", method="GET", ip="192.0.2.1")
    for i in range(100):
        trace.add(i, "/password-reset/secret", method="POST", ip=host(i))
    decisions = trace.replay()
    assert allowed(decisions[:100]) == 6
    assert not decisions[100]["allowed"]  # nobody to send a mail to
    assert allowed(decisions[101:201]) == 20
    assert allowed(decisions[201:]) == 10


def login_recipe(folder):
    """The recipe, with a history of its own."""
    return recipe("login").replace("file: standing.db", f"file: {folder}/standing.db")


def test_a_network_that_goes_on_guessing_is_suspended_for_longer_each_time(tmp_path):
    trace = Trace(tmp_path, recipe("login"))
    for i in range(300):
        login(trace, i, f"user{i}", "192.0.2.1")
    for i in range(200):
        login(trace, 1200 + i, f"user{i}", "192.0.2.1")
    decisions = trace.replay()
    limited = [decision["limits"] != [] for decision in decisions]
    # 61 denials and 61 more, then 10 minutes; later 61 denials, then an hour.
    first = limited.index(False)
    assert 122 + 10 <= first < 200 and not any(limited[first:300])
    second = limited.index(False, 300)
    assert 61 <= second - 300 < 100 and not any(limited[second:])


def test_a_daemon_stops_a_login(tmp_path):
    with Weir(tmp_path, login_recipe(tmp_path)) as weir:
        replies = [weir.check(method="POST", path="/login", ip="192.0.2.1",
                              attributes={"account": "alice"}) for _ in range(6)]
        assert [reply.status for reply in replies] == [200] * 5 + [429]
        assert replies[-1].json["denied_by"] == "login-pair"
        assert (replies[-1].json["action"], replies[-1].json["delay_ms"]) == ("tarpit", 5000)


def test_a_login_that_succeeds_may_be_settled_as_none(tmp_path):
    with Weir(tmp_path, login_recipe(tmp_path)) as weir, weir.client() as client:
        def guess(right):
            reply = client.post("/v1/reserve", {"method": "POST", "path": "/login",
                                                "ip": "192.0.2.1",
                                                "attributes": {"account": "alice"}})
            if reply.status == 200:
                token = reply.json["reservation"]
                done = client.post("/v1/settle", {"reservation": token, "cost": 0 if right else 1})
                assert done.status == 200
            return reply.status
        assert [guess(right=True) for _ in range(12)] == [200] * 12
        assert [guess(right=False) for _ in range(6)] == [200] * 5 + [429]


# --- A gateway to language models -------------------------------------------------------------------

def tokens_trace():
    """(seconds, tokens): see the file for whose they are."""
    with open(ROOT / "tests" / "integration" / "data" / "llm_tokens.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows:
        whole, fraction = row["TIMESTAMP"].split(".")
        at = datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + fraction)
        yield at - START, int(row["ContextTokens"]) + int(row["GeneratedTokens"])


def tokens(trace, t, cost, user="ada", org="acme", plan="team", model="large"):
    who = {"user": user, "plan": plan, "model": model} | ({"org": org} if org else {})
    trace.add(t, attributes=who, costs={"tokens": cost})


def tokens_alone():
    """A trace does not say when a call ends."""
    return recipe("llm-gateway").replace("- name: in-flight\n", "- name: in-flight\n    shadow: true\n")


def most_tokens(charged):
    """The most in any half-open minute of (t, tokens), ascending."""
    first = used = most = 0
    for t, cost in charged:
        used += cost
        while t - charged[first][0] >= 60:
            used -= charged[first][1]
            first += 1
        most = max(most, used)
    return most


@pytest.mark.parametrize("plan, budget", [("starter", 100000), ("team", 800000)])
def test_an_organisation_keeps_its_budget_of_tokens_on_real_traffic(tmp_path, plan, budget):
    trace = Trace(tmp_path, tokens_alone())
    asked = list(tokens_trace())
    for i, (t, cost) in enumerate(asked):
        tokens(trace, t, cost, user=f"user{i % 30}", plan=plan, model="small")
    decisions = trace.replay()
    charged = [line for line, decision in zip(asked, decisions) if decision["allowed"]]
    assert most_tokens(charged) <= budget * 1.02  # segments of 1 s
    assert most_tokens(asked) > 3 * most_tokens(charged) or plan == "team"
    assert most_tokens(charged) > budget / 2 or plan == "team"
    assert {name for d in decisions for name in denying(d)} <= {"tokens-org", "tokens-user",
                                                              "tokens-small", "tokens-day", "in-flight"}


def test_a_user_saves_for_a_long_prompt_and_a_day_ends_at_midnight(tmp_path):
    trace = Trace(tmp_path, tokens_alone())
    tokens(trace, 0, 50000, plan="starter")
    tokens(trace, 0, 1, plan="starter")
    tokens(trace, 60, 50000, plan="starter", user="ada")
    tokens(trace, 60, 50001, plan="starter", user="bob", model="small")  # more than the burst
    decisions = trace.replay()
    assert [decision["allowed"] for decision in decisions] == [True, False, True, False]
    day = {limit["name"]: limit for limit in decisions[2]["limits"]}["tokens-day"]
    assert day["remaining"] == 900000
    assert day["reset_after_ns"] == (86400 - (START + 60) % 86400) * 10**9


def test_a_model_that_nobody_named_has_a_small_budget(tmp_path):
    trace = Trace(tmp_path, tokens_alone())
    tokens(trace, 0, 60001, model="new")
    tokens(trace, 1, 40000, model="new")
    tokens(trace, 2, 40000, model="new", user="bob")
    tokens(trace, 3, 40000, model="large", user="bob")
    decisions = trace.replay()
    assert [decision["allowed"] for decision in decisions] == [False, True, False, True]
    assert "tokens-other" in denying(decisions[2])


def test_a_gateway_reserves_an_estimate_and_settles_what_it_was(tmp_path):
    who = {"user": "ada", "org": "acme", "plan": "starter", "model": "large"}
    with Weir(tmp_path, recipe("llm-gateway")) as weir, weir.client() as client:
        def reserve(tokens):
            return client.post("/v1/reserve", {"attributes": who, "costs": {"tokens": tokens}, "life": 600})

        def settle(reply, **truth):
            done = client.post("/v1/settle", {"reservation": reply.json["reservation"], **truth})
            assert done.status == 200, done.body
            release(weir, reply)

        def left():
            limits = weir.check(attributes=who, dry_run=True, cost=0).json["limits"]
            return {limit["name"]: limit["remaining"] for limit in limits}

        reply = reserve(30000)
        assert reply.status == 200 and reply.json["life_ms"] == 600000
        assert left()["tokens-day"] == 970000 and left()["tokens-org"] == 70000
        settle(reply, costs={"tokens": 1000})  # most of it was not generated
        assert left()["tokens-day"] == 999000 and left()["tokens-org"] == 99000
        settle(reserve(20000), status=503)
        assert left()["tokens-org"] == 99000
        assert left()["tokens-day"] == 979000  # this one gives nothing back for failures
        settle(reserve(20000), status=503)  # of the user's no more than 25,000 a minute
        assert left()["tokens-org"] == 99000 and left()["tokens-user"] < 40000
        settle(reserve(20000), costs={"tokens": 50000})  # more than was thought, into debt
        assert left()["tokens-user"] == 0 and left()["tokens-day"] == 909000
        assert reserve(1000).status == 429


def test_a_gateway_asks_once_for_a_call_and_its_tokens_and_ends_the_call(tmp_path):
    who = {"user": "ada", "org": "acme", "plan": "starter", "model": "large"}
    with Weir(tmp_path, recipe("llm-gateway")) as weir, weir.client() as client:
        def reserve():
            return client.post("/v1/reserve", {"attributes": who, "costs": {"tokens": 1000}})

        replies = [reserve() for _ in range(5)]
        assert [reply.status for reply in replies] == [200] * 4 + [429]
        assert replies[-1].json["denied_by"] == "in-flight"
        limits = {one["name"]: one["remaining"] for one in replies[-1].json["limits"]}
        assert limits["tokens-org"] == 96000  # what is denied by one limit is charged to none
        release(weir, replies[0])
        assert reserve().status == 200


def test_paid_tokens_go_before_others_and_the_budget_follows_the_queue(tmp_path):
    rules = recipe("llm-gateway") + "server: { admin: { token: operator0123456789 } }\n"
    with Weir(tmp_path, rules) as weir:
        weir.admin_token = "operator0123456789"

        def ask(number, plan, cost):
            who = {"user": f"u{number}", "org": f"o{number}", "plan": plan, "model": "large"}
            return weir.check(attributes=who, costs={"tokens": cost})

        def large(reply):
            return next(one for one in reply.json["limits"] if one["name"] == "tokens-large")

        assert [ask(i, "starter", 48000).status for i in range(10)] == [200] * 10
        denied = ask(10, "starter", 1000)
        assert (denied.status, denied.json["denied_by"]) == (429, "tokens-large")
        paid = ask(11, "team", 50000)
        assert paid.status == 200 and large(paid)["remaining"] == 70000
        with weir.admin() as admin:
            pushed = {"controller": "large", "signals": {"queue": 40}, "ttl": 600}
            assert admin.post("/v1/health", pushed).json == {"taken": 1}
        wait_until(lambda: large(ask(12, "team", 100000))["limit"] == 450000)
        assert ask(12, "team", 1).status == 429


# --- A game -----------------------------------------------------------------------------------------

def play(trace, t, method, path, user="ada", ip="192.0.2.1", **more):
    trace.add(t, path, method=method, ip=ip, attributes={"user": user} if user else {}, **more)


def test_each_route_of_a_game_has_its_line(tmp_path):
    routes = [("POST", "/games/7/moves", "move"), ("POST", "/games/7/chat", "chat"),
              ("POST", "/games", "create"), ("POST", "/games/7/players", "join"),
              ("DELETE", "/games/7/players", "leave"), ("POST", "/games/7/resign", "resign"),
              ("POST", "/matchmaking", "matchmaking"), ("GET", "/games/7", "read-game"),
              ("GET", "/games/7/moves", "read-game"), ("GET", "/games", "list-games"),
              ("GET", "/players/ada", "profile"), ("PATCH", "/players/ada", "change-profile"),
              ("POST", "/analytics/events", "analytics"),
              ("GET", "/leaderboard/week", "leaderboard"), ("PUT", "/games/7", "unknown-routes"),
              ("GET", "/.env", "unknown-routes"), ("GET", "/ws", "unknown-routes")]
    trace = Trace(tmp_path, recipe("game-backend"))
    for i, (method, path, _) in enumerate(routes):
        play(trace, i, method, path)
    for decision, (_, _, name) in zip(trace.replay(), routes):
        assert names(decision) == [name, "everything"]


def test_a_leaderboard_is_marked_and_then_slower(tmp_path):
    with Weir(tmp_path, recipe("game-backend")) as weir:
        replies = [weir.check(method="GET", path="/leaderboard/week", ip="192.0.2.1", cost=cost)
                   for cost in (20, 15, 20)]
        assert [reply.json.get("action") for reply in replies] == [None, "mark", "delay"]
        assert replies[2].json["delay_ms"] == 250


def test_games_do_not_share_their_moves_and_players_do_not_share_their_chat(tmp_path):
    trace = Trace(tmp_path, recipe("game-backend"))
    for i in range(30):
        play(trace, i / 1000, "POST", "/games/1/moves")
    play(trace, 0.1, "POST", "/games/2/moves")
    for i in range(3):
        play(trace, 1, "POST", "/games/1/chat")
    play(trace, 1, "POST", "/games/1/chat", user="bob")
    play(trace, 1, "POST", "/games/1/chat", user=None)
    decisions = trace.replay()
    assert allowed(decisions[:30]) == 20 and decisions[30]["allowed"]
    assert [decision["allowed"] for decision in decisions[31:]] == [True, True, False, True, True]


def test_matches_are_spread_rather_than_denied(tmp_path):
    trace = Trace(tmp_path, recipe("game-backend"))
    for i in range(60):
        play(trace, 0, "POST", "/matchmaking", user=f"user{i}", ip=host(i))
    decisions = trace.replay()
    delays = [max(limit["delay_ns"] for limit in d["limits"]) for d in decisions if d["allowed"]]
    assert delays == [i * 200 * 10**6 for i in range(51)]


def test_unknown_routes_are_limited_by_the_network(tmp_path):
    trace = Trace(tmp_path, recipe("game-backend"))
    for i in range(600):
        play(trace, i / 8, "GET", f"/admin{i}", user=f"user{i}")
    assert 200 <= allowed(trace.replay()) <= 2 * 200  # 75 s of 200/min


def test_the_page_of_a_games_backend_has_every_limit_of_the_table():
    rules = yaml.safe_load(recipe("game-backend"))
    page = (ROOT / "docs" / "guides" / "games.md").read_text(encoding="utf-8")
    table = page.split("## 1. The limits", 1)[1].split("```", 1)[0]
    assert [limit["name"] for limit in rules["limits"] if f"`{limit['name']}`" not in table] == []
    unless = next(limit["unless"] for limit in rules["limits"] if limit["name"] == "unknown-routes")
    routes = [limit["name"] for limit in rules["limits"] if "path" in limit.get("match", {}) and not limit["name"].startswith("sockets")]
    assert unless == routes and len(routes) == 14  # 12 endpoints, the leaderboard, the handshake


def test_sockets_are_counted_while_they_are_open(tmp_path):
    with Weir(tmp_path, recipe("game-backend")) as weir:
        def handshake(user, ip):
            return weir.check(method="GET", path="/ws", ip=ip, headers={"Upgrade": "websocket"},
                              attributes={"user": user})
        opened = [handshake("ada", "192.0.2.1") for _ in range(4)]
        assert [reply.status for reply in opened] == [200] * 3 + [429]
        assert opened[-1].json["denied_by"] == "sockets"
        release(weir, opened[1])
        assert handshake("ada", "192.0.2.1").status == 200
        assert handshake("bob", "192.0.2.1").status == 200
        late = handshake("carol", "192.0.2.1")
        assert late.status == 429 and late.json["denied_by"] == "handshakes"
        assert handshake("carol", "192.0.2.2").status == 200
