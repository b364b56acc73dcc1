# SPDX-License-Identifier: Apache-2.0
"""A real nginx of Debian's with ngx_http_weir_module.so of this build: a master and its workers."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from daemon.http import Client, connect
from daemon.proxies import free_port
from daemon.waiting import wait_until
from model.program import weir_path

# The build's module; WEIR_NGINX_MODULE names another, as that of a sanitizer's build, whose runtime
# WEIR_NGINX_PRELOAD names: Debian's nginx is loaded with it then, and what it reports fails the test.
MODULE = Path(os.environ.get("WEIR_NGINX_MODULE",
                             Path(weir_path()).parent / "src" / "nginx" / "ngx_http_weir_module.so"))

PRELOAD = os.environ.get("WEIR_NGINX_PRELOAD")
REPORTS = ("AddressSanitizer", "runtime error:", "LeakSanitizer")

needs_module = pytest.mark.skipif(
    not MODULE.exists(), reason=f"no {MODULE}: it is built where the package nginx-dev is installed")

CONF = """load_module {module};
daemon off;
{user}worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log info;
{head}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    {temporary}
    {http}
    server {{
        listen 127.0.0.1:{port} reuseport;
        listen 127.0.0.1:{h2_port} http2;
        add_header X-Pid $pid always;
        add_header X-Verdict $weir_verdict always;
        add_header X-Delay $weir_delay_ms always;
        keepalive_requests 1000000;
        root {folder}/www;
        {server}
    }}
}}
"""


class Nginx:
    """Starts on entering, ends on leaving. `server` is what the server's block says, `http` what is
    beside it, and without `state` that of a state in this folder."""

    def __init__(self, folder, rules, server, http="", state=None, workers=2, user="root", head="",
                 on_error=None):
        self.folder = Path(folder)
        self.workers = workers
        self.state = state or f"{self.folder}/run/state"
        self.port, self.h2_port = free_port(), free_port()
        self.address, self.h2_address = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.h2_port}"
        (self.folder / "www").mkdir(exist_ok=True)
        (self.folder / "www" / "a.txt").write_text("hello\n", encoding="ascii")
        self.rules = self.folder / "weir.yaml"
        self.rules.write_text(rules, encoding="utf-8")
        temporary = "".join(f"{name}_temp_path {folder}/{name};\n" for name in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        http = f"weir_rules {self.rules}; weir_state {self.state} size=4m;\n{http}"
        if on_error:
            http += f"weir_on_error {on_error};\n"
        self.conf = self.folder / "nginx.conf"
        self.conf.write_text(CONF.format(
            module=MODULE, folder=folder, workers=workers, port=self.port, h2_port=self.h2_port,
            user=f"user {user};\n" if os.geteuid() == 0 else "", temporary=temporary, head=head,
            http=http, server=server), encoding="utf-8")
        self.process = None

    def use_snippet(self, text):
        """`text` is the whole content of `http`, except the paths and ports that a test needs."""
        conf = self.conf.read_text(encoding="utf-8")
        head, _, rest = conf.partition("    weir_rules ")
        temporary = head[head.index("    access_log"):]
        text = re.sub(r"weir_rules [^;]+;", f"weir_rules {self.rules};", text)
        text = re.sub(r"weir_state [^;]+;", f"weir_state {self.state};", text)
        text = text.replace("listen 80;", f"listen {self.address};")
        self.conf.write_text(head[:head.index("    access_log")] + temporary + text + "}\n",
                             encoding="utf-8")

    def command(self, *options):
        return ["nginx", "-p", str(self.folder), "-c", str(self.conf), *options]

    @staticmethod
    def environment():
        if not PRELOAD:
            return None
        # nginx itself leaves memory to the end of its process.
        return os.environ | {"LD_PRELOAD": PRELOAD, "ASAN_OPTIONS": "detect_leaks=0",
                             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}

    def test(self):
        """nginx -t: the finished process."""
        done = subprocess.run(self.command("-t"), capture_output=True, text=True, timeout=60,
                              check=False, env=self.environment())
        assert not PRELOAD or not any(word in done.stderr for word in REPORTS), done.stderr
        return done

    def __enter__(self):
        with open(self.folder / "stderr", "wb") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log,
                                            env=self.environment())

        def listens():
            assert self.process.poll() is None, self.log()
            try:
                connect(self.address).close()
            except ConnectionRefusedError:
                return False
            return len(self.pids()) >= self.workers

        wait_until(listens, what="nginx")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        if PRELOAD:
            log = self.log()
            assert not any(word in log for word in REPORTS), log

    def log(self):
        paths = (self.folder / "stderr", self.folder / "error.log")
        return "".join(path.read_text(encoding="utf-8", errors="replace")
                       for path in paths if path.exists())

    def pids(self):
        """The workers that run and are not on their way out."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        pids = []
        for pid in children.read_text(encoding="ascii").split():
            try:
                title = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"nginx: worker process\0") or title == b"nginx: worker process":
                pids.append(int(pid))
        return pids

    def reload(self):
        """SIGHUP; returns when all workers are new."""
        before = set(self.pids())
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: len(set(self.pids()) - before) >= self.workers
                   and not before & set(self.pids()), what="the new workers")

    def client(self):
        return Client(self.address)

    def get(self, path, **fields):
        """One request over a connection of its own."""
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        with self.client() as client:
            return client.request("GET", path, fields=fields)

    def metrics(self, path="/weir-status"):
        text = self.get(path).body.decode()
        return {name: int(value) for name, value in re.findall(r"^(weir_\S+) (\d+)$", text, re.M)}
