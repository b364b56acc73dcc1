# SPDX-License-Identifier: Apache-2.0
"""Penalties: what strikes do to the standing of callers, over one server's life and the next."""

import json
import os
import re
import subprocess
from pathlib import Path

from daemon.receiver import Receiver
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

ROOT = Path(__file__).parents[3]
LOGIN = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip/64"], "rate": "2/d",
         "algorithm": "fixed_window"}
LADDER = ["warn 1h", "throttle 1h", "suspend 10min", "suspend 1h"]
BRUTE = {"name": "brute-force", "key": ["client.ip/64"], "strikes": "2/h", "for": ["login"],
         "ladder": LADDER}


def start(folder, *penalties, limits=(LOGIN,), by=("client.ip/64", "user"), **parts):
    """A server with these penalties whose admin listener is a Unix socket in the folder."""
    rules = rules_of(*limits, standing={"by": list(by), "file": str(folder / "standing.db")},
                     penalties=list(penalties or (BRUTE,)),
                     server={"admin": {"address": f"unix:{folder}/admin"}}, **parts)
    return Weir(folder, rules, "--workers", "2", admin=None)


def login(weir, ip="192.0.2.7", **fields):
    return weir.check(ip=ip, path="/login", **fields).json


def moves(weir, count):
    """The `count`th move: its line in the log, once the history has it too. It is in force before."""
    line = weir.wait_event("penalty_moved", count)
    wait_until(lambda: weir.metrics()["weir_standing_history_jobs"] == 0, what="the history")
    return line


def fields_of(line):
    return dict(field.split("=", 1) for field in line.split() if "=" in field)


def strike_until(weir, count, ip="192.0.2.7", first=1, **fields):
    """Requests, until the log has `count` moves: after 2 that are allowed each third one moves."""
    for move in range(first, count + 1):
        while True:
            answer = login(weir, ip, **fields)
            if not answer["allowed"]:
                break
        for _ in range(2):
            assert not login(weir, ip, **fields)["allowed"]
        moves(weir, move)


def show(weir, caller):
    done = subprocess.run([weir_path(), "standing", "show", caller,
                           f"--admin=unix:{weir.folder}/admin"], capture_output=True, text=True,
                          timeout=60, check=True)
    return done.stdout


def command(weir, *arguments):
    sure = ["--yes"] if arguments[0] == "ban" or arguments[:2] == ("standing", "set") else []
    done = subprocess.run([weir_path(), *arguments, *sure, f"--admin=unix:{weir.folder}/admin"],
                          capture_output=True, text=True, timeout=60, check=True,
                          env=os.environ | {"USER": "eve", "SUDO_USER": ""})
    return done.stdout


def entry_of(weir, **value):
    """What is in force, and the steps."""
    with weir.admin() as client:
        query = "&".join(f"{name}={text}" for name, text in value.items())
        return json.loads(client.request("GET", f"/v1/standing?{query}").body)


def test_the_example_of_the_docs_does_what_they_say(tmp_path):
    page = (ROOT / "docs" / "penalties.md").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "penalties" / "weir.yaml").read_text(encoding="utf-8")
    for line in re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)[0].splitlines():
        assert line in example, line
    rules = example.replace("file: standing.db", f"file: {tmp_path}/standing.db")
    rules += f"server: {{ admin: {{ address: 'unix:{tmp_path}/admin' }} }}\n"
    with Weir(tmp_path, rules, admin=None) as weir:
        assert all(login(weir)["allowed"] for _ in range(10))
        for move in range(3):
            assert not any(login(weir)["allowed"] for _ in range(6))
            moves(weir, move + 1)
        assert login(weir)["denied_by"] == "standing"
        shown = show(weir, "192.0.2.7").splitlines()
        result = page[page.index("$ weir standing show"):].splitlines()[1:9]
        times = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d")
        assert [times.sub("T", line) for line in shown] == [times.sub("T", line) for line in result]
        line = fields_of(moves(weir, 3))
        shown = fields_of(page[page.index("event=penalty_moved"):].splitlines()[0])
        assert line | {"until_ms": "", "time": "", "level": ""} == \
            shown | {"until_ms": "", "time": "", "level": ""}


