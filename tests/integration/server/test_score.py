# SPDX-License-Identifier: Apache-2.0
"""Scores over every protocol: what holds where, what answers show, what classes do, and that a replay of
the same requests finds the same."""

import json
import random
import re
import sys

import pytest

from daemon import grpc as wire
from daemon.challenge import ChallengeWeir, solve, solves
from daemon.grpc import Stub
from daemon.redis import RedisWeir
from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir

sys.path.insert(0, str(ROOT / "bench" / "score"))
import run as bench  # pylint: disable=wrong-import-position,import-error

SCORE = {"key": ["client.ip/64"], "debug": True, "signals": [
    {"name": "no-agent", "when": {"header.user-agent": "absent"}, "add": 30},
    {"name": "tool", "when": {"header.user-agent": ["curl/*", "wget"]}, "add": 40},
    {"name": "one-route", "same_route": 4, "add": 25}]}
LIMITS = [
    {"name": "all", "key": ["client.ip"], "algorithm": "gcra", "rate": "100/h",
     "by_class": {"suspicious": "10%"}},
    {"name": "bad", "match": {"client.class": "malicious"}, "key": ["client.class"], "rate": "2/h"}]


def scored(folder, **score):
    return Weir(folder, rules_of(*LIMITS, score=SCORE | score,
                                 server={"grpc": {"address": "127.0.0.1:0"}}), "--workers", 1)


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    with scored(tmp_path) as running:
        yield running


def names(answer):
    return list(answer.json["score"]["signals"])


# --- What holds where -----------------------------------------------------------------------------

def test_check_knows_absent_fields_only_when_the_request_lists_them(weir):
    assert names(weir.check(ip="192.0.2.1")) == []
    assert names(weir.check(ip="192.0.2.1", attributes={"tenant": "a"})) == []
    assert names(weir.check(ip="192.0.2.1", headers={})) == ["no-agent"]
    assert names(weir.check(ip="192.0.2.1", headers={"Accept": "*/*"})) == ["no-agent"]
    assert names(weir.check(ip="192.0.2.1", headers={"User-Agent": "curl/8"})) == ["tool"]
    answer = weir.check(ip="192.0.2.1", headers={})
    assert answer.json["score"] == {"score": 30, "class": "suspicious", "signals": {"no-agent": 30}}
    assert answer["x-weir-score"] == "suspicious;score=30, no-agent;add=30"


def test_auth_knows_all_fields(weir):
    with weir.client() as client:
        plain = client.auth("/a")
        agent = client.auth("/b", User_Agent="Mozilla/5.0")
    assert plain["x-weir-score"] == "suspicious;score=30, no-agent;add=30"
    assert agent["x-weir-score"] == "legitimate;score=0"
    assert plain["ratelimit-policy"].startswith('"all";q=10;')
    assert agent["ratelimit-policy"].startswith('"all";q=100;')


def test_envoy_passes_fields_on(weir):
    def ask(headers):
        asked = wire.CheckRequest()
        asked.attributes.source.address.socket_address.address = "192.0.2.7"
        asked.attributes.request.http.path = "/"
        for name, value in headers.items():
            asked.attributes.request.http.headers[name] = value
        with Stub(weir.grpc_address) as stub:
            answer = stub.call("AuthCheck", asked)
        fields = {one.header.key.lower(): one.header.value
                  for one in [*answer.ok_response.headers, *answer.ok_response.response_headers_to_add,
                              *answer.denied_response.headers]}
        return fields["x-weir-score"]

    assert ask({}) == "suspicious;score=30, no-agent;add=30"
    assert ask({"user-agent": "wget"}) == "suspicious;score=40, tool;add=40"


def test_the_redis_protocol_knows_fields_when_one_is_named(tmp_path):
    with RedisWeir(tmp_path, rules_of(*LIMITS, score=SCORE)) as weir, weir.redis() as client:
        def ask(*attributes):
            flat = client.ask("WEIR.CHECK", "ip", "192.0.2.1", *attributes)
            answer = dict(zip(flat[::2], flat[1::2]))
            return answer["score"], answer["class"]

        assert ask() == (0, "legitimate")
        assert ask("header.accept", "x") == (30, "suspicious")
        assert ask("header.user-agent", "curl/8") == (40, "suspicious")


def test_explain_lists_what_the_score_is_made_of(weir):
    result = run_weir("explain", "--config", weir.config, "--ip", "192.0.2.1", "-H",
                    "User-Agent: curl/8").stdout
    assert "score 40, suspicious\n    tool         +40\n" in result
    assert "    scale  10%: class suspicious 10%\n" in result
    result = run_weir("explain", "--config", weir.config, "--ip", "192.0.2.1").stdout
    assert "score 0, legitimate\n" in result and "`regular`, `same_route` and `new_connections` never hold" in result
    assert run_weir("validate", weir.config).stdout.count("warning") == 0


