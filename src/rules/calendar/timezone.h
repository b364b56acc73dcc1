/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: what a clock on the wall shows, and when it shows it.
 *
 * A zone is one TZif file of the system's zoneinfo (RFC 8536, versions 2 to 4): its transitions,
 * and the POSIX rule that continues them for ever ("CET-1CEST,M3.5.0,M10.5.0/3"). Read whole and
 * checked when rules load; the file may come from anybody and is refused rather than believed.
 *
 * Units: seconds since the epoch, without leap seconds ("right/" zones are refused).
 * Threads: immutable once opened.
 */
#ifndef WEIR_RULES_CALENDAR_TIMEZONE_H
#define WEIR_RULES_CALENDAR_TIMEZONE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

#include "rules/calendar/civil.h"

#define RULES_ZONE_FOLDER "/usr/share/zoneinfo"
#define RULES_ZONE_NAME_MAX 64

struct rules_zone;

/* Opens "Europe/Zurich", or "UTC" without any file. Errors: WEIR_ERR_NOT_FOUND (no such zone),
 * WEIR_ERR_SYNTAX (a name with other than letters, digits, + - _ and single slashes, or a damaged
 * file), WEIR_ERR_MEMORY; `reason` says what and where. */
int rules_zone_open(struct rules_zone **zone, struct weir_bytes name, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The same from the bytes of a file. */
int rules_zone_parse(struct rules_zone **zone, const uint8_t *data, size_t size,
                     struct weir_reason *reason) __attribute__((warn_unused_result));
void rules_zone_close(struct rules_zone *zone);

/* Seconds east of Greenwich at a moment. */
int32_t rules_zone_offset(const struct rules_zone *zone, int64_t at_s);

/* What the wall shows at a moment. */
void rules_zone_civil(const struct rules_zone *zone, int64_t at_s, struct rules_civil *civil);

/* The first moment at which the wall shows this or a later time: the earlier of two where clocks
 * are set back, the moment of the change where they skip it. */
int64_t rules_zone_moment(const struct rules_zone *zone, const struct rules_civil *civil);

#endif
