# SPDX-License-Identifier: Apache-2.0
"""What a program may give to the middleware of the package weir for Python, and what becomes of it:
coroutines, wrong types, numbers, no address, wrong costs, two guards; FastAPI's dependency; the clock."""

import asyncio
import gc
import math
import sys
import uuid
from datetime import datetime, timezone

import pytest

from daemon.waiting import wait_until
from python_package import load, needs_package
from test_python_middleware import RULES, Wsgi, asgi_app, call, left, set_up_django, wsgi_app

weir = load()
wsgi, asgi = load("weir.wsgi"), load("weir.asgi")
pytestmark = needs_package


@pytest.fixture(name="limiter")
def fixture_limiter(tmp_path):
    (tmp_path / "weir.yaml").write_text(RULES, encoding="utf-8")
    with weir.open(tmp_path / "weir.yaml", state_size=4 << 20) as limiter:
        yield limiter


def of_user(limiter, user):
    return limiter.check({"path": "/plan", "user": user, "plan": "gold"}, peek=True).remaining


# --- Each framework, as a function of a path: the status ------------------------------------------


def status_or_500(ask):
    try:
        return ask().status
    except (RuntimeError, TypeError, ValueError):
        return 500


def asks_asgi(limiter, options, _):
    return lambda path: status_or_500(lambda: call(asgi.Middleware(asgi_app, limiter, **options), path))


def asks_wsgi(limiter, options, _):
    return lambda path: status_or_500(lambda: Wsgi(wsgi.Middleware(wsgi_app, limiter, **options), path))


def asks_flask(limiter, options, _):
    flask = pytest.importorskip("flask")
    app = flask.Flask("options")
    load("weir.flask").Weir(limiter, app, **options)
    app.get("/<path>")(lambda path: "hello")
    return lambda path: app.test_client().get(path, buffered=True).status_code


def asks_starlette(limiter, options, _):
    testclient = pytest.importorskip("starlette.testclient")
    pytest.importorskip("httpx")
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    @load("weir.starlette").Weir(limiter, **options).limit
    async def endpoint(request):
        return PlainTextResponse("hello")

    app = load("weir.testing").peer(Starlette(routes=[Route("/{path}", endpoint)]), "192.0.2.1")
    client = testclient.TestClient(app, raise_server_exceptions=False)
    return lambda path: client.get(path).status_code


def asks_django(limiter, options, monkeypatch, kind="Client"):
    pytest.importorskip("django")
    from django.http import HttpResponse
    from django.test import client as clients
    from django.urls import path as route
    set_up_django(monkeypatch, [route("<path>", lambda request, path: HttpResponse("hello"))],
                  ["weir.django.Middleware"], limiter=limiter, **options)
    client = getattr(clients, kind)(raise_request_exception=False)
    if kind == "Client":
        return lambda path: client.get(path).status_code
    return lambda path: asyncio.run(client.get(path)).status_code


def asks_django_async(limiter, options, monkeypatch):
    return asks_django(limiter, options, monkeypatch, "AsyncClient")


AWAIT = {"asgi": asks_asgi, "flask": asks_flask, "starlette": asks_starlette, "django": asks_django,
         "django-async": asks_django_async}
ALL = {**AWAIT, "wsgi": asks_wsgi}


def returning(value):
    async def function(*_):
        if isinstance(value, Exception):
            raise value
        return value
    return function


@pytest.mark.parametrize("framework", AWAIT)
def test_coroutine_functions_are_awaited(limiter, framework, monkeypatch):
    if framework in ("flask", "django"):
        pytest.importorskip("asgiref")

    def asks(**options):
        return AWAIT[framework](limiter, options, monkeypatch)

    ask = asks(skip=returning(False))
    assert [ask("/login") for _ in range(3)] == [200, 200, 429]
    assert asks(skip=returning(True))("/login") == 200
    options = {"attributes": returning({"user": "ann", "plan": "gold"}), "cost": returning(2),
               "ip": returning("192.0.2.99"), "settle": returning(1)}
    assert asks(**options)("/plan") == 200
    wait_until(lambda: of_user(limiter, "ann") == 2, what="the settlement")
    assert asks(skip=returning(RuntimeError("of the program")))("/free") == 500
    assert asks(ip=returning("192.0.2.98"))("/login") == 200


