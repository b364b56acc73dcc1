# SPDX-License-Identifier: Apache-2.0
"""The commands and the migrations of docs/request-limits.md work as they are written."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest

from daemon.redis import RedisWeir
from daemon.waiting import SECONDS_MAX
from daemon.weir import Weir, rules_of
from model.program import ROOT

TEXT = (ROOT / "docs" / "request-limits.md").read_text(encoding="utf-8")
OVER_HTTP, OVER_GRPC = TEXT.split("\n## Over gRPC\n")
COMMANDS = re.findall(r"^```sh\n(.*?)^```(?:\n\n```json\n(.*?)^```)?", OVER_HTTP, re.M | re.S)
ROWS = [[cell.strip() for cell in line.strip("|").split("|")]
        for line in TEXT.splitlines() if line.startswith("| `{")]
MOVED = [(json.loads(before.strip("`")), json.loads(after.strip("`"))) for before, after in ROWS]


# What grpc_tools makes.
MESSAGES = """
from pathlib import Path
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
files = descriptor_pb2.FileDescriptorSet.FromString((Path(__file__).parent / "set").read_bytes())
pool = descriptor_pool.DescriptorPool()
pool.Add(files.file[0])
factory = message_factory.MessageFactory(pool)
Limit, LimitRequest, LimitResponse = (
    factory.GetPrototype(pool.FindMessageTypeByName("weir.v1." + name))
    for name in ("Limit", "LimitRequest", "LimitResponse"))
"""
STUB = """
from weir.v1.limiter_pb2 import LimitRequest, LimitResponse
class LimiterStub:
    def __init__(self, channel):
        self.Limit = channel.unary_unary("/weir.v1.Limiter/Limit", LimitRequest.SerializeToString,
                                         LimitResponse.FromString)
"""


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


def test_the_program_for_grpc(tmp_path):
    """With messages of the shipped file, and a stub made by hand where grpcio-tools is missing."""
    [commands] = re.findall(r"^```sh\n(.*?)^```", OVER_GRPC, re.M | re.S)
    [program] = re.findall(r"^```python\n(.*?)^```", OVER_GRPC, re.M | re.S)
    compile_it = commands.splitlines()[2]
    folder = tmp_path / "weir" / "v1"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "src/wire/grpc/proto/weir_limiter_v1.proto", folder / "limiter.proto")
    if importlib.util.find_spec("grpc_tools"):
        subprocess.run(["bash", "-ec", compile_it.replace("python3", sys.executable)], cwd=tmp_path,
                       timeout=SECONDS_MAX, check=True)
    else:
        subprocess.run(["protoc-c", "-I.", f"--descriptor_set_out={folder / 'set'}",
                        "weir/v1/limiter.proto"], cwd=tmp_path, timeout=SECONDS_MAX, check=True)
        (folder / "limiter_pb2.py").write_text(MESSAGES, encoding="utf-8")
        (folder / "limiter_pb2_grpc.py").write_text(STUB, encoding="utf-8")
    with Weir(tmp_path, rules_of(server={"grpc": "127.0.0.1:0"})) as weir:
        (tmp_path / "app.py").write_text(program.replace("127.0.0.1:8081", weir.grpc_address),
                                         encoding="utf-8")
        done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True,
                              timeout=SECONDS_MAX, check=False)
    assert done.stdout == "allowed, [19, 4997] left\n", done.stderr


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