def test_the_list_of_limits_says_what_classes_may_use(weir):
    with weir.admin() as admin:
        shown = {one["name"]: one for one in admin.request("GET", "/v1/limits").json["limits"]}
    assert shown["all"]["by_class_percent"] == {"suspicious": 10}
    assert "by_class_percent" not in shown["bad"]


# --- What it does ---------------------------------------------------------------------------------

def test_top_shows_the_classes_of_scores(weir):
    def shown():
        text = run_weir("top", "--admin", weir.admin_address, "--once").stdout
        return [line.split() for line in text[text.index("CLASS OF SCORE"):].split("\n\n")[0].splitlines()[1:]]

    assert shown() == [[name, "0", "0.0%", "-"] for name in ("legitimate", "suspicious", "malicious")]
    for agents in ("Mozilla", "Mozilla", "Mozilla", "curl/8"):
        weir.check(ip="192.0.2.1", headers={"user-agent": agents})
    assert [line[:3] for line in shown()] == [["legitimate", "3", "75.0%"], ["suspicious", "1", "25.0%"],
                                              ["malicious", "0", "0.0%"]]
    with weir.admin() as admin:
        assert admin.request("GET", "/v1/limits").json["score"] == {
            "requests": {"legitimate": 3, "suspicious": 1, "malicious": 0}}


def test_no_request_can_set_its_score_or_class(weir):
    attributes = {"client.class": "malicious", "client.score": "99"}
    answer = weir.check(ip="192.0.2.1", attributes=attributes).json
    assert answer["score"] == {"score": 0, "class": "legitimate", "signals": {}}
    assert [one["name"] for one in answer["limits"]] == ["all"]


def test_without_debug_no_header_tells_how_clients_are_recognised(tmp_path):
    with scored(tmp_path, debug=False) as weir:
        answer = weir.check(ip="192.0.2.1", headers={})
        assert answer.json["score"] == {"score": 30, "class": "suspicious"}
        assert answer["x-weir-score"] is None
        with weir.client() as client:
            assert client.auth("/")["x-weir-score"] is None


def test_behaviour_counts_requests_not_dry_runs_and_outlives_a_reload(weir):
    def ask(**fields):
        return weir.check(ip="192.0.2.9", path="/login", headers={"User-Agent": "wget"}, **fields)

    for _ in range(2):
        assert names(ask()) == ["tool"]
    for _ in range(5):
        assert names(ask(dry_run=True)) == ["tool"]
    assert "event=reloaded" in weir.reload()
    assert names(ask()) == ["tool"]
    malicious = [ask() for _ in range(3)]
    assert malicious[0].json["score"]["class"] == "malicious"
    assert [one.status for one in malicious] == [200, 200, 429]
    assert malicious[2].json["denied_by"] == "bad"
    counted = {name: weir.metrics()[f'weir_requests_by_class_total{{class="{name}"}}']
               for name in ("legitimate", "suspicious", "malicious")}
    assert counted == {"legitimate": 0, "suspicious": 3, "malicious": 3}
    assert weir.metrics()["weir_score_evicted_total"] == 0


def test_the_difficulty_of_a_challenge_follows_the_class(tmp_path):
    score = SCORE | {"signals": SCORE["signals"] + [
        {"name": "unproven", "when": {"challenge": "absent"}, "add": 5}]}
    difficulty = {"legitimate": 4, "suspicious": 6, "malicious": 9}
    with ChallengeWeir(tmp_path, limits=LIMITS, score=score, difficulty=difficulty) as weir:
        def puzzle(**fields):
            fields = {name.replace("_", "-"): value for name, value in fields.items()}
            answer = weir.challenge(fields={"X-Forwarded-For": "192.0.2.1"} | fields).json
            return answer["puzzle"], answer["difficulty"]

        assert puzzle(User_Agent="Mozilla")[1] == 4
        assert puzzle()[1] == 6
        for _ in range(5):  # asking for puzzles is no behaviour
            assert puzzle(User_Agent="wget")[1] == 6
        for _ in range(4):
            weir.check(ip="192.0.2.1", path="/login", headers={"User-Agent": "wget"})
        text, bits = puzzle(User_Agent="wget")
        assert bits == 9
        fields = {"X-Forwarded-For": "192.0.2.1"}
        weak = next(n for n in range(10**6) if solves(text, n, 6) and not solves(text, n, 9))
        assert weir.post({"puzzle": text, "solution": weak, "to": "/"}, fields).status == 403
        solved = weir.post({"puzzle": text, "solution": solve(text, 9), "to": "/"}, fields)
        token = {"X-Weir-Challenge": solved.json["token"], "X-Forwarded-For": "192.0.2.1"}
        assert "unproven" not in weir.auth(token)["x-weir-score"]
        assert "unproven" in weir.auth({"X-Forwarded-For": "192.0.2.1"})["x-weir-score"]


