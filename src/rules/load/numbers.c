/* SPDX-License-Identifier: Apache-2.0 */
/* see numbers.h */
#include "rules/load/numbers.h"

#include <stdio.h>
#include <string.h>

#include "core/bucket.h"
#include "core/wide.h"
#include "rules/calendar/calendar.h"
#include "rules/load/problems.h"

#define NS_PER_US 1000
#define DAY_NS (UINT64_C(86400) * 1000000000)

static const char *const units[] = {"day", "week", "month", "year"};
static const uint64_t unit_ns[] = {DAY_NS, 7 * DAY_NS, 30 * DAY_NS, 365 * DAY_NS};

uint64_t rules_unit_ns(uint8_t unit)
{
    return unit_ns[unit];
}

static bool is_word(struct weir_bytes text, const char *word)
{
    return strlen(word) == text.size && memcmp(text.data, word, text.size) == 0;
}

/* What stands in place of numbers anywhere. */
static bool parse_word(struct weir_bytes text, struct weir_rate *rate)
{
    if (is_word(text, "unlimited") || is_word(text, "plan")) {
        rate->kind = text.data[0] == 'u' ? WEIR_RATE_UNLIMITED : WEIR_RATE_PLAN;
        return true;
    }
    return false;
}

static int parse_quota(struct weir_bytes text, struct weir_rate *rate, uint8_t *unit,
                       struct weir_reason *reason)
{
    struct rules_quote quote;
    *rate = (struct weir_rate){.kind = WEIR_RATE_COUNT};
    if (parse_word(text, rate))
        return 0;
    int digits = weir_digits_parse(&rate->count, text.data, text.size);
    if (digits > 0 && (size_t)digits < text.size && text.data[digits] == '/') {
        struct weir_bytes name = {text.data + digits + 1, text.size - (size_t)digits - 1};
        for (int i = RULES_DAILY; i <= RULES_YEARLY; i++) {
            if (is_word(name, units[i])) {
                *unit = (uint8_t)i;
                return 0;
            }
        }
    }
    snprintf(reason->text, sizeof(reason->text),
             "%.80s is no quota; allowed are `N/day`, `N/week`, `N/month`, `N/year`, "
             "`unlimited` and `plan` (an hour is no calendar: `algorithm: fixed_window` and "
             "`rate: N/h`)",
             rules_quote(&quote, text.data, text.size));
    return WEIR_ERR_SYNTAX;
}

/* `limit` of concurrency: a number, unlimited or plan. */
static int parse_leases(struct weir_bytes text, struct weir_rate *rate, struct weir_reason *reason)
{
    struct rules_quote quote;
    *rate = (struct weir_rate){.kind = WEIR_RATE_COUNT};
    if (parse_word(text, rate))
        return 0;
    if (memchr(text.data, '/', text.size) != NULL) {
        snprintf(reason->text, sizeof(reason->text),
                 "concurrency is a number in flight, not a rate: leave the unit out");
        return WEIR_ERR_SYNTAX;
    }
    int digits = weir_digits_parse(&rate->count, text.data, text.size);
    if (digits != WEIR_ERR_RANGE && (digits == 0 || (size_t)digits != text.size)) {
        snprintf(reason->text, sizeof(reason->text), "`limit` must be a whole number, not %.120s",
                 rules_quote(&quote, text.data, text.size));
        return WEIR_ERR_SYNTAX;
    }
    if (digits < 0 || rate->count > WEIR_LEASES_MAX) {
        snprintf(reason->text, sizeof(reason->text), "`limit` must be 0 to %d, not %.120s",
                 WEIR_LEASES_MAX, rules_quote(&quote, text.data, text.size));
        return WEIR_ERR_RANGE;
    }
    return 0;
}

int rules_numbers_parse(uint8_t algorithm, struct weir_bytes text, struct weir_rate *rate,
                        uint8_t *unit, struct weir_reason *reason)
{
    if (algorithm == WEIR_CONCURRENCY)
        return parse_leases(text, rate, reason);
    if (algorithm == WEIR_QUOTA)
        return parse_quota(text, rate, unit, reason);
    return weir_rate_parse(rate, text.data, text.size, reason);
}

int rules_rollover_parse(struct weir_bytes text, uint64_t most, struct rules_rollover *rollover,
                         struct weir_reason *reason)
{
    struct rules_quote quote;
    rollover->percent = text.size > 1 && text.data[text.size - 1] == '%';
    size_t size = text.size - rollover->percent;
    if (size == 0 || weir_digits_parse(&rollover->number, text.data, size) != (int)size ||
        rollover->number > (rollover->percent ? 100 : most)) {
        snprintf(reason->text, sizeof(reason->text),
                 "%.120s is no rollover; allowed are `0%%` to `100%%` and 0 to the quota itself",
                 rules_quote(&quote, text.data, text.size));
        return WEIR_ERR_SYNTAX;
    }
    return 0;
}

