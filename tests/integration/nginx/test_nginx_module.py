# SPDX-License-Identifier: Apache-2.0
"""ngx_http_weir_module in a real nginx: what a client sees of it, and what it does beside other
modules."""

import random
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from daemon.http import request_bytes
from daemon.nginx_module import Nginx, needs_module
from daemon.proxies import DEPLOY, Application, Handler, replaced
from daemon.waiting import wait_until

pytestmark = needs_module

LIMITS = """version: 1
priority: { from: header.x-priority }
limits:
  - { name: login, match: { path: /login }, key: [client.ip], rate: 2/30d, algorithm: token_bucket }
  - { name: tenants, match: { path: /tenant }, key: [tenant], rate: 1/30d, algorithm: token_bucket }
  - { name: agents, match: { path: /agent }, key: [header.x-agent], rate: 1/30d,
      algorithm: token_bucket }
  - { name: costly, match: { path: /costly }, key: [], rate: 10/30d, algorithm: token_bucket }
  - { name: marked, match: { path: /marked }, key: [], rate: 10/30d, algorithm: token_bucket,
      steps: [{ at: 10%, mark: true }] }
  - { name: worded, match: { path: /worded }, key: [], rate: 0/h,
      reject: { status: 403, body: 'no {{reason}}', content_type: text/plain,
                headers: { X-Why: limits } } }
  - { name: settled, match: { path: /settled }, key: [], rate: 10/30d, algorithm: fixed_window }
  - { name: refunded, match: { path: /refunded }, key: [], rate: 10/30d, algorithm: fixed_window,
      refund_on: [5xx], refund_cap: 100% }
  - { name: shed, match: { path: [/shed, /shed-by-all] }, key: [], rate: 10/30d, algorithm: token_bucket,
      shed: { sheddable: 50% } }
  - { name: silent, match: { path: /silent, header.x-agent: absent }, key: [], rate: 0/h }
  - { name: shadowed, match: { path: /shadowed }, key: [], rate: 0/h, shadow: true }
"""

FILE = "try_files /a.txt =404;"


class Back(Application):
    """What is proxied: answers with the fields that it got; /settled costs 4, /refunded fails."""

    def __init__(self):
        self.seen = seen = []

        class Answer(Handler):
            def do_GET(self):
                seen.append(dict(self.headers))
                self.send_response(503 if self.path == "/refunded" else 200)
                self.send_header("Content-Length", "2")
                self.send_header("Cache-Control", "max-age=600")
                if self.path == "/settled":
                    self.send_header("X-Cost", "4")
                self.end_headers()
                self.wfile.write(b"ok")

        super().__init__(Answer)


@pytest.fixture(scope="module", name="back")
def fixture_back():
    with Back() as back:
        yield back


@pytest.fixture(name="nginx")
def fixture_nginx(tmp_path, back):
    server = f"""
        location = /weir-status {{ weir_status; }}
        location / {{ weir on; {FILE} }}
        location = /off {{ weir off; {FILE} }}
        location = /tenant {{ weir on; weir_attribute tenant $arg_tenant; {FILE} }}
        location = /costly {{ weir on; weir_cost $arg_cost; {FILE} }}
        location = /marked {{
            weir on;
            proxy_set_header X-Action $weir_action; proxy_pass http://{back.address};
        }}
        location = /settled {{
            weir on; weir_settle $upstream_http_x_cost; proxy_pass http://{back.address};
        }}
        location = /shed-by-all {{ weir on; add_header X-Class $weir_class always; {FILE} }}
        location = /shed {{ weir on; weir_trusted on; add_header X-Class $weir_class always; {FILE} }}
        location = /refunded {{ weir on; proxy_pass http://{back.address}; }}
        location = /dry {{ weir on; weir_dry_run on; {FILE} }}
    """
    with Nginx(tmp_path, LIMITS, server) as nginx:
        yield nginx


