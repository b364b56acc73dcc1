/* SPDX-License-Identifier: Apache-2.0 */
/* see weir/limit.h */
#include <stddef.h>

#include <weir/limit.h>

#include "core/bucket.h"
#include "core/counter.h"
#include "core/divisor.h"
#include "core/expiry_list.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/prepaid.h"
#include "core/segments.h"
#include "core/text/reason.h"
#include "core/window.h"

const char *weir_algorithm_name(enum weir_algorithm algorithm)
{
    switch (algorithm) {
    case WEIR_FIXED_WINDOW:
        return "fixed_window";
    case WEIR_SLIDING_WINDOW:
        return "sliding_window";
    case WEIR_SLIDING_LOG:
        return "sliding_log";
    case WEIR_TOKEN_BUCKET:
        return "token_bucket";
    case WEIR_GCRA:
        return "gcra";
    case WEIR_LEAKY_BUCKET:
    case WEIR_LEAKY_QUEUE:
        return "leaky_bucket";
    case WEIR_CONCURRENCY:
        return "concurrency";
    case WEIR_QUOTA:
        return "quota";
    case WEIR_COUNTER:
        return "counter";
    case WEIR_PREPAID:
        return "prepaid";
    }
    return "unknown";
}

/* A field, its value and its range. */
struct limit_range {
    const char *field;
    uint64_t value, min, max;
};

static int limit_check_range(const struct limit_range *range, struct weir_reason *reason)
{
    if (range->value >= range->min && range->value <= range->max)
        return 0;
    reason_text(reason, range->field);
    reason_text(reason, " is ");
    reason_number(reason, range->value);
    reason_text(reason, "; the range is ");
    reason_number(reason, range->min);
    reason_text(reason, " to ");
    reason_number(reason, range->max);
    return WEIR_ERR_RANGE;
}

static uint64_t limit_rate_max(enum weir_algorithm algorithm)
{
    if (bucket_is(algorithm))
        return WEIR_BUCKET_MAX;
    if (algorithm == WEIR_SLIDING_LOG)
        return WEIR_LOG_MAX;
    if (algorithm == WEIR_COUNTER)
        return COUNTER_WIDE_BITS;
    return algorithm == WEIR_CONCURRENCY ? WEIR_LEASES_MAX : WEIR_RATE_MAX;
}

/* T = W/N in lowest terms, and the depth, capacity * T. */
static int limit_init_bucket(struct weir_limit *limit, struct weir_reason *reason)
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

static int limit_check_segments(const struct weir_limit_spec *spec, struct weir_reason *reason)
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
static void limit_init_packing(struct weir_limit *limit)
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

static int limit_init_window(struct weir_limit *limit, struct weir_reason *reason)
{
    struct weir_limit_spec *spec = &limit->spec;

    if (spec->segments == 0)
        spec->segments = 1;

    int err = limit_check_segments(spec, reason);

    if (err != 0)
        return err;
    limit->segment_ns = spec->window_ns / spec->segments;
    if (spec->segments > 1)
        limit->span_words = segments_words(limit);
    else
        limit_init_packing(limit);
    return 0;
}

static int limit_init_quota(struct weir_limit *limit, struct weir_reason *reason)
{
    const struct weir_limit_spec *spec = &limit->spec;
    struct limit_range rollover = {"rollover", spec->rollover, 0, spec->rate};
    struct limit_range count = {"bound_count", spec->bound_count, WEIR_BOUNDS_MIN, UINT32_MAX};
    struct limit_range bound = {"a bound in ns", 0, 0, WINDOW_TIME_MAX_NS};
    int err = limit_check_range(&rollover, reason);

    if (err == 0)
        err = limit_check_range(&count, reason);
    for (uint32_t i = 0; err == 0 && i < spec->bound_count; i++) {
        bound.value = spec->bounds[i];
        err = limit_check_range(&bound, reason);
        bound.min = spec->bounds[i] + 1;
    }
    limit->capacity = spec->rate + spec->rollover;
    return err;
}

