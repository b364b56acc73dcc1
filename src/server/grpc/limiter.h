/* SPDX-License-Identifier: Apache-2.0 */
/* weir.v1.Limiter: limits that the call brings along, as POST /v1/limit decides them. The caller
 * chooses the limit, so only trusted listeners serve it. See docs/request-limits.md. */
#ifndef WEIR_SERVER_GRPC_LIMITER_H
#define WEIR_SERVER_GRPC_LIMITER_H

#include "server/grpc/grpc.h"

void weir_grpc_limiter_take(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_limiter_begin(struct weir_grpc_stream *stream);
void weir_grpc_limiter_finish(struct weir_grpc_stream *stream);
void weir_grpc_limiter_drop(struct weir_grpc_stream *stream);

#endif
