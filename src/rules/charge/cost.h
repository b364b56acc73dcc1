/* SPDX-License-Identifier: Apache-2.0 */
/* What a request costs one limit, where that is more than a number (`cost`): a table per route, or
 * the value of an attribute.
 *
 * A table is a list of path patterns, each for one method or for all; the first that matches says
 * the cost. Its patterns are atoms of the file's path trie, so that all tables and matches of a
 * request take one walk through it.
 *
 * An attribute is what a client says, so it is bounded: a value that is no number or out of range
 * is refused, before anything is charged, or counts as the default (`on_bad: default`).
 *
 * Threads: immutable once loaded. Allocates nothing.
 */
#ifndef WEIR_RULES_CHARGE_COST_H
#define WEIR_RULES_CHARGE_COST_H

#include "rules/match/evaluate.h"

#define RULES_ROUTES_MAX 256 /* of one table: it is walked from the front */

struct rules_route {
    uint32_t atom;            /* of its pattern */
    struct weir_bytes method; /* data == NULL: any */
    uint64_t cost;
    const char *path; /* the pattern, for people */
};

struct rules_cost {
    const struct rules_route *routes;
    uint32_t route_count;
    uint64_t otherwise; /* the default */
    bool from;          /* an attribute, then: */
    bool lenient;       /* a bad value counts as the default */
    uint16_t attribute;
    uint64_t least, most;
    const char *name; /* of the attribute */
};

/* The cost of the request. Errors: WEIR_ERR_SYNTAX (a bad value; the evaluation's reason names the
 * attribute). */
int rules_cost_of(struct rules_evaluation *evaluation, const struct rules_cost *costs,
                  uint64_t *cost) __attribute__((warn_unused_result));

#endif
