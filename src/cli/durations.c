/* SPDX-License-Identifier: Apache-2.0 */
/* see durations.h */
#include "cli/durations.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *name;
    uint64_t ms, least_ms; /* least: what the second unit is rounded up to */
} units[] = {
    {"d", 86400000, 3600000}, {"h", 3600000, 60000}, {"min", 60000, 1000}, {"s", 1000, 1000}};

const char *cli_duration(char text[CLI_DURATION_MAX], uint64_t milliseconds)
{
    static const char *const next[] = {"h", "min", "s", ""};
    unsigned i = 0;
    if (milliseconds < 1000) {
        snprintf(text, CLI_DURATION_MAX, "%" PRIu64 "ms", milliseconds);
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
        snprintf(text, CLI_DURATION_MAX, "%" PRIu64 "%s %" PRIu64 "%s", first, units[i].name,
                 second, next[i]);
    else
        snprintf(text, CLI_DURATION_MAX, "%" PRIu64 "%s", first, units[i].name);
    return text;
}
