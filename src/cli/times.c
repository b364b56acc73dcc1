/* SPDX-License-Identifier: Apache-2.0 */
/* see times.h */
#include "cli/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rules/load/numbers.h"

#define S UINT64_C(1000000000)

static bool chosen_utc;

void cli_time_choose(bool utc)
{
    chosen_utc = utc;
}

const char *cli_time_text(char text[WEIR_MOMENT_MAX], uint64_t time_ns)
{
    return weir_moment_text(text, time_ns, chosen_utc);
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* A number of exactly `count` digits; *text goes behind them. */
static bool digits(const char **text, unsigned count, int *number)
{
    *number = 0;
    for (unsigned i = 0; i < count; i++) {
        char c = (*text)[i];
        if (c < '0' || c > '9')
            return false;
        *number = *number * 10 + (c - '0');
    }
    *text += count;
    return true;
}

static bool skip(const char **text, const char *any)
{
    if (**text == '\0' || !strchr(any, **text))
        return false;
    ++*text;
    return true;
}

/* "14:03", "14:03:07", "14:03:07.214"; the fraction in nanoseconds. */
static bool read_clock(const char **text, struct tm *parts, uint64_t *fraction_ns)
{
    *fraction_ns = 0;
    parts->tm_sec = 0;
    if (!digits(text, 2, &parts->tm_hour) || !skip(text, ":") || !digits(text, 2, &parts->tm_min))
        return false;
    if (skip(text, ":") && !digits(text, 2, &parts->tm_sec))
        return false;
    if (skip(text, ".,")) {
        uint64_t unit = S / 10;
        for (; **text >= '0' && **text <= '9'; ++*text, unit /= 10)
            *fraction_ns += unit * (uint64_t)(**text - '0');
    }
    return parts->tm_hour < 24 && parts->tm_min < 60 && parts->tm_sec < 61;
}

/* "Z", "+01:00", "+0100". False: it is none; *offset_s: how far it is before UTC. */
static bool read_zone(const char **text, long *offset_s)
{
    int hours, minutes = 0;
    *offset_s = 0;
    if (skip(text, "Zz"))
        return true;
    bool west = **text == '-';
    if (!skip(text, "+-") || !digits(text, 2, &hours))
        return false;
    bool colon = skip(text, ":");
    if ((colon || **text != '\0') && !digits(text, 2, &minutes))
        return false;
    *offset_s = (west ? -1 : 1) * (hours * 3600L + minutes * 60L);
    return true;
}

/* Seconds since the epoch of a date and a time. */
static time_t seconds_of(const struct tm *parts, bool utc)
{
    struct tm copy = *parts;
    copy.tm_isdst = -1;
    return utc ? timegm(&copy) : mktime(&copy);
}

/* Whether the calendar has that day: timegm makes March 2 of February 30. */
static bool is_day(const struct tm *parts)
{
    struct tm day = {.tm_year = parts->tm_year, .tm_mon = parts->tm_mon, .tm_mday = parts->tm_mday};
    (void)timegm(&day);
    return day.tm_mon == parts->tm_mon && day.tm_mday == parts->tm_mday;
}

static bool read_date(const char *text, bool utc, uint64_t *time_ns)
{
    struct tm parts = {.tm_mday = 0};
    uint64_t fraction_ns = 0;
    long offset_s;
    if (!digits(&text, 4, &parts.tm_year) || !skip(&text, "-") ||
        !digits(&text, 2, &parts.tm_mon) || !skip(&text, "-") || !digits(&text, 2, &parts.tm_mday))
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    if (!is_day(&parts))
        return false;
    if (*text != '\0' && (!skip(&text, "Tt ") || !read_clock(&text, &parts, &fraction_ns)))
        return false;
    time_t seconds = seconds_of(&parts, utc);
    if (*text != '\0') {
        if (!read_zone(&text, &offset_s))
            return false;
        seconds = seconds_of(&parts, true) - offset_s;
    }
    if (*text != '\0' || seconds < 0)
        return false;
    *time_ns = (uint64_t)seconds * S + fraction_ns;
    return true;
}

/* A time of day: the newest that is not after now, or the first after another moment. */
static bool read_time_of_day(const char *text, uint64_t now_ns, uint64_t after_ns, bool utc,
                             uint64_t *time_ns)
{
    struct tm parts;
    uint64_t fraction_ns, base_ns = after_ns > 0 ? after_ns : now_ns;
    if (!weir_moment_parts((time_t)(base_ns / S), utc, &parts) ||
        !read_clock(&text, &parts, &fraction_ns) || *text != '\0')
        return false;
    time_t seconds = seconds_of(&parts, utc);
    if (after_ns > 0 && (uint64_t)seconds * S + fraction_ns < after_ns)
        parts.tm_mday++;
    else if (after_ns == 0 && (uint64_t)seconds * S + fraction_ns > now_ns)
        parts.tm_mday--;
    *time_ns = (uint64_t)seconds_of(&parts, utc) * S + fraction_ns;
    return true;
}

int cli_time_read(const char *text, uint64_t now_ns, uint64_t after_ns, bool utc, uint64_t *time_ns,
                  struct weir_reason *reason)
{
    uint64_t number;
    if (read_date(text, utc, time_ns) || read_time_of_day(text, now_ns, after_ns, utc, time_ns))
        return 0;
    int size = weir_digits_parse(&number, text, strlen(text));
    if (size > 0 && text[size] == '\0' && number <= UINT64_MAX / S) {
        *time_ns = number * S;
        return 0;
    }
    if (weir_duration_parse(&number, text, strlen(text), reason) == 0) {
        *time_ns = now_ns > number ? now_ns - number : 1;
        return 0;
    }
    snprintf(reason->text, sizeof reason->text,
             "'%s' is no time: use 14:03, 2026-11-23T14:03:07+01:00, or how long ago, as 10min",
             text);
    return WEIR_ERR_SYNTAX;
}
