/* SPDX-License-Identifier: Apache-2.0 */
/* see limiter.h */
#include "wire/grpc/limiter.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "weir_limiter_v1.pb-c.h"
#include "wire/grpc/message.h"

typedef Weir__V1__Limit pb_limit;
typedef Weir__V1__LimitAnswer pb_answer;

/* --- Requests --------------------------------------------------------------------------------- */

static int fail(struct weir_reason *reason, size_t number, enum weir_limit_field field,
                const char *text)
{
    snprintf(reason->text, sizeof reason->text, "limits[%zu].%s: %s", number,
             weir_limit_field_name(field), text);
    return WEIR_ERR_SYNTAX;
}

static void give(struct weir_given_limit *limit, enum weir_limit_field field, bool given)
{
    limit->given |= given ? 1u << field : 0;
}

/* A text that is empty is absent. */
static struct weir_bytes text_read(struct weir_given_limit *limit, enum weir_limit_field field,
                                   ProtobufCBinaryData data)
{
    give(limit, field, data.len > 0);
    return data.len > 0 ? weir_grpc_text(data) : (struct weir_bytes){NULL, 0};
}

static int limit_read(struct weir_given_limit *limit, const pb_limit *from, size_t number,
                      struct weir_reason *reason)
{
    *limit = (struct weir_given_limit){.cost = 1};
    limit->key = text_read(limit, WEIR_LIMIT_KEY, from->key);
    limit->name = text_read(limit, WEIR_LIMIT_NAME, from->name);
    limit->rate = text_read(limit, WEIR_LIMIT_RATE, from->rate);
    limit->algorithm = text_read(limit, WEIR_LIMIT_ALGORITHM, from->algorithm);
    limit->life = text_read(limit, WEIR_LIMIT_LIFE, from->life);
    limit->burst = from->burst;
    limit->segments = from->segments;
    limit->strict = from->strict;
    limit->queue = from->queue;
    give(limit, WEIR_LIMIT_BURST, from->burst != 0);
    give(limit, WEIR_LIMIT_SEGMENTS, from->segments != 0);
    give(limit, WEIR_LIMIT_STRICT, from->strict);
    give(limit, WEIR_LIMIT_QUEUE, from->queue);
    if (from->limit_given_case == WEIR__V1__LIMIT__LIMIT_GIVEN_LIMIT) {
        limit->limit = from->limit;
        give(limit, WEIR_LIMIT_LIMIT, true);
    }
    if (from->cost_given_case == WEIR__V1__LIMIT__COST_GIVEN_COST) {
        limit->cost = from->cost;
        give(limit, WEIR_LIMIT_COST, true);
    }
    if (!limit->key.data)
        return fail(reason, number, WEIR_LIMIT_KEY, "is missing");
    if (limit->name.data && !weir_limit_name_valid(limit->name))
        return fail(reason, number, WEIR_LIMIT_NAME, WEIR_LIMIT_NAME_RULE);
    return 0;
}

int weir_grpc_limiter_read(struct weir_given_limits *given, struct weir_bytes message,
                           struct weir_grpc_arena *arena, struct weir_reason *reason)
{
    ProtobufCMessage *unpacked;
    reason->text[0] = '\0';
    int err = weir_grpc_unpack(&weir__v1__limit_request__descriptor, message, arena, &unpacked);
    if (err < 0)
        return err;
    const Weir__V1__LimitRequest *request = (const Weir__V1__LimitRequest *)unpacked;
    if (request->n_limits == 0) {
        snprintf(reason->text, sizeof reason->text, "limits: is empty; give 1 to %d",
                 WEIR_CHECKS_MAX);
        return WEIR_ERR_SYNTAX;
    }
    if (request->n_limits > WEIR_CHECKS_MAX) {
        snprintf(reason->text, sizeof reason->text, "limits: more than %d", WEIR_CHECKS_MAX);
        return WEIR_ERR_TOO_LARGE;
    }
    given->count = (uint16_t)request->n_limits;
    given->listed = true;
    given->list = "limits";
    given->dry_run = request->dry_run;
    for (size_t i = 0; err == 0 && i < request->n_limits; i++)
        err = limit_read(&given->limits[i], request->limits[i], i, reason);
    return err;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static uint64_t ms_of(uint64_t ns)
{
    return ns == WEIR_NEVER ? UINT64_MAX : ns / 1000000 + (ns % 1000000 != 0);
}

static ProtobufCBinaryData text_of(const char *text)
{
    return weir_grpc_data(weir_bytes_of(text));
}

static void answer_fill(pb_answer *to, const struct weir_answer_limit *from)
{
    *to = (pb_answer)WEIR__V1__LIMIT_ANSWER__INIT;
    to->name = weir_grpc_data(from->name);
    if (from->limit)
        to->algorithm = text_of(weir_algorithm_name(from->limit->spec.algorithm));
    to->allowed = from->allowed;
    to->cost = from->cost;
    to->limit = from->report.limit;
    to->remaining = from->report.remaining;
    to->retry_after_ms = ms_of(from->report.retry_after_ns);
    to->reset_after_ms = ms_of(from->report.reset_after_ns);
    to->overflow = from->overflow;
}

int weir_grpc_limiter_write(const struct weir_answer *answer, struct weir_grpc_arena *arena,
                            struct weir_bytes *out)
{
    Weir__V1__LimitResponse response = WEIR__V1__LIMIT_RESPONSE__INIT;
    pb_answer limits[WEIR_CHECKS_MAX], *pointers[WEIR_CHECKS_MAX];
    for (uint16_t i = 0; i < answer->count; i++) {
        answer_fill(&limits[i], &answer->limits[i]);
        pointers[i] = &limits[i];
    }
    response.allowed = answer->allowed;
    if (answer->denied_by >= 0)
        response.denied_by = weir_grpc_data(answer->limits[answer->denied_by].name);
    response.retry_after_ms = ms_of(answer->retry_after_ns);
    response.delay_ms = ms_of(answer->delay_ns);
    if (answer->lease.data)
        response.lease = weir_grpc_data(answer->lease);
    response.limits = pointers;
    response.n_limits = answer->count;
    return weir_grpc_pack(&response.base, arena, out);
}
