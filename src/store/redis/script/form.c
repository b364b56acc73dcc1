/* SPDX-License-Identifier: Apache-2.0 */
/* see form.h */
#include "store/redis/script/form.h"

#include "core/algorithm.h"
#include "core/bucket.h"
#include "core/cell.h"
#include "core/quota.h"
#include "core/scale.h"
#include "core/text/reason.h"
#include "store/redis/script/texts.h"

#define UNIT_NS 1000             /* all times of scripts are whole microseconds */
#define PACKED_LEASES 1000000000 /* of a limit that is not known: room for whatever is there */

/* Strict windows, segments and quotas whose units come over begin anew when they become another. */
enum {
    KIND_FIXED_WINDOW = REDIS_KIND_FIRST,
    KIND_WINDOW,
    KIND_LOG,
    KIND_TOKEN_BUCKET,
    KIND_GCRA,
    KIND_LEAKY_BUCKET,
    KIND_LEAKY_QUEUE,
    KIND_CONCURRENCY,
    KIND_WINDOW_STRICT,
    KIND_SEGMENTS,
    KIND_SEGMENTS_STRICT,
    KIND_QUOTA,
    KIND_QUOTA_ROLLOVER,
    KIND_PREPAID,
};

/* --- Checks ----------------------------------------------------------------------------------- */

static char *pack_bucket(char *out, const struct weir_check *check, const struct weir_lease *lease,
                         uint64_t now_ns)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time weight, depth;

    out = redis_put(out, 1000 * limit->denom);
    if (limit->spec.rate == 0) {
        out = redis_put(out, 0);
        out = redis_put(out, check->cost > 0);
        for (int i = 0; i < 3; i++)
            out = redis_put(out, 0);
        return out;
    }
    /* W / gcd(N, W): a multiple of 8 above 2^53, since W is one of 1000, so a double. */
    out = redis_put_double(out, (double)(limit->period_ns * limit->denom + limit->period_rem));
    scale_weight(check, check->cost, &weight);
    scale_depth(check, &depth);
    return redis_put_bucket_time(redis_put_bucket_time(out, limit, weight), limit, depth);
}

/* A window or a life, N, and the cost: all that a log and prepaid units need. */
static char *pack_log(char *out, const struct weir_check *check, const struct weir_lease *lease,
                      uint64_t now_ns)
{
    const struct weir_limit_spec *spec = &check->limit->spec;

    return redis_put(redis_put(redis_put(out, spec->window_ns / UNIT_NS), spec->rate), check->cost);
}

static char *pack_window(char *out, const struct weir_check *check, const struct weir_lease *lease,
                         uint64_t now_ns)
{
    const struct weir_limit *limit = check->limit;

    out = redis_put(out, limit->segment_ns / UNIT_NS);
    out = redis_put(redis_put(out, limit->spec.rate), check->cost);
    return redis_put(out, limit->spec.segments > 1 ? limit->spec.segments
                                                   : (UINT64_C(1) << limit->count_bits) - 1);
}

static char *pack_lease(char *out, const struct weir_lease *lease)
{
    return redis_put_word(redis_put_word(out, lease->id), lease->owner);
}

static char *pack_concurrency(char *out, const struct weir_check *check,
                              const struct weir_lease *lease, uint64_t now_ns)
{
    return pack_lease(pack_log(out, check, lease, now_ns), lease);
}

char *redis_pack_operation(char *out, const struct weir_lease *lease)
{
    *out++ = (char)KIND_CONCURRENCY;
    *out++ = 0;
    return pack_lease(redis_put(redis_put(redis_put(out, 0), PACKED_LEASES), 0), lease);
}

/* Period 0 has no beginning: a time before it is taken for its start. */
static char *pack_quota(char *out, const struct weir_check *check, const struct weir_lease *lease,
                        uint64_t now_ns)
{
    const struct weir_limit_spec *spec = &check->limit->spec;
    uint64_t here = quota_period(spec, now_ns);

    out = redis_put_word(out, spec->calendar);
    out = redis_put(redis_put(redis_put(out, spec->rate), spec->rollover), check->cost);
    for (uint64_t i = 0; i < REDIS_QUOTA_BOUNDS; i++) {
        bool begins = here + i > REDIS_QUOTA_BOUNDS_BEFORE;

        out = redis_put(
            out, begins ? quota_begins(spec, here + i - REDIS_QUOTA_BOUNDS_BEFORE) / 1000 : 0);
    }
    return out;
}

char *redis_pack_check(char *out, const struct weir_check *check, const struct weir_lease *lease,
                       uint64_t now_ns)
{
    const struct redis_form *form = redis_form_of(check->limit);

    *out++ = (char)form->kind;
    *out++ = (char)(check->flags & ~WEIR_CHECK_NETWORK); /* whose bit is REDIS_FLAG_FLOOR there */
    return form->pack(out, check, lease, now_ns);
}

