/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets: gcra, token_bucket, leaky_bucket, leaky_queue; one function of time in four dresses.
 *
 * The state is the theoretical arrival time TAT (ITU-T I.371, virtual scheduling): cell.a whole
 * nanoseconds and cell.b units of 1/denom ns, where T = W/N = period_ns + period_rem/denom in
 * lowest terms. So nothing is ever rounded. `over` = max(TAT - t, 0) is what the bucket owes: 0 is
 * a fresh (full) bucket, the depth (capacity * T) an empty one, more is debt. A cost c is admitted
 * iff over + c*T <= depth.
 *
 * N = 0 has no T: nothing but cost 0 is admitted, and nothing is ever kept.
 *
 * Inline for the table's loop: cost 1 takes two compares of (ns, rem) pairs and no division.
 */
#ifndef WEIR_CORE_BUCKET_H
#define WEIR_CORE_BUCKET_H

#include <weir/limit.h>

#include "core/wide.h"

/* Whether it is one of the four. */
WIDE_INLINE bool bucket_is(enum weir_algorithm algorithm)
{
    return algorithm >= WEIR_TOKEN_BUCKET && algorithm <= WEIR_LEAKY_QUEUE;
}

/* The latest TAT: 63 bits, so that a packed cell holds it. */
#define BUCKET_TAT_MAX (UINT64_MAX >> 1)

/* ns + rem/denom nanoseconds, rem < denom of its limit. */
struct bucket_time {
    uint64_t ns, rem;
};

WIDE_INLINE struct bucket_time bucket_over(const struct weir_cell *cell, uint64_t now_ns)
{
    if (cell->a < now_ns)
        return (struct bucket_time){0, 0};
    return (struct bucket_time){cell->a - now_ns, cell->b};
}

WIDE_INLINE bool bucket_time_less(struct bucket_time a, struct bucket_time b)
{
    return a.ns != b.ns ? a.ns < b.ns : a.rem < b.rem;
}

/* Both ns below 2^63. */
WIDE_INLINE struct bucket_time bucket_time_add(const struct weir_limit *limit, struct bucket_time a,
                                               struct bucket_time b)
{
    uint64_t rem = a.rem + b.rem, carry = rem >= limit->denom;

    return (struct bucket_time){a.ns + b.ns + carry, carry ? rem - limit->denom : rem};
}

/* a - b, a >= b. */
WIDE_INLINE struct bucket_time bucket_time_subtract(const struct weir_limit *limit,
                                                    struct bucket_time a, struct bucket_time b)
{
    uint64_t borrow = a.rem < b.rem;

    return (struct bucket_time){a.ns - b.ns - borrow, a.rem - b.rem + (borrow ? limit->denom : 0)};
}

/* c * T, or BUCKET_TAT_MAX where that is less. */
WIDE_INLINE struct bucket_time bucket_cost(const struct weir_limit *limit, uint64_t cost)
{
    if (__builtin_expect(cost == 1, 1))
        return (struct bucket_time){limit->period_ns, limit->period_rem};

    struct wide whole = wide_multiply(cost, limit->period_ns);
    uint64_t rem = 0;

    if (limit->period_rem != 0) {
        struct wide part = wide_multiply(cost, limit->period_rem);

        whole = wide_add(whole, wide_divide(part.hi, part.lo, limit->denom, &rem));
    }
    if (whole.hi != 0 || whole.lo >= BUCKET_TAT_MAX)
        return (struct bucket_time){BUCKET_TAT_MAX, 0};
    return (struct bucket_time){whole.lo, rem};
}

static inline bool bucket_test(const struct weir_limit *limit, const struct weir_cell *cell,
                               uint64_t now_ns, uint64_t cost, uint64_t *delay_ns)
{
    struct bucket_time over = bucket_over(cell, now_ns);
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    *delay_ns = 0;
    if (cost > limit->capacity)
        return false;
    if (bucket_time_less(depth, bucket_time_add(limit, over, bucket_cost(limit, cost))))
        return false;
    if (limit->spec.algorithm == WEIR_LEAKY_QUEUE)
        *delay_ns = over.ns + (over.rem != 0);
    return true;
}

WIDE_INLINE void bucket_owe(struct weir_cell *cell, uint64_t now_ns, struct bucket_time over)
{
    if (over.ns >= BUCKET_TAT_MAX - now_ns)
        over = (struct bucket_time){BUCKET_TAT_MAX - now_ns, 0};
    cell->a = now_ns + over.ns;
    cell->b = over.rem;
}

