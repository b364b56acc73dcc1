/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC listener: nghttp2 sessions over connections, and the table of methods. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_FRONT_H
#define WEIR_SERVER_GRPC_FRONT_H

#include "server/grpc/grpc.h"

extern const struct weir_front weir_grpc_front;
extern const struct weir_grpc_method weir_grpc_methods[];
extern const uint32_t weir_grpc_method_count;

#endif
