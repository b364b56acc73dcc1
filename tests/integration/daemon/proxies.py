# SPDX-License-Identifier: Apache-2.0
"""Real nginx and HAProxy in front of weir, with the snippets of examples/deploy, and a real
application behind them; and servers that limit, and say the truth of it or lies."""

import collections
import email.utils
import http.server
import math
import random
import re
import socket
import subprocess
import threading
import time

from daemon.http import connect
from model.program import ROOT

DEPLOY = ROOT / "examples" / "deploy"


given = set()


def free_port():
    """A port that is free now, that no call before has returned, and that no connection of another
    test takes meanwhile: the kernel chooses theirs from a range above."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first = int(file.read().split()[0])
    while True:
        wanted = random.randrange(first // 2, first) if first > 16384 else 0
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            port = probe.getsockname()[1]
        if port not in given:
            given.add(port)
            return port


class Handler(http.server.BaseHTTPRequestHandler):
    """Of one connection of an application's: it is kept, and nothing is logged."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Application:
    """The server behind a proxy: listens at `address`; `handler` is a class of handlers."""

    def __init__(self, handler):
        self.handler = handler

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class App(Application):
    """Answers 200 with what it was asked for; 403 at /forbidden."""

    def __init__(self):
        self.seen = seen = []

        class Echo(Handler):
            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = f"{self.command} {self.path} {len(self.rfile.read(size))}".encode()
                seen.append((self.command, self.path))
                self.send_response(403 if self.path == "/forbidden" else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = answer

        super().__init__(Echo)


class Counting(Application):
    """A server that limits: admits `limit` requests in a window of `seconds`, the first of which begins now, and says what
    `fields` makes of (limit, remaining, seconds to the reset)."""

    def __init__(self, limit=20, seconds=1.0, fields=None, storm=0):
        self.paths, self.statuses, self.keys = [], collections.Counter(), []
        began = time.monotonic()
        lock, used = threading.Lock(), collections.Counter()
        outer = self

        class Limited(Handler):
            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(size)
                with lock:
                    now = time.monotonic() - began
                    window = int(now / seconds)
                    good = used[window] < limit and len(outer.paths) >= storm
                    used[window] += good
                    left, reset = limit - used[window], seconds - now % seconds
                    status = self.status(good)
                    outer.paths.append(self.path)
                    outer.statuses[status] += 1
                    outer.keys.append(self.headers.get("Idempotency-Key"))
                body = f"{self.path}\n".encode()
                self.send_response(status)
                for name, value in (fields(limit, left, reset, good) if fields else {}).items():
                    self.send_header(name, str(value))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def status(self, good):
                """/status/503 always, /once/503 for the first time only."""
                made = re.match(r"/(status|once)/(\d+)", self.path)
                if made and (made[1] == "status" or self.path not in outer.paths):
                    return int(made[2])
                return 200 if good else 429

            do_GET = do_POST = do_PUT = answer

        super().__init__(Limited)

    def urls(self, count):
        return [f"http://{self.address}/thing/{number}" for number in range(count)]


def draft(limit, left, reset, _):
    return {"RateLimit-Policy": f'"a";q={limit};w=1', "RateLimit": f'"a";r={left};t={math.ceil(reset)}'}


def lies_high(*_):
    return {"X-RateLimit-Limit": 10**9, "X-RateLimit-Remaining": 10**8, "X-RateLimit-Reset": 1}


def lies_past(_limit, _left, reset, good):
    past = {"X-RateLimit-Remaining": -3, "X-RateLimit-Reset": int(time.time()) - 86400}
    return past if good else past | {"Retry-After": "Thu, 01 Jan 1998 00:00:00 GMT"}


def lies_text(*_):
    return {"RateLimit": '"open;r=1', "X-RateLimit-Reset": "soon", "Retry-After": "\x7f-1"}


def clock_off(limit, left, reset, _):
    """An hour ahead, in Date and in what counts from it."""
    ahead = time.time() + 3600
    return {"Date": email.utils.formatdate(ahead, usegmt=True), "X-RateLimit-Limit": limit,
            "X-RateLimit-Remaining": left, "X-RateLimit-Reset": int(ahead + reset) + 1}


# One that hammered would be refused thousands of times in a few windows. Fewer refusals say nothing on a machine that stops
# for a second now and then; tests/unit/client/test_pace.c counts them in simulated time.
REFUSALS_MAX = 300

LIES = [None, lies_high, lies_past, lies_text, clock_off]


class Proxy:
    """A proxy's process; `address` is where it listens."""

    def __init__(self, command, log, address):
        self.command, self.log, self.address = command, log, address
        self.process = None

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        for _ in range(400):
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            try:
                connect(self.address).close()
                return self
            except ConnectionRefusedError:
                time.sleep(0.025)
        raise AssertionError(f"{self.command[0]} does not listen")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, f"the snippet has no {old!r} any more"
        text = text.replace(old, new)
    return text


# The snippets let a request through when weir has not answered within a fifth of a second, which a
# machine that is busy with something else may need.
PATIENCE_S = 30


def nginx(folder, weir_address, app_address, snippet="nginx/weir.conf", extend=str):
    """`extend` changes the snippet's text, at last."""
    port = free_port()
    text = (DEPLOY / snippet).read_text(encoding="utf-8")
    text = replaced(re.sub(r"(_timeout) \d+ms;", rf"\1 {PATIENCE_S}s;", text),
                    ("127.0.0.1:8080", weir_address), ("127.0.0.1:3000", app_address),
                    ("listen 80;", f"listen 127.0.0.1:{port};"))
    (folder / "weir.conf").write_text(extend(text), encoding="utf-8")
    paths = "".join(f"{name}_temp_path {folder}/{name};\n" for name in
                    ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = folder / "nginx.conf"
    conf.write_text("daemon off; master_process off; worker_processes 1;\n"
                    f"pid {folder}/nginx.pid; error_log {folder}/error.log info;\n"
                    "events { worker_connections 512; }\n"
                    f"http {{ access_log off;\n{paths}include {folder}/weir.conf; }}\n",
                    encoding="utf-8")
    command = ["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(conf)]
    return Proxy(command, folder / "nginx.log", f"127.0.0.1:{port}")


def haproxy(folder, weir_address, app_address, extend=str):
    port = free_port()
    script = folder / "weir.lua"
    script.write_text(replaced((DEPLOY / "haproxy" / "weir.lua").read_text(encoding="utf-8"),
                               ("timeout = 200,", f"timeout = {PATIENCE_S * 1000},")),
                      encoding="utf-8")
    text = replaced((DEPLOY / "haproxy" / "haproxy.cfg").read_text(encoding="utf-8"),
                    ("/etc/haproxy/weir.lua", str(script)),
                    ("127.0.0.1:8080", weir_address), ("127.0.0.1:3000", app_address),
                    ("bind :80", f"bind 127.0.0.1:{port}"))
    conf = folder / "haproxy.cfg"
    conf.write_text(extend(text), encoding="utf-8")
    return Proxy(["haproxy", "-db", "-f", str(conf)], folder / "haproxy.log", f"127.0.0.1:{port}")
