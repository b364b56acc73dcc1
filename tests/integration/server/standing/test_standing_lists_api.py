# SPDX-License-Identifier: Apache-2.0
"""The list files of standing over the admin API: which are in force, what came of reading them, and what
they have."""

import json
import os
import signal
import time
import urllib.parse

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of

LIMIT = {"name": "all", "key": ["client.ip"], "rate": "1000/s"}
KEY = "a-secret-key-0123456789"


@pytest.fixture(name="weir")
def fixture_weir(tmp_path):
    write(tmp_path, "networks.txt", "# since March\n203.0.113.0/24\n192.0.2.7\n2001:db8:bad::/48\n")
    write(tmp_path, "users.txt", "".join(f"user{i:04}\n" for i in range(1500)))
    write(tmp_path, "keys.txt", f"{KEY}\n")
    lists = [{"file": "networks.txt", "by": "client.ip", "level": "suspended", "reason": "listed network"},
             {"file": "users.txt", "by": "user", "level": "throttled"},
             {"file": "keys.txt", "by": "header.x-api-key", "level": "revoked"}]
    standing = {"by": ["client.ip/64", "user", "header.x-api-key"], "lists": lists}
    with Weir(tmp_path, rules_of(LIMIT, standing=standing)) as weir:
        yield weir


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def get(weir, path, **parameters):
    """An answer; what reads files meanwhile is waited for."""
    found = {}

    def asked():
        with weir.admin() as client:
            reply = client.request("GET", f"{path}?{urllib.parse.urlencode(parameters)}")
        found.update(status=reply.status, json=json.loads(reply.body))
        return "files are being read" not in reply.body.decode()

    wait_until(asked, what=path)
    return found["status"], found["json"]


def lists(weir, **parameters):
    status, answer = get(weir, "/v1/standing/lists", **parameters)
    assert status == 200, answer
    return answer["lists"]


def entries(weir, **parameters):
    status, answer = get(weir, "/v1/standing/lists/entries", **parameters)
    assert status == 200, answer
    return answer


def values(weir, **parameters):
    return [entry["value"] for entry in entries(weir, **parameters)["entries"]]


def test_the_files_in_force_say_what_came_of_reading_them(weir, tmp_path):
    found, now = lists(weir), time.time()
    assert [(one["file"], one["kind"], one["level"], one["reason"], one["entries"]) for one in found] == [
        (str(tmp_path / "networks.txt"), "client.ip", "suspended", "listed network", 3),
        (str(tmp_path / "users.txt"), "user", "throttled", "", 1500),
        (str(tmp_path / "keys.txt"), "header.x-api-key", "revoked", "", 1)]
    assert all(one["without_room"] == 0 and one["error"] is None for one in found)
    assert all(os.stat(one["file"]).st_mtime_ns // 10**6 <= one["read_ms"] <= now * 1000 for one in found)
    assert [one["kind"] for one in lists(weir, level="throttled")] == ["user"]
    assert [one["level"] for one in lists(weir, kind="client.ip")] == ["suspended"]


def test_a_file_that_a_reload_cannot_read_has_the_error_and_stays_in_force(weir, tmp_path):
    first = lists(weir)
    write(tmp_path, "networks.txt", "203.0.113.0/24\nno network\n")
    assert "reload_failed" in weir.reload()
    networks, users, _ = lists(weir)
    assert f"{tmp_path}/networks.txt:2: not a network" in networks["error"] and users["error"] is None
    assert networks["entries"] == 3 and networks["read_ms"] == first[0]["read_ms"]
    answer = entries(weir, file=networks["file"])
    assert [one["value"] for one in answer["entries"]] == ["203.0.113.0/24"]
    assert answer["changed"] == [networks["file"]] and "networks.txt:2" in answer["errors"][0]
    write(tmp_path, "networks.txt", "203.0.113.0/24\n198.51.100.0/24\n")
    assert "event=reloaded" in weir.reload()
    networks = lists(weir)[0]
    assert networks["error"] is None and networks["entries"] == 2 and networks["read_ms"] >= first[0]["read_ms"]
    assert entries(weir, file=networks["file"])["changed"] == []


def test_entries_come_by_pages_over_all_files(weir):
    answer = entries(weir)
    assert len(answer["entries"]) == 100 and answer["more"] and answer["changed"] == answer["errors"] == []
    assert answer["entries"][0] == {"kind": "client.ip", "value": "203.0.113.0/24", "level": "suspended",
                                    "reason": "listed network", "file": lists(weir)[0]["file"], "line": 2}
    assert len(entries(weir, count=5000)["entries"]) == 1000
    last = entries(weir, skip=1500, count=1000)
    assert len(last["entries"]) == 4 and not last["more"]
    seen = [value for skip in range(0, 1504, 700) for value in values(weir, skip=skip, count=700)]
    assert len(seen) == len(set(seen)) == 1504
    assert not entries(weir, count=4, skip=1500)["more"] and entries(weir, count=3, skip=1500)["more"]


@pytest.mark.parametrize("value, found", [
    ("203.0.113.9", ["203.0.113.0/24"]), ("203.0.113.128/25", ["203.0.113.0/24"]),
    ("203.0.0.0/16", ["203.0.113.0/24"]), ("192.0.2.7", ["192.0.2.7/32"]), ("192.0.2.8", []),
    ("2001:db8:bad::1", ["2001:db8:bad::/48"]), ("2001:db8:good::", []), ("user1499", ["user1499"]),
    ("149", [f"user{i:04}" for i in (149, 1149, *range(1490, 1500))])])
def test_an_address_finds_its_networks_and_a_text_what_has_it(weir, value, found):
    assert values(weir, value=value) == found


def test_a_secret_is_shown_and_found_by_its_digest_only(weir):
    shown, = values(weir, kind="header.x-api-key")
    assert shown.startswith("sha256:") and len(shown) == 71
    assert values(weir, value=KEY) == values(weir, value=shown) == [shown]
    assert values(weir, value=KEY[:8]) == [], "a part of a secret finds nothing"


@pytest.mark.parametrize("parameters, status", [
    ({"file": "/etc/passwd"}, 404), ({"kind": "org"}, 404), ({"level": "great"}, 400), ({"by": "ann"}, 400),
    ({"count": "many"}, 400)])
def test_what_no_rule_names_is_refused(weir, parameters, status):
    answer = get(weir, "/v1/standing/lists/entries", **parameters)
    assert answer[0] == status and answer[1]["detail"], answer


def test_without_standing_there_are_no_lists(tmp_path):
    with Weir(tmp_path, rules_of(LIMIT)) as weir:
        assert get(weir, "/v1/standing/lists")[0] == 404
        assert get(weir, "/v1/standing/lists/entries")[0] == 404


def test_lists_without_room_say_so(tmp_path):
    write(tmp_path, "users.txt", "".join(f"user{i}\n" for i in range(3000)))
    standing = {"by": ["user"], "lists": [{"file": "users.txt", "by": "user", "level": "warned"}], "entries": 1000}
    with Weir(tmp_path, rules_of(LIMIT, standing=standing)) as weir:
        found, = lists(weir)
        assert found["entries"] == 3000 and found["without_room"] == 2000, found
        assert "values of lists that the map has no room for" in weir.text()


def test_a_reload_and_looks_at_the_same_time_both_end(weir, tmp_path):
    for round_ in range(5):
        os.utime(tmp_path / "users.txt")
        weir.signal(signal.SIGHUP)
        assert len(values(weir, kind="user", count=1000)) == 1000
        weir.wait_event("reloaded", round_ + 1)
