# SPDX-License-Identifier: Apache-2.0
"""HAProxy, nginx and Envoy with the blocks of docs/deploy/sticky.md, each before three weir nodes with a
table of their own: a key is counted by one node, so the fleet admits N of it and not N x nodes."""

import re
from contextlib import ExitStack

import pytest

from daemon.http import Client
from daemon.proxies import App, free_port, haproxy, nginx, replaced
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from daemon.wheels import ENVOY, Wheel, blocks, envoy, indented

PAGE = "deploy/sticky.md"
N = 3
LIMITS = [
    {"name": "key", "match": {"path": "/key"}, "key": ["header.x-api-key"],
     "algorithm": "sliding_log", "rate": f"{N}/hour"},
    {"name": "address", "match": {"path": "/address"}, "key": ["client.ip/64"],
     "algorithm": "sliding_log", "rate": f"{N}/hour"},
]
KEYS = [f"key-{i}" for i in range(24)]

# Of one /64 each: the texts differ in which zeros they leave out, and a node must not.
NETWORKS = [
    ["2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:0:0:5:6", "2001:db8:1:2:3:4:0:0"],
    ["2001:db8::1", "2001:db8::3:4:5:6", "2001:db8:0:0:3::6"],
    ["2001:db8:0:7::1", "2001:db8:0:7:3:4:5:6", "2001:db8:0:7:8::"],
    ["2001:0:0:7::1", "2001::7:3:4:5:6", "2001:0:0:7:8::"],
    ["2001:0:9:7::1", "2001:0:9:7:3:4:5:6", "2001:0:9:7:0:4:5:6"],
    ["2001:db8:9::1", "2001:db8:9:0:3:4:5:6", "2001:db8:9:0:3::"],
    ["2001::1", "2001::3:4:5:6", "2001:0:0:0:3::6"],
] + [[f"192.0.2.{i}"] for i in range(12)]


@pytest.fixture(scope="module", name="wheel")
def fixture_wheel():
    with Wheel(ENVOY) as wheel:
        yield wheel


def block(language, begin, contains):
    (found,) = (text for text in blocks(PAGE, language)
                if text.lstrip().startswith(begin) and contains in text)
    return found


def with_nodes(text, nodes):
    """The block, with the addresses of these nodes."""
    for i, node in enumerate(nodes):
        host, port = node.http_address.split(":")
        text = replaced(text, (f"10.0.0.{i + 1}:8080", node.http_address)) \
            if ":8080" in text else \
            replaced(text, (f"address: 10.0.0.{i + 1}, port_value: 8080",
                            f"address: {host}, port_value: {port}"))
    return text


def by_haproxy(_wheel, folder, nodes, app, by):
    inner = f"127.0.0.1:{free_port()}"
    nodes_text = with_nodes(block("haproxy", "listen", {"key": "balance hash req.fhdr",
                                                        "address": "ipmask"}[by]), nodes)

    def extend(text):
        text = re.sub(r"(bind 127.0.0.1:\d+)", r"\1 accept-proxy", text)
        return text + replaced(nodes_text, ("127.0.0.1:8070", inner))

    return haproxy(folder, inner, app.address, extend)


def by_nginx(_wheel, folder, nodes, app, by):
    begin, contains = {"key": ("upstream", "$http_x_api_key"), "address": ("map", "$weir_network")}[by]
    nodes_text = with_nodes(block("nginx", begin, contains), nodes)
    lines = block("nginx", "proxy_next_upstream", "")

    def extend(text):
        text = re.sub(r"upstream weir {.*?\n}\n", lambda _: nodes_text, text, flags=re.S)
        text = re.sub(r"(listen 127.0.0.1:\d+);", r"\1 proxy_protocol;\n    set_real_ip_from"
                      " 127.0.0.1; real_ip_header proxy_protocol;", text)
        return replaced(text, ("        internal;\n        proxy_pass http://weir/",
                               f"        internal;\n{lines}        proxy_pass http://weir/"))

    return nginx(folder, "127.0.0.1:8080", app.address, extend=extend)


def by_envoy(wheel, folder, nodes, app, by):
    inner = free_port()
    (filters,) = (text for text in blocks("deploy/envoy.md") if "path_prefix: /v1/auth" in text)
    listener = replaced(block("yaml", "- address", "hash_policy"),
                        ("port_value: 8081", f"port_value: {inner}"))
    cluster = with_nodes(block("yaml", "- name: weir_nodes", ""), nodes)
    filters = replaced(filters, ("timeout: 0.2s", "timeout: 30s"))
    if by == "address":
        mutation = block("yaml", "- name: envoy.filters.http.header_mutation", "")
        policy = block("yaml", "hash_policy:", "x-weir-network")
        old = "hash_policy:\n                - header: { header_name: x-api-key }\n"
        listener = replaced(listener, (old, indented(policy, 16).lstrip()))
        filters = replaced(filters, ("http_filters:\n", "http_filters:\n" + mutation),
                           ("          - exact: x-api-key\n",
                            "          - exact: x-api-key\n          - exact: x-weir-network\n"))

    def extend(text):
        text = replaced(text, ("  clusters:\n", indented(listener, 2) + "  clusters:\n" + indented(cluster, 2)))
        return text.replace("    filter_chains:\n", PROXY_PROTOCOL, 1)

    return envoy(wheel, folder, f"127.0.0.1:{inner}", app.address, filters, http2=False, extend=extend)


