/* SPDX-License-Identifier: Apache-2.0 */
/* see bucket.h */
#include "core/bucket.h"

void bucket_charge_denied(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                          uint64_t cost)
{
    struct bucket_time over = bucket_over(cell, now_ns);
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    if (cost == 0 || limit->spec.rate == 0 || bucket_time_less(depth, over))
        return;
    over = bucket_time_add(limit, over, bucket_cost(limit, cost));
    bucket_owe(cell, now_ns, bucket_time_less(depth, over) ? depth : over);
}

/* Where the bucket owes less than the refund, TAT becomes now: not earlier, so that a time before
 * this one finds no credit. */
void bucket_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t cost)
{
    struct bucket_time over = bucket_over(cell, now_ns);
    struct bucket_time back = bucket_cost(limit, cost);

    if (cost == 0 || limit->spec.rate == 0 || (over.ns == 0 && over.rem == 0))
        return;
    if (bucket_time_less(back, over))
        over = bucket_time_subtract(limit, over, back);
    else
        over = (struct bucket_time){0, 0};
    bucket_owe(cell, now_ns, over);
}

/* floor((depth - over) / T) = floor(((depth - over) * denom) / (T * denom)), both integers. */
static uint64_t bucket_remaining(const struct weir_limit *limit, struct bucket_time left)
{
    uint64_t period = limit->period_ns * limit->denom + limit->period_rem; /* W / gcd(N, W) */
    struct wide units = wide_add(wide_multiply(left.ns, limit->denom), left.rem);
    uint64_t rest;

    return wide_divide(units.hi, units.lo, period, &rest);
}

void bucket_report(const struct weir_limit *limit, const struct weir_cell *cell,
                   const struct weir_use *use, bool allowed, struct weir_report *report)
{
    struct bucket_time over = bucket_over(cell, use->now_ns);
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    report->limit = limit->capacity;
    report->remaining = 0;
    report->retry_after_ns = 0;
    report->reset_after_ns = over.ns + (over.rem != 0);
    if (limit->spec.rate != 0 && !bucket_time_less(depth, over))
        report->remaining = bucket_remaining(limit, bucket_time_subtract(limit, depth, over));
    if (allowed)
        return;
    if (use->cost > limit->capacity) {
        report->retry_after_ns = WEIR_NEVER;
        return;
    }
    /* Admitted as soon as over - d + c*T <= depth. */
    over = bucket_time_add(limit, over, bucket_cost(limit, use->cost));
    if (bucket_time_less(depth, over)) {
        over = bucket_time_subtract(limit, over, depth);
        report->retry_after_ns = over.ns + (over.rem != 0);
    }
}

bool bucket_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    if (limit->spec.rate == 0)
        return cell->a == 0 && cell->b == 0;
    return cell->b < limit->denom && cell->a <= BUCKET_TAT_MAX - (cell->b != 0);
}

/* over / T_from units are used, which is over * denom_from / (W/g)_from; in the new 1/denom ns that
 * is X * (W/g)_to / (W/g)_from, where X = over in old 1/denom ns (below 2^103). The quotient by the
 * old period may need 128 bits, its product with the new one 192: then it saturates. */
void bucket_convert(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns)
{
    struct bucket_time over = bucket_over(cell, now_ns);

    if (from->spec.rate == 0 || to->spec.rate == 0) {
        *cell = (struct weir_cell){0, 0};
        return;
    }
    cell->b = 0;
    if (over.ns == 0 && over.rem == 0)
        return;

    uint64_t period_from = from->period_ns * from->denom + from->period_rem;
    uint64_t period_to = to->period_ns * to->denom + to->period_rem;
    struct wide used = wide_add(wide_multiply(over.ns, from->denom), over.rem);
    uint64_t high = used.hi / period_from, rest;
    uint64_t low = wide_divide(used.hi % period_from, used.lo, period_from, &rest);
    struct wide part = wide_multiply(rest, period_to);
    struct wide top = wide_multiply(high, period_to);
    struct wide units = wide_multiply(low, period_to);

    /* rest < period_from, so this quotient is below period_to. */
    units = wide_add(units, wide_divide(part.hi, part.lo, period_from, &rest));
    units.hi += top.lo;
    if (top.hi != 0 || units.hi < top.lo || units.hi >= to->denom) {
        bucket_owe(cell, now_ns, (struct bucket_time){BUCKET_TAT_MAX, 0});
        return;
    }
    over.ns = wide_divide(units.hi, units.lo, to->denom, &over.rem);
    if (over.ns > BUCKET_TAT_MAX)
        over.ns = BUCKET_TAT_MAX;
    bucket_owe(cell, now_ns, over);
}
