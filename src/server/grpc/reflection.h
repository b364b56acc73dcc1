/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.reflection.v1 and v1alpha. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_REFLECTION_H
#define WEIR_SERVER_GRPC_REFLECTION_H

#include "server/grpc/grpc.h"

void weir_grpc_reflection_read(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_reflection_begin(struct weir_grpc_stream *stream);

#endif
