/* SPDX-License-Identifier: Apache-2.0 */
/* see posix_zone.h */
#include "rules/calendar/posix_zone.h"

#include <weir/error.h>

#include "rules/calendar/civil.h"

#define RULE_HOURS_MAX 167
#define OFFSET_HOURS_MAX 24

struct text {
    const char *at, *end;
};

static bool take_char(struct text *text, char c)
{
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

static bool take_number(struct text *text, int32_t min, int32_t max, int32_t *number)
{
    const char *start = text->at;
    *number = 0;
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9' && text->at - start < 4)
        *number = *number * 10 + (*text->at++ - '0');
    return text->at > start && *number >= min && *number <= max;
}

/* "CET", or "<+03>" */
static bool take_name(struct text *text)
{
    const char *start = text->at;
    if (take_char(text, '<')) {
        while (text->at < text->end && *text->at != '>')
            text->at++;
        return take_char(text, '>');
    }
    while (text->at < text->end &&
           ((*text->at >= 'a' && *text->at <= 'z') || (*text->at >= 'A' && *text->at <= 'Z')))
        text->at++;
    return text->at - start >= 3;
}

/* [+-]h[h][h][:mm[:ss]] */
static bool take_time(struct text *text, int32_t hours_max, int32_t *seconds)
{
    int32_t hours, minutes = 0, rest = 0;
    bool negative = take_char(text, '-');
    if (!negative)
        take_char(text, '+');
    if (!take_number(text, 0, hours_max, &hours))
        return false;
    if (take_char(text, ':')) {
        if (!take_number(text, 0, 59, &minutes))
            return false;
        if (take_char(text, ':') && !take_number(text, 0, 59, &rest))
            return false;
    }
    *seconds = hours * 3600 + minutes * 60 + rest;
    if (negative)
        *seconds = -*seconds;
    return true;
}

static bool take_change(struct text *text, struct posix_zone_change *change)
{
    change->time_s = 2 * 3600;
    if (take_char(text, 'M')) {
        change->kind = POSIX_ZONE_MONTH;
        if (!take_number(text, 1, 12, &change->month) || !take_char(text, '.') ||
            !take_number(text, 1, 5, &change->week) || !take_char(text, '.') ||
            !take_number(text, 0, 6, &change->weekday))
            return false;
    } else if (take_char(text, 'J')) {
        change->kind = POSIX_ZONE_JULIAN;
        if (!take_number(text, 1, 365, &change->day))
            return false;
    } else {
        change->kind = POSIX_ZONE_DAY;
        if (!take_number(text, 0, 365, &change->day))
            return false;
    }
    return !take_char(text, '/') || take_time(text, RULE_HOURS_MAX, &change->time_s);
}

int posix_zone_parse(struct posix_zone *zone, const char *data, size_t size)
{
    struct text text = {data, data + size};
    int32_t west;
    *zone = (struct posix_zone){0};
    if (!take_name(&text) || !take_time(&text, OFFSET_HOURS_MAX, &west))
        return WEIR_ERR_SYNTAX;
    zone->standard = -west;
    if (text.at == text.end)
        return 0;
    zone->changes = true;
    zone->daylight = zone->standard + 3600;
    if (!take_name(&text))
        return WEIR_ERR_SYNTAX;
    if (text.at < text.end && *text.at != ',') {
        if (!take_time(&text, OFFSET_HOURS_MAX, &west))
            return WEIR_ERR_SYNTAX;
        zone->daylight = -west;
    }
    if (!take_char(&text, ',') || !take_change(&text, &zone->to_daylight) ||
        !take_char(&text, ',') || !take_change(&text, &zone->to_standard) || text.at != text.end)
        return WEIR_ERR_SYNTAX;
    return 0;
}

/* The day of a change in a year, in days since the epoch. */
static int64_t change_day(const struct posix_zone_change *change, int64_t year)
{
    if (change->kind == POSIX_ZONE_DAY)
        return rules_civil_days(year, 1, 1) + change->day;
    if (change->kind == POSIX_ZONE_JULIAN) {
        bool leap = rules_month_length(year, 2) == 29;
        return rules_civil_days(year, 1, 1) + change->day - 1 + (leap && change->day >= 60);
    }
    int64_t first = rules_civil_days(year, change->month, 1);
    int sunday_first = (rules_weekday(first) + 1) % 7;
    int64_t day = first + (change->weekday - sunday_first + 7) % 7 + 7 * (change->week - 1);
    while (day >= first + rules_month_length(year, change->month))
        day -= 7;
    return day;
}

/* Rules may reach over the turn of a year (by hours of up to a week), so the changes of the years
 * beside are looked at too; the last one that has happened holds. */
int32_t posix_zone_offset(const struct posix_zone *zone, int64_t at_s)
{
    if (!zone->changes)
        return zone->standard;
    struct rules_civil civil;
    rules_civil_of_days((at_s + zone->standard) / 86400 - (at_s + zone->standard < 0), &civil);
    int64_t last = INT64_MIN;
    int32_t offset = zone->standard;
    for (int64_t year = civil.year - 1; year <= civil.year + 1; year++) {
        int64_t on = change_day(&zone->to_daylight, year) * 86400 + zone->to_daylight.time_s -
                     zone->standard;
        int64_t off = change_day(&zone->to_standard, year) * 86400 + zone->to_standard.time_s -
                      zone->daylight;
        /* Of two at one moment (permanent daylight time is written so) daylight time wins. */
        if (off <= at_s && off > last) {
            last = off;
            offset = zone->standard;
        }
        if (on <= at_s && on >= last) {
            last = on;
            offset = zone->daylight;
        }
    }
    return offset;
}
