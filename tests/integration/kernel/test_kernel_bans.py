# SPDX-License-Identifier: Apache-2.0
"""Bans in the kernel's packet filter, with real packets: each test has network namespaces of its own,
and is skipped where there can be none."""

import errno
import ipaddress
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from network.helper import APPLY, BAN, LOST, MAGIC, REPLACE, Speaker, banned, table
from network.namespaces import HERE4, HERE6, LINK, Network, run
from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path

LOGIN = {"name": "login", "match": {"path": "/login"}, "key": ["client.ip/64"], "rate": "2/d",
         "algorithm": "fixed_window"}
NETDEV = {"hook": "netdev", "interfaces": [LINK]}
PEER, OTHER = "192.0.2.7", "192.0.2.8"


@pytest.fixture(name="network")
def fixture_network():
    with Network() as network:
        yield network


def rules(folder, nftables, standing=None, http=f"{HERE4}:0", proxies=None, **parts):
    trusted = {} if proxies is None else {"trusted_proxies": proxies}
    kernel = {} if nftables is None else {"kernel": {"nftables": nftables}}
    return rules_of(LOGIN, standing={"by": ["client.ip/64"], "file": str(folder / "standing.db"),
                                     **(standing or {})},
                    server={"admin": {"address": f"unix:{folder}/admin"},
                            "http": {"address": http, "open": True}, **trusted}, **kernel, **parts)


class Server(Weir):
    """A server with bans in the kernel; `port4` and `port6`: where the peer reaches it."""

    def __init__(self, folder, nftables, standing=None, **parts):
        super().__init__(folder, rules(folder, nftables, standing, **parts), "--workers", "1",
                         http=None, admin=None)

    @property
    def address(self):
        host, _, port = self.http_address.rpartition(":")
        return host.strip("[]"), int(port)

    def call(self, *arguments):
        sure = ["--yes"] if arguments[0] == "ban" else []
        return run(weir_path(), *arguments, *sure, f"--admin=unix:{self.folder}/admin").stdout

    def kernel(self):
        """What /v1/kernel says."""
        with self.admin() as client:
            answer = client.request("GET", "/v1/kernel")
        return json.loads(answer.body) if answer.status == 200 else None

    def agrees(self, bans=None):
        """Waits until the kernel holds what it should."""
        def holds():
            state = self.kernel()
            return state["agrees"] and bans in (None, state["present"]["ban"]) and state
        return wait_until(holds, what=f"agreement with {bans} bans")

    def helper(self):
        """The process id of weir-kernel; None: there is none."""
        for child in self.children():
            try:
                if Path(f"/proc/{child}/comm").read_text() == "weir-kernel\n":
                    return int(child)
            except FileNotFoundError:  # it has just ended
                pass
        return None

    def children(self):
        return [child for task in Path(f"/proc/{self.process.pid}/task").iterdir()
                for child in (task / "children").read_text().split()]


def silent(network, source, address):
    """Whether packets of a source are dropped: what is not dropped is answered in microseconds."""
    return not network.reaches(source, address, 2)


def has(element, name="ban4_32", family="inet"):
    return element in (table(family) or {}).get(name, [])


@pytest.mark.parametrize("nftables,family", [({}, "inet"), (NETDEV, "netdev")])
def test_a_ban_is_dropped_and_an_unban_lets_pass(network, tmp_path, nftables, family):
    with Server(tmp_path, nftables) as weir:
        weir.agrees(0)
        assert network.reaches(PEER, weir.address, 60)
        weir.call("ban", PEER, "1h")
        weir.agrees(1)
        assert has(PEER, family=family)
        assert silent(network, PEER, weir.address)
        assert network.reaches(OTHER, weir.address, 60)
        assert "(in the kernel)" in weir.call("standing", "list")
        dropped = wait_until(lambda: weir.metrics().get('weir_kernel_packets_total{set="ban4_32"}', 0))
        assert dropped >= 1
        assert {"name": "ban4_32", "packets": dropped}.items() <= [
            one for one in weir.kernel()["sets"] if one["name"] == "ban4_32"][0].items()
        weir.call("unban", PEER)
        weir.agrees(0)
        assert network.reaches(PEER, weir.address, 60)
        assert "(in the kernel)" not in weir.call("standing", "list")


