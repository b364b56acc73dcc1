/* SPDX-License-Identifier: Apache-2.0 */
/* see limiter.h */
#include "server/grpc/limiter.h"

#include "server/grpc/reply.h"
#include "server/grpc/stream.h"
#include "wire/grpc/limiter.h"

static const char not_trusted[] =
    "this listener is not trusted, and callers of weir.v1.Limiter choose their limits: set "
    "`trusted: true` under server.grpc";

void weir_grpc_limiter_take(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_reason reason = {{0}};
    if (!weir_listener_trusts(stream->connection->listener)) {
        weir_grpc_fail(stream, WEIR_GRPC_PERMISSION_DENIED, not_trusted);
        return;
    }
    struct weir_given_limits *given = weir_grpc_arena_take(&stream->arena, sizeof *given);
    int err = given ? weir_grpc_limiter_read(given, message, &stream->arena, &reason)
                    : WEIR_ERR_TOO_LARGE;
    if (err < 0 && reason.text[0])
        weir_grpc_fail(stream, WEIR_GRPC_INVALID_ARGUMENT, reason.text);
    else if (err < 0)
        weir_grpc_fail_read(stream, err);
    stream->request = given;
}

/* What is wrong with the limits, or why they cannot be decided. */
static void refuse(struct weir_grpc_stream *stream, int err, const struct weir_reason *reason)
{
    bool wrong = err == WEIR_ERR_SYNTAX || err == WEIR_ERR_RANGE;
    weir_grpc_fail(stream, wrong ? WEIR_GRPC_INVALID_ARGUMENT : WEIR_GRPC_UNAVAILABLE,
                   reason->text[0] ? reason->text : weir_error_text(err));
}

void weir_grpc_limiter_begin(struct weir_grpc_stream *stream)
{
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_grpc_take(stream);
    if (!decision)
        return;
    int err = weir_request_limits_decide(&weir_grpc_of(stream)->limits, stream->request, decision,
                                         &reason);
    if (err == 0) {
        weir_grpc_wait_one(stream, decision);
        return;
    }
    weir_worker_give(stream->connection->worker, decision);
    refuse(stream, err, &reason);
}

void weir_grpc_limiter_finish(struct weir_grpc_stream *stream)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_decision *decision = stream->call;
    struct weir_answer *answer = &grpc->answer;
    weir_request_limit_names names;
    struct weir_bytes out;
    stream->call = NULL;
    weir_engine_answer(decision, answer, grpc->lease);
    weir_request_limits_name(decision, true, answer, names);
    if (!answer->allowed && answer->source == WEIR_SOURCE_CLOSED)
        weir_grpc_fail(stream, WEIR_GRPC_UNAVAILABLE, "the store does not answer");
    else if (weir_grpc_limiter_write(answer, &stream->arena, &out) < 0)
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
    else
        weir_grpc_reply(stream, out);
    weir_worker_give(grpc->worker, decision);
}

void weir_grpc_limiter_drop(struct weir_grpc_stream *stream)
{
    if (stream->call)
        weir_worker_cancel(stream->connection->worker, stream->call);
    stream->call = NULL;
}
