/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1.Health as messages. Threads: pure functions. */
#ifndef WEIR_WIRE_GRPC_HEALTH_H
#define WEIR_WIRE_GRPC_HEALTH_H

#include <weir/bytes.h>
#include <weir/error.h>

#include "wire/grpc/arena.h"

enum weir_grpc_health {
    WEIR_GRPC_HEALTH_UNKNOWN,
    WEIR_GRPC_SERVING,
    WEIR_GRPC_NOT_SERVING,
    WEIR_GRPC_SERVICE_UNKNOWN,
};

/* Reads a HealthCheckRequest: the service that is asked after. Errors: WEIR_ERR_SYNTAX,
 * WEIR_ERR_TOO_LARGE. */
int weir_grpc_health_read(struct weir_bytes *service, struct weir_bytes message,
                          struct weir_grpc_arena *arena) __attribute__((warn_unused_result));

/* A HealthCheckResponse with gRPC's prefix; static storage. */
struct weir_bytes weir_grpc_health_response(enum weir_grpc_health health);

#endif
