# SPDX-License-Identifier: Apache-2.0
"""What of requests is not taken is shown: in the log, in metrics, by `weir doctor`."""

import json

from daemon.proxies import free_port
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
