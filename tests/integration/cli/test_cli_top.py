# SPDX-License-Identifier: Apache-2.0
"""`weir top`, and `weir explain --state`, beside a running server."""

import json
import re
import socket
import subprocess
import threading

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import run_weir, weir_path

LIMITS = [
    {"name": "api", "match": {"path": "/api"}, "key": ["user"], "algorithm": "gcra",
     "rate": "1/hour", "burst": 3},
    {"name": "all", "key": [], "rate": "2/hour", "shadow": True},
    {"name": "never", "match": {"path": "/never"}, "key": [], "rate": "1/hour"},
]


def rows(text):
    return [line.split() for line in text.splitlines()]


@pytest.fixture(scope="module", name="weir")
def fixture_weir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weir")
    rules = rules_of(*LIMITS, server={"admin": {"address": "127.0.0.1:0", "token": "s3cret"}},
                     state={"file": str(folder / "state"), "size": "1MiB"})
    with Weir(folder, rules, "--workers", "2", admin=None) as weir:
        for _ in range(5):
            weir.check(path="/api", attributes={"user": "alice"})
        weir.check(path="/api", attributes={"user": "bob"})
        yield weir


def top(weir, *options, token="s3cret"):
    return run_weir("top", "--admin", weir.admin_address, "--token", token, *options)


def test_top_shows_verdicts_and_the_most_denied_keys(weir):
    done = top(weir, "--once")
    assert (done.returncode, done.stderr) == (0, "")
    table = rows(done.stdout)
    assert ["api", "gcra", "4", "2", "-", "-"] in table
    assert ["all*", "sliding_window", "2", "4", "-", "-"] in table
    assert ["never", "sliding_window", "0", "0", "-", "-"] in table
    assert ["api", "2", "user=alice"] in table
    assert ["all*", "4", "[]"] in table  # it denies nobody
    assert "bob" not in done.stdout
    assert "user=alice" not in top(weir, "--once", "--count", "0").stdout


def test_top_shows_what_was_borrowed_and_what_candidates_say(tmp_path, weir):
    rules = rules_of({"name": "own", "key": ["user"], "rate": "2/366d", "pool": "pool",
                      "candidate": "1/366d"},
                     {"name": "pool", "match": {"path": "/x"}, "key": [], "rate": "2/366d",
                      "borrow": True})
    with Weir(tmp_path, rules) as borrows:
        for _ in range(5):
            borrows.check(attributes={"user": "ann"})
        done = run_weir("top", "--admin", borrows.admin_address, "--once")
    assert (done.returncode, done.stderr) == (0, "")
    table = rows(done.stdout)
    assert ["own", "sliding_window", "2", "1", "-", "-"] in table
    assert table[table.index(["BORROWED", "BY", "REQUESTS", "POOL"]) + 1] == ["own", "2", "pool"]
    heads = ["CANDIDATE", "OF", "SAME", "STRICTER", "LOOSER", "SKIPPED"]
    assert table[table.index(heads) + 1] == ["own", "4", "1", "0", "0"]
    plain = top(weir, "--once").stdout
    assert "BORROWED" not in plain and "CANDIDATE" not in plain


FULL = 12  # limits, all of which lack room


def flood(weir, limit, keys=2000):
    """Uses up a limit by many keys."""
    checks = [{"path": f"/{limit}", "ip": f"10.{limit}.{i // 250}.{i % 250}", "cost": 2} for i in range(keys)]
    with weir.client() as client:
        for i in range(0, len(checks), 1000):
            client.post("/v1/check", checks[i:i + 1000])


@pytest.fixture(scope="module", name="full")
def fixture_full(tmp_path_factory):
    """A small state and far more keys than it has room for; the first limit has two states a key."""
    limits = [{"name": f"l{i}", "match": {"path": f"/{i}"}, "key": ["client.ip"], "algorithm": "gcra",
               "rate": ["2/day", "3/week"] if i == 0 else "2/day"} for i in range(FULL)]
    quiet = {"name": "quiet", "match": {"path": "/quiet"}, "key": [], "rate": "2/day"}
    with Weir(tmp_path_factory.mktemp("full"), rules_of(*limits, quiet, state={"size": "256KiB"})) as weir:
        for i in range(FULL):
            flood(weir, i, 2000 + 100 * i)
        yield weir


