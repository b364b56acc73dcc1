# SPDX-License-Identifier: Apache-2.0
"""libweir_envoy.so in each real Envoy that it is for: it loads, refuses what is wrong, denies, and counts exactly."""

import json
import subprocess

import grpc
import pytest

from daemon.grpc import Stub
from daemon.load import Load, admitted, denied
from daemon.http import request_bytes
from daemon.proxies import free_port, replaced
from daemon.waiting import wait_until
from daemon.weir import rules_of
from envoy_inside import Envoy, VERSIONS, program_of, route, wheel_of
from model.program import ROOT

LOGIN = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "2/30d",
         "algorithm": "token_bucket"}
N = 1000
ALL = rules_of({"name": "all", "key": [], "rate": f"{N}/30d", "algorithm": "token_bucket"})
GET = request_bytes("GET", "/", {"Host": "a"})


@pytest.fixture(scope="module", name="wheel", params=VERSIONS)
def fixture_wheel(request):
    with wheel_of(request.param) as wheel:
        yield wheel


def envoy_in(folder, wheel, *limits, **more):
    return Envoy(wheel, folder, rules_of(*limits), **more)


def test_it_loads_without_a_warning(tmp_path, wheel):
    with envoy_in(tmp_path, wheel, LOGIN) as envoy:
        assert envoy.get("/login").status == 200
    log = envoy.log()
    assert "matched" in log and "deprecated" not in log and "does not tell" not in log, log


def test_a_denied_request_gets_429_with_fields_and_a_body(tmp_path, wheel):
    with envoy_in(tmp_path, wheel, LOGIN, routes=[route({"prefix": "/free"}, "off"),
                                                  route({"prefix": "/"})]) as envoy:
        replies = [envoy.get("/login?next=/") for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 429]
        assert replies[1]["ratelimit"].startswith('"login";r=0;t=')
        assert replies[2]["retry-after"] and replies[2].json["violated-policies"] == ["login"]
        with envoy.client() as client:  # its body is not waited for
            reply = client.request("POST", "/login", {}, b"x" * 200000)
            assert reply.status == 429 and reply.json["status"] == 429
        assert envoy.get("/free").status == 200 and not envoy.get("/free")["ratelimit"]
        assert (envoy.count("allowed"), envoy.count("denied")) == (2, 2)
        assert envoy.count("denied_by.limit.login") == 2


def test_a_denied_call_of_grpc_gets_resource_exhausted(tmp_path, wheel):
    limit = {"name": "calls", "key": ["path"], "rate": "1/30d", "algorithm": "token_bucket"}
    with envoy_in(tmp_path, wheel, limit) as envoy, Stub(envoy.address) as stub:
        statuses = [status_of(stub) for _ in range(3)]
    assert statuses[1:] == [("RESOURCE_EXHAUSTED", 'denied by "calls"')] * 2
    assert statuses[0][0] != "RESOURCE_EXHAUSTED"  # the answer of a route that speaks no gRPC


def status_of(stub):
    try:
        stub.raw("/shop.Cart/Add", b"")
    except grpc.RpcError as error:
        return error.code().name, error.details()
    return "OK", ""


def test_workers_admit_exactly_n_together(tmp_path, wheel):
    with Envoy(wheel, tmp_path, ALL, workers=4) as envoy:
        with Load([envoy.address], 24, GET) as load:
            answers = load.until(lambda answers: denied(answers) >= 200, "denials")
        assert admitted(answers) == N and all(answer.status for answer in answers)
        assert envoy.count("allowed") == N


def test_validation_opens_nothing_and_names_mistakes(tmp_path, wheel):
    envoy = envoy_in(tmp_path, wheel, LOGIN)
    static = static_of(envoy)
    assert validate(wheel, static).returncode == 0
    assert not envoy.state.exists()
    envoy.rules.write_text("version: 1\nlimits:\n- { name: x, key: [], rate: fast }\n", encoding="utf-8")
    done = validate(wheel, static)
    assert done.returncode != 0 and "weir.yaml:3:" in done.stderr + done.stdout
    envoy.weir["on_eror"] = "open"
    done = validate(wheel, static_of(envoy))
    assert done.returncode != 0 and 'unknown key "on_eror"' in done.stderr + done.stdout


def static_of(envoy):
    """Its listener in the bootstrap: that of a file is not validated."""
    envoy.write()
    made = json.loads((envoy.folder / envoy.bootstrap()).read_text(encoding="utf-8"))
    (one,) = json.loads(envoy.lds.read_text(encoding="utf-8"))["resources"]
    del made["dynamic_resources"], one["@type"]
    made["static_resources"]["listeners"] = [one]
    path = envoy.folder / "static.json"
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def validate(wheel, path):
    return subprocess.run([program_of(wheel), "--mode", "validate", "-c", str(path), "--log-level",
                           "warning"], capture_output=True, text=True, check=False, timeout=120,
                          env=Envoy.environment())


def test_the_example_ends_with_429(tmp_path, wheel):
    text = (ROOT / "examples/envoy/module.yaml").read_text(encoding="utf-8")
    envoy = envoy_in(tmp_path, wheel, LOGIN | {"rate": "5/30d"})
    port = free_port()
    path = tmp_path / "module.yaml"
    path.write_text(replaced(text, ("/etc/weir/weir.yaml", str(envoy.rules)),
                             ("port_value: 10000", f"port_value: {port}")), encoding="utf-8")
    envoy.address, envoy.bootstrap = f"127.0.0.1:{port}", lambda: str(path)
    with envoy:
        assert [envoy.get("/login").status for _ in range(6)] == [200] * 5 + [429]
        assert envoy.get("/healthz").body == b"ok\n"
        wait_until(lambda: envoy.get("/").status == 200)
