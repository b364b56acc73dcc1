/* SPDX-License-Identifier: Apache-2.0 */
/* see pack.h */
#include "store/redis/script/pack.h"

#include <string.h>

#include "core/bucket.h"
#include "core/debit.h"
#include "core/quota.h"
#include "core/scale.h"

#define PACKED_LEASES 1000000000 /* of a limit that is not known: room for whatever is there */

uint8_t redis_kind_of(const struct weir_limit *limit)
{
    const struct weir_limit_spec *spec = &limit->spec;

    if (spec->algorithm == WEIR_QUOTA)
        return spec->rollover != 0 ? REDIS_KIND_QUOTA_ROLLOVER : REDIS_KIND_QUOTA;
    if (spec->algorithm == WEIR_PREPAID)
        return REDIS_KIND_PREPAID;
    if (spec->algorithm != WEIR_SLIDING_WINDOW)
        return (uint8_t)(REDIS_KIND_FIRST + spec->algorithm);
    if (spec->segments > 1)
        return spec->strict ? REDIS_KIND_SEGMENTS_STRICT : REDIS_KIND_SEGMENTS;
    return spec->strict ? REDIS_KIND_WINDOW_STRICT : REDIS_KIND_FIRST + WEIR_SLIDING_WINDOW;
}

static char *put_word(char *out, uint64_t word)
{
    for (int shift = 0; shift < 64; shift += 8)
        *out++ = (char)(word >> shift);
    return out;
}

static char *put_double(char *out, double number)
{
    uint64_t word;

    memcpy(&word, &number, sizeof word);
    return put_word(out, word);
}

/* What is too large is larger than anything that it is compared with. */
static char *put(char *out, uint64_t value)
{
    return put_double(out, (double)(value < REDIS_NUMBER_MAX ? value : REDIS_NUMBER_MAX));
}

static char *put_bucket_time(char *out, const struct weir_limit *limit, struct bucket_time time)
{
    if (time.ns / 1000 >= REDIS_NUMBER_MAX)
        time = (struct bucket_time){REDIS_NUMBER_MAX * 1000, 0};
    out = put(out, time.ns / 1000);
    return put(out, time.ns % 1000 * limit->denom + time.rem);
}

static char *pack_bucket(char *out, const struct weir_check *check)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time weight, depth;

    out = put(out, 1000 * limit->denom);
    if (limit->spec.rate == 0) {
        out = put(out, 0);
        out = put(out, check->cost > 0);
        for (int i = 0; i < 3; i++)
            out = put(out, 0);
        return out;
    }
    /* W / gcd(N, W): a multiple of 8 above 2^53, since W is one of 1000, so a double. */
    out = put_double(out, (double)(limit->period_ns * limit->denom + limit->period_rem));
    scale_weight(check, check->cost, &weight);
    scale_depth(check, &depth);
    return put_bucket_time(put_bucket_time(out, limit, weight), limit, depth);
}

static char *pack_lease(char *out, const struct weir_lease *lease)
{
    return put_word(put_word(out, lease->id), lease->owner);
}

char *redis_pack_operation(char *out, const struct weir_lease *lease)
{
    *out++ = (char)(REDIS_KIND_FIRST + WEIR_CONCURRENCY);
    *out++ = 0;
    return pack_lease(put(put(put(out, 0), PACKED_LEASES), 0), lease);
}

/* Period 0 has no beginning: a time before it is taken for its start. */
static char *pack_quota(char *out, const struct weir_limit_spec *spec, uint64_t cost,
                        uint64_t now_ns)
{
    uint64_t here = quota_period(spec, now_ns);

    out = put_word(out, spec->calendar);
    out = put(put(put(out, spec->rate), spec->rollover), cost);
    for (uint64_t i = 0; i < REDIS_QUOTA_BOUNDS; i++) {
        bool begins = here + i > REDIS_QUOTA_BOUNDS_BEFORE;

        out =
            put(out, begins ? quota_begins(spec, here + i - REDIS_QUOTA_BOUNDS_BEFORE) / 1000 : 0);
    }
    return out;
}

