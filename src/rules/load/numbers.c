/* SPDX-License-Identifier: Apache-2.0 */
/* see numbers.h */
#include "rules/load/numbers.h"

#include <stdio.h>
#include <string.h>

#include "core/algorithm.h"
#include "core/bucket.h"
#include "core/bytes.h"
#include "core/wide.h"
#include "rules/calendar/calendar.h"
#include "rules/problems.h"

/* --- Rates, durations, sizes ------------------------------------------------------------------ */

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* The last ones are words that people write; messages name the short ones. */
static const char *const unit_names[] = {"ms",     "s",       "sec",   "min",  "h",      "hour",
                                         "d",      "day",     "w",     "week", "second", "seconds",
                                         "minute", "minutes", "hours", "days", "weeks"};
static const uint64_t unit_ns[] = {
    NS_PER_MS,        NS_PER_S,          NS_PER_S,         60 * NS_PER_S,     3600 * NS_PER_S,
    3600 * NS_PER_S,  86400 * NS_PER_S,  86400 * NS_PER_S, 604800 * NS_PER_S, 604800 * NS_PER_S,
    NS_PER_S,         NS_PER_S,          60 * NS_PER_S,    60 * NS_PER_S,     3600 * NS_PER_S,
    86400 * NS_PER_S, 604800 * NS_PER_S,
};
#define UNIT_COUNT (sizeof(unit_names) / sizeof(unit_names[0]))
#define UNITS_TEXT "ms, s, sec, min, h, hour, d, day, w, week"

int rules_algorithm_named(struct weir_bytes name)
{
    for (int i = 0; i < ALGORITHMS; i++)
        if (algorithm_has((enum weir_algorithm)i, ALGORITHM_CHOSEN) &&
            weir_bytes_are(name, algorithm_rows[i].name))
            return i;
    return -1;
}

static const char *const size_names[] = {"KiB", "MiB", "GiB", "TiB"};

const char *rules_time_unit(uint32_t i, uint64_t *length_ns)
{
    if (i >= UNIT_COUNT)
        return NULL;
    *length_ns = unit_ns[i];
    return unit_names[i];
}

int weir_digits_parse(uint64_t *value, const char *text, size_t size)
{
    uint64_t number = 0;
    size_t at = 0;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
        uint64_t digit = (uint64_t)(text[at] - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return WEIR_ERR_RANGE;
        number = number * 10 + digit;
    }
    *value = number;
    return (int)at;
}

static int too_large(const char *text, size_t size, struct weir_reason *reason)
{
    struct rules_quote quote;
    snprintf(reason->text, sizeof(reason->text), "%.100s: a number is too large",
             rules_quote(&quote, text, size));
    return WEIR_ERR_RANGE;
}

static int malformed(const char *text, size_t size, const char *wanted, struct weir_reason *reason)
{
    struct rules_quote quote;
    snprintf(reason->text, sizeof(reason->text), "%.100s is not a %s",
             rules_quote(&quote, text, size), wanted);
    return WEIR_ERR_SYNTAX;
}

/* "10min" or, with `bare`, "min". Returns 0 or an error; *whole is what messages quote. */
static int unit_parse(uint64_t *window_ns, const char *text, size_t size, bool bare,
                      const struct weir_bytes *whole, struct weir_reason *reason)
{
    uint64_t times = 1;
    int digits = weir_digits_parse(&times, text, size);
    if (digits < 0)
        return too_large(whole->data, whole->size, reason);
    if (digits == 0)
        times = 1;
    const char *name = text + digits;
    size_t name_size = size - (size_t)digits;
    struct rules_quote quote, unit;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strlen(unit_names[i]) != name_size || memcmp(unit_names[i], name, name_size) != 0)
            continue;
        if (digits == 0 && !bare) {
            return malformed(whole->data, whole->size, "duration: it needs a number, as in `30s`",
                             reason);
        }
        if (times == 0)
            return malformed(whole->data, whole->size, "time: it is 0 long", reason);
        if (times > UINT64_MAX / unit_ns[i])
            return too_large(whole->data, whole->size, reason);
        *window_ns = times * unit_ns[i];
        return 0;
    }
    if (name_size == 0)
        return malformed(whole->data, whole->size, "time: it needs a unit, as in `30s`", reason);
    size_t singular = name_size - (name[name_size - 1] == 's');
    bool month = singular == 5 && memcmp(name, "month", 5) == 0;
    if (month || (singular == 4 && memcmp(name, "year", 4) == 0)) {
        snprintf(reason->text, sizeof(reason->text),
                 "%.80s: a %s has no fixed length; write `quota:` for a calendar's, or `30d`",
                 rules_quote(&quote, whole->data, whole->size), month ? "month" : "year");
        return WEIR_ERR_SYNTAX;
    }
    /* "m" is like many, and of minutes it is used most. */
    const char *nearest = name_size == 1 && *name == 'm'
                              ? "min"
                              : rules_nearest(name, name_size, unit_names, UNIT_COUNT);
    snprintf(reason->text, sizeof(reason->text), "%.80s: unknown unit %.40s%s%s%s; units are %s",
             rules_quote(&quote, whole->data, whole->size), rules_quote(&unit, name, name_size),
             nearest ? " (did you mean `" : "", nearest ? nearest : "", nearest ? "`?)" : "",
             UNITS_TEXT);
    return WEIR_ERR_SYNTAX;
}

