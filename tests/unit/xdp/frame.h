/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet frames for the tests of the filter, put together piece by piece. */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct frame {
    uint8_t bytes[2048];
    size_t size;
};

static inline void frame_put(struct frame *frame, const void *bytes, size_t size)
{
    memcpy(frame->bytes + frame->size, bytes, size);
    frame->size += size;
}

static inline void frame_number(struct frame *frame, uint16_t number)
{
    uint8_t bytes[2] = {(uint8_t)(number >> 8), (uint8_t)number};

    frame_put(frame, bytes, 2);
}

/* Addresses of the link; then come tags or the type. */
static inline void frame_begin(struct frame *frame)
{
    memset(frame, 0, sizeof *frame);
    frame->size = 12;
}

static inline void frame_tag(struct frame *frame, uint16_t kind, uint16_t vlan)
{
    frame_number(frame, kind);
    frame_number(frame, vlan);
}

/* The type and an IPv4 header; `place`: flags and offset of fragments. */
static inline void frame_ipv4(struct frame *frame, uint32_t source, uint8_t protocol,
                              uint16_t place, uint8_t options)
{
    uint8_t header[60] = {(uint8_t)(0x40 | (5 + options)), 0, 0, 200, 0, 0, 0, 0, 64, protocol};

    header[6] = (uint8_t)(place >> 8);
    header[7] = (uint8_t)place;
    for (int i = 0; i < 4; i++)
        header[12 + i] = (uint8_t)(source >> (24 - 8 * i));
    frame_number(frame, 0x0800);
    frame_put(frame, header, 20 + 4 * (size_t)options);
}

static inline void frame_ipv6(struct frame *frame, const uint8_t source[16], uint8_t next)
{
    uint8_t header[40] = {0x60, 0, 0, 0, 0, 200, next, 64};

    memcpy(header + 8, source, 16);
    frame_number(frame, 0x86dd);
    frame_put(frame, header, sizeof header);
}

/* The ports and flags of TCP or UDP. */
static inline void frame_ports(struct frame *frame, uint16_t port, uint8_t flags)
{
    uint8_t header[20] = {0x13,          0x88,        (uint8_t)(port >> 8),
                          (uint8_t)port, [12] = 0x50, [13] = flags};

    frame_put(frame, header, sizeof header);
}

#endif
