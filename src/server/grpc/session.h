/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2's callbacks, and the account of what a connection costs. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_SESSION_H
#define WEIR_SERVER_GRPC_SESSION_H

#include "server/grpc/grpc.h"

/* The callbacks; their context is the connection. Errors: WEIR_ERR_MEMORY. */
int weir_grpc_callbacks_open(nghttp2_session_callbacks **callbacks)
    __attribute__((warn_unused_result));

/* Ends the connection with GOAWAY and an error code; what else has come is not read. */
void weir_grpc_session_end(struct weir_connection *connection, uint32_t error);

/* Counts what a peer had done that is no request; too much of it, and the connection ends. */
void weir_grpc_session_glitch(struct weir_connection *connection, uint32_t cost);

#endif
