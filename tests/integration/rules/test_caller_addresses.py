# SPDX-License-Identifier: Apache-2.0
"""Whose address a request is from, through every front end: zones are cut off, and what is no address
is never the proxy's, nor an error that lets a request pass."""

import pytest

from fronts.ask import FRONTS, send_fields
from daemon.redis import RedisWeir
from daemon.weir import rules_of

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
