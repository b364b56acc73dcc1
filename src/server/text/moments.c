/* SPDX-License-Identifier: Apache-2.0 */
/* see moments.h */
#include "server/text/moments.h"

#include <stdio.h>
#include <string.h>

#define S UINT64_C(1000000000)

bool weir_moment_parts(time_t seconds, bool utc, struct tm *parts)
{
    return utc ? gmtime_r(&seconds, parts) != NULL : localtime_r(&seconds, parts) != NULL;
}

const char *weir_moment_zone(char text[WEIR_MOMENT_MAX], uint64_t time_ns, bool utc)
{
    struct tm parts;
    if (utc || !weir_moment_parts((time_t)(time_ns / S), false, &parts)) {
        snprintf(text, WEIR_MOMENT_MAX, "Z");
        return text;
    }
    long minutes = (parts.tm_gmtoff < 0 ? -parts.tm_gmtoff : parts.tm_gmtoff) / 60;
    snprintf(text, WEIR_MOMENT_MAX, "%c%02ld:%02ld", parts.tm_gmtoff < 0 ? '-' : '+',
             minutes / 60 % 24, minutes % 60);
    return text;
}

const char *weir_moment_text(char text[WEIR_MOMENT_MAX], uint64_t time_ns, bool utc)
{
    struct tm parts;
    if (!weir_moment_parts((time_t)(time_ns / S), utc, &parts) ||
        strftime(text, WEIR_MOMENT_MAX - 8, "%Y-%m-%dT%H:%M:%S", &parts) == 0) {
        snprintf(text, WEIR_MOMENT_MAX, "?");
        return text;
    }
    char zone[WEIR_MOMENT_MAX];
    size_t used = strlen(text);
    snprintf(text + used, WEIR_MOMENT_MAX - used, "%s", weir_moment_zone(zone, time_ns, utc));
    return text;
}
