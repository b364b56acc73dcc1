/* SPDX-License-Identifier: Apache-2.0 */
/* counter: a 64-bit integer with a life, as Redis keeps one under a key (INCR, EXPIRE).
 *
 * It limits nothing: a caller that reads it decides. Counters are changed by WEIR_OP_EDIT
 * (core/check.h). As a limit it has no capacity; COUNTER_CAPACITY only orders counters for
 * eviction: the one with the fewest digits goes first.
 *
 *   cell.a   when it ends, in ns, a multiple of a millisecond. Or, where it was given no end:
 *            COUNTER_ENDLESS | when it was used last, a multiple of an hour; it ends spec.window_ns
 *            and an hour after that
 *   cell.b   the value, in two's complement
 *
 * A fresh state is all zero: there is no such key.
 *
 * spec.rate is the width of the values. COUNTER_PACKED_BITS go into a slot of the table, with 42
 * bits of time: ms since 1970, until 2109; the last 2^25 numbers are hours of endless counters.
 * COUNTER_WIDE_BITS, or a later end, need a span.
 */
#ifndef WEIR_CORE_COUNTER_H
#define WEIR_CORE_COUNTER_H

#include <weir/limit.h>

#include "core/wide.h"

#define COUNTER_PACKED_BITS 54
#define COUNTER_WIDE_BITS 64

#define COUNTER_ENDLESS (UINT64_C(1) << 63)
#define COUNTER_MS_NS UINT64_C(1000000)
#define COUNTER_HOUR_NS (UINT64_C(3600) * 1000 * COUNTER_MS_NS)

/* The latest end that a counter can have: times stay below 2^62 ns. */
#define COUNTER_ENDS_MAX_MS (((UINT64_C(1) << 62) - 1) / COUNTER_MS_NS)

#define COUNTER_CAPACITY (UINT64_C(1) << 16)

WIDE_INLINE bool counter_is(const struct weir_limit *limit)
{
    return __builtin_expect(limit->spec.algorithm == WEIR_COUNTER, 0);
}

static inline bool counter_is_endless(const struct weir_cell *cell)
{
    return cell->a >> 63 != 0;
}

/* The life of a counter without an end, used at `now_ns`. */
static inline uint64_t counter_endless(uint64_t now_ns)
{
    return COUNTER_ENDLESS | (now_ns - now_ns % COUNTER_HOUR_NS);
}

static inline uint64_t counter_fresh_at(const struct weir_limit *limit,
                                        const struct weir_cell *cell)
{
    if (!counter_is_endless(cell))
        return cell->a;
    return (cell->a & ~COUNTER_ENDLESS) + COUNTER_HOUR_NS + limit->spec.window_ns;
}

/* Whether a cell goes into a slot. */
bool counter_packs(const struct weir_cell *cell);
void counter_pack(const struct weir_cell *cell, uint32_t packed[3]);
void counter_unpack(const uint32_t packed[3], struct weir_cell *cell);

/* Adds to the value, down to INT64_MIN and up to INT64_MAX; a fresh counter becomes an endless one.
 */
void counter_charge(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                    uint64_t cost);
void counter_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                    uint64_t charged_at_ns, uint64_t cost);
/* It denies nothing. */
bool counter_test(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                  uint64_t cost);
void counter_report(const struct weir_limit *limit, const struct weir_cell *cell,
                    const struct weir_use *use, bool allowed, struct weir_report *report);
bool counter_valid(const struct weir_limit *limit, const struct weir_cell *cell);

/* Compiles what is a counter's own of a limit: see struct algorithm_row. */
int counter_init(struct weir_limit *limit, struct weir_reason *reason);

#endif