def test_brute_force_from_one_network_climbs_the_ladder_and_is_suspended(tmp_path):
    with start(tmp_path) as weir:
        # Another address of the same /64 for every request.
        for i in range(2):
            assert login(weir, f"2001:db8:0:7::{i}")["allowed"]
        for i in range(9):
            answer = login(weir, f"2001:db8:0:7::{i + 100}")
            assert answer["denied_by"] == "login"
            if i % 3 == 2:
                moves(weir, i // 3 + 1)
        line = fields_of(moves(weir, 3))
        assert (line["step"], line["steps"], line["standing"]) == ("3", "4", "suspended")
        assert line["penalty"] == "brute-force" and line["value"] == "2001:db8:0:7::/64"
        answer = login(weir, "2001:db8:0:7::ffff")
        assert answer["denied_by"] == "standing"
        assert answer["standing"]["reason"] == "brute-force"
        assert 595000 < answer["standing"]["ends_after_ms"] <= 600000
        assert weir.check(ip="2001:db8:0:7::1", path="/other").json["denied_by"] == "standing"
        assert login(weir, "2001:db8:0:8::1")["allowed"]  # the neighbour
        # Refusals by standing are no strikes, so it goes no higher.
        for _ in range(6):
            login(weir, "2001:db8:0:7::1")
        result = entry_of(weir, kind="client.ip", value="2001:db8:0:7::")
        assert result["penalties"][0]["step"] == 3


def test_show_history_and_metrics_tell_of_each_move(tmp_path):
    with start(tmp_path) as weir:
        strike_until(weir, 2)
        shown = show(weir, "192.0.2.7")
        assert "throttled" in shown and "penalty brute-force" in shown
        assert "brute-force: step 2 of 4  throttled  until " in shown
        changes = command(weir, "standing", "history", "192.0.2.7").splitlines()
        assert [line.split()[2:4] for line in changes[1:]] == [["warned", "throttled"], ["-", "warned"]]
        result = entry_of(weir, kind="client.ip", value="192.0.2.7")
        assert [move["level"] for move in result["moves"]] == ["throttled", "warned"]
        step = result["penalties"][0]
        assert step["forgiven_ms"] - step["until_ms"] == 24 * 3600 * 1000
        metrics = weir.metrics()
        assert metrics['weir_penalty_strikes_total{penalty="brute-force"}'] == 6
        assert metrics['weir_penalty_moves_total{penalty="brute-force",standing="warned"}'] == 1
        assert metrics['weir_penalty_moves_total{penalty="brute-force",standing="throttled"}'] == 1
        assert metrics['weir_penalty_lost_total{cause="queue"}'] == 0


def test_kill_9_and_a_restart_keep_the_step(tmp_path):
    with start(tmp_path) as weir:
        strike_until(weir, 2)
        weir.kill()
        weir.start()
        assert entry_of(weir, kind="client.ip", value="192.0.2.7")["in_force"]["level"] == "throttled"
        strike_until(weir, 1)
        assert fields_of(moves(weir, 1))["step"] == "3"
        assert login(weir)["denied_by"] == "standing"
        weir.stop()
        weir.start()
        assert login(weir)["denied_by"] == "standing"


def test_an_operator_forgives(tmp_path):
    with start(tmp_path) as weir:
        strike_until(weir, 3)
        assert login(weir)["denied_by"] == "standing"
        command(weir, "unban", "192.0.2.7", "--reason", "a test")
        assert login(weir)["denied_by"] == "login"
        assert entry_of(weir, kind="client.ip", value="192.0.2.7")["penalties"] == []
        strike_until(weir, 4, first=4)
        assert fields_of(moves(weir, 4))["step"] == "1"
        # Also where no term runs: the step alone.
        weir.stop()


def test_a_step_without_a_term_is_forgiven_by_an_operator_too(tmp_path):
    with start(tmp_path, BRUTE | {"ladder": ["warn 1s", "suspend 1h"]}) as weir:
        strike_until(weir, 1)
        wait_until(lambda: not entry_of(weir, kind="client.ip", value="192.0.2.7")["in_force"],
                   what="the end of the warning")
        command(weir, "standing", "clear", "192.0.2.7")
        strike_until(weir, 2, first=2)
        assert fields_of(moves(weir, 2))["standing"] == "warned"


def test_steps_are_forgiven_with_time(tmp_path):
    penalty = BRUTE | {"ladder": ["warn 1s", "throttle 1s", "suspend 1h"], "forgive": "1s"}
    with start(tmp_path, penalty) as weir:
        strike_until(weir, 1)
        strike_until(weir, 2, first=2)
        wait_until(lambda: entry_of(weir, kind="client.ip", value="192.0.2.7")["penalties"] == [],
                   what="both steps forgiven")
        strike_until(weir, 3, first=3)
        assert fields_of(moves(weir, 3))["was"] == "0"


def test_strikes_that_move_nothing_put_forgiveness_off(tmp_path):
    penalty = BRUTE | {"strikes": "50/h", "ladder": ["warn 1s", "suspend 1h"], "forgive": "1h"}
    with start(tmp_path, penalty) as weir:
        for _ in range(2 + 51):
            login(weir)
        moves(weir, 1)
        before = entry_of(weir, kind="client.ip", value="192.0.2.7")["penalties"][0]
        wait_until(lambda: not entry_of(weir, kind="client.ip", value="192.0.2.7")["in_force"],
                   what="the end of the warning")
        login(weir)
        wait_until(lambda: entry_of(weir, kind="client.ip", value="192.0.2.7")["penalties"][0]
                   ["forgiven_ms"] > before["forgiven_ms"], what="a later forgiveness")


def test_1000_addresses_of_one_organisation_move_the_organisation(tmp_path):
    limit = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip"], "rate": "1/d",
             "algorithm": "fixed_window"}
    penalty = {"name": "credential-stuffing", "key": ["org"], "strikes": "500/h", "for": ["login"],
               "ladder": ["suspend 1h", "revoke"]}
    with start(tmp_path, penalty, limits=(limit,), by=("client.ip/64", "org")) as weir:
        batch = [{"ip": f"10.0.{i // 250}.{i % 250 + 1}", "path": "/login",
                  "attributes": {"org": "acme"}} for i in range(1000)]
        with weir.client() as client:
            client.post("/v1/check", batch[:500])
            client.post("/v1/check", batch[500:])
            client.post("/v1/check", batch[:500])
            assert "event=penalty_moved" not in weir.text()
            client.post("/v1/check", batch[500:501])
        line = fields_of(moves(weir, 1))
        assert (line["kind"], line["value"], line["standing"]) == ("org", "acme", "suspended")
        answer = weir.check(ip="172.16.0.1", path="/x", attributes={"org": "acme"}).json
        assert answer["denied_by"] == "standing"
        assert weir.check(ip="10.0.0.1", path="/x", attributes={"org": "other"}).json["allowed"]