/* " burst 20" and nothing behind it. */
static int burst_parse(struct weir_rate *rate, const struct weir_bytes *rest,
                       const struct weir_bytes *whole, struct weir_reason *reason)
{
    const char *at = rest->data, *end = rest->data + rest->size;
    while (at < end && *at == ' ')
        at++;
    bool named = end - at > 6 && memcmp(at, "burst ", 6) == 0;
    if (named) {
        at += 6;
        while (at < end && *at == ' ')
            at++;
        int digits = weir_digits_parse(&rate->burst, at, (size_t)(end - at));
        if (digits < 0)
            return too_large(whole->data, whole->size, reason);
        if (digits > 0 && digits == end - at) {
            return rate->burst > 0
                       ? 0
                       : malformed(whole->data, whole->size, "rate: a burst is at least 1", reason);
        }
    }
    return malformed(whole->data, whole->size,
                     "rate; only ` burst B` may follow `N/unit`, as in `100/min burst 20`", reason);
}

static bool is_word(const char *word, const char *text, size_t size)
{
    return strlen(word) == size && memcmp(word, text, size) == 0;
}

/* ".67" behind the digits of N: multiplies what comes by *times, a power of ten. Returns the bytes
 * read (0: no decimals), or WEIR_ERR_RANGE. */
