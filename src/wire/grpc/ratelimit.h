/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit as messages: bytes to and from the
 * plain data of core/envoy.h. Threads: pure functions. */
#ifndef WEIR_WIRE_GRPC_RATELIMIT_H
#define WEIR_WIRE_GRPC_RATELIMIT_H

#include <weir/error.h>

#include "core/envoy.h"
#include "wire/grpc/arena.h"

/* Reads a RateLimitRequest. What `request` points at is in the arena. Unknown fields are
 * ignored. Errors: WEIR_ERR_SYNTAX (no such message, or a string that is not UTF-8),
 * WEIR_ERR_TOO_LARGE (the arena's bound). */
int weir_grpc_ratelimit_read(struct weir_envoy_request *request, struct weir_bytes message,
                             struct weir_grpc_arena *arena) __attribute__((warn_unused_result));

/* Writes a RateLimitResponse, with gRPC's prefix before it; the bytes are in the arena. Errors:
 * WEIR_ERR_TOO_LARGE. */
int weir_grpc_ratelimit_write(const struct weir_envoy_response *response,
                              struct weir_grpc_arena *arena, struct weir_bytes *out)
    __attribute__((warn_unused_result));

#endif
