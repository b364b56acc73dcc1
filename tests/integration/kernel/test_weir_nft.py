# SPDX-License-Identifier: Apache-2.0
"""weir nft: limits below HTTP, loaded into a network namespace and met by real packets."""

import json
import socket
import subprocess

import pytest

from network.namespaces import HERE4, HERE6, Network, run
from daemon.waiting import wait_until
from model.program import weir_path

PEER, OTHER = "192.0.2.7", "192.0.2.8"


@pytest.fixture(name="network")
def fixture_network():
    with Network() as network:
        yield network


def write(folder, *limits, **parts):
    path = folder / "weir.yaml"
    path.write_text(json.dumps({"version": 1, "limits": [], "kernel": {"limits": list(limits)}, **parts}),
                    encoding="utf-8")
    return path


def nft(path, *options):
    return subprocess.run([weir_path(), "nft", "--config", str(path), *options], capture_output=True,
                          text=True, timeout=120, check=False)


def apply(path):
    done = nft(path, "--apply")
    assert (done.returncode, done.stderr) == (0, "")


def dropped(name, table="weir_limits"):
    listed = json.loads(run("nft", "-j", "list", "counters", "table", "inet", table).stdout)
    return {part["counter"]["name"]: part["counter"]["packets"]
            for part in listed["nftables"] if "counter" in part}[name + "_over"]


def listener():
    one = socket.create_server((HERE4, 0), backlog=200)
    return one, one.getsockname()


def receive(one, received):
    """Appends what has come; returns how many there are."""
    try:
        received.append(one.recv(1)[0])
    except BlockingIOError:
        pass
    return len(received)


ALL = [{"name": "syn", "new_connections": "50/s burst 100", "prefix4": 24, "ports": [80, 443]},
       {"name": "open", "open_connections": 200, "prefix6": 48},
       {"name": "pps", "packets": "60000/min", "sources": 1000, "dry_run": True},
       {"name": "limit", "icmp": "5/day"}]


def test_check_says_what_differs_and_apply_ends_it(network, tmp_path):
    path = write(tmp_path, *ALL)
    before = run("nft", "list", "ruleset").stdout
    assert nft(path).stdout.startswith("# The limits of the kernel, made by `weir nft`")
    assert run("nft", "list", "ruleset").stdout == before
    absent = nft(path, "--check")
    assert (absent.returncode, absent.stdout) == (
        1, "the table inet weir_limits is not loaded; run `weir nft --apply`\n")
    for _ in range(2):  # again replaces it
        apply(path)
        same = nft(path, "--check")
        assert (same.returncode, same.stdout, same.stderr) == (0, "", "")
    write(tmp_path, *ALL[:1], {**ALL[1], "open_connections": 300}, *ALL[2:])
    differs = nft(path, "--check")
    assert differs.returncode == 1
    signs = [line[:2] for line in differs.stdout.splitlines()]
    assert signs == ["- ", "- ", "+ ", "+ "]
    assert "ct count over 300" in differs.stdout and "ct count over 200" in differs.stdout
    write(tmp_path, ALL[3], *ALL[:3])
    assert nft(path, "--check").returncode == 1  # another order is another ruleset
    run("nft", "add", "table", "inet", "other")
    assert nft(path, "--remove").returncode == nft(path, "--remove").returncode == 0
    assert run("nft", "list", "tables").stdout == "table inet other\n"


def test_new_connections_beyond_the_rate_are_dropped_per_prefix(network, tmp_path):
    server, address = listener()
    with server:
        apply(write(tmp_path, {"name": "syn", "new_connections": "3/day", "prefix4": 24,
                               "ports": [address[1]]}))
        assert all(network.reaches(PEER, address, 60) for _ in range(3))
        assert not network.reaches(PEER, address, 2)  # what is not dropped is answered in microseconds
        assert not network.reaches(OTHER, address, 2)  # of the same /24
        assert network.reaches("198.51.100.8", address, 60)
        assert dropped("syn") >= 2


def test_a_dry_run_counts_and_drops_nothing(network, tmp_path):
    server, address = listener()
    with server:
        apply(write(tmp_path, {"name": "syn", "new_connections": "1/day", "dry_run": True}))
        assert all(network.reaches(PEER, address, 60) for _ in range(4))
        assert dropped("syn") == 3


def test_open_connections_are_counted_and_free_their_place(network, tmp_path):
    server, address = listener()
    with server:
        apply(write(tmp_path, {"name": "open", "open_connections": 2}))
        held = [network.connect(PEER, address, 60) for _ in range(2)]
        assert network.connect(PEER, address, 2) is None
        assert dropped("open") >= 1
        assert network.reaches(OTHER, address, 60)
        # A connection that is reset is at once no longer open.
        held[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        held[0].close()
        wait_until(lambda: network.reaches(PEER, address))
        held[1].close()


def test_packets_are_counted_per_source_and_port(network, tmp_path):
    apply(write(tmp_path, {"name": "pps", "packets": "5/day"}))
    received = []
    with network.socket_of_peer(socket.SOCK_DGRAM) as peer:
        peer.bind((PEER, 0))
        for ports in (1, 2):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
                here.bind((HERE4, 0))
                here.setblocking(False)
                for i in range(8):
                    peer.sendto(bytes([i]), here.getsockname())
                wait_until(lambda ports=ports: dropped("pps") == 3 * ports)
                wait_until(lambda here=here, ports=ports: receive(here, received) == 5 * ports)
    assert received == [0, 1, 2, 3, 4] * 2 and dropped("pps") == 6


def test_icmp_is_limited_and_ipv6_has_its_own_count(network, tmp_path):
    apply(write(tmp_path, {"name": "ping", "icmp": "2/day"}))
    for family, here, source in ((socket.AF_INET, HERE4, PEER), (socket.AF_INET6, HERE6, network.peer6[0])):
        before = dropped("ping")
        echo = b"\x08" if family == socket.AF_INET else b"\x80"
        protocol = socket.IPPROTO_ICMP if family == socket.AF_INET else socket.IPPROTO_ICMPV6
        network._set(network.peer)  # pylint: disable=protected-access
        try:
            one = socket.socket(family, socket.SOCK_RAW, protocol)
        finally:
            network._set(network.own)  # pylint: disable=protected-access
        with one:
            one.bind((source, 0))
            body = echo + b"\0\xf7\xff\0\0\0\0"  # the checksum of nothing else; the kernel makes IPv6's
            for _ in range(5):
                one.sendto(body, (here, 0))
        wait_until(lambda before=before: dropped("ping") == before + 3)


def test_a_trusted_proxy_is_never_limited(network, tmp_path):
    server, address = listener()
    with server:
        apply(write(tmp_path, {"name": "syn", "new_connections": "1/day"},
                    server={"trusted_proxies": [PEER]}))
        assert all(network.reaches(PEER, address, 60) for _ in range(3))
        assert network.reaches(OTHER, address, 60) and not network.reaches(OTHER, address, 2)


def test_it_needs_limits_and_one_wish(tmp_path):
    path = write(tmp_path)
    empty = nft(path)
    assert (empty.returncode, empty.stderr) == (1, f"weir: {path} has no `limits` in `kernel`\n")
    both = nft(path, "--apply", "--check")
    assert both.returncode == 2 and "give one of --apply, --check and --remove" in both.stderr
