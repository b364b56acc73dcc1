# SPDX-License-Identifier: Apache-2.0
"""The Grafana board and the Prometheus alerts of packaging/: their metrics exist, and a real Prometheus
(Debian's; found in PATH, or in $PROMETHEUS, a folder) takes every query, on weir's own metrics."""

import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import SECONDS_MAX

ROOT = Path(__file__).parents[3]
ALERTS = ROOT / "packaging" / "prometheus" / "weir.rules.yml"
BOARD = json.loads((ROOT / "packaging" / "grafana" / "weir.json").read_text(encoding="utf-8"))
# Metrics that only servers with a shared store, or with limits that follow health, have, and nginx.
PARTLY = {"weir_store_latency_seconds_bucket", "weir_store_up", "weir_scale_percent",
          "weir_nginx_unable_seconds_total", "weir_nginx_config_errors"}


def tool(name):
    return shutil.which(name, path=os.environ.get("PROMETHEUS") or os.environ["PATH"])


needs_prometheus = pytest.mark.skipif(
    not (tool("prometheus") and tool("promtool")),
    reason="Debian's package prometheus is not installed (script/bootstrap test)")


def alert_queries():
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


def board_queries():
    """Every query, with Grafana's variables as it fills them in."""
    texts = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    texts += [note["expr"] for note in BOARD["annotations"]["list"]]
    for text in texts:
        for name, value in {"$__rate_interval": "1m", "$__interval": "1m", "$instance": ".*",
                            "$limit": ".*"}.items():
            text = text.replace(name, value)
        yield text


def queries():
    return alert_queries() + list(board_queries())


def metrics_in(text):
    return set(re.findall(r"\bweir_\w+", text))


def rules(folder):
    """With a state file: the metrics of the edge are there only then."""
    return rules_of({"name": "api", "match": {"path": "/**"}, "key": ["user"], "algorithm": "gcra", "rate": "3/hour",
                     "burst": 3}, standing={"by": ["user"]}, denials={"top": 10},
                    state={"file": str(folder / "state"), "size": "4MiB"})


def use_up(weir):
    """A burst, and a denial that is asked to wait."""
    for _ in range(4):
        weir.check(path="/api", attributes={"user": "ann"})


def test_every_metric_of_board_and_alerts_exists(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        use_up(weir)
        known = {name.partition("{")[0] for name in weir.metrics()}
    asked = set().union(*map(metrics_in, queries()))
    assert len(asked) > 20
    assert asked - known <= PARTLY
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.c"))
    for name in asked - known:
        assert re.search(r"\b%s\b" % name.removesuffix("_bucket"), sources), name
    for variable in BOARD["templating"]["list"]:
        for name in metrics_in(str(variable.get("query", ""))):
            assert name in known


def test_labels_of_queries_are_those_of_the_metrics(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        use_up(weir)
        labels = {}
        for series in weir.metrics():
            name, _, rest = series.partition("{")
            labels.setdefault(name, {"instance"}).update(re.findall(r"(\w+)=\"", rest))
    for text in queries():
        for name, inside in re.findall(r"\b(weir_\w+)\{([^}]*)\}", text):
            if name in labels:
                assert set(re.findall(r"(\w+)[!=]=?~?\"", inside)) <= labels[name], text


def test_the_board_is_whole():
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids) >= 15
    for panel in BOARD["panels"]:
        assert panel["title"] and panel["targets"] and panel["datasource"]["uid"] == "${datasource}"
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


@needs_prometheus
def test_promtool_finds_nothing_wrong_with_the_alerts():
    done = subprocess.run([tool("promtool"), "check", "rules", str(ALERTS)], capture_output=True,
                          text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stdout + done.stderr


def turns(instance, within):
    """The histogram of 1,000 turns a minute, so many of them within 1 ms and all within 5 ms."""
    return [{"series": f'weir_turn_seconds_bucket{{instance="{instance}",le="{le}"}}', "values": f"0+{count}x30"}
            for le, count in (("0.000500", 0), ("0.001000", within), ("0.005000", 1000), ("+Inf", 1000))]


@needs_prometheus
def test_an_alert_fires_when_weir_adds_more_than_a_millisecond(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        assert {f'weir_turn_seconds_bucket{{le="{le}"}}' for le in ("0.000500", "0.001000", "0.005000")} <= set(weir.metrics())
    fires = {"exp_labels": {"severity": "warning", "instance": "slow"},
             "exp_annotations": {"summary": "slow adds more than 1 ms to 1 in 100 requests"}}
    (tmp_path / "test.yml").write_text(json.dumps({
        "rule_files": [str(ALERTS)], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": turns("slow", 989) + turns("fast", 991),
                   "alert_rule_test": [{"eval_time": "25m", "alertname": "WeirSlow", "exp_alerts": [fires]}]}]}), encoding="utf-8")
    done = subprocess.run([tool("promtool"), "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True,
                          timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_prometheus
def test_prometheus_takes_every_query_on_real_metrics(tmp_path):
    with Weir(tmp_path, rules(tmp_path)) as weir:
        (tmp_path / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{"job_name": "weir", "static_configs": [
                {"targets": [weir.admin_address]}]}]}), encoding="utf-8")
        with open(tmp_path / "prometheus.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [tool("prometheus"), f"--config.file={tmp_path}/prometheus.yml",
                 f"--storage.tsdb.path={tmp_path}/data", "--web.listen-address=127.0.0.1:0"],
                stderr=log)
        try:
            check_queries(weir, tmp_path / "prometheus.log")
        finally:
            process.kill()
            process.wait()


def check_queries(weir, log):
    def listening():
        text = log.read_text(encoding="utf-8")
        return re.search(r'msg="Listening on" address=(\S+)', text)

    wait_until(listening, what="Prometheus")
    address = listening()[1]

    def ask(text):
        url = f"http://{address}/api/v1/query?query={urllib.parse.quote(text)}"
        try:
            with urllib.request.urlopen(url, timeout=SECONDS_MAX) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:  # 503: it still starts
            return {"status": error.code, "data": error.read()}

    def grows():
        use_up(weir)
        found = ask("rate(weir_decisions_total[1m])")
        return found["status"] == "success" and any(
            float(one["value"][1]) > 0 for one in found["data"]["result"])

    wait_until(grows, what="two scrapes")
    empty = []
    for text in queries():
        found = ask(text)
        assert found["status"] == "success", (text, found)
        if not found["data"]["result"]:
            empty.append(text)
    # Alerts have nothing to say of a healthy server, and some parts of the board are of others.
    allowed = set(alert_queries()) | {text for text in board_queries() if
                                      metrics_in(text) & PARTLY or "> 0" in text}
    assert set(empty) <= allowed
