# SPDX-License-Identifier: Apache-2.0
"""Whose address a request is from, through every front end: zones are cut off, and what is no address
is never the proxy's, nor an error that lets a request pass."""

import json
from contextlib import ExitStack

import pytest

from daemon.challenge import ChallengeWeir, solve
from daemon.http import Client
from daemon.redis import RedisWeir
from daemon.weir import rules_of
from fronts.ask import FRONTS, Auth, Authz, send_fields

# Loopback, where the proxies of this test are, meets no limit: a client that counts as the proxy is unlimited.
LIMITS = [{"name": "each", "match": {"client.ip": ["0.0.0.0/0", "::/0"]},
           "unless": ["proxies"], "key": ["client.ip"], "rate": "1/day",
           "algorithm": "token_bucket"}]
PROXIES = {"name": "proxies", "match": {"client.ip": ["127.0.0.0/8", "::1/128"]}, "key": [],
           "rate": "1000000/day", "algorithm": "fixed_window"}
ZONED = ["fe80::1", "fe80::1%eth0", "fe80::1%1", "fe80::1%25eth0", "FE80:0::1%wlan0.100:1"]
BROKEN = ["unknown", "_hidden", "1.2.3", "010.0.0.1", "10.0.0.010", "127.0.0.01", "fe80::1%",
          "127.0.0.1%lo", "::1::", "localhost", "999.1.1.1"]


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    rules = rules_of(PROXIES, *LIMITS, server={"grpc": "127.0.0.1:0"})
    with RedisWeir(tmp_path_factory.mktemp("weir"), rules, http="127.0.0.1:0",
                   admin="127.0.0.1:0") as weir:
        yield weir


@pytest.mark.parametrize("front", FRONTS)
def test_an_address_is_one_caller_whatever_its_zone(weir, front):
    network = FRONTS.index(front) + 1
    zoned = [address.replace("::1", f"::{network}:1") for address in ZONED]
    verdicts = [front(weir).ask(ip=address) for address in zoned]
    assert verdicts == ["allowed"] + ["denied"] * (len(zoned) - 1)


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("address", BROKEN)
def test_what_is_no_address_is_unread_and_never_the_proxy(weir, front, address):
    assert front(weir).ask(ip=address) == "unread"


@pytest.mark.parametrize("fields,verdicts", [
    ([("Forwarded", 'for="[fe80::99%eth0]:80"')], ["allowed", "denied"]),
    ([("Forwarded", "for=unknown")], ["unread"]),
    ([("Forwarded", "for=_gazonk, for=127.0.0.1")], ["unread"]),
    ([("X-Forwarded-For", "garbage, 127.0.0.1")], ["unread"]),
    ([("X-Forwarded-For", "garbage"), ("X-Forwarded-For", "192.0.2.77")], ["allowed", "denied"]),
    ([("X-Forwarded-For", "192.0.2.78, unix:")], ["allowed", "denied"]),
    ([("X-Forwarded-For", "")], ["allowed", "allowed"]),
    ([("Forwarded", "proto=https;by=127.0.0.1")], ["allowed", "allowed"]),
    ([], ["allowed", "allowed"]),
])
def test_forward_auth_knows_the_client_or_refuses(weir, fields, verdicts):
    for verdict in verdicts:
        reply = send_fields(weir.http_address, "GET", "/v1/auth", "weir", fields)
        assert {200: "allowed", 400: "unread", 429: "denied"}[reply.status] == verdict
        if verdict == "unread":
            assert reply.json["detail"].startswith(fields[0][0] + ": ")


def test_a_proxy_that_is_exempt_or_trusted_has_no_zone(tmp_path):
    for rules in (rules_of(server={"trusted_proxies": ["fe80::1%eth0"]}),
                  rules_of(server={"http": "[::1%lo]:0"})):
        with RedisWeir(tmp_path, rules, wait=False) as weir:
            assert weir.wait() == 1
            assert "without `%`" in weir.text()


@pytest.mark.parametrize("front", FRONTS)
def test_clients_behind_a_translator_are_callers_of_their_own(tmp_path, front):
    limit = {"name": "each", "key": ["client.ip/64"], "rate": "1/day", "algorithm": "token_bucket"}
    with RedisWeir(tmp_path, rules_of(limit, server={"grpc": "127.0.0.1:0"}), http="127.0.0.1:0",
                   admin="127.0.0.1:0") as weir:
        def ask(ip):
            return front(weir).ask(ip=ip)
        assert [ask("64:ff9b::8.8.8.8"), ask("64:ff9b::9.9.9.9"), ask("9.9.9.9")] == [
            "allowed", "allowed", "denied"]
        # What is not global stays IPv6, and so one /64.
        assert [ask("64:ff9b::10.0.0.1"), ask("10.0.0.1"), ask("64:ff9b::127.0.0.1")] == [
            "allowed", "allowed", "denied"]
        assert [ask("2001:db8::8.8.8.8"), ask("2001:db8::9.9.9.9")] == ["allowed", "denied"]


