/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets: gcra, token_bucket, leaky_bucket and leaky_queue are one function of time.
 *
 * The state is the theoretical arrival time TAT (ITU-T I.371, virtual scheduling): tat_ns (cell.a)
 * whole nanoseconds and tat_rem (cell.b) units of 1/denom ns, where T = W/N =
 * period_ns + period_rem/denom in lowest terms. So nothing is ever rounded. A bucket owes
 * `owed` = max(TAT - t, 0): 0 in a fresh (full) bucket, the depth (capacity * T) in an empty one;
 * more is debt. A cost c is admitted iff owed + c*T <= depth.
 *
 * N = 0 has no T: only cost 0 is admitted, and no state is kept.
 *
 * The functions are inline for the table's loop: cost 1 takes two compares of (ns, rem) pairs and
 * no division.
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

/* What a bucket owes. */
WIDE_INLINE struct bucket_time bucket_owed(const struct weir_cell *cell, uint64_t now_ns)
{
    uint64_t tat_ns = cell->a, tat_rem = cell->b;

    if (tat_ns < now_ns)
        return (struct bucket_time){0, 0};
    return (struct bucket_time){tat_ns - now_ns, tat_rem};
}

WIDE_INLINE bool bucket_time_less(struct bucket_time time, struct bucket_time than)
{
    return time.ns != than.ns ? time.ns < than.ns : time.rem < than.rem;
}

/* Both ns below 2^63. */
WIDE_INLINE struct bucket_time bucket_time_add(const struct weir_limit *limit,
                                               struct bucket_time time, struct bucket_time more)
{
    uint64_t rem = time.rem + more.rem, carry = rem >= limit->denom;

    return (struct bucket_time){time.ns + more.ns + carry, carry ? rem - limit->denom : rem};
}

/* time - less, time >= less. */
WIDE_INLINE struct bucket_time bucket_time_subtract(const struct weir_limit *limit,
                                                    struct bucket_time time,
                                                    struct bucket_time less)
{
    uint64_t borrow = time.rem < less.rem;

    return (struct bucket_time){time.ns - less.ns - borrow,
                                time.rem - less.rem + (borrow ? limit->denom : 0)};
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

/* bucket_cost of a cost below 2^24, such as the bytes of a packet: the product with the remainder,
 * which is below 2^40, fits 64 bits, and the division needs none of the loops of wide_divide. */
WIDE_INLINE struct bucket_time bucket_cost_small(const struct weir_limit *limit, uint32_t cost)
{
    uint64_t part = cost * limit->period_rem, carry = part / limit->denom;
    struct wide whole = wide_add(wide_multiply(cost, limit->period_ns), carry);

    if (whole.hi != 0 || whole.lo >= BUCKET_TAT_MAX)
        return (struct bucket_time){BUCKET_TAT_MAX, 0};
    return (struct bucket_time){whole.lo, part - carry * limit->denom};
}

static inline bool bucket_test(const struct weir_limit *limit, const struct weir_cell *cell,
                               uint64_t now_ns, uint64_t cost, uint64_t *delay_ns)
{
    struct bucket_time owed = bucket_owed(cell, now_ns);
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    *delay_ns = 0;
    if (cost > limit->capacity)
        return false;
    if (bucket_time_less(depth, bucket_time_add(limit, owed, bucket_cost(limit, cost))))
        return false;
    if (limit->spec.algorithm == WEIR_LEAKY_QUEUE)
        *delay_ns = owed.ns + (owed.rem != 0);
    return true;
}

WIDE_INLINE void bucket_owe(struct weir_cell *cell, uint64_t now_ns, struct bucket_time owed)
{
    if (owed.ns >= BUCKET_TAT_MAX - now_ns)
        owed = (struct bucket_time){BUCKET_TAT_MAX - now_ns, 0};
    *cell = (struct weir_cell){.a = now_ns + owed.ns, .b = owed.rem};
}

static inline void bucket_charge(const struct weir_limit *limit, struct weir_cell *cell,
                                 uint64_t now_ns, uint64_t cost)
{
    if (cost == 0 || limit->spec.rate == 0)
        return;
    bucket_owe(cell, now_ns,
               bucket_time_add(limit, bucket_owed(cell, now_ns), bucket_cost(limit, cost)));
}

/* bucket_test and bucket_charge of what costs `time`, computed before (bucket_cost), in one go. */
WIDE_INLINE bool bucket_take_time(const struct weir_limit *limit, struct weir_cell *cell,
                                  uint64_t now_ns, struct bucket_time time, uint64_t *delay_ns)
{
    struct bucket_time owed = bucket_owed(cell, now_ns);
    struct bucket_time sum = bucket_time_add(limit, owed, time);

    *delay_ns = 0;
    if (limit->capacity == 0 ||
        bucket_time_less((struct bucket_time){limit->depth_ns, limit->depth_rem}, sum))
        return false;
    if (limit->spec.algorithm == WEIR_LEAKY_QUEUE)
        *delay_ns = owed.ns + (owed.rem != 0);
    *cell = (struct weir_cell){.a = now_ns + sum.ns, .b = sum.rem};
    if (__builtin_expect(now_ns + sum.ns >= BUCKET_TAT_MAX, 0))
        *cell = (struct weir_cell){.a = BUCKET_TAT_MAX, .b = 0};
    return true;
}

/* The same of cost 1, as the table's loop needs it. */
WIDE_INLINE bool bucket_take_one(const struct weir_limit *limit, struct weir_cell *cell,
                                 uint64_t now_ns, uint64_t *delay_ns)
{
    return bucket_take_time(limit, cell, now_ns,
                            (struct bucket_time){limit->period_ns, limit->period_rem}, delay_ns);
}

/* bucket_take_one of a plain limit (weir/limit.h): no remainder, no delay, and, as times are below
 * 2^62, no TAT above BUCKET_TAT_MAX. Whatever the state is, no sum passes 64 bits. */
_Static_assert((UINT64_C(1) << 62) - 1 + WEIR_DEPTH_MAX_NS <= BUCKET_TAT_MAX, "no TAT is too late");
WIDE_INLINE bool bucket_take_plain(const struct weir_limit *limit, uint64_t *tat_ns,
                                   uint64_t now_ns)
{
    uint64_t owed_ns = *tat_ns > now_ns ? *tat_ns - now_ns : 0;

    if (owed_ns > limit->depth_ns - limit->period_ns)
        return false;
    *tat_ns = now_ns + owed_ns + limit->period_ns;
    return true;
}

/* bucket_take_time of a plain limit and of whole nanoseconds. */
WIDE_INLINE bool bucket_take_plain_time(const struct weir_limit *limit, uint64_t *tat_ns,
                                        uint64_t now_ns, uint64_t time_ns)
{
    uint64_t owed_ns = *tat_ns > now_ns ? *tat_ns - now_ns : 0;

    if (owed_ns + time_ns > limit->depth_ns)
        return false;
    *tat_ns = now_ns + owed_ns + time_ns;
    return true;
}

/* bucket_report of a plain limit whose check was admitted, and of a state without a remainder. */
WIDE_INLINE void bucket_report_plain(const struct weir_limit *limit, uint64_t tat_ns,
                                     uint64_t now_ns, struct weir_report *report)
{
    uint64_t owed_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;

    report->limit = limit->capacity;
    report->remaining = 0;
    if (owed_ns <= limit->depth_ns)
        report->remaining = (limit->depth_ns - owed_ns) / limit->period_ns;
    report->retry_after_ns = 0;
    report->reset_after_ns = owed_ns;
}

void bucket_charge_denied(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                          uint64_t cost);
void bucket_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost);