def test_a_denial_has_status_body_and_fields(nginx):
    for remaining in (1, 0):
        reply = nginx.get("/login")
        assert (reply.status, reply.body) == (200, b"hello\n")
        assert reply["RateLimit"].startswith(f'"login";r={remaining};t=')
        assert reply["RateLimit-Policy"] == '"login";q=2;w=2592000'
        assert reply["X-RateLimit-Remaining"] == str(remaining)
        assert reply["Retry-After"] is None
    reply = nginx.get("/login")
    assert reply.status == 429
    assert reply["Content-Type"] == "application/problem+json"
    assert reply.json["violated-policies"] == ["login"]
    assert 0 < int(reply["Retry-After"]) <= 1296000
    assert reply["Cache-Control"] == "no-store"
    assert reply["X-Verdict"] == "denied"


def test_a_limit_may_word_its_denials(nginx):
    reply = nginx.get("/worded")
    assert (reply.status, reply.body) == (403, b"no worded")
    assert (reply["Content-Type"], reply["X-Why"]) == ("text/plain", "limits")


def test_a_connection_is_kept_after_a_denial(nginx):
    with nginx.client() as client:
        assert [client.request("GET", "/login").status for _ in range(4)] == [200, 200, 429, 429]
        assert client.request("HEAD", "/off").status == 200


def test_paths_have_their_normal_form(nginx):
    assert [nginx.get(path).status for path in
            ("/login", "/%6Cogin", "//login?x=1", "/x/../login", "/./login")] == \
        [200, 200, 429, 429, 429]


def test_off_means_off_and_what_is_not_named_passes(nginx):
    for path in ("/off", "/a.txt"):
        reply = nginx.get(path)
        assert reply.status == 200 and reply["RateLimit"] is None


def test_attributes_come_from_variables_and_fields(nginx):
    asked = ["/tenant?tenant=a", "/tenant?tenant=b", "/tenant?tenant=a", "/tenant"]
    assert [nginx.get(path).status for path in asked] == [200, 200, 429, 200]
    assert [nginx.get("/agent", X_AGENT=agent).status for agent in ("x", "y", "x")] == \
        [200, 200, 429]
    with nginx.client() as client:  # two fields are one, joined
        client.send(b"GET /agent HTTP/1.1\r\nHost: a\r\nX-Agent: p\r\nx-agent: q\r\n\r\n")
        assert client.reply().status == 200
    assert nginx.get("/agent", X_AGENT="p, q").status == 429


def peak_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def test_a_field_that_is_repeated_900_times_takes_little_memory(tmp_path):
    rules = """version: 1
limits: [ { name: x, key: [header.x], rate: 1/30d, algorithm: token_bucket } ]
"""
    with Nginx(tmp_path, rules, f"location / {{ weir on; {FILE} }}", workers=1) as nginx:
        assert nginx.get("/").status == 200
        pid = nginx.pids()[0]
        before = peak_kib(pid)
        for status in (200, 429):
            with nginx.client() as client:
                client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x:aaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 900 + b"\r\n")
                assert client.reply().status == status
        assert peak_kib(pid) - before < 4096


def test_a_field_may_be_absent(nginx):
    assert nginx.get("/silent").status == 429
    assert nginx.get("/silent", X_AGENT="x").status == 200
    assert nginx.get("/silent", X_PRIORITY="normal").status == 429


def test_a_cost_comes_from_a_variable(nginx):
    assert nginx.get("/costly?cost=7")["X-RateLimit-Remaining"] == "3"
    assert nginx.get("/costly?cost=4").status == 429
    assert nginx.get("/costly?cost=")["X-RateLimit-Remaining"] == "2"
    assert nginx.get("/costly")["X-RateLimit-Remaining"] == "1"


def test_a_cost_of_a_request_that_is_no_number_is_refused_and_logged_once_a_minute(nginx):
    for cost in ("many", "-1", "1.5", "0x5", "99999999999999999999", "1%20") * 2:
        assert nginx.get(f"/costly?cost={cost}").status == 400, cost
    assert nginx.get("/costly")["X-RateLimit-Remaining"] == "9"  # nothing was charged
    assert nginx.metrics()['weir_nginx_requests_total{front="nginx",verdict="error"}'] == 12
    assert 1 <= nginx.log().count("weir_cost:") <= nginx.workers  # once a minute, each
    assert re.search('weir_cost: "[^"]+" is not a whole number; the request is answered with 400',
                     nginx.log())


