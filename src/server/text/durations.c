/* SPDX-License-Identifier: Apache-2.0 */
/* see durations.h */
#include "server/text/durations.h"

#include <inttypes.h>
#include <stdio.h>

#define TENTHS_BELOW_MS 10000 /* a wait of 1.2 s is not shown as one of 2 s */

static const struct {
    const char *name;
    uint64_t ms, least_ms; /* least: what the second unit is rounded up to */
} units[] = {
    {"d", 86400000, 3600000}, {"h", 3600000, 60000}, {"min", 60000, 1000}, {"s", 1000, 1000}};

const char *weir_duration(char text[WEIR_DURATION_MAX], uint64_t milliseconds)
{
    static const char *const next[] = {"h", "min", "s", ""};
    unsigned i = 0;
    if (milliseconds < 1000) {
        snprintf(text, WEIR_DURATION_MAX, "%" PRIu64 "ms", milliseconds);
        return text;
    }
    if (milliseconds <= TENTHS_BELOW_MS - 100 && milliseconds % 1000 > 0) {
        uint64_t tenths = milliseconds / 100 + (milliseconds % 100 > 0);
        if (tenths % 10 > 0)
            snprintf(text, WEIR_DURATION_MAX, "%" PRIu64 ".%" PRIu64 "s", tenths / 10, tenths % 10);
        else
            snprintf(text, WEIR_DURATION_MAX, "%" PRIu64 "s", tenths / 10);
        return text;
    }
    while (i < 3 && milliseconds < units[i].ms)
        i++;
    uint64_t least = units[i].least_ms;
    uint64_t parts = milliseconds / least + (milliseconds % least > 0);
    uint64_t per = units[i].ms / least, first = parts / per, second = parts % per;
    if (i > 0 && first * units[i].ms == units[i - 1].ms) { /* 59min 59.5s is 1h */
        first = 1;
        second = 0;
        i--;
    }
    if (second > 0)
        snprintf(text, WEIR_DURATION_MAX, "%" PRIu64 "%s %" PRIu64 "%s", first, units[i].name,
                 second, next[i]);
    else
        snprintf(text, WEIR_DURATION_MAX, "%" PRIu64 "%s", first, units[i].name);
    return text;
}

const char *weir_duration_ns(char text[WEIR_DURATION_MAX], uint64_t nanoseconds)
{
    return weir_duration(text, nanoseconds / 1000000 + (nanoseconds % 1000000 > 0));
}

const char *weir_duration_exact(char text[WEIR_DURATION_MAX], uint64_t nanoseconds)
{
    static const struct {
        uint64_t ns;
        const char *name;
    } exact[] = {{UINT64_C(86400000000000), "d"},
                 {UINT64_C(3600000000000), "h"},
                 {UINT64_C(60000000000), "min"},
                 {UINT64_C(1000000000), "s"},
                 {1000000, "ms"},
                 {1000, "us"},
                 {1, "ns"}};
    size_t i = 0;
    while (nanoseconds % exact[i].ns != 0)
        i++;
    snprintf(text, WEIR_DURATION_MAX, "%" PRIu64 "%s", nanoseconds / exact[i].ns,
             nanoseconds == 0 ? "s" : exact[i].name);
    return text;
}
