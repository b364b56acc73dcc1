# SPDX-License-Identifier: Apache-2.0
"""What `weir document` states is what `weir explain` answers. For each limit of each recipe: a request made from the page meets
the limit, at the stated cost and with the stated room; a request that the page excludes does not meet it."""

import html.parser
import json
import re

import pytest
import yaml

from model.program import RECIPES, ROOT, run_weir

FILES = [path for path in [*sorted(RECIPES.glob("*.yaml")), ROOT / "examples" / "weir.yaml"]
         if "limits:" in path.read_text(encoding="utf-8")]
CALLER = {"user": "ada", "org": "acme", "tokens": "1"}


def document(path, form="json"):
    done = run_weir("document", "--config", path, "--format", form)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if form in ("json", "openapi") else done.stdout


def explain(path, method, target, plan=None, conditions=()):
    """What each limit says: {name: the lines below its own, or why it does not apply}."""
    request = {"method": method, "path": target, "ip": "192.0.2.1", "attributes": {**CALLER, **({"plan": plan} if plan else {})},
               "headers": {}}
    for condition in conditions:
        value = re.findall("`([^`]*)`", condition["wanted"])[0]
        kind, _, name = condition["name"].partition(".")
        if kind == "header":
            request["headers"][name] = value
        elif condition["name"] in ("host", "client.ip"):
            request["host" if kind == "host" else "ip"] = value.partition("/")[0]
        else:
            request["attributes"][condition["name"]] = value
    done = run_weir("explain", "--config", path, "--json", json.dumps(request))
    assert done.returncode == 0, done.stderr
    said = {}
    for name, why, rest in re.findall(r"^(\S+): (.*)\n((?:    .*\n)*)", done.stdout, re.M):
        said[name] = (why, rest)
    return said


def sample(pattern):
    """A path in a pattern."""
    return re.sub(r":\w+|\*+", "7", pattern).replace("//", "/")


def requests_of(limit):
    for method in limit["methods"] or ["GET"]:
        for pattern in limit["paths"] or ["/no/pattern/has/this"]:
            yield method, sample(pattern)