def test_a_token_counts_for_the_class_of_its_puzzle(tmp_path):
    """A client that solves the easy puzzle of a browser, and then shows itself to be a tool, has passed no more."""
    difficulty = {"legitimate": 4, "suspicious": 6, "malicious": 9}
    client = {"X-Forwarded-For": "192.0.2.1"}
    browser, tool = client | {"User-Agent": "Mozilla"}, client | {"User-Agent": "wget"}
    limits = [{"name": "passed", "match": {"challenge": "passed"}, "key": ["client.ip"], "rate": "1000/h"}]
    signals = [signal for signal in SCORE["signals"] if "when" in signal]
    with ChallengeWeir(tmp_path, limits=limits, score=SCORE | {"signals": signals}, difficulty=difficulty) as weir:
        def token(fields):
            asked = weir.challenge(fields=fields).json
            solution = solve(asked["puzzle"], asked["difficulty"])
            solved = weir.post({"puzzle": asked["puzzle"], "solution": solution, "to": "/"}, fields)
            return {"X-Weir-Challenge": solved.json["token"]}

        def passes(fields):
            return '"passed"' in (weir.auth(fields)["ratelimit"] or "")

        easy, hard = token(browser), token(tool)
        assert [passes(browser | easy), passes(tool | easy)] == [True, False]
        assert [passes(browser | hard), passes(tool | hard)] == [True, True]
        cookies = "; ".join(f"__Host-weir={one['X-Weir-Challenge']}" for one in (easy, hard))
        assert passes(tool | {"Cookie": cookies}), "the best of several cookies counts"


# --- Replays --------------------------------------------------------------------------------------

def tables(folder, rules, lines):
    """What a replay counts: {class or signal: (requests, clients)}."""
    (folder / "rules.yaml").write_text(rules, encoding="utf-8")
    (folder / "trace").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = run_weir("replay", "--config", folder / "rules.yaml", folder / "trace")
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^([\w-]+) +(\d+) +[\d.]+% +(\d+) +[\d.]+%$", done.stdout, re.M)
    return {name: (int(requests), int(clients)) for name, requests, clients in found}


def count(scores):
    """The same from (client, class, signals) of each request."""
    order = ["legitimate", "suspicious", "malicious"]
    worst, counted = {}, {}
    for client, found, signals in scores:
        worst[client] = max(worst.get(client, found), found, key=order.index)
        for name in [found, *signals]:
            requests, clients = counted.get(name, (0, set()))
            counted[name] = requests + 1, clients | {client}
    for name, (requests, clients) in counted.items():
        reached = list(worst.values()).count(name) if name in order else len(clients)
        counted[name] = requests, reached
    return counted


def without_zeros(table):
    return {name: numbers for name, numbers in table.items() if numbers[0] > 0}


def test_a_replay_finds_what_the_server_found(tmp_path):
    rng, scores, lines = random.Random(3), [], []
    with scored(tmp_path) as weir, weir.client() as client:
        for i in range(600):
            fields = {"ip": f"192.0.2.{rng.randint(1, 12)}", "path": f"/{rng.choice('aaab')}"}
            if rng.random() < 0.8:
                fields["headers"] = rng.choice([{}, {"User-Agent": "wget"}, {"User-Agent": "Mozilla"}])
            if rng.random() < 0.1:
                fields["dry_run"] = True
            answer = client.check(**fields).json
            lines.append({"t": 1700000000 + i / 100, **fields})
            if "dry_run" not in fields:
                scores.append((fields["ip"], answer["score"]["class"], answer["score"]["signals"]))
        rules = weir.config.read_text(encoding="utf-8")
    found = tables(tmp_path, rules, lines)
    assert without_zeros(found) == count(scores)
    assert len(without_zeros(found)) == 6


class Client:
    """A slow model of one client: all its requests."""

    def __init__(self):
        self.times, self.paths = [], []

    def add(self, at, path):
        self.times.append(at)
        self.paths.append(path)

    def steady(self, within):
        gaps = [after - before for before, after in zip(self.times, self.times[1:])]
        run = 0
        for i in range(len(gaps) - 1, -1, -1):
            if not within <= gaps[i] < 2**20:
                break
            run += 1
            if i == 0 or abs(gaps[i] - gaps[i - 1]) >= within:
                break
        return run

    def same_route(self):
        run = 0
        while run < len(self.paths) and self.paths[-1 - run] == self.paths[-1]:
            run += 1
        return run


