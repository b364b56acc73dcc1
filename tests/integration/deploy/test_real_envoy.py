# SPDX-License-Identifier: Apache-2.0
"""A real Envoy in front, with examples/envoy/envoy.yaml and the snippets of docs/deploy/envoy.md, limits a
real application by weir: its rate limit service, ext_authz over HTTP and over gRPC."""

import time

import pytest

from daemon.envoy import Service, begin_window, configuration, rule
from daemon.http import Client
from daemon.proxies import App, free_port
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from daemon.wheels import ENVOY, Wheel, blocks, envoy, indented

LIMITS = [
    {"name": "login", "match": {"method": "POST", "path": "/login"}, "key": ["client.ip"],
     "algorithm": "sliding_log", "rate": "2/hour"},
    {"name": "agent", "match": {"path": "/agent"}, "key": ["header.user-agent"], "rate": "1/hour"},
    {"name": "ready", "match": {"path": "/ready"}, "key": [], "rate": "1000000/hour"},
    {"name": "spoof", "match": {"path": "/spoof"}, "key": ["client.ip"], "rate": "1/hour"},
]


@pytest.fixture(scope="module", name="wheel")
def fixture_wheel():
    with Wheel(ENVOY) as wheel:
        yield wheel


@pytest.fixture(name="app")
def fixture_app():
    with App() as app:
        yield app


# --- The rate limit service ----------------------------------------------------------------------

def test_envoys_rate_limit_filter_is_answered(tmp_path, wheel, app):
    config = configuration("shop", rule("remote_address", "hour", 5), rule("api_key", "hour", 1))
    begin_window("HOUR", 20)
    with Service(tmp_path, {"shop.yaml": config}, response_headers=True) as service, \
            envoy(wheel, tmp_path, service.grpc_address, app.address) as proxy, \
            Client(proxy.address) as client:
        first = wait_until(lambda: passed(client))  # it may not yet have connected to weir
        left = int(first["ratelimit-remaining"])
        assert first["ratelimit-limit"] == "5" and left < 5
        for i in range(left):
            reply = client.request("GET", f"/{i}")
            assert (reply.status, reply["ratelimit-remaining"]) == (200, str(left - 1 - i))
        seen = len(app.seen)
        denied = client.request("GET", "/denied")
        assert denied.status == 429 and denied["x-envoy-ratelimited"] == "true"
        assert denied["ratelimit-remaining"] == "0" and int(denied["ratelimit-reset"]) > 0
        assert len(app.seen) == seen  # it never reached the application
        counts = service.counts("shop.remote_address")
        assert counts["over_limit"] >= 1 and counts["within_limit"] == 5


def passed(client):
    """A reply that the service has decided, of a path that counts; None: it has failed."""
    reply = client.request("GET", "/first")
    return reply if reply["ratelimit-limit"] else None


def test_several_descriptors_of_a_route_are_each_counted(tmp_path, wheel, app):
    config = configuration("shop", rule("remote_address", "hour", 100), rule("api_key", "hour", 1))
    begin_window("HOUR", 20)
    with Service(tmp_path, {"shop.yaml": config}, response_headers=True) as service, \
            envoy(wheel, tmp_path, service.grpc_address, app.address) as proxy, \
            Client(proxy.address) as client:
        wait_until(lambda: passed(client))
        statuses = [client.request("GET", "/", {"X-API-Key": key}).status for key in "aabba"]
        assert statuses == [200, 429, 200, 429, 429]
        # What the configuration becomes, Envoy's calls meet without a reconnect.
        service.write("shop.yaml", config.replace('"requests_per_unit": 1}',
                                                  '"requests_per_unit": 4}'))
        service.wait_event("envoy_config_loaded", 2)
        wait_until(lambda: client.request("GET", "/", {"X-API-Key": "c"})["ratelimit-limit"] == "4")


def test_requests_pass_while_the_service_is_away_as_envoy_is_set(tmp_path, wheel, app):
    with Service(tmp_path, {"shop.yaml": configuration("shop", rule("remote_address", "hour", 1))}
                 ) as service, envoy(wheel, tmp_path, service.grpc_address, app.address) as proxy, \
            Client(proxy.address) as client:
        wait_until(lambda: client.request("GET", "/").status == 429)
        service.stop()
        assert client.request("GET", "/").status == 200  # failure_mode_deny: false


