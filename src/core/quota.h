/* SPDX-License-Identifier: Apache-2.0 */
/* quota: N per period of a calendar, whose periods have no fixed length; with or without what was
 * left over in the period before.
 *
 * Periods are given from outside: spec.bounds[k] is when period k begins. Past the last one they go
 * on with spec.window_ns each. R = spec.rollover units at most come over from the period before:
 *
 *   capacity of period i = N + min(R, N - min(N, used in period i - 1))
 *
 * What comes over does not add up over several periods. A key that has not been seen for a period
 * has used nothing in it, so a fresh state has N + R.
 *
 *   cell.a   when the state is fresh again: the end of the period that was charged last; with
 *            rollover the end of the one after it. So freshness needs no calendar.
 *   cell.b   the count of that period | with rollover that of the period before << 32
 *
 * A time before the state's period is taken for its start. Counters saturate at 2^32 - 1.
 * Where a limit has no calendar (in a state file, before its rules are loaded), quota_test tells
 * about what it would be; nothing else may be asked then. Not packed: calendars count in days, and
 * the table's fast paths need not know of them.
 */
#ifndef WEIR_CORE_QUOTA_H
#define WEIR_CORE_QUOTA_H

#include <weir/limit.h>

bool quota_test(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                uint64_t cost);
void quota_charge(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                  uint64_t cost);
/* As quota_charge, but the period that is charged counts to N + R at most. */
void quota_fill(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                uint64_t cost);
void quota_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                  uint64_t charged_at_ns, uint64_t cost);
void quota_report(const struct weir_limit *limit, const struct weir_cell *cell,
                  const struct weir_use *use, bool allowed, struct weir_report *report);

/* quota_test and quota_report at `percent` (1..100) of the limit: see scale.h. */
bool quota_test_at(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                   uint64_t cost, uint32_t percent);
void quota_report_at(const struct weir_limit *limit, const struct weir_cell *cell,
                     const struct weir_use *use, uint32_t percent, struct weir_report *report);

bool quota_valid(const struct weir_limit *limit, const struct weir_cell *cell);

/* The period that a time is in; one before the first is taken for its start. And when period `i`
 * begins, those past the calendar's end too. */
uint64_t quota_period(const struct weir_limit_spec *spec, uint64_t now_ns);
uint64_t quota_begins(const struct weir_limit_spec *spec, uint64_t i);

static inline uint64_t quota_fresh_at(const struct weir_limit *limit, const struct weir_cell *cell)
{
    return cell->b != 0 ? cell->a : 0;
}

/* Compiles what is a quota's own of a limit: see struct algorithm_row. */
int quota_init(struct weir_limit *limit, struct weir_reason *reason);
bool quota_converts(const struct weir_limit_spec *a, const struct weir_limit_spec *b);

#endif
