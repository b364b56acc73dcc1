# SPDX-License-Identifier: Apache-2.0
"""A real Envoy in front, with examples/envoy/envoy.yaml and the snippets of docs/deploy/envoy.md, limits a
real application by weir: its rate limit service, ext_authz over HTTP and over gRPC."""

import json
import time
from hashlib import sha256

import pytest

from daemon.envoy import Service, begin_window, configuration, rule
from daemon.http import Client, request_bytes
from daemon.load import Load
from daemon.nodes import shared_rules
from daemon.proxies import App, free_port, replaced
from daemon.redis_server import RedisServer
from daemon.stopped import stopped
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
    keys = tmp_path / "keys.yaml"
    keys.write_text(json.dumps({sha256(b"K").hexdigest(): {"user": "ann"}}), encoding="utf-8")
    rules = rules_of(*LIMITS, identify=["header.x-api-key", "header.authorization"], keys=str(keys))
    with Weir(tmp_path, rules, "--grpc", "127.0.0.1:0") as weir:
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


def test_two_keys_of_one_request_are_denied_although_envoy_joins_their_lines(site):
    def status(**fields):
        with Client(site.address) as client:  # Envoy closes a connection after a 400
            return client.request("GET", "/keys", fields).status

    assert status(**{"X-Api-Key": "K"}) == 200
    for one, other in (("K", "x"), ("x", "K")):
        assert status(**{"X-Api-Key": one, "x-api-key": other}) == 400
        assert status(Authorization=f"Bearer {one}", authorization=f"Bearer {other}") == 400
    assert status(**{"X-Api-Key": "K", "x-api-key": "K"}) == 200
    assert status(Authorization='Digest username="ann", realm="weir, here", nonce="1"') == 200
    assert len(site.app.seen) == 3


# --- Quotas --------------------------------------------------------------------------------------

QUOTA = 12000
SOFT = 4
CLIENTS = 4  # of each Envoy
FALLBACK = 5  # tokens, and a second, as in the docs
ASSIGNED = 'weir_quota_assignments_total{kind="assigned"}'
UNANSWERED = 'weir_quota_assignments_total{kind="unanswered"}'


def quota_block():
    (block,) = (one for one in blocks("envoy.md") if "envoy.filters.http.rate_limit_quota\n" in one)
    return block


def with_fallback(block):
    (fallback,) = (one for one in blocks("envoy.md") if one.startswith("expired_assignment"))
    return replaced(block, ("                no_assignment_behavior:",
                            indented(fallback, 16) + "                no_assignment_behavior:"))


def quotas_and_ext_authz():
    """The docs' quotas for requests with `X-API-Key`; others with `X-Soft`, which have the fallback;
    and ext_authz for those with neither. A bucket's id has the path that ext_authz sends."""
    quotas = replaced(quota_block(), ("service: { string_value: web }",
                                      "path: { string_value: /shared }"))
    first = quotas.index("        - predicate:")
    soft = replaced(with_fallback(quotas[first:]), ("x-api-key", "x-soft"), ("/shared", "/soft"))
    ext_authz = replaced(blocks("deploy/envoy.md")[1], ("timeout: 0.2s", "timeout: 30s"),
                         ("failure_mode_allow: true", "failure_mode_allow: false"))
    return quotas + soft + ext_authz.partition("\n")[2]


def routed(text):
    """Requests with quotas do not ask ext_authz."""
    route = "              - match: { prefix: / }\n                route: { cluster: service }\n"
    off = """\
                typed_per_filter_config:
                  envoy.filters.http.ext_authz:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                    disabled: true
"""
    routes = "".join(replaced(route, ("prefix: /", f"prefix: /, headers: "
                                      f"[{{ name: {name}, present_match: true }}]")) + off
                     for name in ("x-api-key", "x-soft"))
    return replaced(text, (route, routes + route))