@pytest.mark.parametrize("framework", ALL)
def test_what_cannot_be_right_is_an_error_of_the_program(limiter, framework, monkeypatch, caplog):
    for options in ({"attributes": lambda _: [("user", "ann")]}, {"attributes": lambda _: "ann"},
                    {"attributes": lambda _: {"user": ["ann"]}}, {"attributes": lambda _: {"unread": object()}},
                    {"attributes": lambda _: {"user": math.nan}}, {"skip": lambda _: "no"}, {"skip": lambda _: 0},
                    {"cost": lambda _: -1}, {"cost": lambda _: 0.5}, {"cost": lambda _: math.nan},
                    {"cost": lambda _: "1"}, {"cost": lambda _: True}, {"cost": lambda _: 2**60},
                    {"ip": lambda _: "nobody"}, {"ip": lambda _: 7}):
        assert ALL[framework](limiter, options, monkeypatch)("/free") == 500, options
    for settled in (-1, 0.5, "free", math.nan):
        caplog.clear()
        options = {"settle": lambda *_, settled=settled: settled, "attributes": lambda _: {"user": "eve", "plan": "gold"},
                   "cost": 0 if of_user(limiter, "eve") == 0 else 1}
        before = of_user(limiter, "eve")
        assert ALL[framework](limiter, options, monkeypatch)("/plan") == 200
        if options["cost"]:
            wait_until(lambda: "settle has failed" in caplog.text, what="the log")
            assert of_user(limiter, "eve") == before - 1


def test_wsgi_refuses_what_it_cannot_await(limiter, recwarn):
    for name in ("attributes", "cost", "on_limited", "skip", "settle", "ip"):
        with pytest.raises(TypeError, match=name):
            wsgi.Middleware(wsgi_app, limiter, **{name: returning(None)})
    for name in ("attributes", "cost", "skip", "ip"):
        app = wsgi.Middleware(wsgi_app, limiter, **{name: lambda environ: returning(True)()})
        with pytest.raises(TypeError, match="awaitable"):
            Wsgi(app, "/login")
    gc.collect()
    assert not [one for one in recwarn if "never awaited" in str(one.message)]
    assert left(limiter, "/login") == 2


@pytest.mark.parametrize("options", [
    {"cost": -1}, {"cost": 0.5}, {"cost": "1"}, {"cost": True}, {"cost": None}, {"attributes": {"user": "ann"}},
    {"skip": True}, {"settle": 1}, {"ip": "192.0.2.1"}, {"on_limited": "no"}, {"skip_failed": "no"},
    {"skip_successful": 1}, {"max_delay": -1}, {"on_error": "maybe"}])
def test_a_wrong_option_fails_at_the_start(limiter, options):
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        asgi.Middleware(asgi_app, limiter, **options)


# --- Attributes -----------------------------------------------------------------------------------


class Level(int):
    def __str__(self):
        raise AssertionError("code of the program runs")


def test_numbers_and_uuids_are_texts(limiter):
    one = uuid.uuid4()
    for value, text in ((7, "7"), (Level(8), "8"), (9.0, "9"), (-0.25, "-0.25"), (True, "true"), (1e300, "1e+300"),
                        (one, str(one)), (10**30, str(10**30))):
        before = of_user(limiter, text)
        attributes = {"path": "/plan", "user": value, "plan": "gold"}
        assert limiter.check(attributes).allowed
        assert attributes["user"] is value
        assert of_user(limiter, text) == before - 1, value
    for value in (math.inf, math.nan, [], {}, object(), complex(1)):
        for name in ("user", "usr"):
            with pytest.raises(TypeError, match=f"attribute {name}"):
                limiter.check({name: value})


