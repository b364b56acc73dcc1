/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: when a limit is in force, by the clock on the wall of a zone.
 *
 *   schedule  [days] [hours] [zone]      Mon-Fri 09:00-12:00,13:00-18:00 Europe/Zurich
 *   days      names and ranges of names, with commas; every day without them
 *   hours     ranges, with commas; from 00:00 to 24:00; the whole day without them. A range that
 *             ends before it begins ends on the next day: "Fri 22:00-06:00" is over on Saturday.
 *
 * It is in force while the wall shows a time in it: where clocks are set back, twice; where they
 * skip it, not at all. Zone arithmetic is done once, at load: what is kept is the list of moments
 * at which a schedule begins or ends, for the years that calendars are made for (calendar.h);
 * beyond them it stays as it was last. Memory: 8 bytes a moment, 290 KB for working days.
 *
 * Threads: pure, immutable once made.
 */
#ifndef WEIR_RULES_CALENDAR_SCHEDULE_H
#define WEIR_RULES_CALENDAR_SCHEDULE_H

#include "rules/calendar/timezone.h"

/* Ranges of one schedule, lists of days and hours multiplied out: memory at load. */
#define RULES_HOURS_MAX 8

struct rules_hours {
    uint8_t days;      /* a bit each, from Monday */
    uint16_t from, to; /* minutes of the day on which it begins; to <= from: of the next day */
};

struct rules_schedule {
    uint64_t *changes; /* ns, ascending: it begins or ends */
    uint32_t count;
    bool first; /* in force before the first change */
};

/* Adds the ranges of a text behind the first *count of `hours`; zone->data is NULL when it names
 * none. Errors: WEIR_ERR_SYNTAX; WEIR_ERR_TOO_LARGE (more than RULES_HOURS_MAX). */
int rules_hours_parse(struct rules_hours hours[RULES_HOURS_MAX], uint32_t *count,
                      struct weir_bytes *zone, struct weir_bytes text)
    __attribute__((warn_unused_result));

/* Adds the moments at which it begins or ends while any of `hours` holds in `zone`. The changes are
 * the caller's to free. Errors: WEIR_ERR_MEMORY. */
int rules_schedule_make(struct rules_schedule *schedule, const struct rules_hours *hours,
                        uint32_t count, const struct rules_zone *zone)
    __attribute__((warn_unused_result));

/* In force where any of two schedules is: takes `other` into `schedule` and frees it. Errors:
 * WEIR_ERR_MEMORY (both stay as they were). */
int rules_schedule_join(struct rules_schedule *schedule, struct rules_schedule *other)
    __attribute__((warn_unused_result));

/* Whether it is in force; *from_ns to *until_ns (0 and WEIR_NEVER at the ends) it stays so. */
bool rules_schedule_at(const struct rules_schedule *schedule, uint64_t now_ns, uint64_t *from_ns,
                       uint64_t *until_ns);

#endif