def test_ipv6_networks_are_dropped(network, tmp_path):
    peer = network.peer6[0]
    with Server(tmp_path, NETDEV, http=f"[{HERE6}]:0") as weir:
        wait_until(lambda: network.reaches(peer, weir.address, 5))
        weir.call("ban", peer)  # its /64, for ever
        weir.agrees(1)
        assert "2001:db8:1:7::" in table("netdev")["ban6_64"]
        assert silent(network, peer, weir.address)
        weir.call("unban", peer)
        weir.agrees(0)
        assert network.reaches(peer, weir.address, 60)


def test_a_login_brute_force_is_dropped_and_free_again_after_its_term(network, tmp_path):
    """Six denials suspend for a time; the packets of the address are dropped until then."""
    terms = [3, 30, 300]  # one in which even a slow machine looks at all
    penalty = {"name": "brute-force", "key": ["client.ip/64"], "strikes": "2/h", "for": ["login"],
               "ladder": [f"suspend {term}s" for term in terms]}
    with Server(tmp_path, {"penalties": True}, penalties=[penalty]) as weir:
        weir.agrees(0)
        for rung, term in enumerate(terms):
            begun = time.monotonic()
            # Through a connection from here, as a proxy's is: its own would be cut.
            while weir.text().count("penalty_moved") <= rung:
                weir.check(ip=PEER, path="/login")
            seen = wait_until(lambda: weir.kernel()["present"]["ban"] == 1 or time.monotonic() - begun > term) and (
                has(PEER), silent(network, PEER, weir.address), network.reaches(OTHER, weir.address, 60))
            in_time = time.monotonic() - begun < term
            wait_until(lambda: weir.kernel()["present"]["ban"] == 0)
            if in_time:
                break
        assert in_time and seen == (True, True, True)
        wait_until(lambda: not silent(network, PEER, weir.address))
        assert not has(PEER)


def test_without_the_word_of_the_operator_penalties_stay_in_weir(network, tmp_path):
    penalty = {"name": "brute-force", "key": ["client.ip/64"], "strikes": "2/h", "for": ["login"],
               "ladder": ["suspend 1h"]}
    with Server(tmp_path, {}, penalties=[penalty]) as weir:
        while "penalty_moved" not in weir.text():
            weir.check(ip=PEER, path="/login")
        weir.call("ban", OTHER)
        weir.agrees(1)
        assert has(OTHER) and not has(PEER)


def test_what_is_trusted_passes_within_a_banned_network(network, tmp_path):
    banned = tmp_path / "bad.txt"
    banned.write_text("198.51.100.0/24\n192.0.2.0/24\n", encoding="utf-8")  # the last: its own
    lists = [{"file": str(banned), "by": "client.ip", "level": "suspended"}]
    with Server(tmp_path, {}, {"lists": lists}) as weir:
        weir.call("allow", "198.51.100.9")
        wait_until(lambda: has("198.51.100.9", "allow4_32"))
        weir.agrees(1)
        assert table()["ban4_24"] == ["198.51.100.0", "255.255.255.0"] or \
            set(table()["ban4_24"]) == {"198.51.100.0", "255.255.255.0"}
        assert silent(network, "198.51.100.8", weir.address)
        assert network.reaches("198.51.100.9", weir.address, 60)
        assert network.reaches(PEER, weir.address, 60)  # a network of its own is left to weir
        assert {"127.0.0.0"} <= set(table()["allow4_8"]) and HERE4 in table()["allow4_32"]
        weir.call("unban", "198.51.100.9")
        wait_until(lambda: not has("198.51.100.9", "allow4_32"))
        assert silent(network, "198.51.100.9", weir.address)


