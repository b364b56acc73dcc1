# SPDX-License-Identifier: Apache-2.0
"""Ethernet frames for the tests of the filter for packets."""

import ipaddress
import struct

UDP, TCP, ICMP = 17, 6, 1


def ethernet(kind, payload, tags=()):
    """`tags`: pairs of (type, VLAN id), the outer one first."""
    head = b"\xff" * 6 + b"\x02\0\0\0\0\x01"
    for tag, vlan in tags:
        head += struct.pack(">HH", tag, vlan)
    return head + struct.pack(">H", kind) + payload


def udp(port=9, size=0):
    return struct.pack(">HHHH", 5000, port, 8 + size, 0) + bytes(size)


def tcp(port=80, flags=0x02):
    return struct.pack(">HHIIBBHHH", 5000, port, 1, 0, 5 << 4, flags, 1000, 0, 0)


def ipv4(source, payload=None, protocol=UDP, fragment=0, options=b"", **frame):
    """`fragment`: the field of flags and offset."""
    payload = udp() if payload is None else payload
    head = 20 + len(options)
    packet = struct.pack(">BBHHHBBH4s4s", 0x40 | head // 4, 0, head + len(payload), 1, fragment, 64, protocol, 0,
                         ipaddress.IPv4Address(source).packed, ipaddress.IPv4Address("10.9.0.1").packed)
    return ethernet(0x0800, packet + options + payload, **frame)


def ipv6(source, payload=None, following=UDP, **frame):
    payload = udp() if payload is None else payload
    packet = struct.pack(">IHBB16s16s", 6 << 28, len(payload), following, 64,
                         ipaddress.IPv6Address(source).packed, ipaddress.IPv6Address("2001:db8:9::1").packed)
    return ethernet(0x86dd, packet + payload, **frame)
