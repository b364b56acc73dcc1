# SPDX-License-Identifier: Apache-2.0
"""The pages of gateways that have no rate limit service: weir reads their files, and answers what the gateways ask.
Istio's filter runs in a real Envoy; what istiod, kgateway and agentgateway make of their resources is not run."""

import pytest
import yaml

from daemon.envoy import OK, OVER_LIMIT, Service, begin_window
from daemon.http import Client
from daemon.proxies import App, replaced
from daemon.waiting import wait_until
from daemon.wheels import ENVOY, Wheel, blocks, envoy

ROUTE_LIMITS = """              rate_limits:
              - actions: [{ remote_address: {} }]
              - actions:
                - request_headers: { header_name: x-api-key, descriptor_key: api_key }
"""


def documents(page):
    """The resources of a page's blocks of YAML, by kind."""
    made = [one for block in blocks(page)[1:] for one in yaml.safe_load_all(block)]
    return {one.get("kind"): one for one in made}


def service_of(folder, page):
    """weir with the file of a page's first block."""
    return Service(folder, {"limits.yaml": blocks(page)[0]}, "--workers", 1)


def test_istios_filter_and_actions_in_a_real_envoy(tmp_path):
    patches = documents("deploy/istio.md")["EnvoyFilter"]["spec"]["configPatches"]
    http_filter, host = (one["patch"]["value"] for one in patches)
    assert [one["applyTo"] for one in patches] == ["HTTP_FILTER", "VIRTUAL_HOST"]
    service = http_filter["typed_config"]["rate_limit_service"]["grpc_service"]["envoy_grpc"]
    assert service["cluster_name"].startswith("outbound|8081||")  # istiod's name of the Service weir
    service["cluster_name"] = "weir"
    filters = yaml.safe_dump({"http_filters": [http_filter]})

    def with_actions(text):
        made = yaml.safe_dump(host, default_flow_style=True, width=10**6).strip()
        return replaced(text, (ROUTE_LIMITS, f"              {made[1:-1]}\n"))

    begin_window("HOUR", 20)
    with Wheel(ENVOY) as wheel, App() as app, service_of(tmp_path, "deploy/istio.md") as weir, \
            envoy(wheel, tmp_path, weir.grpc_address, app.address, filters, extend=with_actions) as proxy, \
            Client(proxy.address) as client:
        # failure_mode_deny: until it has connected to weir, it answers 500.
        wait_until(lambda: client.request("GET", "/warm").status == 200)
        assert [client.request("GET", "/productpage").status for _ in range(3)] == [200, 200, 429]
        assert client.request("GET", "/other").status == 200


def test_kgateways_descriptors(tmp_path):
    made = documents("deploy/kgateway.md")
    extension = made["GatewayExtension"]["spec"]
    limits = made["TrafficPolicy"]["spec"]["rateLimit"]["global"]
    assert extension["type"] == "RateLimit" and limits["extensionRef"]["name"] == made["GatewayExtension"]["metadata"]["name"]
    keys = {"RemoteAddress": "remote_address", "Path": "path"}  # kgateway's, by its documentation
    values = {"remote_address": "192.0.2.1", "path": "/login", "X-User-ID": "ann"}
    descriptors = [[(key, values[key]) for key in (keys.get(one["type"], one.get("header")) for one in each["entries"])]
                   for each in limits["descriptors"]]
    begin_window("HOUR", 20)
    with service_of(tmp_path, "deploy/kgateway.md") as weir, weir.stub() as stub:
        codes = [stub.limit(extension["rateLimit"]["domain"], *descriptors).overall_code for _ in range(6)]
    assert codes == [OK] * 5 + [OVER_LIMIT]


@pytest.mark.parametrize("kind,hits,codes", [("requests", [1] * 61, [OK] * 60 + [OVER_LIMIT]),
                                             ("tokens", [0, 60000, 0, 60000, 0], [OK, OK, OK, OVER_LIMIT, OVER_LIMIT])])
def test_agentgateways_descriptors(tmp_path, kind, hits, codes):
    (route,) = documents("deploy/agentgateway.md")[None]["binds"][0]["listeners"][0]["routes"]
    remote = route["policies"]["remoteRateLimit"]
    (descriptor,) = (one for one in remote["descriptors"] if one["type"] == kind)
    entries = [(one["key"], "ann") for one in descriptor["entries"]]
    begin_window("DAY", 20)
    begin_window("MINUTE", 10)
    with service_of(tmp_path, "deploy/agentgateway.md") as weir, weir.stub() as stub:
        assert [stub.limit(remote["domain"], {"entries": entries, "hits_addend": each}).overall_code
                for each in hits] == codes
