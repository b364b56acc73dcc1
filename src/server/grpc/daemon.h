/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC listener, in the life of the daemon. */
#ifndef WEIR_SERVER_GRPC_DAEMON_H
#define WEIR_SERVER_GRPC_DAEMON_H

#include "server/service.h"

extern const struct weir_service weir_service_grpc;

#endif
