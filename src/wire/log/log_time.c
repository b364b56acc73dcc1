/* SPDX-License-Identifier: Apache-2.0 */
/* see log_time.h */
#include "wire/log/log_time.h"

#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
#define SECONDS_PER_DAY 86400
#define ISO_SIZE 19 /* 2020-01-01T00:00:00 */

int weir_log_digits(const char *text, int digits)
{
    int value = 0;
    for (int i = 0; i < digits; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

static int month_read(const char *at)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int month = 0;
    while (month < 12 && memcmp(names + (size_t)month * 3, at, 3) != 0)
        month++;
    return month < 12 ? month + 1 : -1;
}

/* Days from 1970-01-01, Gregorian. Years begin in March, so that the leap day is the last (Howard
 * Hinnant, "chrono-compatible low-level date algorithms", days_from_civil). */
static int64_t days_from_epoch(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = y / 400, of_era = y % 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static bool date_is_valid(int year, int month, int day)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 0 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (month == 2 && leap);
}

/* Sets the seconds of a date and a time of day in UTC. `clock` is HH:MM:SS. */
static bool seconds_read(int year, int month, int day, const char *clock, int64_t *seconds)
{
    int hour = weir_log_digits(clock, 2), minute = weir_log_digits(clock + 3, 2);
    int second = weir_log_digits(clock + 6, 2);
    if (clock[2] != ':' || clock[5] != ':' || !date_is_valid(year, month, day) || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return false;
    *seconds =
        days_from_epoch(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    return true;
}

/* hh and mm of a zone. */
static bool zone_read(char sign, const char *hours, const char *minutes, int64_t *seconds)
{
    int hour = weir_log_digits(hours, 2), minute = weir_log_digits(minutes, 2);
    if ((sign != '+' && sign != '-') || hour < 0 || hour > 23 || minute < 0 || minute > 59)
        return false;
    *seconds = (hour * 60 + minute) * (sign == '-' ? -60 : 60);
    return true;
}

static bool finish(int64_t seconds, uint64_t fraction_ns, uint64_t *t_ns)
{
    if (seconds < 0 || (uint64_t)seconds >= (UINT64_C(1) << 62) / NS_PER_S)
        return false; /* limit.h: times are below 2^62 ns, in the year 2116 */
    *t_ns = (uint64_t)seconds * NS_PER_S + fraction_ns;
    return true;
}

static bool day_time(const char *at, int64_t *seconds)
{
    return at[2] == '/' && at[6] == '/' && at[11] == ':' &&
           seconds_read(weir_log_digits(at + 7, 4), month_read(at + 3), weir_log_digits(at, 2),
                        at + 12, seconds);
}

bool weir_log_day_time(const char *text, uint64_t *t_ns)
{
    int64_t seconds;
    return day_time(text, &seconds) && finish(seconds, 0, t_ns);
}

bool weir_log_zoned_time(const char *text, uint64_t *t_ns)
{
    int64_t seconds, zone;
    return text[20] == ' ' && day_time(text, &seconds) &&
           zone_read(text[21], text + 22, text + 24, &zone) && finish(seconds - zone, 0, t_ns);
}

/* Z, +hh:mm or +hhmm, which end the text. */
static bool iso_zone_read(const char *at, const char *end, int64_t *zone)
{
    *zone = 0;
    if (end - at == 1)
        return *at == 'Z' || *at == 'z';
    if (end - at == 5)
        return zone_read(at[0], at + 1, at + 3, zone);
    return end - at == 6 && at[3] == ':' && zone_read(at[0], at + 1, at + 4, zone);
}

bool weir_log_iso_time(const char *text, size_t size, uint64_t *t_ns)
{
    const char *at = text + ISO_SIZE, *end = text + size;
    uint64_t fraction = 0, unit = NS_PER_S;
    int64_t seconds, zone;
    if (size <= ISO_SIZE || text[4] != '-' || text[7] != '-' ||
        (text[10] != 'T' && text[10] != 't' && text[10] != ' ') ||
        !seconds_read(weir_log_digits(text, 4), weir_log_digits(text + 5, 2),
                      weir_log_digits(text + 8, 2), text + 11, &seconds))
        return false;
    if (*at == '.') {
        const char *digits = ++at;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
            unit /= 10;
            fraction += (uint64_t)(*at - '0') * unit;
        }
        if (at == digits)
            return false;
    }
    return iso_zone_read(at, end, &zone) && finish(seconds - zone, fraction, t_ns);
}
