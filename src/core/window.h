/* SPDX-License-Identifier: Apache-2.0 */
/* Window counters that fit a cell: fixed_window, and sliding_window with one segment.
 *
 *   cell.a   the index of the newest window that was charged, floor(t / W)
 *   cell.b   fixed: its count; sliding: its count | the count of the window before << 32
 *
 * A time before window cell.a is taken for its start (see weir/limit.h, "Time"). Counters saturate
 * at 2^count_bits - 1: 2^32 - 1, or what a packed cell holds.
 *
 * Inline for the table's loop: one division (t / W) a decision; the weighted estimate is compared
 * as products, and only where the previous window in full would not fit.
 */
#ifndef WEIR_CORE_WINDOW_H
#define WEIR_CORE_WINDOW_H

#include <weir/limit.h>

#include "core/wide.h"

/* Times stay below 2^62 ns (weir/limit.h), which bounds the indices of windows. */
#define WINDOW_TIME_MAX_NS ((UINT64_C(1) << 62) - 1)

/* The two windows as seen at one time. */
struct window_view {
    uint64_t index, elapsed_ns;
    uint32_t current, previous; /* previous: 0 for fixed_window */
};

static inline void window_view(const struct weir_limit *limit, const struct weir_cell *cell,
                               uint64_t now_ns, struct window_view *view)
{
    uint64_t index = now_ns / limit->segment_ns;
    uint64_t elapsed_ns = now_ns - index * limit->segment_ns;

    if (index < cell->a) {
        index = cell->a;
        elapsed_ns = 0;
    }
    uint64_t gone = index - cell->a;

    view->index = index;
    view->elapsed_ns = elapsed_ns;
    view->current = gone == 0 ? (uint32_t)cell->b : 0;
    view->previous = gone == 0 ? (uint32_t)(cell->b >> 32) : gone == 1 ? (uint32_t)cell->b : 0;
    if (limit->spec.algorithm == WEIR_FIXED_WINDOW)
        view->previous = 0;
}

/* Whether floor(count * (w - e) / w) <= room, for count > room: exactly when
 * count * (w - e) < (room + 1) * w. */
WIDE_INLINE bool window_weight_fits(uint64_t count, uint64_t left_ns, uint64_t room,
                                    uint64_t segment_ns)
{
    return wide_less(wide_multiply(count, left_ns), wide_multiply(room + 1, segment_ns));
}

WIDE_INLINE bool window_admits(const struct weir_limit *limit, const struct window_view *view,
                               uint64_t cost)
{
    uint64_t rate = limit->spec.rate;

    if (cost > rate || view->current > rate - cost)
        return false;

    uint64_t room = rate - cost - view->current;

    if (view->previous <= room)
        return true;
    if (limit->spec.strict)
        return false;
    return window_weight_fits(view->previous, limit->segment_ns - view->elapsed_ns, room,
                              limit->segment_ns);
}

/* Writes the view with a cost > 0 added to its current window. */
WIDE_INLINE void window_add(const struct weir_limit *limit, const struct window_view *view,
                            struct weir_cell *cell, uint64_t cost)
{
    uint64_t most = (UINT64_C(1) << limit->count_bits) - 1;
    uint32_t current = (uint32_t)(cost > most - view->current ? most : view->current + cost);

    cell->a = view->index;
    cell->b = current | (uint64_t)view->previous << 32;
}

static inline bool window_test(const struct weir_limit *limit, const struct weir_cell *cell,
                               uint64_t now_ns, uint64_t cost)
{
    struct window_view view;

    window_view(limit, cell, now_ns, &view);
    return window_admits(limit, &view, cost);
}

static inline void window_charge(const struct weir_limit *limit, struct weir_cell *cell,
                                 uint64_t now_ns, uint64_t cost)
{
    struct window_view view;

    if (cost == 0)
        return;
    window_view(limit, cell, now_ns, &view);
    window_add(limit, &view, cell, cost);
}