def test_one_bad_user_among_50_behind_a_nat(tmp_path):
    limit = {"name": "login", "match": {"path": "/login"}, "key": ["user"], "rate": "2/d",
             "algorithm": "fixed_window"}
    penalty = {"name": "brute-force", "key": ["user"], "strikes": "2/h", "for": ["login"],
               "ladder": ["suspend 10min"]}
    with start(tmp_path, penalty, limits=(limit,)) as weir:
        for _ in range(5):
            login(weir, "203.0.113.9", attributes={"user": "mallory"})
        moves(weir, 1)
        answer = login(weir, "203.0.113.9", attributes={"user": "mallory"})
        assert answer["denied_by"] == "standing"
        for i in range(49):
            assert login(weir, "203.0.113.9", attributes={"user": f"user{i}"})["allowed"]


def report(weir, status, ip="192.0.2.7", path="/login", **fields):
    with weir.client() as client:
        body = {"ip": ip, "path": path, "status": status, **fields}
        return client.post("/v1/report", body).json


def test_reported_outcomes_are_strikes(tmp_path):
    penalty = BRUTE | {"for": [], "outcomes": [401, 403]}
    with start(tmp_path, penalty) as weir:
        for status in (401, 200, 403, 500):
            report(weir, status)
        assert "event=penalty_moved" not in weir.text()
        report(weir, 401)
        assert fields_of(moves(weir, 1))["standing"] == "warned"
        assert weir.metrics()['weir_penalty_strikes_total{penalty="brute-force"}'] == 3


def reserve(weir, ip="192.0.2.7", path="/login", **fields):
    with weir.client() as client:
        answer = client.post("/v1/reserve", {"ip": ip, "path": path, "cost": 1, **fields}).json
    assert answer["allowed"]
    return answer["reservation"]


def settle(weir, token, way="settle", **outcome):
    with weir.client() as client:
        return client.post(f"/v1/{way}", {"reservation": token, **outcome}).json


