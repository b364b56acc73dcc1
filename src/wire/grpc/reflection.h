/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.reflection.v1.ServerReflection (and v1alpha, whose messages are the same) as messages: what
 * is asked, and the answer, from the descriptors of this program. Threads: pure functions. */
#ifndef WEIR_WIRE_GRPC_REFLECTION_H
#define WEIR_WIRE_GRPC_REFLECTION_H

#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/grpc/arena.h"

/* Answers a ServerReflectionRequest with a ServerReflectionResponse, gRPC's prefix before it, in
 * the arena. What is not there is an answer too. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE. */
int weir_grpc_reflection_answer(struct weir_bytes message, struct weir_grpc_arena *arena,
                                struct weir_bytes *out) __attribute__((warn_unused_result));

#endif
