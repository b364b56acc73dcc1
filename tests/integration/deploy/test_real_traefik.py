# SPDX-License-Identifier: Apache-2.0
"""A real Traefik in front, with the recipe of docs/deploy/traefik.md, limits a real application."""

import pytest

from daemon.http import Client
from daemon.proxies import App
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from daemon.wheels import TRAEFIK, Wheel, traefik

LIMITS = [
    {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "2/hour"},
    {"name": "host", "match": {"path": "/host", "host": "shop.example.org"}, "key": [],
     "rate": "1/hour"},
    {"name": "spoof", "match": {"path": "/spoof"}, "key": ["client.ip"], "rate": "1/hour"},
    {"name": "agent", "match": {"path": "/agent"}, "key": ["header.user-agent"], "rate": "1/hour"},
]


@pytest.fixture(scope="module", name="wheel")
def fixture_wheel():
    with Wheel(TRAEFIK) as wheel:
        yield wheel


@pytest.fixture(name="site")
def fixture_site(tmp_path, wheel):
    with App() as app, Weir(tmp_path, rules_of(*LIMITS)) as weir:
        with traefik(wheel, tmp_path, weir.http_address, app.address) as proxy:
            with Client(proxy.address) as client:  # until it has read its file
                wait_until(lambda: client.request("GET", "/free").status == 200)
            proxy.weir, proxy.app = weir, app
            app.seen.clear()
            yield proxy


def test_a_denied_request_gets_429_with_all_fields_and_never_reaches_the_application(site):
    with Client(site.address) as client:
        replies = [client.request("POST", "/login?next=/", {}, b"name=x") for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    denied = replies[2]
    assert replies[1].body == b"POST /login?next=/ 6"
    assert denied["ratelimit"].startswith('"login";r=0;t=')
    assert 0 < int(denied["retry-after"]) <= 3600
    assert denied["content-type"] == "application/problem+json"
    assert denied.json["type"].endswith("#quota-exceeded") and denied.json["status"] == 429
    assert site.app.seen == [("POST", "/login?next=/")] * 2


def test_host_and_headers_reach_the_rules(site):
    with Client(site.address) as client:
        data = b"GET /host HTTP/1.1\r\nHost: shop.example.org\r\n\r\n"
        client.send(data)
        assert client.reply().status == 200
        client.send(data)
        assert client.reply().status == 429
        for agent, status in (("a", 200), ("a", 429), ("b", 200)):
            assert client.request("GET", "/agent", {"User-Agent": agent}).status == status


def test_a_client_cannot_say_who_or_what_it_is(site):
    with Client(site.address) as client:
        statuses = []
        for i in range(4):
            lie = {"X-Forwarded-For": f"203.0.113.{i}", "Forwarded": f"for=203.0.113.{i}",
                   "X-Forwarded-Uri": "/free", "X-Forwarded-Method": "POST",
                   "X-Forwarded-Host": "other.example.org"}
            statuses.append(client.request("GET", "/spoof", lie).status)
        assert statuses == [200, 429, 429, 429]
        # What Traefik passes on beside its own fields contradicts them: refused, never let through.
        for name in "X-Original-URI", "X-Original-URL":
            assert client.request("GET", "/spoof", {name: "/free"}).status == 400


def test_requests_get_500_while_weir_is_away(site):
    with Client(site.address) as client:
        assert client.request("GET", "/free").status == 200
        site.weir.stop()
        assert client.request("GET", "/free").status == 500
