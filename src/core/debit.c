/* SPDX-License-Identifier: Apache-2.0 */
/* see debit.h */
#include "core/debit.h"

#include "core/bucket.h"
#include "core/cell.h"
#include "core/scale.h"

uint64_t weir_check_debt(const struct weir_check *check)
{
    struct wide whole = wide_multiply(check->limit->capacity, check->floor - 1U);
    uint64_t rest, debt = wide_divide(whole.hi, whole.lo, 100, &rest);

    return debt < WEIR_BUCKET_MAX ? debt : WEIR_BUCKET_MAX;
}

/* A bucket is no deeper than what it can owe: until BUCKET_TAT_MAX. */
static void deepen(const struct weir_limit *limit, uint64_t debt, uint64_t now_ns,
                   struct weir_limit *deeper)
{
    *deeper = *limit;
    deeper->capacity += debt;
    if (bucket_is(limit->spec.algorithm)) {
        struct bucket_time depth = bucket_cost(limit, deeper->capacity);

        if (depth.ns >= BUCKET_TAT_MAX - now_ns)
            depth = (struct bucket_time){BUCKET_TAT_MAX - now_ns, 0};
        deeper->depth_ns = depth.ns;
        deeper->depth_rem = depth.rem;
    } else {
        deeper->spec.rate += debt;
    }
}

uint64_t weir_cell_debit_room(const struct weir_limit *limit, const struct weir_cell *cell,
                              uint64_t now_ns, uint64_t debt)
{
    const struct weir_use use = {.now_ns = now_ns};
    struct weir_limit deeper;
    struct weir_report report;

    deepen(limit, debt, now_ns, &deeper);
    weir_cell_report(&deeper, cell, &use, true, &report);
    return report.remaining;
}

uint64_t weir_check_debit_room(const struct weir_check *check, const struct weir_cell *cell,
                               uint64_t now_ns, uint64_t debt)
{
    struct weir_limit deeper;

    if (!scale_is_weighed(check))
        return weir_cell_debit_room(check->limit, cell, now_ns, debt);
    deepen(check->limit, debt, now_ns, &deeper);

    struct bucket_time depth = {deeper.depth_ns, deeper.depth_rem}, own;

    scale_depth(check, &own);
    if (bucket_time_less(depth, own))
        depth = own;
    return scale_bucket_room(check, cell, now_ns, &depth);
}

uint64_t weir_span_debit_room(const struct weir_limit *limit, const struct span_view *span,
                              uint64_t now_ns, uint64_t debt)
{
    const struct weir_use use = {.now_ns = now_ns};
    struct weir_limit deeper;
    struct weir_report report;

    deepen(limit, debt, now_ns, &deeper);
    span_report(&deeper, span, &use, true, &report);
    return report.remaining;
}
