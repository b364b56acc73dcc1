# SPDX-License-Identifier: Apache-2.0
"""A real Caddy in front, with the recipe of docs/deploy/caddy.md, limits a real application."""

import re
import shutil

import pytest

from daemon.http import Client
from daemon.proxies import App, Proxy, free_port, replaced
from daemon.weir import Weir, rules_of
from model.program import ROOT

pytestmark = pytest.mark.skipif(not shutil.which("caddy"), reason="needs caddy (Debian: caddy)")
LIMITS = [
    {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "2/hour"},
    {"name": "host", "match": {"path": "/host", "host": "shop.example.org"}, "key": [],
     "rate": "1/hour"},
    {"name": "spoof", "match": {"path": "/spoof"}, "key": ["client.ip"], "rate": "1/hour"},
    {"name": "data", "match": {"path": "/data"}, "key": ["header.user-agent", "query.q", "cookie.c"],
     "rate": "1/hour"},
]


def recipe():
    text = (ROOT / "docs" / "deploy" / "caddy.md").read_text(encoding="utf-8")
    return re.search(r"^```\n(example\.org .*?)^```", text, re.M | re.S)[1]


def caddy(folder, weir_address, app_address, *more):
    port = free_port()
    text = replaced(recipe(), ("example.org {", f"http://:{port} {{\n    bind 127.0.0.1"),
                    ("127.0.0.1:8080", weir_address), ("127.0.0.1:3000", app_address), *more)
    conf = folder / "Caddyfile"
    conf.write_text("{\n    admin off\n    auto_https off\n}\n" + text,
                    encoding="utf-8")
    command = ["env", f"HOME={folder}", f"XDG_CONFIG_HOME={folder}", f"XDG_DATA_HOME={folder}",
               "caddy", "run", "--config", str(conf), "--adapter", "caddyfile"]
    return Proxy(command, folder / "caddy.log", f"127.0.0.1:{port}")


@pytest.fixture(name="site")
def fixture_site(tmp_path):
    with App() as app, Weir(tmp_path, rules_of(*LIMITS)) as weir:
        with caddy(tmp_path, weir.http_address, app.address) as proxy:
            proxy.weir, proxy.app = weir, app
            yield proxy


def test_a_denied_request_gets_429_with_all_fields_and_never_reaches_the_application(site):
    with Client(site.address) as client:
        replies = [client.request("POST", "/login?next=/", {}, b"name=x") for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429], replies[0].body
    denied = replies[2]
    assert replies[1].body == b"POST /login?next=/ 6"
    assert denied["ratelimit"].startswith('"login";r=0;t=')
    assert 0 < int(denied["retry-after"]) <= 3600
    assert denied["content-type"] == "application/problem+json"
    assert denied.json["type"].endswith("#quota-exceeded") and denied.json["status"] == 429
    assert site.app.seen == [("POST", "/login?next=/")] * 2


def test_host_headers_query_and_cookies_reach_the_rules(site):
    with Client(site.address) as client:
        for status in (200, 429):
            client.send(b"GET /host HTTP/1.1\r\nHost: shop.example.org\r\n\r\n")
            assert client.reply().status == status
        for query, cookie, agent, status in (("1", "a", "x", 200), ("1", "a", "x", 429),
                                             ("2", "a", "x", 200), ("1", "b", "x", 200),
                                             ("1", "a", "y", 200)):
            fields = {"User-Agent": agent, "Cookie": f"c={cookie}"}
            assert client.request("GET", f"/data?q={query}", fields).status == status


def test_a_client_cannot_say_who_or_what_it_is(site):
    with Client(site.address) as client:
        statuses = []
        for i in range(4):
            lie = {"X-Forwarded-For": f"203.0.113.{i}", "Forwarded": f"for=203.0.113.{i}",
                   "X-Forwarded-Uri": "/free", "X-Forwarded-Method": "POST",
                   "X-Forwarded-Host": "other.example.org", "X-Original-Uri": "/free",
                   "X-Original-Url": "/free", "X-Original-Method": "POST"}
            statuses.append(client.request("GET", "/spoof", lie).status)
        assert statuses == [200, 429, 429, 429]
        for query in "cost=0", "deny_status=401", "x=1":
            assert client.request("GET", f"/spoof?{query}").status == 429


def test_requests_get_502_while_weir_is_away(site):
    with Client(site.address) as client:
        assert client.request("GET", "/free").status == 200
        site.weir.stop()
        assert client.request("GET", "/free").status == 502


def test_a_token_and_a_unix_socket_as_the_page_says(tmp_path):
    rules = rules_of(*LIMITS, server={"http": {"address": f"unix:{tmp_path}/http.sock",
                                               "token": "s3cret"}})
    token = "header_up -Forwarded\n        header_up X-Weir-Token s3cret"
    with App() as app, Weir(tmp_path, rules, http=None):
        for more, statuses in (([], [401]), ([("header_up -Forwarded", token)], [200, 200, 429])):
            with caddy(tmp_path, f"unix/{tmp_path}/http.sock", app.address, *more) as proxy, \
                    Client(proxy.address) as client:
                assert [client.request("POST", "/login").status for _ in statuses] == statuses
