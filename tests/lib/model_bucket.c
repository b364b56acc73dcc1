/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets, in token nanoseconds: arrival = TAT * N is an integer, since T * N = W. What is owed at
 * t is max(arrival - t*N, 0); a cost c adds c * W; the bucket holds capacity * W. */
#include "model.h"

model_wide model_bucket_owed(const struct model *model, uint64_t now_ns)
{
    model_wide now = (model_wide)now_ns * model->spec.rate;

    return model->arrival > now ? model->arrival - now : 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* c * W; at a rate of s percent c * W * 100 / s, rounded down to a multiple of gcd(N, W), which is
 * 1/denom of a nanosecond; of a cost of 1 at most the depth, unless the state is charged at that
 * rate alone. */
model_wide model_bucket_weight(const struct model *model, uint64_t cost)
{
    uint64_t w = model->spec.window_ns, unit = common_divisor(model->spec.rate, w);
    model_wide weight = (model_wide)cost * w, depth = (model_wide)model_capacity(model) * w;

    if (model->percent == 0 || !model->at_rate)
        return weight;
    weight = (model_wide)cost * (w / unit) * 100 / model->percent * unit;
    return cost == 1 && !model->alone && weight > depth ? depth : weight;
}

/* Whether not one whole request of the burst is left at the scale, and one passes after the other.
 */
static bool model_bucket_is_shallow(const struct model *model)
{
    return model->percent != 0 && model->at_rate && model->alone &&
           model_capacity(model) * model->percent / 100 == 0;
}

/* Each algorithm by its own words. */
bool model_bucket_admits(const struct model *model, uint64_t now_ns, uint64_t cost)
{
    const struct weir_limit_spec *spec = &model->spec;
    model_wide owed = model_bucket_owed(model, now_ns), w = spec->window_ns, b = spec->burst;
    model_wide weight = model_bucket_weight(model, cost);

    if (spec->rate == 0)
        return cost == 0;
    if (cost > 0 && model_bucket_is_shallow(model)) /* iff TAT <= now */
        return cost == 1 && owed == 0;
    switch (spec->algorithm) {
    case WEIR_TOKEN_BUCKET: /* level >= c; in debt the level is below every c */
        return owed <= b * w && b * w - owed >= weight;
    case WEIR_GCRA: { /* max(TAT, t) + c*T - t <= B*T */
        model_wide now = (model_wide)now_ns * spec->rate;
        model_wide arrival = model->arrival > now ? model->arrival : now;

        return arrival + weight - now <= b * w;
    }
    case WEIR_LEAKY_BUCKET: /* level + c <= B */
        return owed + weight <= b * w;
    default: /* leaky_queue: delay + (c - 1)*T <= B*T */
        return owed + weight <= b * w + w;
    }
}

/* TAT stays below 2^63 ns. */
static void model_bucket_set(struct model *model, model_wide arrival)
{
    model_wide most = (model_wide)(UINT64_MAX >> 1) * model->spec.rate;

    model->arrival = arrival < most ? arrival : most;
}

void model_bucket_charge(struct model *model, uint64_t now_ns, uint64_t cost)
{
    model_wide now = (model_wide)now_ns * model->spec.rate;
    model_wide base = model->arrival > now ? model->arrival : now;

    model_bucket_set(model, base + model_bucket_weight(model, cost));
}

void model_bucket_charge_denied(struct model *model, uint64_t now_ns, uint64_t cost)
{
    model_wide now = (model_wide)now_ns * model->spec.rate;
    model_wide owed = model_bucket_owed(model, now_ns);
    model_wide empty = (model_wide)model_capacity(model) * model->spec.window_ns;
    model_wide after = owed + model_bucket_weight(model, cost);

    if (model_bucket_is_shallow(model)) /* what is denied waits as after a request that was not */
        empty = model_bucket_weight(model, 1);
    if (cost == 0 || owed > empty)
        return;
    model_bucket_set(model, now + (after < empty ? after : empty));
}

void model_bucket_refund(struct model *model, uint64_t now_ns, uint64_t cost)
{
    model_wide owed = model_bucket_owed(model, now_ns);
    model_wide back = model_bucket_weight(model, cost);

    if (cost != 0 && owed > 0)
        model->arrival -= back < owed ? back : owed;
}

/* owed / W units are used; they become owed / W * W' token nanoseconds, rounded down to a multiple
 * of gcd(N', W'), which is 1/denom' of a nanosecond. */
void model_bucket_convert(struct model *model, const struct weir_limit_spec *to, uint64_t now_ns)
{
    uint64_t n = to->rate, w = to->window_ns, a;
    model_wide owed = model_bucket_owed(model, now_ns), whole, after;

    if (model->spec.rate == 0 || n == 0) {
        model->arrival = 0;
        return;
    }
    a = common_divisor(n, w);
    if (owed == 0) {
        model->arrival = model->arrival / model->spec.rate * n;
        return;
    }
    whole = owed / model->spec.window_ns;
    after = owed % model->spec.window_ns * (w / a) / model->spec.window_ns;
    model->spec.rate = n;
    if (__builtin_mul_overflow(whole, (model_wide)(w / a), &whole) ||
        __builtin_add_overflow(whole, after, &after) ||
        __builtin_mul_overflow(after, (model_wide)a, &after))
        after = (model_wide)UINT64_MAX * n;
    if (after > (model_wide)UINT64_MAX * n)
        after = (model_wide)UINT64_MAX * n;
    model_bucket_set(model, (model_wide)now_ns * n + after);
}
