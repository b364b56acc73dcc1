# SPDX-License-Identifier: Apache-2.0
"""`weir xdp` on a real interface: a pair of veth in namespaces of their own."""

import json
import shutil
import subprocess
import sys

import pytest

from daemon.waiting import wait_until
from daemon.weir import Weir, rules_of
from model.program import weir_path
from packets.frames import ethernet, ipv4, ipv6
from packets.cable import Cable

HOLDER = """
import ctypes, sys
print(ctypes.CDLL("libbpf.so.1").bpf_obj_get(sys.argv[1].encode()) >= 0, flush=True)
sys.stdin.read()
"""
LIMIT = {"name": "packets", "packets": "100/d"}


@pytest.fixture(name="cable")
def fixture_cable(tmp_path):
    with Cable(tmp_path) as cable:
        yield cable


def test_packets_beyond_the_limit_are_dropped_and_detaching_ends_it(cable):
    cable.attach({"limits": [LIMIT]})
    cable.send((ipv4("192.0.2.1"), 250), (ipv4("192.0.2.2"), 90))
    assert cable.wait_for(340) == {"passed": 190, "limit": 150}
    status = cable.status()
    assert status["attached"] and status["mode"] == "native"
    assert [(limit["name"], limit["denied"]["packets"]) for limit in status["limits"]] == [("packets", 150)]

    for _ in range(4):  # each takes effect at once
        assert "detached" in cable.weir("detach", "--interface=near").stdout
        assert "xdp" not in cable.run("ip", "link", "show", "near").stdout
        assert "no filter" in cable.weir("status", "--interface=near", check=False).stderr
        assert "attached" in cable.attach({"limits": [LIMIT]}).stdout
    assert "no filter" in cable.weir("detach", "--interface=far", check=False).stderr

    # Also where another process, such as a `status` at that moment, has the link open.
    holder = cable.start(sys.executable, "-c", HOLDER, cable.pins / "weir/near", stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    assert holder.stdout.readline() == "True\n"
    cable.weir("detach", "--interface=near")
    assert "xdp" not in cable.run("ip", "link", "show", "near").stdout
    assert "attached" in cable.attach({"limits": [LIMIT]}).stdout


def test_an_update_changes_neither_the_mode_nor_another_interface(cable):
    cable.attach({"limits": [LIMIT], "mode": "generic"})
    refused = cable.attach({"limits": [LIMIT], "mode": "native"}, check=False)
    assert refused.returncode == 1 and "attached in generic mode, which an update cannot change" in refused.stderr
    assert "kept" in cable.attach({"limits": [LIMIT]}).stdout  # auto: as it is

    for change in (["down"], ["name", "before"], ["up"]):
        cable.run("ip", "link", "set", "before" if change == ["up"] else "near", *change)
    cable.run("ip", "link", "add", "near", "type", "veth", "peer", "name", "more")
    refused = cable.attach({"limits": [LIMIT]}, check=False)
    assert refused.returncode == 1 and "is on another interface, which had that name" in refused.stderr
    assert "xdp" in cable.run("ip", "link", "show", "before").stdout
    cable.weir("detach", "--interface=near")
    assert "xdp" not in cable.run("ip", "link", "show").stdout
    assert "attached" in cable.attach({"limits": [LIMIT]}).stdout
    # What is recreated under the same name is another interface.
    cable.run("ip", "link", "del", "near")
    assert not cable.status()["attached"]
    cable.run("ip", "link", "add", "near", "type", "veth", "peer", "name", "more")
    assert "attached" in cable.attach({"limits": [LIMIT]}).stdout
    assert cable.status()["attached"]


def traced(cable, config, *options):
    """Attaches under strace. Returns what ended it, and how many system calls bpf there were."""
    calls = cable.pins.parent / "calls"
    done = cable.run("strace", "-f", "-qq", "-o", calls, "-e", "trace=bpf,write", *options, weir_path(), "xdp",
                     "attach", f"--config={config}", f"--pins={cable.pins}/weir", check=False)
    return done.returncode, calls.read_text(encoding="utf-8").count("bpf(") if calls.exists() else 0


def killed(cable, config, call, at):
    """Kills `weir xdp attach` as it makes the `at`th of these system calls. Returns whether there is a pin."""
    status, _ = traced(cable, config, "-e", f"inject={call}:signal=KILL:when={at}")
    assert status != 0
    pinned = cable.run("test", "-e", cable.pins / "weir/near", check=False).returncode == 0
    # A link without a pin ends with the process, a moment later.
    wait_until(lambda: ("xdp" in cable.run("ip", "link", "show", "near").stdout) == pinned)
    return pinned


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_what_kills_attach_leaves_a_filter_with_its_pin_or_none(cable):
    config = cable.rules({"limits": [LIMIT]})
    status, count = traced(cable, config)
    if not count:
        pytest.skip("strace may not trace here")
    assert status == 0 and cable.status()["attached"]
    cable.weir("detach", "--interface=near")
    for at in range(1, count + 1):
        if killed(cable, config, "bpf", at):
            assert cable.status()["attached"]
            cable.weir("detach", "--interface=near")
    assert killed(cable, config, "write", 1)  # as it says that it is attached
    assert cable.status()["attached"]
    status, count = traced(cable, config)
    assert status == 0
    for at in range(1, count + 1):  # of an update
        assert killed(cable, config, "bpf", at)
        assert cable.status()["attached"]


def test_a_name_that_is_no_interface_is_refused(cable):
    cable.attach({"limits": [LIMIT]})
    for name in ("../near", "near/x", "a-name-of-16-byte", "..", ""):
        refused = cable.weir("detach", f"--interface={name}", check=False)
        assert refused.returncode == 2 and "--interface is no name of an interface" in refused.stderr
    (cable.pins.parent / "weir.yaml").write_text("version: 1\nlimits: []\n", encoding="utf-8")
    for command in ("detach", "status", "top"):
        refused = cable.weir(command, f"--config={cable.pins.parent}/weir.yaml", check=False)
        assert refused.returncode == 1 and "kernel.xdp" in refused.stderr
    assert cable.status()["attached"]


def test_an_update_keeps_what_sources_have_used(cable):
    cable.attach({"limits": [LIMIT]})
    cable.send((ipv4("192.0.2.1"), 60))
    cable.wait_for(60)
    assert "states and counters are kept" in cable.attach({"limits": [LIMIT], "ban": ["203.0.113.0/24"]}).stdout
    cable.send((ipv4("192.0.2.1"), 60), (ipv4("203.0.113.9"), 5))
    assert cable.wait_for(125) == {"passed": 100, "limit": 20, "banned": 5}


def test_what_is_no_ip_passes(cable):
    cable.attach({"limits": [LIMIT]})
    cable.send((ethernet(0x0806, bytes(28)), 300))
    assert cable.wait_for(300) == {"no_ip": 300}


def test_top_shows_the_sources_of_drops_with_their_reason(cable):
    cable.attach({"limits": [LIMIT], "ban": ["203.0.113.9"]})
    cable.send((ipv4("192.0.2.1"), 130), (ipv4("203.0.113.9"), 7), (ipv4("192.0.2.2"), 100))
    cable.wait_for(237)
    lines = cable.weir("top", "--interface=near", "--once", "--interval=1").stdout.splitlines()[1:]
    assert [line.split()[:4] for line in lines] == [["192.0.2.1", "30", "limit", "packets"],
                                                    ["203.0.113.9", "7", "banned", "-"]]


def test_tags_fragments_and_both_families_count_for_their_source(cable):
    limit = {"name": "networks", "packets": "10/d", "prefix4": 24, "prefix6": 48}
    cable.attach({"limits": [limit], "mode": "generic"})
    inner, outer = (0x8100, 7), (0x88a8, 8)
    cable.send((ipv4("192.0.2.1", fragment=0x2001), 5), (ipv4("192.0.2.77", options=bytes(8)), 4),
               (ipv4("192.0.2.200", tags=[outer, inner]), 3),
               (ipv6("2001:db8:1::1", tags=[inner]), 6), (ipv6("2001:db8:1:ffff::2"), 6))
    assert cable.wait_for(24) == {"passed": 20, "limit": 4}
    assert cable.status()["mode"] == "generic"


RECEIVER = """
import json, socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: what is not dropped before has room
one.bind(("10.9.0.1", 9))
print("ready", flush=True)
counts = {}
while True:
    data, (source, _) = one.recvfrom(16)
    if data == b"end":
        break
    counts[source] = counts.get(source, 0) + 1
print(json.dumps(counts), flush=True)
"""

FLOOD = """
import errno, os, socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.bind((sys.argv[1], 0))
left = int(sys.argv[2])
while left:
    try:
        one.sendto(sys.argv[3].encode(), ("10.9.0.1", 9))
        left -= 1
    except OSError as failure:
        if failure.errno != errno.ENOBUFS:
            raise
        os.sched_yield()
"""


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_of_two_senders_the_one_that_floods_is_limited_and_the_other_untouched(cable, mode):
    """Sockets at both ends, and both senders at one time."""
    cable.run("ip", "address", "add", "10.9.0.1/24", "dev", "near")
    for source in ("10.9.0.2", "10.9.0.3", "10.9.0.4"):
        cable.run("ip", "address", "add", f"{source}/24", "dev", "far", process=cable.far)
    cable.attach({"limits": [{"name": "packets", "packets": "1000/d"}], "mode": mode})
    receiver = cable.start(sys.executable, "-c", RECEIVER, stdout=subprocess.PIPE)
    assert receiver.stdout.readline() == "ready\n"
    senders = [cable.start(sys.executable, "-c", FLOOD, source, count, "x", process=cable.far)
               for source, count in (("10.9.0.2", 4000), ("10.9.0.3", 600))]
    assert [sender.wait(timeout=300) for sender in senders] == [0, 0]
    wait_until(lambda: cable.counts().get("limit", 0) == 3000)
    wait_until(lambda: cable.counts()["passed"] == 1600)
    cable.run(sys.executable, "-c", FLOOD, "10.9.0.4", 1, "end", process=cable.far)
    assert json.loads(receiver.stdout.readline()) == {"10.9.0.2": 1000, "10.9.0.3": 600}


def test_allow_comes_before_ban_and_a_dry_run_before_both(cable):
    lists = {"limits": [LIMIT], "ban": ["192.0.2.0/24", "2001:db8::/32"], "allow": ["192.0.2.128/25"]}
    frames = [(ipv4("192.0.2.1"), 10), (ipv4("192.0.2.129"), 150), (ipv4("198.51.100.1"), 130),
              (ipv6("2001:db8::1"), 10), (ipv6("::ffff:192.0.2.129"), 5)]
    cable.attach(lists, "--dry-run")
    assert cable.status()["dry_run"]
    cable.send(*frames)
    dry = {"dry_run_banned": 20, "allowed": 150, "passed": 130, "dry_run_limit": 30, "malformed": 5}
    wait_until(lambda: cable.counts() == dry)
    # In earnest: the state of the source that was over its limit is kept.
    assert "kept" in cable.attach(lists).stdout
    cable.send(*frames)
    wait_until(lambda: cable.counts() == {**dry, "banned": 20, "allowed": 300, "limit": 130, "malformed": 10})


def test_the_filter_applies_to_a_share_of_sources(cable):
    """The filter bans all; `outside` are the sources that it does not apply to."""
    frames = [(ipv4(f"198.51.{third}.{last}"), 1) for third in (100, 101) for last in range(1, 101)]
    banned = outside = 0
    for share, low, high in (("0%", 0, 0), ("10%", 1, 60), ("50%", 40, 160), ("100%", 200, 200)):
        cable.attach({"limits": [], "ban": ["198.51.0.0/16"], "share": share})
        before = sum(cable.counts().values())
        cable.send(*frames)
        counts = cable.wait_for(before + 200)
        now = counts.get("banned", 0) - banned
        assert low <= now <= high and now + counts.get("outside", 0) - outside == 200
        banned, outside = counts.get("banned", 0), counts.get("outside", 0)


def test_without_the_capabilities_the_error_names_them(cable):
    """As root of nothing: no capability at all."""
    config = cable.rules({"limits": [LIMIT]})
    done = cable.run("setpriv", "--bounding-set=-all", "--inh-caps=-all", weir_path(), "xdp", "attach",
                     f"--config={config}", f"--pins={cable.pins}/weir", check=False)
    assert done.returncode == 1
    assert "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON" in done.stderr
    assert "xdp" not in cable.run("ip", "link", "show", "near").stdout


def test_the_server_shows_what_the_filter_has_counted(cable, tmp_path):
    cable.run("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")  # in the mount namespace of the near side
    xdp = {"interface": "near", "sample": 1, "limits": [LIMIT]}
    inside = cable.inside([])
    with Weir(tmp_path, rules_of(kernel={"xdp": xdp}), "--admin", f"unix:{tmp_path}/admin", http=None, admin=None,
              prefix=inside) as weir:
        def shown(name="packets_total"):
            return {key: value for key, value in weir.metrics().items()
                    if key.startswith(f"weir_xdp_{name}") and value}

        assert weir.metrics()['weir_xdp_up{interface="near"}'] == 0 and not shown()
        cable.run(weir_path(), "xdp", "attach", f"--config={weir.config}")
        assert weir.metrics()['weir_xdp_up{interface="near"}'] == 1 and not shown()
        frame = ipv4("192.0.2.1")
        cable.send((frame, 130))
        wait_until(lambda: shown() == {'weir_xdp_packets_total{interface="near",reason="passed"}': 100,
                                       'weir_xdp_packets_total{interface="near",reason="limit"}': 30})
        assert shown("bytes_total")['weir_xdp_bytes_total{interface="near",reason="limit"}'] == 30 * len(frame)
        cable.run(weir_path(), "xdp", "detach", "--interface=near")
        assert weir.metrics()['weir_xdp_up{interface="near"}'] == 0 and not shown()
