# SPDX-License-Identifier: Apache-2.0
"""Behind Envoy Gateway 1.9.1: its configuration, recorded, and Envoy Gateway itself with its file provider.

The recording, in the corpus of the fuzz target xds_response, is the DiscoveryResponse that it serves for
gateway/resources.yaml. The test of the recording runs everywhere; those of Envoy Gateway by `script/test --gateway`,
which builds it (ENVOY_GATEWAY), gives it a network of its own, as its ports are fixed, and an Envoy (ENVOY).
RECORD=1 writes the recording anew."""

import os
import shutil
import subprocess
import threading
from pathlib import Path

import grpc
import pytest

from daemon.envoy import OK, OVER_LIMIT, begin_window
from daemon.grpc import Stub
from daemon.http import Client
from daemon.proxies import App, replaced
from daemon.waiting import wait_until
from daemon.weir import Weir
from model.program import ROOT, weir_path
from control_plane import METHOD, TYPE, Config, ControlPlane, Request, Response
from service import Service

HERE = Path(__file__).parent / "gateway"
RECORDED = ROOT / "tests/fuzz/corpus/xds_response/envoy-gateway-1.9.1"
GATEWAY = os.environ.get("ENVOY_GATEWAY")
NODE = "envoy-ratelimit"
SHOP, MODELS, SHARED = "default/eg/http", "default/eg/models", "default/models"


def recorded():
    return Response.FromString(RECORDED.read_bytes())


def configs(response):
    """The configurations of a response by name, in one order: Envoy Gateway's is that of a map of Go."""
    made = {}
    for one in response.resources:
        assert one.type_url == TYPE
        parsed = Config.FromString(one.value)
        assert parsed.SerializeToString() and not parsed.UnknownFields()
        made[parsed.name] = parsed
    return made


# --- Envoy Gateway itself ------------------------------------------------------------------------

CONFIG = """apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {{ controllerName: gateway.envoyproxy.io/gatewayclass-controller }}
provider:
  type: Custom
  custom:
    resource: {{ type: File, file: {{ paths: ["{folder}/resources"] }} }}
    infrastructure:
      type: Host
      host: {{ configHome: "{folder}/config", dataHome: "{folder}/data", stateHome: "{folder}/state", runtimeDir: "{folder}/run" }}
rateLimit: {{ timeout: 10s, failClosed: true, backend: {{ type: Redis, redis: {{ url: "localhost:6379" }} }} }}
extensionApis: {{ enableBackend: true }}
"""


# Of the Deployment of Envoy Gateway 1.9.1, in its order; {certs} is /certs there.
DEPLOYMENT = """RUNTIME_ROOT=/data RUNTIME_SUBDIRECTORY=ratelimit RUNTIME_IGNOREDOTFILES=true RUNTIME_WATCH_ROOT=false LOG_LEVEL=info
USE_STATSD=false CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=envoy-gateway:18001 CONFIG_GRPC_XDS_NODE_ID=envoy-ratelimit
GRPC_SERVER_USE_TLS=true GRPC_SERVER_TLS_CERT={certs}/tls.crt GRPC_SERVER_TLS_KEY={certs}/tls.key
GRPC_SERVER_TLS_CA_CERT={certs}/ca.crt CONFIG_GRPC_XDS_SERVER_USE_TLS=true CONFIG_GRPC_XDS_CLIENT_TLS_CERT={certs}/tls.crt
CONFIG_GRPC_XDS_CLIENT_TLS_KEY={certs}/tls.key CONFIG_GRPC_XDS_SERVER_TLS_CACERT={certs}/ca.crt
FORCE_START_WITHOUT_INITIAL_CONFIG=true REDIS_SOCKET_TYPE=tcp REDIS_URL=localhost:6379 USE_PROMETHEUS=true
PROMETHEUS_ADDR=:19001 PROMETHEUS_MAPPER_YAML=/etc/statsd-exporter/conf.yaml"""


class Deployed(Weir):
    """/bin/ratelimit as that Deployment runs it. Its metrics have another port, which Envoy Gateway's own need on this
    machine; and it tries sooner to connect again, so that tests take less time."""

    def __init__(self, folder, certs):
        super().__init__(folder)
        program = folder / "ratelimit"
        program.symlink_to(Path(weir_path()).resolve())
        self.command = [str(program)]
        self.env = {"PATH": os.environ["PATH"], "WEIR_REDIS": "ignore",
                    **dict(one.split("=", 1) for one in DEPLOYMENT.format(certs=certs).split()),
                    "PROMETHEUS_ADDR": ":19003", "CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL": "100ms",
                    "XDS_CLIENT_BACKOFF_INITIAL_INTERVAL": "100ms", "XDS_CLIENT_BACKOFF_MAX_INTERVAL": "200ms"}
        authority = (certs / "ca.crt").read_bytes()
        self.credentials = grpc.ssl_channel_credentials(authority)

    def ask(self, domain, *descriptors, **more):
        # gRPC takes no name for this wildcard, as it has no dot behind it; Envoy does not look at the name.
        with Stub("127.0.0.1:8081", self.credentials, **{
                "grpc.ssl_target_name_override": "*.envoy-gateway-system"}) as stub:
            return stub.limit(domain, *descriptors, **more)

    def get(self, port, path):
        with Client(f"127.0.0.1:{port}") as client:
            return client.request("GET", path)