/* --- Limits ----------------------------------------------------------------------------------- */

static int accepts_quota(const struct weir_limit *limit, struct weir_reason *reason)
{
    const struct weir_limit_spec *spec = &limit->spec;

    for (uint32_t i = 0; i < spec->bound_count; i++)
        if (spec->bounds[i] % UNIT_NS != 0) {
            reason_text(reason, "a period does not begin at a whole microsecond, as Redis needs");
            return WEIR_ERR_RANGE;
        }
    return 0;
}

static int accepts_queue(const struct weir_limit *limit, struct weir_reason *reason)
{
    if (limit->depth_ns < WEIR_DEPTH_MAX_NS ||
        (limit->depth_ns == WEIR_DEPTH_MAX_NS && limit->depth_rem == 0))
        return 0;
    reason_text(reason, "burst is ");
    reason_number(reason, limit->spec.burst);
    reason_text(reason, "; in Redis a full queue and one more request may take at most ");
    reason_number(reason, WEIR_DEPTH_MAX_NS);
    reason_text(reason, " ns");
    return WEIR_ERR_RANGE;
}

/* --- Replies ---------------------------------------------------------------------------------- */

bool redis_part_begin(struct redis_part *part, struct weir_bytes text)
{
    if (text.size == 0 || text.size % 8 != 1)
        return false;
    part->mark = (uint8_t)text.data[0];
    part->is_state = part->mark >= REDIS_KIND_FIRST;
    if (part->is_state)
        part->mark = REDIS_MARK_ADMITTED | REDIS_MARK_CHARGED;
    part->now_us = 0;
    part->at = text.data + 1;
    part->left = text.size / 8;
    return true;
}

bool redis_part_number(struct redis_part *part, uint64_t max, uint64_t *value)
{
    if (part->left == 0)
        return false;
    part->left--;
    return redis_unpack(&part->at, max, value);
}

bool redis_part_time(struct redis_part *part, uint64_t *us)
{
    return redis_part_number(part, REDIS_TIME_MAX_US, us);
}

bool redis_part_skip(struct redis_part *part, size_t numbers)
{
    if (part->left < numbers)
        return false;
    part->left -= numbers;
    part->at += 8 * numbers;
    return true;
}

/* What the queue owed before, rounded up to a nanosecond. */
static bool read_delay(struct redis_part *part, const struct weir_check *check,
                       struct weir_outcome *outcome)
{
    const struct weir_limit *limit = check->limit;
    struct bucket_time owed = bucket_owed(&outcome->cell, part->now_us * 1000);
    struct bucket_time weight;
    uint64_t us, units;

    scale_weight(check, check->cost, &weight);
    if (part->left > 0) {
        if (!redis_part_number(part, REDIS_TAT_MAX_US, &us) ||
            !redis_part_number(part, UINT64_MAX, &units) || units >= 1000 * limit->denom)
            return false;
        owed = redis_bucket_time(limit, us, units);
    } else if (part->mark & REDIS_MARK_CHARGED) {
        if (!part->is_state || bucket_time_less(owed, weight))
            return false;
        owed = bucket_time_subtract(limit, owed, weight);
    }
    outcome->delay_ns = part->mark & REDIS_MARK_ADMITTED ? owed.ns + (owed.rem != 0) : 0;
    return true;
}

static bool read_bucket(struct redis_part *part, const struct weir_check *check,
                        struct weir_outcome *outcome)
{
    const struct weir_limit *limit = check->limit;
    uint64_t us, units, since;

    if (!redis_part_number(part, REDIS_TAT_MAX_US - REDIS_EPOCH_US, &us) ||
        !redis_part_number(part, UINT64_MAX, &units) || units >= 1000 * limit->denom)
        return false;
    if (part->is_state && !redis_part_skip(part, 2))
        return false;
    if (!redis_part_number(part, REDIS_TIME_MAX_US - REDIS_EPOCH_US, &since))
        return false;
    part->now_us = since + REDIS_EPOCH_US;

    struct bucket_time tat = redis_bucket_time(limit, us + REDIS_EPOCH_US, units);

    if (tat.ns >= BUCKET_TAT_MAX)
        tat = (struct bucket_time){BUCKET_TAT_MAX, 0};
    outcome->cell = (struct weir_cell){tat.ns, tat.rem};
    if (limit->spec.rate == 0)
        outcome->cell = (struct weir_cell){0, 0};
    return limit->spec.algorithm != WEIR_LEAKY_QUEUE || read_delay(part, check, outcome);
}

