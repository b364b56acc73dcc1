/* SPDX-License-Identifier: Apache-2.0 */
/* see weir_decide in weir/limit.h */
#include <stddef.h>

#include "core/cell.h"
#include "core/span.h"

static bool decide_span(const struct weir_limit *limit, uint64_t *span, const struct weir_use *use,
                        struct weir_report *report)
{
    const struct span_change in_place = {.span = span, .plain = span};
    bool allowed = weir_span_test(limit, span, use->now_ns, use->cost);

    if (allowed) {
        if (!weir_span_fits(limit, span, use->now_ns, use->cost, 1))
            weir_span_compact(limit, span, use->now_ns);
        span_charge(limit, &in_place, use);
    }
    if (report)
        weir_span_report(limit, span, use, allowed, report);
    return allowed;
}

bool weir_decide(const struct weir_limit *limit, void *state, const struct weir_use *use,
                 struct weir_report *report, uint64_t *delay_ns)
{
    uint64_t delay = 0;
    bool allowed;

    if (limit->span_words != 0) {
        allowed = decide_span(limit, state, use, report);
    } else {
        struct weir_cell *cell = state;

        allowed = cell_test(limit, cell, use->now_ns, use->cost, &delay);
        if (allowed)
            cell_charge(limit, cell, use->now_ns, use->cost);
        if (report)
            weir_cell_report(limit, cell, use, allowed, report);
    }
    if (delay_ns)
        *delay_ns = delay;
    return allowed;
}
