# SPDX-License-Identifier: Apache-2.0
"""Envoy's rate limit service with a control plane in place of a folder."""

import grpc
import pytest

from daemon.certificates import Authority
from daemon.envoy import OK, OVER_LIMIT, rule
from daemon.waiting import wait_until
from model.program import run_weir
from control_plane import ControlPlane, config
from service import Service


def hourly(requests, **more):
    return rule("user", "hour", requests, **more)


def test_what_a_control_plane_gives_is_in_force_before_it_is_acknowledged(tmp_path):
    with ControlPlane() as plane:
        plane.put("1", config("shop", hourly(2)))
        with Service(tmp_path, plane.address, xds={"node": "n-1", "metadata": {"zone": "b"},
                                                   "headers": {"x-token": "t", "x-empty": "", "x-blank": "  "}}) as weir:
            accepted = plane.wait_version("1")
            assert [weir.ask("shop", ("user", "a")) for _ in range(3)] == [OK, OK, OVER_LIMIT]
            first = plane.requests[0][1]
            assert (first.node.id, first.version_info, first.response_nonce) == ("n-1", "", "")
            assert [(one.key, one.value.string_value) for one in first.node.metadata.fields] == [("zone", "b")]
            assert list(first.resource_names) == []
            assert plane.metadata[0]["x-token"] == "t"
            assert plane.metadata[0]["x-empty"] == plane.metadata[0]["x-blank"] == ""
            assert accepted.response_nonce.startswith("nonce-")
            plane.put("2", config("shop", hourly(5)), config("other", hourly(1)))
            plane.wait_version("2")
            assert [weir.ask("shop", ("user", "a")) for _ in range(3)] == [OK, OK, OVER_LIMIT]
            assert [weir.ask("other", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
            plane.put("3")
            plane.wait_version("3")
            assert weir.ask("shop", ("user", "a")) == OK  # no limit is left


def test_without_a_domain_health_may_fail(tmp_path):
    with ControlPlane() as plane:
        plane.put("1")
        with Service(tmp_path, plane.address, healthy_with_domains=True) as weir, weir.client() as client:
            for version, domains, status in ("1", (), 500), ("2", ("shop",), 200), ("3", (), 500):
                plane.put(version, *(config(domain, hourly(1)) for domain in domains))
                plane.wait_version(version)
                assert client.request("GET", "/healthcheck").status == status


def test_before_the_first_configuration_calls_fail(tmp_path):
    with ControlPlane() as plane:
        with Service(tmp_path, plane.address, healthy_with_config=True) as weir:
            wait_until(lambda: plane.requests, what="a stream")
            with pytest.raises(grpc.RpcError) as failed:
                weir.ask("shop", ("user", "a"))
            assert "no rate limit configuration loaded" in failed.value.details()
            with weir.client() as client:
                assert client.request("GET", "/healthcheck").status == 500
            plane.put("1", config("shop", hourly(1)))
            plane.wait_version("1")
            assert weir.ask("shop", ("user", "a")) == OK
            with weir.client() as client:
                assert client.request("GET", "/healthcheck").status == 200


def test_what_is_wrong_is_refused_with_its_reason_and_not_at_once(tmp_path):
    with ControlPlane(resend=True) as plane:
        plane.put("1", config("shop", hourly(1)))
        with Service(tmp_path, plane.address) as weir:
            accepted = plane.wait_version("1")
            assert weir.ask("shop", ("user", "a")) == OK
            plane.put("2", config("shop", rule("", "hour", 1), name="bad"))
            wait_until(lambda: len(plane.refusals()) >= 2, what="two refusals")
            assert [weir.ask("shop", ("user", "b")) for _ in range(50)] == [OK] + [OVER_LIMIT] * 49
            assert len(plane.refusals()) < 10  # each waits twice as long: ten in a row take 17 minutes
            refused = plane.refusals()[0]
            assert refused.version_info == "1" and refused.response_nonce != accepted.response_nonce
            assert "bad: descriptor has empty key" in refused.error_detail.message
            assert weir.ask("shop", ("user", "a")) == OVER_LIMIT  # the old rules stay
            plane.put("3", config("shop", hourly(3)))  # a denied hit counts, too
            plane.wait_version("3")
            assert weir.ask("shop", ("user", "a")) == OK


@pytest.mark.parametrize("broken", [b"\xff\xff\xff", b"\x12\x02\xff\xfe"], ids=["malformed", "no UTF-8"])
def test_bytes_that_are_no_configuration_are_refused(tmp_path, broken):
    with ControlPlane() as plane:
        plane.put("1", config("shop", hourly(1)))
        with Service(tmp_path, plane.address) as weir:
            plane.wait_version("1")
            plane.put("2", broken)
            wait_until(plane.refusals, what="a refusal")
            assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]


def test_without_its_control_plane_the_last_rules_stay(tmp_path):
    plane = ControlPlane()
    plane.put("1", config("shop", hourly(2)))
    with Service(tmp_path, plane.address) as weir:
        plane.wait_version("1")
        assert weir.ask("shop", ("user", "a")) == OK
        plane.stop()
        weir.wait_event("envoy_xds_lost")
        assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
        with ControlPlane(port=plane.port) as again:
            wait_until(lambda: again.requests, what="a new stream")
            first = again.requests[0][1]
            assert (first.version_info, first.response_nonce) == ("", "")
            again.put("2", config("shop", hourly(4)))  # a denied hit counts, too
            again.wait_version("2")
            assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]


