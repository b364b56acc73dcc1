/* SPDX-License-Identifier: Apache-2.0 */
/* see assign.h */
#include "feature/envoy/server/quota/assign.h"

static void leave(struct weir_quota_bucket *bucket)
{
    if (bucket->group->at_work == bucket)
        bucket->group->at_work = NULL;
    bucket->stage = WEIR_QUOTA_IDLE;
}

static void make_ready(struct weir_quota_bucket *bucket, enum weir_grpc_quota_kind action)
{
    leave(bucket);
    bucket->action = (uint8_t)action;
    weir_quota_add_ready(bucket);
}

/* Nothing is sent: it is tried again at `due_ms`. */
static void try_later(struct weir_quota_bucket *bucket, uint64_t due_ms)
{
    leave(bucket);
    bucket->due_ms = due_ms;
}

struct weir_quota_bucket *weir_quota_begin(struct weir_quota_stream *stream, uint64_t now_ms,
                                           bool *waits)
{
    struct weir_quota_bucket *bucket = weir_quota_due(stream, now_ms, waits);
    if (!bucket)
        return NULL;
    if (weir_quota_is_idle(bucket, now_ms)) {
        bucket->planned_ms = now_ms;
        make_ready(bucket, WEIR_GRPC_QUOTA_ABANDON);
    } else {
        bucket->stage = WEIR_QUOTA_PEEKS;
        bucket->group->at_work = bucket;
    }
    return bucket;
}

void weir_quota_put_off(struct weir_quota_bucket *bucket)
{
    leave(bucket);
}

/* The same for all, whatever is held: a client's tokens are gone then. */
static void plan_for_all(struct weir_quota_bucket *bucket, uint64_t now_ms)
{
    bucket->planned_ms = now_ms;
    bucket->plan = (struct weir_quota_plan){.move = WEIR_QUOTA_DENY,
                                            .share = bucket->share,
                                            .ttl_s = WEIR_QUOTA_TTL_S,
                                            .again_ms = now_ms + WEIR_QUOTA_RENEW_MS};
    bucket->plan.share.denied = true;
}

/* Nothing was reported that can be planned with. */
static void end_peek(struct weir_quota_bucket *bucket, enum weir_quota_peeked what, uint64_t now_ms)
{
    bool allows = what == WEIR_QUOTA_NO_LIMIT, denies = what == WEIR_QUOTA_DENIED_ALWAYS;
    if (allows || denies) {
        plan_for_all(bucket, now_ms);
        make_ready(bucket, allows ? WEIR_GRPC_QUOTA_ALLOW_ALL : WEIR_GRPC_QUOTA_DENY_ALL);
    } else {
        bool fails = what == WEIR_QUOTA_NO_ANSWER;
        try_later(bucket, now_ms + (fails ? WEIR_QUOTA_RETRY_MS : WEIR_QUOTA_RENEW_MS));
    }
}

static uint64_t retry_of(const struct weir_quota_plan *plan, uint64_t now_ms)
{
    return plan->again_ms ? plan->again_ms : now_ms + WEIR_QUOTA_RETRY_MS;
}

bool weir_quota_peeked(struct weir_quota_bucket *bucket, enum weir_quota_peeked what,
                       struct weir_quota_supply *supplies, uint32_t count, uint64_t now_ms,
                       uint64_t *costs)
{
    struct weir_quota_plan *plan = &bucket->plan;
    if (what != WEIR_QUOTA_SUPPLIES) {
        end_peek(bucket, what, now_ms);
        return false;
    }
    uint64_t want = weir_quota_want(bucket, supplies, count, now_ms);
    weir_quota_plan(plan, &bucket->share, supplies, count, want, now_ms, costs);
    bucket->planned_ms = now_ms;
    if (plan->move == WEIR_QUOTA_WAIT)
        try_later(bucket, retry_of(plan, now_ms));
    else if (plan->move == WEIR_QUOTA_DENY)
        make_ready(bucket, WEIR_GRPC_QUOTA_DENY_ALL);
    else
        bucket->stage = WEIR_QUOTA_CHARGES;
    return bucket->stage == WEIR_QUOTA_CHARGES;
}

static bool is_in_time(const struct weir_quota_bucket *bucket, uint64_t now_ms)
{
    return now_ms <= bucket->planned_ms + WEIR_QUOTA_CHARGE_MS;
}

bool weir_quota_charged(struct weir_quota_bucket *bucket, bool charged, uint64_t now_ms)
{
    bool ready = charged && is_in_time(bucket, now_ms);
    if (ready)
        make_ready(bucket, WEIR_GRPC_QUOTA_TOKENS);
    else
        try_later(bucket, now_ms + WEIR_QUOTA_RETRY_MS);
    return ready;
}

/* The client has it from now on. */
static void set_sent(struct weir_quota_bucket *bucket, uint64_t now_ms)
{
    const struct weir_quota_plan *plan = &bucket->plan;
    bool tokens = bucket->action == WEIR_GRPC_QUOTA_TOKENS;
    bucket->share = plan->share;
    bucket->sent_ms = now_ms;
    bucket->due_ms = tokens ? now_ms + plan->ttl_s * UINT64_C(500) : retry_of(plan, now_ms);
}

struct weir_quota_bucket *weir_quota_take(struct weir_quota_stream *stream, uint64_t now_ms,
                                          uint32_t *late)
{
    struct weir_quota_bucket *bucket;
    while ((bucket = weir_quota_take_ready(stream))) {
        if (bucket->action == WEIR_GRPC_QUOTA_ABANDON)
            return bucket;
        if (bucket->action != WEIR_GRPC_QUOTA_TOKENS || is_in_time(bucket, now_ms)) {
            set_sent(bucket, now_ms);
            return bucket;
        }
        try_later(bucket, now_ms + WEIR_QUOTA_RETRY_MS);
        ++*late;
    }
    return NULL;
}
