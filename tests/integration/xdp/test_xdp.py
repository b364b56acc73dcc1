# SPDX-License-Identifier: Apache-2.0
"""`weir xdp` on a real interface: a pair of veth in namespaces of their own."""

import pytest

from packets.frames import ethernet, ipv4
from packets.cable import Cable

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

    assert "detached" in cable.weir("detach", "--interface=near").stdout
    assert "xdp" not in cable.run("ip", "link", "show", "near").stdout
    assert "no filter" in cable.weir("status", "--interface=near", check=False).stderr


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
