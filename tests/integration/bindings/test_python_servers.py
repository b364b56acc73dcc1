# SPDX-License-Identifier: Apache-2.0
"""Applications under gunicorn and uvicorn with four workers on one state: exactly the limit is admitted,
also when a worker is killed; leases end with their request, its client or its worker."""

import fcntl
import importlib.util
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon.http import Client, connect, request_bytes
from daemon.waiting import wait_until
from python_package import Server, needs_package

pytestmark = needs_package

LIMIT = 60
RULES = f"""
version: 1
server: {{ headers: draft }}
limits:
  - {{ name: shared, match: {{ path: /shared }}, key: [client.ip], rate: {LIMIT}/h,
      algorithm: sliding_log }}
  - {{ name: slow, match: {{ path: /slow }}, key: [], algorithm: concurrency, limit: 1, life: 1h }}
  - {{ name: spelled, match: {{ path: /spelled/** }}, key: [path], rate: 100/h, algorithm: sliding_log }}
  - {{ name: busy, match: {{ path: /busy }}, key: [], algorithm: concurrency, limit: 1, life: 1h }}
"""
APPS = str(Path(__file__).parent)
GUNICORN = ("gunicorn", "-b", "127.0.0.1:PORT", "--pythonpath", APPS, "-t", "600")
UVICORN = ("uvicorn", "--port", "PORT", "--app-dir", APPS, "--no-proxy-headers", "--workers", "4")


def serve(folder, app, *command):
    program = command[0]
    for module in program, app.split("-")[0]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    (folder / "weir.yaml").write_text(RULES, encoding="utf-8")
    return Server(folder, *command, "python_apps:app", APP=app, RULES=str(folder / "weir.yaml"),
                  STATE=str(folder / "state"))


def pids(server, count):
    """The workers that answer, once there are so many."""
    seen = set()

    def enough():
        seen.add(int(server.request("GET", "/pid").body))
        return len(seen) >= count

    wait_until(enough, what="answers of all workers")
    return seen


def ask(server, count):
    """So many requests, eight at a time; how many were admitted, and a denial."""
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: server.request("GET", "/shared"), range(count)))
    assert {reply.status for reply in replies} <= {200, 429}
    return sum(reply.status == 200 for reply in replies), replies[-1]


@pytest.fixture(scope="module", name="starlette")
def fixture_starlette(tmp_path_factory):
    """One server for all tests of Starlette."""
    with serve(tmp_path_factory.mktemp("starlette"), "starlette", *UVICORN) as server:
        yield server


@pytest.mark.parametrize("app,command", [
    ("flask", (*GUNICORN, "-w", "2", "-k", "gthread", "--threads", "4")),
    ("django-wsgi", (*GUNICORN, "-w", "4")),
    ("django-asgi", (*UVICORN, "--lifespan", "off")),
], ids=["flask-threads", "django-wsgi", "django-asgi"])
def test_workers_admit_exactly_the_limit(tmp_path, app, command):
    with serve(tmp_path, app, *command) as server:
        exactly_the_limit(server)


def exactly_the_limit(server):
    pids(server, 2)
    admitted, denied = ask(server, LIMIT + 40)
    assert admitted == LIMIT
    assert denied.status == 429 and denied["Content-Type"] == "application/problem+json"
    assert int(denied["Retry-After"]) > 0 and denied["RateLimit"].startswith('"shared";r=0')


def spelled(server, target):
    """What remains for a path as a client spells it; None: it cannot be read."""
    with Client(server.address) as client:
        client.send(f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode("ascii"))
        reply = client.reply()
    return None if reply.status == 400 else int(re.search(r'"spelled";r=(\d+)', reply["RateLimit"])[1])


@pytest.mark.parametrize("app,command", [
    ("flask", (*GUNICORN, "-w", "1")), ("django-wsgi", (*GUNICORN, "-w", "1")), ("starlette", UVICORN),
    ("django-asgi", (*UVICORN, "--lifespan", "off"))],
    ids=["flask", "django-wsgi", "starlette", "django-asgi"])