@pytest.mark.parametrize("level", ["info", "notice", "warn", "error"])
def test_denials_are_logged_at_the_level_of_the_location(tmp_path, level):
    rules = "version: 1\nlimits: [ { name: none, key: [], rate: 0/h } ]\n"
    with Nginx(tmp_path, rules, f"weir_log_level {level}; location / {{ weir on; }}") as nginx:
        assert nginx.get("/a.txt").status == 429
        assert re.search(rf'\[{level}\] .* weir: denied by "none", client: 127.0.0.1, ', nginx.log())


def test_no_request_passes_because_the_rules_cannot_read_it(tmp_path):
    rules = """version: 1
limits: [ { name: all, key: [], rate: 9/30d, algorithm: token_bucket, cost: 3 } ]
"""
    server = f"location / {{ weir on; weir_cost $arg_cost; {FILE} }}"
    http = "large_client_header_buffers 4 64k;"
    with Nginx(tmp_path, rules, server, http=http, on_error="open") as nginx:
        for host, path in (("a" * 256, "/"), ("a", "/" + "a" * 20000),
                           ("a", f"/?cost={2**63 - 1}"), ("[zz]", "/")):
            with nginx.client() as client:
                client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                assert client.reply().status == 400, (host, path[:20])
        assert "weir_on_error" not in nginx.log()
        assert [nginx.get("/").status for _ in range(4)] == [200, 200, 200, 429]


def test_actions_reach_the_upstream(nginx, back):
    back.seen.clear()
    for _ in range(2):
        assert nginx.get("/marked").status == 200
    assert [fields.get("X-Action") for fields in back.seen] == ["mark", "mark"]


def test_the_charge_is_settled_by_the_upstream(nginx):
    with nginx.client() as client:  # on one connection, each is settled before the next
        left = [client.request("GET", "/settled")["X-RateLimit-Remaining"] for _ in range(3)]
    assert left == ["9", "5", "1"]  # 4 each, and before it is settled 1


def test_an_outcome_gives_back(nginx):
    with nginx.client() as client:  # on one connection, each is settled before the next
        for _ in range(3):
            reply = client.request("GET", "/refunded")
            assert (reply.status, reply["X-RateLimit-Remaining"]) == (503, "9")


def test_classes_are_shown_and_shed(nginx):
    for cost in range(5):
        reply = nginx.get("/shed", X_PRIORITY="sheddable")
        assert (reply.status, reply["X-Class"]) == (200, "sheddable"), cost
    assert nginx.get("/shed", X_PRIORITY="sheddable").status == 429
    reply = nginx.get("/shed-by-all", X_PRIORITY="critical")  # a client like any other
    assert (reply.status, reply["X-Class"]) == (200, "normal")
    reply = nginx.get("/shed")
    assert (reply.status, reply["X-Class"]) == (200, "normal")


def test_a_shadow_limit_denies_nothing_and_is_counted(nginx):
    assert nginx.get("/shadowed").status == 200
    metrics = nginx.metrics()
    assert metrics['weir_decisions_total{front="nginx",limit="shadowed",'
                   'result="shadow_denied"}'] == 1


def test_metrics_are_those_of_more_workers_than_have_counts_of_their_own(tmp_path):
    rules = """version: 1
limits: [{ name: all, key: [], rate: 30/30d, algorithm: fixed_window }]
"""
    server = """
        location = /weir-status { weir_status; }
        location / { weir on; add_header X-Pid $pid always; try_files /a.txt =404; }
    """
    nginx = Nginx(tmp_path, rules, server, workers=18)
    text = nginx.conf.read_text(encoding="utf-8")
    nginx.conf.write_text(text.replace("size=4m", "size=16m"), encoding="utf-8")  # room for so many
    with nginx:
        pids = {nginx.get("/")["X-Pid"] for _ in range(200)}
        assert len(pids) > 1
        metrics = nginx.metrics()
    assert metrics['weir_decisions_total{front="nginx",limit="all",result="allowed"}'] == 30
    assert metrics['weir_decisions_total{front="nginx",limit="all",result="denied"}'] == 170
    assert metrics['weir_nginx_requests_total{front="nginx",verdict="denied"}'] == 170


