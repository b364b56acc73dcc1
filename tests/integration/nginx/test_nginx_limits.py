# SPDX-License-Identifier: Apache-2.0
"""The cases of the public tests of nginx's own limit_req and limit_conn, for weir's directives: zones
(here: limits and keys), delays, several limits, statuses, dry runs, variables, keep-alive, HTTP/2."""

import contextlib

import pytest

from daemon.frames import END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Frames, frame, head
from daemon.http import request_bytes
from daemon.nginx_module import Nginx, needs_module
from daemon.proxies import App, Application, Handler
from daemon.waiting import wait_until

pytestmark = needs_module

FILE = "try_files /a.txt =404;"
PAGES = f"""
    location = /weir-status {{ weir_status; }}
    location / {{ weir on; {FILE} }}
"""


def limits_of(*limits):
    return "version: 1\nlimits:\n" + "".join(f"  - {{ {limit} }}\n" for limit in limits)


def statuses(nginx, *paths, **fields):
    return [nginx.get(path, **fields).status for path in paths]


def verdicts(nginx, verdict):
    return nginx.metrics()[f'weir_nginx_requests_total{{front="nginx",verdict="{verdict}"}}']


# --- limit_req -----------------------------------------------------------------------------------

def test_a_status_of_its_own_beside_the_usual_one(tmp_path):
    rules = limits_of("name: one, match: { path: /a }, key: [client.ip], rate: 1/h",
                      "name: two, match: { path: /b }, key: [client.ip], rate: 1/h,"
                      " reject: { status: 503 }")
    with Nginx(tmp_path, rules, PAGES) as nginx:
        assert statuses(nginx, "/a", "/a", "/b", "/b") == [200, 429, 200, 503]


def test_one_limit_in_several_locations_is_one_count(tmp_path):
    rules = limits_of('name: one, match: { path: ["/a/**", "/b/**"] }, key: [client.ip], rate: 2/h',
                      'name: other, match: { path: "/c/**" }, key: [client.ip], rate: 1/h')
    server = PAGES + f"location /b/ {{ weir on; {FILE} }} location /c/ {{ weir on; {FILE} }}"
    with Nginx(tmp_path, rules, server) as nginx:
        assert statuses(nginx, "/a/1", "/b/1", "/a/1", "/b/1") == [200, 200, 429, 429]
        assert statuses(nginx, "/c/1", "/c/1") == [200, 429]


def test_each_limit_has_its_own_count_in_the_metrics(tmp_path):
    """One connection, so one worker, which meets another limit with each request."""
    rules = limits_of("name: a, match: { path: /a }, key: [], rate: 2/30d, algorithm: token_bucket",
                      "name: ab, match: { path: [/a, /b] }, key: [], rate: 9/s",
                      "name: b, match: { path: /b }, key: [], rate: 9/s")
    with Nginx(tmp_path, rules, PAGES) as nginx, nginx.client() as client:
        for path in ("/a", "/b", "/a", "/b", "/b", "/a"):
            client.request("GET", path)
        metrics = nginx.metrics()
        counts = {(limit, result): metrics[
            f'weir_decisions_total{{front="nginx",limit="{limit}",result="{result}"}}']
            for limit in ("a", "ab", "b") for result in ("allowed", "denied")}
        assert counts == {("a", "allowed"): 2, ("a", "denied"): 1, ("ab", "allowed"): 6,
                          ("ab", "denied"): 0, ("b", "allowed"): 3, ("b", "denied"): 0}


def test_what_one_limit_denies_no_other_counts(tmp_path):
    rules = limits_of("name: each, key: [header.x-key], rate: 1/h",
                      "name: all, key: [], rate: 3/h")
    with Nginx(tmp_path, rules, PAGES) as nginx:
        for _ in range(5):
            nginx.get("/", X_KEY="a")
        assert [nginx.get("/", X_KEY=key).status for key in "bcd"] == [200, 200, 429]
        assert nginx.get("/", X_KEY="d")["X-RateLimit-Remaining"] == "0"


def test_denied_requests_do_not_make_the_wait_longer(tmp_path):
    rules = limits_of("name: one, key: [], rate: 1/h, algorithm: token_bucket")
    with Nginx(tmp_path, rules, PAGES) as nginx:
        assert nginx.get("/").status == 200
        waits = [int(nginx.get("/")["Retry-After"]) for _ in range(50)]
        assert waits == sorted(waits, reverse=True) and waits[0] <= 3600


def test_a_key_may_be_long(tmp_path):
    """It has a limit like any other, where limit_req lets an overlong one pass."""
    rules = limits_of("name: one, key: [header.x-key], rate: 1/h")
    head_buffers = "large_client_header_buffers 4 128k;"
    with Nginx(tmp_path, rules, PAGES, http=head_buffers) as nginx:
        for key in ("short", "x" * 65600, "x" * 65599 + "y"):
            assert [nginx.get("/", X_KEY=key).status for _ in range(2)] == [200, 429]


