/* SPDX-License-Identifier: Apache-2.0 */
/* weir.v1.Limiter/Limit as messages: limits of a request, and the answer
 * (proto/weir_limiter_v1.proto). Threads: pure functions. */
#ifndef WEIR_WIRE_GRPC_LIMITER_H
#define WEIR_WIRE_GRPC_LIMITER_H

#include "core/answer.h"
#include "wire/given_limits.h"
#include "wire/grpc/arena.h"

/* Reads a LimitRequest; texts are in the arena. Errors: WEIR_ERR_SYNTAX (bytes that are no such
 * message: `reason` is empty; or a member, which `reason` names), WEIR_ERR_TOO_LARGE (the arena, or
 * more than WEIR_CHECKS_MAX limits, as `reason` says). */
int weir_grpc_limiter_read(struct weir_given_limits *given, struct weir_bytes message,
                           struct weir_grpc_arena *arena, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Writes a LimitResponse, gRPC's prefix before it; the bytes are in the arena. Errors:
 * WEIR_ERR_TOO_LARGE. */
int weir_grpc_limiter_write(const struct weir_answer *answer, struct weir_grpc_arena *arena,
                            struct weir_bytes *out) __attribute__((warn_unused_result));

#endif
