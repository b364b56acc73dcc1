/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of a zone for all time to come, as POSIX writes it: "CET-1CEST,M3.5.0,M10.5.0/3"
 * (IEEE Std 1003.1, "Other Environment Variables", TZ; RFC 8536 section 3.3 for hours up to 167).
 *
 * Offsets are seconds east of Greenwich, so the signs are POSIX' turned round. */
#ifndef WEIR_RULES_CALENDAR_POSIX_ZONE_H
#define WEIR_RULES_CALENDAR_POSIX_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POSIX_ZONE_OFFSET_MAX (26 * 3600) /* beyond any offset in use, on both sides */

/* A day of the year, and the time on it at which clocks change. */
struct posix_zone_change {
    enum { POSIX_ZONE_MONTH, POSIX_ZONE_JULIAN, POSIX_ZONE_DAY } kind;
    int32_t month, week, weekday; /* Mm.w.d: 1..12, 1..5 (5: the last), 0..6 (0: Sunday) */
    int32_t day;                  /* Jn: 1..365, no 29 February; n: 0..365 */
    int32_t time_s;               /* of that day, by the clock before the change */
};

struct posix_zone {
    int32_t standard, daylight;
    bool changes; /* else always `standard` */
    struct posix_zone_change to_daylight, to_standard;
};

/* Returns 0 or WEIR_ERR_SYNTAX. */
int posix_zone_parse(struct posix_zone *zone, const char *text, size_t size)
    __attribute__((warn_unused_result));

int32_t posix_zone_offset(const struct posix_zone *zone, int64_t at_s);

#endif
