/* SPDX-License-Identifier: Apache-2.0 */
/* Civil dates: days of the proleptic Gregorian calendar. The algorithms are Howard Hinnant's
 * ("chrono-Compatible Low-Level Date Algorithms").
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_CALENDAR_CIVIL_H
#define WEIR_RULES_CALENDAR_CIVIL_H

#include <stdint.h>

/* A date and a time of day as people write them. Values outside their usual range carry over:
 * month 13 is the next year's first, day 0 the last one of the month before. */
struct rules_civil {
    int64_t year;
    int32_t month, day; /* from 1 */
    int32_t hour, minute, second;
};

/* Days since the epoch of a civil date, and back; Monday is 0. */
int64_t rules_civil_days(int64_t year, int32_t month, int32_t day);
void rules_civil_of_days(int64_t days, struct rules_civil *civil);
int rules_weekday(int64_t days);
int32_t rules_month_length(int64_t year, int32_t month);

#endif
