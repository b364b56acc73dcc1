/* SPDX-License-Identifier: Apache-2.0 */
/* Rate-limit header fields of an HTTP answer, in the dialects of core/answer.h.
 *
 * Sources: draft-ietf-httpapi-ratelimit-headers-08 to -11 (RateLimit, RateLimit-Policy), serialised
 * as RFC 9651 lists of strings with parameters; -03 for the three single fields; RFC 9110 10.2.3
 * for Retry-After.
 *
 * draft: one list member a limit, in the order of the answer; a limit of several rates has one for
 * each, named by the limit and the number of the rate ("api:2"), which no limit of a rules file is
 * called. q = N; qu = "concurrent-requests" for concurrency; w = W, left out for concurrency and
 * quotas and where W is no whole number of seconds. r = min(remaining, q). t, in seconds:
 *
 *   fixed windows, quotas   until the window or period ends, a true reset; left out for N = 0
 *   the limit denied        Retry-After: until the denied cost is admitted, whatever r is; where
 * that is never, as if it had admitted r = 0                   until 1 is admitted; left out for
 * "never" concurrency             left out: leases end when they end all others ceil(r*W/N), never
 * above w: they have no reset, and who paces r/t goes at the limit's own pace
 *
 * The other dialects tell one limit, the tightest: the one to blame for a denial, else the one with
 * the least remaining: its capacity, remaining, and t as the reset (x-epoch: the time of it); where
 * there is no t, reset_after.
 *
 * X-RateLimit-Warning is house-made, beside whatever dialects there are: a list in the order of the
 * answer of the limits that have reached a threshold (`warn_at`): the highest one in percent, what
 * is used, and of how much. X-RateLimit-Warning: "month";threshold=80;used=8512;limit=10000
 *
 * X-RateLimit-Standing is house-made too, and only in the dialect WEIR_HEADERS_STANDING: the level
 * as a token, the seconds until it ends, unless it has no end, and the reason, if it is printable
 * ASCII of at most WEIR_RATELIMIT_REASON_MAX bytes. X-RateLimit-Standing:
 * throttled;t=3600;reason="abuse"
 *
 * X-RateLimit-Dimension, in the dialect WEIR_HEADERS_DIMENSION, names the limit that denies.
 *
 * X-Weir-Score is there, whatever the dialects, where the rules ask for it (`score: { debug: true
 * }`): the class, and the signals that hold. X-Weir-Score: suspicious;score=45, no-agent;add=30,
 * unproven;add=15
 *
 * Seconds are rounded up; integers are clamped to 999,999,999,999,999 (RFC 9651 3.3.1). Not shown
 * are shadow and unlimited limits, checks without a limit, and names that no structured string can
 * hold (beyond printable ASCII) or longer than WEIR_RATELIMIT_NAME_MAX.
 */
#ifndef WEIR_WIRE_HTTP_RATELIMIT_HEADERS_H
#define WEIR_WIRE_HTTP_RATELIMIT_HEADERS_H

#include "core/answer.h"

/* As long as names in a rules file may be. */
#define WEIR_RATELIMIT_NAME_MAX 64

#define WEIR_RATELIMIT_REASON_MAX 255

/* Room that is always enough: WEIR_CHECKS_MAX limits, thrice an escaped name (2 * 64 + 2 bytes)
 * with its rate's number (3) and its parameters (at most 80), and 2 KiB for the fields that come
 * once, of which X-Weir-Score takes at most WEIR_SCORE_FIELD_MAX: signals beyond are left out. */
#define WEIR_RATELIMIT_HEADERS_MAX (WEIR_CHECKS_MAX * 3 * (2 * WEIR_RATELIMIT_NAME_MAX + 85) + 2048)
#define WEIR_SCORE_FIELD_MAX 1024

/* Makes the texts of a limit of one rate (struct weir_limit_texts). */
void weir_ratelimit_texts_make(struct weir_limit_texts *texts, struct weir_bytes name,
                               const struct weir_limit *limit);

/* Writes the fields as "Name: value\r\n" lines, Retry-After (denials with a finite wait) included.
 * `dialects` is a set of enum weir_header_dialect, in which x-epoch takes the place of x-delta;
 * `wall_s` is the wall clock in whole seconds, for x-epoch (the part of a second that it lacks is
 * made up for by rounding up once more); `out` has
 * WEIR_RATELIMIT_HEADERS_MAX bytes. Returns the length (0: nothing to tell). */
size_t weir_ratelimit_headers_write(uint32_t dialects, const struct weir_answer *answer,
                                    uint64_t wall_s, char *out);

#endif
