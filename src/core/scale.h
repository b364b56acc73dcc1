/* SPDX-License-Identifier: Apache-2.0 */
/* A limit at a scale of s percent, for one check (weir_check.scale): 1 to 99, or 0 for the whole
 * limit.
 *
 * Limit and state stay those of 100 %. With the capacity C (of a quota: that of its period) and
 * part(C) = max(1, floor(C * s / 100)), a cost c >= 1 is admitted iff the limit would admit
 *
 *   c + C - part(C)               and c is charged; for all but buckets at a rate
 *
 * A bucket at a rate (WEIR_SCALE_RATE) instead is charged the weight w(c) against its whole depth:
 *
 *   w(c) = floor(c * T * 100 / s)   in units of 1/denom ns
 *
 * so that its rate and its burst are scaled. It is rounded down, so that floor(C * s / 100) are
 * admitted at once, and nobody waits for the rest of a unit. Where that number is 0, w(1) exceeds
 * the depth:
 *
 *   alone (weir_check.scale_alone)   a cost of 1, and none larger, is admitted iff nothing is owed,
 *                                    and is charged w(1): the depth is w(1) for costs above 0, and
 *                                    a cost of 0 waits as in any debt
 *   else                             w(1) is the depth, so that one caller cannot keep others, who
 *                                    charge the same state at a higher scale, waiting for longer
 *                                    than with an empty bucket
 *
 * What is owed stays owed when the scale changes. A debit and a refund take the same weight. The
 * report at a scale has part(C) as the limit; `remaining` and `retry_after_ns` follow from what is
 * admitted at this scale; `reset_after_ns` is the state's and has no scale.
 *
 * All functions accept checks without a scale, and then do what the unscaled functions do.
 *
 * Memory: none. Threads: no state of its own.
 */
#ifndef WEIR_CORE_SCALE_H
#define WEIR_CORE_SCALE_H

#include "core/bucket.h"
#include "core/check.h"

/* Whether a check has a scale. */
WIDE_INLINE bool scale_is_set(const struct weir_check *check)
{
    return check->scale != 0;
}

/* The part of a capacity (below 2^57) that `percent` (1..100) leaves; 0 of none. */
WIDE_INLINE uint64_t scale_part(uint64_t capacity, uint32_t percent)
{
    uint64_t part = capacity * percent / 100;

    return part == 0 && capacity > 0 ? 1 : part;
}

/* The percentage of a check: 1..100. */
WIDE_INLINE uint32_t scale_percent(const struct weir_check *check)
{
    return check->scale != 0 ? check->scale : 100;
}

/* The part of the limit's rate that requests at this scale have: percent, 0: all of it. A reserve
 * leaves a bucket its rate; of all others also the quota of a window is scaled. */
WIDE_INLINE uint8_t scale_of_rate(const struct weir_check *check)
{
    bool whole = check->scale_kind == WEIR_SCALE_RESERVE && check->limit &&
                 bucket_is(check->limit->spec.algorithm);

    return whole ? 0 : check->scale;
}

/* Whether costs are weighed: a bucket at a rate. */
bool scale_is_weighed(const struct weir_check *check);

/* The limit that a client learns: part(capacity). For a quota that of its largest period. */
uint64_t scale_capacity(const struct weir_check *check);

/* What a bucket is charged for `cost`, at most BUCKET_TAT_MAX. */
void scale_weight(const struct weir_check *check, uint64_t cost, struct bucket_time *weight);

/* How deep a cost of 1 or more may use a bucket: the depth; at a reserve part(capacity) * T; at a
 * rate at least w(1). */
void scale_depth(const struct weir_check *check, struct bucket_time *depth);

/* What one check, or several that share a state, charge together. All zero: nothing. */
struct scale_load {
    uint64_t cost;             /* UINT64_MAX: or more */
    struct bucket_time weight; /* buckets; at most BUCKET_TAT_MAX */
};

/* Adds the cost of a check of the same limit. */
void scale_load_add(struct scale_load *load, const struct weir_check *check);

/* Whether the limit of `check` admits the load at the check's scale. Changes nothing. *delay_ns: as
 * weir_cell_test. */
bool scale_cell_test(const struct weir_check *check, const struct weir_cell *cell, uint64_t now_ns,
                     const struct scale_load *load, uint64_t *delay_ns);

/* The cost to test a span with, and to make its report with, instead of `cost`, which is charged.
 * A report made so has the retry at the scale, and limit and remaining at 100 %. */
uint64_t scale_lifted(const struct weir_check *check, uint64_t cost);

/* weir_cell_charge, weir_cell_charge_denied, cell_fill and weir_cell_refund of check->cost, by its
 * weight. A span is charged its cost. */
void scale_cell_charge(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns);
void scale_cell_charge_denied(const struct weir_check *check, struct weir_cell *cell,
                              uint64_t now_ns);
void scale_cell_fill(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns);
void scale_cell_refund(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns,
                       uint64_t charged_at_ns);

/* Whether the kind of rate (weir_check.scale_alone) makes a difference: w(1) exceeds the depth. */
bool scale_is_shallow(const struct weir_check *check);

/* The largest cost whose weight a bucket at a rate can take until it owes `depth`. */
uint64_t scale_bucket_room(const struct weir_check *check, const struct weir_cell *cell,
                           uint64_t now_ns, const struct bucket_time *depth);

/* weir_cell_report at the check's scale, of use->cost. */
void scale_cell_report(const struct weir_check *check, const struct weir_cell *cell,
                       const struct weir_use *use, bool allowed, struct weir_report *report);

/* Turns limit and remaining of a report at 100 % into those at the check's scale. Exact, except for
 * a bucket at a rate, where `remaining` may be one too small. */
void scale_report(const struct weir_check *check, struct weir_report *report);

#endif
