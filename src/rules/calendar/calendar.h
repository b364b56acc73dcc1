/* SPDX-License-Identifier: Apache-2.0 */
/* Calendars: the days, weeks, months and years that quotas are counted in.
 *
 * A period begins at its anchor by the clock on the wall of its zone: "the 31st, 06:00" is the last
 * day of shorter months; where clocks skip 06:00, the moment at which they do; where they show it
 * twice, the first time. So every period begins exactly where the one before ends, and a day has
 * 23, 24 or 25 hours.
 *
 * An hour is no calendar: it has always 3600 s, and a fixed_window counts it.
 */
#ifndef WEIR_RULES_CALENDAR_CALENDAR_H
#define WEIR_RULES_CALENDAR_CALENDAR_H

#include "rules/calendar/timezone.h"

enum rules_calendar_unit { RULES_DAILY, RULES_WEEKLY, RULES_MONTHLY, RULES_YEARLY };

struct rules_calendar {
    uint8_t unit;    /* enum rules_calendar_unit */
    int32_t month;   /* yearly: 1..12 */
    int32_t day;     /* monthly and yearly: 1..31, the last one of a shorter month */
    int32_t weekday; /* weekly: 0..6 from Monday */
    int32_t hour, minute;
};

/* Calendars of quotas are made for these years, whenever they are loaded, so that a replay of an
 * old trace finds its periods too; that takes 200 KB for days, 6 KB for months. */
#define RULES_CALENDAR_FROM_S INT64_C(631152000) /* 1990-01-01 UTC */
#define RULES_CALENDAR_TO_S INT64_C(2840140800)  /* 2060-01-01 UTC */
#define RULES_CALENDAR_BOUNDS_MAX 25600

/* "Mon", "monday", in any case: its number from Monday, or -1. */
int rules_weekday_parse(struct weir_bytes word);

/* Writes when periods begin, in seconds since the epoch and in order: the last beginning at or
 * before from_s, the one before it, and all after it up to to_s. Returns how many, at most `max`,
 * at least 2 when max >= 2. */
uint32_t rules_calendar_bounds(const struct rules_calendar *calendar, const struct rules_zone *zone,
                               int64_t from_s, int64_t to_s, int64_t *bounds, uint32_t max);

#endif