def test_names_that_no_rule_reads_are_ignored(limiter):
    for number in range(1000):
        limiter.check({"path": "/free", f"tenant{number}": "a", f"header.x-{number}": "b", "x" * 200: "c"})
    assert "tenant1" not in limiter.reads


# --- Addresses ------------------------------------------------------------------------------------


def test_a_peer_without_an_address_goes_by_on_error(limiter, caplog):
    def status(**options):
        return call(asgi.Middleware(asgi_app, limiter, **options), "/login", peer=("testclient", 50000),
                    x_forwarded_for="192.0.2.44").status

    assert status() == 503
    assert "'testclient'" in caplog.text and "weir.testing.peer" in caplog.text
    assert status(on_error="closed") == 503
    assert status(on_error="open") == 200
    assert status(ip=lambda scope: None) == 503
    # It is the client, and no proxy.
    assert [status(ip=lambda scope: "10.0.0.1") for _ in range(3)] == [200, 200, 429]
    seen = []
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/login", "HTTP_X_FORWARDED_FOR": "192.0.2.45"}
    wsgi.Middleware(wsgi_app, limiter)(environ, lambda status, fields: seen.append(status))
    assert seen == ["503 Service Unavailable"]


# --- Two guards -----------------------------------------------------------------------------------


def test_a_guard_that_a_request_meets_twice_counts_it_once_and_two_are_an_error(limiter):
    answers = []

    async def inner(scope, receive, send):
        """Meets the same guard once more, then answers."""
        answers.append(scope["weir.answer"].remaining)
        await (asgi_app if len(answers) > 1 else outer)(scope, receive, send)

    outer = asgi.Middleware(inner, limiter)
    answer = call(outer, "/login")
    assert answer.status == 200 and [name for name, _ in answer.sent[0]["headers"]].count(b"ratelimit") == 1
    assert answers == [1, 1] and left(limiter, "/login") == 1
    with pytest.raises(RuntimeError, match="two guards of one limiter"):
        call(asgi.Middleware(asgi.Middleware(asgi_app, limiter), limiter), "/login")
    assert left(limiter, "/login") == 0


def test_flask_and_django_refuse_two_guards(limiter, monkeypatch):
    flask = pytest.importorskip("flask")
    pytest.importorskip("django")
    app = flask.Flask("twice")
    guard = load("weir.flask").Weir(limiter, app)
    app.get("/login")(guard.limit(cost=1)(lambda: "hello"))
    app.get("/free", endpoint="same")(guard.limit(lambda: "hello"))
    assert app.test_client().get("/login").status_code == 500
    assert app.test_client().get("/free").status_code == 200
    from django.http import HttpResponse
    from django.test import Client
    from django.urls import path
    view = load("weir.django").limit(cost=1)(lambda request: HttpResponse("hello"))
    set_up_django(monkeypatch, [path("free", view)], ["weir.django.Middleware"], limiter=limiter)
    assert Client(raise_request_exception=False).get("/free").status_code == 500


# --- FastAPI's dependency -------------------------------------------------------------------------


