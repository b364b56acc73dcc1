# SPDX-License-Identifier: Apache-2.0
"""nginx and HAProxy in front, with the snippets of examples/deploy, limit a real application."""

import subprocess

import pytest

from daemon.http import Client
from daemon.proxies import App, haproxy, nginx
from daemon.weir import Weir, rules_of

LIMITS = [
    {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "2/hour"},
    {"name": "host", "match": {"path": "/host", "host": "shop.example.org"}, "key": [],
     "rate": "1/hour"},
    {"name": "spoof", "match": {"path": "/spoof"}, "key": ["client.ip"], "rate": "1/hour"},
    {"name": "warned", "match": {"path": "/warned"}, "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "4/hour", "warn_at": "50%"},
    {"name": "agent", "match": {"path": "/agent"}, "key": ["header.user-agent"], "rate": "1/hour"},
]


@pytest.fixture(name="site", params=[nginx, haproxy])
def fixture_site(request, tmp_path):
    """A client's view: the proxy's address; beside it weir and the application."""
    with App() as app, Weir(tmp_path, rules_of(*LIMITS)) as weir:
        with request.param(tmp_path, weir.http_address, app.address) as proxy:
            proxy.weir, proxy.app = weir, app
            yield proxy


def test_a_denied_request_gets_429_with_all_fields_and_never_reaches_the_application(site):
    with Client(site.address) as client:
        replies = [client.request("POST", "/login?next=/", {}, b"name=x") for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    allowed, denied = replies[1], replies[2]
    assert allowed.body == b"POST /login?next=/ 6"
    assert allowed["ratelimit"].startswith('"login";r=0;t=')
    assert allowed["ratelimit-policy"] == '"login";q=2;w=3600'
    assert denied["ratelimit"].startswith('"login";r=0;t=')
    assert 0 < int(denied["retry-after"]) <= 3600
    assert denied["content-type"] == "application/problem+json"
    assert denied["cache-control"] == "no-store"
    assert denied.json["type"].endswith("#quota-exceeded") and denied.json["status"] == 429
    assert site.app.seen == [("POST", "/login?next=/")] * 2


def test_a_client_is_warned_before_it_is_denied(site):
    with Client(site.address) as client:
        replies = [client.request("GET", "/warned") for _ in range(5)]
    assert [reply.status for reply in replies] == [200] * 4 + [429]
    assert [reply["x-ratelimit-warning"] or None for reply in replies] == [
        None, '"warned";threshold=50;used=2;limit=4', '"warned";threshold=50;used=3;limit=4',
        '"warned";threshold=50;used=4;limit=4', None]


def test_what_no_limit_meets_passes_without_fields(site):
    with Client(site.address) as client:
        for _ in range(5):
            reply = client.request("GET", "/free")
            assert (reply.status, reply.body) == (200, b"GET /free 0")
            assert not reply["ratelimit"]


def test_host_and_headers_reach_the_rules(site):
    with Client(site.address) as client:
        data = b"GET /host HTTP/1.1\r\nHost: shop.example.org\r\n\r\n"
        client.send(data * 2)
        assert [client.reply().status for _ in range(2)] == [200, 429]
        for agent, status in (("a", 200), ("a", 429), ("b", 200)):
            assert client.request("GET", "/agent", {"User-Agent": agent}).status == status


def test_a_client_cannot_say_who_or_what_it_is(site):
    """Every field that tells weir of a request is the proxy's own."""
    with Client(site.address) as client:
        statuses = []
        for i in range(4):
            lie = {"X-Forwarded-For": f"203.0.113.{i}", "Forwarded": f"for=203.0.113.{i}",
                   "X-Forwarded-Uri": "/free", "X-Forwarded-Method": "GET",
                   "X-Original-URI": "/free", "X-Forwarded-Host": "other.example.org"}
            statuses.append(client.request("GET", "/spoof", lie).status)
        assert statuses == [200, 429, 429, 429]


def test_a_request_that_weir_cannot_read_is_refused_and_not_let_through(site):
    """Padded with fields beyond weir's 100, or with a malformed path, it would have no limit."""
    for count in (97, 98):
        with Client(site.address) as client:
            padding = {f"X-{i}": "1" for i in range(count)}
            assert client.request("GET", "/spoof", padding).status in (400, 431)
    with Client(site.address) as client:
        assert client.request("GET", "/%zz").status == 400
    assert site.app.seen == []


def test_a_403_of_the_application_stays_one(site):
    with Client(site.address) as client:
        assert client.request("GET", "/forbidden").status == 403


def test_requests_pass_while_weir_is_gone_and_are_limited_again_when_it_is_back(site):
    with Client(site.address) as client:
        assert client.request("POST", "/login", {}, b"").status == 200
        address = site.weir.http_address
        site.weir.kill()
        assert client.request("POST", "/login", {}, b"").status == 200
        site.weir.command[site.weir.command.index("--http") + 1] = address
        site.weir.start()
        statuses = [client.request("POST", "/login", {}, b"").status for _ in range(4)]
        assert 429 in statuses and set(statuses) == {200, 429}


def test_curl_sees_the_same(tmp_path):
    """The README's way: 200 with RateLimit, then 429 with Retry-After."""
    with Weir(tmp_path, rules_of(LIMITS[0])) as weir:
        command = ["curl", "-si", "--json", '{"method":"POST","path":"/login","ip":"192.0.2.1"}',
                   f"http://{weir.http_address}/v1/check"]
        outputs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout
                   for _ in range(3)]
    assert outputs[0].startswith("HTTP/1.1 200 OK") and "\nRateLimit: " in outputs[0]
    assert outputs[2].startswith("HTTP/1.1 429 Too Many Requests")
    assert "\nRetry-After: " in outputs[2]
