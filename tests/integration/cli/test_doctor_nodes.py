# SPDX-License-Identifier: Apache-2.0
"""`weir doctor` finds planted faults of other nodes and other regions, and nothing where all is well."""

import json
import os
import subprocess

import pytest

from daemon.certificates import Authority
from daemon.proxies import free_port
from daemon.redis_server import RedisServer
from daemon.weir import Weir
from model.program import weir_path

TOKEN = "0123456789abcdef0123456789abcdef"
LIMIT = {"name": "api", "key": ["user"], "rate": "1000/s"}


def examine(folder, sections, limit=None):
    """What concerns other machines, by name; whether the machine's clock is synchronised does not."""
    config = folder / "weir.yaml"
    server = {"http": f"127.0.0.1:{free_port()}", "admin": f"unix:{folder}/admin.sock"}
    sections = sections | {"server": server | sections.get("server", {})}
    config.write_text(json.dumps({"version": 1, "limits": [limit or LIMIT]} | sections), encoding="utf-8")
    os.chmod(config, 0o600)
    done = subprocess.run([weir_path(), "doctor", "--config", str(config), "--json"], text=True,
                          capture_output=True, timeout=120, check=False)
    findings = json.loads(done.stdout)["findings"]
    assert not [one for one in findings if one["name"] in ("rules", "settings")], done.stdout
    return {one["name"]: one["text"] for one in findings if one["name"].startswith(("peer", "redis"))}


class Pair:
    """This node, a, which is examined, and b, which runs."""

    def __init__(self, folder, tls=None):
        os.chmod(folder, 0o700)
        self.folder, self.scheme = folder, "rediss" if tls else "redis"
        self.ports = {"a": free_port(), "b": free_port()}
        self.listener = {"token": TOKEN, "trusted": True}
        if tls:
            cert, key = tls.sign("node")
            key.chmod(0o600)
            self.listener["tls"] = {"cert": str(cert), "key": str(key)}
        self.sticky = {"by": "user", "peers": "peers", "token": TOKEN, "deadline": "10s"}
        if tls:
            self.sticky["tls"] = {"ca": str(tls.cert)}

    def sections(self, name, sticky=None, **listener):
        (self.folder / "peers").write_text("".join(
            f"{peer} {self.scheme}://localhost:{port}\n" for peer, port in self.ports.items()))
        redis = {"address": f"127.0.0.1:{self.ports[name]}"} | self.listener | listener
        return {"server": {"redis": redis}, "sticky": self.sticky | {"self": name} | (sticky or {})}

    def run(self, **listener):
        sections = self.sections("b", **listener)
        return Weir(self.folder, json.dumps({"version": 1, "limits": [LIMIT]} | sections))


def test_nodes_that_decide_for_each_other_are_no_fault(tmp_path):
    for tls in (None, Authority(tmp_path)):
        pair = Pair(tmp_path, tls)
        with pair.run():
            assert examine(tmp_path, pair.sections("a")) == {}


def test_faults_of_this_node(tmp_path):
    pair = Pair(tmp_path)
    with pair.run():
        found = examine(tmp_path, pair.sections("a", address=f"127.0.0.1:{free_port()}"))
        assert "at another address" in found["peer_self"]
        found = examine(tmp_path, pair.sections("a", address="off"))
        assert found["peer_self"].endswith("off")
        assert "not `trusted`" in examine(tmp_path, pair.sections("a", trusted=False))["peer_self"]
        cert, key = Authority(tmp_path).sign("a")
        key.chmod(0o600)
        found = examine(tmp_path, pair.sections("a", tls={"cert": str(cert), "key": str(key)}))
        assert set(found) == {"peer_self"} and "without TLS" in found["peer_self"]


def test_faults_of_another_node(tmp_path):
    pair = Pair(tmp_path)
    assert "refused" in examine(tmp_path, pair.sections("a"))["peer_unreachable"]
    with pair.run():
        for wrong in ({"token": "x" * 32}, {"token": None}):
            sections = pair.sections("a", wrong)
            if wrong["token"] is None:
                del sections["sticky"]["token"]
            found = examine(tmp_path, sections)
            assert set(found) == {"peer_token"} and "sticky: b refuses" in found["peer_token"]
    with pair.run(trusted=False):
        found = examine(tmp_path, pair.sections("a"))
        assert set(found) == {"peer_untrusted"}
    with RedisServer(tmp_path / "redis") as redis:
        pair.ports["b"] = redis.port
        sections = pair.sections("a")
        del sections["sticky"]["token"]
        assert "unknown command" in examine(tmp_path, sections)["peer_refuses"]


def test_certificates_of_another_authority(tmp_path):
    pair = Pair(tmp_path, Authority(tmp_path))
    other = Authority(tmp_path, "other")
    with pair.run():
        found = examine(tmp_path, pair.sections("a", {"tls": {"ca": str(other.cert)}}))
        assert set(found) == {"peer_tls"}


def test_a_node_without_tls_and_one_with_it(tmp_path):
    authority = Authority(tmp_path)
    pair = Pair(tmp_path)
    with pair.run():
        pair.scheme = "rediss"
        found = examine(tmp_path, pair.sections("a", {"tls": {"ca": str(authority.cert)}}))
        assert "over TLS" in found["peer_tls"]
    pair = Pair(tmp_path, authority)
    with pair.run():
        pair.scheme = "redis"
        assert "closed" in examine(tmp_path, pair.sections("a"))["peer_unreachable"]


def test_a_line_that_is_no_url(tmp_path):
    """The finding names its node, and not its password."""
    pair = Pair(tmp_path)
    sections = pair.sections("a")
    (tmp_path / "peers").write_text(
        f"a redis://127.0.0.1:{pair.ports['a']}\nb redis://:hidden@127.0.0.1:99999\n")
    os.chmod(tmp_path / "peers", 0o600)
    text = examine(tmp_path, sections)["peer_unreachable"]
    assert "(b)" in text and "port" in text and "hidden" not in text


@pytest.mark.parametrize("fault, name, part", [
    (None, None, ""), ("gone", "redis_unreachable", "refused"),
    ("rights", "redis_refused", "NOPERM"), ("evicts", "redis_evicts", "allkeys-lru")])
def test_the_redis_of_a_region_that_lends(tmp_path, fault, name, part):
    os.chmod(tmp_path, 0o700)
    settings = {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"} if fault == "evicts" else {}
    with RedisServer(tmp_path / "eu") as own, RedisServer(tmp_path / "us", settings) as other:
        url = f"redis://127.0.0.1:{free_port() if fault == 'gone' else other.port}"
        if fault == "rights":
            other.ask("ACL", "SETUSER", "weir", "on", ">right", "~*", "+@all", "-evalsha")
            url = url.replace("//", "//weir:right@")
        sections = {"store": {"nodes": 1, "deadline": "10s"},
                    "regions": {"self": "eu", "eu": {"redis": f"redis://127.0.0.1:{own.port}"},
                                "us": {"redis": url}}}
        found = examine(tmp_path, sections, LIMIT | {"global": {"floor": "10%"}})
        found.pop("redis_latency", None)  # a busy machine
        assert set(found) == ({name} if name else set())
        if name:
            assert found[name].startswith("regions.us.redis: ") and part in found[name]
