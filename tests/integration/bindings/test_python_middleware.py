# SPDX-License-Identifier: Apache-2.0
"""The middleware of the package weir for Python, without a server: WSGI and ASGI by hand, then the
test clients of Flask, Starlette, FastAPI and Django."""

import asyncio
import io
import sys
import threading
import time
from types import ModuleType

import pytest

from daemon.waiting import SECONDS_MAX, wait_until
from python_package import load, needs_package

weir = load()
wsgi, asgi = load("weir.wsgi"), load("weir.asgi")
pytestmark = needs_package

RULES = """
version: 1
server: { headers: draft, trusted_proxies: [10.0.0.0/8, unix] }
limits:
  - { name: login, match: { path: /login }, key: [client.ip], rate: 2/h, algorithm: sliding_log }
  - { name: plan, match: { path: /plan }, key: [user], rate: plan, algorithm: sliding_log }
  - { name: slow, match: { path: /slow }, key: [], algorithm: concurrency, limit: 1, life: 10min }
  - { name: paid, match: { path: /paid }, key: [header.x-api-key], rate: 10/h, refund_on: [5xx, 404],
      refund_cap: 100%, algorithm: sliding_log }
  - { name: queue, match: { path: /queue }, key: [], rate: 20/s, algorithm: leaky_bucket,
      queue: true, burst: 1 }
  - { name: long, match: { path: /long }, key: [], rate: 1/h, algorithm: leaky_bucket, queue: true,
      burst: 5 }
default_plan: free
plans: { gold: { plan: 3/h }, free: { plan: 1/h } }
"""


@pytest.fixture(name="limiter")
def fixture_limiter(tmp_path):
    (tmp_path / "weir.yaml").write_text(RULES, encoding="utf-8")
    with weir.open(tmp_path / "weir.yaml", state_size=4 << 20) as limiter:
        yield limiter


def left(limiter, path, **fields):
    attributes = {"path": path, **{f"header.{name}": value for name, value in fields.items()}}
    return limiter.check(attributes, client="192.0.2.1", peek=True).remaining


# --- WSGI ----------------------------------------------------------------------------------------


class Wsgi:
    """Calls a WSGI application as a server does."""

    def __init__(self, app, path, close=True, **environ):
        self.status, self.fields = None, {}
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path, "REMOTE_ADDR": "192.0.2.1",
                   "HTTP_HOST": "localhost", "wsgi.input": io.BytesIO(), **environ}
        self.environ = environ
        self.result = app(environ, self.start)
        self.body = b""
        if close:
            self.end()

    def start(self, status, headers, exc_info=None):
        self.status, self.pairs = int(status.split()[0]), headers
        self.fields = {name.lower(): value for name, value in headers}

    def end(self):
        self.body = b"".join(self.result)
        if hasattr(self.result, "close"):
            self.result.close()


def wsgi_app(environ, start_response):
    status = environ.get("HTTP_X_STATUS", "200 OK")
    if status == "raise":
        raise RuntimeError("the application fails")
    start_response(status, [("Content-Type", "text/plain")])
    return [b"hello ", b"world"]


