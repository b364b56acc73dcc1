/* SPDX-License-Identifier: Apache-2.0 */
/* Times as logs write them.
 *
 *   07/Mar/2004:16:05:49 -0800      Apache, nginx, Traefik's CLF
 *   06/Feb/2009:12:14:14.655        HAProxy, in the local time of its machine: read as UTC
 *   2020-01-01T00:00:00.123456789Z  RFC 3339: Docker, CRI, Traefik's JSON, Caddy
 *
 * Times are nanoseconds from 1970 to February 2116 (limit.h: below 2^62). The second 60 is a leap
 * second and counts as the next one.
 */
#ifndef WEIR_WIRE_LOG_LOG_TIME_H
#define WEIR_WIRE_LOG_LOG_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_LOG_DAY_TIME_SIZE 20 /* 07/Mar/2004:16:05:49 */
#define WEIR_LOG_ZONED_SIZE 26    /* 07/Mar/2004:16:05:49 -0800 */

/* The number of exactly `digits` digits; -1 when it is none. */
int weir_log_digits(const char *text, int digits);

/* Reads WEIR_LOG_DAY_TIME_SIZE bytes as UTC. False: no time, or out of range. */
bool weir_log_day_time(const char *text, uint64_t *t_ns);

/* Reads WEIR_LOG_ZONED_SIZE bytes. */
bool weir_log_zoned_time(const char *text, uint64_t *t_ns);

/* Reads a whole text as RFC 3339 writes times, with any number of digits behind the second (those
 * beyond the nanosecond are cut off), and a zone as Z, +hh:mm or +hhmm. */
bool weir_log_iso_time(const char *text, size_t size, uint64_t *t_ns);

#endif
