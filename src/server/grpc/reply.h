/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of gRPC calls. See grpc.h. */
#ifndef WEIR_SERVER_GRPC_REPLY_H
#define WEIR_SERVER_GRPC_REPLY_H

#include "server/grpc/grpc.h"

/* The answer of a call: one message with its prefix, which stays until the stream is closed. */
void weir_grpc_reply(struct weir_grpc_stream *stream, struct weir_bytes message);

/* One message of a stream, copied; and the end of a stream that has said all. */
void weir_grpc_push(struct weir_grpc_stream *stream, struct weir_bytes message);
void weir_grpc_finish(struct weir_grpc_stream *stream);

/* Ends it with a status; `text` (may be NULL) tells why. */
void weir_grpc_fail(struct weir_grpc_stream *stream, enum weir_grpc_status status,
                    const char *text);

/* The same, for an error of a codec. */
void weir_grpc_fail_read(struct weir_grpc_stream *stream, int err);

/* Ends what is no gRPC, with a status of HTTP: three digits. */
void weir_grpc_refuse(struct weir_grpc_stream *stream, const char *http_status);

#endif
