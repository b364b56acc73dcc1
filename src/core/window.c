/* SPDX-License-Identifier: Apache-2.0 */
/* see window.h */
#include "core/window.h"
#include "core/algorithm.h"
#include "core/span/segments.h"
#include "core/text/reason.h"

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

void window_convert(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns)
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

static int check_segments(const struct weir_limit_spec *spec, struct weir_reason *reason)
{
    struct limit_range range = {"segments", spec->segments, 1, WEIR_SEGMENTS_MAX};
    int err = limit_check_range(&range, reason);

    if (err != 0 || spec->window_ns % spec->segments == 0)
        return err;

    uint32_t nearest = 0;

    for (uint32_t off = 1; nearest == 0; off++) /* ends at 1, which divides every window */
        if (off < spec->segments && spec->window_ns % (spec->segments - off) == 0)
            nearest = spec->segments - off;
        else if (spec->segments + off <= WEIR_SEGMENTS_MAX &&
                 spec->window_ns % (spec->segments + off) == 0)
            nearest = spec->segments + off;
    reason_text(reason, "segments is ");
    reason_number(reason, spec->segments);
    reason_text(reason, ", which does not divide the window of ");
    reason_number(reason, spec->window_ns);
    reason_text(reason, " ns; the nearest that does is ");
    reason_number(reason, nearest);
    return WEIR_ERR_RANGE;
}

/* How a cell of two counters, or one, goes into 96 bits: see window.h. */
static void init_packing(struct weir_limit *limit)
{
    uint64_t top = WINDOW_TIME_MAX_NS / limit->segment_ns;
    uint32_t counters = limit->spec.algorithm == WEIR_FIXED_WINDOW ? 1 : 2;

    limit->index_bits = (uint8_t)(64 - wide_leading_zeros(top));
    uint32_t bits = (96u - limit->index_bits) / counters;

    limit->count_bits = (uint8_t)(bits < 32 ? bits : 32);
    limit->packs = limit->spec.rate < UINT64_C(1) << limit->count_bits;
    if (!limit->packs)
        limit->count_bits = 32;
}

int window_init(struct weir_limit *limit, struct weir_reason *reason)
{
    struct weir_limit_spec *spec = &limit->spec;

    if (spec->segments == 0)
        spec->segments = 1;

    int err = check_segments(spec, reason);

    if (err != 0)
        return err;
    limit->segment_ns = spec->window_ns / spec->segments;
    if (spec->segments > 1)
        limit->span_words = segments_words(limit);
    else
        init_packing(limit);
    return 0;
}
