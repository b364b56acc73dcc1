/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that a request brings along (/v1/limit, weir.v1.Limiter), as their codecs read them.
 *
 * Which fields an algorithm needs, and what their texts mean, is the reader's matter
 * (server/adhoc/limit_spec.h).
 *
 * Threads: pure.
 */
#ifndef WEIR_WIRE_GIVEN_LIMITS_H
#define WEIR_WIRE_GIVEN_LIMITS_H

#include <stdbool.h>

#include "core/check.h"

#define WEIR_LIMIT_NAME_MAX 64 /* as of a limit in a rules file */
#define WEIR_LIMIT_NAME_RULE "must be 1 to 64 of a-z, 0-9, '.', '_', '-'"

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

/* Whether a text follows WEIR_LIMIT_NAME_RULE. */
bool weir_limit_name_valid(struct weir_bytes name);

struct weir_given_limit {
    struct weir_bytes key;                   /* at least one byte */
    struct weir_bytes name;                  /* valid, or absent (data == NULL) */
    struct weir_bytes rate, algorithm, life; /* as given; absent: data == NULL */
    uint64_t burst, segments, limit;         /* 0 where absent */
    uint64_t cost;                           /* 1 where absent */
    uint32_t given;                          /* a bit for each enum weir_limit_field */
    bool strict, queue;
};

struct weir_given_limits {
    uint16_t count;   /* 1 to WEIR_CHECKS_MAX */
    bool listed;      /* they are a list, so that messages name the element */
    const char *list; /* the field that the list is: "limits"; NULL: the text is the list */
    bool dry_run;
    struct weir_given_limit limits[WEIR_CHECKS_MAX];
};

#endif