def test_the_fields_of_a_dependency_are_on_every_answer(limiter):
    fastapi = pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    from fastapi.responses import JSONResponse, StreamingResponse
    starlette = load("weir.starlette")
    app = fastapi.FastAPI()
    app.add_middleware(starlette.Fields)
    settles = []
    guard = fastapi.Depends(starlette.Limit(limiter, settle=lambda request, status: settles.append(status)))

    @app.get("/paid", dependencies=[guard])
    def paid(kind: str, number: int = 0):
        if kind == "missing":
            raise fastapi.HTTPException(404)
        return {"json": JSONResponse({}), "stream": StreamingResponse(iter(["a", "b"]))}.get(kind, {"plain": number})

    @app.get("/slow", dependencies=[guard])
    def slow():
        return StreamingResponse(iter([str(left(limiter, "/slow"))]))

    app.get("/login", dependencies=[guard])(lambda: "welcome")
    client = testclient.TestClient(load("weir.testing").peer(app, "192.0.2.1"))
    for query, status in (("kind=plain", 200), ("kind=json", 200), ("kind=stream", 200), ("kind=missing", 404),
                          ("kind=plain&number=x", 422), ("", 422)):
        answer = client.get(f"/paid?{query}", headers={"X-Api-Key": "k"})
        assert answer.status_code == status
        (fields,) = answer.headers.get_list("ratelimit")
        assert fields.startswith('"paid";r='), query
    assert left(limiter, "/paid", **{"x-api-key": "k"}) == 5  # of 10: refund_on has 404
    assert settles == [200, 200, 200, 404, 422, 422]
    assert client.get("/slow").text == "0"
    wait_until(lambda: left(limiter, "/slow") == 1, what="the end of the lease")
    answers = [client.get("/login") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["retry-after"] and len(answers[2].headers.get_list("ratelimit")) == 1
    assert client.get("/docs").status_code == 200


def test_a_dependency_that_settles_needs_its_middleware(limiter):
    fastapi = pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    starlette = load("weir.starlette")
    app = fastapi.FastAPI()
    app.get("/paid", dependencies=[fastapi.Depends(starlette.Limit(limiter, skip_failed=True))])(lambda: "paid")
    client = testclient.TestClient(load("weir.testing").peer(app, "192.0.2.1"))
    with pytest.raises(RuntimeError, match="weir.starlette.Fields"):
        client.get("/paid")


# --- Django REST framework ------------------------------------------------------------------------


def test_django_rest_framework(limiter, monkeypatch):
    pytest.importorskip("django")
    pytest.importorskip("rest_framework")
    from django.test import Client
    from django.urls import path
    from django.utils.decorators import method_decorator
    set_up_django(monkeypatch, [], [], limiter=limiter, attributes=lambda request: {"user": 7, "plan": "gold"})
    from rest_framework.response import Response
    from rest_framework.views import APIView

    class Plan(APIView):
        authentication_classes = permission_classes = []

        def get(self, request):
            return Response({"left": request.weir_answer.remaining})

    view = method_decorator(load("weir.django").limit, name="dispatch")(Plan).as_view()
    sys.modules["django_urls"].urlpatterns = [path("plan", view)]
    answers = [Client().get("/plan") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[0].json() == {"left": 2} and of_user(limiter, 7) == 0


# --- A clock for tests ----------------------------------------------------------------------------


def test_the_clock_of_weir_testing_moves_by_advance_only(tmp_path):
    testing = load("weir.testing")
    rules = tmp_path / "weir.yaml"
    rules.write_text("version: 1\nstate: { file: never }\nlimits:\n"
                     "  - { name: a, key: [], rate: 1/min, algorithm: sliding_log }\n"
                     "  - { name: m, key: [], quota: 3/month }\n", encoding="utf-8")
    with testing.open(rules, at=datetime(2026, 1, 1, tzinfo=timezone.utc)) as limiter:
        assert limiter.check().allowed and limiter.check().retry_after == 60
        limiter.advance(59.5)
        assert limiter.check().retry_after == 0.5
        limiter.advance(0.5)
        assert limiter.check().allowed
        limiter.advance(60)
        assert limiter.check().allowed
        limiter.advance(60)
        denied = limiter.check()
        assert denied.denied_by == "m" and denied.retry_after == (31 * 24 * 60 - 3) * 60
        for wrong in (-1, math.nan):
            with pytest.raises(ValueError):
                limiter.advance(wrong)
        with pytest.raises(weir.RequestError):
            limiter.advance(1e30)
    for wrong in (0, -1, math.nan):
        with pytest.raises(ValueError):
            testing.open(rules, at=wrong)
    with pytest.raises(weir.RulesError, match="leave the state file out"):
        testing.open(rules, state=tmp_path / "state")
    assert not (tmp_path / "never").exists()
    with weir.open(rules, tmp_path / "state", state_size=4 << 20) as limiter:
        with pytest.raises(weir.Error, match="weir.testing"):
            limiter.advance(1)