def test_the_address_inside_is_never_matched_and_prefixes_are_a_setting(tmp_path):
    limits = [{"name": "office", "match": {"client.ip": "8.8.8.0/24"}, "key": [], "rate": "1/day",
               "algorithm": "token_bucket"},
              {"name": "network", "match": {"client.ip": "2001:db8::/32"}, "key": ["client.ip"],
               "rate": "1/day", "algorithm": "token_bucket"}]
    with RedisWeir(tmp_path, rules_of(*limits, server={"nat64": ["2001:db8:122:344::/64"]}),
                   http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        inside = "2001:db8:122:344:8:808:800::"
        assert [limit["name"] for limit in weir.check(ip=inside).json["limits"]] == ["network"]
        assert weir.check(ip=inside).status == 429
        assert weir.check(ip="8.8.8.8").status == 200
        explained = weir.check(ip="64:ff9b::8.8.8.8").json["limits"]
        assert not explained


def test_a_standing_holds_for_both_forms_of_an_address(tmp_path):
    limit = {"name": "each", "key": ["client.ip"], "rate": "1000/day", "algorithm": "token_bucket"}
    with RedisWeir(tmp_path, rules_of(limit, standing={"by": ["client.ip"]},
                                       server={"admin": {"token": "s3cret"}}), http="127.0.0.1:0",
                   admin="127.0.0.1:0") as weir:
        def ban(value):
            with weir.admin() as admin:
                reply = admin.request("PUT", "/v1/standing", {"Content-Type": "application/json"}, json.dumps(
                    {"kind": "client.ip", "value": value, "level": "revoked"}).encode())
            assert reply.status == 200, reply.body
        ban("8.8.8.8")
        ban("64:ff9b::9.9.9.0/120")
        for ip, status in (("64:ff9b::8.8.8.8", 429), ("8.8.8.8", 429), ("64:ff9b::8.8.4.4", 200),
                           ("64:ff9b::9.9.9.9", 429), ("9.9.9.9", 200)):
            assert weir.check(ip=ip).status == status, ip


NAT64 = "64:ff9b::8.8.8.8", "64:ff9b::8.8.4.4"


def test_a_ban_of_a_client_behind_a_translator_is_not_one_of_all_its_clients(tmp_path):
    limit = {"name": "each", "key": ["client.ip/64"], "rate": "1000/day", "algorithm": "token_bucket"}
    (tmp_path / "bad.txt").write_text("64:ff9b::9.9.9.9\n", encoding="ascii")
    standing = {"by": ["client.ip/64"], "lists": [
        {"file": str(tmp_path / "bad.txt"), "by": "client.ip", "level": "revoked"}]}
    with RedisWeir(tmp_path, rules_of(limit, standing=standing, server={"admin": {"token": "s3cret"}}),
                   http="127.0.0.1:0", admin="127.0.0.1:0") as weir, weir.admin() as admin:
        value = {"kind": "client.ip", "value": NAT64[0]}
        body = json.dumps({**value, "level": "revoked"}).encode()
        reply = admin.request("PUT", "/v1/standing", {"Content-Type": "application/json"}, body)
        assert (reply.status, reply.json["value"]) == (200, "8.8.8.8/32")
        refused = {NAT64[0]: 429, "8.8.8.8": 429, NAT64[1]: 200, "64:ff9b::1.1.1.1": 200,
                   "64:ff9b::9.9.9.9": 429, "9.9.9.9": 429}
        assert {ip: weir.check(ip=ip).status for ip in refused} == refused
        inner = {"kind": "client.ip", "value": "64:ff9b::10.0.0.1", "level": "revoked"}
        reply = admin.request("PUT", "/v1/standing", {"Content-Type": "application/json"},
                              json.dumps(inner).encode())
        assert (reply.status, reply.json["value"]) == (200, "64:ff9b::a00:1/128")
        assert weir.check(ip="64:ff9b::10.0.0.1").status == 429
        assert weir.check(ip=NAT64[1]).status == 200
        reply = admin.request("DELETE", f"/v1/standing?kind=client.ip&value={NAT64[0]}")
        assert reply.status == 200 and weir.check(ip="8.8.8.8").status == 200


def test_strikes_of_clients_behind_a_translator_are_those_of_the_address_inside(tmp_path):
    login = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip/64"], "rate": "1/d",
             "algorithm": "fixed_window"}
    penalty = {"name": "brute", "key": ["client.ip/64"], "strikes": "2/h", "for": ["login"],
               "ladder": ["suspend 1h"]}
    rules = rules_of(login, standing={"by": ["client.ip/64"], "file": str(tmp_path / "standing.db")},
                     penalties=[penalty], server={"admin": {"token": "s3cret"}})
    with RedisWeir(tmp_path, rules, http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        for _ in range(4):  # one is allowed; the third strike moves
            weir.check(ip=NAT64[0], path="/login")
        line = weir.wait_event("penalty_moved")
        assert "8.8.8.8" in line and "64:ff9b" not in line, line
        for ip, refused in ((NAT64[0], True), ("8.8.8.8", True), (NAT64[1], False), ("8.8.4.4", False)):
            assert (weir.check(ip=ip, path="/").json.get("denied_by") == "standing") == refused, ip


def test_strikes_of_a_translators_own_clients_are_not_held_against_the_internet(tmp_path):
    login = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip/64"], "rate": "1/d",
             "algorithm": "fixed_window"}
    penalty = {"name": "brute", "key": ["client.ip/64"], "strikes": "2/h", "for": ["login"],
               "ladder": ["suspend 1h"]}
    rules = rules_of(login, standing={"by": ["client.ip/64"], "file": str(tmp_path / "standing.db")},
                     penalties=[penalty], server={"admin": {"token": "s3cret"}})
    with RedisWeir(tmp_path, rules, http="127.0.0.1:0", admin="127.0.0.1:0") as weir:
        for _ in range(4):
            weir.check(ip="64:ff9b::10.0.0.1", path="/login")
        assert "64:ff9b::/64" in weir.wait_event("penalty_moved")
        for ip, refused in (("64:ff9b::10.0.0.2", True), (NAT64[0], False), ("8.8.8.8", False)):
            assert (weir.check(ip=ip, path="/").json.get("denied_by") == "standing") == refused, ip