static bool read_window(struct redis_part *part, const struct weir_check *check,
                        struct weir_outcome *outcome)
{
    const struct weir_limit *limit = check->limit;
    uint64_t start, count, before = 0;

    if (!redis_part_time(part, &start) || !redis_part_number(part, UINT32_MAX, &count))
        return false;
    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW &&
        !redis_part_number(part, UINT32_MAX, &before))
        return false;
    if (part->is_state && !redis_part_skip(part, 1))
        return false;
    if (!redis_part_time(part, &part->now_us) || start * 1000 % limit->segment_ns != 0)
        return false;
    outcome->cell = (struct weir_cell){start * 1000 / limit->segment_ns, count | before << 32};
    return window_valid(limit, &outcome->cell);
}

static bool read_quota(struct redis_part *part, const struct weir_check *check,
                       struct weir_outcome *outcome)
{
    uint64_t fresh, count, before;

    if (part->is_state || !redis_part_number(part, REDIS_TAT_MAX_US, &fresh) ||
        !redis_part_number(part, UINT32_MAX, &count) ||
        !redis_part_number(part, UINT32_MAX, &before) || !redis_part_time(part, &part->now_us))
        return false;
    outcome->cell = (struct weir_cell){fresh * 1000, count | before << 32};
    return quota_valid(check->limit, &outcome->cell);
}

static bool read_prepaid(struct redis_part *part, const struct weir_check *check,
                         struct weir_outcome *outcome)
{
    uint64_t ends, left;

    if (part->is_state || !redis_part_time(part, &ends) ||
        !redis_part_number(part, PREPAID_MAX, &left) || !redis_part_time(part, &part->now_us))
        return false;
    outcome->cell = (struct weir_cell){ends * 1000, left};
    return weir_cell_valid(check->limit, &outcome->cell);
}

/* floor(count * left / w) */
static uint64_t faded(const struct weir_limit *limit, uint64_t count, uint64_t left_us)
{
    struct wide product = wide_multiply(count, left_us * 1000);
    uint64_t rest;

    return limit->spec.strict ? count
                              : wide_divide(product.hi, product.lo, limit->segment_ns, &rest);
}

/* The first nanosecond at which there is room: see segments_retry_at in core/span/segments.c. */
static bool read_segment_retry(struct redis_part *part, const struct weir_limit *limit,
                               uint64_t *after)
{
    uint64_t start, room, oldest, rest, at;

    if (!redis_part_time(part, &start) || !redis_part_number(part, WEIR_RATE_MAX, &room) ||
        !redis_part_number(part, UINT32_MAX, &oldest))
        return false;
    at = start * 1000;
    if (oldest > room) {
        struct wide product = wide_multiply(room + 1, limit->segment_ns);

        product.hi -= product.lo == 0;
        product.lo--;
        at += limit->segment_ns - wide_divide(product.hi, product.lo, oldest, &rest);
    }
    if (at < part->now_us * 1000)
        return false;
    *after = at - part->now_us * 1000;
    return true;
}

static bool read_entry_retry(struct redis_part *part, uint64_t *after)
{
    uint64_t expiry;

    if (!redis_part_time(part, &expiry) || expiry < part->now_us)
        return false;
    *after = (expiry - part->now_us) * 1000;
    return true;
}

static bool read_retry(struct redis_part *part, const struct weir_limit *limit, uint64_t *after)
{
    return limit->spec.algorithm == WEIR_SLIDING_WINDOW ? read_segment_retry(part, limit, after)
                                                        : read_entry_retry(part, after);
}

/* What is in use, and when the state will be fresh. */
static bool read_use(struct redis_part *part, const struct weir_limit *limit, uint64_t *used,
                     uint64_t *fresh_us)
{
    uint64_t start, newer, oldest, left;

    if (!redis_part_time(part, &part->now_us))
        return false;
    if (limit->spec.algorithm != WEIR_SLIDING_WINDOW)
        return redis_part_number(part, UINT64_MAX, used) && redis_part_time(part, fresh_us);
    if (!redis_part_time(part, &start) || !redis_part_number(part, UINT64_MAX, &newer) ||
        !redis_part_number(part, UINT32_MAX, &oldest) ||
        !redis_part_number(part, limit->segment_ns / 1000, &left) ||
        !redis_part_time(part, fresh_us))
        return false;
    *used = newer + faded(limit, oldest, left);
    return true;
}

static bool read_span(struct redis_part *part, const struct weir_check *check,
                      struct weir_outcome *outcome)
{
    const struct weir_limit *limit = check->limit;
    struct weir_report *report = &outcome->report;
    uint64_t rate = limit->spec.rate, used, fresh_us;

