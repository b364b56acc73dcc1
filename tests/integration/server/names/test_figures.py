# SPDX-License-Identifier: Apache-2.0
"""A known mix of requests, and every figure of every view beside the record of what was sent: counters
exactly, distinct counts within their stated error."""

import collections
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import SECONDS_MAX, run_weir

ROOT = Path(__file__).parents[4]
BOARD = json.loads((ROOT / "packaging" / "grafana" / "weir.json").read_text(encoding="utf-8"))
YEAR = "366d"
ROUNDS = 8  # with pauses of a second, so that all are counted one by one


class Record:
    """What was sent and answered."""

    def __init__(self):
        self.requests, self.refused, self.decided = 0, collections.Counter(), []

    def add(self, user, org, ip, path, answer):
        self.requests += 1
        self.decided.append((user, org, ip, path, answer))
        if not answer["allowed"]:
            self.refused["standing" if answer["denied_by"] == "standing" else "limit"] += 1

    def met(self, limit):
        """Verdicts of a limit: allowed, denied."""
        counts = collections.Counter()
        for user, org, ip, path, answer in self.decided:
            for one in answer.get("limits", []):
                if one["name"] == limit:
                    counts["denied" if not one["allowed"] else "allowed"] += 1
        return counts

    def count(self, place, value, denied=False):
        return sum(one[place] == value and not (denied and one[4]["allowed"]) for one in self.decided)


def mixture(number):
    """The requests of a round: acme asks most, by three users; eve is banned; some hit limits."""
    for i in range(40):
        yield f"acme-{i % 3}", "acme", "198.51.100.7", "/team" if i % 2 else "/search/x"
    for i in range(25):
        yield f"one-{number}-{i}", "", f"203.0.113.{i}", "/search/x"
    for _ in range(15):
        yield "eve", "", "192.0.2.66", "/login"
    for _ in range(20):
        yield "zoë", "wörld", "2001:db8:1::5", "/login"


@pytest.fixture(scope="module", name="run")
def fixture_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    rules = rules_of(
        {"name": "login", "match": {"path": "/login"}, "key": ["user"], "rate": f"30/{YEAR}",
         "algorithm": "token_bucket"},
        {"name": "team", "match": {"path": "/team"}, "key": ["org"], "rate": f"50/{YEAR}",
         "algorithm": "token_bucket"},
        {"name": "quiet", "key": ["client.ip"], "rate": f"10/{YEAR}", "shadow": True,
         "algorithm": "token_bucket"},
        denials={"sample": 1000},
        standing={"by": ["user"], "file": str(folder / "standing.db")},
        server={"admin": {"address": "127.0.0.1:0", "token": "s3cret"}})
    record = Record()
    with Weir(folder, rules, "--workers", "2", admin=None) as weir:
        prometheus = start_prometheus(weir, folder)
        with weir.client() as client:
            for number in range(ROUNDS):
                if number == 2:
                    ban(weir)
                for user, org, ip, path in mixture(number):
                    values = {"user": user} | ({"org": org} if org else {})
                    record.add(user, org, ip, path,
                               client.check(method="GET", path=path, ip=ip, attributes=values).json)
                before = series(weir)["requests"]
                wait_until(lambda: series(weir)["requests"] == record.requests,
                           what=f"a tick that has counted this round, after {before}")
        yield weir, record, prometheus
        if prometheus:
            prometheus[0].kill()
            prometheus[0].wait()


def ban(weir):
    body = json.dumps({"kind": "user", "value": "eve", "level": "revoked", "yes": True}).encode()
    with weir.admin() as admin:
        assert admin.request("PUT", "/v1/standing", body=body).status == 200


def start_prometheus(weir, folder):
    program = shutil.which("prometheus", path=os.environ.get("PROMETHEUS") or os.environ["PATH"])
    if not program:
        return None
    (folder / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "weir", "authorization": {"credentials": "s3cret"}, "static_configs": [
            {"targets": [weir.admin_address]}]}]}), encoding="utf-8")
    log = folder / "prometheus.log"
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen([program, f"--config.file={folder}/prometheus.yml",
                                    f"--storage.tsdb.path={folder}/data",
                                    "--web.listen-address=127.0.0.1:0"], stderr=out)
    def address():
        return re.search(r'msg="Listening on" address=(\S+)', log.read_text(encoding="utf-8"))
    wait_until(address, what="Prometheus")
    found = process, address()[1]
    wait_until(lambda: query(found, "weir_front_decisions_total"), what="a first scrape")
    return found


