# SPDX-License-Identifier: Apache-2.0
"""A server that is broken into, or wrong, and has the kernel ban what cuts the machine off."""

import ipaddress

import pytest

from network.helper import Speaker, banned
from network.namespaces import HERE4, HERE6, Network
from suite import case

PROXIES = ("198.51.100.0/24", "2001:db8:77::/48")
INNOCENT = "192.0.2.8"


@case("kernel-own", "bans of loopback, of the machine's own addresses and of trusted proxies, as weir-kernel gets them")
def kernel_own(attack):
    tried = "APPLY with bans of what may not be banned"
    wrong = ["127.0.0.1/32", "127.0.0.0/8", "::1/128", f"{HERE4}/32", f"{HERE6}/128",
             str(ipaddress.ip_network(HERE4 + "/16", strict=False)), "198.51.100.7/32", "198.51.0.0/16",
             "2001:db8:77::9/128"]
    try:
        with Network(), Speaker() as server:
            server.protect(*PROXIES)
            skipped = server.ban(*wrong, f"{INNOCENT}/32")
            found = banned()
    except pytest.skip.Exception as reason:
        attack.tell(tried, len(wrong), f"not tried: {reason}")
        return
    attack.all_of(tried, len(wrong), "bans left out", skipped, len(wrong))
    attack.holds(tried, len(wrong), f"in the kernel: {', '.join(sorted(found))}", "the one ban that may be",
                 found == {INNOCENT})
