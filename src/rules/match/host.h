/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts of requests in normal form: lower case, without port and final dot; an IPv6 literal in
 * brackets, in RFC 5952's form.
 *
 * Threads: pure.
 */
#ifndef WEIR_RULES_MATCH_HOST_H
#define WEIR_RULES_MATCH_HOST_H

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_HOST_MAX 255 /* RFC 1035 2.3.4 */

/* Brings a host to its normal form. *host points into `raw` where that is normal already, else into
 * `out` (WEIR_HOST_MAX bytes). Errors: WEIR_ERR_SYNTAX, WEIR_ERR_TOO_LARGE (longer than
 * WEIR_HOST_MAX), with `reason` (may be NULL) beginning "host: ". */
int weir_host_normalise(struct weir_bytes *host, struct weir_bytes raw, char *out,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
