# SPDX-License-Identifier: Apache-2.0
"""Outcomes through the package weir for Python: strikes of penalties, beside a `weir serve` that
moves standing, and charges that are given back by the status of the answer."""

import asyncio

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir
from penalties import guessing_rules
from python_package import load, needs_package
from test_python_middleware import Asgi, Wsgi, asgi_app, wsgi_app

weir = load()
wsgi, asgi = load("weir.wsgi"), load("weir.asgi")
pytestmark = needs_package

PAID = """version: 1
limits:
  - { name: paid, key: [], rate: 10/h, algorithm: sliding_log }
"""


@pytest.fixture(name="server")
def fixture_server(tmp_path):
    with Weir(tmp_path, guessing_rules(tmp_path), "--workers", "1") as server:
        yield server


@pytest.fixture(name="limiter")
def fixture_limiter(server):
    with weir.open(server.config) as limiter:
        yield limiter


def suspended(limiter, client):
    return limiter.check({"path": "/"}, client=client, peek=True).denied_by == "standing"


def test_outcomes_are_strikes(server, limiter):
    assert limiter.outcomes == {401, 403, *range(500, 600)}
    for _ in range(2):
        limiter.outcome(403, {"path": "/"}, client="10.0.0.1", forwarded_for="192.0.2.1")
    limiter.outcome(200, {"path": "/"}, client="192.0.2.1")
    assert "penalty_moved" not in server.text() and not suspended(limiter, "192.0.2.1")
    limiter.outcome(503, {"path": "/"}, client="192.0.2.1")
    assert "value=192.0.2.1/32" in server.wait_event("penalty_moved")
    wait_until(lambda: suspended(limiter, "192.0.2.1"))
    assert not suspended(limiter, "10.0.0.1")
    for wrong in (0, -1, 99, 600, 2**32 + 401):
        with pytest.raises((ValueError, OverflowError)):
            limiter.outcome(wrong, {"path": "/"})
    limiter.close()
    with pytest.raises(weir.StateError, match="closed"):
        limiter.outcome(401)


def test_wsgi_tells_the_outcome_once(server, limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    assert Wsgi(app, "/", HTTP_X_STATUS="403 No").status == 403
    with pytest.raises(RuntimeError):  # a 500
        Wsgi(app, "/", HTTP_X_STATUS="raise")
    assert Wsgi(app, "/").status == 200 and "penalty_moved" not in server.text()
    assert Wsgi(app, "/", HTTP_X_STATUS="403 No").status == 403
    server.wait_event("penalty_moved")
    wait_until(lambda: Wsgi(app, "/").status == 403, what="the suspension")
    assert Wsgi(app, "/", REMOTE_ADDR="192.0.2.9").status == 200


def test_asgi_tells_the_outcome_once(server, limiter):
    app = asgi.Middleware(asgi_app, limiter)

    def status(peer="192.0.2.1", **fields):
        return asyncio.run(Asgi(app, "/", peer=(peer, 1), **fields).run()).status

    assert status(x_status="403") == 403 and status(x_status="403") == 403 and status() == 200
    assert "penalty_moved" not in server.text()
    with pytest.raises(RuntimeError):
        status(x_status="raise")
    server.wait_event("penalty_moved")
    wait_until(lambda: status() == 403, what="the suspension")
    assert status("192.0.2.9") == 200


def test_a_program_whose_rules_lose_their_penalties_goes_on(server, limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    server.write_rules(server.config.read_text(encoding="utf-8").partition("penalties:")[0])
    running = Wsgi(app, "/", close=False, HTTP_X_STATUS="403 No")
    limiter.reload()
    assert limiter.outcomes == frozenset()
    running.end()
    assert Wsgi(app, "/", HTTP_X_STATUS="403 No").status == 403


@pytest.mark.parametrize("options, charged", [
    ({}, (1, 1)),
    ({"skip_successful": True}, (0, 1)),
    ({"skip_failed": True}, (1, 0)),
    ({"settle": lambda request, status: 3 if status == 200 else None}, (3, 1)),
    ({"settle": lambda request, status: 0 if status == 200 else None, "skip_failed": True}, (0, 0)),
    ({"settle": lambda request, status: 1 // 0}, (1, 1)),
    ({"settle": lambda request, status: 2**70}, (1, 1)),
    ({"skip": lambda request: True}, (0, 0)),
])
@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_outcomes_give_back(tmp_path, kind, options, charged):
    (tmp_path / "weir.yaml").write_text(PAID, encoding="utf-8")
    with weir.open(tmp_path / "weir.yaml") as limiter:
        remaining = 10
        for status, cost in zip((200, 404), charged):
            if kind == "wsgi":
                answer = Wsgi(wsgi.Middleware(wsgi_app, limiter, **options), "/",
                              HTTP_X_STATUS=f"{status} Status")
            else:
                app = asgi.Middleware(asgi_app, limiter, **options)
                answer = asyncio.run(Asgi(app, "/", x_status=str(status)).run())
            assert answer.status == status
            remaining -= cost
            assert limiter.check({}, peek=True).remaining == remaining
