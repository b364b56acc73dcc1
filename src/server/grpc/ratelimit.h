/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.ratelimit.v3.RateLimitService. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_RATELIMIT_H
#define WEIR_SERVER_GRPC_RATELIMIT_H

#include "server/grpc/grpc.h"

void weir_grpc_ratelimit_take(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_ratelimit_begin(struct weir_grpc_stream *stream);
void weir_grpc_ratelimit_finish(struct weir_grpc_stream *stream);
void weir_grpc_ratelimit_drop(struct weir_grpc_stream *stream);

#endif
