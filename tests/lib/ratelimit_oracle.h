/* SPDX-License-Identifier: Apache-2.0 */
/* What protobuf-c makes of the messages that wire/grpc_ratelimit reads and writes by hand. Groups,
 * and known numbers with another type, are left out before: protobuf-c refuses them. */
#ifndef TESTS_RATELIMIT_ORACLE_H
#define TESTS_RATELIMIT_ORACLE_H

#include <stdbool.h>

#include "core/envoy.h"

/* Whether protobuf-c reads the same request: every field, and texts that are UTF-8. */
bool oracle_reads(struct weir_bytes message, const struct weir_envoy_request *request);

/* Whether a request is malformed. */
bool oracle_refuses(struct weir_bytes message);

/* Whether protobuf-c reads a response that was written (without gRPC's prefix) as it was meant, and
 * writes it in the same bytes. */
bool oracle_writes(const struct weir_envoy_response *response, struct weir_bytes written);

#endif
