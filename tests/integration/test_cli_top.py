# SPDX-License-Identifier: Apache-2.0
"""`weir top`, and `weir explain --state`, beside a running server."""

import socket
import subprocess
import threading

import pytest

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
    assert ["all", "4", "[]"] in table
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


@pytest.mark.parametrize("answer, told", [
    (http(b"[1, 2"), "not the answer of an admin listener"),
    (http(b"[]"), "not the answer of an admin listener"),
    (http(b"", "401 Unauthorized"), "/v1/limits: status 401 (--token?)"),
    (http(b'{"detail": "name the host"}', "403 Forbidden"), "/v1/limits: status 403: name the host"),
    (http(b"no", "404 Not Found"), "/v1/limits: status 404"),
    (http(b"x", "302 Found\r\nLocation: http://127.0.0.1:1/"), "/v1/limits: status 302"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "with 99 bytes"),
    (b"SSH-2.0-OpenSSH\r\n", "HTTP/0.9"),
])
def test_an_answer_that_is_none_is_a_failure_with_a_reason(answer, told):
    address, thread, _ = answer_once(answer)
    done = run_weir("top", "--admin", address, "--once")
    thread.join()
    assert done.returncode == 1
    assert done.stderr.startswith(f"weir: {address}: ") and told in done.stderr


@pytest.mark.parametrize("options, env", [(["--token", "s3cret"], {"WEIR_ADMIN_TOKEN": "other"}),
                                          ([], {"WEIR_ADMIN_TOKEN": "s3cret"})])
def test_the_token_is_sent_from_the_option_or_the_environment(options, env):
    address, thread, asked = answer_once(http(b'{"limits": []}'))
    done = run_weir("top", "--admin", address, "--once", *options, env=env)
    thread.join()
    assert done.returncode == 0
    assert asked[0].startswith("GET /v1/limits HTTP/1.1\r\n")
    assert "\r\nAuthorization: Bearer s3cret\r\n" in asked[0]


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
