# SPDX-License-Identifier: Apache-2.0
"""Outcomes through the package weir for Python: strikes of penalties, beside a `weir serve` that
moves standing, and charges that are given back by the status of the answer."""

import asyncio

import pytest

from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir
from penalties import guessing_rules
from python_package import load, needs_package
from test_python_middleware import Asgi, Watched, Wsgi, asgi_app, set_up_django, wsgi_app

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


LEAVING = """version: 1
limits:
  - { name: paid, key: [], rate: 10/h, algorithm: sliding_log, refund_on: [5xx], refund_cap: 100% }
  - { name: slow, key: [], algorithm: concurrency, limit: 1, life: 10min }
"""


def django_app(limiter, work, monkeypatch):
    """The middleware of Django as an ASGI application that takes only cancellation."""
    from django.http import HttpRequest
    set_up_django(monkeypatch, [], [], limiter=limiter, skip_failed=True)
    from asgiref.sync import markcoroutinefunction

    async def view(request):
        await work()

    markcoroutinefunction(view)
    middleware = load("weir.django").Middleware(view)

    async def app(scope, receive, send):
        request = HttpRequest()
        request.META = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "REMOTE_ADDR": "192.0.2.1"}
        await middleware(request)

    return app


def starlette_app(limiter, work):
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    @load("weir.starlette").Weir(limiter, skip_failed=True).limit
    async def endpoint(request):
        await work()
        await request.body()  # raises ClientDisconnect
        return PlainTextResponse("late", 404)

    return Route("/", endpoint).app


def middleware_app(limiter, work):
    async def app(scope, receive, send):
        await work()
        if (await receive())["type"] == "http.disconnect" and (b"x-silent", b"1") in scope["headers"]:
            return
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await receive()
        await send({"type": "http.response.body", "body": b"late"})

    return asgi.Middleware(app, limiter, skip_failed=True)


@pytest.mark.parametrize("kind, how", [
    ("asgi", "cancelled"), ("asgi", "silent"), ("asgi", "late"), ("starlette", "cancelled"),
    ("starlette", "late"), ("django", "cancelled")])
def test_a_client_that_leaves_is_charged_and_has_no_outcome(tmp_path, monkeypatch, kind, how):
    if kind != "asgi":
        pytest.importorskip(kind)
    (tmp_path / "weir.yaml").write_text(LEAVING, encoding="utf-8")
    with weir.open(tmp_path / "weir.yaml") as limiter:
        watched = Watched(limiter, "outcome", lambda count: None)
        watched.outcomes = frozenset(range(400, 600))
        asyncio.run(leave(kind, how, watched, monkeypatch))
        limits = {limit.name: limit.remaining for limit in limiter.check({}, peek=True).limits}
        assert limits == {"paid": 9, "slow": 1} and watched.seen == []


async def leave(kind, how, limiter, monkeypatch):
    """A client that leaves while its request is at work."""
    working = asyncio.Event()

    async def work():
        working.set()
        if how == "cancelled":
            await asyncio.Event().wait()  # until it is cancelled

    if kind == "django":
        app = django_app(limiter, work, monkeypatch)
    else:
        app = {"asgi": middleware_app, "starlette": starlette_app}[kind](limiter, work)
    one = Asgi(app, "/", **({"x_silent": "1"} if how == "silent" else {}))
    one.scope["query_string"] = b""
    one.events.put_nowait({"type": "http.disconnect"})
    task = asyncio.create_task(one.run())
    await asyncio.wait_for(working.wait(), SECONDS_MAX)
    if how == "cancelled":
        task.cancel()
    try:
        await task
    except (asyncio.CancelledError, Exception) as error:
        assert how == "cancelled" or type(error).__name__ == "ClientDisconnect"
