/* SPDX-License-Identifier: Apache-2.0 */
/* envoy.service.ratelimit.v3.RateLimitService: a call of feature/envoy/server/call.h, by gRPC. See
 * grpc.h. */
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

/* False: it has failed, and its slot is written with nothing left to do. */
static bool begin_call(struct weir_grpc_stream *stream)
{
    struct weir_envoy_failure failure = {.reason = {{0}}};
    stream->call = weir_envoy_begin(weir_grpc_of(stream)->envoy, stream->request, &failure);
    if (!stream->call)
        fail(stream, &failure);
    return stream->call;
}

/* Whether there was anything left to queue. */
static bool queue_next(struct weir_grpc_stream *stream)
{
    struct weir_decision *const *decisions;
    uint32_t count = weir_envoy_next(stream->call, &decisions);
    for (uint32_t i = 0; i < count; i++)
        weir_grpc_wait(stream, decisions[i]);
    return count > 0;
}

/* A piece of a long request. */
static void on_piece(struct weir_slot *slot)
{
    struct weir_grpc_stream *stream = slot->owner;
    if (!stream->call && begin_call(stream))
        weir_envoy_begun(slot, stream->request);
    else if (stream->call && queue_next(stream))
        weir_envoy_queued(slot);
    else
        weir_slot_end(slot);
}

void weir_grpc_ratelimit_begin(struct weir_grpc_stream *stream)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    if (!grpc->envoy) { /* as the original without a configuration */
        weir_grpc_fail(stream, WEIR_GRPC_UNKNOWN, "no rate limit configuration loaded");
        return;
    }
    if (!weir_grpc_expect(stream))
        return;
    if (weir_envoy_is_long(stream->request)) {
        weir_slot_begin(stream->slot, on_piece);
        return;
    }
    if (begin_call(stream))
        while (queue_next(stream))
            ;
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