# --- ext_authz -----------------------------------------------------------------------------------

@pytest.fixture(name="site", params=["http", "grpc"])
def fixture_site(request, tmp_path, wheel, app):
    """A client's view: Envoy's address; beside it weir and the application."""
    filters = blocks("deploy/envoy.md")[request.param == "grpc"]
    with Weir(tmp_path, rules_of(*LIMITS), "--grpc", "127.0.0.1:0") as weir:
        address = weir.http_address if request.param == "http" else weir.grpc_address
        with envoy(wheel, tmp_path, address, app.address, filters,
                   http2=request.param == "grpc") as proxy:
            with Client(proxy.address) as client:  # until it has connected to weir
                wait_until(lambda: client.request("GET", "/ready")["ratelimit"])
            proxy.weir, proxy.app = weir, app
            app.seen.clear()
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
    assert denied.json["type"].endswith("#quota-exceeded") and denied.json["status"] == 429
    assert site.app.seen == [("POST", "/login?next=/")] * 2


def test_headers_reach_the_rules_and_a_client_cannot_say_who_it_is(site):
    with Client(site.address) as client:
        for agent, status in (("a", 200), ("a", 429), ("b", 200)):
            assert client.request("GET", "/agent", {"User-Agent": agent}).status == status
        statuses = []
        for i in range(4):
            lie = {"X-Forwarded-For": f"203.0.113.{i}", "Forwarded": f"for=203.0.113.{i}",
                   "X-Forwarded-Uri": "/free", "X-Forwarded-Method": "GET",
                   "X-Original-URI": "/free"}
            statuses.append(client.request("GET", "/spoof", lie).status)
        assert statuses == [200, 429, 429, 429]


# --- Quotas --------------------------------------------------------------------------------------

QUOTA = 1000  # and one an hour


def quota_block():
    (block,) = (one for one in blocks("envoy.md") if "envoy.filters.http.rate_limit_quota\n" in one)
    return block


def admitted(client, seconds):
    """How many requests of a key Envoy admits in so many seconds."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += client.request("GET", "/", {"X-API-Key": "k"}).status == 200
    return count


def test_envoys_quotas_and_other_callers_never_exceed_a_limit_together(tmp_path, wheel, app):
    limit = {"name": "per-key", "match": {"domain": "shop", "service": "web"}, "key": ["api_key"],
             "rate": "1/hour", "burst": QUOTA, "algorithm": "gcra"}
    attributes = {"domain": "shop", "service": "web", "api_key": "k"}
    with Weir(tmp_path, rules_of(limit), "--grpc", "127.0.0.1:0") as weir, \
            envoy(wheel, tmp_path, weir.grpc_address, app.address, quota_block()) as proxy, \
            Client(proxy.address) as client:
        counts, direct = [], 0
        assert client.request("GET", "/", {"X-API-Key": "k"}).status == 429  # DENY_ALL at first

        def ask(seconds=0.5):
            counts.append(admitted(client, seconds))
            return counts[-1]

        wait_until(lambda: ask() > 1)  # a second assignment: Envoy has reported the demand
        while weir.check(attributes=attributes).status == 200:
            direct += 1  # another front end takes the rest
        weir.kill()
        wait_until(lambda: ask(2) == 0)  # what Envoy holds has ended, and it denies again
        assert sum(counts) + direct <= QUOTA + 2 and direct > 0


def test_the_fallback_of_the_docs_is_valid_and_denies_before_an_assignment(tmp_path, wheel, app):
    (fallback,) = (one for one in blocks("envoy.md") if one.startswith("expired_assignment"))
    block = quota_block().replace("                no_assignment_behavior:",
                                  indented(fallback, 16) + "                no_assignment_behavior:")
    nowhere = f"127.0.0.1:{free_port()}"
    with envoy(wheel, tmp_path, nowhere, app.address, block) as proxy, \
            Client(proxy.address) as client:
        for _ in range(3):
            assert client.request("GET", "/", {"X-API-Key": "k"}).status == 429