static int decimals_parse(struct weir_rate *rate, const char *text, size_t size, uint64_t *times)
{
    size_t at = 1, last = 0;
    *times = 1;
    if (size < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9')
        return 0;
    uint64_t whole = rate->count;
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
        if (text[at] != '0')
            last = at; /* zeros at the end say nothing */
    for (size_t i = 1; i <= last; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (rate->count > (UINT64_MAX - digit) / 10 || *times > UINT64_MAX / 10)
            return WEIR_ERR_RANGE;
        rate->count = rate->count * 10 + digit;
        *times *= 10;
    }
    if (last > 0)
        rate->whole = whole + 1; /* it is below 2^64 / 10 */
    return (int)at;
}

static int rate_parse(struct weir_rate *rate, const char *text, size_t size, bool decimal,
                      struct weir_reason *reason)
{
    uint64_t times = 1;
    memset(rate, 0, sizeof(*rate));
    if (is_word("unlimited", text, size) || is_word("plan", text, size)) {
        rate->kind = *text == 'u' ? WEIR_RATE_UNLIMITED : WEIR_RATE_PLAN;
        return 0;
    }
    struct weir_bytes whole = {text, size};
    int digits = weir_digits_parse(&rate->count, text, size);
    int more = digits > 0 && decimal
                   ? decimals_parse(rate, text + digits, size - (size_t)digits, &times)
                   : 0;
    if (digits < 0 || more < 0)
        return too_large(text, size, reason);
    digits += more;
    if (digits == 0 || (size_t)digits == size || text[digits] != '/') {
        return malformed(text, size,
                         "rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`", reason);
    }
    const char *unit = text + digits + 1;
    size_t left = size - (size_t)digits - 1;
    const char *space = memchr(unit, ' ', left);
    size_t unit_size = space ? (size_t)(space - unit) : left;
    int err = unit_parse(&rate->window_ns, unit, unit_size, true, &whole, reason);
    if (err == 0 && __builtin_mul_overflow(rate->window_ns, times, &rate->window_ns))
        return too_large(text, size, reason);
    if (err == 0 && space) {
        struct weir_bytes rest = {space, left - unit_size};
        err = burst_parse(rate, &rest, &whole, reason);
    }
    return err;
}

int weir_rate_parse(struct weir_rate *rate, const char *text, size_t size,
                    struct weir_reason *reason)
{
    return rate_parse(rate, text, size, false, reason);
}

int weir_rate_parse_decimal(struct weir_rate *rate, const char *text, size_t size,
                            struct weir_reason *reason)
{
    return rate_parse(rate, text, size, true, reason);
}

int weir_duration_parse(uint64_t *duration_ns, const char *text, size_t size,
                        struct weir_reason *reason)
{
    struct weir_bytes whole = {text, size};
    if (size == 0 || text[0] < '0' || text[0] > '9')
        return malformed(text, size, "duration; write a number and a unit, as in `30s`", reason);
    return unit_parse(duration_ns, text, size, false, &whole, reason);
}

int weir_size_parse(uint64_t *bytes, const char *text, size_t size, struct weir_reason *reason)
{
    int digits = weir_digits_parse(bytes, text, size);
    if (digits < 0)
        return too_large(text, size, reason);
    if (digits > 0 && (size_t)digits == size)
        return 0;
    for (unsigned i = 0; digits > 0 && i < sizeof(size_names) / sizeof(size_names[0]); i++) {
        if (is_word(size_names[i], text + digits, size - (size_t)digits)) {
            unsigned shift = 10 * (i + 1);
            if (*bytes > UINT64_MAX >> shift)
                return too_large(text, size, reason);
            *bytes <<= shift;
            return 0;
        }
    }
    return malformed(text, size,
                     "size; write a number of bytes, KiB, MiB, GiB or TiB, as in `64MiB`", reason);
}

/* --- The numbers of a limit ------------------------------------------------------------------- */

#define NS_PER_US 1000
#define DAY_NS (UINT64_C(86400) * 1000000000)

static const char *const quota_units[] = {"day", "week", "month", "year"};
static const uint64_t quota_unit_ns[] = {DAY_NS, 7 * DAY_NS, 30 * DAY_NS, 365 * DAY_NS};

uint64_t rules_unit_ns(uint8_t unit)
{
    return quota_unit_ns[unit];
}

/* The words that may replace numbers. */
static bool parse_word(struct weir_bytes text, struct weir_rate *rate)
{
    if (is_word("unlimited", text.data, text.size) || is_word("plan", text.data, text.size)) {
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
            if (is_word(quota_units[i], name.data, name.size)) {
                *unit = (uint8_t)i;
                return 0;
            }
        }
    }
    snprintf(reason->text, sizeof(reason->text),
             "%.80s is not a quota; allowed are `N/day`, `N/week`, `N/month`, `N/year`, "
             "`unlimited` and `plan` (for an hour use `algorithm: fixed_window` and `rate: N/h`)",
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
    if (memchr(text.data, '/', text.size)) {
        snprintf(reason->text, sizeof(reason->text),
                 "concurrency limits requests in flight, not a rate: remove the unit");
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
    return weir_rate_parse_decimal(rate, text.data, text.size, reason);
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
                 "%.120s is not a rollover; allowed are `0%%` to `100%%` and 0 to the quota itself",
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

/* The time of a rate's window in the largest unit that divides it: "100s". */
static void window_text(char text[32], uint64_t window_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } wholes[] = {{"d", DAY_NS},
                  {"h", UINT64_C(3600) * 1000000000},
                  {"min", UINT64_C(60) * 1000000000},
                  {"s", UINT64_C(1000000000)},
                  {"ms", UINT64_C(1000000)}};
    size_t i = 0;
    while (window_ns % wholes[i].ns != 0) /* units are milliseconds or longer */
        i++;
    snprintf(text, 32, "%llu%s", (unsigned long long)(window_ns / wholes[i].ns), wholes[i].name);
}

int rules_numbers_use(const struct weir_rate *rate, struct weir_limit_spec *spec,
                      struct weir_reason *reason)
{
    spec->rate = rate->count;
    if (spec->algorithm == WEIR_CONCURRENCY)
        return 0;
    spec->window_ns = rate->window_ns;
    if (rate->whole > 0 && !bucket_is(spec->algorithm)) {
        char window[32];
        window_text(window, rate->window_ns);
        snprintf(reason->text, sizeof(reason->text),
                 "a rate with decimals needs a bucket (token_bucket, gcra, leaky_bucket); "
                 "%s counts whole requests: write `%llu/%s`",
                 weir_algorithm_name(spec->algorithm), (unsigned long long)rate->count, window);
        return WEIR_ERR_RANGE;
    }
    if (rate->burst > 0 && !bucket_is(spec->algorithm)) {
        snprintf(reason->text, sizeof(reason->text),
                 "a burst needs a bucket (token_bucket, gcra, leaky_bucket); %s has none",
                 weir_algorithm_name(spec->algorithm));
        return WEIR_ERR_RANGE;
    }
    if (rate->burst > 0)
        spec->burst = rate->burst;
    else if (rate->whole > 0 && spec->burst == 0)
        spec->burst = rate->whole;
    if (rate->count == 0 && spec->burst > 0) {
        snprintf(reason->text, sizeof(reason->text),
                 "a rate of 0 denies everything: remove the burst");
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