    if (part->is_state || !read_use(part, limit, &used, &fresh_us))
        return false;
    outcome->reported = true;
    report->limit = rate;
    report->remaining = used < rate ? rate - used : 0;
    report->reset_after_ns = fresh_us > part->now_us ? (fresh_us - part->now_us) * 1000 : 0;
    report->retry_after_ns = 0;
    if (!(part->mark & REDIS_MARK_ADMITTED) && scale_lifted(check, check->cost) > rate)
        report->retry_after_ns = WEIR_NEVER;
    outcome->next_ns = rate == 0 ? WEIR_NEVER : 0;
    if (part->mark & REDIS_MARK_RETRY && !read_retry(part, limit, &report->retry_after_ns))
        return false;
    return !(part->mark & REDIS_MARK_NEXT) || read_retry(part, limit, &outcome->next_ns);
}

/* --- The table -------------------------------------------------------------------------------- */

/* What a bucket and a quota are packed into; all else is shorter than a bucket. */
enum {
    SHORT = REDIS_PACKED_SHORT_MAX - REDIS_PACKED_MORE,
    LONG = REDIS_PACKED_MAX - REDIS_PACKED_MORE
};

enum { PLAIN, OTHER /* strict, or with a rollover */, SEGMENTS, SEGMENTS_STRICT, VARIANTS };

static const struct redis_form forms[ALGORITHMS][VARIANTS] = {
    [WEIR_FIXED_WINDOW] = {{KIND_FIXED_WINDOW, SHORT, &redis_script_fixed_window, pack_window,
                            read_window, NULL}},
    [WEIR_SLIDING_WINDOW] =
        {
            [PLAIN] = {KIND_WINDOW, SHORT, &redis_script_sliding_window, pack_window, read_window,
                       NULL},
            [OTHER] = {KIND_WINDOW_STRICT, SHORT, &redis_script_sliding_window, pack_window,
                       read_window, NULL},
            [SEGMENTS] = {KIND_SEGMENTS, SHORT, &redis_script_segments, pack_window, read_span,
                          NULL},
            [SEGMENTS_STRICT] = {KIND_SEGMENTS_STRICT, SHORT, &redis_script_segments, pack_window,
                                 read_span, NULL},
        },
    [WEIR_SLIDING_LOG] = {{KIND_LOG, SHORT, &redis_script_sliding_log, pack_log, read_span, NULL}},
    [WEIR_TOKEN_BUCKET] = {{KIND_TOKEN_BUCKET, SHORT, &redis_script_bucket, pack_bucket,
                            read_bucket, NULL}},
    [WEIR_GCRA] = {{KIND_GCRA, SHORT, &redis_script_bucket, pack_bucket, read_bucket, NULL}},
    [WEIR_LEAKY_BUCKET] = {{KIND_LEAKY_BUCKET, SHORT, &redis_script_bucket, pack_bucket,
                            read_bucket, NULL}},
    [WEIR_LEAKY_QUEUE] = {{KIND_LEAKY_QUEUE, SHORT, &redis_script_bucket, pack_bucket, read_bucket,
                           accepts_queue}},
    [WEIR_CONCURRENCY] = {{KIND_CONCURRENCY, SHORT, &redis_script_concurrency, pack_concurrency,
                           read_span, NULL}},
    [WEIR_QUOTA] =
        {
            [PLAIN] = {KIND_QUOTA, LONG, &redis_script_quota, pack_quota, read_quota,
                       accepts_quota},
            [OTHER] = {KIND_QUOTA_ROLLOVER, LONG, &redis_script_quota, pack_quota, read_quota,
                       accepts_quota},
        },
    /* In Redis only as WEIR_CHECK_COUNTER, whose script reads its own. */
    [WEIR_COUNTER] = {{KIND_SEGMENTS, SHORT, &redis_script_bucket, pack_log, read_bucket, NULL}},
    /* Too rare for a script of its own. */
    [WEIR_PREPAID] = {{KIND_PREPAID, SHORT, NULL, pack_log, read_prepaid, NULL}},
};

/* A limit has these fields only where its algorithm takes them. */
static unsigned variant_of(const struct weir_limit_spec *spec)
{
    unsigned other = spec->strict || spec->rollover != 0;

    return spec->segments > 1 ? SEGMENTS + other : PLAIN + other;
}

const struct redis_form *redis_form_of(const struct weir_limit *limit)
{
    const struct redis_form *variants = forms[limit->spec.algorithm];
    const struct redis_form *form = &variants[variant_of(&limit->spec)];

    return form->pack ? form : variants;
}

int redis_form_accepts(const struct weir_limit *limit, struct weir_reason *reason)
{
    const struct redis_form *form = redis_form_of(limit);

    return form->accepts ? form->accepts(limit, reason) : 0;
}