def test_a_term_may_be_changed_and_nested_networks_have_their_own(network, tmp_path):
    def ends(name, element):
        listed = run("nft", "-j", "list", "set", "inet", "weir", name, check=False)
        if listed.returncode:
            return None  # the set comes with its first element
        done = json.loads(listed.stdout)
        [one] = [part["set"] for part in done["nftables"] if "set" in part]
        return {entry["elem"]["val"]: entry["elem"].get("timeout") for entry in one.get("elem", [])
                if isinstance(entry, dict)}.get(element)

    with Server(tmp_path, {}) as weir:
        for term, low, high in (("1h", 3500, 3600), ("2h", 7100, 7200), ("10m", 500, 600)):
            weir.call("ban", "198.51.100.8", term)
            wait_until(lambda low=low, high=high:
                       low <= (ends("ban4_32", "198.51.100.8") or 0) <= high)
        weir.call("ban", "198.51.100.0/24", "1h")
        weir.agrees(2)
        weir.call("unban", "198.51.100.8")
        weir.agrees(1)
        assert silent(network, "198.51.100.8", weir.address)
        weir.call("unban", "198.51.100.0/24")
        weir.agrees(0)
        assert network.reaches("198.51.100.8", weir.address, 60)


def test_a_helper_that_is_killed_a_hundred_times_leaves_no_gap(network, tmp_path):
    with Server(tmp_path, {}) as weir:
        weir.call("ban", PEER)
        weir.agrees(1)
        killed = set()
        for _ in range(100):
            pid = wait_until(lambda: weir.helper() not in killed and weir.helper())
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
            if len(killed) % 3 == 0:  # else another one is killed before it has done anything
                weir.agrees(1)
            assert has(PEER)  # at every moment: the old table counts until the new one does
        weir.call("ban", OTHER)
        wait_until(lambda: has(OTHER))
        weir.agrees(2)
        assert silent(network, PEER, weir.address)
        # A child that nobody waits for would stay as a zombie.
        wait_until(lambda: len(weir.children()) == 1)


def test_a_server_that_is_killed_leaves_the_table_and_the_next_agrees(network, tmp_path):
    with Server(tmp_path, {}) as weir:
        weir.call("ban", PEER)
        weir.agrees(1)
        helper = weir.helper()
        weir.kill()
        wait_until(lambda: not Path(f"/proc/{helper}").exists())
        assert has(PEER)
        weir.start()
        weir.agrees(1)
        assert has(PEER) and silent(network, PEER, weir.address)
        weir.stop()
        assert has(PEER)


def test_rules_that_others_flush_under_load_are_made_anew(network, tmp_path):
    with Server(tmp_path, {}) as weir:
        run("nft", "add", "table", "inet", "other")
        for i in range(50):
            weir.call("ban", f"203.0.113.{i}", "1h")
            if i % 10 == 5:
                run("nft", "flush", "ruleset")
            elif i % 10 == 0:
                run("nft", "delete", "table", "inet", "weir", check=False)
        weir.agrees(50)
        for damage in (["flush", "ruleset"], ["flush", "set", "inet", "weir", "ban4_32"],
                       ["flush", "chain", "inet", "weir", "bans"]):
            lost = weir.kernel()["lost"]
            run("nft", *damage)
            wait_until(lambda lost=lost: weir.kernel()["lost"] > lost)
            weir.agrees(50)
            assert len(table()["ban4_32"]) == 51  # and the one that no packet comes from
            assert "@ban4_32" in run("nft", "list", "chain", "inet", "weir", "bans").stdout


