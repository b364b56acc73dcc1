/* SPDX-License-Identifier: Apache-2.0 */
/* google.protobuf.Struct from plain data, for responses. (None is ever read: it nests without
 * bound, and so would its reader.) */
#ifndef WEIR_WIRE_GRPC_STRUCT_H
#define WEIR_WIRE_GRPC_STRUCT_H

#include "core/envoy.h"
#include "google_protobuf.pb-c.h"
#include "wire/grpc/arena.h"

/* A message in the arena that borrows the texts of `value`, a WEIR_ENVOY_STRUCT at most
 * WEIR_ENVOY_DEPTH_MAX deep; NULL: no room, or deeper. */
Google__Protobuf__Struct *weir_grpc_struct(const struct weir_envoy_value *value,
                                           struct weir_grpc_arena *arena);

#endif