def test_a_cache_holds_the_rules_over_a_start_without_the_control_plane(tmp_path):
    cache = tmp_path / "xds.cache"
    with ControlPlane() as plane:
        plane.put("1", config("shop", hourly(1)))
        with Service(tmp_path, plane.address, xds={"cache": str(cache)}):
            plane.wait_version("1")
    with Service(tmp_path, plane.address, xds={"cache": str(cache)}) as weir:
        assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
    whole = cache.read_bytes()
    cache.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with Service(tmp_path, plane.address, xds={"cache": str(cache)}) as weir:
        assert "damaged" in weir.wait_event("envoy_xds_cache")
        with pytest.raises(grpc.RpcError):
            weir.ask("shop", ("user", "a"))


def test_the_cache_of_weir_envoy_is_an_option_or_a_variable():
    given = {"CONFIG_TYPE": "GRPC_XDS_SOTW", "WEIR_XDS_CACHE": "/by-variable"}
    for options, cache in ((), "/by-variable"), (("--xds-cache", "/by-option"), "/by-option"):
        printed = run_weir("envoy", "--print-config", *options, env=given).stdout
        assert f"    cache: '{cache}'\n" in printed


@pytest.mark.parametrize("named", [True, False], ids=["by its name", "by another name"])
def test_both_sides_show_certificates(tmp_path, named):
    authority = Authority(tmp_path)
    cert, key = authority.sign("plane", "DNS:envoy-gateway")
    client, client_key = authority.sign("client")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), cert.read_bytes())],
                                              authority.cert.read_bytes(), require_client_auth=True)
    with ControlPlane(credentials) as plane:
        plane.put("1", config("shop", hourly(1)))
        tls = {"cert": str(client), "key": str(client_key), "ca": str(authority.cert)}
        with Service(tmp_path, plane.address, xds={"tls": {**tls, **({"name": "envoy-gateway"} if named else {})}}) as weir:
            if named:
                plane.wait_version("1")
                assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
            else:
                assert "127.0.0.1" in weir.wait_event("envoy_xds_lost")
                assert plane.requests == []


def test_a_reload_keeps_what_the_control_plane_has_given(tmp_path):
    with ControlPlane() as plane:
        plane.put("1", config("shop", hourly(1)))
        with Service(tmp_path, plane.address) as weir:
            plane.wait_version("1")
            weir.write_rules(weir.config.read_text(encoding="utf-8").replace('"xds":', '"shadow_mode": true, "xds":'))
            weir.reload()
            assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OK]


def test_a_reload_with_another_stream_says_that_it_needs_a_restart(tmp_path):
    with ControlPlane() as plane:
        plane.put("1", config("shop", hourly(1)))
        with Service(tmp_path, plane.address, xds={"headers": {"x-token": "old"}}) as weir:
            plane.wait_version("1")
            rules = weir.config.read_text(encoding="utf-8")
            weir.reload()
            assert "restart_needed" not in weir.text()
            weir.write_rules(rules.replace('"old"', '"new"'))
            weir.reload()
            assert "setting=envoy" in weir.wait_event("restart_needed")
            assert [weir.ask("shop", ("user", "a")) for _ in range(2)] == [OK, OVER_LIMIT]