/* window_test, and window_charge if that admits. */
static inline bool window_take(const struct weir_limit *limit, struct weir_cell *cell,
                               uint64_t now_ns, uint64_t cost)
{
    struct window_view view;

    window_view(limit, cell, now_ns, &view);
    if (!window_admits(limit, &view, cost))
        return false;
    if (cost > 0)
        window_add(limit, &view, cell, cost);
    return true;
}

/* As window_charge, but the window that is charged counts to N at most. */
static inline void window_fill(const struct weir_limit *limit, struct weir_cell *cell,
                               uint64_t now_ns, uint64_t cost)
{
    struct window_view view;
    uint64_t rate = limit->spec.rate, room;

    window_view(limit, cell, now_ns, &view);
    room = view.current < rate ? rate - view.current : 0;
    window_charge(limit, cell, now_ns, cost < room ? cost : room);
}

void window_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost);
void window_report(const struct weir_limit *limit, const struct weir_cell *cell,
                   const struct weir_use *use, bool allowed, struct weir_report *report);
bool window_valid(const struct weir_limit *limit, const struct weir_cell *cell);
void window_convert(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns);

static inline uint64_t window_fresh_at(const struct weir_limit *limit, const struct weir_cell *cell)
{
    uint64_t windows = limit->spec.algorithm == WEIR_FIXED_WINDOW ? 1 : 2;

    if ((uint32_t)cell->b != 0)
        return (cell->a + windows) * limit->segment_ns;
    return cell->b != 0 ? (cell->a + 1) * limit->segment_ns : 0;
}

/* 96 bits. fixed_window: 64 of the index, 32 of the count. sliding_window: the index and the
 * current count share 64 bits, the index above; what it has above those stands over the previous
 * count in the last word:
 *
 *   | packed[2]                      | packed[1..0]                     |
 *   | index high  | previous (bits)  | index low      | current (bits)  |     bits = count_bits
 */
/* A packed state as packed[0] | packed[1] << 32, and packed[2]. */
WIDE_INLINE uint64_t window_pack_low(const struct weir_limit *limit, const struct weir_cell *cell)
{
    if (limit->spec.algorithm == WEIR_FIXED_WINDOW)
        return cell->a;
    return cell->a << limit->count_bits | (uint32_t)cell->b;
}

WIDE_INLINE uint32_t window_pack_high(const struct weir_limit *limit, const struct weir_cell *cell)
{
    uint32_t bits = limit->count_bits;

    if (limit->spec.algorithm == WEIR_FIXED_WINDOW)
        return (uint32_t)cell->b;
    return (uint32_t)((cell->a >> (64 - bits)) << bits | cell->b >> 32);
}

WIDE_INLINE struct weir_cell window_unpack_words(const struct weir_limit *limit, uint64_t low,
                                                 uint32_t packed_high)
{
    uint32_t bits = limit->count_bits;
    uint64_t mask = (UINT64_C(1) << bits) - 1, high = packed_high;

    if (limit->spec.algorithm == WEIR_FIXED_WINDOW)
        return (struct weir_cell){low, high};
    return (struct weir_cell){low >> bits | (high >> bits) << (64 - bits),
                              (low & mask) | (high & mask) << 32};
}

static inline void window_pack(const struct weir_limit *limit, const struct weir_cell *cell,
                               uint32_t packed[3])
{
    uint64_t low = window_pack_low(limit, cell);

    packed[0] = (uint32_t)low;
    packed[1] = (uint32_t)(low >> 32);
    packed[2] = window_pack_high(limit, cell);
}

static inline void window_unpack(const struct weir_limit *limit, const uint32_t packed[3],
                                 struct weir_cell *cell)
{
    *cell = window_unpack_words(limit, packed[0] | (uint64_t)packed[1] << 32, packed[2]);
}

/* Compiles what is a window's own of a limit: see struct algorithm_row. */
int window_init(struct weir_limit *limit, struct weir_reason *reason);

#endif