def test_the_table_follows_reloads_and_goes_when_it_is_switched_off(network, tmp_path):
    with Server(tmp_path, {"table": "bans"}) as weir:
        weir.call("ban", PEER)
        weir.agrees(1)
        assert table("inet", "bans")
        run("nft", "add", "table", "inet", "other")
        for nftables, family in ((NETDEV, "netdev"), ({}, "inet")):
            weir.write_rules(rules(tmp_path, nftables))
            assert "event=reloaded" in weir.reload()
            weir.agrees(1)
            wait_until(lambda: table("inet", "bans") is None)
            assert PEER in table(family)["ban4_32"]
            assert table("inet" if family == "netdev" else "netdev") is None
        weir.write_rules(rules(tmp_path, None))
        assert "event=reloaded" in weir.reload()
        wait_until(lambda: table("inet") is None)
        assert run("nft", "list", "tables").stdout == "table inet other\n"
        wait_until(lambda: weir.helper() is None)
        assert weir.kernel() is None
        assert network.reaches(PEER, weir.address, 60)


def test_60000_bans_of_a_list_come_and_go(network, tmp_path):
    listed = tmp_path / "bad.txt"
    listed.write_text("".join(f"10.{i >> 8}.{i & 255}.1\n" for i in range(60000)), encoding="utf-8")
    lists = [{"file": str(listed), "by": "client.ip", "level": "suspended"}]
    with Server(tmp_path, {}, {"lists": lists}) as weir:
        weir.agrees(60000)
        for listed_one in ("10.0.0.1", "10.100.50.1", "10.234.95.1"):  # nft lists all of them in seconds
            run("nft", "get", "element", "inet", "weir", "ban4_32", f"{{ {listed_one} }}")
        listed.write_text("10.0.0.1\n", encoding="utf-8")
        assert "event=reloaded" in weir.reload()
        weir.agrees(1)
        assert sorted(table()["ban4_32"]) == ["10.0.0.1", "255.255.255.255"]


def test_an_interface_may_come_later(network, tmp_path):
    """Newer kernels keep its name; older ones refuse it, and weir tries again."""
    with Server(tmp_path, {"hook": "netdev", "interfaces": [LINK, "later0"]}) as weir:
        wait_until(lambda: weir.kernel()["agrees"] or "is an interface missing?" in weir.text())
        run("ip", "link", "add", "later0", "type", "veth", "peer", "name", "later1")
        weir.agrees(0)
        assert weir.metrics()["weir_kernel_up"] == 1
        assert "later0" in run("nft", "list", "chain", "netdev", "weir", "bans").stdout


def test_the_helper_has_one_capability_and_refuses_what_it_does_not_know(network, tmp_path):
    with Server(tmp_path, {}) as weir:
        weir.agrees(0)
        status = Path(f"/proc/{weir.helper()}/status").read_text(encoding="ascii")
        fields = dict(re.findall(r"^(\w+):\s+(.*)$", status, re.M))
        assert {fields[name] for name in ("CapPrm", "CapEff")} == {"0000000000001000"}
        assert fields["CapAmb"] == fields["CapInh"] == "0" * 16
        assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
        assert fields["Uid"].split()[0] != "0"
        assert os.readlink(f"/proc/{weir.process.pid}/exe").endswith("weir")


def test_remove_ends_what_a_stopped_server_has_left(network, tmp_path):
    with Server(tmp_path, {}) as weir:
        weir.call("ban", PEER)
        weir.agrees(1)
        weir.stop()
    assert has(PEER)
    helper = Path(weir_path()).parent / "weir-kernel"
    run(helper, "--remove", "weir")
    run(helper, "--remove", "weir")  # none is no error
    assert table() is None
    refused = subprocess.run([helper, "--remove", "we;ir"], capture_output=True, text=True, timeout=60,
                             check=False)
    assert refused.returncode == 1 and "Invalid argument" in refused.stderr


