/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a frame: every header, cut off at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "feature/xdp/packet.h"
#include "frame.h"
#include "test.h"

static const uint8_t site[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

static enum xdp_parsed parse(const struct frame *frame, struct xdp_packet *packet)
{
    return packet_parse(packet, frame->bytes, frame->bytes + frame->size, true);
}

static void assert_source(const struct xdp_packet *packet, const uint8_t source[16])
{
    assert_memory_equal(packet->source, source, 16);
}

/* 192.0.2.1 */
static void assert_ipv4(const struct xdp_packet *packet)
{
    static const uint8_t source[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};

    assert_int_equal(packet->family, 4);
    assert_source(packet, source);
}

TEST("ipv4 has a source a protocol and a port")
{
    struct xdp_packet packet;
    struct frame frame;

    frame_begin(&frame);
    frame_ipv4(&frame, 0xc0000201, XDP_UDP, 0, 0);
    frame_ports(&frame, 53, 0);
    assert_int_equal(parse(&frame, &packet), XDP_IP);
    assert_ipv4(&packet);
    assert_int_equal(packet.transport, XDP_UDP);
    assert_int_equal(packet.port, 53);
    assert_false(packet.syn);
    assert_false(packet.fragment);
}

TEST("options of ipv4 are skipped")
{
    for (uint8_t options = 0; options <= 10; options++) {
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        frame_ipv4(&frame, 0xc0000201, XDP_TCP, 0, options);
        frame_ports(&frame, 443, 0x02);
        assert_int_equal(parse(&frame, &packet), XDP_IP);
        assert_ipv4(&packet);
        assert_int_equal(packet.port, 443);
        assert_true(packet.syn);
    }
}

TEST("only syn without ack opens a connection")
{
    for (unsigned flags = 0; flags < 256; flags++) {
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        frame_ipv4(&frame, 0xc0000201, XDP_TCP, 0, 0);
        frame_ports(&frame, 443, (uint8_t)flags);
        assert_int_equal(parse(&frame, &packet), XDP_IP);
        assert_int_equal(packet.syn, (flags & 2) != 0 && (flags & 16) == 0);
    }
}

TEST("a fragment has a source and only the first has a port")
{
    static const struct {
        uint16_t place;
        bool fragment, port;
    } cases[] = {
        {0x0000, false, true}, {0x4000, false, true}, /* may not be fragmented */
        {0x2000, true, true},                         /* the first */
        {0x2001, true, false}, {0x0001, true, false}, {0x1fff, true, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        frame_ipv4(&frame, 0xc0000201, XDP_TCP, cases[i].place, 0);
        frame_ports(&frame, 443, 0x02);
        assert_int_equal(parse(&frame, &packet), XDP_IP);
        assert_ipv4(&packet);
        assert_int_equal(packet.transport, XDP_TCP);
        assert_int_equal(packet.fragment, cases[i].fragment);
        assert_int_equal(packet.port, cases[i].port ? 443 : 0);
        assert_int_equal(packet.syn, cases[i].port);
    }
}

/* RFC 1858: a first fragment of 8 bytes has no flags of TCP, and Ethernet pads it with zeros. */
TEST("a connection may open where no flags are")
{
    for (uint16_t total = 20; total <= 40; total++) {
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        frame_ipv4(&frame, 0xc0000201, XDP_TCP, 0x2000, 0);
        frame_ports(&frame, 443, 0);
        frame.bytes[16] = 0;
        frame.bytes[17] = (uint8_t)total;
        assert_int_equal(parse(&frame, &packet), XDP_IP);
        assert_int_equal(packet.port, total >= 24 ? 443 : 0);
        assert_int_equal(packet.syn, total < 34);
    }
}

/* The kernel drops such a packet; its source is no address of IPv4, whatever lists say. */
TEST("a mapped source of ipv6 is malformed")
{
    uint8_t mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
    struct xdp_packet packet;
    struct frame frame;

    for (int i = 0; i < 2; i++) {
        mapped[11] = i == 0 ? 0xff : 0xfe;
        frame_begin(&frame);
        frame_ipv6(&frame, mapped, XDP_UDP);
        assert_int_equal(parse(&frame, &packet), i == 0 ? XDP_MALFORMED : XDP_IP);
        assert_int_equal(packet.family, i == 0 ? 0 : 6);
    }
}

TEST("two tags are read and a third is no ip")
{
    for (int tags = 0; tags <= 3; tags++) {
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        for (int i = 0; i < tags; i++)
            frame_tag(&frame, i == 0 && tags > 1 ? 0x88a8 : 0x8100, (uint16_t)(i + 1));
        frame_ipv4(&frame, 0xc0000201, XDP_UDP, 0, 0);
        frame_ports(&frame, 53, 0);
        assert_int_equal(parse(&frame, &packet), tags <= 2 ? XDP_IP : XDP_NO_IP);
        if (tags > 2)
            continue;
        assert_ipv4(&packet);
        assert_int_equal(packet.port, 53);
    }
}

/* One extension header of `size` bytes, whose next is `next`. */
static void put_extension(struct frame *frame, uint8_t next, size_t size, uint8_t length)
{
    uint8_t header[64] = {next, length};

    frame_put(frame, header, size);
}

TEST("extension headers of ipv6 are skipped")
{
    struct xdp_packet packet;
    struct frame frame;

    frame_begin(&frame);
    frame_ipv6(&frame, site, 0);
    put_extension(&frame, 60, 8, 0);  /* hop-by-hop */
    put_extension(&frame, 43, 24, 2); /* destination */
    put_extension(&frame, 51, 8, 0);  /* routing */
    put_extension(&frame, 6, 24, 4);  /* authentication: in words, less 2 */
    frame_ports(&frame, 443, 0x02);
    assert_int_equal(parse(&frame, &packet), XDP_IP);
    assert_source(&packet, site);
    assert_int_equal(packet.family, 6);
    assert_int_equal(packet.transport, XDP_TCP);
    assert_int_equal(packet.port, 443);
    assert_true(packet.syn);
}

TEST("more extension headers than the limit leave the transport unknown")
{
    for (int count = 0; count <= XDP_HEADERS_MAX + 2; count++) {
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        frame_ipv6(&frame, site, count > 0 ? 60 : XDP_UDP);
        for (int i = 1; i <= count; i++)
            put_extension(&frame, i < count ? 60 : XDP_UDP, 8, 0);
        frame_ports(&frame, 53, 0);
        assert_int_equal(parse(&frame, &packet), XDP_IP);
        assert_source(&packet, site);
        assert_int_equal(packet.transport,
                         count <= XDP_HEADERS_MAX ? XDP_UDP : XDP_TRANSPORT_UNKNOWN);
        assert_int_equal(packet.port, count <= XDP_HEADERS_MAX ? 53 : 0);
    }
}

TEST("fragments of ipv6 are known")
{
    static const struct {
        uint8_t place[2];
        bool fragment, port;
    } cases[] = {
        {{0, 0}, false, true}, /* atomic: RFC 6946 */
        {{0, 1}, true, true},  {{0, 9}, true, false},
        {{0, 8}, true, false}, {{0xff, 0xf8}, true, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t header[8] = {XDP_UDP, 0, cases[i].place[0], cases[i].place[1]};
        struct xdp_packet packet;
        struct frame frame;

        frame_begin(&frame);
        frame_ipv6(&frame, site, 44);
        frame_put(&frame, header, sizeof header);
        frame_ports(&frame, 53, 0);
        assert_int_equal(parse(&frame, &packet), XDP_IP);
        assert_source(&packet, site);
        assert_int_equal(packet.fragment, cases[i].fragment);
        assert_int_equal(packet.transport, XDP_UDP);
        assert_int_equal(packet.port, cases[i].port ? 53 : 0);
    }
}

TEST("a header of the wrong version or length is malformed")
{
    struct xdp_packet packet;
    struct frame frame;

    frame_begin(&frame);
    frame_ipv4(&frame, 0xc0000201, XDP_UDP, 0, 0);
    for (unsigned first = 0; first < 256; first++) {
        bool right = first >> 4 == 4 && (first & 15) >= 5;

        frame.bytes[14] = (uint8_t)first;
        assert_int_equal(parse(&frame, &packet), right ? XDP_IP : XDP_MALFORMED);
    }
    frame.bytes[14] = 0x45;
    frame.bytes[17] = 19; /* the whole packet is shorter than its header */
    assert_int_equal(parse(&frame, &packet), XDP_MALFORMED);
    frame_begin(&frame);
    frame_ipv6(&frame, site, XDP_UDP);
    frame.bytes[14] = 0x45;
    assert_int_equal(parse(&frame, &packet), XDP_MALFORMED);
}

/* In a block of exactly the size, so that a sanitizer sees a read behind it. */
TEST("a frame cut off anywhere has its source or none")
{
    struct frame frames[2];

    frame_begin(&frames[0]);
    frame_tag(&frames[0], 0x8100, 7);
    frame_ipv4(&frames[0], 0xc0000201, XDP_TCP, 0, 2);
    frame_ports(&frames[0], 443, 0x02);
    frame_begin(&frames[1]);
    frame_ipv6(&frames[1], site, 0);
    put_extension(&frames[1], 6, 16, 1);
    frame_ports(&frames[1], 443, 0x02);
    for (int i = 0; i < 2; i++) {
        size_t header = i == 0 ? 12 + 4 + 2 + 20 : 12 + 2 + 40;

        for (size_t size = 0; size <= frames[i].size; size++) {
            uint8_t *block = malloc(size > 0 ? size : 1);
            struct xdp_packet packet;

            assert_non_null(block);
            memcpy(block, frames[i].bytes, size);
            enum xdp_parsed parsed = packet_parse(&packet, block, block + size, true);

            assert_int_equal(parsed, size < header ? XDP_MALFORMED : XDP_IP);
            assert_int_equal(packet.family, size < header ? 0 : i == 0 ? 4 : 6);
            assert_true(packet.port == 0 || packet.port == 443);
            assert_int_equal(packet.syn, size >= header + (i == 0 ? 0 : 8));
            free(block);
        }
    }
}

RUN_TESTS()