def test_metrics_are_those_of_all_workers(nginx):
    pids = set()
    for _ in range(200):
        pids.add(nginx.get("/login")["X-Pid"])
    assert len(pids) == 2
    metrics = nginx.metrics()
    assert metrics['weir_decisions_total{front="nginx",limit="login",result="allowed"}'] == 2
    assert metrics['weir_decisions_total{front="nginx",limit="login",result="denied"}'] == 198
    assert metrics['weir_nginx_requests_total{front="nginx",verdict="denied"}'] == 198
    nginx.reload()
    assert nginx.metrics()[
        'weir_decisions_total{front="nginx",limit="login",result="denied"}'] == 198


def test_http2(nginx):
    def ask(path):
        done = subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-o", "/dev/null", "-w",
                               "%{http_version} %{http_code} %header{ratelimit-policy}",
                               f"http://{nginx.h2_address}{path}"], capture_output=True, text=True,
                              timeout=60, check=True)
        return done.stdout

    answers = [ask("/login") for _ in range(3)]
    assert [answer.split()[1] for answer in answers] == ["200", "200", "429"]
    assert answers[0].startswith("2 ") and '"login";q=2' in answers[0]


def test_a_request_is_charged_once_whatever_way_it_takes(tmp_path, back):
    rules = """version: 1
limits: [ { name: all, key: [], rate: 100/30d, algorithm: token_bucket } ]
"""
    server = f"""
        location / {{ weir on; try_files /missing @second; }}
        location @second {{ weir on; error_page 404 = /third; return 404; }}
        location = /third {{ weir on; proxy_pass http://{back.address}; }}
        location = /guarded {{ weir on; auth_request /auth; proxy_pass http://{back.address}; }}
        location = /auth {{ weir on; internal; proxy_pass http://{back.address}; }}
        location = /rewritten {{ rewrite ^ /third last; }}
        location = /dry {{ weir on; weir_dry_run on; {FILE} }}
        location = /paged {{
            weir on; error_page 429 = @busy; {FILE}
        }}
        location @busy {{ weir on; return 200 "busy $weir_verdict $weir_denied_by\\n"; }}
    """
    with Nginx(tmp_path, rules, server) as nginx:
        for left, path in ((99, "/a"), (98, "/guarded"), (97, "/rewritten")):
            reply = nginx.get(path)
            assert (reply.status, reply["X-RateLimit-Remaining"]) == (200, str(left)), path
        while nginx.get("/third").status == 200:
            left -= 1
        assert left == 0
        reply = nginx.get("/paged")
        assert (reply.status, reply.body) == (200, b"busy denied all\n")
        assert int(reply["Retry-After"]) > 0
        reply = nginx.get("/dry")
        assert (reply.status, reply["X-Verdict"]) == (200, "denied_dry_run")
        assert reply["RateLimit"] is None


def test_beside_limit_req_realip_and_a_cache(tmp_path, back):
    rules = """version: 1
limits: [ { name: ip, key: [client.ip], rate: 3/30d, algorithm: token_bucket } ]
"""
    http = f"""limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;
        proxy_cache_path {tmp_path}/cache keys_zone=c:1m;
        set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;"""
    server = f"""
        location = /both {{ weir on; limit_req zone=z burst=1 nodelay; {FILE} }}
        location = /cached {{
            weir on; proxy_cache c; add_header X-Cache $upstream_cache_status;
            proxy_pass http://{back.address};
        }}
    """
    with Nginx(tmp_path, rules, server, http=http) as nginx:
        statuses = [nginx.get("/both", X_REAL_IP="192.0.2.1").status for _ in range(3)]
        assert statuses == [200, 200, 503]  # limit_req's
        wait_until(lambda: nginx.get("/cached", X_REAL_IP=f"192.0.2.{random.randrange(9, 250)}")
                   ["X-Cache"] == "HIT", what="the cached answer")
        replies = [nginx.get("/cached", X_REAL_IP="192.0.2.2") for _ in range(4)]
        assert [reply.status for reply in replies] == [200, 200, 200, 429]
        assert [reply["X-RateLimit-Remaining"] for reply in replies] == ["2", "1", "0", "0"]
        assert [reply["X-Cache"] for reply in replies] == ["HIT"] * 3 + [None]


