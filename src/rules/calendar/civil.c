/* SPDX-License-Identifier: Apache-2.0 */
/* see civil.h */
#include "rules/calendar/civil.h"

int64_t rules_civil_days(int64_t year, int32_t month, int32_t day)
{
    year += (month - 1) / 12;
    month = (month - 1) % 12 + 1;
    if (month < 1) {
        month += 12;
        year--;
    }
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void rules_civil_of_days(int64_t days, struct rules_civil *civil)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* from March */
    civil->day = (int32_t)(of_year - (153 * month + 2) / 5 + 1);
    civil->month = (int32_t)(month < 10 ? month + 3 : month - 9);
    civil->year = year + era * 400 + (civil->month <= 2);
    civil->hour = civil->minute = civil->second = 0;
}

int rules_weekday(int64_t days)
{
    return (int)(((days + 3) % 7 + 7) % 7); /* 1970-01-01 was a Thursday */
}

int32_t rules_month_length(int64_t year, int32_t month)
{
    return (int32_t)(rules_civil_days(year, month + 1, 1) - rules_civil_days(year, month, 1));
}
