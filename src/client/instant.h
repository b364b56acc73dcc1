/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time and durations as servers write them.
 *
 * Sources: RFC 9110 5.6.7 (IMF-fixdate, RFC 850, asctime), RFC 3339 (Anthropic's reset fields),
 * Go's durations ("6m0s", "120ms": OpenAI's reset fields).
 *
 * Pure functions over borrowed text; no allocation. A text that is not exactly of its form is
 * refused.
 */
#ifndef WEIR_CLIENT_INSTANT_H
#define WEIR_CLIENT_INSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/bytes.h>

/* Longer waits are not believed: a month and a day. */
#define WEIR_INSTANT_HORIZON_NS (UINT64_C(32) * 86400 * 1000000000)

/* Seconds since 1970, for the years 1970 to 9999. A year of two digits is the one nearest to
 * `now_s`: at most 50 years ahead. */
bool weir_instant_http_date(struct weir_bytes text, int64_t now_s, int64_t *seconds);

/* "2026-11-23T04:00:00Z", with an optional fraction (ignored) and an offset. */
bool weir_instant_rfc3339(struct weir_bytes text, int64_t *seconds);

/* A decimal number of at most 18 digits before the point, as its whole part and billionths. */
bool weir_instant_number(struct weir_bytes text, uint64_t *whole, uint32_t *billionths);

/* "1h2m3.5s", "20ms": nanoseconds, at most WEIR_INSTANT_HORIZON_NS. */
bool weir_instant_duration(struct weir_bytes text, uint64_t *duration_ns);

/* The value of Retry-After (RFC 9110 10.2.3): seconds, a fraction allowed, or a date, which counts
 * from the server's own Date where there is one (`server_s`, NULL: none), since its clock may be
 * wrong, else from `now_s`. A date in the past is 0, what is beyond the horizon is the horizon. Of
 * several with commas between them the largest counts. False: one of them is neither. */
bool weir_instant_retry_after(struct weir_bytes text, const int64_t *server_s, int64_t now_s,
                              uint64_t *wait_ns);

#endif
