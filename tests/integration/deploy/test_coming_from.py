# SPDX-License-Identifier: Apache-2.0
"""The pages docs/coming-from: what nginx and HAProxy admit, delay and deny by the directives of a page, weir
does by its rules. Rates are such that nothing comes back while a test runs."""

import contextlib
import re
import shutil
import socket
import threading

import pytest

from daemon.http import Client, request_bytes
from daemon.nginx_module import Nginx, needs_module
from daemon.proxies import App, Application, Handler, Proxy, free_port
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.weir import Weir
from model.program import ROOT

OTHER = "127.0.0.2"  # of a client that the rules do not know


def text_of(page):
    return (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")


def section(page, title):
    """{language: blocks} of a section."""
    part = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^## |\Z)", text_of(page), re.M | re.S)[1]
    found = {}
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", part, re.M | re.S):
        found.setdefault(language, []).append(block)
    return found


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, f"no {old!r} in {text}"
        text = text.replace(old, new)
    return text


def verdicts(weir, count, **request):
    """(passes, waits, denied) of so many checks."""
    with weir.client() as client:
        answers = [client.check(**{"ip": "192.0.2.1", **request}).json for _ in range(count)]
    denied = sum(not answer["allowed"] for answer in answers)
    waits = sum(answer["allowed"] and answer["delay_ms"] > 0 for answer in answers)
    return count - waits - denied, waits, denied


# --- nginx ----------------------------------------------------------------------------------------

CONF = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log info;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {paths}
    {zones}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            {limits}
            {serve}
        }}
    }}
}}
"""


class OwnNginx(Proxy):
    """nginx with the directives of a page, without weir."""

    def __init__(self, folder, block, serve):
        (folder / "a.txt").write_text("hello\n", encoding="ascii")
        zones = re.findall(r"^(?:limit_\w+_zone|geo|map) .*$", block, re.M)
        limits = re.findall(r"^limit_(?:req|conn) .*$", block, re.M)
        assert len(zones) + len(limits) == len(block.splitlines())
        port = free_port()
        paths = "".join(f"{name}_temp_path {folder}/{name};\n" for name in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(CONF.format(
            folder=folder, paths=paths, zones="\n".join(zones), port=port, limits="\n".join(limits),
            serve=serve or f"root {folder}; try_files /a.txt =404;"), encoding="utf-8")
        self.errors = folder / "error.log"
        super().__init__(["nginx", "-p", str(folder), "-e", str(self.errors), "-c", str(folder / "nginx.conf")],
                         folder / "nginx.log", f"127.0.0.1:{port}")

    def said(self, what):
        return self.errors.read_text(encoding="utf-8").count(what)


def answers_of(nginx, count, source="127.0.0.1"):
    """(passes, waits, denied) of so many requests at once, each on its own connection."""
    host, port = nginx.address.split(":")
    before = nginx.said("delaying request")
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.create_connection((host, int(port)), SECONDS_MAX, (source, 0)))
                 for _ in range(count)]
        for sock in socks:
            sock.sendall(request_bytes("GET", "/"))
            sock.setblocking(False)
        seen = {}

        def all_known():
            for sock in socks:
                with contextlib.suppress(BlockingIOError):
                    if sock not in seen:
                        seen[sock] = int(sock.recv(4096).split()[1])
            return len(seen) + nginx.said("delaying request") - before == count

        wait_until(all_known, what="an answer, or a delay, of each request")
    statuses = list(seen.values())
    assert set(statuses) <= {200, 503}
    return statuses.count(200), count - len(seen), statuses.count(503)


@pytest.mark.parametrize("title, expected", [
    ("burst with nodelay", (11, 0, 4)), ("No burst", (1, 0, 14)), ("Burst that waits", (1, 10, 4)),
    ("delay=N", (5, 6, 4))])
def test_limit_req(tmp_path, title, expected):
    page = section("coming-from/nginx", title)
    (own,), (rules,) = page["nginx"], page["yaml"]
    with OwnNginx(tmp_path, replaced(own, ("10r/s", "1r/m")), "") as nginx:
        assert answers_of(nginx, 15) == expected
    with Weir(tmp_path, replaced(rules, ("10/s", "1/min"))) as weir:
        assert verdicts(weir, 15) == expected


def test_several_limits_of_nginx_are_charged_together(tmp_path):
    """What the last one denies costs nothing in the first, in both. Without `b`, only the first one counts."""
    own = ("limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;\nlimit_req_zone $arg_b zone=two:1m rate=1r/m;\n"
           "limit_req zone=one burst=5 nodelay;\nlimit_req zone=two;\n")
    rules = ("version: 1\nlimits:\n"
             "  - { name: one, key: [client.ip], algorithm: token_bucket, rate: 1/min burst 6 }\n"
             "  - { name: two, key: [query.b], algorithm: token_bucket, rate: 1/min burst 1 }\n")
    paths = ["/?b=1"] * 5 + ["/"] * 7
    expected = [True] + [False] * 4 + [True] * 5 + [False] * 2
    with OwnNginx(tmp_path, own, "") as nginx, Client(nginx.address) as client:
        assert [client.request("GET", path).status == 200 for path in paths] == expected
    with Weir(tmp_path, rules) as weir, weir.client() as client:
        assert [client.check(ip="192.0.2.1", path=path).json["allowed"] for path in paths] == expected


def test_geo_and_map(tmp_path):
    page = section("coming-from/nginx", "geo and map")
    (own,), (rules,) = page["nginx"], page["yaml"]
    known = ("127.0.0.0/8", "127.0.0.1/32")
    with OwnNginx(tmp_path, replaced(own, ("10r/s", "1r/m"), known), "") as nginx:
        assert answers_of(nginx, 15) == (15, 0, 0)
        assert answers_of(nginx, 15, source=OTHER) == (11, 0, 4)
    with Weir(tmp_path, replaced(rules, ("10/s", "1/min"), known)) as weir:
        assert verdicts(weir, 15, ip="127.0.0.1") == (15, 0, 0)
        assert verdicts(weir, 15, ip=OTHER) == (11, 0, 4)


def test_limit_conn(tmp_path):
    page = section("coming-from/nginx", "limit_conn")
    (own,), (rules,) = page["nginx"], page["yaml"]
    release, inside = threading.Event(), []

    class Held(Handler):
        def do_GET(self):
            inside.append(self.path)
            release.wait(SECONDS_MAX)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with Application(Held) as app, OwnNginx(tmp_path, own, f"proxy_pass http://{app.address};") as nginx, \
            contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(nginx.address)) for _ in range(2)]
        for client in clients:
            client.send(request_bytes("GET", "/"))
        wait_until(lambda: len(inside) == 2, what="two requests in flight")
        with Client(nginx.address) as third:
            assert third.request("GET", "/").status == 503
        release.set()
        assert [client.reply().status for client in clients] == [200, 200]
    with Weir(tmp_path, rules) as weir:
        assert verdicts(weir, 3) == (2, 0, 1)


@needs_module
def test_cache_hits(tmp_path):
    (own,) = section("coming-from/nginx", "Cache hits")["nginx"]
    mapped, settle = own.splitlines()
    rules = "version: 1\nlimits:\n  - { name: all, key: [], algorithm: sliding_log, rate: 3/h }\n"
    with App() as app:
        server = (f"location / {{ weir on; {settle} proxy_cache one; proxy_cache_valid 200 1h;"
                  f" proxy_pass http://{app.address}; }}")
        cache = f"proxy_cache_path {tmp_path}/cache keys_zone=one:1m;\n{mapped}"
        with Nginx(tmp_path, rules, server, http=cache, workers=1) as nginx:
            paths = ["/a"] * 6 + ["/b", "/c", "/d"]
            assert [nginx.get(path).status for path in paths] == [200] * 8 + [429]
        assert [path for _, path in app.seen] == ["/a", "/b", "/c"]


# --- HAProxy --------------------------------------------------------------------------------------

HAPROXY = """defaults
    mode http
    timeout connect 60s
    timeout client 60s
    timeout server 60s