def plan_rates(limit):
    return [(plan or None, rates) for plan, rates in limit["rates"].items()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_request_of_the_page_meets_its_limit(path):
    tried = 0
    for limit in document(path)["limits"]:
        if any("`" not in condition["wanted"] or condition["wanted"].startswith("not ") for condition in limit["conditions"]):
            continue  # by a list, a score or what is not there
        for plan, rates in plan_rates(limit):
            for method, target in requests_of(limit):
                why, rest = explain(path, method, target, plan, limit["conditions"])[limit["name"]]
                if limit["unless"] and why != "applies":
                    assert any(name in why for name in limit["unless"]), why
                    continue
                if "its key needs" in why:
                    assert any(name in why for name in limit["key"]), (limit["name"], why)
                    continue
                assert why.startswith("applies"), (limit["name"], method, target, plan, why)
                tried += 1
                if "cost" in limit and not limit["costs"]:
                    assert f"    cost   {limit['cost']}\n" in rest, rest
                room = [int(number) for number in re.findall(r"of (\d+) remaining", rest)]
                part = int((re.findall(r"    scale  (\d+)%", rest) or [100])[0])
                if "(on_missing: deny)" not in rest:
                    assert room == [rate["limit"] * part // 100 for rate in rates], (limit["name"], plan, rest)
    assert tried >= 1, path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_the_page_excludes_does_not_meet_the_limit(path):
    excluded = []
    for limit in document(path)["limits"]:
        if limit["methods"]:
            excluded.append((limit["name"], "TRACE", sample((limit["paths"] or ["/"])[0])))
        if limit["paths"] and "/**" not in limit["paths"]:
            excluded.append((limit["name"], (limit["methods"] or ["GET"])[0], "/no/pattern/has/this"))
    assert bool(excluded) == any({"method", "path"} & set(limit.get("match", {}))
                                 for limit in yaml.safe_load(path.read_text(encoding="utf-8"))["limits"])
    for name, method, target in excluded:
        assert not explain(path, method, target)[name][0].startswith("applies"), (name, method, target)


def made(tmp_path):
    rules = {"version": 1, "plans": {"free": {"api": "10/min", "day": "unlimited"}, "pro": {"api": "600/min", "day": "5000/d"}},
             "default_plan": "free", "headers": ["draft", "x-epoch"],
             "limits": [
                 {"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "plan",
                  "cost": {"POST /export/*": 5, "/search": 2, "default": 1}},
                 {"name": "day", "key": ["user"], "rate": "plan", "on_deny": "charge"},
                 {"name": "odd", "match": {"path": "/a", "header.x-secret": "<i>"}, "key": [], "rate": "1/s",
                  "reject": {"status": 503, "body": "{\"busy\": true}"}},
                 {"name": "login", "match": {"method": "POST", "path": ["/login/:id", "/v/*/x"]}, "key": ["client.ip"],
                  "algorithm": "sliding_log", "rate": ["5/min", "20/h"]},
                 {"name": "hidden", "key": [], "rate": "1/s", "shadow": True}]}
    path = tmp_path / "weir.yaml"
    path.write_text(yaml.safe_dump(rules), encoding="utf-8")
    return path


def test_costs_and_plans_say_how_many_calls_each_gets(tmp_path):
    path = made(tmp_path)
    limits = {limit["name"]: limit for limit in document(path)["limits"]}
    assert set(limits) == {"api", "day", "odd", "login"}
    assert limits["api"]["rates"]["pro"][0]["calls"] == {
        "1": "600 a minute, up to 600 at once", "5": "120 a minute, up to 120 at once", "2": "300 a minute, up to 300 at once"}
    assert limits["day"]["rates"] == {"free": [], "pro": limits["day"]["rates"]["pro"]}
    for method, target, cost in ("POST", "/export/7", 5), ("GET", "/export/7", 1), ("GET", "/search", 2), ("GET", "/", 1):
        stated = next((one["cost"] for one in limits["api"]["costs"]
                       if one["method"] in (None, method) and sample(one["path"]) == target), limits["api"]["cost"])
        assert stated == cost
        assert f"cost   {cost}\n" in explain(path, method, target)["api"][1]
    page = document(path, "markdown")
    assert "| pro | api | 5 | 120 a minute, up to 120 at once |" in page
    assert "| free | day | any | unlimited |" in page
    assert "Denials by odd have status 503." in page and "Denied requests count, too, in: day." in page
    assert "| POST /login/:id, /v/\\*/x | login | client.ip | 5 a minute, and 20 an hour | 1 |" in page
    assert "X-RateLimit-Reset | when all are back: seconds since 1970 |" in page


def test_a_call_that_costs_more_than_a_minute_brings_has_its_time(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "limits": [
        {"name": "api", "key": ["user"], "algorithm": "gcra", "rate": "10/min", "burst": 100, "cost": {"/export": 100, "default": 1}},
        {"name": "log", "key": ["user"], "algorithm": "sliding_log", "rate": "10/min", "cost": 11}]}), encoding="utf-8")
    api, log = (limit["rates"][""][0]["calls"] for limit in document(path)["limits"])
    assert api == {"1": "10 a minute, up to 100 at once", "100": "1 in 10min, up to 1 at once"}
    assert log == {"11": "0 a minute"}


