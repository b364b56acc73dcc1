/* SPDX-License-Identifier: Apache-2.0 */
/* see pack.h */
#include "store/redis/script/pack.h"

#include <string.h>

#include "core/bucket.h"
#include "core/debit.h"
#include "core/scale.h"

char *redis_put_word(char *out, uint64_t word)
{
    for (int shift = 0; shift < 64; shift += 8)
        *out++ = (char)(word >> shift);
    return out;
}

char *redis_put_double(char *out, double number)
{
    uint64_t word;

    memcpy(&word, &number, sizeof word);
    return redis_put_word(out, word);
}

/* What is too large is larger than anything that it is compared with. */
char *redis_put(char *out, uint64_t value)
{
    return redis_put_double(out, (double)(value < REDIS_NUMBER_MAX ? value : REDIS_NUMBER_MAX));
}

char *redis_put_bucket_time(char *out, const struct weir_limit *limit, struct bucket_time time)
{
    if (time.ns / 1000 >= REDIS_NUMBER_MAX)
        time = (struct bucket_time){REDIS_NUMBER_MAX * 1000, 0};
    out = redis_put(out, time.ns / 1000);
    return redis_put(out, time.ns % 1000 * limit->denom + time.rem);
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

    out = redis_put(out, check->cost);
    if (bucket_is(limit->spec.algorithm))
        return redis_put_bucket_time(out, limit, debit_depth(check, debt));
    return redis_put(redis_put(out, debt), 0);
}

char *redis_pack_scale(char *out, const struct weir_check *check)
{
    const struct weir_limit *limit = check->limit;

    *out++ = (char)check->scale;
    *out++ = (char)(check->scale_kind | check->scale_alone << 1);
    if (!bucket_is(limit->spec.algorithm))
        return redis_put(redis_put(out, 0), 0);
    return redis_put_bucket_time(out, limit,
                                 (struct bucket_time){limit->depth_ns, limit->depth_rem});
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
    return redis_put_double(out, charged_at_us(charged_at_ns(batch)));
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