frontend web
    bind 127.0.0.1:{port}
{block}
    default_backend app
backend app
    server app {app}
"""


@pytest.fixture(name="haproxy")
def fixture_haproxy(tmp_path):
    """A function of a block: HAProxy with it, in windows that no test ends."""
    with App() as app, contextlib.ExitStack() as stack:
        def start(block):
            port = free_port()
            conf = tmp_path / "haproxy.cfg"
            conf.write_text(HAPROXY.format(port=port, app=app.address, block=replaced(block, ("10s", "1h"))),
                            encoding="utf-8")
            return stack.enter_context(Proxy(["haproxy", "-db", "-f", str(conf)], tmp_path / "haproxy.log",
                                             f"127.0.0.1:{port}"))
        yield start


def passes(address, count, **fields):
    with Client(address) as client:
        statuses = [client.request("GET", "/", fields).status for _ in range(count)]
    assert set(statuses) <= {200, 429}
    assert statuses == sorted(statuses)
    return statuses.count(200)


def test_a_rate_of_a_stick_table(tmp_path, haproxy):
    page = section("coming-from/haproxy", "A rate of requests")
    (own,), (rules,) = page["haproxy"], page["yaml"]
    assert passes(haproxy(own).address, 30) == 20
    with Weir(tmp_path, replaced(rules, ("20/10s", "20/h"))) as weir:
        assert verdicts(weir, 30) == (20, 0, 10)


def test_a_key_of_a_stick_table(tmp_path, haproxy):
    page = section("coming-from/haproxy", "A key of your own, and exceptions")
    (own,), (rules,) = page["haproxy"], page["yaml"]
    address = haproxy(own).address
    assert [passes(address, 25, **{"X-Api-Key": key}) for key in "ab"] == [20, 20]
    assert passes(address, 25) == 25
    with Weir(tmp_path, replaced(rules, ("20/10s", "20/h"))) as weir:
        asked = [verdicts(weir, 25, headers={"x-api-key": key})[0] for key in "ab"]
        assert asked == [20, 20]
        assert verdicts(weir, 25)[0] == 25
        assert verdicts(weir, 25, headers={"x-api-key": "a"}, ip="10.1.2.3")[0] == 25


# --- Kong, APISIX, Cloudflare: weir's side ----------------------------------------------------------

def statuses_of(weir, count, **fields):
    """Of /v1/auth, as a gateway asks it."""
    with weir.client() as client:
        return [client.auth(**fields).status for _ in range(count)]


def test_kong_counts_in_several_windows(tmp_path):
    _, rules = section("coming-from/kong-apisix", "Several windows")["yaml"]
    with Weir(tmp_path, replaced(rules, ("5/s, 100/h", "5/day, 8/30d"))) as weir:
        assert verdicts(weir, 9) == (5, 0, 4)
        with weir.client() as client:
            answer = client.check(ip="192.0.2.1").json
        assert answer["denied_by"] == "api"


@pytest.mark.parametrize("title, rate, statuses", [
    ("limit-count", ("3/60s", "3/day"), [200] * 3 + [503] * 2),
    ("limit-req", ("1/s", "1/h"), [200] * 3 + [429] * 2),
    ("limit-conn", ("limit: 2", "limit: 2"), [200] * 2 + [429] * 3)])
def test_apisix(tmp_path, title, rate, statuses):
    (rules,) = section("coming-from/kong-apisix", title)["yaml"]
    with Weir(tmp_path, replaced(rules, rate)) as weir:
        assert statuses_of(weir, 5) == statuses


def test_a_mitigation_of_cloudflare(tmp_path):
    rules = re.findall(r"^```yaml\n(.*?)^```", text_of("coming-from/cloudflare"), re.M | re.S)[0]
    with Weir(tmp_path, replaced(rules, ("5/60s", "5/day"))) as weir, weir.client() as client:
        login = {"method": "POST", "path": "/login", "ip": "192.0.2.1"}
        assert [client.check(**login).json["allowed"] for _ in range(6)] == [True] * 5 + [False]
        page = {"method": "GET", "path": "/", "ip": "192.0.2.1"}
        assert client.check(**page).json["allowed"]
        assert client.check(**login).json["denied_by"] == "login"
        wait_until(lambda: client.check(**page).json["denied_by"] == "standing", what="the suspension")
        assert client.check(**{**login, "ip": "192.0.2.2"}).json["allowed"]


def test_failures_alone_count_as_in_cloudflare(tmp_path):
    (rules,) = section("coming-from/cloudflare", "Origin errors and successes")["yaml"]
    login = {"method": "POST", "path": "/login", "ip": "192.0.2.1"}
    with Weir(tmp_path, replaced(rules, ("3/60s", "3/day"))) as weir, weir.client() as client:
        seen = []
        for status in (200, 401, 302, 403, 404, 401, 401):
            answer = client.post("/v1/reserve", login).json
            seen.append(answer["allowed"])
            if answer["allowed"]:
                client.post("/v1/settle", {"reservation": answer["reservation"], "status": status})
        assert seen == [True] * 6 + [False]


# --- Browsers -------------------------------------------------------------------------------------

def test_a_page_of_another_origin_may_read_a_denial(tmp_path):
    (rules,) = section("actions", "Browsers")["yaml"]
    with Weir(tmp_path, replaced(rules, ("100/min", "2/day"))) as weir, weir.client() as client:
        asked = [client.auth(Authorization="Bearer a") for _ in range(3)]
        assert [reply.status for reply in asked] == [200, 200, 429]
        denied = asked[-1]
        assert denied["Access-Control-Allow-Origin"] == "https://app.example.com"
        shown = denied["Access-Control-Expose-Headers"].split(", ")
        assert shown == ["RateLimit", "RateLimit-Policy", "Retry-After"]
        assert all(denied[name] for name in shown)
        assert [client.auth(method="OPTIONS").status for _ in range(9)] == [200] * 9
        assert [client.auth().status for _ in range(3)] == [200, 200, 429]  # by the address


READ = """const done = arguments[1];
fetch(arguments[0]).then((answer) => done([answer.status, answer.headers.get('Retry-After'), answer.headers.get('RateLimit')]),
                         () => done('hidden'));"""


@pytest.mark.skipif(not (shutil.which("chromium") and shutil.which("chromedriver")),
                    reason="chromium and chromium-driver are not installed")
def test_a_browser_reads_a_denial(tmp_path):
    """What passes has no field of CORS here, since no application answers."""
    pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
    from browser.chromium import Page, open_browser
    (rules,) = section("actions", "Browsers")["yaml"]
    browser = open_browser(tmp_path)
    try:
        with App() as app, Weir(tmp_path, replaced(rules, ("100/min", "2/day"), (
                "https://app.example.com", f"http://{app.address}"))) as weir:
            Page(browser, f"http://{app.address}/").load()
            seen = [browser.execute_async_script(READ, f"http://{weir.http_address}/v1/auth") for _ in range(3)]
    finally:
        browser.quit()
    assert seen[:2] == ["hidden", "hidden"]
    status, retry_after, fields = seen[2]
    assert status == 429 and int(retry_after) > 0 and fields.startswith('"api";r=0')
