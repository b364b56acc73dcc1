/* SPDX-License-Identifier: Apache-2.0 */
/* prepaid: units that were given to a key, of which requests take until none is left or they end.
 * Unlike all limits a fresh state has nothing: it denies. See rules/charge/top_up.h for its use.
 *
 *   cell.a   when the units end, in ns, whole microseconds below 2^62; 0: none were given
 *   cell.b   how many are left, at most PREPAID_MAX
 *
 * A cost c is admitted iff max(c, 1) are left: a request of cost 0 passes where there is something.
 * A charge takes what is there, at most c, and a state that has nothing left stays until its end,
 * so that refunds find it. Giving units and refunding are one operation, prepaid_refund: `until_ns`
 * is when the given units end, or, of a refund, when they were charged, which is past and extends
 * nothing. What has ended takes no refund, and a cost of 0 changes nothing. Units that are added to
 * others end with them, at the later of both times.
 *
 * Not packed, and never in overflow cells: what one key has, another must not take.
 */
#ifndef WEIR_CORE_PREPAID_H
#define WEIR_CORE_PREPAID_H

#include <weir/limit.h>

#include "core/wide.h"

#define PREPAID_MAX WEIR_BUCKET_MAX
#define PREPAID_END_MAX_NS (UINT64_C(1) << 62)

WIDE_INLINE bool prepaid_is(const struct weir_limit *limit)
{
    return __builtin_expect(limit->spec.algorithm == WEIR_PREPAID, 0);
}

/* What is left at a time. */
static inline uint64_t prepaid_left(const struct weir_cell *cell, uint64_t now_ns)
{
    return cell->a > now_ns ? cell->b : 0;
}

static inline bool prepaid_test(const struct weir_limit *limit, const struct weir_cell *cell,
                                uint64_t now_ns, uint64_t cost)
{
    return prepaid_left(cell, now_ns) >= (cost > 0 ? cost : 1);
}

static inline void prepaid_charge(const struct weir_limit *limit, struct weir_cell *cell,
                                  uint64_t now_ns, uint64_t cost)
{
    uint64_t left = prepaid_left(cell, now_ns);

    if (cell->a > now_ns)
        cell->b -= cost < left ? cost : left;
}

static inline void prepaid_refund(const struct weir_limit *limit, struct weir_cell *cell,
                                  uint64_t now_ns, uint64_t until_ns, uint64_t cost)
{
    uint64_t left = prepaid_left(cell, now_ns), room = PREPAID_MAX - left;

    if (until_ns >= PREPAID_END_MAX_NS)
        until_ns = PREPAID_END_MAX_NS - 1;
    until_ns -= until_ns % 1000;
    if (cell->a > now_ns && cell->a > until_ns)
        until_ns = cell->a;
    if (cost > 0 && until_ns > now_ns)
        *cell = (struct weir_cell){until_ns, left + (cost < room ? cost : room)};
}

static inline void prepaid_report(const struct weir_limit *limit, const struct weir_cell *cell,
                                  const struct weir_use *use, bool allowed,
                                  struct weir_report *report)
{
    report->limit = limit->capacity;
    report->remaining = prepaid_left(cell, use->now_ns);
    report->retry_after_ns = allowed ? 0 : WEIR_NEVER;
    report->reset_after_ns = cell->a > use->now_ns ? cell->a - use->now_ns : 0;
}

static inline bool prepaid_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    return cell->b <= (cell->a != 0 ? PREPAID_MAX : 0) && cell->a < PREPAID_END_MAX_NS &&
           cell->a % 1000 == 0;
}

/* Compiles what is these units' own of a limit: see struct algorithm_row. */
static inline int prepaid_init(struct weir_limit *limit, struct weir_reason *reason)
{
    limit->capacity = PREPAID_MAX;
    return 0;
}

#endif