class Gateway:
    """Envoy Gateway with its file provider, in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "resources").mkdir()
        (folder / "eg.yaml").write_text(CONFIG.format(folder=folder), encoding="utf-8")
        self.text = (HERE / "resources.yaml").read_text(encoding="utf-8")
        self.put(self.text)
        subprocess.run([GATEWAY, "certgen", "--local", "--config-home", folder / "config"], check=True, timeout=60,
                       capture_output=True)
        self.certs = folder / "config/certs/envoy-rate-limit"

    def with_envoys(self, program, backend):
        """It starts that Envoy for its Gateway, in front of a backend. It would fetch the version that is named."""
        versions = self.folder / "data/envoy-versions/1.39.1/bin"
        versions.mkdir(parents=True)
        (versions / "envoy").symlink_to(program)
        parameters = "{ group: gateway.envoyproxy.io, kind: EnvoyProxy, name: host, namespace: default }"
        self.put(replaced(self.text, ("gatewayclass-controller }", f"gatewayclass-controller, parametersRef: {parameters} }}"),
                          ("port: 3000", f"port: {backend.rpartition(':')[2]}")) + """---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyProxy
metadata: { name: host, namespace: default }
spec: { provider: { type: Host, host: { envoyVersion: 1.39.1 } } }
""")

    def put(self, text):
        beside = self.folder / "resources.new"
        beside.write_text(text, encoding="utf-8")
        beside.rename(self.folder / "resources/all.yaml")

    def __enter__(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen([GATEWAY, "server", "-c", self.folder / "eg.yaml"], stdout=log, stderr=log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


    def fetch(self):
        """What it serves to its rate limit service."""
        read = {name: (self.certs / file).read_bytes() for name, file in
                (("root_certificates", "ca.crt"), ("private_key", "tls.key"), ("certificate_chain", "tls.crt"))}
        credentials = grpc.ssl_channel_credentials(**read)
        waiting = threading.Event()

        def requests():
            first = Request(type_url=TYPE)
            first.node.id = NODE
            yield first
            waiting.wait()

        with grpc.secure_channel("127.0.0.1:18001", credentials,
                                 [("grpc.ssl_target_name_override", "envoy-gateway")]) as channel:
            call = channel.stream_stream(METHOD, Request.SerializeToString, Response.FromString)
            try:
                return next(call(requests(), wait_for_ready=True, timeout=60))
            finally:
                waiting.set()


@pytest.fixture(name="gateway")
def fixture_gateway(tmp_path):
    if not GATEWAY:
        pytest.skip("run script/test --gateway, which builds Envoy Gateway")
    folder = tmp_path / "eg"
    folder.mkdir()
    return Gateway(folder)


def domains_of(response):
    return {one.domain for one in configs(response).values()}


def test_the_recording_is_what_envoy_gateway_serves(gateway):
    with gateway:
        served = wait_until(lambda: len((got := gateway.fetch()).resources) >= 2 and got, 60)
    if os.environ.get("RECORD"):
        RECORDED.write_bytes(served.SerializeToString())
    assert configs(served) == configs(recorded())
    assert domains_of(served) == {SHOP, MODELS, SHARED}


def test_weir_takes_the_place_of_its_rate_limit_service(gateway, tmp_path):
    begin_window("DAY", 60)
    begin_window("HOUR", 60)
    with Deployed(tmp_path, gateway.certs) as weir:
        assert weir.get(8080, "/healthcheck").status == 200  # as FORCE_START_WITHOUT_INITIAL_CONFIG says
        with pytest.raises(grpc.RpcError) as failed:
            weir.ask(SHOP, [("a", "b")])
        assert "no rate limit configuration loaded" in failed.value.details()
        with gateway:
            wait_until(lambda: all(loaded(weir, domain) for domain in (SHOP, MODELS, SHARED)), 60)
            check_decisions(weir.ask)
            assert b"ratelimit_service_rate_limit_over_limit" in weir.get(19003, "/metrics").body
            gateway.put(gateway.text.replace("limit: { requests: 3, unit: Hour }", "limit: { requests: 5, unit: Hour }"))
            wait_until(lambda: user_limit(weir) == 5)
        weir.wait_event("envoy_xds_lost", 2)  # it had not been there before
        assert user_limit(weir) == 5
        gateway.put(gateway.text)
        with gateway:  # its versions begin anew
            wait_until(lambda: user_limit(weir) == 3, 60)


def test_its_envoys_ask_weir(gateway, tmp_path):
    if not os.environ.get("ENVOY"):
        pytest.skip("no Envoy to be had")
    begin_window("HOUR", 90)
    for file in gateway.certs.iterdir():
        shutil.copy(file, "/certs")  # where the clusters of Envoy Gateway look
    with App() as app, Deployed(tmp_path, Path("/certs")), gateway:
        gateway.with_envoys(os.environ["ENVOY"], app.address)
        shop = {"Host": "www.example.com"}
        wait_until(lambda: asked(8888, shop | {"x-user-id": "warm"})["x-ratelimit-limit"], 60)
        replies = [asked(8888, shop | {"x-user-id": "ann"}) for _ in range(4)]
        assert [one.status for one in replies] == [200, 200, 200, 429]
        assert [one["x-ratelimit-remaining"] for one in replies] == ["2", "1", "0", "0"]
        assert asked(8888, shop | {"x-user-id": "bob"}).status == 200
        team = [asked(8889, {"Host": "a", "x-team": "red"}, "/v1/x") for _ in range(8)]
        assert [one.status for one in team] == [200] * 7 + [429]


def asked(port, fields, path="/"):
    """A reply of Envoy; of nobody, while it does not listen."""
    try:
        with Client(f"127.0.0.1:{port}") as client:
            return client.request("GET", path, fields)
    except OSError:
        return {"x-ratelimit-limit": None}


def loaded(weir, domain):
    return f"{domain}." in weir.get(6070, "/rlconfig").body.decode()


def user_limit(weir):
    answer = weir.ask(SHOP, [(ROUTE, ROUTE), ("rule-0-match-0", "ann")], hits_addend=0)
    return answer.statuses[0].current_limit.requests_per_unit


# --- Its configuration, recorded -----------------------------------------------------------------

ROUTE = "httproute/default/shop/rule/0/match/0/www_example_com"


def check_decisions(ask):
    """What gateway/resources.yaml says, by calls as its Envoys make them."""
    user, all_of_them = ("rule-0-match-0", "ann"), ("rule-3-match--1", "rule-3-match--1")
    for left in 2, 1, 0:
        answer = ask(SHOP, [(ROUTE, ROUTE), user], [(ROUTE, ROUTE), all_of_them])
        assert answer.overall_code == OK
        assert [one.limit_remaining for one in answer.statuses] == [left, 9997 + left]
    answer = ask(SHOP, [(ROUTE, ROUTE), user], [(ROUTE, ROUTE), all_of_them])
    assert answer.overall_code == OVER_LIMIT and [one.code for one in answer.statuses] == [OVER_LIMIT, OK]
    assert ask(SHOP, [(ROUTE, ROUTE), ("rule-0-match-0", "bob")]).overall_code == OK

    address = [(ROUTE, ROUTE), ("masked_remote_address", "0.0.0.0/0"), ("remote_address", "192.0.2.1")]
    assert all(ask(SHOP, address).overall_code == OK for _ in range(60))  # shadow mode: 50 a minute
    orders = [(ROUTE, ROUTE), *((key, key) for key in ("rule-2-match-0", "rule-2-method", "rule-2-path"))]
    assert [ask(SHOP, orders).overall_code for _ in range(3)] == [OK, OK, OVER_LIMIT]

    # Tokens: asked for with 0 at the request, charged when the response has ended.
    models = "httproute/default/models/rule/0/match/0/*"
    tokens = [(models, models), ("rule-0-match-0", "ann"), ("rule-0-match-1", "rule-0-match-1")]
    codes = [ask(MODELS, {"entries": tokens, "hits_addend": hits}).overall_code for hits in (0, 700, 0, 700, 0)]
    assert codes == [OK, OK, OK, OVER_LIMIT, OVER_LIMIT]
    shared = [("default/models/rule/1", "default/models/rule/1"), ("rule-0-match-0", "red")]
    assert [ask(SHARED, shared).overall_code for _ in range(8)] == [OK] * 7 + [OVER_LIMIT]


def test_the_recording_is_decided_as_its_resources_say(tmp_path):
    begin_window("DAY", 60)
    begin_window("HOUR", 60)
    with ControlPlane() as plane, Service(tmp_path, plane.address, xds={"node": NODE}) as weir:
        plane.put("1", *(one.value for one in recorded().resources))
        plane.wait_version("1")
        with Stub(weir.grpc_address) as stub:
            check_decisions(stub.limit)
