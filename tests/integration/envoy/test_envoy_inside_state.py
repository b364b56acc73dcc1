# SPDX-License-Identifier: Apache-2.0
"""libweir_envoy.so counts on one state with other processes, and through the ends of all of them; what it knows of a
request until its end reaches the state."""

import threading
import time

import pytest

from daemon.grpc import Stub
from daemon.http import request_bytes
from daemon.load import Load, admitted, denied
from daemon.nginx_module import Nginx, needs_module
from daemon.proxies import Application, Handler
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir, rules_of
from envoy_inside import EXTENSION, Envoy, listener, route, weir_filter, wheel_of

N = 1000
LIMIT = {"name": "all", "key": [], "rate": f"{N}/30d", "algorithm": "token_bucket"}
GET = request_bytes("GET", "/", {"Host": "a"})
TO_APP = [route({"prefix": "/"}, cluster="app")]


@pytest.fixture(scope="module", name="wheel")
def fixture_wheel():
    with wheel_of("1.40.0") as wheel:
        yield wheel


def small(path, *limits, **parts):
    return rules_of(*limits, state={"file": str(path), "size": "4MiB"}, **parts)


# --- One state -----------------------------------------------------------------------------------

@needs_module
def test_two_envoys_nginx_and_weir_serve_admit_exactly_n_together(tmp_path, wheel):
    (tmp_path / "weir").mkdir()
    (tmp_path / "nginx").mkdir()
    rules = small(tmp_path / "state", LIMIT)
    served = "location / { weir on; try_files /a.txt =404; }"
    auth = request_bytes("GET", "/v1/auth", {"Host": "a", "X-Forwarded-Uri": "/"})
    with Weir(tmp_path / "weir", rules) as weir, \
            Envoy(wheel, tmp_path / "first", rules, state=False) as first, \
            Envoy(wheel, tmp_path / "second", rules, state=False) as second, \
            Nginx(tmp_path / "nginx", rules, served, state=tmp_path / "state") as nginx, \
            Load([first.address, second.address, nginx.address, weir.http_address], 16,
                 lambda number: auth if number % 4 == 3 else GET) as load:
        answers = load.until(lambda answers: denied(answers) >= 200, "denials")
    assert admitted(answers) == N
    assert {answer.node for answer in answers if answer.status == 200} == {0, 1, 2, 3}


def test_killed_envoys_lose_no_count_and_block_nobody(tmp_path, wheel):
    rules = small(tmp_path / "state", LIMIT)
    (tmp_path / "weir").mkdir()
    passed = lost = 0
    with Envoy(wheel, tmp_path / "envoy", rules, state=False) as envoy:
        with Weir(tmp_path / "weir", rules) as weir, weir.client() as client:
            for _ in range(5):
                with Load([envoy.address], 8, GET) as load:
                    with load.running():
                        wait_until(lambda asked=load: len(asked.answers) > 60, what="answers")
                        envoy.kill()
                        assert client.check(path="/", method="GET", cost=0).status == 200
                    passed += admitted(load.answers)
                    lost += sum(answer.status is None for answer in load.answers)
                envoy.start()
            with Load([envoy.address], 8, GET) as load:
                passed += admitted(load.until(lambda answers: denied(answers) >= 100, "denials"))
    assert N - lost <= passed <= N


# --- Configurations ------------------------------------------------------------------------------

def test_300_updates_of_the_listener_lose_no_count(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(LIMIT)) as envoy, Load([envoy.address], 4, GET, pace=0.02) as load:
        for i in range(300):
            envoy.weir["attributes"] = {"header.x-update": str(i)}
            before = envoy.stats()["listener_manager.lds.update_success"]
            envoy.write()
            wait_until(lambda seen=before: envoy.stats()["listener_manager.lds.update_success"] > seen)
        stats = envoy.stats()
        assert stats["listener_manager.lds.update_rejected"] == 0
        with Load([envoy.address], 8, GET) as load:
            answers = load.until(lambda answers: denied(answers) >= 100, "denials")
        assert admitted(answers) == N and load.answers


