/* SPDX-License-Identifier: Apache-2.0 */
/* Packets: the source of an Ethernet frame, and what limits look at. The filter in the kernel and
 * the tests in user space compile this same source.
 *
 * Read are: Ethernet II; up to XDP_TAGS_MAX VLAN tags (802.1Q, 802.1ad); IPv4 (RFC 791) with
 * options; IPv6 (RFC 8200) with up to XDP_HEADERS_MAX extension headers; the ports and flags of TCP
 * and the ports of UDP. Not read are tunnels (GRE, IP in IP, PPPoE, MPLS): what is inside counts
 * for the outer source.
 *
 * The rules:
 *   - A frame that is no IP (ARP, more tags than the limit, LLDP) is XDP_NO_IP.
 *   - A frame whose fixed IP header is cut off, or has the wrong version or a length below the
 *     header's own, is XDP_MALFORMED: nothing proves its source. The kernel's stack drops it.
 *   - Every other packet has a source. What comes after the fixed header may be cut off, or may be
 *     too long a chain of headers: then the transport is XDP_TRANSPORT_UNKNOWN, or the port is 0.
 *   - A fragment has the protocol of its header and, unless it is the first, no port and no flags.
 *   - TCP whose flags are cut off, by the frame or by IPv4's length, counts as opening a
 * connection: the next fragment may have them (RFC 1858).
 *   - An IPv6 source of ::ffff:0:0/96 is XDP_MALFORMED: the kernel's stack drops it.
 *
 * Memory: none. Threads: pure. Limits: reads at most the first 2,200 bytes of a frame.
 */
#ifndef WEIR_FEATURE_XDP_PACKET_H
#define WEIR_FEATURE_XDP_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#define XDP_INLINE static inline __attribute__((always_inline))

#define XDP_TAGS_MAX 2 /* a customer's tag within a provider's */
#define XDP_HEADERS_MAX                                                                            \
    6 /* hop-by-hop, destination, routing, fragment, AH, destination: RFC 8200 4.1 */

#define XDP_TRANSPORT_UNKNOWN 255 /* reserved by IANA, so no packet has it */

enum xdp_protocol { XDP_ICMP = 1, XDP_TCP = 6, XDP_UDP = 17, XDP_ICMP6 = 58 };

enum xdp_parsed { XDP_IP, XDP_NO_IP, XDP_MALFORMED };

struct xdp_packet {
    uint32_t source[4]; /* in network order; IPv4 as ::ffff:a.b.c.d */
    uint16_t port;      /* destination port of TCP and UDP, host order; 0: none was read */
    uint8_t family;     /* 4 or 6 */
    uint8_t transport;  /* an IANA protocol number, or XDP_TRANSPORT_UNKNOWN */
    bool fragment;      /* one of several, the first included */
    bool syn;           /* TCP: opens a connection (SYN without ACK), or may do so */
};

/* --- What differs between the kernel and user space ----------------------------------------- */

/* Whether `size` bytes are left. The verifier knows a comparison with the end of a packet, but no
 * difference; C knows no pointer beyond the end. */
XDP_INLINE bool packet_has(const uint8_t *at, uint32_t size, const uint8_t *end)
{
#ifdef __bpf__
    return at + size <= end;
#else
    return at <= end && (uintptr_t)end - (uintptr_t)at >= size;
#endif
}

/* The kernel aligns IP headers to 4 bytes, and so compiles single loads; memcpy would be a load for
 * each byte there. */
XDP_INLINE uint32_t packet_word(const uint8_t *at)
{
#ifdef __bpf__
    return *(const volatile uint32_t *)at;
#else
    uint32_t word;
    __builtin_memcpy(&word, at, sizeof word);
    return word;
#endif
}

/* --- Parsing --------------------------------------------------------------------------------- */

