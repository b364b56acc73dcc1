# SPDX-License-Identifier: Apache-2.0
"""What of requests is not taken is shown: in the log, in metrics, by `weir doctor`."""

import json

from daemon import grpc as wire
from daemon.proxies import free_port
from daemon.redis import Error, RedisWeir
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir

LIMIT = {"name": "a", "key": ["client.ip"], "rate": "100/min"}


def ask(weir):
    with weir.client() as client:
        return client.request("GET", "/v1/auth", {"X-Forwarded-Uri": "/"}).status


def test_a_proxy_that_is_not_trusted_is_reported(tmp_path):
    admin = f"127.0.0.1:{free_port()}"
    rules = rules_of(LIMIT, server={"trusted_proxies": ["192.0.2.1"], "admin": admin})
    with Weir(tmp_path, rules, admin=admin) as weir:
        assert weir.metrics()["weir_untrusted_proxy_requests_total"] == 0
        done = run_weir("doctor", "--json", "--config", weir.config)
        assert "untrusted_proxy" not in done.stdout
        assert [ask(weir) for _ in range(3)] == [403, 403, 403]
        line = weir.wait_event("untrusted_proxy")
        assert "level=warning" in line and "peer=127.0.0.1" in line and "count=1" in line
        assert "trusted_proxies: [..., 127.0.0.1]" in line
        assert weir.text().count("event=untrusted_proxy") == 1  # once a minute
        assert weir.metrics()["weir_untrusted_proxy_requests_total"] == 3
        done = run_weir("doctor", "--json", "--config", weir.config)
        found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
        assert found["untrusted_proxy"]["level"] == "error"
        assert "3 requests" in found["untrusted_proxy"]["text"]
        assert "127.0.0.1" in found["untrusted_proxy"]["text"]


def test_a_trusted_proxy_is_no_news(tmp_path):
    with Weir(tmp_path, rules_of(LIMIT)) as weir:
        assert ask(weir) == 200
        assert weir.metrics()["weir_untrusted_proxy_requests_total"] == 0
        assert "untrusted_proxy" not in weir.text()


def test_names_that_nobody_knows_are_counted_by_name(tmp_path):
    admin = f"127.0.0.1:{free_port()}"
    limit = {"name": "a", "key": ["tenant"], "rate": "100/min"}
    rules = rules_of(limit, attributes=["tenant"], server={"admin": admin})
    with Weir(tmp_path, rules, admin=admin) as weir:
        for name in ("tennant", "tennant", "x\"\\n", "tenant", "header.y"):
            answer = weir.check(method="GET", path="/", attributes={name: "acme"})
            assert answer.status == 200, answer.body
        line = weir.wait_event("unknown_attribute")
        assert "level=warning" in line
        metrics = weir.metrics()
        assert metrics['weir_unknown_attributes_total{name="tennant"}'] == 2
        assert sum("weir_unknown_attributes_total" in name for name in metrics) == 2
        done = run_weir("doctor", "--json", "--config", weir.config)
        found = [one["text"] for one in json.loads(done.stdout)["findings"]
                 if one["name"] == "unknown_attribute"]
        assert len(found) == 2
        assert [text for text in found if "2 values of the attribute `tennant`" in text
                and "did you mean `tenant`?" in text]
        weir.write_rules(rules_of(limit, attributes=["tenant", "tennant"],
                                  server={"admin": admin}))
        assert "event=reloaded" in weir.reload()
        assert 'weir_unknown_attributes_total{name="tennant"}' not in weir.metrics()


def test_at_most_64_names_are_kept(tmp_path):
    with Weir(tmp_path, rules_of(LIMIT)) as weir:
        for i in range(70):
            assert weir.check(path="/", attributes={f"name{i}": "x"}).status == 200
        counts = {name: value for name, value in weir.metrics().items()
                  if name.startswith("weir_unknown_attributes_total")}
        assert len(counts) == 65 and sum(counts.values()) == 70
        assert counts['weir_unknown_attributes_total{name=""}'] == 6


def test_strict_attributes_refuse_a_program_and_no_proxy(tmp_path):
    rules = rules_of(LIMIT, strict_attributes=True, attributes=["own"])
    with RedisWeir(tmp_path, rules, http="127.0.0.1:0") as weir, weir.redis() as redis:
        answer = weir.check(path="/", attributes={"other": "x"})
        assert answer.status == 400 and b"other: unknown attribute" in answer.body
        assert weir.check(path="/", attributes={"own": "x"}).status == 200
        assert ask(weir) == 200
        reply = redis.ask("WEIR.CHECK", "other", "x")
        assert isinstance(reply, Error) and "other: unknown attribute" in reply
        assert not isinstance(redis.ask("WEIR.CHECK", "own", "x"), Error)


STRICT_TENANT = {"attributes": ["tenant"], "strict_attributes": True}  # strict for programs only
TENANT = {"name": "a", "key": ["tenant"], "rate": "100/min"}


def expect_counted(weir, count):
    metric = 'weir_unknown_attributes_total{name="tennant"}'
    wait_until(lambda: weir.metrics().get(metric, 0) >= count, what="the count of the name")
    line = weir.wait_event("unknown_attribute")
    assert "level=warning" in line and "tennant" in line and "tenant" in line.replace("tennant", "")
    return weir.metrics()[metric]


def test_a_name_of_envoys_ext_authz_that_nobody_knows_is_counted(tmp_path):
    rules = rules_of(TENANT, **STRICT_TENANT)
    with Weir(tmp_path, rules, "--grpc", "127.0.0.1:0") as weir, wire.Stub(weir.grpc_address) as stub:
        asked = wire.CheckRequest()
        asked.attributes.request.http.path = "/"
        asked.attributes.source.address.socket_address.address = "192.0.2.1"
        for name in "tennant", "tenant", "tennant":
            asked.attributes.context_extensions.clear()
            asked.attributes.context_extensions[name] = "acme"
            assert stub.call("AuthCheck", asked).status.code == 0
        assert expect_counted(weir, 2) == 2


def test_a_name_of_envoys_quotas_that_nobody_knows_is_counted(tmp_path):
    rules = rules_of(TENANT, **STRICT_TENANT)
    with Weir(tmp_path, rules, "--grpc", "127.0.0.1:0") as weir, wire.Stub(weir.grpc_address) as stub, \
            stub.quotas() as quotas:
        quotas.report({"tennant": "acme"}, allowed=1)
        assert expect_counted(weir, 1) >= 1
        before = weir.metrics()['weir_unknown_attributes_total{name="tennant"}']
        quotas.report({"tenant": "acme"}, allowed=1)
        wait_until(lambda: quotas.action({"tenant": "acme"}), what="an assignment of the name that is known")
        assert sum("weir_unknown_attributes_total" in name for name in weir.metrics()) == 1
        assert before >= 1