def test_rules_with_a_mistake_are_refused_and_those_before_stay(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(LIMIT | {"rate": "3/30d"})) as envoy:
        assert envoy.get().status == 200
        envoy.rules.write_text("version: 1\nlimits:\n- { name: all, key: [], rate: much }\n",
                               encoding="utf-8")
        envoy.weir["dry_run"] = True
        envoy.write()
        wait_until(lambda: envoy.stats()["listener_manager.lds.update_rejected"] == 1)
        assert "weir.yaml:3:" in envoy.log()
        assert [envoy.get().status for _ in range(3)] == [200, 200, 429]
        envoy.rules.write_text(rules_of(LIMIT | {"rate": "5/30d"}), encoding="utf-8")
        wait_until(lambda: envoy.get()["x-ratelimit-limit"] == "5", what="the rules of the file")


def test_a_listener_that_goes_closes_the_state_and_may_come_back(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(LIMIT | {"rate": "2/30d"})) as envoy:
        maps = f"/proc/{envoy.process.pid}/maps"

        def is_loaded():
            with open(maps, encoding="ascii", errors="replace") as file:
                return "libweir_envoy.so" in file.read()

        assert envoy.get().status == 200 and is_loaded()
        envoy.serve()
        wait_until(lambda: not is_loaded(), what="the end of the listener")
        envoy.write()
        wait_until(envoy.listens)
        assert [envoy.get().status for _ in range(2)] == [200, 429]


def test_1000_routes_have_their_own_attributes(tmp_path, wheel):
    limit = {"name": "each", "key": ["tier"], "rate": "1/30d", "algorithm": "token_bucket"}
    routes = [route({"path": f"/{i}"}, {"attributes": {"tier": str(i)}}) for i in range(1000)]
    with Envoy(wheel, tmp_path, rules_of(limit, attributes=["tier"]), routes=routes) as envoy, \
            envoy.client() as client:
        for expected in 200, 429:
            statuses = {client.request("GET", f"/{i}").status for i in range(0, 1000, 7)}
            assert statuses == {expected}


def test_two_filters_on_two_listeners_count_together(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(LIMIT | {"rate": "2/30d"})) as envoy:
        second = Envoy(wheel, tmp_path / "second", "", state=False)
        envoy.serve(listener(envoy.port, [weir_filter(envoy.weir)], envoy.routes),
                    listener(second.port, [weir_filter(envoy.weir)], envoy.routes, name="second"))
        second.process = envoy.process
        wait_until(second.listens)
        assert [one.get().status for one in (envoy, second, envoy)] == [200, 200, 429]


# --- The client ----------------------------------------------------------------------------------

@pytest.mark.parametrize("remote_address", [True, False])
def test_who_the_client_is(tmp_path, wheel, remote_address):
    """As docs/deploy/envoy-module.md says: without use_remote_address a client chooses its counter."""
    limit = {"name": "ip", "key": ["client.ip"], "rate": "1/30d", "algorithm": "token_bucket"}
    with Envoy(wheel, tmp_path, rules_of(limit), remote_address=remote_address) as envoy:
        statuses = [envoy.get(X_Forwarded_For=f"198.51.100.{i}").status for i in range(2)]
    assert statuses == [200, 429 if remote_address else 200]


def test_trusted_proxies_of_the_rules_name_the_client(tmp_path, wheel):
    limit = {"name": "ip", "key": ["client.ip"], "rate": "1/30d", "algorithm": "token_bucket"}
    rules = rules_of(limit, server={"trusted_proxies": ["127.0.0.0/8"]})
    with Envoy(wheel, tmp_path, rules, weir={"trusted_proxies": True}) as envoy:
        statuses = [envoy.get(X_Forwarded_For=f"203.0.113.9, 198.51.100.{i}").status for i in (1, 2, 1)]
    assert statuses == [200, 200, 429]


# --- Until the end -------------------------------------------------------------------------------

class Costly(Application):
    """Says in a field what the path ends with, and answers with the status that its first part is."""

    def __init__(self):
        class Answer(Handler):
            def do_GET(self):
                _, status, cost = self.path.split("/")
                self.send_response(int(status))
                if cost:
                    self.send_header("X-Tokens", cost)
                self.send_header("Content-Length", "0")
                self.end_headers()

        super().__init__(Answer)


