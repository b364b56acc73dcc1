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
 * (server/http/limit_spec.h). `dry_run` is also allowed beside the fields of a single limit. An
 * unknown or repeated field is an error.
 *
 * Memory: none but the caller's. Strings point into the text.
 */
#ifndef WEIR_WIRE_JSON_LIMIT_H
#define WEIR_WIRE_JSON_LIMIT_H

#include <stdbool.h>

#include "core/check.h"

#define WEIR_LIMIT_NAME_MAX 64 /* as of a limit in a rules file */

enum weir_limit_field {
    WEIR_LIMIT_KEY,
    WEIR_LIMIT_NAME,
    WEIR_LIMIT_RATE,
    WEIR_LIMIT_ALGORITHM,
    WEIR_LIMIT_BURST,
    WEIR_LIMIT_SEGMENTS,
    WEIR_LIMIT_STRICT,
    WEIR_LIMIT_QUEUE,
    WEIR_LIMIT_LIMIT,
    WEIR_LIMIT_LIFE,
    WEIR_LIMIT_COST,
    WEIR_LIMIT_FIELDS,
};

/* "rate"; static storage. */
const char *weir_limit_field_name(enum weir_limit_field field);

struct weir_limit_json {
    struct weir_bytes key;                   /* at least one byte */
    struct weir_bytes name;                  /* 1 to WEIR_LIMIT_NAME_MAX of a-z 0-9 . _ -, or absent
                                                (data == NULL) */
    struct weir_bytes rate, algorithm, life; /* as given; absent: data == NULL */
    uint64_t burst, segments, limit;         /* 0 where absent */
    uint64_t cost;                           /* 1 where absent */
    uint32_t given;                          /* a bit for each enum weir_limit_field */
    bool strict, queue;
};

struct weir_limits_json {
    uint16_t count;   /* 1 to WEIR_CHECKS_MAX */
    bool listed;      /* they are a list, so that messages name the element */
    const char *list; /* the field that the list is: "limits"; NULL: the text is the list */
    bool dry_run;
    struct weir_limit_json limits[WEIR_CHECKS_MAX];
};

/* Returns 0. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (a number), WEIR_ERR_TOO_LARGE (more than
 * WEIR_CHECKS_MAX limits); `reason` (may be NULL) names the field and the byte, counted from 0:
 * "limits[1].cost: not an unsigned integer, at byte 31". */
int weir_limits_json_parse(char *text, size_t size, struct weir_limits_json *limits,
                           struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
