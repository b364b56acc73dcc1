/* SPDX-License-Identifier: Apache-2.0 */
/* see window.h */
#include "core/window.h"

/* In place: a refund is no time that the state has seen. */
void window_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost)
{
    struct window_view view;
    uint64_t index = charged_at_ns / limit->segment_ns;
    uint64_t kept = limit->spec.algorithm == WEIR_FIXED_WINDOW ? 0 : 1;
    uint32_t current = (uint32_t)cell->b, previous = (uint32_t)(cell->b >> 32);

    window_view(limit, cell, now_ns, &view);
    if (index + kept < view.index)
        return;
    if (index == cell->a)
        current -= cost < current ? (uint32_t)cost : current;
    else if (index + 1 == cell->a)
        previous -= cost < previous ? (uint32_t)cost : previous;
    cell->b = current | (uint64_t)previous << 32;
}

/* When, counted from the start of window view->index, a cost that is denied now is admitted. In the
 * window of a count k that fades out (e from 0 to W) it is as soon as k * (W - e) < (room + 1) * W,
 * which is W - e <= ((room + 1) * W - 1) / k =: left. left = 0 means not before the next window,
 * and there k has gone. */
static uint64_t window_retry(const struct weir_limit *limit, const struct window_view *view,
                             uint64_t cost)
{
    uint64_t rate = limit->spec.rate, w = limit->segment_ns;
    uint64_t count = view->previous, base = 0, room = rate - cost, rest;

    if (limit->spec.algorithm == WEIR_FIXED_WINDOW)
        return w;
    if (view->current > room) { /* not before the current count begins to fade */
        count = view->current;
        base = w;
    } else {
        room -= view->current;
    }
    if (count <= room) /* it fits in full */
        return base;
    if (limit->spec.strict)
        return base + w;

    struct wide product = wide_multiply(room + 1, w);

    product.hi -= product.lo == 0;
    product.lo--;
    return base + w - wide_divide(product.hi, product.lo, count, &rest);
}

void window_report(const struct weir_limit *limit, const struct weir_cell *cell,
                   const struct weir_use *use, bool allowed, struct weir_report *report)
{
    struct window_view view;
    uint64_t w = limit->segment_ns, rate = limit->spec.rate, rest, fresh_at_ns;

    window_view(limit, cell, use->now_ns, &view);
    uint64_t used = view.previous;

    if (!limit->spec.strict && view.elapsed_ns != 0 && used != 0) {
        struct wide product = wide_multiply(used, w - view.elapsed_ns);

        used = wide_divide(product.hi, product.lo, w, &rest);
    }
    used += view.current;
    fresh_at_ns = window_fresh_at(limit, cell);
    report->limit = rate;
    report->remaining = used < rate ? rate - used : 0;
    report->reset_after_ns = fresh_at_ns > use->now_ns ? fresh_at_ns - use->now_ns : 0;
    report->retry_after_ns = 0;
    if (allowed)
        return;
    if (use->cost > rate)
        report->retry_after_ns = WEIR_NEVER;
    else if (use->cost + used > rate)
        report->retry_after_ns =
            view.index * w + window_retry(limit, &view, use->cost) - use->now_ns;
}

void window_convert(const struct weir_limit *to, struct weir_cell *cell)
{
    uint64_t most = (UINT64_C(1) << to->count_bits) - 1;
    uint64_t current = (uint32_t)cell->b, previous = cell->b >> 32;

    current = current < most ? current : most;
    previous = previous < most ? previous : most;
    cell->b = current | previous << 32;
}

bool window_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    uint64_t most = (UINT64_C(1) << limit->count_bits) - 1;
    uint64_t previous_most = limit->spec.algorithm == WEIR_FIXED_WINDOW ? 0 : most;

    return cell->a >> limit->index_bits == 0 && (uint32_t)cell->b <= most &&
           cell->b >> 32 <= previous_most;
}
