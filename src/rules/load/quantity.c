/* SPDX-License-Identifier: Apache-2.0 */
/* see quantity.h */
#include "rules/load/quantity.h"

#include <stdio.h>
#include <string.h>

#include "rules/load/problems.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

static const char *const unit_names[] = {"ms",   "s", "sec", "min", "h",
                                         "hour", "d", "day", "w",   "week"};
static const uint64_t unit_ns[] = {
    NS_PER_MS,       NS_PER_S,         NS_PER_S,         60 * NS_PER_S,     3600 * NS_PER_S,
    3600 * NS_PER_S, 86400 * NS_PER_S, 86400 * NS_PER_S, 604800 * NS_PER_S, 604800 * NS_PER_S,
};
#define UNIT_COUNT (sizeof(unit_names) / sizeof(unit_names[0]))
#define UNITS_TEXT "ms, s, sec, min, h, hour, d, day, w, week"

static const char *const size_names[] = {"KiB", "MiB", "GiB", "TiB"};

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
    snprintf(reason->text, sizeof(reason->text), "%.100s is no %s", rules_quote(&quote, text, size),
             wanted);
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
    bool month = name_size == 5 && memcmp(name, "month", 5) == 0;
    if (month || (name_size == 4 && memcmp(name, "year", 4) == 0)) {
        snprintf(reason->text, sizeof(reason->text),
                 "%.80s: a %s has no fixed length; write `quota:` for a calendar's, or `30d`",
                 rules_quote(&quote, whole->data, whole->size), month ? "month" : "year");
        return WEIR_ERR_SYNTAX;
    }
    const char *nearest = rules_nearest(name, name_size, unit_names, UNIT_COUNT);
    snprintf(reason->text, sizeof(reason->text), "%.80s: unknown unit %.40s%s%s%s; units are %s",
             rules_quote(&quote, whole->data, whole->size), rules_quote(&unit, name, name_size),
             nearest != NULL ? " (did you mean `" : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "`?)" : "", UNITS_TEXT);
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
                     "rate; behind `N/unit` only ` burst B` may stand, as in `100/min burst 20`",
                     reason);
}

static bool is_word(const char *word, const char *text, size_t size)
{
    return strlen(word) == size && memcmp(word, text, size) == 0;
}

int weir_rate_parse(struct weir_rate *rate, const char *text, size_t size,
                    struct weir_reason *reason)
{
    memset(rate, 0, sizeof(*rate));
    if (is_word("unlimited", text, size) || is_word("plan", text, size)) {
        rate->kind = *text == 'u' ? WEIR_RATE_UNLIMITED : WEIR_RATE_PLAN;
        return 0;
    }
    struct weir_bytes whole = {text, size};
    int digits = weir_digits_parse(&rate->count, text, size);
    if (digits < 0)
        return too_large(text, size, reason);
    if (digits == 0 || (size_t)digits == size || text[digits] != '/') {
        return malformed(text, size,
                         "rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`", reason);
    }
    const char *unit = text + digits + 1;
    size_t left = size - (size_t)digits - 1;
    const char *space = memchr(unit, ' ', left);
    size_t unit_size = space != NULL ? (size_t)(space - unit) : left;
    int err = unit_parse(&rate->window_ns, unit, unit_size, true, &whole, reason);
    if (err == 0 && space != NULL) {
        struct weir_bytes rest = {space, left - unit_size};
        err = burst_parse(rate, &rest, &whole, reason);
    }
    return err;
}

int weir_duration_parse(uint64_t *duration_ns, const char *text, size_t size,
                        struct weir_reason *reason)
{
    struct weir_bytes whole = {text, size};
    if (size == 0 || text[0] < '0' || text[0] > '9')
        return malformed(text, size, "duration; one is a number and a unit, as in `30s`", reason);
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
                     "size; one is a number of bytes, or of KiB, MiB, GiB or TiB, as in `64MiB`",
                     reason);
}
