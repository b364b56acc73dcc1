/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding of Protocol Buffers, for the two messages on the path of every ShouldRateLimit: what
 * protobuf-c, which walks tables, takes half of a call's time for, takes a tenth so. All other
 * messages are protobuf-c's; a test and a fuzz target hold these two to what it reads and writes.
 *
 * Source: https://protobuf.dev/programming-guides/encoding/
 *
 *   field    tag (varint: number << 3 | type), then by type
 *              0 a varint; 1 eight bytes; 2 a varint n and n bytes; 5 four bytes;
 *              3 fields, up to a tag of the same number with type 4: a group
 *   varint   7 bits a byte, the lowest first; the top bit says that more follow; up to 10 bytes
 *
 * A field whose number or type the reader does not know is skipped, a group with all that it holds:
 * so a known number with another type is an unknown field. (protobuf-c refuses both.)
 *
 * Threads: pure functions.
 */
#ifndef WEIR_WIRE_GRPC_PROTOBUF_H
#define WEIR_WIRE_GRPC_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <weir/bytes.h>

enum weir_pb_type {
    WEIR_PB_VARINT = 0,
    WEIR_PB_FIXED64 = 1,
    WEIR_PB_BYTES = 2,
    WEIR_PB_GROUP = 3,
    WEIR_PB_GROUP_END = 4,
    WEIR_PB_FIXED32 = 5
};

/* Groups in each other; deeper ones are malformed. As many as other implementations read. */
#define WEIR_PB_GROUPS_MAX 100

/* --- Reading ---------------------------------------------------------------------------------- */

/* What is left of a message, and the field that was read last. */
struct weir_pb_reader {
    const uint8_t *at, *end;
    uint32_t number; /* of the field */
    uint8_t type;
    bool bad;                /* it is malformed; nothing more is read */
    uint64_t value;          /* of a varint */
    struct weir_bytes bytes; /* of WEIR_PB_BYTES */
};

static inline struct weir_pb_reader weir_pb_read(struct weir_bytes message)
{
    const uint8_t *data = (const uint8_t *)message.data;
    return (struct weir_pb_reader){.at = data, .end = data + message.size};
}

static inline bool weir_pb_fail(struct weir_pb_reader *reader)
{
    reader->bad = true;
    return false;
}

/* False: cut off, or more than 64 bits. */
static inline bool weir_pb_varint(struct weir_pb_reader *reader, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 70 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        if (shift < 64)
            sum |= (uint64_t)(byte & 127) << shift;
        if (byte < 128 && !(shift == 63 && byte > 1)) {
            *value = sum;
            return true;
        }
    }
    return weir_pb_fail(reader);
}

/* Of a tag or a length: at most five bytes and 32 bits. */
static inline bool weir_pb_short(struct weir_pb_reader *reader, uint64_t *value)
{
    const uint8_t *start = reader->at;
    return weir_pb_varint(reader, value) &&
           ((reader->at - start <= 5 && *value <= UINT32_MAX) || weir_pb_fail(reader));
}

static inline bool weir_pb_skip(struct weir_pb_reader *reader, uint64_t size)
{
    if (size > (size_t)(reader->end - reader->at))
        return weir_pb_fail(reader);
    reader->bytes = (struct weir_bytes){(const char *)reader->at, (size_t)size};
    reader->at += size;
    return true;
}

/* Reads a tag, and its value where the type has one. False: there is none, or it is bad. */
static inline bool weir_pb_take(struct weir_pb_reader *reader)
{
    uint64_t tag, size;
    if (reader->at == reader->end || !weir_pb_short(reader, &tag))
        return false;
    reader->number = (uint32_t)(tag >> 3);
    reader->type = tag & 7;
    if (tag >> 3 == 0)
        return weir_pb_fail(reader);
    switch (reader->type) {
    case WEIR_PB_VARINT:
        return weir_pb_varint(reader, &reader->value);
    case WEIR_PB_BYTES:
        return weir_pb_short(reader, &size) && weir_pb_skip(reader, size);
    case WEIR_PB_FIXED64:
        return weir_pb_skip(reader, 8);
    case WEIR_PB_FIXED32:
        return weir_pb_skip(reader, 4);
    case WEIR_PB_GROUP:
    case WEIR_PB_GROUP_END:
        return true;
    default:
        return weir_pb_fail(reader);
    }
}

/* Skips the rest of a group whose tag was just read; the field stays that group. False: it has no
 * end, or holds what is bad. */
bool weir_pb_skip_group(struct weir_pb_reader *reader);

/* Reads the next field. False: there is none, or it is bad. */
static inline bool weir_pb_next(struct weir_pb_reader *reader)
{
    if (!weir_pb_take(reader))
        return false;
    if (__builtin_expect(reader->type == WEIR_PB_GROUP, 0))
        return weir_pb_skip_group(reader);
    return reader->type != WEIR_PB_GROUP_END || weir_pb_fail(reader);
}

/* Whether the field that was read last is this one of the message. */
static inline bool weir_pb_is(const struct weir_pb_reader *reader, uint32_t number,
                              enum weir_pb_type type)
{
    return reader->number == number && reader->type == type;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static inline size_t weir_pb_varint_size(uint64_t value)
{
    return (size_t)(64 - __builtin_clzll(value | 1) + 6) / 7;
}

/* The field of a length, with a tag of one byte. */
static inline size_t weir_pb_bytes_size(size_t size)
{
    return 1 + weir_pb_varint_size(size) + size;
}

/* Of a number, which is left out where it is 0. */
static inline size_t weir_pb_number_size(uint64_t value)
{
    return value ? 1 + weir_pb_varint_size(value) : 0;
}

static inline char *weir_pb_put_varint(char *out, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        *out++ = (char)(value | 128);
    *out++ = (char)value;
    return out;
}

static inline char *weir_pb_put_number(char *out, unsigned number, uint64_t value)
{
    if (!value)
        return out;
    *out++ = (char)(number << 3 | WEIR_PB_VARINT);
    return weir_pb_put_varint(out, value);
}

/* The head of a field of `size` bytes, which follow. */
static inline char *weir_pb_put_head(char *out, unsigned number, size_t size)
{
    *out++ = (char)(number << 3 | WEIR_PB_BYTES);
    return weir_pb_put_varint(out, size);
}

static inline char *weir_pb_put_bytes(char *out, unsigned number, struct weir_bytes bytes)
{
    out = weir_pb_put_head(out, number, bytes.size);
    if (bytes.size)
        memcpy(out, bytes.data, bytes.size);
    return out + bytes.size;
}

#endif