TO_METADATA = {"name": "tokens", "typed_config": {
    "@type": f"{EXTENSION}.http.header_to_metadata.v3.Config", "response_rules": [{
        "header": "x-tokens", "on_header_present": {
            "metadata_namespace": "model", "key": "total_tokens", "type": "NUMBER"}}]}}


def left_of(envoy):
    return int(envoy.get("/200/0")["x-ratelimit-remaining"])


def test_the_true_cost_comes_from_the_metadata_of_another_filter(tmp_path, wheel):
    limit = {"name": "tokens", "key": [], "rate": "1000/30d", "algorithm": "token_bucket"}
    weir = {"cost": 100, "settle": {"namespace": "model", "key": "total_tokens"}}
    with Costly() as app, Envoy(wheel, tmp_path, rules_of(limit), weir=weir, routes=TO_APP,
                                after=[TO_METADATA], app=app.address) as envoy:
        assert int(envoy.get("/200/40")["x-ratelimit-remaining"]) == 900
        wait_until(lambda: left_of(envoy) == 860, what="the settlement of 40")
        assert envoy.get("/200/250").status == 200
        wait_until(lambda: left_of(envoy) == 610, what="the settlement of 250")
        assert envoy.get("/503/").status == 503  # nothing says what it cost
        wait_until(lambda: left_of(envoy) == 510)


def test_statuses_of_refund_on_give_back_those_of_envoy_itself_included(tmp_path, wheel):
    limit = {"name": "good", "key": [], "rate": "5/30d", "algorithm": "token_bucket",
             "refund_on": ["5xx"], "refund_cap": "100%"}
    with Costly() as app, Envoy(wheel, tmp_path, rules_of(limit), routes=TO_APP, app=app.address) as envoy:
        for _ in range(4):
            assert envoy.get("/503/").status == 503
        wait_until(lambda: envoy.get("/503/")["x-ratelimit-remaining"] == "4")
    with Envoy(wheel, tmp_path / "alone", rules_of(limit), routes=TO_APP) as envoy:
        for _ in range(10):  # Envoy answers: no upstream
            wait_until(lambda: envoy.get("/200/").status == 503)


def test_strikes_of_a_penalty_reach_weir_serve(tmp_path, wheel):
    limit = {"name": "login", "match": {"path": "/401/*"}, "key": [], "rate": "1000/30d",
             "algorithm": "token_bucket"}
    parts = {"standing": {"by": ["client.ip/64"], "file": str(tmp_path / "standing"),
                          "map": str(tmp_path / "standing.map")},
             "penalties": [{"name": "guess", "key": ["client.ip/64"], "strikes": "2/h",
                            "for": ["login"], "outcomes": [401], "ladder": ["suspend 1h"]}]}
    rules = small(tmp_path / "state", limit, **parts)
    (tmp_path / "weir").mkdir()
    with Costly() as app, Weir(tmp_path / "weir", rules) as weir, \
            Envoy(wheel, tmp_path / "envoy", rules, state=False, routes=TO_APP, app=app.address) as envoy:
        for _ in range(3):
            assert envoy.get("/401/").status == 401
        line = weir.wait_event("penalty_moved")
        assert "penalty=guess" in line and "value=127.0.0.1/32" in line
        reply = wait_until(lambda: (reply := envoy.get("/200/")).status == 403 and reply)
        assert not reply["x-tokens"]


def test_a_lease_ends_with_its_request_or_its_envoy(tmp_path, wheel):
    limit = {"name": "one", "key": [], "algorithm": "concurrency", "limit": 1, "life": "1h"}
    with Held() as app, Envoy(wheel, tmp_path, rules_of(limit), routes=TO_APP, app=app.address) as envoy:
        with envoy.client() as client:
            client.send(GET)
            wait_until(lambda: app.waiting == 1)
            assert envoy.get().status == 429
        app.may.set()
        wait_until(lambda: envoy.get().status == 200, what="the lease of the client that left")
        wait_until(lambda: app.waiting == 0)
        app.may.clear()
        with envoy.client() as client:
            client.send(GET)
            wait_until(lambda: app.waiting == 1)
            envoy.kill()
        app.may.set()
        envoy.start()
        wait_until(lambda: envoy.get().status == 200, what="the lease of the dead Envoy")


