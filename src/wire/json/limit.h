/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of /v1/limit: requests that bring their limits. A parser for one fixed schema, in place,
 * as check.h.
 *
 *   {"key","name","rate","algorithm","burst","segments","strict","queue","limit","life","cost"}
 *   [{...},{...}]
 *   {"limits":[{...},{...}],"dry_run":true}
 *
 * One limit, or 1 to WEIR_CHECKS_MAX of them. `key` is required, all else optional here: which
 * fields an algorithm needs, and what their texts mean, is the reader's matter
 * (server/adhoc/limit_spec.h). `dry_run` is also allowed beside the fields of a single limit. An
 * unknown or repeated field is an error.
 *
 * Memory: none but the caller's. Strings point into the text.
 */
#ifndef WEIR_WIRE_JSON_LIMIT_H
#define WEIR_WIRE_JSON_LIMIT_H

#include "wire/given_limits.h"

/* Returns 0. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (a number), WEIR_ERR_TOO_LARGE (more than
 * WEIR_CHECKS_MAX limits); `reason` (may be NULL) names the field and the byte, counted from 0:
 * "limits[1].cost: not an unsigned integer, at byte 31". */
int weir_limits_json_parse(char *text, size_t size, struct weir_given_limits *limits,
                           struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
