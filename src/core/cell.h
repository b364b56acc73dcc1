/* SPDX-License-Identifier: Apache-2.0 */
/* The weir_cell_* functions of weir/limit.h as inline ones, for the table's loop. Each dispatches
 * on the algorithm with one branch: windows or buckets; all others, which come rarely, are called
 * through the table of algorithms (algorithm.h). */
#ifndef WEIR_CORE_CELL_H
#define WEIR_CORE_CELL_H

#include "core/bucket.h"
#include "core/counter.h"
#include "core/prepaid.h"
#include "core/quota.h"
#include "core/window.h"

/* fixed_window = 0 and sliding_window = 1 come first in enum weir_algorithm. */
WIDE_INLINE bool cell_is_window(const struct weir_limit *limit)
{
    return limit->spec.algorithm <= WEIR_SLIDING_WINDOW;
}

WIDE_INLINE bool cell_is_quota(const struct weir_limit *limit)
{
    return __builtin_expect(limit->spec.algorithm == WEIR_QUOTA, 0);
}

/* quota = 8, counter = 9, prepaid = 10 and whatever comes later. */
WIDE_INLINE bool cell_is_rare(const struct weir_limit *limit)
{
    return __builtin_expect(limit->spec.algorithm >= WEIR_QUOTA, 0);
}

/* What is here for those that are rare; see weir_cell_test, weir_cell_charge. */
bool cell_test_rare(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                    uint64_t cost);
void cell_charge_rare(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t cost);
uint64_t cell_fresh_at_rare(const struct weir_limit *limit, const struct weir_cell *cell);

WIDE_INLINE bool cell_test(const struct weir_limit *limit, const struct weir_cell *cell,
                           uint64_t now_ns, uint64_t cost, uint64_t *delay_ns)
{
    if (cell_is_window(limit)) {
        *delay_ns = 0;
        return window_test(limit, cell, now_ns, cost);
    }
    if (cell_is_rare(limit)) {
        *delay_ns = 0;
        return cell_test_rare(limit, cell, now_ns, cost);
    }
    return bucket_test(limit, cell, now_ns, cost, delay_ns);
}

WIDE_INLINE void cell_charge(const struct weir_limit *limit, struct weir_cell *cell,
                             uint64_t now_ns, uint64_t cost)
{
    if (cell_is_window(limit))
        window_charge(limit, cell, now_ns, cost);
    else if (cell_is_rare(limit))
        cell_charge_rare(limit, cell, now_ns, cost);
    else
        bucket_charge(limit, cell, now_ns, cost);
}

/* cell_test, and cell_charge if that admits. */
WIDE_INLINE bool cell_take(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                           uint64_t cost, uint64_t *delay_ns)
{
    if (cell_is_window(limit)) {
        *delay_ns = 0;
        return window_take(limit, cell, now_ns, cost);
    }
    if (cost == 1 && !cell_is_rare(limit))
        return bucket_take_one(limit, cell, now_ns, delay_ns);
    if (!cell_test(limit, cell, now_ns, cost, delay_ns))
        return false;
    cell_charge(limit, cell, now_ns, cost);
    return true;
}

/* Charges as much of a cost as it takes to fill the cell: a bucket to empty, a window to N, a
 * period to N + R. So of several keys that count in one cell none has used more than it says. */
void cell_fill(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
               uint64_t cost);

WIDE_INLINE uint64_t cell_fresh_at(const struct weir_limit *limit, const struct weir_cell *cell)
{
    if (cell_is_window(limit))
        return window_fresh_at(limit, cell);
    if (cell_is_rare(limit))
        return counter_is(limit) ? counter_fresh_at(limit, cell) : cell_fresh_at_rare(limit, cell);
    return bucket_fresh_at(cell);
}

WIDE_INLINE void cell_pack(const struct weir_limit *limit, const struct weir_cell *cell,
                           uint32_t packed[3])
{
    if (cell_is_window(limit))
        window_pack(limit, cell, packed);
    else if (counter_is(limit))
        counter_pack(cell, packed);
    else
        bucket_pack(cell, packed);
}

WIDE_INLINE void cell_unpack(const struct weir_limit *limit, const uint32_t packed[3],
                             struct weir_cell *cell)
{
    if (cell_is_window(limit))
        window_unpack(limit, packed, cell);
    else if (counter_is(limit))
        counter_unpack(packed, cell);
    else
        bucket_unpack(packed, cell);
}

/* cell_take on the packed state words[0] and the lower half of words[1]; the upper half stays. */
WIDE_INLINE bool cell_take_words(const struct weir_limit *limit, uint64_t words[2], uint64_t now_ns,
                                 uint64_t cost, struct weir_cell *cell, uint64_t *delay_ns)
{
    uint32_t rest = (uint32_t)words[1];

    if (cell_is_window(limit)) {
        *delay_ns = 0;
        *cell = window_unpack_words(limit, words[0], rest);
        if (!window_take(limit, cell, now_ns, cost))
            return false;
        words[0] = window_pack_low(limit, cell);
        rest = window_pack_high(limit, cell);
    } else {
        *cell = bucket_unpack_words(words[0], rest);
        if (!cell_take(limit, cell, now_ns, cost, delay_ns))
            return false;
        words[0] = bucket_pack_time(cell);
        rest = (uint32_t)cell->b;
    }
    words[1] = words[1] >> 32 << 32 | rest;
    return true;
}

#endif
