/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.ratelimit.v3.RateLimitService: a call of envoy/call.h, by gRPC. See grpc.h. */
#include "server/grpc/ratelimit.h"

#include "feature/envoy/server/call.h"
#include "server/grpc/reply.h"
#include "server/grpc/stream.h"
#include "wire/grpc/ratelimit.h"

void weir_grpc_ratelimit_take(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_envoy_request *request = weir_grpc_arena_take(&stream->arena, sizeof *request);
    int err =
        request ? weir_grpc_ratelimit_read(request, message, &stream->arena) : WEIR_ERR_TOO_LARGE;
    if (err < 0)
        weir_grpc_fail_read(stream, err);
    stream->request = request;
}

static void fail(struct weir_grpc_stream *stream, const struct weir_envoy_failure *failure)
{
    static const uint8_t statuses[] = {
        [WEIR_ENVOY_FAIL_REQUEST] = WEIR_GRPC_UNKNOWN,
        [WEIR_ENVOY_FAIL_STORE] = WEIR_GRPC_UNKNOWN,
        [WEIR_ENVOY_FAIL_TOO_LARGE] = WEIR_GRPC_RESOURCE_EXHAUSTED,
        [WEIR_ENVOY_FAIL_OVERLOADED] = WEIR_GRPC_UNAVAILABLE,
    };
    weir_grpc_fail(stream, (enum weir_grpc_status)statuses[failure->kind], failure->reason.text);
}

void weir_grpc_ratelimit_begin(struct weir_grpc_stream *stream)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_envoy_failure failure = {.reason = {{0}}};
    if (!grpc->envoy) { /* as the original without a configuration */
        weir_grpc_fail(stream, WEIR_GRPC_UNKNOWN, "no rate limit configuration loaded");
        return;
    }
    if (!weir_grpc_expect(stream))
        return;
    stream->call = weir_envoy_begin(grpc->envoy, stream->request, &failure);
    if (!stream->call) {
        fail(stream, &failure); /* and its slot is written with nothing left to do */
        return;
    }
    struct weir_decision *const *decisions;
    uint32_t count = weir_envoy_decisions(stream->call, &decisions);
    for (uint32_t i = 0; i < count; i++)
        weir_grpc_wait(stream, decisions[i]);
}

void weir_grpc_ratelimit_finish(struct weir_grpc_stream *stream)
{
    struct weir_envoy_failure failure = {.reason = {{0}}};
    struct weir_bytes out;
    if (!stream->call)
        return;
    const struct weir_envoy_response *response = weir_envoy_answer(stream->call, &failure);
    if (!response)
        fail(stream, &failure);
    else if (weir_grpc_ratelimit_write(response, &stream->arena, &out) < 0)
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "the answer is too large");
    else
        weir_grpc_reply(stream, out);
    weir_grpc_ratelimit_drop(stream);
}

void weir_grpc_ratelimit_drop(struct weir_grpc_stream *stream)
{
    if (stream->call)
        weir_envoy_give(stream->call);
    stream->call = NULL;
}