def test_a_table_of_another_program_is_neither_replaced_nor_removed(network, tmp_path):
    helper = Path(weir_path()).parent / "weir-kernel"
    run("nft", "add table inet filter; add chain inet filter input; add table netdev filter")
    before = run("nft", "list", "ruleset").stdout
    with Server(tmp_path, {"table": "filter"}) as weir:
        weir.call("ban", PEER)
        wait_until(lambda: "another program made filter" in weir.text())
        assert weir.metrics()["weir_kernel_up"] == 0 and not weir.kernel()["agrees"]
        refused = subprocess.run([helper, "--remove", "filter"], capture_output=True, text=True, timeout=60,
                                 check=False)
        assert refused.returncode == 1 and "another program made the table filter" in refused.stderr
        run("nft", "delete", "table", "inet", "filter")
        refused = subprocess.run([helper, "--remove", "filter"], capture_output=True, text=True, timeout=60,
                                 check=False)  # that of the other family is there still
        assert refused.returncode == 1
        assert before.replace("table inet filter {\n\tchain input {\n\t}\n}\n", "") == \
            run("nft", "list", "ruleset").stdout
        run("nft", "delete", "table", "netdev", "filter")
        weir.agrees(1)
        assert "255.255.255.255" in table("inet", "filter")["ban4_32"]
        assert weir.metrics()["weir_kernel_up"] == 1
        # One that takes the place of weir's own stays, too.
        run("nft", "delete table inet filter; add table inet filter; add chain inet filter input")
        wait_until(lambda: not weir.kernel()["agrees"] and weir.metrics()["weir_kernel_up"] == 0)
        assert "chain input" in run("nft", "list", "ruleset").stdout
        weir.write_rules(rules(tmp_path, {}))
        assert "event=reloaded" in weir.reload()
        weir.agrees(1)
        assert "chain input" in run("nft", "list", "table", "inet", "filter").stdout


def test_the_last_address_of_a_family_is_left_to_weir(network, tmp_path):
    """By it the helper finds a set that others have emptied."""
    with Server(tmp_path, {}) as weir:
        weir.call("ban", "255.255.255.255", "1h")
        weir.call("ban", PEER)
        weir.agrees(1)
        weir.call("unban", "255.255.255.255")
        weir.call("unban", PEER)
        weir.agrees(0)
        assert table()["ban4_32"] == ["255.255.255.255"] and weir.kernel()["lost"] == 0


COUNT = struct.pack("=IHHII", MAGIC, 3, 0, 0, 0)  # as feature/kernel/message.h has it

CLIENT = """
import socket, sys
one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
one.settimeout(60)
one.connect("kernel.sock")
try:
    one.send(bytes.fromhex(sys.argv[1]))
    print(len(one.recv(65536)))
except (ConnectionResetError, BrokenPipeError):
    print(0)
"""


class Helper:
    """weir-kernel as systemd starts it: its socket is open before, and stays."""

    def __init__(self, folder, owner=0):
        self.path = folder / "kernel.sock"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.path))
        self.listener.listen()
        os.chmod(folder, 0o755)
        os.chmod(self.path, 0o666)  # the default of systemd
        os.chown(self.path, owner, -1)
        self.process = None

    def __enter__(self):
        start = "import os,sys; os.dup2(int(sys.argv[1]), 3); os.execv(sys.argv[2], [sys.argv[2], '--listen'])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, str(self.listener.fileno()), Path(weir_path()).parent / "weir-kernel"],
            pass_fds=[self.listener.fileno()], stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.said = self.process.communicate()[1]
        self.listener.close()

    def answer(self, user):
        """The size of what it answers a user; 0: it closes the connection."""
        return int(subprocess.run([sys.executable, "-c", CLIENT, COUNT.hex()], cwd=self.path.parent, user=user,
                                  capture_output=True, text=True, timeout=120, check=True).stdout)