class Held(Application):
    """Answers when it may."""

    def __init__(self):
        self.waiting, self.may = 0, threading.Event()
        outer = self

        class Late(Handler):
            def do_GET(self):
                outer.waiting += 1
                outer.may.wait()
                outer.waiting -= 1
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass

        super().__init__(Late)

    def __exit__(self, *failure):
        self.may.set()
        super().__exit__(*failure)


# --- Waiting -------------------------------------------------------------------------------------

QUEUE = {"name": "q", "key": [], "rate": "1/h", "burst": 10, "algorithm": "leaky_bucket", "queue": True}


def test_who_leaves_the_queue_gives_the_place_back(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(QUEUE)) as envoy:
        assert envoy.get().status == 200
        for i in range(20):  # more than the queue has places
            with envoy.client() as client:
                client.send(GET)
                wait_until(lambda seen=i: envoy.count("delayed") == seen + 1)
            wait_until(lambda seen=i: envoy.count("cancelled") == seen + 1)


def test_an_aborted_stream_of_http2_leaves_the_queue(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(QUEUE)) as envoy, Stub(envoy.address) as stub:
        assert envoy.get().status == 200
        call = stub.channel.unary_unary("/shop.Cart/Add")
        for i in range(12):  # more than the queue has places
            waiting = call.future(b"", timeout=SECONDS_MAX)
            wait_until(lambda seen=i: envoy.count("delayed") == seen + 1)
            waiting.cancel()
            wait_until(lambda seen=i: envoy.count("cancelled") == seen + 1)
        assert envoy.stats()["http.in.downstream_cx_http2_total"] == 1


def test_queued_requests_continue_with_their_bodies(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(QUEUE | {"rate": "20/s", "burst": 50})) as envoy:
        clients = [envoy.client() for _ in range(8)]
        for client in clients:
            client.send(request_bytes("POST", "/", {"Host": "a"}, b"x" * 5000))
        assert {client.reply().status for client in clients} == {200}
        assert envoy.count("delayed") > 0
        for client in clients:
            client.close()


def test_an_envoy_that_ends_under_load_with_requests_that_wait_ends_well(tmp_path, wheel):
    with Envoy(wheel, tmp_path, rules_of(QUEUE)) as envoy:
        clients = [envoy.client() for _ in range(8)]
        for client in clients:
            client.send(GET)
        wait_until(lambda: envoy.count("delayed") == 7)
    for client in clients:  # Envoy's status was 0: see Envoy.__exit__
        client.close()


def test_a_tarpit_holds_the_denial_back(tmp_path, wheel):
    limit = {"name": "tar", "key": [], "rate": "1/30d", "algorithm": "token_bucket",
             "reject": {"status": 403, "tarpit": "200ms"}}
    with Envoy(wheel, tmp_path, rules_of(limit)) as envoy:
        assert envoy.get().status == 200
        begun = time.monotonic()
        assert envoy.get().status == 403
        assert time.monotonic() - begun >= 0.2  # never early


# --- Without a state -----------------------------------------------------------------------------

@pytest.mark.parametrize("on_error, expected", [("open", [200, 200]), ("closed", [503, 503]),
                                                ("rules", [200, 429])])
def test_on_error_decides_while_the_state_cannot_be_opened(tmp_path, wheel, on_error, expected):
    weir = {"state": str(tmp_path / "none" / "state"), "on_error": on_error}
    with Envoy(wheel, tmp_path, rules_of(LIMIT | {"rate": "1/30d"}), weir=weir) as envoy:
        assert [envoy.get().status for _ in range(2)] == expected
        (tmp_path / "none").mkdir()  # now it can be made: exact again
        wait_until(lambda: envoy.get()["x-ratelimit-limit"] == "1" and (tmp_path / "none/state").exists())
        wait_until(lambda: envoy.get().status == 429)