uint64_t rules_rollover_of(const struct rules_rollover *rollover, uint64_t count)
{
    if (rollover->percent)
        return count / 100 * rollover->number + count % 100 * rollover->number / 100;
    return rollover->number < count ? rollover->number : count;
}

int rules_numbers_use(const struct weir_rate *rate, struct weir_limit_spec *spec,
                      struct weir_reason *reason)
{
    spec->rate = rate->count;
    if (spec->algorithm == WEIR_CONCURRENCY)
        return 0;
    spec->window_ns = rate->window_ns;
    if (rate->burst > 0 && !bucket_is(spec->algorithm)) {
        snprintf(reason->text, sizeof(reason->text),
                 "a burst needs a bucket (token_bucket, gcra, leaky_bucket); %s has none",
                 weir_algorithm_name(spec->algorithm));
        return WEIR_ERR_RANGE;
    }
    if (rate->burst > 0)
        spec->burst = rate->burst;
    if (rate->count == 0 && spec->burst > 0) {
        snprintf(reason->text, sizeof(reason->text),
                 "a rate of 0 denies everything, so a burst has no use");
        return WEIR_ERR_RANGE;
    }
    return 0;
}

/* The number of segments nearest to S that divides W, the smaller of two. */
static uint32_t nearest_segments(uint32_t segments, uint64_t window_ns)
{
    for (uint32_t far = 1; far < WEIR_SEGMENTS_MAX; far++) {
        if (segments > far && window_ns % (segments - far) == 0)
            return segments - far;
        if (segments + far <= WEIR_SEGMENTS_MAX && window_ns % (segments + far) == 0)
            return segments + far;
    }
    return 1;
}

enum rules_fault rules_numbers_compile(const struct weir_limit_spec *spec, bool shared,
                                       struct weir_limit *limit, struct weir_reason *reason)
{
    struct weir_reason why = {{0}};
    if (spec->window_ns < WEIR_WINDOW_MIN_NS || spec->window_ns > WEIR_WINDOW_MAX_NS) {
        bool lease = spec->algorithm == WEIR_CONCURRENCY;
        snprintf(reason->text, sizeof(reason->text), "%s must be 1ms to 366d",
                 lease ? "`life`" : "the window of a rate");
        return lease ? RULES_FAULT_LIFE : RULES_FAULT_RATE;
    }
    if (spec->segments > 1 && spec->window_ns % spec->segments != 0) {
        snprintf(reason->text, sizeof(reason->text),
                 "`segments` %u does not divide the window; the nearest that does is %u",
                 spec->segments, nearest_segments(spec->segments, spec->window_ns));
        return RULES_FAULT_SEGMENTS;
    }
    if (weir_limit_init(limit, spec, &why) < 0) {
        snprintf(reason->text, sizeof(reason->text), "%s: %.220s",
                 weir_algorithm_name(spec->algorithm), why.text);
        return RULES_FAULT_RATE;
    }
    if (shared && limit->segment_ns % NS_PER_US != 0) {
        snprintf(reason->text, sizeof(reason->text),
                 "`segments` %u: a segment is %llu ns long; Redis counts in whole microseconds",
                 spec->segments, (unsigned long long)limit->segment_ns);
        return RULES_FAULT_SHARED;
    }
    return RULES_FAULT_NONE;
}

/* Whether `loose` denies nothing that `tight` admits, however requests come. (A fixed window may
 * admit twice its count around the border of two, so there one has to lie within the other.) */
static bool is_useless(const struct weir_limit *loose, const struct weir_limit *tight)
{
    const struct weir_limit_spec *a = &loose->spec, *b = &tight->spec;
    if (b->rate == 0)
        return true;
    if (bucket_is(a->algorithm)) {
        struct wide slow = wide_multiply(b->rate, a->window_ns);
        struct wide fast = wide_multiply(a->rate, b->window_ns);
        bool slower = slow.hi != fast.hi ? slow.hi < fast.hi : slow.lo <= fast.lo;
        return slower && tight->capacity <= loose->capacity;
    }
    bool within = a->algorithm != WEIR_FIXED_WINDOW || b->window_ns % a->window_ns == 0;
    return a->window_ns <= b->window_ns && b->rate <= a->rate && within;
}

int rules_useless(const struct weir_limit *a, const struct weir_limit *b)
{
    return is_useless(a, b) ? 1 : is_useless(b, a) ? 2 : 0;
}
