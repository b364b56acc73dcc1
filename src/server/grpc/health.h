/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.health.v1.Health: Check and Watch. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_HEALTH_H
#define WEIR_SERVER_GRPC_HEALTH_H

#include "server/grpc/grpc.h"

void weir_grpc_health_check_read(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_health_check_begin(struct weir_grpc_stream *stream);
void weir_grpc_health_watch_read(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_health_watch_drop(struct weir_grpc_stream *stream);
/* Tells all streams of Health/Watch what has changed. */
void weir_grpc_health_tell(struct weir_grpc *grpc);

#endif
