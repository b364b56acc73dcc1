/* SPDX-License-Identifier: Apache-2.0 */
/* see bucket.h */
#include "core/bucket.h"
#include "core/algorithm.h"
#include "core/divisor.h"
#include "core/text/reason.h"

void bucket_charge_time(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                        const struct bucket_time *time)
{
    bucket_owe(cell, now_ns, bucket_time_add(limit, bucket_owed(cell, now_ns), *time));
}

void bucket_charge_time_denied(const struct weir_limit *limit, struct weir_cell *cell,
                               uint64_t now_ns, const struct bucket_time *time,
                               const struct bucket_time *depth)
{
    struct bucket_time owed = bucket_owed(cell, now_ns);

    if (bucket_time_less(*depth, owed))
        return;
    owed = bucket_time_add(limit, owed, *time);
    bucket_owe(cell, now_ns, bucket_time_less(*depth, owed) ? *depth : owed);
}

void bucket_charge_denied(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                          uint64_t cost)
{
    struct bucket_time time = bucket_cost(limit, cost);
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    if (cost != 0 && limit->spec.rate != 0)
        bucket_charge_time_denied(limit, cell, now_ns, &time, &depth);
}

/* Where the bucket owes less than the refund, TAT becomes now: not earlier, so that a time before
 * this one finds no credit. */
void bucket_refund_time(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                        const struct bucket_time *time)
{
    struct bucket_time owed = bucket_owed(cell, now_ns);

    if (owed.ns == 0 && owed.rem == 0)
        return;
    if (bucket_time_less(*time, owed))
        owed = bucket_time_subtract(limit, owed, *time);
    else
        owed = (struct bucket_time){0, 0};
    bucket_owe(cell, now_ns, owed);
}

void bucket_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost)
{
    struct bucket_time time = bucket_cost(limit, cost);

    if (cost != 0 && limit->spec.rate != 0)
        bucket_refund_time(limit, cell, now_ns, &time);
}

/* floor((depth - owed) / T) = floor(((depth - owed) * denom) / (T * denom)), both integers. */
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
    struct bucket_time owed = bucket_owed(cell, use->now_ns);
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    report->limit = limit->capacity;
    report->remaining = 0;
    report->retry_after_ns = 0;
    report->reset_after_ns = owed.ns + (owed.rem != 0);
    if (limit->spec.rate != 0 && !bucket_time_less(depth, owed))
        report->remaining = bucket_remaining(limit, bucket_time_subtract(limit, depth, owed));
    if (allowed)
        return;
    if (use->cost > limit->capacity) {
        report->retry_after_ns = WEIR_NEVER;
        return;
    }
    /* Admitted as soon as owed - d + c*T <= depth. */
    owed = bucket_time_add(limit, owed, bucket_cost(limit, use->cost));
    if (bucket_time_less(depth, owed)) {
        owed = bucket_time_subtract(limit, owed, depth);
        report->retry_after_ns = owed.ns + (owed.rem != 0);
    }
}

bool bucket_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    uint64_t tat_ns = cell->a, tat_rem = cell->b;

    if (limit->spec.rate == 0)
        return tat_ns == 0 && tat_rem == 0;
    return tat_rem < limit->denom && tat_ns <= BUCKET_TAT_MAX - (tat_rem != 0);
}

/* owed / T_from units are used, which is owed * denom_from / (W/g)_from; in the new 1/denom ns that
 * is X * (W/g)_to / (W/g)_from, where X = owed in old 1/denom ns (below 2^103). The quotient by the
 * old period may need 128 bits, its product with the new one 192: then it saturates. */
void bucket_convert(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns)
{
    struct bucket_time owed = bucket_owed(cell, now_ns);

    if (from->spec.rate == 0 || to->spec.rate == 0) {
        *cell = (struct weir_cell){0, 0};
        return;
    }
    if (owed.ns == 0 && owed.rem == 0) {
        *cell = (struct weir_cell){.a = cell->a, .b = 0};
        return;
    }

    uint64_t period_from = from->period_ns * from->denom + from->period_rem;
    uint64_t period_to = to->period_ns * to->denom + to->period_rem;
    struct wide used = wide_add(wide_multiply(owed.ns, from->denom), owed.rem);
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
    owed.ns = wide_divide(units.hi, units.lo, to->denom, &owed.rem);
    if (owed.ns > BUCKET_TAT_MAX)
        owed.ns = BUCKET_TAT_MAX;
    bucket_owe(cell, now_ns, owed);
}

/* T = W/N in lowest terms, and the depth, capacity * T. */
int bucket_init(struct weir_limit *limit, struct weir_reason *reason)
{
    const struct weir_limit_spec *spec = &limit->spec;

    limit->denom = 1;
    limit->packs = true;
    if (spec->rate == 0) {
        limit->capacity = 0;
        return 0;
    }
    uint64_t divisor = weir_divisor(spec->rate, spec->window_ns);
    uint64_t period = spec->window_ns / divisor;

    limit->denom = spec->rate / divisor;
    limit->period_ns = period / limit->denom;
    limit->period_rem = period % limit->denom;
    limit->packs = limit->denom <= BUCKET_PACKED_DENOM_MAX;

    struct wide depth = wide_multiply(spec->burst, period);
    uint64_t rem = 0, ns = WEIR_DEPTH_MAX_NS;

    if (depth.hi < limit->denom)
        ns = wide_divide(depth.hi, depth.lo, limit->denom, &rem);
    if (depth.hi >= limit->denom || ns > WEIR_DEPTH_MAX_NS ||
        (ns == WEIR_DEPTH_MAX_NS && rem != 0)) {
        reason_text(reason, "burst is ");
        reason_number(reason, spec->burst);
        reason_text(reason, ", which takes longer than ");
        reason_number(reason, WEIR_DEPTH_MAX_NS);
        reason_text(reason, " ns to refill at rate ");
        reason_number(reason, spec->rate);
        return WEIR_ERR_RANGE;
    }
    if (spec->algorithm == WEIR_LEAKY_QUEUE) {
        struct wide one_more = wide_multiply(++limit->capacity, period);

        ns = wide_divide(one_more.hi, one_more.lo, limit->denom, &rem);
    }
    limit->depth_ns = ns;
    limit->depth_rem = rem;
    limit->plain = limit->denom == 1 && spec->algorithm != WEIR_LEAKY_QUEUE;
    return 0;
}