def test_a_delayed_answer_is_whole_when_its_reader_is_slow(tmp_path):
    rules = limits_of("name: one, key: [], rate: 20/s, burst: 5, algorithm: leaky_bucket,"
                      " queue: true")
    server = PAGES + "location = /long { weir on; try_files /long.txt =404; }"
    nginx = Nginx(tmp_path, rules, server)
    (tmp_path / "www" / "long.txt").write_bytes(b"1234567890\n" * (1 << 16))
    with nginx, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(nginx.client()) for _ in range(4)]
        for client in clients:
            client.send(request_bytes("GET", "/long"))
        # Nobody reads before all of them are on their way, so that their buffers are full.
        wait_until(lambda: verdicts(nginx, "allowed") + verdicts(nginx, "delayed") >= 4)
        for client in clients:
            assert len(client.reply().body) == 11 << 16


def test_a_delayed_request_keeps_its_body(tmp_path):
    rules = limits_of("name: one, key: [], rate: 20/s, burst: 5, algorithm: leaky_bucket,"
                      " queue: true")
    with App() as app:
        server = PAGES + f"location = /post {{ weir on; proxy_pass http://{app.address}; }}"
        with Nginx(tmp_path, rules, server) as nginx, contextlib.ExitStack() as stack:
            clients = [stack.enter_context(nginx.client()) for _ in range(3)]
            for client in clients:
                client.send(request_bytes("POST", "/post", body=b"x" * 100000))
            for client in clients:
                assert client.reply().body == b"POST /post 100000"


def test_a_burst_without_delay_then_delays_then_denials(tmp_path):
    """limit_req's `burst=4 delay=2`."""
    rules = limits_of("name: one, key: [], rate: 1/h, burst: 4, algorithm: token_bucket,"
                      " steps: [{ at: 60%, delay: 10ms }]")
    with Nginx(tmp_path, rules, PAGES) as nginx:
        replies = [nginx.get("/") for _ in range(6)]
        assert [reply["X-Verdict"] for reply in replies] == \
            ["allowed"] * 2 + ["delayed"] * 2 + ["denied"] * 2
        assert [reply["X-Delay"] for reply in replies][:4] == ["0", "0", "10", "10"]


def test_dry_runs_count_and_hold_nobody_up(tmp_path):
    rules = limits_of("name: one, key: [], rate: 1/h, burst: 2, algorithm: leaky_bucket, queue: true")
    server = PAGES + f"""
        location = /dry {{ weir on; weir_dry_run on; {FILE} }}
        location = /off {{ weir off; {FILE} }}
    """
    with Nginx(tmp_path, rules, server) as nginx:
        replies = [nginx.get(path) for path in ("/dry", "/dry", "/dry", "/dry", "/", "/off")]
        assert [reply["X-Verdict"] for reply in replies] == \
            ["allowed", "delayed_dry_run", "delayed_dry_run", "denied_dry_run", "denied", None]
        assert [reply.status for reply in replies] == [200, 200, 200, 200, 429, 200]
        assert all(reply["RateLimit"] is None for reply in replies[:4])


def test_the_variables_are_in_the_access_log(tmp_path):
    rules = limits_of("name: one, key: [], rate: 2/h, algorithm: token_bucket")
    http = f"""log_format w '[$weir_verdict] [$weir_denied_by] [$weir_remaining] [$weir_cost]';
        access_log {tmp_path}/access.log w;"""
    server = PAGES + f"location = /off {{ weir off; {FILE} }}"
    nginx = Nginx(tmp_path, rules, server, http=http)
    nginx.conf.write_text(nginx.conf.read_text(encoding="utf-8").replace("access_log off;", ""),
                          encoding="utf-8")
    with nginx, nginx.client() as client:
        for path in ("/", "/", "/", "/off"):
            client.request("GET", path)
        log = tmp_path / "access.log"
        wait_until(lambda: len(log.read_text(encoding="ascii").splitlines()) >= 4)
        assert log.read_text(encoding="ascii").splitlines() == \
            ["[allowed] [] [1] [1]", "[allowed] [] [0] [1]", "[denied] [one] [0] [1]",
             "[-] [-] [-] [-]"]


def test_error_pages_and_named_locations(tmp_path):
    rules = limits_of("name: one, key: [], rate: 1/h")
    server = PAGES + f"""
        location = /page {{ weir on; error_page 429 /sorry; {FILE} }}
        location = /other {{ weir on; error_page 429 =503 @busy; {FILE} }}
        location = /sorry {{ weir on; internal; {FILE} }}
        location @busy {{ weir on; return 503 busy; }}
    """
    with Nginx(tmp_path, rules, server) as nginx:
        assert nginx.get("/page").status == 200
        reply = nginx.get("/page")
        assert (reply.status, reply.body) == (429, b"hello\n")
        assert int(reply["Retry-After"]) > 0
        reply = nginx.get("/other")
        assert (reply.status, reply.body) == (503, b"busy")
        assert verdicts(nginx, "denied") == 2


def test_requests_that_come_at_once_on_one_connection_are_each_decided(tmp_path):
    rules = limits_of("name: one, key: [], rate: 3/h")
    with Nginx(tmp_path, rules, PAGES) as nginx, nginx.client() as client:
        client.send(request_bytes("GET", "/") * 5)
        assert [client.reply().status for _ in range(5)] == [200] * 3 + [429] * 2