def test_wsgi_answers_have_the_fields_and_denials_the_body(limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    first, _, third = (Wsgi(app, "/login") for _ in range(3))
    assert first.status == 200 and first.body == b"hello world"
    assert first.fields["ratelimit"].startswith('"login";r=1')
    assert first.environ["weir.answer"].remaining == 1
    assert third.status == 429 and b'"violated-policies":["login"]' in third.body
    assert third.fields["content-type"] == "application/problem+json"
    assert int(third.fields["content-length"]) == len(third.body)
    assert int(third.fields["retry-after"]) > 0
    head = Wsgi(app, "/login", REQUEST_METHOD="HEAD")
    assert head.fields["content-length"] == third.fields["content-length"] and head.body == b""
    assert "ratelimit" not in Wsgi(app, "/free").fields


def test_wsgi_passes_peer_path_and_forwarding_as_they_are(limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    for _ in range(2):
        assert Wsgi(app, "/login", HTTP_X_FORWARDED_FOR="192.0.2.9").status == 200
    assert Wsgi(app, "/login").status == 429  # the peer is no proxy
    for peer in ("10.0.0.1", ""):  # a proxy by its address, or on a Unix socket
        answer = Wsgi(app, "/login", REMOTE_ADDR=peer, HTTP_X_FORWARDED_FOR="192.0.2.9")
        assert answer.status == 200
    assert Wsgi(app, "//login", REMOTE_ADDR="192.0.2.9").status == 429  # in normal form
    assert Wsgi(app, "/login", SCRIPT_NAME="/app", REMOTE_ADDR="192.0.2.9").status == 200
    assert Wsgi(app, "/login%", REMOTE_ADDR="192.0.2.9").status == 200  # it was /login%25
    assert Wsgi(app, "/\0").status == 400


def test_wsgi_settles_by_status_and_frees_leases_at_the_end(limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    for status, remaining in ("200 OK", 9), ("404 No", 9), ("503 No", 9), ("raise", 9), ("201 ", 8):
        if status == "raise":
            with pytest.raises(RuntimeError):
                Wsgi(app, "/paid", HTTP_X_API_KEY="k", HTTP_X_STATUS=status)
        else:
            Wsgi(app, "/paid", HTTP_X_API_KEY="k", HTTP_X_STATUS=status)
        assert left(limiter, "/paid", **{"x-api-key": "k"}) == remaining, status
    running = Wsgi(app, "/slow", close=False)
    assert running.status == 200 and Wsgi(app, "/slow").status == 429
    running.result.close()  # the client has left
    assert Wsgi(app, "/slow").status == 200 and left(limiter, "/slow") == 1


def test_wsgi_holds_requests_and_bounds_the_hold(limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    began = time.monotonic()
    assert [Wsgi(app, "/queue").status for _ in range(2)] == [200, 200]
    assert time.monotonic() - began >= 0.049  # the second one's turn
    assert Wsgi(app, "/long").status == 200
    late = Wsgi(app, "/long")
    assert late.status == 503 and int(late.fields["retry-after"]) > 3000
    assert left(limiter, "/long") == 5 and late.body == b""  # it has given its place back


def test_wsgi_hooks(limiter):
    seen = []

    def limited(environ, answer):
        seen.append((environ["PATH_INFO"], answer.denied_by))
        if environ.get("HTTP_X_OWN"):
            def app(_, start):
                start("420 Calm", [])
                return [b"own"]
            return app
        return None

    app = wsgi.Middleware(wsgi_app, limiter, on_limited=limited,
                          cost=lambda environ: int(environ.get("HTTP_X_COST", 1)),
                          attributes=lambda environ: {"user": environ.get("HTTP_X_USER"),
                                                      "plan": environ.get("HTTP_X_PLAN")})
    assert Wsgi(app, "/plan", HTTP_X_USER="ann", HTTP_X_PLAN="gold", HTTP_X_COST="3").status == 200
    assert Wsgi(app, "/plan", HTTP_X_USER="ann", HTTP_X_PLAN="gold").status == 429
    assert Wsgi(app, "/plan", HTTP_X_USER="bob", HTTP_X_PLAN="free").status == 200
    own = Wsgi(app, "/plan", HTTP_X_USER="bob", HTTP_X_PLAN="free", HTTP_X_OWN="1")
    assert own.status == 420 and own.body == b"own" and own.fields["ratelimit"].startswith('"plan";r=0')
    assert seen == [("/plan", "plan")] * 2


def test_wsgi_fails_open_or_closed(limiter):
    apps = [wsgi.Middleware(wsgi_app, limiter, on_error=how) for how in ("open", "closed")]
    limiter.close()
    assert [Wsgi(app, "/login").status for app in apps] == [200, 503]
    with pytest.raises(ValueError):
        wsgi.Middleware(wsgi_app, limiter, on_error="maybe")


@pytest.mark.parametrize("says, passes", [(None, False), ("open", True), ("closed", False), ("local", False)])
def test_the_rules_say_what_happens_without_a_decision(tmp_path, says, passes):
    rules = tmp_path / "weir.yaml"
    head = f"on_store_error: {says}\n" if says else ""
    rules.write_text(f"version: 1\n{head}limits: [{{name: a, key: [], rate: 1/h}}]\n", encoding="ascii")
    with weir.open(rules) as limiter:
        assert limiter.passes(-8) is passes  # WEIR_ERR_BUSY
        assert limiter.passes(-11) is False  # the fault of the rules, not of the state


# --- ASGI ----------------------------------------------------------------------------------------


async def asgi_app(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()  # until the client leaves
        return
    fields = dict(scope["headers"])
    if fields.get(b"x-status") == b"raise":
        raise RuntimeError("the application fails")
    await send({"type": "http.response.start", "status": int(fields.get(b"x-status", 200)),
                "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello ", "more_body": True})
    await receive()
    await send({"type": "http.response.body", "body": b"world"})


class Asgi:
    """Calls an ASGI application as a server does."""

    def __init__(self, app, path, kind="http", peer=("192.0.2.1", 1), extensions=None, headers=(),
                 **fields):
        headers = [*headers, *((name.replace("_", "-").encode(), value.encode())
                               for name, value in fields.items())]
        self.scope = {"type": kind, "path": path, "headers": headers, "client": peer,
                      "extensions": extensions or {}}
        if kind == "http":
            self.scope["method"] = "GET"
        self.app, self.sent, self.events = app, [], asyncio.Queue()
        self.answered = asyncio.Event()

    async def send(self, message):
        self.sent.append(message)
        self.answered.set()

    async def run(self):
        if self.scope["type"] == "websocket":
            self.events.put_nowait({"type": "websocket.connect"})
        self.events.put_nowait({"type": "http.disconnect"})
        await self.app(self.scope, self.events.get, self.send)
        return self

    @property
    def status(self):
        return self.sent[0].get("status")

    @property
    def fields(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.sent[1:])


def call(app, path, **options):
    return asyncio.run(Asgi(app, path, **options).run())


def test_asgi_answers_have_the_fields_and_denials_the_body(limiter):
    app = asgi.Middleware(asgi_app, limiter)
    first, _, third = (call(app, "/login") for _ in range(3))
    assert first.status == 200 and first.body == b"hello world"
    assert first.fields["ratelimit"].startswith('"login";r=1')
    assert first.scope["weir.answer"].remaining == 1
    assert third.status == 429 and b'"violated-policies":["login"]' in third.body
    assert int(third.fields["content-length"]) == len(third.body)
    assert call(app, "/login", peer=("10.0.0.1", 1), x_forwarded_for="192.0.2.1").status == 429
    assert call(app, "/login", peer=("10.0.0.1", 1), x_forwarded_for="192.0.2.2").status == 200
    lines = [(b"x-forwarded-for", b"192.0.2.1"), (b"x-forwarded-for", b"10.0.0.2")]
    assert call(app, "/login", peer=("10.0.0.1", 1), headers=lines).status == 429
    assert call(app, "/login", peer=None, x_forwarded_for="192.0.2.1").status == 429
    assert call(app, "/free", peer=("testclient", 1)).status == 503
    assert call(app, "/\0").status == 400


def test_asgi_settles_by_status_and_frees_leases_at_the_end(limiter):
    app = asgi.Middleware(asgi_app, limiter)
    for status, remaining in ("200", 9), ("404", 9), ("503", 9), ("raise", 9), ("201", 8):
        if status == "raise":
            with pytest.raises(RuntimeError):
                call(app, "/paid", x_api_key="k", x_status=status)
        else:
            call(app, "/paid", x_api_key="k", x_status=status)
        assert left(limiter, "/paid", **{"x-api-key": "k"}) == remaining, status

    async def held():
        one = Asgi(app, "/slow")
        task = asyncio.create_task(one.app(one.scope, one.events.get, one.send))
        await asyncio.wait_for(one.answered.wait(), SECONDS_MAX)
        assert (await Asgi(app, "/slow").run()).status == 429
        task.cancel()  # the client has left
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await Asgi(app, "/slow").run()).status == 200

    asyncio.run(held())
    assert left(limiter, "/slow") == 1


def test_asgi_ends_a_lease_with_the_body_and_not_with_work_behind_it(limiter):
    seen = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        seen.append(left(limiter, "/slow"))

    call(asgi.Middleware(app, limiter), "/slow")
    assert seen == [1]


class Watched:
    """A limiter; `seen` has the calls of one of its methods."""

    def __init__(self, limiter, method, called):
        self.limiter, self.method, self.called, self.seen = limiter, method, called, []

    def __getattr__(self, name):
        real = getattr(self.limiter, name)
        if name != self.method:
            return real

        def watched(*arguments, **named):
            result = real(*arguments, **named)
            self.seen.append(arguments)
            self.called(len(self.seen))
            return result

        return watched


def test_asgi_renews_the_lease_of_a_long_request(limiter):
    """Each third of its life of 10 minutes; the loop's timers of that length end at once."""
    delays, renewed = [], asyncio.Event()
    watched = Watched(limiter, "renew", lambda count: count == 2 and renewed.set())

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.wait_for(renewed.wait(), SECONDS_MAX)
        await send({"type": "http.response.body", "body": b""})

    async def run():
        loop = asyncio.get_running_loop()
        real = loop.call_later

        def call_later(delay, *arguments):
            if delay == SECONDS_MAX:
                return real(delay, *arguments)
            delays.append(delay)
            return real(0, *arguments)

        loop.call_later = call_later
        return await Asgi(asgi.Middleware(app, watched), "/slow").run()

    assert asyncio.run(run()).status == 200
    assert len(watched.seen) >= 2 and set(delays) == {200}
    assert left(limiter, "/slow") == 1


def test_asgi_holds_requests_without_holding_up_others(limiter):
    app = asgi.Middleware(asgi_app, limiter)

    async def both():
        began = time.monotonic()
        answers = await asyncio.gather(*(Asgi(app, "/queue").run() for _ in range(2)))
        return time.monotonic() - began, [answer.status for answer in answers]

    took, statuses = asyncio.run(both())
    assert took >= 0.049 and statuses == [200, 200]

    async def left_while_held():
        await Asgi(app, "/long").run()
        reserved = asyncio.Event()
        watched = Watched(limiter, "reserve", lambda count: reserved.set())
        patient = asgi.Middleware(asgi_app, watched, max_delay=1e6)
        task = asyncio.create_task(Asgi(patient, "/long").run())
        await asyncio.wait_for(reserved.wait(), SECONDS_MAX)
        assert left(limiter, "/long") == 4
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(left_while_held())
    assert left(limiter, "/long") == 5


def test_websockets_are_decided_at_their_handshake(limiter):
    app = asgi.Middleware(asgi_app, limiter)
    first = call(app, "/login", kind="websocket")
    assert first.sent[0]["type"] == "websocket.accept" and "ratelimit" in first.fields
    call(app, "/login")
    denied = call(app, "/login", kind="websocket")
    assert denied.sent == [{"type": "websocket.close", "code": 1008}]
    denied = call(app, "/login", kind="websocket", extensions={"websocket.http.response": {}})
    assert [message["type"] for message in denied.sent] == [
        "websocket.http.response.start", "websocket.http.response.body"]
    assert denied.status == 429 and "retry-after" in denied.fields
    call(app, "/slow", kind="websocket")
    assert left(limiter, "/slow") == 1


def test_asgi_hooks_and_failures(limiter):
    async def own(scope, receive, send):
        await send({"type": "http.response.start", "status": 420, "headers": []})
        await send({"type": "http.response.body", "body": b"own"})

    async def limited(scope, answer):
        return own if (b"x-own", b"1") in scope["headers"] else None

    app = asgi.Middleware(asgi_app, limiter, on_limited=limited, cost=2)
    assert [call(app, "/login").status, call(app, "/login").status] == [200, 429]
    answer = call(app, "/login", x_own="1")
    assert answer.status == 420 and answer.body == b"own" and "ratelimit" in answer.fields
    apps = [asgi.Middleware(asgi_app, limiter, on_error=how) for how in ("open", "closed")]
    limiter.close()
    assert [call(app, "/login").status for app in apps] == [200, 503]
    events = []

    async def lifespan(scope, receive, send):
        events.append(scope["type"])

    asyncio.run(asgi.Middleware(lifespan, limiter)({"type": "lifespan"}, None, None))
    assert events == ["lifespan"]


# --- Flask ---------------------------------------------------------------------------------------


def test_flask_limits_an_application_or_a_view(limiter):
    flask = pytest.importorskip("flask")
    guard = load("weir.flask").Weir(
        limiter, on_limited=lambda request, answer: ("own", 420) if request.headers.get("X-Own")
        else None)
    apps = flask.Flask("all"), flask.Flask("one")
    guard.init_app(apps[0])
    guards = [lambda view: view, guard.limit(cost=1)]
    for app, wrap in zip(apps, guards):
        @app.get("/login")
        @wrap
        def login():
            return f"{flask.g.weir_answer.remaining}"

        @app.get("/slow")
        @wrap
        def slow():
            if flask.request.headers.get("X-Fail"):
                flask.abort(int(flask.request.headers["X-Fail"]))
            if flask.request.headers.get("X-Raise"):
                raise RuntimeError("the view fails")
            return flask.Response(iter(["a", "b"]))

        app.get("/free")(lambda: "free")
        peer = f"192.0.2.{10 + apps.index(app)}"
        client = app.test_client()

        def get(path, buffered=True, **fields):
            return client.get(path, environ_base={"REMOTE_ADDR": peer}, buffered=buffered,
                              headers={name.replace("_", "-"): fields[name] for name in fields})

        assert [get("/login").text for _ in range(2)] == ["1", "0"]
        denied = get("/login")
        assert denied.status_code == 429 and denied.json["violated-policies"] == ["login"]
        assert denied.headers["Retry-After"] and denied.headers["RateLimit"]
        own = get("/login", X_Own="1")
        assert own.status_code == 420 and own.text == "own" and own.headers["RateLimit"]
        response = get("/slow", buffered=False)
        assert get("/slow").status_code == 429 and response.text == "ab"
        response.close()
        assert get("/slow", X_Fail="404").status_code == 404
        assert get("/slow", X_Raise="1").status_code == 500
        app.testing = True  # exceptions leave the application
        with pytest.raises(RuntimeError):
            get("/slow", X_Raise="1")
        assert left(limiter, "/slow") == 1 and get("/free").status_code == 200


# --- Starlette and FastAPI -----------------------------------------------------------------------


def test_fastapi_limits_an_application_or_a_route(limiter):
    fastapi = pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    starlette = load("weir.starlette")
    app = fastapi.FastAPI()
    guard = starlette.Limit(limiter, attributes=lambda request: {
        "user": request.headers.get("x-user"), "plan": request.headers.get("x-plan")})
    app.add_middleware(starlette.Middleware, limiter=limiter)

    @app.get("/paid")
    async def paid(status: int = 200):
        return fastapi.Response("paid", status)

    inner = fastapi.FastAPI()

    @inner.get("/plan")
    async def plan(answer=fastapi.Depends(guard)):
        return answer.remaining

    @inner.get("/slow", dependencies=[fastapi.Depends(guard)])
    def slow():
        return left(limiter, "/slow")

    client = testclient.TestClient(load("weir.testing").peer(app, "192.0.2.1"))
    assert client.get("/paid", headers={"X-Api-Key": "k"}).headers["ratelimit"].startswith('"paid";r=9')
    assert client.get("/paid?status=503", headers={"X-Api-Key": "k"}).status_code == 503
    assert left(limiter, "/paid", **{"x-api-key": "k"}) == 9
    client = testclient.TestClient(load("weir.testing").peer(inner, "192.0.2.1"))
    answer = client.get("/plan", headers={"X-User": "ann", "X-Plan": "free"})
    assert answer.status_code == 200 and answer.text == "0" and "ratelimit" in answer.headers
    answer = client.get("/plan", headers={"X-User": "ann", "X-Plan": "free"})
    assert answer.status_code == 429 and answer.json() == {"detail": "limited by plan"}
    assert int(answer.headers["retry-after"]) > 0
    assert client.get("/slow").text == "0"
    wait_until(lambda: left(limiter, "/slow") == 1, what="the end of the lease")


def test_starlette_limits_an_endpoint(limiter):
    pytest.importorskip("starlette")
    testclient = pytest.importorskip("starlette.testclient")
    pytest.importorskip("httpx")
    from starlette.applications import Starlette
    from starlette.endpoints import HTTPEndpoint
    from starlette.exceptions import HTTPException
    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.routing import Route, WebSocketRoute
    from starlette.websockets import WebSocketDisconnect
    guard = load("weir.starlette").Weir(limiter, on_limited=lambda request, answer: (
        PlainTextResponse("own", 420) if "x-own" in request.headers else None),
        attributes=lambda request: {"user": "ann", "plan": "free"})

    @guard.limit
    async def plan(request):
        return PlainTextResponse(f"{request.scope['weir.answer'].remaining}")

    @guard.limit(skip_failed=True, cost=2)
    def paid(request):
        status = int(request.query_params.get("status", 200))
        if "raise" in request.query_params:
            raise HTTPException(status)
        if "fail" in request.query_params:
            raise RuntimeError("the endpoint fails")
        response = PlainTextResponse("paid", status)
        response.set_cookie("a", "b")
        return response

    class Slow(HTTPEndpoint):
        @guard.limit
        async def get(self, request):
            return StreamingResponse(iter([str(left(limiter, "/slow")), "end"]))

        @guard.limit
        async def post(self, request):
            raise HTTPException(404)

    @guard.limit
    async def unsent(request):
        return PlainTextResponse("unsent")

    async def replaced(request):
        await unsent(request)
        return PlainTextResponse(f"{left(limiter, '/slow')}")

    @guard.limit
    async def talk(websocket):
        await websocket.accept()
        await websocket.send_text(f"{left(limiter, '/slow')}")

    app = Starlette(routes=[Route("/plan", plan), Route("/paid", paid),
                            Route("/slow", replaced, methods=["PUT"]), Route("/slow", Slow),
                            WebSocketRoute("/slow", talk),
                            WebSocketRoute("/plan", talk)])
    client = testclient.TestClient(load("weir.testing").peer(app, "192.0.2.1"), raise_server_exceptions=False)
    first, second = client.get("/plan"), client.get("/plan")
    assert (first.status_code, first.text) == (200, "0") and first.headers["ratelimit"]
    assert second.status_code == 429 and second.json()["violated-policies"] == ["plan"]
    assert int(second.headers["retry-after"]) > 0
    assert second.headers["content-length"] == str(len(second.content))
    own = client.get("/plan", headers={"X-Own": "1"})
    assert (own.status_code, own.text) == (420, "own") and own.headers["ratelimit"]

    def remaining():
        return left(limiter, "/paid", **{"x-api-key": "k"})

    key = {"X-Api-Key": "k"}
    answer = client.get("/paid", headers=key)
    assert answer.headers["set-cookie"] and answer.headers["ratelimit"] and remaining() == 8
    assert client.get("/paid?status=404", headers=key).status_code == 404 and remaining() == 8
    answer = client.get("/paid?status=404&raise", headers=key)
    assert answer.status_code == 404 and answer.headers["ratelimit"] and remaining() == 8
    assert client.get("/paid?fail", headers=key).status_code == 500 and remaining() == 8
    assert client.get("/slow").text == "0end" and left(limiter, "/slow") == 1
    assert client.post("/slow").status_code == 404 and left(limiter, "/slow") == 1
    assert client.put("/slow").text == "1"  # a response that is not sent holds no lease
    with client.websocket_connect("/slow") as socket:
        assert socket.receive_text() == "0"
    wait_until(lambda: left(limiter, "/slow") == 1, what="the end of the lease")
    with pytest.raises(WebSocketDisconnect) as caught:
        with client.websocket_connect("/plan"):
            pass
    # Newer test clients take an answer in place of the handshake, and raise it.
    denied = caught.value
    assert denied.status_code == 429 if hasattr(denied, "status_code") else denied.code == 1008


def test_starlette_renews_the_lease_while_an_endpoint_runs(limiter):
    pytest.importorskip("starlette")
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route
    delays, renewed = [], asyncio.Event()
    watched = Watched(limiter, "renew", lambda count: count == 2 and renewed.set())

    @load("weir.starlette").Weir(watched).limit
    async def slow(request):
        await asyncio.wait_for(renewed.wait(), SECONDS_MAX)
        return PlainTextResponse("slow")

    async def run():
        loop = asyncio.get_running_loop()
        real = loop.call_later

        def call_later(delay, *arguments):
            if delay == SECONDS_MAX:
                return real(delay, *arguments)
            delays.append(delay)
            return real(0, *arguments)

        loop.call_later = call_later
        return await Asgi(Route("/slow", slow).app, "/slow").run()

    assert asyncio.run(run()).status == 200
    assert len(watched.seen) >= 2 and set(delays) == {200}
    assert left(limiter, "/slow") == 1


# --- Django --------------------------------------------------------------------------------------


def set_up_django(monkeypatch, patterns, middleware, **weir_options):
    """Django's settings are those of a process; its URLs are those of the test."""
    pytest.importorskip("django")
    from django.conf import settings
    if not settings.configured:
        settings.configure(ROOT_URLCONF="django_urls", ALLOWED_HOSTS=["*"], SECRET_KEY="test",
                           MIDDLEWARE=[], WEIR={},
                           INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"])
        import django
        django.setup()
    urls = ModuleType("django_urls")
    urls.urlpatterns = patterns
    monkeypatch.setitem(sys.modules, "django_urls", urls)
    from django.urls import clear_url_caches
    clear_url_caches()
    settings.MIDDLEWARE = middleware
    settings.WEIR = weir_options


@pytest.mark.parametrize("client_name", ["Client", "AsyncClient"])
def test_django_limits_by_a_middleware(limiter, client_name, monkeypatch):
    pytest.importorskip("django")
    from django.http import HttpResponse, StreamingHttpResponse
    from django.test import client as clients
    from django.urls import path

    def paid(request):
        return HttpResponse("paid", status=int(request.GET.get("status", 200)))

    def stream(request):
        return StreamingHttpResponse(iter([str(left(limiter, "/slow"))]))

    set_up_django(monkeypatch,
                  [path("login", lambda request: HttpResponse(request.weir_answer.remaining)),
                   path("paid", paid), path("slow", stream)],
                  ["weir.django.Middleware"], limiter=limiter, on_limited=own_django)
    client = getattr(clients, client_name)(raise_request_exception=False)

    def get(where, **fields):
        meta = {"HTTP_" + name.upper(): fields[name] for name in fields}
        if client_name == "Client":
            return client.get(where, REMOTE_ADDR="192.0.2.20", **meta)
        return asyncio.run(client.get(where, **fields_of(fields)))

    def fields_of(fields):
        return {name: value for name, value in fields.items()}

    assert [get("/login").content for _ in range(2)] == [b"1", b"0"]
    denied = get("/login")
    assert denied.status_code == 429 and b"violated-policies" in denied.content
    assert denied["Retry-After"] and denied["RateLimit"] and denied["Content-Type"] == \
        "application/problem+json"
    assert get("/paid").status_code == 200
    if client_name == "Client":
        own = get("/login", x_own="1")
        assert own.status_code == 420 and own["RateLimit"]
        assert get("/paid?status=503", x_api_key="k").status_code == 503
        assert left(limiter, "/paid", **{"x-api-key": "k"}) == 10
    assert b"".join(get("/slow").streaming_content) == b"0"


def own_django(request, answer):
    from django.http import HttpResponse
    return HttpResponse("own", status=420) if request.META.get("HTTP_X_OWN") else None


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_django_limits_a_view(limiter, kind, monkeypatch):
    pytest.importorskip("django")
    django = load("weir.django")
    from django.core.exceptions import PermissionDenied
    from django.http import Http404, HttpResponse, StreamingHttpResponse
    from django.test import client as clients
    from django.urls import path
    from django.utils.decorators import method_decorator
    from django.views import View

    def view(function, **options):
        """The function itself or a coroutine function of it, with a limit."""
        async def awaited(request, *arguments):
            return function(request, *arguments)

        limited = awaited if kind == "async" else function
        return django.limit(**options)(limited) if options else django.limit(limited)

    def paid(request):
        status = int(request.GET.get("status", 200))
        for number, error in ((404, Http404), (403, PermissionDenied), (500, RuntimeError)):
            if status == number and "raise" in request.GET:
                raise error("of the view")
        return HttpResponse("paid", status=status)

    class Slow(View):
        def get(self, request):
            return StreamingHttpResponse(iter([str(left(limiter, "/slow"))]))

    set_up_django(monkeypatch, [
        path("login", view(lambda request: HttpResponse(request.weir_answer.remaining))),
        path("paid", view(paid, cost=2, skip_failed=True)),
        path("slow", method_decorator(django.limit, name="dispatch")(Slow).as_view()),
        path("free", lambda request: HttpResponse("free"))], [], limiter=limiter,
        on_limited="test_python_middleware.own_django")
    client = (clients.Client if kind == "sync" else clients.AsyncClient)(raise_request_exception=False)

    def get(where, **fields):
        if kind == "async":
            return asyncio.run(client.get(where, **{
                name.replace("_", "-"): value for name, value in fields.items()}))
        return client.get(where, REMOTE_ADDR="192.0.2.1",
                          **{f"HTTP_{name.upper()}": value for name, value in fields.items()})

    assert [get("/login").content for _ in range(2)] == [b"1", b"0"]
    denied = get("/login")
    assert denied.status_code == 429 and b"violated-policies" in denied.content
    assert denied["Retry-After"] and denied["RateLimit"]
    assert "RateLimit" not in get("/free")
    assert get("/login", x_own="1").status_code == 420

    def remaining():
        return left(limiter, "/paid", **{"x-api-key": "k"})

    for where, status, charged in (("/paid", 200, 2), ("/paid?status=404", 404, 2),
                                   ("/paid?status=404&raise", 404, 2),
                                   ("/paid?status=403&raise", 403, 2),
                                   ("/paid?status=500&raise", 500, 2)):
        assert get(where, x_api_key="k").status_code == status
        wait_until(lambda: remaining() == 10 - charged, what=where)
    assert b"".join(get("/slow").streaming_content) == b"0"


def test_a_thread_per_request_shares_one_limiter(limiter):
    app = wsgi.Middleware(wsgi_app, limiter)
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(Wsgi(app, "/login").status))
               for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 2 + [429] * 6
