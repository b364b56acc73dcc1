# SPDX-License-Identifier: Apache-2.0
"""nginx, HAProxy and Traefik send clients to the challenge, by the recipes of docs/challenge.md."""

import re

import pytest
import yaml

from daemon.challenge import FORM, PAGE, PATH, ChallengeWeir, form_of, solve
from daemon.http import Client
from daemon.proxies import App, haproxy, nginx, replaced
from daemon.waiting import wait_until
from daemon.wheels import TRAEFIK, Wheel, traefik
from model.program import ROOT

LIMITS = [
    {"name": "passed", "match": {"challenge": "passed", "path": "/shop"}, "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "3/h"},
    {"name": "unproven", "match": {"path": "/shop"}, "unless": ["passed"], "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "1/h"},
]


def blocks(language):
    text = (ROOT / "docs" / "challenge.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def nginx_with(folder, weir, app):
    def extend(text):
        before, location, first = blocks("nginx")
        before = replaced(before, ("127.0.0.1:8082", weir.challenge_address))
        return before + replaced(text, ("    location @denied {\n        internal;\n",
                                        location + "    location @denied {\n        internal;\n" + first))
    return nginx(folder, weir.http_address, app.address, extend=extend)


def haproxy_with(folder, weir, app):
    def extend(text):
        rules, backend = blocks("haproxy")
        return replaced(text, ("    http-request lua.weir\n", rules)) + "\n" + replaced(
            backend, ("127.0.0.1:8082", weir.challenge_address))
    return haproxy(folder, weir.http_address, app.address, extend=extend)


@pytest.fixture(name="site", params=[nginx_with, haproxy_with])
def fixture_site(request, tmp_path):
    with App() as app, ChallengeWeir(tmp_path, limits=LIMITS) as weir:
        with request.param(tmp_path, weir, app) as proxy:
            proxy.app = app
            yield proxy


def test_a_denied_browser_is_sent_to_the_challenge_and_comes_back(site):
    with Client(site.address) as client:
        def get(target, **fields):
            return client.request("GET", target, PAGE | fields)

        assert get("/shop?a=1&b=2").status == 200
        sent = get("/shop?a=1&b=2")
        assert sent.status == 303
        target = re.sub(r"^http://[^/]*", "", sent["location"])
        assert target == f"{PATH}?to=/shop?a=1&b=2"
        lie = {"X-Forwarded-For": "203.0.113.1", "Forwarded": "for=203.0.113.1"}
        page = get(target, **lie)  # the recipe's own address replaces what the client says
        assert page.status == 200 and "script-src 'sha256-" in page["content-security-policy"]
        values, difficulty = form_of(page.body)
        body = f"puzzle={values['puzzle']}&solution={solve(values['puzzle'], difficulty)}" \
               "&to=%2Fshop%3Fa%3D1%26b%3D2"
        back = client.request("POST", PATH, PAGE | {"Content-Type": FORM}, body.encode())
        assert back.status == 303
        assert re.sub(r"^http://[^/]*", "", back["location"]) == "/shop?a=1&b=2"
        cookie = back["set-cookie"].partition(";")[0]
        assert [get("/shop?a=1&b=2", Cookie=cookie).status for _ in range(3)] == [200] * 3
        denied = get("/shop", Cookie=cookie)  # a further token would not help
        assert denied.status == 429 and denied["ratelimit"].startswith('"passed";r=0')
    assert site.app.seen == [("GET", "/shop?a=1&b=2")] * 4


def merged(a, b):
    """Two mappings as one; `b` goes first where both have a value."""
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return b
    return {**a, **b, **{name: merged(a[name], b[name]) for name in a.keys() & b.keys()}}


def test_traefik_shows_the_challenge_in_place_of_a_denial(tmp_path):
    def extend(text):
        recipe = next(block for block in blocks("yaml") if block.startswith("http:"))
        recipe = replaced(recipe, ("10.0.0.5:8082", weir.challenge_address),
                          ("Host(`example.org`) && ", ""), ("Host(`example.org`)", "PathPrefix(`/`)"))
        return yaml.safe_dump(merged(yaml.safe_load(text), yaml.safe_load(recipe)))

    with Wheel(TRAEFIK) as wheel, App() as app, ChallengeWeir(tmp_path, limits=LIMITS) as weir:
        with traefik(wheel, tmp_path, weir.http_address, app.address, extend) as proxy, \
                Client(proxy.address) as client:
            wait_until(lambda: client.request("GET", "/free").status == 200)
            assert client.request("GET", "/shop?a=1", PAGE).status == 200
            page = client.request("GET", "/shop?a=1", PAGE)
            assert page.status == 429 and page["content-security-policy"]
            values, difficulty = form_of(page.body)
            assert values["to"] == "/"  # its script knows better: see test_challenge_browser.py
            body = f"puzzle={values['puzzle']}&solution={solve(values['puzzle'], difficulty)}&to=/shop"
            back = client.request("POST", PATH, PAGE | {"Content-Type": FORM}, body.encode())
            assert (back.status, back["location"]) == (303, "/shop")
            cookie = {"Cookie": back["set-cookie"].partition(";")[0]}
            assert client.request("GET", "/shop", PAGE | cookie).status == 200