def test_a_path_counts_as_it_was_sent(tmp_path, app, command):
    """Bytes that are no UTF-8 are not those that a server reads instead; what the application would read
    as a slash is a slash, so that no spelling of a path evades a limit."""
    with serve(tmp_path, app, *command) as server:
        wait_until(lambda: spelled(server, "/spelled/ready") is not None, what="the server")
        for first, other, same in (("%ff", "%FE", False), ("%ff%41", "%FF%61", False), ("%C3%A4", "%c3%a4", True),
                                   ("%E6%97%A5", "%E6%9C%AC", False), ("a%2Fb", "a/b", True), ("a%2fc", "a%2Fc", True),
                                   ("%2525", "%25", False), ("%3Fx", "", False), ("%41", "A", True)):
            assert spelled(server, f"/spelled/1/{first}") == 99, first
            assert spelled(server, f"/spelled/1/{other}") == (98 if same else 99), (first, other)
        assert spelled(server, "/spelled%2F2") == 99 and spelled(server, "/spelled/2?q=%2F") == 98
        assert spelled(server, "/spelled/%zz") is None


def test_a_killed_worker_takes_no_count_and_no_lease_with_it(tmp_path):
    with serve(tmp_path, "flask", *GUNICORN, "-w", "4", "--preload") as server:
        workers = pids(server, 4)
        before, _ = ask(server, LIMIT // 2)
        with connect(server.address) as held:
            held.sendall(request_bytes("GET", "/slow"))
            head = b""
            while b"\n" not in head.partition(b"\r\n\r\n")[2]:
                head += held.recv(4096)
            pid = next(pid for pid in workers if str(pid).encode() in head)
            assert server.request("GET", "/slow").status == 429
            os.kill(pid, signal.SIGKILL)
            # Another worker ends the lease, within a second or so.
            wait_until(lambda: server.request("GET", "/pid").status == 200 and status_of(
                server, "/slow") == 200, what="the end of the lease")
        after, _ = ask(server, LIMIT)
        assert before + after == LIMIT


def status_of(server, path):
    """The status of an answer whose body does not end."""
    with connect(server.address) as sock:
        sock.sendall(request_bytes("GET", path))
        head = b""
        while b"\r\n" not in head:
            data = sock.recv(4096)
            if not data:
                return None  # of a worker that has died
            head += data
    return int(head.split()[1])


def test_workers_of_starlette_admit_exactly_the_limit(starlette):
    exactly_the_limit(starlette)


def test_a_client_that_leaves_ends_its_lease(starlette):
    def hold():
        """A connection whose answer does not end; None: it is denied."""
        sock = connect(starlette.address)
        sock.sendall(request_bytes("GET", "/slow"))
        if sock.recv(12) == b"HTTP/1.1 200":
            return sock
        sock.close()
        return None

    for _ in range(3):
        with wait_until(hold, what="the end of the lease"):
            assert status_of(starlette, "/slow") == 429


def test_a_handler_that_does_not_receive_keeps_its_lease_while_it_works(starlette):
    """Else clients that leave would have any number of handlers at work."""
    with open(starlette.folder / "held", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with connect(starlette.address) as sock:
            sock.sendall(request_bytes("GET", "/busy"))
            wait_until((starlette.folder / "begun").exists, what="the handler")
        for _ in range(8):
            assert starlette.request("GET", "/busy").status == 429
    wait_until(lambda: starlette.request("GET", "/busy").status == 200, what="the end of the lease")


HANDSHAKE = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
             "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


def test_a_websocket_holds_its_lease_until_it_is_closed(starlette):
    if importlib.util.find_spec("websockets") is None:
        pytest.skip("websockets is not installed")

    def opens():
        """A connection that is a WebSocket; None: it is denied."""
        client = Client(starlette.address)
        client.send(request_bytes("GET", "/slow", HANDSHAKE))
        reply = client.reply(head_only=True)
        if reply.status == 101:
            assert "ratelimit" in reply.fields
            return client
        client.close()
        assert reply.status in (403, 429)  # by the server's extension
        return None

    for _ in range(2):
        with wait_until(opens, what="the end of the lease"):
            assert opens() is None
