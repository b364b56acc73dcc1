/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of a query: "b" of "/a?b=1&c=2".
 *
 * The query begins after the first "?" of the target and ends at a "#" or the end. "&" separates
 * parameters, and the first "=" a name from its value; a parameter without "=" has an empty value.
 * Names and values are decoded as application/x-www-form-urlencoded (WHATWG URL 5.1): "+" is a
 * space, %xx a byte; a "%" that two hex digits do not follow stands for itself. So "api_key" is
 * found however it is encoded. Of a name that comes more than once, the first counts.
 *
 * Threads: pure. Allocates nothing. One pass over the query.
 */
#ifndef WEIR_RULES_MATCH_QUERY_H
#define WEIR_RULES_MATCH_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/bytes.h>

/* Bytes of a decoded value: tokens of 1 KiB are long. A longer value counts as absent. */
#define WEIR_QUERY_VALUE_MAX 2048

/* Finds the first parameter called `name`, which is decoded. *value points into `target` and is
 * still encoded. False: there is none. */
bool weir_query_find(struct weir_bytes target, struct weir_bytes name, struct weir_bytes *value);
/* The same of the last one. */
bool weir_query_find_last(struct weir_bytes target, struct weir_bytes name,
                          struct weir_bytes *value);

/* Whether there are two of this name whose values are written differently. */
bool weir_query_differs(struct weir_bytes target, struct weir_bytes name);

/* Decodes a value: *decoded points into `encoded` where that is decoded already (the common case),
 * else into `out`. Returns the bytes taken of `out`; -1: the value is longer than `room` or
 * WEIR_QUERY_VALUE_MAX. */
long weir_query_decode(struct weir_bytes encoded, struct weir_bytes *decoded, char *out,
                       size_t room);

#endif
