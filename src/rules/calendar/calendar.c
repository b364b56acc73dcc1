/* SPDX-License-Identifier: Apache-2.0 */
/* see calendar.h */
#include "rules/calendar/calendar.h"

#include <string.h>
#include <strings.h>

static const char *const weekdays[] = {"monday", "tuesday",  "wednesday", "thursday",
                                       "friday", "saturday", "sunday"};

int rules_weekday_parse(struct weir_bytes word)
{
    for (int day = 0; day < 7; day++)
        if ((word.size == 3 || word.size == strlen(weekdays[day])) &&
            strncasecmp(word.data, weekdays[day], word.size) == 0)
            return day;
    return -1;
}

/* When period number `index` begins; numbers count days, weeks, months or years of the epoch. */
static int64_t begins(const struct rules_calendar *calendar, const struct rules_zone *zone,
                      int64_t index)
{
    struct rules_civil civil = {.hour = calendar->hour, .minute = calendar->minute};
    int64_t year = 1970;
    int32_t month, length;
    switch (calendar->unit) {
    case RULES_DAILY:
    case RULES_WEEKLY:
        /* 1970-01-05 was a Monday. */
        rules_civil_of_days(
            calendar->unit == RULES_DAILY ? index : 4 + index * 7 + calendar->weekday, &civil);
        civil.hour = calendar->hour;
        civil.minute = calendar->minute;
        break;
    default:
        year += calendar->unit == RULES_YEARLY ? index : index / 12 - (index % 12 < 0);
        month = calendar->unit == RULES_YEARLY ? calendar->month
                                               : (int32_t)((index % 12 + 12) % 12) + 1;
        length = rules_month_length(year, month);
        civil.year = year;
        civil.month = month;
        civil.day = calendar->day < length ? calendar->day : length;
        break;
    }
    return rules_zone_moment(zone, &civil);
}

/* A number of a period that begins near a moment. */
static int64_t near(const struct rules_calendar *calendar, int64_t at_s)
{
    struct rules_civil civil;
    int64_t days = at_s / 86400;
    rules_civil_of_days(days, &civil);
    switch (calendar->unit) {
    case RULES_DAILY:
        return days;
    case RULES_WEEKLY:
        return days / 7;
    case RULES_MONTHLY:
        return (civil.year - 1970) * 12 + civil.month - 1;
    default:
        return civil.year - 1970;
    }
}

uint32_t rules_calendar_bounds(const struct rules_calendar *calendar, const struct rules_zone *zone,
                               int64_t from_s, int64_t to_s, int64_t *bounds, uint32_t max)
{
    int64_t index = near(calendar, from_s) + 2;
    while (begins(calendar, zone, index) > from_s)
        index--;
    /* A day that a zone has skipped begins where the next one does: it has no length. */
    int64_t current = begins(calendar, zone, index), before = current;
    for (int64_t i = index - 1; before == current; i--)
        before = begins(calendar, zone, i);
    uint32_t count = 0;
    if (count < max)
        bounds[count++] = before;
    if (count < max)
        bounds[count++] = current;
    while (count < max) {
        int64_t next = begins(calendar, zone, ++index);
        if (next > to_s)
            break;
        if (next > bounds[count - 1])
            bounds[count++] = next;
    }
    return count;
}