class Offered:
    """Envoys that are offered requests of two buckets, and what they have admitted."""

    def __init__(self, *proxies):
        self.proxies, self.admitted, self.soft = proxies, 0, 0

    def ask(self, seconds=0.5):
        """What each of them admits of a stretch of requests to the first bucket."""
        addresses = [proxy.address for proxy in self.proxies]
        with Load(addresses, 2 * CLIENTS * len(addresses), self.request, pace=0.02) as load:
            passed = [answer for answer in load.run(seconds) if answer.status == 200]
        shared = [answer.node for answer in passed if not self.is_soft(answer.client)]
        self.soft += len(passed) - len(shared)
        self.admitted += len(shared)
        return [shared.count(node) for node in range(len(addresses))]

    def is_soft(self, client):
        return client // len(self.proxies) % 2 == 1

    def request(self, client):
        path, name = ("/soft", "X-Soft") if self.is_soft(client) else ("/shared", "X-API-Key")
        return request_bytes("GET", path, {name: "k"})

    def are_served(self):
        """More than what the first assignment, of one token, admits."""
        return min(self.ask()) > CLIENTS

    def are_denied(self):
        return max(self.ask()) == 0


def rest_of(weir, client):
    """What other callers are admitted: through HTTP, and the last ones through ext_authz."""
    count = 0
    for cost in 1000, 100, 10:
        while weir.check(path="/shared", cost=cost).status == 200:
            count += cost
    while client.request("GET", "/shared").status == 200:
        count += 1
    return count


def test_envoys_quotas_and_other_callers_never_exceed_a_limit_together(tmp_path, wheel, app):
    """Two Envoys, one weir over Redis, callers of HTTP and of ext_authz on the same limit, while weir
    is stopped and restarted, one Envoy stopped and the other restarted. The window outlives the
    test, so that what is admitted is a sum."""
    limits = [{"name": path, "match": {"path": f"/{path}"}, "key": ["path"],
               "rate": f"{rate}/300d", "algorithm": "fixed_window"}
              for path, rate in (("shared", QUOTA), ("soft", SOFT))]
    grpc = f"127.0.0.1:{free_port()}"
    filters = quotas_and_ext_authz()
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    with RedisServer(tmp_path / "redis") as redis, \
            Weir(tmp_path, shared_rules(redis.url, *limits), "--grpc", grpc) as weir, \
            envoy(wheel, tmp_path, grpc, app.address, filters, extend=routed) as one, \
            envoy(wheel, other_folder, grpc, app.address, filters,
                  extend=routed) as other:
        envoys, began = Offered(one, other), time.monotonic()
        with Client(one.address) as client:
            reply = client.request("GET", "/shared", {"X-API-Key": "k"})
            assert reply.status == 429  # DENY_ALL at first
        wait_until(envoys.are_served)

        with stopped(weir.process):
            # Assignments have ended: Envoy denies again, or has its fallback.
            wait_until(lambda: envoys.are_denied() and envoys.soft > SOFT)
        wait_until(envoys.are_served)

        unanswered = weir.metrics()[UNANSWERED]
        with stopped(one.process):
            wait_until(lambda: weir.metrics()[UNANSWERED] > unanswered)
            weir.kill()
            weir.start()
            other.__exit__()
            other.__enter__()
        wait_until(lambda: envoys.ask() and weir.metrics()[ASSIGNED] >= 2)
        wait_until(envoys.are_served)

        with Client(one.address) as client:
            direct = rest_of(weir, client)
        wait_until(envoys.are_denied)
        assert direct > 0 and envoys.admitted + direct <= QUOTA
        took = time.monotonic() - began  # the fallback begins anew with each end, after 5 s
        assert envoys.soft <= SOFT + 2 * FALLBACK * (1 + took / 5 + took)


def test_the_fallback_of_the_docs_is_valid_and_denies_before_an_assignment(tmp_path, wheel, app):
    block = with_fallback(quota_block())
    nowhere = f"127.0.0.1:{free_port()}"
    with envoy(wheel, tmp_path, nowhere, app.address, block) as proxy, \
            Client(proxy.address) as client:
        for _ in range(3):
            assert client.request("GET", "/", {"X-API-Key": "k"}).status == 429
