/* Rate-limit header fields of an HTTP answer, in the dialects of core/answer.h.
 *
 * Sources: draft-ietf-httpapi-ratelimit-headers-08 to -11 (RateLimit, RateLimit-Policy), serialised
 * as RFC 9651 lists of strings with parameters; -03 for the three single fields; RFC 9110 10.2.3
 * for Retry-After. q = N, r = min(remaining, q), t = seconds until 1 is admitted when r = 0, else
 * ceil(r*W/N) for buckets and reset_after for windows; w is left out where W is no whole number of
 * seconds. Integers are clamped to 999,999,999,999,999. Seconds are rounded up.
 * Shadow and unlimited limits are not told. The single-limit dialects tell the tightest limit: the
 * denying one, else the one with the least remaining.
 */
#ifndef WEIR_WIRE_RATELIMIT_HEADERS_H
#define WEIR_WIRE_RATELIMIT_HEADERS_H

#include "core/answer.h"

#define WEIR_RATELIMIT_HEADERS_MAX 8192

/* Writes the fields as "Name: value\r\n" lines, Retry-After (denials with a finite wait) included.
 * `wall_s` is the wall clock, for x-epoch. Returns the length (0: nothing to tell). */
size_t weir_ratelimit_headers_write(uint32_t dialects, const struct weir_answer *answer,
                                    uint64_t wall_s, char *out);

#endif