static inline void bucket_charge(const struct weir_limit *limit, struct weir_cell *cell,
                                 uint64_t now_ns, uint64_t cost)
{
    if (cost == 0 || limit->spec.rate == 0)
        return;
    bucket_owe(cell, now_ns,
               bucket_time_add(limit, bucket_over(cell, now_ns), bucket_cost(limit, cost)));
}

/* bucket_test and bucket_charge of cost 1 in one go, as the table's loop needs it. */
WIDE_INLINE bool bucket_take_one(const struct weir_limit *limit, struct weir_cell *cell,
                                 uint64_t now_ns, uint64_t *delay_ns)
{
    struct bucket_time over = bucket_over(cell, now_ns);
    struct bucket_time sum =
        bucket_time_add(limit, over, (struct bucket_time){limit->period_ns, limit->period_rem});

    *delay_ns = 0;
    if (limit->capacity == 0 ||
        bucket_time_less((struct bucket_time){limit->depth_ns, limit->depth_rem}, sum))
        return false;
    if (limit->spec.algorithm == WEIR_LEAKY_QUEUE)
        *delay_ns = over.ns + (over.rem != 0);
    cell->a = now_ns + sum.ns;
    cell->b = sum.rem;
    if (__builtin_expect(cell->a >= BUCKET_TAT_MAX, 0))
        *cell = (struct weir_cell){BUCKET_TAT_MAX, 0};
    return true;
}

/* bucket_take_one of a plain limit (weir/limit.h): no remainder, no delay, and, as times are below
 * 2^62, no TAT above BUCKET_TAT_MAX. Whatever the state is, no sum passes 64 bits. */
_Static_assert((UINT64_C(1) << 62) - 1 + WEIR_DEPTH_MAX_NS <= BUCKET_TAT_MAX, "no TAT is too late");
WIDE_INLINE bool bucket_take_plain(const struct weir_limit *limit, uint64_t *tat_ns,
                                   uint64_t now_ns)
{
    uint64_t over_ns = *tat_ns > now_ns ? *tat_ns - now_ns : 0;

    if (over_ns > limit->depth_ns - limit->period_ns)
        return false;
    *tat_ns = now_ns + over_ns + limit->period_ns;
    return true;
}

void bucket_charge_denied(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                          uint64_t cost);
void bucket_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t cost);
void bucket_report(const struct weir_limit *limit, const struct weir_cell *cell,
                   const struct weir_use *use, bool allowed, struct weir_report *report);
void bucket_convert(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns);

bool bucket_valid(const struct weir_limit *limit, const struct weir_cell *cell);

static inline uint64_t bucket_fresh_at(const struct weir_cell *cell)
{
    return cell->a + (cell->b != 0);
}

/* 96 bits: 63 of the TAT, 33 of its remainder. */
#define BUCKET_PACKED_DENOM_MAX (UINT64_C(1) << 33)

/* A packed state as packed[0] | packed[1] << 32, and packed[2]. */
WIDE_INLINE uint64_t bucket_pack_time(const struct weir_cell *cell)
{
    return cell->a | cell->b >> 32 << 63;
}

WIDE_INLINE struct weir_cell bucket_unpack_words(uint64_t time, uint32_t rem)
{
    return (struct weir_cell){time & BUCKET_TAT_MAX, rem | time >> 63 << 32};
}

/* Whether a packed state is one that a plain limit has: without a remainder. Then `time` is TAT. */
WIDE_INLINE bool bucket_words_plain(uint64_t time, uint32_t rem)
{
    return ((time >> 63) | rem) == 0;
}

static inline void bucket_pack(const struct weir_cell *cell, uint32_t packed[3])
{
    packed[0] = (uint32_t)cell->a;
    packed[1] = (uint32_t)(cell->a >> 32) | (uint32_t)(cell->b >> 32) << 31;
    packed[2] = (uint32_t)cell->b;
}

static inline void bucket_unpack(const uint32_t packed[3], struct weir_cell *cell)
{
    cell->a = packed[0] | (uint64_t)(packed[1] & 0x7fffffff) << 32;
    cell->b = packed[2] | (uint64_t)(packed[1] >> 31) << 32;
}

#endif
