# SPDX-License-Identifier: Apache-2.0
"""The commands and the migrations of docs/request-limits.md work as they are written."""

import json
import re
import subprocess

import pytest

from daemon.redis import RedisWeir
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of
from model.program import ROOT

TEXT = (ROOT / "docs" / "request-limits.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^```sh\n(.*?)^```(?:\n\n```json\n(.*?)^```)?", TEXT, re.M | re.S)
ROWS = [[cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.splitlines() if line.startswith("| `{")]
MOVED = [(json.loads(before.strip("`")), json.loads(after.strip("`"))) for before, after in ROWS]


def members(value):
    """What a value is made of, without its numbers."""
    if isinstance(value, dict):
        return {name: members(one) for name, one in value.items()}
    if isinstance(value, list):
        return [members(one) for one in value]
    return type(value).__name__


def test_the_commands_answer_as_the_page_says(tmp_path):
    assert len(COMMANDS) == 3
    with Weir(tmp_path, rules_of()) as weir:
        for command, shown in COMMANDS:
            done = subprocess.run(
                ["bash", "-ec", command.replace("127.0.0.1:8080", weir.http_address)],
                capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
            answer = json.loads(done.stdout)
            assert answer["allowed"] is True
            if shown:
                assert members(answer) == members(json.loads(shown))
                assert [(one["name"], one["limit"], one["remaining"]) for one in answer["limits"]] \
                    == [(one["name"], one["limit"], one["remaining"])
                        for one in json.loads(shown)["limits"]]
        with weir.client() as client:
            login = {"key": "user:1", "rate": "5/min", "algorithm": "sliding_log"}
            statuses = [client.post("/v1/limit", login).status for _ in range(5)]
            assert statuses == [200, 200, 200, 200, 429]


def test_the_errors_of_the_page_are_those_of_the_server(tmp_path):
    shown = re.findall(r"^\| 400 \| `+(.*?)`+ \|$", TEXT, re.M)
    asked = [[{"key": "a", "rate": "1/s"}, {"key": "b", "rate": "10"}],
             {"limits": [{"key": "a", "rate": "1/s", "burst": 2}]}]
    with Weir(tmp_path, rules_of()) as weir, weir.client() as client:
        assert [client.post("/v1/limit", body).json["detail"] for body in asked] == shown


def test_a_request_of_throttlecrab_and_its_translation_decide_alike(tmp_path):
    (before, after), *_ = [pair for pair in MOVED if "max_burst" in pair[0]]
    with RedisWeir(tmp_path, http="127.0.0.1:0") as weir, weir.client() as client, \
            weir.redis() as redis:
        for _ in range(8):
            allowed, limit, *_ = redis.ask("THROTTLE", before["key"], before["max_burst"],
                                           before["count_per_period"], before["period"], 0)
            reply = client.post("/v1/limit", {**after, "cost": 0})
            assert (reply.json["allowed"], reply.json["limits"][0]["limit"]) == (allowed == 1, limit)
        reply = client.post("/v1/limit", after)
        assert reply.json["limits"][0]["cost"] == before["quantity"]
        assert reply.json["limits"][0]["remaining"] == before["max_burst"] - before["quantity"]


@pytest.mark.parametrize("before, after", [pair for pair in MOVED if "hits" in pair[0]])
def test_a_request_of_gubernator_and_its_translation_have_the_same_limit(tmp_path, before, after):
    with Weir(tmp_path, rules_of()) as weir, weir.client() as client:
        limit = client.post("/v1/limit", after).json["limits"][0]
    most = int(before.get("burst", before["limit"]))
    assert limit["name"] == before["name"] and limit["cost"] == int(before["hits"])
    assert (limit["limit"], limit["remaining"]) == (most, most - int(before["hits"]))
    assert limit["reset_after_ms"] <= int(before["duration"]) * most // int(before["limit"])


def test_the_migrations_are_found():
    assert len(MOVED) == 3