@pytest.mark.parametrize("seed", range(3))
def test_replays_of_random_requests_find_what_a_model_finds(tmp_path, seed):
    rng = random.Random(seed)
    signals = [{"name": "steady", "regular": {"over": 3, "within": "20ms"}, "add": 35},
               {"name": "route", "same_route": 3, "add": 20},
               {"name": "tool", "when": {"header.user-agent": ["absent", "curl/*"]}, "add": 15},
               {"name": "both", "regular": {"over": 2, "within": "20ms"},
                "when": {"method": {"not": "GET"}}, "add": 10}]
    rules = rules_of(*LIMITS, score={"key": ["client.ip"], "signals": signals})
    clients, scores, lines, now = {}, [], [], 1700000000000
    for _ in range(2000):
        now += rng.choice([1, 5, 20, 20, 20, 20, 35, 100, 1100000])
        address, path = f"10.0.0.{rng.randint(1, 4)}", rng.choice("aaab")
        agent, method = rng.choice([None, "curl/8", "Mozilla"]), rng.choice(["GET", "POST"])
        client = clients.setdefault(address, Client())
        client.add(now, path)
        holds = {"steady": client.steady(20) >= 3, "route": client.same_route() >= 3,
                 "tool": agent != "Mozilla", "both": client.steady(20) >= 2 and method == "POST"}
        score = sum(signal["add"] for signal in signals if holds[signal["name"]])
        scores.append((address, "malicious" if score >= 60 else "suspicious" if score >= 30 else
                       "legitimate", [name for name, held in holds.items() if held]))
        lines.append({"t": now / 1000, "ip": address, "path": f"/{path}", "method": method,
                      "headers": {"user-agent": agent} if agent else {}})
    found = tables(tmp_path, rules, lines)
    assert without_zeros(found) == count(scores)
    assert len(without_zeros(found)) == 7


def test_an_access_log_knows_two_fields(tmp_path):
    signals = [{"name": name, "when": {f"header.{name}": "absent"}, "add": 1}
               for name in ("user-agent", "referer", "cookie")]
    rules = rules_of(*LIMITS, score={"key": ["client.ip"], "signals": signals})
    head = '192.0.2.1 - - [07/Mar/2024:16:05:49 +0000] "GET / HTTP/1.1" 200 5'
    (tmp_path / "rules.yaml").write_text(rules, encoding="utf-8")
    for line, expected in ((head, []), (head + ' "-" "-"', ["user-agent", "referer"]),
                           (head + ' "http://a/" "-"', ["user-agent"])):
        done = run_weir("replay", "--config", tmp_path / "rules.yaml", "-", stdin=line + "\n")
        assert re.findall(r"^([\w-]+) +1 +100.00% +1 +100.00%$", done.stdout, re.M) == [
            "legitimate", *expected]


# --- The page and the bench -----------------------------------------------------------------------

def page():
    return (ROOT / "docs/score.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_does_what_the_page_says(tmp_path):
    bench.make_folder(tmp_path, bench.example().replace("127.0.0.1:8090", "127.0.0.1:0"))
    rules = (tmp_path / "weir.yaml").read_text(encoding="utf-8")
    listed = re.search(r"^\d+\.\d+\.\d+\.\d+", (tmp_path / "badnets.txt").read_text(), re.M)[0]
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        answer = client.auth("/items", client="192.0.2.1", User_Agent="python-requests/2.32")
        for line in re.search(r"^HTTP/1.1 200 OK\n(.*?)```", page(), re.M | re.S)[1].splitlines():
            name, _, value = line.partition(": ")
            assert answer[name] == value
        chrome = {"User_Agent": bench.CHROME, "Cookie": "a=b"}
        assert client.auth("/", client="192.0.2.2", X_Ja4=bench.CHROME_JA4, **chrome)[
            "x-weir-score"] == "legitimate;score=15, unproven;add=15"
        assert "tls-mismatch;add=40" in client.auth("/", client="192.0.2.3", X_Ja4=bench.GO_JA4,
                                                    **chrome)["x-weir-score"]
        assert "tls-mismatch" not in client.auth("/", client="192.0.2.4", **chrome)["x-weir-score"]
        assert "listed;add=50" in client.auth("/", client=listed, **chrome)["x-weir-score"]


def test_the_bench_classes_people_and_tools_as_the_page_says():
    result = dict(re.findall(r"^\| ([^|]+?) \| ([\d.]+) %", page(), re.M))
    for kind, _, requests, shares in bench.measure(10, 1, bench.example()):
        assert requests > 0 and sum(shares.values()) == pytest.approx(100, abs=0.1)
        if result[kind.name] in ("0", "100"):
            assert shares["legitimate"] == float(result[kind.name]), kind.name
    assert len(result) == len(bench.KINDS)