def test_every_path_is_there_and_neither_secrets_nor_what_is_in_shadow(tmp_path):
    paths = [f"/things/of/kind/{i}/:id" for i in range(1000)]
    path = tmp_path / "weir.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "limits": [
        {"name": "hidden", "match": {"path": "/x"}, "key": [], "rate": "1/s", "shadow": True},
        {"name": "many", "match": {"method": ["GET", "PUT"], "path": paths[:50]}, "key": [], "rate": "1/s"},
        {"name": "most", "match": {"path": paths}, "key": [], "rate": "1/s"},
        {"name": "rest", "match": {"header.authorization": "Bearer sesame"}, "unless": ["hidden", "many"], "key": [], "rate": "1/s"}]}),
        encoding="utf-8")
    many, most, rest = document(path)["limits"]
    assert many["paths"] == paths[:50] and many["methods"] == ["GET", "PUT"] and most["paths"] == paths
    assert rest["unless"] == ["many"]
    assert len(document(path, "openapi")["paths"]) == 1000
    page = document(path, "markdown")
    assert "only where header.authorization is a secret value; unless counted by many |" in page
    assert "hidden" not in page and "sesame" not in page
    lines = {line.split(" | ")[1]: line for line in page.splitlines() if line.startswith("| ")}
    assert all(f"{one}, " in f"{lines['many']}, ".replace(" |", ",") for one in paths[:50])
    assert lines["most"].split(" | ")[0].endswith(" ...")  # JSON has all


class Text(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_what_the_rules_say_is_text_in_html(tmp_path):
    path = made(tmp_path)
    done = run_weir("document", "-c", path, "-f", "html", "--title", "<script>&\"")
    parsed = Text()
    parsed.feed(done.stdout)
    assert {"script", "i", "b"} & set(parsed.tags) == set()
    text = "".join(parsed.text)
    assert "<script>&\"" in text and "only where header.x-secret is <i>" in text
    assert parsed.tags.count("table") == 3


def test_the_fragment_for_openapi_has_each_path_and_what_it_refers_to(tmp_path):
    fragment = document(made(tmp_path), "openapi")
    assert set(fragment["paths"]) == {"/a", "/login/{id}"}
    login = fragment["paths"]["/login/{id}"]
    assert login["parameters"] == [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    assert [one["name"] for one in login["post"]["x-rate-limits"]] == ["login"]
    assert [one["name"] for one in fragment["paths"]["/a"]["x-rate-limits"]] == ["odd"]
    assert [one["name"] for one in fragment["x-rate-limits"]] == ["api", "day", "login"]

    def references(value):
        if isinstance(value, dict):
            yield from [value["$ref"]] if "$ref" in value else []
            value = list(value.values())
        for one in value if isinstance(value, list) else []:
            yield from references(one)

    found = set(references(fragment))
    assert "#/components/responses/RateLimited" in found and "#/components/headers/Retry-After" in found
    for reference in found:
        at = fragment
        for name in reference.split("/")[1:]:
            at = at[name]


def test_the_denials_of_the_whole_file(tmp_path):
    path = tmp_path / "weir.yaml"
    path.write_text(yaml.safe_dump({
        "reject": {"form": "json", "status": 503, "above_status": 413}, "headers": ["cost", "standing", "dimension"],
        "plans": {"pro": {"own": "7/min"}}, "default_plan": "pro",
        "limits": [
            {"name": "all", "match": {"method": "GET", "path": "/a"}, "key": [], "rate": "1/s"},
            {"name": "own", "key": [], "rate": "plan", "cost": {"from": "header.x-cost", "default": 1, "min": 1, "max": 9},
             "reject": {"status": 409, "body": "busy", "content_type": "text/plain"}}]}), encoding="utf-8")
    every, own = document(path)["limits"]
    assert (every["status"], every["above_status"], every["body"]) == (503, 413, "application/json")
    assert (own["status"], own["above_status"], own["body"]) == (409, 413, "text/plain")
    page = document(path, "markdown")
    assert "Denials by all have status 503." in page and "Denials by all have a body of type application/json." in page
    assert "A call that costs more than own ever has is denied with status 413" in page
    assert "| pro | own | 1 | 7 a minute |" in page
    assert "| X-RateLimit-Dimension |" in page and "| X-RateLimit-Standing |" in page
    assert list(document(path, "openapi")["paths"]["/a"]["get"]["responses"]) == ["503"]


def test_wrong_use():
    assert run_weir("document").returncode == 2
    assert run_weir("document", "-c", "x", "-f", "pdf").returncode == 2
    assert run_weir("document", "-c", "/no/such/file").returncode == 1
