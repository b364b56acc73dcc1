/* SPDX-License-Identifier: Apache-2.0 */
/* see clock.h */
#include "server/daemon/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t clock_read(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t weir_clock_boot_ns(void)
{
    return clock_read(CLOCK_BOOTTIME);
}

uint64_t weir_clock_wall_ns(void)
{
    return clock_read(CLOCK_REALTIME);
}

uint64_t weir_clock_wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (uint64_t)now.tv_sec;
}

void weir_clock_http_date(uint64_t wall_s, char text[WEIR_HTTP_DATE_SIZE])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t seconds = (time_t)wall_s;
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char line[64]; /* strftime would ask the locale for the names */
    snprintf(line, sizeof line, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT", days + 3 * utc.tm_wday,
             utc.tm_mday, months + 3 * utc.tm_mon, (utc.tm_year + 1900) % 10000, utc.tm_hour,
             utc.tm_min, utc.tm_sec);
    memcpy(text, line, WEIR_HTTP_DATE_SIZE);
}

void weir_clock_timestamp(uint64_t wall_ns, char text[WEIR_TIMESTAMP_SIZE])
{
    time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char line[64];
    snprintf(line, sizeof line, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", (utc.tm_year + 1900) % 10000,
             utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
             (unsigned)(wall_ns / 1000000 % 1000));
    memcpy(text, line, WEIR_TIMESTAMP_SIZE);
}
