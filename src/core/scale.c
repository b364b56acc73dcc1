/* SPDX-License-Identifier: Apache-2.0 */
/* see scale.h */
#include "core/scale.h"

#include "core/cell.h"

static uint64_t add_saturating(uint64_t number, uint64_t more)
{
    return number > UINT64_MAX - more ? UINT64_MAX : number + more;
}

static bool is_bucket(const struct weir_check *check)
{
    return bucket_is(check->limit->spec.algorithm);
}

bool scale_is_weighed(const struct weir_check *check)
{
    return check->scale != 0 && check->scale_kind == WEIR_SCALE_RATE && is_bucket(check) &&
           check->limit->spec.rate != 0;
}

/* What a scale keeps of the capacity for others; not for quotas. */
static uint64_t kept(const struct weir_check *check)
{
    return check->limit->capacity - scale_capacity(check);
}

/* W / gcd(N, W): T in units of 1/denom ns, below 2^55. */
static uint64_t period_units(const struct weir_limit *limit)
{
    return limit->period_ns * limit->denom + limit->period_rem;
}

uint64_t scale_capacity(const struct weir_check *check)
{
    return scale_part(check->limit->capacity, scale_percent(check));
}

/* number * factor, which must fit 128 bits. */
static struct wide multiply(struct wide number, uint64_t factor)
{
    struct wide product = wide_multiply(number.lo, factor);

    product.hi += number.hi * factor;
    return product;
}

/* c * (W/g) * 100 is below 2^126, whatever the cost. */
void scale_weight(const struct weir_check *check, uint64_t cost, struct bucket_time *weight)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time depth = {limit->depth_ns, limit->depth_rem};

    if (!scale_is_weighed(check)) {
        *weight = bucket_cost(limit, cost);
        return;
    }

    struct wide product = multiply(wide_multiply(cost, period_units(limit)), 100);
    uint64_t rest;
    struct wide units = {product.hi / check->scale,
                         wide_divide(product.hi % check->scale, product.lo, check->scale, &rest)};

    *weight = (struct bucket_time){BUCKET_TAT_MAX, 0};
    if (units.hi < limit->denom)
        weight->ns = wide_divide(units.hi, units.lo, limit->denom, &weight->rem);
    if (weight->ns >= BUCKET_TAT_MAX)
        *weight = (struct bucket_time){BUCKET_TAT_MAX, 0};
    if (cost == 1 && !check->scale_alone && bucket_time_less(depth, *weight))
        *weight = depth;
}

bool scale_is_shallow(const struct weir_check *check)
{
    return scale_is_weighed(check) && check->limit->capacity * check->scale < 100;
}

void scale_depth(const struct weir_check *check, struct bucket_time *depth)
{
    const struct weir_limit *limit = check->limit;

    *depth = (struct bucket_time){limit->depth_ns, limit->depth_rem};
    if (check->scale != 0 && check->scale_kind == WEIR_SCALE_RESERVE)
        *depth = bucket_cost(limit, scale_capacity(check));
    else if (check->scale_alone && scale_is_shallow(check))
        scale_weight(check, 1, depth);
}

void scale_load_add(struct scale_load *load, const struct weir_check *check)
{
    struct bucket_time weight;

    load->cost = add_saturating(load->cost, check->cost);
    if (!is_bucket(check) || check->limit->spec.rate == 0)
        return;
    scale_weight(check, check->cost, &weight);
    load->weight = bucket_time_add(check->limit, load->weight, weight);
    if (load->weight.ns >= BUCKET_TAT_MAX)
        load->weight = (struct bucket_time){BUCKET_TAT_MAX, 0};
}

static bool test_bucket(const struct weir_check *check, const struct weir_cell *cell,
                        uint64_t now_ns, const struct scale_load *load, uint64_t *delay_ns)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time owed = bucket_owed(cell, now_ns), depth;

    *delay_ns = 0;
    scale_depth(check, &depth);
    if (load->cost > 0 && limit->spec.rate == 0)
        return false;
    if (load->cost == 0)
        depth = (struct bucket_time){limit->depth_ns, limit->depth_rem};
    if (bucket_time_less(depth, bucket_time_add(limit, owed, load->weight)))
        return false;
    if (limit->spec.algorithm == WEIR_LEAKY_QUEUE)
        *delay_ns = owed.ns + (owed.rem != 0);
    return true;
}

bool scale_cell_test(const struct weir_check *check, const struct weir_cell *cell, uint64_t now_ns,
                     const struct scale_load *load, uint64_t *delay_ns)
{
    const struct weir_limit *limit = check->limit;

    if (is_bucket(check))
        return test_bucket(check, cell, now_ns, load, delay_ns);
    *delay_ns = 0;
    if (cell_is_quota(limit))
        return quota_test_at(limit, cell, now_ns, load->cost, scale_percent(check));
    return cell_test(limit, cell, now_ns, scale_lifted(check, load->cost), delay_ns);
}