def test_settlements_are_strikes_as_reports_are(tmp_path):
    """By the token alone: it says whom the outcome is held against."""
    limit = LOGIN | {"rate": "100/d"}
    with start(tmp_path, BRUTE | {"outcomes": [401, 403]}, limits=(limit,)) as weir:
        tokens = [reserve(weir) for _ in range(6)]
        assert not settle(weir, tokens[0], status=200)["repeated"]
        assert settle(weir, tokens[0], status=401)["repeated"]
        settle(weir, tokens[1], cost=1)
        settle(weir, tokens[2], status=401)
        assert settle(weir, tokens[2], status=401)["repeated"]
        settle(weir, tokens[3], "report", status=403)
        assert weir.metrics()['weir_penalty_strikes_total{penalty="brute-force"}'] == 2
        report(weir, 401)
        line = fields_of(moves(weir, 1))
        assert (line["standing"], line["value"]) == ("warned", "192.0.2.7/32")
        # After a restart the token counts as before; where no limit applies it counts, too.
        weir.kill()
        weir.start()
        report(weir, 401)
        settle(weir, reserve(weir, path="/other"), outcome="401")
        token = reserve(weir, path="/other")
        assert not settle(weir, token, status=401)["repeated"]
        assert fields_of(moves(weir, 1))["standing"] == "throttled"
        assert settle(weir, token, status=401)["repeated"]


def test_a_settlement_holds_a_key_responsible_by_its_digest(tmp_path):
    limit = {"name": "login", "key": ["header.x-api-key"], "rate": "9/d"}
    penalty = {"name": "abuse", "key": ["header.x-api-key"], "strikes": "1/h", "outcomes": [401],
               "ladder": ["suspend 1h"]}
    with start(tmp_path, penalty, limits=(limit,), by=("header.x-api-key",)) as weir:
        hunter = {"attributes": {"header.x-api-key": "hunter2"}}
        for _ in range(2):
            settle(weir, reserve(weir, **hunter), status=401)
        moves(weir, 1)
        assert weir.check(**hunter).json["standing"]["level"] == "suspended"
        assert "suspended" in show(weir, "header.x-api-key=hunter2")
        assert "hunter2" not in weir.text()


def explain(weir, *request):
    """The lines about penalties."""
    done = subprocess.run([weir_path(), "explain", "--config", str(weir.config), *request],
                          timeout=60, capture_output=True, text=True, check=True)
    text = done.stdout[done.stdout.index("penalty "):].splitlines()
    return [re.sub(r"\d{4}-\d\d-\S+", "T", line.strip()) for line in text[:-1]]


def test_explain_shows_who_is_where_on_the_ladder(tmp_path):
    penalties = [BRUTE | {"outcomes": [401, "5xx"]},
                 {"name": "users", "key": ["user"], "strikes": "3/d", "for": [], "outcomes": [403],
                  "ladder": ["suspend 1d", "revoke"]}]
    request = ["--path", "/login", "--ip", "192.0.2.7"]
    with start(tmp_path, *penalties) as weir:
        assert explain(weir, *request) == [
            "penalty brute-force",
            "strike a denial by login; a reported status 401, 500-599",
            "value  client.ip=192.0.2.7/32",
            "step   none of 4",
            "next   after more than 2 strikes in 1h: warned for 1h",
            "penalty users",
            "strike none: the request has no user that counts"]
        strike_until(weir, 2)
        assert explain(weir, *request)[3:5] == [
            "step   2 of 4: throttled until T",
            "next   after more than 2 strikes in 1h: suspended for 10min"]
        assert explain(weir, "--path", "/x", "--ip", "192.0.2.7")[1] == \
            "strike a reported status 401, 500-599"
        strike_until(weir, 3, first=3)
        assert explain(weir, *request)[1] == \
            "strike none: the caller is suspended, and `strikes_while_suspended` is not set"
        command(weir, "allow", "192.0.2.7")
        assert explain(weir, *request)[1] == "strike none: the caller is trusted"
        command(weir, "unban", "192.0.2.7")
        assert explain(weir, *request)[3] == "step   none of 4"
        weir.kill()
        assert explain(weir, *request)[3] == "step   none of 4"


def test_a_move_leaves_by_webhook(tmp_path):
    with Receiver() as receiver:
        with start(tmp_path, webhook=receiver.settings()) as weir:
            strike_until(weir, 1)
            wait_until(lambda: len(receiver.messages) == 1, what="a message")
            message = json.loads(receiver.messages[0].body)
            data = message["data"]
            assert message["type"] == "penalty.move"
            assert data | {"ends_at": ""} == {
                "penalty": "brute-force", "kind": "client.ip", "value": "192.0.2.7/32", "step": 1,
                "steps": 4, "standing": "warned", "ends_at": ""}
            assert data["ends_at"].endswith("Z")


