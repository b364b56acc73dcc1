# SPDX-License-Identifier: Apache-2.0
"""`weir replay` reads what the real programs write: the same requests go to Apache, nginx, HAProxy, Caddy and Traefik,
and their logs give the same callers."""

import gzip
import json
import re
import shutil
import socket
import subprocess

import pytest

from daemon.http import Client
from daemon.proxies import App, Proxy, free_port
from daemon.waiting import wait_until
from daemon.wheels import TRAEFIK, Wheel
from model.program import run_weir

AGENT = 'curl/8 "quoted" back\\slash'
FORWARDED = "203.0.113.9:40001, 10.0.0.2"
REQUESTS = [("GET", "/a?b=c"), ("POST", "/login"), ("GET", "/say%20%22hi%22"), ("GET", "/b")]
PATHS = ["/a", "/login", "/say%2520%2522hi%2522", "/b"]  # as keys write them

# Each key is denied once: the report then lists all of them.
RULES = """\
version: 1
limits:
  - name: peers
    key: [client.ip, method, path]
    algorithm: fixed_window
    rate: 1/day
    shadow: true
  - name: agents
    match: { header.user-agent: "curl/8 *" }
    key: [header.user-agent]
    algorithm: fixed_window
    rate: 1/day
    shadow: true
  - name: hosts
    key: [host]
    algorithm: fixed_window
    rate: 1/day
    shadow: true
"""