XDP_INLINE uint16_t packet_number(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

#define XDP_IPV4_HEADER 20
#define XDP_IPV6_HEADER 40
#define XDP_ETHERNET_HEADER 14

/* Ports and flags behind the network headers, of which `size` bytes belong to the packet: what
 * follows them pads the frame. */
XDP_INLINE void packet_transport(struct xdp_packet *packet, const uint8_t *at, const uint8_t *end,
                                 uint32_t size)
{
    if (packet->transport != XDP_TCP && packet->transport != XDP_UDP)
        return;
    packet->syn = packet->transport == XDP_TCP;
    if (size < 4 || !packet_has(at, 4, end))
        return;
    packet->port = packet_number(at + 2);
    if (packet->transport == XDP_TCP && size >= 14 && packet_has(at, 14, end))
        packet->syn = (at[13] & 0x12) == 0x02;
}

XDP_INLINE enum xdp_parsed packet_ipv4(struct xdp_packet *packet, const uint8_t *at,
                                       const uint8_t *end, bool transport)
{
    if (!packet_has(at, XDP_IPV4_HEADER, end))
        return XDP_MALFORMED;

    uint32_t header = (uint32_t)(at[0] & 0x0f) * 4, size = packet_number(at + 2);
    uint16_t place = packet_number(at + 6);

    if (at[0] >> 4 != 4 || header < XDP_IPV4_HEADER || size < header)
        return XDP_MALFORMED;
    static const uint8_t mapped[4] = {0, 0, 0xff, 0xff};

    packet->source[0] = packet->source[1] = 0;
    __builtin_memcpy(&packet->source[2], mapped, sizeof mapped);
    packet->source[3] = packet_word(at + 12);
    packet->family = 4;
    packet->transport = at[9];
    packet->fragment = (place & 0x3fff) != 0; /* more fragments, or an offset */
    if (transport && (place & 0x1fff) == 0)
        packet_transport(packet, at + header, end, size - header);
    return XDP_IP;
}

/* The highest bit, as 0 or 1. For arithmetic without branches: the verifier follows both sides of
 * each, so that branches in a loop multiply what it has to look at. Multiply by it: newer kernels
 * follow both values of `constant & (0 - bit)` as well. */
XDP_INLINE uint64_t packet_sign(uint64_t number)
{
    uint64_t bit = number >> 63;

    __asm__("" : "+r"(bit)); /* else the compiler makes branches of what follows */
    return bit;
}

/* All bits for 0, and none for any other number below 2^63. */
XDP_INLINE uint64_t packet_is_zero(uint64_t number)
{
    return 0 - packet_sign(number - 1);
}

/* Hop-by-hop, routing, fragment, AH, destination. What follows mobility, HIP and Shim6 headers is
 * no transport (RFC 6275, 7401, 5533). */
#define PACKET_EXTENSIONS (1ULL << 0 | 1ULL << 43 | 1ULL << 44 | 1ULL << 51 | 1ULL << 60)

XDP_INLINE bool packet_is_extension(uint64_t next)
{
    return next < 64 && (PACKET_EXTENSIONS >> next & 1) != 0;
}

/* The chain of extension headers, up to the transport. */
XDP_INLINE void packet_extensions(struct xdp_packet *packet, uint64_t next, const uint8_t *at,
                                  const uint8_t *end)
{
    uint64_t fragment = 0;

    for (int i = 0; i < XDP_HEADERS_MAX && packet_is_extension(next); i++) {
        if (!packet_has(at, 8, end)) {
            packet->fragment = fragment != 0;
            return;
        }
        uint64_t of_fragment = packet_is_zero(next ^ 44), of_ah = packet_is_zero(next ^ 51);
        uint64_t size = ((uint64_t)at[1] + 1) * 8;

        size ^= (size ^ ((uint64_t)at[1] + 2) * 4) & of_ah;
        size ^= (size ^ 8) & of_fragment;
        /* An "atomic" fragment (RFC 6946) is whole: no offset, and no more to come. */
        fragment |= packet_number(at + 2) & 0xfff9 & of_fragment;
        next = at[0];
        at += size & 0xfff;
        if (fragment >> 3 != 0) { /* not the first: what comes next is no header */
            packet->fragment = true;
            packet->transport = packet_is_extension(next) ? XDP_TRANSPORT_UNKNOWN : (uint8_t)next;
            return;
        }
    }
    packet->fragment = fragment != 0;
    if (packet_is_extension(next))
        return;
    packet->transport = (uint8_t)next;
    packet_transport(
        packet, at, end,
        UINT32_MAX); /* a fragment of IPv6 is never so short that its frame is padded */
}

XDP_INLINE enum xdp_parsed packet_ipv6(struct xdp_packet *packet, const uint8_t *at,
                                       const uint8_t *end, bool transport)
{
    if (!packet_has(at, XDP_IPV6_HEADER, end) || at[0] >> 4 != 6)
        return XDP_MALFORMED;
    static const uint8_t mapped[4] = {0, 0, 0xff, 0xff};
    uint32_t middle;

    __builtin_memcpy(&middle, mapped, sizeof mapped);
    for (int i = 0; i < 4; i++)
        packet->source[i] = packet_word(at + 8 + 4 * i);
    if ((packet->source[0] | packet->source[1] | (packet->source[2] ^ middle)) == 0)
        return XDP_MALFORMED;
    packet->family = 6;
    if (transport)
        packet_extensions(packet, at[6], at + XDP_IPV6_HEADER, end);
    return XDP_IP;
}

/* Reads the frame from `at` up to `end`. `transport`: whether any limit needs what is behind the IP
 * header; without, `transport` of an IPv6 packet stays unknown, and port and syn stay 0. Fills
 * *packet whatever it returns. */
XDP_INLINE enum xdp_parsed packet_parse(struct xdp_packet *packet, const uint8_t *at,
                                        const uint8_t *end, bool transport)
{
    *packet = (struct xdp_packet){.transport = XDP_TRANSPORT_UNKNOWN};
    if (!packet_has(at, XDP_ETHERNET_HEADER, end))
        return XDP_MALFORMED;

    uint64_t type = packet_number(at + 12);

    at += XDP_ETHERNET_HEADER;
    for (int i = 0; i < XDP_TAGS_MAX; i++) {
        if (!packet_has(at, 4, end))
            return XDP_MALFORMED;
        uint64_t tag = packet_is_zero((type ^ 0x8100) * (type ^ 0x88a8));

        type ^= (type ^ packet_number(at + 2)) & tag;
        at += tag & 4;
    }
    if (type == 0x0800)
        return packet_ipv4(packet, at, end, transport);
    if (type == 0x86dd)
        return packet_ipv6(packet, at, end, transport);
    return XDP_NO_IP;
}

#endif
