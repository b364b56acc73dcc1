/* SPDX-License-Identifier: Apache-2.0 */
/* What the codecs of gRPC messages share; see ratelimit.h and the others. */
#ifndef WEIR_WIRE_GRPC_MESSAGE_H
#define WEIR_WIRE_GRPC_MESSAGE_H

#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/grpc/arena.h"

/* Unpacks a message into the arena. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE. */
int weir_grpc_unpack(const ProtobufCMessageDescriptor *type, struct weir_bytes message,
                     struct weir_grpc_arena *arena, ProtobufCMessage **out)
    __attribute__((warn_unused_result));

/* Packs a message into the arena, gRPC's prefix before it. Errors: WEIR_ERR_TOO_LARGE. */
int weir_grpc_pack(const ProtobufCMessage *message, struct weir_grpc_arena *arena,
                   struct weir_bytes *out) __attribute__((warn_unused_result));

/* A string of a message, never absent. */
static inline struct weir_bytes weir_grpc_text(ProtobufCBinaryData data)
{
    return (struct weir_bytes){data.len ? (const char *)data.data : "", data.len};
}

static inline ProtobufCBinaryData weir_grpc_data(struct weir_bytes text)
{
    return (ProtobufCBinaryData){text.size, (uint8_t *)(uintptr_t)text.data};
}

#endif