def panel_text(title):
    """The first query of a panel of the board."""
    panel = next(one for one in BOARD["panels"] if one["title"] == title)
    text = panel["targets"][0]["expr"].replace("$__rate_interval", "10m")
    return text.replace("$instance", ".*").replace("$limit", ".*")


def alert_parts(name):
    """The two conditions of an alert, each without its bound, over as long as the run took."""
    rules = (ROOT / "packaging" / "prometheus" / "weir.rules.yml").read_text(encoding="utf-8")
    text = re.search(rf"alert: {name}\n +expr: \|\n(.*?)\n +for:", rules, re.S)[1]
    return [re.sub(r"> [0-9.]+\s*$", "", part).replace("[5m]", "[10m]").strip()
            for part in re.split(r"\n +and ", text)]


def query(prometheus, text, labels=False):
    url = f"http://{prometheus[1]}/api/v1/query?query={urllib.parse.quote(text)}"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS_MAX) as reply:
            found = [(one["metric"], float(one["value"][1])) for one in json.load(reply)["data"]["result"]]
            return found if labels else [value for _, value in found]
    except urllib.error.HTTPError:  # it still starts
        return []


def ask(weir, path, **parameters):
    with weir.admin() as admin:
        text = path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")
        reply = admin.request("GET", text)
    assert reply.status == 200, reply.body
    return reply.json


def series(weir, **parameters):
    values = ask(weir, "/v1/series", count=600, **parameters)["values"]
    return {name: sum(points) for name, points in values.items()}


LIMITS = ("login", "team", "quiet")


def test_the_record_has_all_that_it_should(run):
    _, record, _ = run
    assert record.requests == 800
    assert record.refused["standing"] == 6 * 15
    assert record.refused["limit"] > 100
    assert record.met("quiet")["denied"] > 100


def test_series_of_the_server_are_the_record(run):
    weir, record, _ = run
    whole = series(weir)
    assert whole["requests"] == whole["http"] == record.requests
    assert whole["denied"] == sum(record.refused.values())
    assert whole["allowed"] == record.requests - whole["denied"]
    assert whole["refused_limit"] == record.refused["limit"]
    assert whole["refused_standing"] == record.refused["standing"]
    for cause in ("unknown", "challenge", "store", "unreadable"):
        assert whole[f"refused_{cause}"] == 0


@pytest.mark.parametrize("limit", LIMITS)
def test_series_and_counters_of_limits_are_the_record(run, limit):
    weir, record, _ = run
    met, shadow = record.met(limit), limit == "quiet"
    points = series(weir, limit=limit)
    assert points["allowed"] == met["allowed"]
    assert points["denied"] == (0 if shadow else met["denied"])
    assert points["shadow_denied"] == (met["denied"] if shadow else 0)
    listed = {one["name"]: one for one in ask(weir, "/v1/limits")["limits"]}[limit]
    assert (listed["allowed"], listed["denied"], listed["shadow_denied"]) \
        == (points["allowed"], points["denied"], points["shadow_denied"])
    metrics = weir.metrics()
    for result in ("allowed", "denied", "shadow_denied"):
        name = f'weir_decisions_total{{limit="{limit}",result="{result}"}}'
        assert metrics[name] == points[result]


def test_distinct_keys_are_within_their_stated_error(run):
    weir, record, _ = run
    exact = len({one[0] for one in record.decided if one[3] == "/login"})
    found = max(ask(weir, "/v1/series", limit="login", resolution="1min", count=10)
                ["values"]["distinct_keys"])
    assert exact - 1 <= found <= exact + 1
    addresses = len({one[2] for one in record.decided})
    found = max(ask(weir, "/v1/series", limit="quiet", resolution="1min", count=10)
                ["values"]["distinct_keys"])
    assert abs(found - addresses) <= 4 * 0.033 * addresses + 1