# --- limit_conn ----------------------------------------------------------------------------------

class Waits(Handler):
    """Answers /wait once the test lets it."""

    def do_GET(self):
        if self.path == "/wait":
            self.rfile.read(1)  # until the proxy closes
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


CONNECTIONS = limits_of(
    'name: zone, match: { path: [/, /1, /wait] }, key: [client.ip], algorithm: concurrency, limit: 1',
    'name: zone2, match: { path: /zone }, key: [client.ip], algorithm: concurrency, limit: 1',
    'name: custom, match: { path: "/custom/**" }, key: [client.ip], algorithm: concurrency, limit: 1,'
    ' reject: { status: 503 }',
    'name: keyed, match: { path: /key }, key: [header.x-key], algorithm: concurrency, limit: 1')


@pytest.fixture(name="held")
def fixture_held(tmp_path):
    with Application(Waits) as app:
        server = f"""
            location = /weir-status {{ weir_status; }}
            location / {{ weir on; {FILE} }}
            location = /wait {{ weir on; proxy_pass http://{app.address}/wait; }}
            location = /key {{ weir on; proxy_pass http://{app.address}/$arg_do; }}
            location = /custom/wait {{ weir on; proxy_pass http://{app.address}/wait; }}
            location = /unlimited {{ weir off; {FILE} }}
        """
        with Nginx(tmp_path, CONNECTIONS, server) as nginx:
            yield nginx


@contextlib.contextmanager
def open_request(nginx, path, **fields):
    """One that the upstream does not answer."""
    before = verdicts(nginx, "allowed")
    with nginx.client() as client:
        client.send(request_bytes("GET", path, fields))
        wait_until(lambda: verdicts(nginx, "allowed") > before)
        yield client


def test_open_requests_of_a_limit_wherever_they_are(held):
    with open_request(held, "/wait"):
        assert statuses(held, "/", "/1") == [429, 429]
        assert statuses(held, "/zone", "/unlimited") == [200, 200]
        assert statuses(held, "/") == [429]
    wait_until(lambda: held.get("/1").status == 200, what="the end of the lease")


def test_an_open_request_has_its_own_status(held):
    with open_request(held, "/custom/wait"):
        reply = held.get("/custom/")
        assert (reply.status, reply["X-Verdict"]) == (503, "denied")


def test_open_requests_by_key(held):
    with open_request(held, "/key?do=wait", **{"X-Key": "a"}):
        assert held.get("/key", X_KEY="a").status == 429
        assert held.get("/key", X_KEY="b").status == 200


def test_denied_requests_leave_no_lease(held):
    with open_request(held, "/wait"):
        for _ in range(20):
            assert held.get("/1").status == 429
    for _ in range(5):  # nginx ends a request's lease after the client has the response
        wait_until(lambda: held.get("/1").status == 200, what="the end of the lease")


# --- HTTP/2 --------------------------------------------------------------------------------------

def ask(connection, stream, path):
    """Sends a request on a stream of its own."""
    connection.send(frame(HEADERS, END_HEADERS | END_STREAM, stream,
                          head(path, method="GET", content_type="text/plain")))


def test_streams_of_one_connection_are_each_decided(tmp_path):
    rules = limits_of("name: one, key: [], rate: 2/h")
    with Nginx(tmp_path, rules, PAGES) as nginx, Frames(nginx.h2_address) as connection:
        bodies = []
        for stream in (1, 3, 5):
            ask(connection, stream, "/")
            bodies.append(connection.end_of(stream)[0])
        assert bodies[:2] == [b"hello\n"] * 2 and b"violated-policies" in bodies[2]


def test_open_streams_count_until_they_are_reset(held):
    with Frames(held.h2_address) as connection:
        ask(connection, 1, "/wait")
        wait_until(lambda: verdicts(held, "allowed") == 1)
        ask(connection, 3, "/1")
        assert b"violated-policies" in connection.end_of(3)[0]
        connection.send(frame(RST_STREAM, 0, 1, b"\0\0\0\x08"))  # CANCEL
        wait_until(lambda: held.get("/1").status == 200, what="the end of the lease")


def test_a_delayed_stream_holds_up_no_other(tmp_path):
    rules = limits_of("name: one, match: { path: /q }, key: [], rate: 1/h, burst: 5,"
                      " algorithm: leaky_bucket, queue: true")
    with Nginx(tmp_path, rules, PAGES) as nginx, Frames(nginx.h2_address) as connection:
        ask(connection, 1, "/q")
        assert connection.end_of(1)[0] == b"hello\n"
        ask(connection, 3, "/q")  # for an hour
        ask(connection, 5, "/other")
        assert connection.end_of(5)[0] == b"hello\n"
        connection.send(frame(RST_STREAM, 0, 3, b"\0\0\0\x08"))
        cancelled = 'weir_nginx_cancelled_total{front="nginx"}'
        wait_until(lambda: nginx.metrics()[cancelled] == 1, what="the place given back")
