/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.auth.v3.Authorization. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_AUTHZ_H
#define WEIR_SERVER_GRPC_AUTHZ_H

#include "server/grpc/grpc.h"

void weir_grpc_authz_take(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_authz_begin(struct weir_grpc_stream *stream);
void weir_grpc_authz_finish(struct weir_grpc_stream *stream);
void weir_grpc_authz_drop(struct weir_grpc_stream *stream);

#endif