static void limit_init_counter(struct weir_limit *limit)
{
    limit->capacity = COUNTER_CAPACITY;
    limit->packs = limit->spec.rate <= COUNTER_PACKED_BITS;
}

/* Fills in the defaults; what an algorithm has no use for becomes 0. Padding is zero too, so that
 * equal limits are equal bytes. */
static void limit_set_spec(struct weir_limit *limit, const struct weir_limit_spec *spec)
{
    memset(limit, 0, sizeof(*limit));
    limit->spec.algorithm = spec->algorithm;
    limit->spec.rate = spec->rate;
    limit->spec.window_ns = spec->window_ns;
    if (bucket_is(spec->algorithm))
        limit->spec.burst = spec->burst > 0 ? spec->burst : spec->rate;
    if (spec->algorithm == WEIR_SLIDING_WINDOW) {
        limit->spec.segments = spec->segments;
        limit->spec.strict = spec->strict;
    }
    if (spec->algorithm == WEIR_QUOTA) {
        limit->spec.rollover = spec->rollover;
        limit->spec.calendar = spec->calendar;
        limit->spec.bounds = spec->bounds;
        limit->spec.bound_count = spec->bound_count;
    }
}

int weir_limit_init(struct weir_limit *limit, const struct weir_limit_spec *spec,
                    struct weir_reason *reason)
{
    if (reason)
        reason->text[0] = '\0';

    struct limit_range algorithm = {"algorithm", spec->algorithm, 0, WEIR_PREPAID};
    struct limit_range rate = {"rate", spec->rate, 0, limit_rate_max(spec->algorithm)};
    struct limit_range burst = {"burst", spec->burst, 0, WEIR_BUCKET_MAX};
    struct limit_range window = {"window in ns", spec->window_ns, WEIR_WINDOW_MIN_NS,
                                 WEIR_WINDOW_MAX_NS};
    int err = limit_check_range(&algorithm, reason);

    if (err == 0)
        err = limit_check_range(&rate, reason);
    if (err == 0)
        err = limit_check_range(&window, reason);
    if (err == 0 && bucket_is(spec->algorithm))
        err = limit_check_range(&burst, reason);
    if (err != 0)
        return err;

    struct weir_limit made;

    limit_set_spec(&made, spec);
    made.capacity = made.spec.burst;
    if (bucket_is(spec->algorithm)) {
        err = limit_init_bucket(&made, reason);
    } else {
        made.capacity = spec->rate;
        if (spec->algorithm == WEIR_SLIDING_LOG)
            made.span_words = log_words(&made);
        else if (spec->algorithm == WEIR_CONCURRENCY)
            made.span_words = expiry_list_words(expiry_list_most(&made));
        else if (spec->algorithm == WEIR_QUOTA)
            err = limit_init_quota(&made, reason);
        else if (spec->algorithm == WEIR_COUNTER)
            limit_init_counter(&made);
        else if (spec->algorithm == WEIR_PREPAID)
            made.capacity = PREPAID_MAX;
        else
            err = limit_init_window(&made, reason);
    }
    if (err == 0)
        memcpy(limit, &made, sizeof(made));
    return err;
}

bool weir_limit_converts(const struct weir_limit *from, const struct weir_limit *to)
{
    const struct weir_limit_spec *a = &from->spec, *b = &to->spec;

    if (a->algorithm != b->algorithm)
        return false;
    if (bucket_is(a->algorithm) || a->algorithm == WEIR_CONCURRENCY || a->algorithm >= WEIR_COUNTER)
        return true;
    if (a->algorithm == WEIR_QUOTA)
        return a->calendar == b->calendar && (a->rollover == 0) == (b->rollover == 0);
    return a->window_ns == b->window_ns && a->segments == b->segments && a->strict == b->strict;
}
