/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the server, read here and nowhere else.
 *
 * Decisions run on CLOCK_BOOTTIME, mapped to the table's time by weir_table_time: it never steps
 * and it counts while the machine sleeps. The wall clock is for people only: the Date field, the
 * epochs of X-RateLimit-Reset, the logs, and the first t0 of a region.
 */
#ifndef WEIR_SERVER_DAEMON_CLOCK_H
#define WEIR_SERVER_DAEMON_CLOCK_H

#include <stdint.h>

/* CLOCK_BOOTTIME in ns. */
uint64_t weir_clock_boot_ns(void);

/* CLOCK_REALTIME in ns. */
uint64_t weir_clock_wall_ns(void);

/* CLOCK_REALTIME in whole seconds, at the cost of a memory read (it may be a tick, 4 ms, late). */
uint64_t weir_clock_wall_s(void);

/* "Fri, 20 Nov 2026 10:00:00 GMT": IMF-fixdate of RFC 9110 5.6.7. Writes exactly
 * WEIR_HTTP_DATE_SIZE bytes and no NUL. */
#define WEIR_HTTP_DATE_SIZE 29
void weir_clock_http_date(uint64_t wall_s, char text[WEIR_HTTP_DATE_SIZE]);

/* "2026-11-20T10:00:00.123Z" (RFC 3339). Writes exactly WEIR_TIMESTAMP_SIZE bytes and no NUL; years
 * 1970 to 9999. */
#define WEIR_TIMESTAMP_SIZE 24
void weir_clock_timestamp(uint64_t wall_ns, char text[WEIR_TIMESTAMP_SIZE]);

#endif