def test_a_helper_of_systemd_serves_over_its_socket(network, tmp_path):
    with Helper(tmp_path) as helper:
        for _ in range(2):  # the socket stays between servers
            with Server(tmp_path, {"helper": str(helper.path)}) as weir:
                weir.call("ban", PEER)
                weir.agrees(1)
                assert weir.helper() is None and silent(network, PEER, weir.address)


def test_a_helper_of_systemd_serves_root_and_the_owner_of_its_socket(network, tmp_path):
    with Helper(tmp_path, owner=65533) as helper:
        assert [helper.answer(user) for user in (65534, 0, 65533, 65534)] == [0, 16, 16, 0]
    assert helper.said.count("neither root nor the socket's owner") == 1


def test_a_helper_without_a_socket_says_what_it_needs(tmp_path):
    helper = Path(weir_path()).parent / "weir-kernel"
    with open(tmp_path / "none", "wb") as none:
        start = "import os,sys; os.dup2(int(sys.argv[1]), 3); os.execv(sys.argv[2], [sys.argv[2], '--listen'])"
        done = subprocess.run([sys.executable, "-c", start, str(none.fileno()), helper], pass_fds=[none.fileno()],
                              capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "needs a socket that listens as descriptor 3" in done.stderr


# --- A server that is wrong about what it may ban ---------------------------------------------------

def test_the_helper_itself_bans_neither_loopback_nor_its_addresses_nor_proxies(network, tmp_path):
    """Whatever the server says: here a test speaks for it, without any check."""
    with Speaker() as server:
        server.protect("198.51.100.0/24", "2001:db8:77::/48")
        skipped = server.ban("127.0.0.1/32", "127.0.0.0/8", "::1/128", f"{HERE4}/32", f"{HERE6}/128",
                             f"{ipaddress.ip_network(HERE4 + '/16', strict=False)}",
                             "198.51.100.7/32", "198.51.0.0/16", "2001:db8:77::9/128", f"{OTHER}/32")
        assert skipped == 9 and banned() == {OTHER}
        # A change, too; and what is no longer a proxy may be banned.
        assert server.ban("127.0.0.5/32", "203.0.113.9/32", flags=0) == 1
        assert banned() == {OTHER, "203.0.113.9"}
        assert server.ban("127.0.0.6/32", flags=0) == 1  # with nothing left
        server.protect("198.51.100.8/32")
        assert server.ban("198.51.100.7/32", "198.51.100.8/32", flags=0) == 1
        assert banned() == {OTHER, "203.0.113.9", "198.51.100.7"}


def test_an_address_that_comes_later_is_freed_of_its_ban(network, tmp_path):
    """The helper says that the table is lost, and the server that knows nothing sends all anew."""
    with Speaker() as server:
        assert server.ban("198.51.100.7/32", f"{OTHER}/32") == 0
        assert banned() == {OTHER, "198.51.100.7"}
        run("ip", "address", "add", "198.51.100.7/32", "dev", "lo")
        kind, _ = server.receive()
        assert kind == LOST
        assert server.ban("198.51.100.7/32", f"{OTHER}/32") == 1
        assert banned() == {OTHER}


def test_a_server_that_applies_before_it_opens_gets_an_error(network, tmp_path):
    with Speaker(opens=False) as server:
        for networks in ("127.0.0.1/32", "198.51.100.7/32"):
            server.networks(APPLY, REPLACE, [networks], BAN)
            server.done(errno.ENOENT)
    assert banned() == set()


def test_a_server_names_its_trusted_proxies(network, tmp_path):
    """A real server tells a real helper: it is seen in what the helper does with another's bans."""
    with Server(tmp_path, {}, proxies=["198.51.100.0/24"]) as weir:
        weir.call("ban", PEER)
        state = weir.agrees(1)
        assert state["skipped"] == 0 and weir.metrics()["weir_kernel_skipped_total"] == 0
        weir.call("ban", "198.51.100.7")
        weir.agrees(1)  # standing itself keeps it from the kernel
        assert banned() == {PEER}
