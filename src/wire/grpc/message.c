/* SPDX-License-Identifier: Apache-2.0 */
/* see message.h */
#include "wire/grpc/message.h"

#include "wire/grpc/grpc.h"

int weir_grpc_unpack(const ProtobufCMessageDescriptor *type, struct weir_bytes message,
                     struct weir_grpc_arena *arena, ProtobufCMessage **out)
{
    *out = protobuf_c_message_unpack(type, &arena->allocator, message.size,
                                     (const uint8_t *)message.data);
    if (*out)
        return 0;
    return arena->exhausted ? WEIR_ERR_TOO_LARGE : WEIR_ERR_SYNTAX;
}

int weir_grpc_pack(const ProtobufCMessage *message, struct weir_grpc_arena *arena,
                   struct weir_bytes *out)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    char *bytes =
        size <= UINT32_MAX ? weir_grpc_arena_take(arena, WEIR_GRPC_PREFIX_BYTES + size) : NULL;
    if (!bytes)
        return WEIR_ERR_TOO_LARGE;
    weir_grpc_prefix_write(bytes, (uint32_t)size);
    protobuf_c_message_pack(message, (uint8_t *)bytes + WEIR_GRPC_PREFIX_BYTES);
    *out = (struct weir_bytes){bytes, WEIR_GRPC_PREFIX_BYTES + size};
    return 0;
}