def test_a_token_of_a_challenge_is_bound_to_the_address_inside(tmp_path):
    with ChallengeWeir(tmp_path / "weir") as weir:
        client = {"X-Forwarded-For": NAT64[0]}
        asked = weir.challenge(fields=client).json
        values = {"puzzle": asked["puzzle"], "solution": solve(asked["puzzle"], asked["difficulty"])}
        assert weir.post(values, {"X-Forwarded-For": NAT64[1]}).status == 403
        token = weir.post(values, client).json["token"]
        for ip, limit in ((NAT64[0], "passed"), ("8.8.8.8", "passed"), (NAT64[1], "unproven")):
            reply = weir.auth({"X-Forwarded-For": ip, "X-Weir-Challenge": token})
            assert reply["ratelimit"].startswith(f'"{limit}"'), ip


def test_connections_of_clients_behind_a_translator_count_by_the_address_inside(tmp_path):
    rules = rules_of(server={"connections": {"per_address": 1}, "trusted_proxies": ["127.0.0.1"],
                             "http": {"address": "127.0.0.1:0", "proxy_protocol": True, "open": True}})
    with RedisWeir(tmp_path, rules, http=None, admin="127.0.0.1:0") as weir, ExitStack() as stack:
        def comes(ip):
            client = stack.enter_context(Client(weir.http_address))
            family = "TCP4" if "." in ip and ":" not in ip else "TCP6"
            here = "127.0.0.1" if family == "TCP4" else "::1"
            client.send(f"PROXY {family} {ip} {here} 5 80\r\n".encode())
            try:
                return client.check().status == 200
            except (EOFError, ConnectionError):
                return False
        assert [comes("64:ff9b::808:808"), comes("64:ff9b::808:404"), comes("64:ff9b::808:808"), comes("8.8.8.8"),
                comes("8.8.4.4"), comes("8.8.1.1")] == [True, True, False, False, False, True]


@pytest.mark.parametrize("prefix", ["64:ff9b::/95", "10.0.0.0/8", "nat64", "2001:db8:0:0:100::/96"])
def test_a_prefix_is_one_of_the_rfc(tmp_path, prefix):
    with RedisWeir(tmp_path, rules_of(server={"nat64": [prefix]}), wait=False) as weir:
        assert weir.wait() == 1
        assert "no prefix of RFC 6052" in weir.text()


def test_unreadable_requests_are_counted_and_logged(tmp_path):
    with RedisWeir(tmp_path, rules_of(PROXIES, server={"grpc": "127.0.0.1:0"}), http="127.0.0.1:0",
                   admin="127.0.0.1:0") as weir:
        for front in (Auth, Auth, Authz):
            assert front(weir).ask(ip="unknown") == "unread"
        assert Auth(weir).ask(path="/%zz") == "unread"
        assert weir.metrics()['weir_requests_unreadable_total{front="auth"}'] == 3
        assert weir.metrics()['weir_requests_unreadable_total{front="ext_authz"}'] == 1
        line = weir.wait_event("unreadable_request")
        assert "front=auth" in line and "X-Forwarded-For" in line
        assert weir.text().count("event=unreadable_request") == 1  # once a minute