def test_precontent_sees_what_auth_found(tmp_path):
    rules = """version: 1
limits: [ { name: users, key: [who], rate: 1/30d, algorithm: token_bucket } ]
"""
    server = f"""
        location = /auth {{ internal; add_header X-Who $arg_user; return 204; }}
        location = /page {{
            auth_request /auth; auth_request_set $who $http_x_name;
            weir on; weir_phase precontent; weir_attribute who $who; {FILE}
        }}
    """
    with Nginx(tmp_path, rules, server) as nginx:
        asked = [nginx.get("/page", X_NAME=name).status for name in ("ann", "bob", "ann")]
        assert asked == [200, 200, 429]


class Sockets(Handler):
    def do_GET(self):
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.end_headers()
        self.rfile.read(1)
        self.close_connection = True


UPGRADE = request_bytes("GET", "/ws", fields={"Upgrade": "websocket", "Connection": "Upgrade"})


def websockets_to(app):
    return f"""location = /ws {{
        weir on; proxy_pass http://{app.address}; proxy_http_version 1.1;
        proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection Upgrade;
    }}"""


def test_concurrency_leases_last_as_long_as_requests(tmp_path):
    rules = """version: 1
limits: [ { name: open, match: { path: /ws }, key: [], algorithm: concurrency, limit: 1,
            life: 1h } ]
"""

    with Application(Sockets) as app:
        with Nginx(tmp_path, rules, websockets_to(app)) as nginx:
            with nginx.client() as first:
                first.send(UPGRADE)
                assert first.reply(head_only=True).status == 101
                assert nginx.get("/ws").status == 429
            wait_until(lambda: take(nginx, UPGRADE), what="the lease of the first")
            assert "exited on signal" not in nginx.log()


def test_a_websocket_that_outlives_the_life_of_its_lease_keeps_it(tmp_path):
    rules = """version: 1
limits: [ { name: open, match: { path: /ws }, key: [], algorithm: concurrency, limit: 1,
            life: 2s } ]
"""
    with Application(Sockets) as app, Nginx(tmp_path, rules, websockets_to(app)) as nginx:
        with nginx.client() as first:
            first.send(UPGRADE)
            assert first.reply(head_only=True).status == 101
            end = time.monotonic() + 5
            while time.monotonic() < end:
                assert nginx.get("/ws").status == 429
            first.send(b"x")  # it is open still: the upstream ends it
            assert first.closed()
        wait_until(lambda: take(nginx, UPGRADE), what="the lease of the first")


def test_a_lease_of_a_short_life_is_renewed_in_time(tmp_path):
    rules = """version: 1
limits:
  - { name: open, match: { path: /slow }, key: [], algorithm: concurrency, limit: 1, life: 900ms }
  - { name: slow, match: { header.x-wait: "1" }, key: [], rate: 1/h, burst: 5,
      algorithm: leaky_bucket, queue: true }
"""
    server = f"location = /weir-status {{ weir_status; }} location / {{ weir on; {FILE} }}"
    wait = request_bytes("GET", "/slow", fields={"X-Wait": "1"})
    with Nginx(tmp_path, rules, server) as nginx:
        assert nginx.get("/", X_WAIT="1").status == 200
        with nginx.client() as waiting:  # for an hour, with the lease
            waiting.send(wait)
            wait_until(lambda: nginx.metrics()[
                'weir_nginx_requests_total{front="nginx",verdict="delayed"}'] == 1)
            end = time.monotonic() + 3
            while time.monotonic() < end:
                assert nginx.get("/slow").status == 429