def send(address):
    """Each request twice."""
    host, port = address.rsplit(":", 1)
    for method, target in REQUESTS:
        for _ in range(2):
            with socket.create_connection((host, int(port)), 10) as peer:
                peer.sendall(f"{method} {target} HTTP/1.1\r\nHost: example.org\r\nUser-Agent: {AGENT}\r\n"
                             f"X-Forwarded-For: {FORWARDED}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                             .encode())
                while peer.recv(65536):
                    pass


def wait_for(log, lines, words=""):
    """Programs write their last lines after they have answered."""
    def there():
        return log.exists() and sum(words in line for line in log.read_text(encoding="utf-8").splitlines()) >= lines
    wait_until(there, what=f"{lines} lines of {log}")


def replay(folder, *logs, options=()):
    rules = folder / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    done = run_weir("replay", "-c", rules, "--top", "50", *options, *logs)
    assert done.returncode == 0, done.stderr
    return done.stdout


def denied(report, limit):
    """The keys of a limit that were denied."""
    rows = report.split("MOST DENIED", 1)[1].splitlines()[1:]
    return {re.split(r" {2,}", row, maxsplit=3)[3] for row in rows if row.startswith(limit + " ")}


def expect(folder, log, what, client="127.0.0.1", agent=True, host=False, lines=2 * len(REQUESTS)):
    report = replay(folder, log)
    assert f"{2 * len(REQUESTS)} requests" in report.splitlines()[0], report
    assert f"read as {what}, {lines} lines\n" in report, report
    assert {re.sub(r"^client\.ip=([^ ,]*).*", r"\1", key) for key in denied(report, "peers")} == {client}, report
    assert len(denied(report, "peers")) == len(REQUESTS)
    for (method, _), path in zip(REQUESTS, PATHS):
        assert any(f"method={method}" in key and key.endswith("path=" + path)
                   for key in denied(report, "peers")), report
    agents = {"header.user-agent=" + AGENT.replace(" ", "%20")} if agent else set()
    assert denied(report, "agents") == agents, report
    assert denied(report, "hosts") == ({"host=example.org"} if host else set()), report
    return report


# --- Apache ---------------------------------------------------------------------------------------

APACHE = """\
ServerRoot {folder}
PidFile {folder}/apache.pid
Listen 127.0.0.1:{port}
ServerName example.org
ErrorLog {folder}/error.log
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule alias_module {modules}/mod_alias.so
LogFormat "%v:%p %h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" vhost_combined
LogFormat "%h %l %u %t \\"%r\\" %>s %O \\"%{{Referer}}i\\" \\"%{{User-Agent}}i\\"" combined
LogFormat "%h %l %u %t \\"%r\\" %>s %O" common
LogFormat "%{{X-Forwarded-For}}i %l %u %t \\"%r\\" %>s %O" forwarded
CustomLog {folder}/vhost_combined.log vhost_combined
CustomLog {folder}/combined.log combined
CustomLog {folder}/common.log common
CustomLog {folder}/forwarded.log forwarded
RedirectMatch 204 .*
"""
MODULES = "/usr/lib/apache2/modules"


@pytest.fixture(name="apache", scope="module")
def fixture_apache(tmp_path_factory):
    if not shutil.which("apache2"):
        pytest.skip("needs apache2 (Debian: apache2-bin)")
    folder = tmp_path_factory.mktemp("apache")
    port = free_port()
    conf = folder / "apache.conf"
    conf.write_text(APACHE.format(folder=folder, port=port, modules=MODULES), encoding="utf-8")
    command = ["apache2", "-f", str(conf), "-DFOREGROUND"]
    with Proxy(command, folder / "out.log", f"127.0.0.1:{port}") as server:
        send(server.address)
        wait_for(folder / "forwarded.log", 2 * len(REQUESTS))
    return folder


def test_apache_common(apache, tmp_path):
    expect(tmp_path, apache / "common.log", "common", agent=False)


def test_apache_combined(apache, tmp_path):
    expect(tmp_path, apache / "combined.log", "combined")


def test_apache_vhost_combined(apache, tmp_path):
    expect(tmp_path, apache / "vhost_combined.log", "vhost_combined", host=True)


def test_apache_that_logs_x_forwarded_for_for_the_client(apache, tmp_path):
    report = expect(tmp_path, apache / "forwarded.log", "common", client="203.0.113.9", agent=False)
    assert "8 clients are from lists of addresses" in report


# --- nginx ----------------------------------------------------------------------------------------

# nginx.org's package; ingress-nginx, docs/user-guide/nginx-configuration/log-format.md. The variables
# that only the controller has are set.
NGINX = """\
daemon off; master_process off; worker_processes 1;
pid {folder}/nginx.pid; error_log {folder}/error.log info;
events {{ worker_connections 64; }}
http {{
  {paths}
  log_format main '$remote_addr - $remote_user [$time_local] "$request" '
                  '$status $body_bytes_sent "$http_referer" '
                  '"$http_user_agent" "$http_x_forwarded_for"';
  log_format upstreaminfo '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] '
    '$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $request_id';
  access_log {folder}/combined.log combined;
  access_log {folder}/main.log main;
  access_log {folder}/ingress.log upstreaminfo;
  upstream app {{ server 127.0.0.1:{closed}; server {app} backup; }}
  server {{
    listen 127.0.0.1:{port};
    set $proxy_upstream_name default-app-80; set $proxy_alternative_upstream_name "";
    location / {{ proxy_pass http://app; }}
  }}
}}
"""


@pytest.fixture(name="nginx", scope="module")
def fixture_nginx(tmp_path_factory):
    if not shutil.which("nginx"):
        pytest.skip("needs nginx")
    folder = tmp_path_factory.mktemp("nginx")
    port, conf = free_port(), folder / "nginx.conf"
    paths = " ".join(f"{name}_temp_path {folder}/{name};"
                     for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with App() as app:
        conf.write_text(NGINX.format(folder=folder, port=port, paths=paths, app=app.address, closed=free_port()),
                        encoding="utf-8")
        command = ["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(conf)]
        with Proxy(command, folder / "out.log", f"127.0.0.1:{port}") as server:
            send(server.address)
            wait_for(folder / "ingress.log", 2 * len(REQUESTS))
    return folder


def test_nginx_combined(nginx, tmp_path):
    expect(tmp_path, nginx / "combined.log", "combined")


def test_nginx_main_has_the_client_in_x_forwarded_for(nginx, tmp_path):
    report = expect(tmp_path, nginx / "main.log", "nginx-main", client="203.0.113.9")
    assert "8 clients are from X-Forwarded-For or Forwarded, behind trusted proxies: private" in report
    report = replay(tmp_path, nginx / "main.log", options=["--trusted-proxies", "none"])
    assert all(key.startswith("client.ip=127.0.0.1") for key in denied(report, "peers"))
    assert "8 lines have an X-Forwarded-For or Forwarded of a peer" in report


def test_ingress_nginx(nginx, tmp_path):
    expect(tmp_path, nginx / "ingress.log", "ingress-nginx")
    assert ", 127.0.0.1:" in (nginx / "ingress.log").read_text(encoding="utf-8")  # a second upstream


# docker: daemon/logger/jsonfilelog/jsonlog; CRI: kubelet-cri-logging.md. Lines are cut as they cut them.
def docker_lines(text, part):
    for line in text.splitlines(keepends=True):
        for at in range(0, len(line), part):
            yield json.dumps({"log": line[at:at + part], "stream": "stdout",
                              "time": "2026-01-01T00:00:00.123456789Z"}, ensure_ascii=False)


def cri_lines(text, part):
    for line in text.splitlines():
        pieces = [line[at:at + part] for at in range(0, len(line), part)]
        for i, piece in enumerate(pieces):
            yield f"2026-01-01T00:00:00.123456789Z stdout {'F' if i == len(pieces) - 1 else 'P'} {piece}"


@pytest.mark.parametrize("part", [16384, 50])
@pytest.mark.parametrize("wrap", [docker_lines, cri_lines])
def test_containers(nginx, tmp_path, wrap, part):
    text = (nginx / "main.log").read_text(encoding="utf-8")
    log = tmp_path / "0.log"
    log.write_text("".join(line + "\n" for line in wrap(text, part)), encoding="utf-8")
    name = wrap.__name__.removesuffix("_lines")
    expect(tmp_path, log, f"{name}, nginx-main", client="203.0.113.9")


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_compressed_rotated_and_from_windows(nginx, tmp_path, pack):
    if not shutil.which(pack):
        pytest.skip(f"needs {pack}")
    text = (nginx / "combined.log").read_bytes().replace(b"\n", b"\r\n")
    log = tmp_path / "access.log.1"
    log.write_bytes(b"\xef\xbb\xbf" + text)
    packed = tmp_path / "packed"
    packed.write_bytes(subprocess.run([pack, "-c", log], stdout=subprocess.PIPE, check=True).stdout)
    expect(tmp_path, packed, f"{pack}, combined")


# --- HAProxy --------------------------------------------------------------------------------------

HAPROXY = """\
global
  log stdout format {format} local0 info
defaults
  mode http
  log global
  option httplog
  timeout connect 5s
  timeout client 5s
  timeout server 5s
frontend www
  bind 127.0.0.1:{port}
  capture request header Host len 40
  capture request header User-Agent len 40
  default_backend app
backend app
  server one {app}
"""


@pytest.mark.parametrize("form", ["raw", "short", "iso", "rfc3164", "rfc5424", "timed"])
def test_haproxy(tmp_path, form):
    if not shutil.which("haproxy"):
        pytest.skip("needs haproxy")
    port, conf = free_port(), tmp_path / "haproxy.cfg"
    log = tmp_path / "haproxy.log"
    with App() as app:
        conf.write_text(HAPROXY.format(port=port, app=app.address, format=form), encoding="utf-8")
        with Proxy(["haproxy", "-f", str(conf)], log, f"127.0.0.1:{port}") as server:
            send(server.address)
            wait_for(log, 2 * len(REQUESTS), " app/one ")
    text = log.read_text(encoding="utf-8")
    log.write_text("".join(line + "\n" for line in text.splitlines() if "BADREQ" not in line), encoding="utf-8")
    report = replay(tmp_path, log, options=["--skip-bad"])
    assert "8 requests" in report.splitlines()[0], (report, text)
    assert "read as haproxy," in report and "they were read as UTC" in report
    keys = denied(report, "peers")
    assert len(keys) == len(REQUESTS) and all(key.startswith("client.ip=127.0.0.1") for key in keys)


# --- Caddy ----------------------------------------------------------------------------------------

def test_caddy(tmp_path):
    if not shutil.which("caddy"):
        pytest.skip("needs caddy (Debian: caddy)")
    port, conf, log = free_port(), tmp_path / "Caddyfile", tmp_path / "caddy.log"
    conf.write_text("{\n    admin off\n    auto_https off\n}\n"
                    f"http://:{port} {{\n    bind 127.0.0.1\n    log\n    respond ok\n}}\n", encoding="utf-8")
    command = ["env", f"HOME={tmp_path}", f"XDG_CONFIG_HOME={tmp_path}", f"XDG_DATA_HOME={tmp_path}",
               "caddy", "run", "--config", str(conf), "--adapter", "caddyfile"]
    with Proxy(command, log, f"127.0.0.1:{port}") as server:
        send(server.address)
        wait_for(log, 2 * len(REQUESTS), "http.log.access")
    text = log.read_text(encoding="utf-8")
    log.write_text("".join(line + "\n" for line in text.splitlines() if line.startswith("{")),
                   encoding="utf-8")  # it begins with a line for people
    lines = len(log.read_text(encoding="utf-8").splitlines())
    report = expect(tmp_path, log, "caddy-json", client="203.0.113.9", host=True, lines=lines)
    assert f"{lines - 8} lines are what a server says of itself" in report


# --- Traefik --------------------------------------------------------------------------------------

@pytest.fixture(name="wheel", scope="module")
def fixture_wheel():
    with Wheel(TRAEFIK) as wheel:
        yield wheel


def is_routed(address):
    """Traefik listens before it has its routers."""
    with Client(address) as client:
        return client.request("GET", "/ready", {}, b"").status == 200


@pytest.mark.parametrize("form,trusting", [("common", False), ("json", False), ("json", True), ("common", True)])
def test_traefik(wheel, tmp_path, form, trusting):
    port, conf, log = free_port(), tmp_path / "dynamic.yaml", tmp_path / "access.log"
    with App() as app:
        conf.write_text("http:\n  routers:\n    web:\n      rule: PathPrefix(`/`)\n      service: app\n"
                        "  services:\n    app:\n      loadBalancer:\n        servers:\n"
                        f"        - url: http://{app.address}\n", encoding="utf-8")
        command = [str(wheel.path("bin/traefik")), f"--entryPoints.web.address=127.0.0.1:{port}",
                   f"--providers.file.filename={conf}", "--global.checkNewVersion=false",
                   "--global.sendAnonymousUsage=false", f"--accessLog.filePath={log}", f"--accessLog.format={form}",
                   "--accessLog.fields.headers.defaultMode=keep",
                   *(["--entryPoints.web.forwardedHeaders.insecure=true"] if trusting else [])]
        with Proxy(command, tmp_path / "traefik.log", f"127.0.0.1:{port}") as server:
            wait_until(lambda: is_routed(server.address), what="the routers")
            send(server.address)
            wait_for(log, 2 * len(REQUESTS) + 1)
    text = log.read_text(encoding="utf-8")
    log.write_text("".join(line + "\n" for line in text.splitlines() if "/ready" not in line), encoding="utf-8")
    expect(tmp_path, log, f"traefik-{'clf' if form == 'common' else 'json'}",
           client="203.0.113.9" if trusting else "127.0.0.1", host=form == "json")


# --- Together -------------------------------------------------------------------------------------

def test_files_of_several_programs_are_one_trace_in_the_order_of_time(apache, nginx, tmp_path):
    older = tmp_path / "older.log.gz"
    older.write_bytes(gzip.compress(
        b'192.0.2.1 - - [07/Mar/2004:16:05:49 -0800] "GET / HTTP/1.1" 200 1\n'))
    report = replay(tmp_path, apache / "vhost_combined.log", nginx / "main.log", older)
    assert "17 requests" in report.splitlines()[0]
    lines = report.splitlines()
    assert lines[2] == f"read {older}: gzip, common, 1 lines"
    assert "the files were read in the order of their first times, not in the order given" in lines
