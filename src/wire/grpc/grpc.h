/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC over HTTP/2, the parts that are not HTTP/2: messages in a stream, times, statuses.
 *
 * Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md and statuscodes.md.
 *
 *   a message in a stream:  | compressed: 1 byte, 0 or 1 | length: 4 bytes, big endian | bytes |
 *   grpc-timeout            1 to 8 digits and a unit, H M S m u n: "100m"
 *   grpc-message            UTF-8 with "%" and all but printable ASCII percent-encoded
 *
 * Threads: pure functions.
 */
#ifndef WEIR_WIRE_GRPC_GRPC_H
#define WEIR_WIRE_GRPC_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/bytes.h>

enum weir_grpc_status {
    WEIR_GRPC_OK = 0,
    WEIR_GRPC_CANCELLED = 1,
    WEIR_GRPC_UNKNOWN = 2,
    WEIR_GRPC_INVALID_ARGUMENT = 3,
    WEIR_GRPC_DEADLINE_EXCEEDED = 4,
    WEIR_GRPC_NOT_FOUND = 5,
    WEIR_GRPC_PERMISSION_DENIED = 7,
    WEIR_GRPC_RESOURCE_EXHAUSTED = 8,
    WEIR_GRPC_UNIMPLEMENTED = 12,
    WEIR_GRPC_INTERNAL = 13,
    WEIR_GRPC_UNAVAILABLE = 14,
    WEIR_GRPC_UNAUTHENTICATED = 16,
};

/* The bytes before each message. */
#define WEIR_GRPC_PREFIX_BYTES 5

struct weir_grpc_prefix {
    bool compressed;
    uint32_t size;
};

/* Returns WEIR_GRPC_PREFIX_BYTES, 0 when more are needed, or WEIR_ERR_SYNTAX (a flag that is
 * neither 0 nor 1). */
int weir_grpc_prefix_read(struct weir_grpc_prefix *prefix, const char *data, size_t size)
    __attribute__((warn_unused_result));
void weir_grpc_prefix_write(char out[WEIR_GRPC_PREFIX_BYTES], uint32_t size);

/* Reads a grpc-timeout; a time beyond 2^63 ns is that. Errors: WEIR_ERR_SYNTAX. */
int weir_grpc_timeout_parse(uint64_t *timeout_ns, struct weir_bytes text)
    __attribute__((warn_unused_result));

/* Encodes a grpc-message. Returns its size; what finds no room in `size` bytes is left out. */
size_t weir_grpc_message_encode(const char *text, char *out, size_t size);

/* Whether a content-type is gRPC's: "application/grpc", alone or with "+proto" or parameters. Other
 * codecs ("+json") are not. */
bool weir_grpc_content_type(struct weir_bytes value);

#endif