def test_metrics_of_requests_are_the_record(run):
    weir, record, _ = run
    metrics = weir.metrics()
    assert metrics['weir_front_decisions_total{front="http"}'] == record.requests
    for cause in ("limit", "standing", "unknown", "challenge", "store", "unreadable"):
        assert metrics[f'weir_requests_refused_total{{cause="{cause}"}}'] == record.refused[cause]


def test_top_consumers_are_the_record(run):
    weir, record, _ = run
    answer = ask(weir, "/v1/use/callers", window="day", count=100)
    assert answer["requests"] == record.requests
    found = {one["key"]: one for one in answer["callers"]}
    for place, kind, values in ((0, "user", ("acme-0", "acme-1", "eve", "zoë")),
                                (1, "org", ("acme", "wörld")), (2, "client.ip", ("198.51.100.7",))):
        for value in values:
            one = found[f"{kind}={value}"]
            assert (one["requests"], one["error"]) == (record.count(place, value), 0)
            assert one["denied"] == record.count(place, value, denied=True)
            assert one["share_percent"] == round(100 * one["requests"] / record.requests, 1)
    assert found["client.ip=2001:db8:1::/64"]["requests"] == record.count(2, "2001:db8:1::5")
    orgs = [one["key"] for one in answer["callers"] if one["key"].startswith("org=")]
    assert orgs == ["org=acme", "org=wörld"]


def test_top_keys_and_top_denied_are_the_record(run):
    weir, record, _ = run
    keys = {(one["limit"], one["key"]): one
            for one in ask(weir, "/v1/use/top", window="day", by="denied", count=1000)["keys"]}
    team = keys["team", "org=acme"]
    assert team["requests"] == sum(record.met("team").values())
    assert team["denied"] == record.met("team")["denied"]
    assert keys["standing", "user=eve"]["denied"] == record.refused["standing"]
    assert all(one["denied"] == 0 for (limit, _), one in keys.items() if limit == "quiet")


def test_denials_are_the_record(run):
    weir, record, _ = run
    all_of_them = ask(weir, "/v1/denials", count=10000)
    assert all_of_them["left_out"] == all_of_them["lost"] == 0
    by = collections.Counter(one["limit"] for one in all_of_them["denials"])
    assert by["standing"] == record.refused["standing"]
    assert by["login"] + by["team"] == record.refused["limit"]
    for user in ("acme-1", "eve", "zoë"):
        found = ask(weir, "/v1/denials", user=user, count=10000)["denials"]
        assert len(found) == record.count(0, user, denied=True)


def test_weir_top_prints_the_record(run):
    weir, record, _ = run
    done = run_weir("top", "--once", "--admin", weir.admin_address, "--token", "s3cret")
    assert done.returncode == 0
    for limit in ("login", "team"):
        met = record.met(limit)
        line = re.search(rf"^{limit} +\S+ +(\d+) +(\d+)", done.stdout, re.M)
        assert line.groups() == (str(met["allowed"]), str(met["denied"]))
    assert re.search(rf"^quiet\* +\S+ +\d+ +{record.met('quiet')['denied']} ", done.stdout, re.M)
    section = done.stdout[done.stdout.index("REFUSED BY"):]
    assert re.search(rf"^standing +{record.refused['standing']}$", section, re.M)
    assert re.search(rf"^limit +{record.refused['limit']}$", section, re.M)
    found = json.loads(run_weir("top", "--once", "--json", "--admin", weir.admin_address, "--token", "s3cret").stdout)
    assert found["limits"]["requests"]["decided"] == record.requests
    assert found["limits"]["requests"]["refused"]["standing"] == record.refused["standing"]


def test_the_board_divides_refused_by_requests(run):
    weir, record, prometheus = run
    if not prometheus:
        pytest.skip("Debian's package prometheus is not installed (script/bootstrap test)")
    wait_until(lambda: query(prometheus, 'weir_front_decisions_total{front="http"}')
               == [record.requests], what="a scrape that has seen all")
    assert query(prometheus, panel_text("Requests refused")) \
        == [pytest.approx(sum(record.refused.values()) / record.requests)]
