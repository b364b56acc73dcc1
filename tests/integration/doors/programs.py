# SPDX-License-Identifier: Apache-2.0
"""The doors of programs that have weir inside: nginx, Node, Python, Go; all on the state of the servers."""

import asyncio
import json
import os
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from daemon.http import Client
from daemon.nginx_module import MODULE, Nginx
from model.program import ROOT, weir_path

from .door import DECODED, EMPTY, HOP, REALIP, UNTRUSTED, Answer, Door
from .servers import head, named_field

BUILD = Path(weir_path()).resolve().parent
HERE = Path(__file__).resolve().parent
# What nginx gives by name, and in which field of the client's it finds it. Names that no front end can set, or that
# the rules do not declare, are errors of its configuration.
BY_VARIABLE = {"user": "user", "org": "org", "plan": "plan", "tenant": "tenant", "tls.client.cn": "cn"}


class HttpDoor(Door):
    """A server that is asked over HTTP, by a proxy that says the client's address."""

    differs = (UNTRUSTED, HOP)
    address_field = "X-Forwarded-For"

    def ask(self, request):
        fields = [(self.address_field, request.ip), *request.fields, *self.named(request)]
        with Client(self.address) as client:
            client.send(head(request.method, request.target, request.host, fields))
            reply = client.reply(head_only=True)
        return Answer.of_fields(reply.status, reply["RateLimit"])

    def named(self, request):
        return [named_field(request)]


class NginxDoor(HttpDoor):
    name = "nginx"
    differs = (UNTRUSTED, EMPTY, REALIP)
    address_field = "X-Door-Ip"

    def __init__(self, folder, rules, state):
        if not MODULE.exists():
            pytest.skip(f"no {MODULE}: it is built where the package nginx-dev is installed")
        attributes = "".join(f"weir_attribute {name} $http_x_door_{field};\n" for name, field in BY_VARIABLE.items())
        folder.mkdir()
        self.nginx = Nginx(folder, rules.read_text(encoding="utf-8"),
                           f"set_real_ip_from 127.0.0.1; real_ip_header X-Door-Ip;\n"
                           f"location / {{ weir on; try_files /a.txt =404; {attributes} }}", state=state)

    def __enter__(self):
        self.nginx.__enter__()
        self.address = self.nginx.address
        return self

    def __exit__(self, *_):
        self.nginx.__exit__()

    def skipped(self, request):
        # A variable for this attribute would be empty for all other requests, whose field it would hide.
        return EMPTY if "header.X-A" in request.named else super().skipped(request)

    def named(self, request):
        return [(f"X-Door-{BY_VARIABLE[name]}", value) for name, value in request.named.items() if name in BY_VARIABLE]


class Program(HttpDoor):
    """A program that prints its port, and ends with its standard input."""

    command = environment = folder = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder,
                                        env=self.environment)
        self.address = "127.0.0.1:%d" % int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class NodeDoor(Program):
    name = "Node"

    def __init__(self, folder, rules, state):
        built = BUILD / "bindings/node"
        if not (built / "weir.node").is_file() or shutil.which("node") is None:
            pytest.skip("weir.node was not built, for want of libnode-dev, or no node")
        module = folder / "node_modules/weir"
        module.mkdir(parents=True)
        for each in built.iterdir():
            if each.is_file():
                shutil.copy(each, module)
        shutil.copy(HERE / "door.js", folder)
        self.folder = folder
        self.command = ["node", "door.js", str(rules), str(state)]


class GoDoor(Program):
    name = "Go"

    def __init__(self, folder, rules, state):
        if shutil.which("go") is None or shutil.which("gcc") is None:
            pytest.skip("go or gcc is not installed")
        if not (BUILD / "meson-uninstalled/weir-uninstalled.pc").is_file():
            pytest.skip("weir is not in a build folder of meson")
        folder.mkdir()
        shutil.copy(HERE / "door.go", folder)
        shutil.copytree(ROOT / "bindings/go", folder / "weir")
        (folder / "go.mod").write_text("module door\n\ngo 1.19\n\nrequire weir.example/weir v0.0.0\n"
                                       "replace weir.example/weir => ./weir\n", encoding="utf-8")
        cache = {} if "HOME" in os.environ else {"GOCACHE": str(folder / "cache")}
        self.environment = os.environ | cache | {
            "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "1", "GOPROXY": "off",
            "GOPATH": str(folder / "path"), "GO111MODULE": "on",
            "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled"), "LD_LIBRARY_PATH": str(BUILD / "src/library")}
        done = subprocess.run(["go", "build", "-o", "door", "door.go"], cwd=folder, env=self.environment,
                              capture_output=True, text=True, check=False, timeout=580)
        assert done.returncode == 0, done.stdout + done.stderr
        self.command = [str(folder / "door"), str(rules), str(state)]


class PythonDoor(Door):
    """An application of ASGI, called as a server calls it."""

    name = "Python"
    differs = (UNTRUSTED, HOP, DECODED)

    def __init__(self, weir, rules, state):
        if weir is None:
            pytest.skip("no package for Python: it is built where the package python3-dev is installed")
        self.weir, self.rules, self.state = weir, rules, state

    def __enter__(self):
        self.limiter = self.weir.open(str(self.rules), state=str(self.state))
        self.middleware = self.weir.asgi.Middleware(
            passed, limiter=self.limiter, attributes=lambda scope: json.loads(scope["weir.door.named"]))
        return self

    def __exit__(self, *_):
        self.limiter.close()

    def ask(self, request):
        path, _, query = request.target.partition("?")
        fields = [("Host", request.host), ("X-Forwarded-For", request.ip), *request.fields]
        scope = {"type": "http", "method": request.method, "path": urllib.parse.unquote(path),
                 "raw_path": path.encode("ascii"), "query_string": query.encode("ascii"), "client": ("127.0.0.1", 1),
                 "headers": [(name.lower().encode("ascii"), value.encode("utf-8")) for name, value in fields],
                 "weir.door.named": json.dumps(request.named)}
        sent = []

        async def send(event):
            sent.append(event)

        async def receive():
            return {"type": "http.request"}

        asyncio.run(self.middleware(scope, receive, send))
        start = sent[0]
        ratelimit = dict(start["headers"]).get(b"ratelimit", b"").decode("ascii")
        return Answer.of_fields(start["status"], ratelimit)


async def passed(_scope, _receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})