/* The same three of a time instead of a cost, and of the depth at which a denied charge stops; for
 * rates above 0. */
void bucket_charge_time(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                        const struct bucket_time *time);
void bucket_charge_time_denied(const struct weir_limit *limit, struct weir_cell *cell,
                               uint64_t now_ns, const struct bucket_time *time,
                               const struct bucket_time *depth);
void bucket_refund_time(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                        const struct bucket_time *time);
void bucket_report(const struct weir_limit *limit, const struct weir_cell *cell,
                   const struct weir_use *use, bool allowed, struct weir_report *report);
void bucket_convert(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns);

bool bucket_valid(const struct weir_limit *limit, const struct weir_cell *cell);

static inline uint64_t bucket_fresh_at(const struct weir_cell *cell)
{
    uint64_t tat_ns = cell->a, tat_rem = cell->b;

    return tat_ns + (tat_rem != 0);
}

/* 96 bits: 63 of the TAT, 33 of its remainder. */
#define BUCKET_PACKED_DENOM_MAX (UINT64_C(1) << 33)

/* A packed state as packed[0] | packed[1] << 32, and packed[2]. */
WIDE_INLINE uint64_t bucket_pack_time(const struct weir_cell *cell)
{
    uint64_t tat_ns = cell->a, tat_rem = cell->b;

    return tat_ns | tat_rem >> 32 << 63;
}

WIDE_INLINE struct weir_cell bucket_unpack_words(uint64_t time, uint32_t rem)
{
    return (struct weir_cell){.a = time & BUCKET_TAT_MAX, .b = rem | time >> 63 << 32};
}

/* Whether a packed state is one that a plain limit has: without a remainder. Then `time` is TAT. */
WIDE_INLINE bool bucket_words_plain(uint64_t time, uint32_t rem)
{
    return ((time >> 63) | rem) == 0;
}

static inline void bucket_pack(const struct weir_cell *cell, uint32_t packed[3])
{
    uint64_t tat_ns = cell->a, tat_rem = cell->b;

    packed[0] = (uint32_t)tat_ns;
    packed[1] = (uint32_t)(tat_ns >> 32) | (uint32_t)(tat_rem >> 32) << 31;
    packed[2] = (uint32_t)tat_rem;
}

static inline void bucket_unpack(const uint32_t packed[3], struct weir_cell *cell)
{
    uint64_t tat_ns = packed[0] | (uint64_t)(packed[1] & 0x7fffffff) << 32;
    uint64_t tat_rem = packed[2] | (uint64_t)(packed[1] >> 31) << 32;

    *cell = (struct weir_cell){.a = tat_ns, .b = tat_rem};
}

/* Compiles what is a bucket's own of a limit: see struct algorithm_row. */
int bucket_init(struct weir_limit *limit, struct weir_reason *reason);

#endif
