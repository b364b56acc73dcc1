/* SPDX-License-Identifier: Apache-2.0 */
/* Server reflection: what services there are, for grpcurl and its like. See grpc.h. */
#include "server/grpc/reflection.h"

#include "server/grpc/reply.h"
#include "server/grpc/stream.h"
#include "wire/grpc/reflection.h"

void weir_grpc_reflection_read(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_bytes answer;
    int err = weir_grpc_reflection_answer(message, &stream->arena, &answer);
    if (err < 0)
        weir_grpc_fail_read(stream, err);
    else
        weir_grpc_push(stream, answer);
    weir_grpc_stream_forget(stream);
}

void weir_grpc_reflection_begin(struct weir_grpc_stream *stream)
{
    weir_grpc_finish(stream);
}
