/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of HTTP/2: one call, from its head to its end. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_STREAM_H
#define WEIR_SERVER_GRPC_STREAM_H

#include "server/grpc/grpc.h"

/* NULL: no memory. */
struct weir_grpc_stream *weir_grpc_stream_open(struct weir_connection *connection, int32_t id);
void weir_grpc_stream_close(struct weir_grpc_stream *stream);

/* Its head has come; bytes of it have; all of it has. */
void weir_grpc_stream_route(struct weir_grpc_stream *stream);
void weir_grpc_stream_take(struct weir_grpc_stream *stream, const char *data, size_t size);
void weir_grpc_stream_end(struct weir_grpc_stream *stream);

/* Empties its arena, between the messages of a stream. */
void weir_grpc_stream_forget(struct weir_grpc_stream *stream);

/* Begins what is whole, as far as decisions can be taken. */
void weir_grpc_session_begin_ready(struct weir_connection *connection);

/* Looks at a stream's times. */
void weir_grpc_stream_check(struct weir_grpc_stream *stream, uint64_t now_ms);

/* Makes the stream wait for decisions: when all that are then given to weir_grpc_wait are done (at
 * the end of the turn, where there is none), the method's `finish` is called. False: no memory, it
 * was answered. */
bool weir_grpc_expect(struct weir_grpc_stream *stream);

/* Queues a decision in the engine. Its deadline is the client's, less a quarter, so that an answer
 * is in time where the store is not. */
void weir_grpc_wait(struct weir_grpc_stream *stream, struct weir_decision *decision);

/* For methods that take one decision. NULL: none is free, it was answered. */
struct weir_decision *weir_grpc_take(struct weir_grpc_stream *stream);
/* Queues what weir_grpc_take gave, as the stream's `call`; or gives it back, and it was answered.
 */
void weir_grpc_wait_one(struct weir_grpc_stream *stream, struct weir_decision *decision);

#endif