def test_keys_without_room_are_logged_once_and_not_in_a_flood(full):
    full.wait_event("no_room_for_keys", 5)
    pattern = re.compile(r"event=no_room_for_keys limit=(l\d+(?:#2)?) evictions=(\d+) overflows=(\d+) reason=")
    lines = [line for line in full.text().splitlines() if "event=no_room_for_keys" in line]
    named = [pattern.search(line) for line in lines if " limit=" in line]
    assert all(named) and 5 <= len(named) <= 2 * 10  # of a minute, and perhaps of the next one
    assert all(int(line[2]) + int(line[3]) > 0 for line in named)
    assert "limit=quiet" not in full.text()


def test_readyz_tells_of_keys_without_room_and_stays_ready(full):
    def ready():
        with full.admin() as admin:
            answer = admin.request("GET", "/readyz")
        assert answer.status == 200
        return answer.body.decode()

    flood(full, 3)
    wait_until(lambda: "no room" in ready())
    with full.admin() as admin:  # from a web page whose name points here: no names of limits
        answer = admin.request("GET", "/readyz", {"Host": "rebound.example"})
    assert re.fullmatch(r"ready: no room for all keys: \d+ evictions and \d+ overflows in the last two minutes\n",
                        answer.body.decode())
    assert re.fullmatch(r"ready: no room for all keys: \d+ evictions and \d+ overflows in the last two minutes "
                        r"\(l\d+(#2)? \d+(, l\d+(#2)? \d+)*(, and \d+ more limits)?\)\n", ready())


def test_the_admin_listener_and_top_tell_of_keys_without_room(full, weir):
    with full.admin() as admin:
        answer = admin.request("GET", "/v1/limits").json
    limits = {limit["name"]: limit["evictions"] + limit["overflows"] for limit in answer["limits"]}
    assert limits["quiet"] == 0 and all(limits[f"l{i}"] > 0 for i in range(FULL))
    assert answer["evictions"] + answer["overflows"] == sum(limits.values())
    done = run_weir("top", "--admin", full.admin_address, "--once")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    begin = [i for i, line in enumerate(lines) if line.startswith("NO ROOM FOR KEYS OF")][0]
    table = rows("\n".join(lines[begin + 1:begin + 12]))
    assert table[0] == ["(all)", str(answer["evictions"]), str(answer["overflows"]), "-", "-"]
    busiest = sorted(limits, key=lambda name: (-limits[name], name))[:10]
    assert [row[0] for row in table[1:]] == busiest
    assert lines[begin + 12] == "and 2 more limits"
    assert "NO ROOM" not in top(weir, "--once").stdout


