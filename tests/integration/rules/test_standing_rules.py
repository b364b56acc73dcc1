# SPDX-License-Identifier: Apache-2.0
"""What standing does to requests: over every front end, from lists, in replay, explain and libweir."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon import grpc as wire
from daemon.grpc import Stub
from daemon.redis import Redis
from daemon.weir import Weir, rules_of
from model.program import ROOT, run_weir, weir_path

EXAMPLE = ROOT / "examples" / "standing"
BAD, PARTNER, OTHER = "203.0.113.9", "192.0.2.5", "198.51.100.1"
REFUSED = {"level": "suspended", "reason": "listed network", "ends_after_ms": None}


def copy_example(folder):
    for file in EXAMPLE.iterdir():
        shutil.copy(file, folder)
    return (folder / "weir.yaml").read_text(encoding="utf-8")


@pytest.fixture(name="weir", scope="module")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("standing")
    text = copy_example(folder)
    text += "server: { redis: '127.0.0.1:0', grpc: '127.0.0.1:0' }\n"
    with Weir(folder, text) as weir:
        yield weir


def address(weir, front):
    return re.search(rf"event=listening front={front} address=(\S+)", weir.text())[1]


# --- The example of docs/standing.md --------------------------------------------------------------

def test_the_docs_show_the_example():
    page = (ROOT / "docs" / "standing.md").read_text(encoding="utf-8")
    example = (EXAMPLE / "weir.yaml").read_text(encoding="utf-8")
    shown = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)[0]
    for line in shown.splitlines():
        assert line in example, line
    assert (EXAMPLE / "badnets.txt").read_text(encoding="utf-8") in page


def test_a_listed_network_is_refused_with_the_reason(weir):
    reply = weir.check(path="/api/x", ip=BAD)
    assert reply.status == 429
    assert reply.json["denied_by"] == "standing" and reply.json["retry_after_ms"] is None
    assert reply.json["standing"] == REFUSED and reply.json["limits"] == []
    assert reply["X-RateLimit-Standing"] == 'suspended;reason="listed network"'
    assert reply["Retry-After"] is None
    for ip in "2001:db8:bad:1::7", "198.51.100.7":
        assert weir.check(path="/api/x", ip=ip).json["denied_by"] == "standing"
    assert weir.check(path="/api/x", ip=OTHER).status == 200


def test_partners_meet_only_the_limit_for_them(weir):
    reply = weir.check(path="/api/x", ip=PARTNER)
    assert [limit["name"] for limit in reply.json["limits"]] == ["partners"]
    assert reply.json["standing"]["level"] == "trusted"
    assert [limit["name"] for limit in weir.check(path="/api/x", ip=OTHER).json["limits"]] == ["api"]


def test_no_request_chooses_its_standing(weir):
    reply = weir.check(path="/api/x", ip=BAD, attributes={"standing": "trusted"})
    assert reply.json["standing"] == REFUSED
    reply = weir.check(path="/api/x", ip=OTHER, attributes={"standing": "revoked"})
    assert reply.status == 200 and "standing" not in reply.json


def test_only_a_verified_user_counts(weir, tmp_path):
    """`mallory` is listed; a caller that is not trusted cannot say who it is."""
    mallory = {"path": "/api/x", "ip": OTHER, "attributes": {"user": "mallory"}}
    assert weir.check(**mallory).json["standing"]["level"] == "throttled"
    rules = copy_example(tmp_path) + "server: { http: { address: '127.0.0.1:0', trusted: false } }\n"
    with Weir(tmp_path, rules, http=None) as distrusting:
        reply = distrusting.check(**mallory)
        assert reply.status == 200 and "standing" not in reply.json
        assert distrusting.check(path="/api/x", ip=BAD).status == 429
    done = run_weir("explain", "-c", EXAMPLE / "weir.yaml", "-p", "/api/x", "-a", "user=mallory")
    assert "standing throttled, of user=mallory, by a list: abuse in October" in done.stdout
    assert re.search(r"^api: applies\n.*\n    scale  20%: standing throttled 20%$", done.stdout, re.M), done.stdout


def test_a_proxy_gets_the_status_of_the_answer(weir):
    with weir.client() as client:
        reply = client.auth("/api/x", client=BAD)
        assert reply.status == 403 and reply.json["detail"] == "listed network"
        assert reply["Cache-Control"] == "no-store"
        reply = client.auth("/api/x", client=BAD, query="?deny_status=401")
        assert reply.status == 401 and reply["X-RateLimit-Status"] == "403"
        assert client.auth("/api/x", client=PARTNER).status == 200


def test_ext_authz_denies_with_it(weir):
    asked = wire.CheckRequest()
    asked.attributes.source.address.socket_address.address = BAD
    asked.attributes.request.http.path = "/api/x"
    with Stub(address(weir, "grpc")) as stub:
        reply = stub.call("AuthCheck", asked)
        assert reply.status.code == 7  # PERMISSION_DENIED
        assert reply.denied_response.status.code == 403
        assert json.loads(reply.denied_response.body)["detail"] == "listed network"
        fields = {option.header.key: option.header.value for option in reply.denied_response.headers}
        assert fields["X-RateLimit-Standing"] == 'suspended;reason="listed network"'
        asked.attributes.source.address.socket_address.address = OTHER
        assert stub.call("AuthCheck", asked).status.code == 0


def test_weir_check_names_it(weir):
    with Redis(address(weir, "redis")) as redis:
        reply = redis.ask("WEIR.CHECK", "client.ip", BAD, "path", "/api/x")
        answer = dict(zip(reply[::2], reply[1::2]))
        assert answer["denied_by"] == "standing" and answer["retry_after_ms"] == -1
        assert answer["standing"] == "suspended" and answer["reason"] == "listed network"
        assert redis.ask("CL.THROTTLE", BAD, 15, 30, 60)[0] == 0  # it knows no caller


def test_refusals_are_counted_and_shown_as_most_denied(weir):
    before = weir.metrics()
    name = 'weir_decisions_total{limit="standing",result="denied"}'
    weir.check(path="/api/x", ip=BAD)
    after = weir.metrics()
    assert after[name] == before[name] + 1
    assert after['weir_standing_refusals_total{level="suspended"}'] == after[name]
    with weir.admin() as client:
        limits = client.request("GET", "/v1/limits").json["limits"]
        top = client.request("GET", "/v1/limits/standing/top").json["keys"]
    assert limits[-1]["name"] == "standing" and limits[-1]["suspended"] == after[name]
    assert limits[-1]["key"] == ["client.ip", "header.x-api-key", "user", "org"]
    assert f"client.ip={BAD}" in [entry["key"] for entry in top]
    shown = run_weir("top", "--once", "--admin", weir.admin_address).stdout
    assert re.search(rf"^standing +\d+ +client.ip={re.escape(BAD)}$", shown, re.M), shown


# --- Lists, operators, other processes ------------------------------------------------------------

def test_a_reload_reads_the_lists_again(tmp_path):
    with Weir(tmp_path, copy_example(tmp_path)) as weir:
        assert weir.check(path="/api/x", ip=BAD).status == 429
        (tmp_path / "badnets.txt").write_text(f"{OTHER}\n", encoding="utf-8")
        assert "event=reloaded" in weir.reload()
        assert weir.check(path="/api/x", ip=BAD).status == 200
        assert weir.check(path="/api/x", ip=OTHER).status == 429
        (tmp_path / "badnets.txt").write_text("10.0.0.0/99\n", encoding="utf-8")
        assert "event=reload_failed" in weir.reload()  # the old ones stay
        assert "badnets.txt:1" in weir.text()
        assert weir.check(path="/api/x", ip=OTHER).status == 429


def example_check(rules, *pairs):
    program = Path(weir_path()).parent / "examples" / "example-check"
    return subprocess.run([program, rules, "1", *pairs], capture_output=True, text=True,
                          timeout=60, check=True).stdout


def test_a_ban_counts_in_libweir_and_explain_too(tmp_path):
    rules = rules_of({"name": "all", "key": [], "rate": "1000/s"},
                     server={"admin": {"address": "127.0.0.1:0", "token": "s3cret"}},
                     standing={"by": ["client.ip/64", "user"], "file": f"{tmp_path}/standing.db"})
    with Weir(tmp_path, rules, admin=None) as weir:
        assert weir.check(ip=BAD).status == 200
        assert example_check(weir.config, f"client.ip={BAD}").startswith("allowed")
        ban = run_weir("ban", BAD, "10m", "--yes", "--reason", "abuse", "--admin", weir.admin_address,
                       "--token", "s3cret")
        assert ban.returncode == 0, ban.stderr
        reply = weir.check(ip=BAD).json
        assert reply["standing"]["level"] == "suspended" and reply["standing"]["reason"] == "abuse"
        assert 0 < reply["retry_after_ms"] <= 600000
        assert example_check(weir.config, f"client.ip={BAD}") == "denied by standing\n"
        explained = run_weir("explain", "-c", weir.config, "--ip", BAD).stdout
        assert f"standing suspended, of client.ip={BAD}, by an operator" in explained
        assert "all: not asked: the caller's standing denies" in explained
        assert "The request is denied by the caller's standing, retry after" in explained


# --- Replay ---------------------------------------------------------------------------------------

def test_a_replay_has_the_lists_and_no_file(tmp_path):
    trace, decisions = tmp_path / "trace", tmp_path / "decisions"
    lines = [{"t": "1700000000.0", "path": "/api/x", "ip": ip} for ip in (BAD, PARTNER, OTHER)]
    lines.append({"t": "1700000001.0", "path": "/api/x", "attributes": {"user": "mallory"}})
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = run_weir("replay", "-c", EXAMPLE / "weir.yaml", "-d", decisions, trace)
    assert done.returncode == 0, done.stderr
    assert "1 requests were denied for the standing of their caller: 1 suspended, 0 revoked" \
        in done.stdout
    seen = [json.loads(line) for line in decisions.read_text(encoding="utf-8").splitlines()]
    assert [one.get("standing") for one in seen] == ["suspended", "trusted", None, "throttled"]
    assert [one["allowed"] for one in seen] == [False, True, True, True]
    assert [[limit["name"] for limit in one["limits"]] for one in seen] == [
        [], ["partners"], ["api"], ["api"]]