char *redis_pack_check(char *out, const struct weir_check *check, const struct weir_lease *lease,
                       uint64_t now_ns)
{
    const struct weir_limit *limit = check->limit;

    enum weir_algorithm algorithm = limit->spec.algorithm;
    bool is_window = algorithm <= WEIR_SLIDING_WINDOW;

    *out++ = (char)redis_kind_of(limit);
    *out++ = (char)(check->flags & ~WEIR_CHECK_NETWORK); /* whose bit is REDIS_FLAG_FLOOR there */
    if (algorithm >= WEIR_TOKEN_BUCKET && algorithm <= WEIR_LEAKY_QUEUE)
        return pack_bucket(out, check);
    if (algorithm == WEIR_QUOTA)
        return pack_quota(out, &limit->spec, check->cost, now_ns);
    out = put(out, (is_window ? limit->segment_ns : limit->spec.window_ns) / 1000);
    out = put(out, limit->spec.rate);
    out = put(out, check->cost);
    if (algorithm == WEIR_CONCURRENCY)
        return pack_lease(out, lease);
    if (!is_window)
        return out;
    return put(out, limit->spec.segments > 1 ? limit->spec.segments
                                             : (UINT64_C(1) << limit->count_bits) - 1);
}

bool redis_has_floor(const struct weir_decision *decision, const struct weir_check *check)
{
    return decision->op == WEIR_OP_DEBIT && check->floor != 0 &&
           check->limit->spec.algorithm != WEIR_CONCURRENCY;
}

/* Capacity and debt, as a depth; at a scale at least what one request weighs. */
static struct bucket_time debit_depth(const struct weir_check *check, uint64_t debt)
{
    struct bucket_time depth = bucket_cost(check->limit, check->limit->capacity + debt), own;

    scale_depth(check, &own);
    return bucket_time_less(depth, own) ? own : depth;
}

/* The depth is what a bucket's packed cost is compared with. */
char *redis_pack_floor(char *out, const struct weir_check *check)
{
    const struct weir_limit *limit = check->limit;
    uint64_t debt = weir_check_debt(check);

    out = put(out, check->cost);
    if (limit->spec.algorithm >= WEIR_TOKEN_BUCKET && limit->spec.algorithm <= WEIR_LEAKY_QUEUE)
        return put_bucket_time(out, limit, debit_depth(check, debt));
    return put(put(out, debt), 0);
}

char *redis_pack_scale(char *out, const struct weir_check *check)
{
    const struct weir_limit *limit = check->limit;

    *out++ = (char)check->scale;
    *out++ = (char)(check->scale_kind | check->scale_alone << 1);
    if (!bucket_is(limit->spec.algorithm))
        return put(put(out, 0), 0);
    return put_bucket_time(out, limit, (struct bucket_time){limit->depth_ns, limit->depth_rem});
}

/* A time between two microseconds is sent as a half, so that it equals no entry of a log. */
static double charged_at_us(uint64_t ns)
{
    uint64_t us = ns / 1000;

    return (double)us + (us * 1000 != ns ? 0.5 : 0);
}

/* All checks of a batch are one server's, and were charged by it at one time. */
static uint64_t charged_at_ns(const struct redis_batch *batch)
{
    const struct weir_decision *decision = batch->decision;

    return decision->apart && decision->op == WEIR_OP_REFUND
               ? decision->outcomes[batch->checks[0]].charged_at_ns
               : decision->charged_at_ns;
}

char *redis_pack_header(char *out, const struct redis_batch *batch, bool plain)
{
    const struct weir_decision *decision = batch->decision;
    bool reserves = batch->action == REDIS_RESERVE, back = batch->action == REDIS_ROLL_BACK;

    uint8_t op = batch->action == REDIS_PEEK ? (uint8_t)WEIR_OP_PEEK : decision->op;
    bool unused = op == WEIR_OP_REFUND && decision->unused;

    *out++ = (char)(op | (unused ? REDIS_OP_UNUSED : 0));
    *out++ = (char)decision->policy;
    *out++ = (char)(back ? 2 : (plain ? 3 : 0) + reserves);
    return put_double(out, charged_at_us(charged_at_ns(batch)));
}

bool redis_unpack(const char **in, uint64_t max, uint64_t *value)
{
    uint64_t word = 0;
    double number;

    for (int i = 0; i < 8; i++)
        word |= (uint64_t)(unsigned char)(*in)[i] << (8 * i);
    *in += 8;
    memcpy(&number, &word, sizeof number);
    if (!(number >= 0 && number <= (double)REDIS_NUMBER_MAX))
        return false;
    *value = (uint64_t)number;
    return (double)*value == number && *value <= max;
}

struct bucket_time redis_bucket_time(const struct weir_limit *limit, uint64_t us, uint64_t units)
{
    return (struct bucket_time){us * 1000 + units / limit->denom, units % limit->denom};
}
