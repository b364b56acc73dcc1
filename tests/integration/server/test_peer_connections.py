# SPDX-License-Identifier: Apache-2.0
"""How many connections one address may open, and how often (`server.connections`)."""

import socket

import pytest

from daemon.http import Client
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

API = {"name": "api", "key": ["client.ip"], "rate": "1000000/h"}


def rules(limits, **server):
    """By default loopback is a trusted proxy."""
    return rules_of(API, server={"connections": limits, "trusted_proxies": ["192.0.2.1"], **server})


def come(weir, source="127.0.0.1"):
    """A connection from an address that is served; None: it was closed."""
    host, port = weir.http_address.rsplit(":", 1)
    sock = socket.create_connection((host, int(port)), timeout=60, source_address=(source, 0))
    client = Client.over(sock)
    try:
        assert client.check().status == 200
        return client
    except (EOFError, ConnectionError):
        client.close()
        return None


def limited(weir, reason):
    return weir.metrics()[
        f'weir_listener_connections_limited_total{{front="http",reason="{reason}"}}']


@pytest.mark.parametrize("workers", ["1", "3"])
def test_an_address_has_so_many_at_one_time(tmp_path, workers):
    with Weir(tmp_path, rules({"per_address": 3}), "--workers", workers) as weir:
        clients = [come(weir) for _ in range(3)]
        assert all(clients)
        assert [come(weir) for _ in range(4)] == [None] * 4
        assert limited(weir, "address") == 4
        assert come(weir, "127.0.0.2") is not None
        line = weir.wait_event("connection_limited")
        assert "front=http peer=127.0.0.1 " in line and "per_address" in line
        assert weir.text().count("event=connection_limited") == 1
        assert clients[0].check().status == 200  # who is in stays in
        clients.pop().close()
        wait_until(lambda: come(weir), what="the place of the one that left")


def test_a_prefix_has_so_many_at_one_time(tmp_path):
    with Weir(tmp_path, rules({"per_address": 2, "per_prefix": 3})) as weir:
        kept = [come(weir, f"127.0.0.{i}") for i in (1, 2, 3)]
        assert all(kept)
        assert come(weir, "127.0.0.4") is None
        assert come(weir, "127.0.1.4") is not None
        assert limited(weir, "prefix") == 1 and limited(weir, "address") == 0


def test_new_connections_come_at_a_rate(tmp_path):
    with Weir(tmp_path, rules({"rate": "1/h burst 5"})) as weir:
        for _ in range(5):
            come(weir).close()
        assert come(weir) is None and come(weir) is None
        assert limited(weir, "rate") == 2
        come(weir, "127.0.0.2").close()


def test_trusted_proxies_and_unix_sockets_have_any_number(tmp_path):
    limits = rules({"per_address": 1, "rate": "1/h"}, trusted_proxies=["127.0.0.3"])
    with Weir(tmp_path, limits) as weir:
        kept = [come(weir, "127.0.0.3") for _ in range(4)]
        assert all(kept)
        assert come(weir) is not None and come(weir) is None
    with Weir(tmp_path, limits, http=f"unix:{tmp_path}/http") as weir:
        kept = [weir.client() for _ in range(3)]
        assert all(client.check().status == 200 for client in kept)


def test_behind_the_proxy_protocol_the_client_counts(tmp_path):
    http = {"address": "127.0.0.1:0", "proxy_protocol": True}
    limits = rules({"per_address": 1}, http=http, trusted_proxies=["127.0.0.1"])
    with Weir(tmp_path, limits, http=None) as weir:
        def come_for(client):
            connection = weir.client()
            connection.send(b"PROXY TCP4 %s 10.0.0.1 5 80\r\n" % client)
            try:
                return connection.check().status == 200 and connection
            except (EOFError, ConnectionError):
                return None

        first = come_for(b"10.1.1.1")
        assert first and come_for(b"10.1.1.1") is None and come_for(b"10.1.1.2")
        assert limited(weir, "address") == 1
        first.close()
        wait_until(lambda: come_for(b"10.1.1.1"), what="the place of the one that left")


def test_a_reload_changes_them(tmp_path):
    with Weir(tmp_path, rules({"per_address": 1})) as weir:
        kept = [come(weir)]
        assert come(weir) is None
        weir.write_rules(rules({"per_address": 2}))
        assert "event=reloaded" in weir.reload()
        kept.append(come(weir))
        assert kept[1] and come(weir) is None
        weir.write_rules(rules_of(API))
        assert "event=reloaded" in weir.reload()
        kept += [come(weir) for _ in range(4)]
        assert all(kept)


@pytest.mark.parametrize("limits, message", [
    ({"per_address": 0}, "`per_address` must be"),
    ({"per_address": 9, "per_prefix": 3}, "`per_prefix` must be at least `per_address`"),
    ({"rate": "0/s"}, "`rate` must be a number of connections in at most a day"),
    ({"rate": "1/week"}, "`rate` must be a number of connections in at most a day"),
    ({"rate": "many"}, "`rate`: "),
    ({"rate": "1/s burst 99999999999999999999"}, "`rate`: "),
    ({"per_adress": 3}, "did you mean `per_address`?"),
])
def test_bad_limits_are_errors(tmp_path, limits, message):
    path = tmp_path / "weir.yaml"
    path.write_text(rules(limits), encoding="utf-8")
    done = run_weir("validate", path)
    assert done.returncode != 0 and message in done.stdout + done.stderr