def test_an_api_key_is_nowhere_but_as_its_digest(tmp_path):
    limit = {"name": "login", "key": ["header.x-api-key"], "rate": "2/d",
             "algorithm": "fixed_window"}
    penalty = {"name": "abuse", "key": ["header.x-api-key"], "strikes": "2/h",
               "ladder": ["warn 1h", "revoke"]}
    with start(tmp_path, penalty, limits=(limit,), by=("header.x-api-key",)) as weir:
        for move, times in enumerate((2 + 3, 3)):
            for _ in range(times):
                weir.check(attributes={"header.x-api-key": "hunter2"})
            moves(weir, move + 1)
        answer = weir.check(attributes={"header.x-api-key": "hunter2"}).json
        assert answer["standing"]["level"] == "revoked"
        assert "hunter2" not in weir.text()
        assert "revoked" in show(weir, "header.x-api-key=hunter2")
        weir.kill()
        for name in os.listdir(tmp_path):
            if name.startswith("standing"):
                assert b"hunter2" not in (tmp_path / name).read_bytes()
        weir.start()
        answer = weir.check(attributes={"header.x-api-key": "hunter2"}).json
        assert answer["standing"]["level"] == "revoked"


def test_shadow_limits_and_dry_runs_give_no_strikes(tmp_path):
    limits = ({"name": "watched", "key": ["client.ip"], "rate": "1/d", "shadow": True,
               "algorithm": "fixed_window"}, LOGIN)
    with start(tmp_path, BRUTE | {"for": ["login"]}, limits=limits) as weir:
        for _ in range(9):
            weir.check(ip="192.0.2.7", path="/other")
        for _ in range(2):
            login(weir)
        for _ in range(9):
            assert not login(weir, dry_run=True)["allowed"]
        assert weir.metrics()['weir_penalty_strikes_total{penalty="brute-force"}'] == 0


def test_strikes_while_suspended(tmp_path):
    penalty = BRUTE | {"ladder": ["suspend 10min", "suspend 1h"], "strikes_while_suspended": True}
    with start(tmp_path, penalty) as weir:
        strike_until(weir, 1)
        for _ in range(3):
            assert login(weir)["denied_by"] == "standing"
        assert fields_of(moves(weir, 2))["step"] == "2"
        assert login(weir)["standing"]["ends_after_ms"] > 3500000


def test_a_weaker_term_is_back_when_a_stricter_one_of_another_penalty_ends(tmp_path):
    harsh = {"name": "harsh", "key": ["client.ip/64"], "strikes": "5/h", "for": ["login"],
             "ladder": ["suspend 1s"]}
    mild = BRUTE | {"name": "mild", "ladder": ["throttle 1h"]}
    with start(tmp_path, mild, harsh) as weir:
        for times in (2 + 3, 2):
            for _ in range(times):
                login(weir)
            moves(weir, 1)
        login(weir)  # the sixth strike: mild once more, and harsh
        moves(weir, 3)
        assert login(weir)["denied_by"] == "standing"

        def level():
            now = entry_of(weir, kind="client.ip", value="192.0.2.7")["in_force"]
            return now and now["level"]

        wait_until(lambda: level() == "throttled", what="the weaker term")


def test_a_reload_changes_ladders_and_keeps_steps_and_counters(tmp_path):
    with start(tmp_path) as weir:
        strike_until(weir, 3)
        other = BRUTE | {"name": "another", "strikes": "900/h"}
        rules = json.loads(weir.config.read_text())
        rules["penalties"] = [other, BRUTE | {"ladder": LADDER[:2]}]
        weir.write_rules(json.dumps(rules))
        assert "event=reloaded" in weir.reload()
        command(weir, "standing", "show", "192.0.2.7")
        metrics = weir.metrics()
        assert metrics['weir_penalty_strikes_total{penalty="brute-force"}'] == 9
        assert metrics['weir_penalty_strikes_total{penalty="another"}'] == 0
        step = entry_of(weir, kind="client.ip", value="192.0.2.7")["penalties"][0]
        assert step["standing"] == "throttled" and step["step"] == 3
