/* SPDX-License-Identifier: Apache-2.0 */
/* Moments as people read them: "2026-11-23T14:03:07+01:00" in the zone of the machine ($TZ), or
 * "2026-11-23T13:03:07Z".
 *
 * Threads: reads $TZ, which nothing changes.
 */
#ifndef WEIR_SERVER_TEXT_MOMENTS_H
#define WEIR_SERVER_TEXT_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define WEIR_MOMENT_MAX 40

/* Writes a moment, to the second, with its NUL; returns `text`. */
const char *weir_moment_text(char text[WEIR_MOMENT_MAX], uint64_t time_ns, bool utc);

/* The zone of a moment, "+01:00" or "Z". */
const char *weir_moment_zone(char text[WEIR_MOMENT_MAX], uint64_t time_ns, bool utc);

/* A moment's date and time of day. False: it is out of the range of dates. */
bool weir_moment_parts(time_t seconds, bool utc, struct tm *parts);

#endif