uint64_t scale_lifted(const struct weir_check *check, uint64_t cost)
{
    return cost > 0 && check->scale != 0 ? add_saturating(cost, kept(check)) : cost;
}

void scale_cell_charge(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns)
{
    struct bucket_time weight;

    if (!scale_is_weighed(check)) {
        cell_charge(check->limit, cell, now_ns, check->cost);
    } else if (check->cost > 0) {
        scale_weight(check, check->cost, &weight);
        bucket_charge_time(check->limit, cell, now_ns, &weight);
    }
}

void scale_cell_charge_denied(const struct weir_check *check, struct weir_cell *cell,
                              uint64_t now_ns)
{
    struct bucket_time weight, depth;

    if (!scale_is_weighed(check)) {
        weir_cell_charge_denied(check->limit, cell, now_ns, check->cost);
    } else if (check->cost > 0) {
        scale_weight(check, check->cost, &weight);
        scale_depth(check, &depth);
        bucket_charge_time_denied(check->limit, cell, now_ns, &weight, &depth);
    }
}

void scale_cell_fill(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns)
{
    if (scale_is_weighed(check))
        scale_cell_charge_denied(check, cell, now_ns);
    else
        cell_fill(check->limit, cell, now_ns, check->cost);
}

void scale_cell_refund(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns,
                       uint64_t charged_at_ns)
{
    struct bucket_time weight;

    if (!scale_is_weighed(check)) {
        weir_cell_refund(check->limit, cell, now_ns, charged_at_ns, check->cost);
    } else if (check->cost > 0) {
        scale_weight(check, check->cost, &weight);
        bucket_refund_time(check->limit, cell, now_ns, &weight);
    }
}

/* With P = period_units, and left in whole units, floor(c * P * 100 / s) <= left iff
 * c * P * 100 < (left + 1) * s; and a cost of 1 may weigh less than that. left is below 2^103. */
uint64_t scale_bucket_room(const struct weir_check *check, const struct weir_cell *cell,
                           uint64_t now_ns, const struct bucket_time *depth)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time owed = bucket_owed(cell, now_ns), left, one;
    uint64_t rest, room;

    if (bucket_time_less(*depth, owed))
        return 0;
    left = bucket_time_subtract(limit, *depth, owed);

    struct wide units = wide_add(wide_multiply(left.ns, limit->denom), left.rem);
    struct wide product = wide_add(multiply(units, check->scale), check->scale - 1U);

    room = wide_divide(product.hi, product.lo, 100 * period_units(limit), &rest);
    scale_weight(check, 1, &one);
    return room == 0 && !bucket_time_less(left, one) ? 1 : room;
}

static void report_weighed(const struct weir_check *check, const struct weir_cell *cell,
                           const struct weir_use *use, bool allowed, struct weir_report *report)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time owed = bucket_owed(cell, use->now_ns), weight, depth;

    scale_depth(check, &depth);
    report->limit = scale_capacity(check);
    report->remaining = scale_bucket_room(check, cell, use->now_ns, &depth);
    report->retry_after_ns = 0;
    report->reset_after_ns = owed.ns + (owed.rem != 0);
    if (allowed)
        return;
    if (use->cost > report->limit) {
        report->retry_after_ns = WEIR_NEVER;
        return;
    }
    if (use->cost == 0)
        depth = (struct bucket_time){limit->depth_ns, limit->depth_rem};
    scale_weight(check, use->cost, &weight);
    owed = bucket_time_add(limit, owed, weight);
    if (bucket_time_less(depth, owed)) {
        owed = bucket_time_subtract(limit, owed, depth);
        report->retry_after_ns = owed.ns + (owed.rem != 0);
    }
}

void scale_report(const struct weir_check *check, struct weir_report *report)
{
    uint64_t capacity = report->limit, part = scale_part(capacity, scale_percent(check));
    uint64_t left = report->remaining, others = capacity - part;

    report->limit = part;
    if (left == capacity)
        report->remaining = part;
    else if (scale_is_weighed(check))
        report->remaining = left * check->scale / 100;
    else
        report->remaining = left > others ? left - others : 0;
}

void scale_cell_report(const struct weir_check *check, const struct weir_cell *cell,
                       const struct weir_use *use, bool allowed, struct weir_report *report)
{
    struct weir_use lifted = *use;

    if (cell_is_quota(check->limit)) {
        quota_report_at(check->limit, cell, use, scale_percent(check), report);
        if (allowed)
            report->retry_after_ns = 0;
    } else if (scale_is_weighed(check)) {
        report_weighed(check, cell, use, allowed, report);
    } else {
        lifted.cost = scale_lifted(check, use->cost);
        weir_cell_report(check->limit, cell, &lifted, allowed, report);
        scale_report(check, report);
    }
}