PROXY_PROTOCOL = """\
    listener_filters:
    - name: envoy.filters.listener.proxy_protocol
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol
    filter_chains:
"""

PROXIES = {"haproxy": by_haproxy, "nginx": by_nginx, "envoy": by_envoy}


class Fleet:
    """Three nodes behind one proxy that chooses by header field ("key") or by address."""

    def __init__(self, folder, wheel, proxy, by):
        self.folder, self.wheel, self.proxy, self.by = folder, wheel, PROXIES[proxy], by
        self.stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            self.nodes = []
            for i in range(3):
                home = self.folder / f"weir{i}"
                home.mkdir()
                self.nodes.append(stack.enter_context(Weir(home, rules_of(*LIMITS))))
            app = stack.enter_context(App())
            self.address = stack.enter_context(
                self.proxy(self.wheel, self.folder, self.nodes, app, self.by)).address
            wait_until(lambda: self.request("/key", key="first")["ratelimit"], what="the proxy's way to weir")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def request(self, path, key=None, address="192.0.2.200", fields=""):
        """One request over a connection of its own, from a client of that address."""
        family = "TCP6" if ":" in address else "TCP4"
        proxy = "::1" if ":" in address else "127.0.0.1"
        lines = [f"PROXY {family} {address} {proxy} 4000 80", f"GET {path} HTTP/1.1", "Host: localhost"]
        lines += [f"X-Api-Key: {key}"] if key is not None else []
        with Client(self.address) as client:
            client.send(("\r\n".join(lines) + "\r\n" + fields + "\r\n").encode())
            return client.reply()

    def admitted(self, path, requests=N + 3, **parts):
        statuses = [self.request(path, **parts).status for _ in range(requests)]
        assert set(statuses) <= {200, 429}
        return statuses.count(200)

    def decisions(self, limit):
        """What each node has admitted under a limit."""
        name = f'weir_decisions_total{{limit="{limit}",result="allowed"}}'
        return [node.metrics().get(name, 0) for node in self.nodes]


@pytest.fixture(name="fleet")
def fixture_fleet(request, tmp_path):
    proxy, by = request.param
    wheel = request.getfixturevalue("wheel") if proxy == "envoy" else None
    with Fleet(tmp_path, wheel, proxy, by) as fleet:
        yield fleet


def each(by):
    return pytest.mark.parametrize("fleet", [(proxy, by) for proxy in PROXIES], indirect=True,
                                   ids=list(PROXIES))


@each("key")
def test_the_fleet_admits_the_limit_of_each_key_and_all_nodes_take_part(fleet):
    assert [fleet.admitted("/key", key=key) for key in KEYS] == [N] * len(KEYS)
    decisions = fleet.decisions("key")
    assert sum(decisions) == N * len(KEYS) + 1 and min(decisions) > 0


@each("key")
def test_a_client_that_repeats_the_field_does_not_choose_its_node(fleet):
    """Several fields, or one with a list: what weir's key is decides, not how it was written."""
    ways = [dict(key="a, b"), dict(key="a", fields="X-Api-Key: b\r\n"), dict(key="b"), dict(key="a"),
            dict(key="c", fields="X-Api-Key: a, b\r\n"), dict(key="a,b")]
    for way in ways:
        assert fleet.admitted("/key", **way) <= N
    keys = [key["key"] for node in fleet.nodes for key in denied(node)]
    assert len(keys) == len(set(keys)) >= 3


def denied(node):
    with node.admin() as client:
        return client.request("GET", "/v1/limits/key/top?count=100").json["keys"]


@each("address")
def test_the_fleet_admits_the_limit_of_each_network(fleet):
    for network in NETWORKS:
        statuses = [fleet.request("/address", address=address).status
                    for _ in range(N) for address in network * (1 + (len(network) == 1))]
        assert statuses.count(200) == N, network
    decisions = fleet.decisions("address")
    assert sum(decisions) == N * len(NETWORKS) and min(decisions) > 0


@each("key")
def test_no_other_node_takes_the_keys_of_a_node_that_is_gone(fleet):
    homes = {}
    for key in KEYS:
        before = fleet.decisions("key")
        assert fleet.admitted("/key", key=key) == N
        (homes[key],) = [i for i, (new, old) in enumerate(zip(fleet.decisions("key"), before)) if new > old]
    gone = fleet.nodes[0]
    address = gone.http_address
    gone.kill()
    for key, home in homes.items():
        assert fleet.request("/key", key=key).status == (200 if home == 0 else 429)
    gone.command[gone.command.index("--http") + 1] = address
    gone.start()
    for key, home in homes.items():
        if home == 0:  # an empty table: N once more, and no more than that
            wait_until(lambda key=key: fleet.request("/key", key=key).status == 429)
        else:
            assert fleet.request("/key", key=key).status == 429