def test_top_goes_on_and_tells_rates(weir):
    with subprocess.Popen([weir_path(), "top", "--admin", weir.admin_address, "--interval", "1"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={"WEIR_ADMIN_TOKEN": "s3cret"}) as program:
        rounds = 0
        for line in program.stdout:
            rounds += line.startswith("LIMIT")
            if rounds == 2 and line.startswith("api"):
                break
        assert line.split() == ["api", "gcra", "4", "2", "0.0", "0.0"]
        program.kill()


def test_rates_of_thousands_of_limits_whose_order_changes(tmp_path):
    """A limit is found by its name, whatever its place in the round before."""
    names = [f"l{i}" for i in range(5000)]
    body = [http(json.dumps({"limits": [{"name": name, "algorithm": "gcra", "allowed": allowed, "denied": 0}
                                        for name in order]}).encode())
            for allowed, order in ((7, names), (12, names[::-1]))]
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        for answer in body:
            with listener.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    with listener, subprocess.Popen(
            [weir_path(), "top", "--admin", "127.0.0.1:%d" % listener.getsockname()[1], "--interval", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        lines = [line.split() for line in program.stdout]  # until the server is gone
    thread.join()
    first, second = (lines[i + 1:i + 5001] for i, line in enumerate(lines) if line[:1] == ["LIMIT"])
    assert first == [[name, "gcra", "7", "0", "-", "-"] for name in names]
    assert [row[:4] for row in second] == [[name, "gcra", "12", "0"] for name in names[::-1]]
    assert all(float(row[4]) > 0 and float(row[5]) == 0 for row in second)


def test_top_over_a_unix_socket(tmp_path):
    path = tmp_path / "admin.sock"
    with Weir(tmp_path, rules_of(*LIMITS), admin=f"unix:{path}"):
        done = run_weir("top", "--admin", f"unix:{path}", "--once")
    assert (done.returncode, done.stderr) == (0, "")
    assert ["api", "gcra", "0", "0", "-", "-"] in rows(done.stdout)


def answer_once(answer):
    """A server that gives one answer, whatever is asked; returns its address, its thread, and where
    the thread puts what was asked."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked = []

    def serve():
        with listener, listener.accept()[0] as connection:
            asked.append(connection.recv(65536).decode())
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    return "127.0.0.1:%d" % listener.getsockname()[1], thread, asked


def http(body, status="200 OK"):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("answer, result", [
    (http(b"[1, 2"), "not the answer of an admin listener"),
    (http(b"[]"), "not the answer of an admin listener"),
    (http(b"", "401 Unauthorized"), "/v1/limits: status 401 (--token?)"),
    (http(b'{"detail": "name the host"}', "403 Forbidden"), "/v1/limits: status 403: name the host"),
    (http(b"no", "404 Not Found"), "/v1/limits: status 404"),
    (http(b"x", "302 Found\r\nLocation: http://127.0.0.1:1/"), "/v1/limits: status 302"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "with 99 bytes"),
    (b"SSH-2.0-OpenSSH\r\n", "HTTP/0.9"),
])
def test_an_answer_that_is_none_is_a_failure_with_a_reason(answer, result):
    address, thread, _ = answer_once(answer)
    done = run_weir("top", "--admin", address, "--once")
    thread.join()
    assert done.returncode == 1
    assert done.stderr.startswith(f"weir: {address}: ") and result in done.stderr


@pytest.mark.parametrize("options, env", [(["--token", "s3cret"], {"WEIR_ADMIN_TOKEN": "other"}),
                                          ([], {"WEIR_ADMIN_TOKEN": "s3cret"}),
                                          (["--token-file", "FILE"], {"WEIR_ADMIN_TOKEN": "other"})])
def test_the_token_is_sent_from_an_option_or_the_environment(tmp_path, options, env):
    file = tmp_path / "token"
    file.write_text("s3cret\nmore\n", encoding="ascii")
    options = [str(file) if option == "FILE" else option for option in options]
    address, thread, asked = answer_once(http(b'{"limits": []}'))
    done = run_weir("top", "--admin", address, "--once", *options, env=env)
    thread.join()
    assert done.returncode == 0
    assert asked[0].startswith("GET /v1/limits HTTP/1.1\r\n")
    assert "\r\nAuthorization: Bearer s3cret\r\n" in asked[0]


@pytest.mark.parametrize("content, reason", [
    (None, "No such file or directory"), (b"\n", "must be a token"), (b"x" * 513, "must be a token"),
])
def test_a_file_without_a_token_is_an_error_that_names_it(tmp_path, content, reason):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    done = run_weir("grant", "--limit", "a", "--units", "1", "--token-file", file)
    assert done.returncode == 1 and reason in done.stderr
    assert done.stderr.startswith(f"weir: {file}: ") and "xxx" not in done.stderr


def test_fields_that_are_missing_count_as_nothing():
    address, thread, _ = answer_once(http(b'{"limits": [{"name": "odd\\u001b[2J", "denied": -5}, 3]}'))
    done = run_weir("top", "--admin", address, "--once")
    thread.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert ["odd?[2J", "0", "0", "-", "-"] in rows(done.stdout)


def test_no_server_is_a_failure():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "127.0.0.1:%d" % listener.getsockname()[1]
    done = run_weir("top", "--admin", address, "--once")
    assert done.returncode == 1
    assert done.stderr.startswith(f"weir: {address}: ")


def test_explain_looks_into_the_state_that_a_server_is_using(weir):
    def explain(user):
        return run_weir("explain", "--config", weir.config, "--state", weir.folder / "state",
                        "--path", "/api", "--attribute", f"user={user}")

    alice = explain("alice")
    assert (alice.returncode, alice.stderr) == (0, "")
    assert "denies: 0 of 3 remaining, retry after " in alice.stdout
    assert "The request is denied by api, retry after " in alice.stdout
    assert "allows: 2 of 3 remaining" in explain("bob").stdout
    assert "allows: 3 of 3 remaining" in explain("carol").stdout
    assert explain("bob").stdout.count("allows: 2 of 3 remaining") == 1  # nothing was charged