def test_a_denial_in_the_page_of_another_error_has_its_status(tmp_path):
    rules = """version: 1
limits: [ { name: none, key: [], rate: 0/h } ]
"""
    server = f"""
        location = /missing {{ error_page 404 /sorry; return 404; }}
        location = /sorry {{ weir on; {FILE} }}
    """
    with Nginx(tmp_path, rules, server) as nginx:
        reply = nginx.get("/missing")
        assert (reply.status, reply.json["violated-policies"]) == (429, ["none"])


def take(nginx, upgrade):
    """Whether a handshake is admitted; its connection is left open by the system alone."""
    with nginx.client() as client:
        client.send(upgrade)
        return client.reply(head_only=True).status == 101


def test_the_configuration_of_the_docs(tmp_path, back):
    rules = """version: 1
limits:
  - { name: login, match: { path: /login }, key: [client.ip], rate: 5/min, algorithm: token_bucket }
"""
    nginx = Nginx(tmp_path, rules, "")
    text = (DEPLOY / "nginx" / "module.conf").read_text(encoding="utf-8")
    nginx.use_snippet(replaced(text, ("127.0.0.1:3000", back.address)))
    with nginx:
        statuses = [nginx.get("/login").status for _ in range(6)]
        assert statuses == [200] * 5 + [429]
        with nginx.client() as client:
            assert client.request("HEAD", "/health").status == 204
        assert nginx.metrics("/weir-metrics")[
            'weir_nginx_requests_total{front="nginx",verdict="denied"}'] == 1


def test_mistakes_are_named_with_file_line_and_column(tmp_path):
    rules = "version: 1\nlimits:\n  - { name: a, key: [], rate: 5/fortnight }\n  - { nam: b }\n"
    nginx = Nginx(tmp_path, rules, "location / { weir on; }")
    done = nginx.test()
    assert done.returncode != 0
    assert f"weir_rules: {nginx.rules}:3:" in done.stderr
    assert f"weir_rules: {nginx.rules}:4:" in done.stderr
    nginx.rules.write_text(LIMITS, encoding="utf-8")
    assert nginx.test().returncode == 0
    assert not list((tmp_path / "run").iterdir())  # no state is made
    text = nginx.conf.read_text(encoding="utf-8")
    for old, new, complaint in (
            ("weir_state", "# weir_state", "weir_state is missing"),
            ("size=4m", "size=4q", '"size=4q" is none of'),
            ("size=4m", "mode=0777", '"mode=0777" is none of'),
            (str(nginx.rules), "/nonexistent.yaml", "cannot read the file"),
            ("weir on;", "weir on; weir_phase access;", 'invalid value "access"'),
            ("weir on;", "weir_status; weir_status;", '"weir_status" directive is duplicate')):
        nginx.conf.write_text(text.replace(old, new), encoding="utf-8")
        done = nginx.test()
        assert done.returncode != 0 and complaint in done.stderr, (new, done.stderr)


@pytest.mark.parametrize("rules, reason", [
    ("store: { redis: 'redis://127.0.0.1:1', on_store_error: open }", "`store`"),
    ("identities: { redis: 'redis://127.0.0.1:1' }\nidentify: [header.x-api-key]", "`identities`"),
])
def test_rules_that_need_a_server_are_refused(tmp_path, rules, reason):
    text = f"version: 1\n{rules}\nlimits: [ {{ name: a, key: [], rate: 1/s }} ]\n"
    done = Nginx(tmp_path, text, "location / { weir on; }").test()
    assert done.returncode != 0
    assert reason in done.stderr and "weir serve" in done.stderr


def test_a_client_that_closes_at_once_hurts_nobody(nginx):
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", nginx.port)) as sock:
            sock.sendall(b"GET /login HTTP/1.1\r\nHost: a\r\n\r\n")
    assert nginx.get("/off").status == 200
    assert "alert" not in nginx.log() and "exited on signal" not in nginx.log()
