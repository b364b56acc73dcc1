/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: the path patterns of a rules file, by number, and which route and plan a request has.
 *
 * A route is a pattern as the file writes it, never the path of a request, so that it shows no
 * identifiers. Of several patterns that a path is in, the most specific one is its route: literal
 * segments before ":name" and "*", and those before a final "**". A path that no limit has asked
 * for has no route.
 *
 * Threads: immutable after loading.
 */
#ifndef WEIR_RULES_MATCH_ROUTES_H
#define WEIR_RULES_MATCH_ROUTES_H

#include <stdint.h>

#include <weir/bytes.h>

#define WEIR_NO_ROUTE UINT32_MAX
#define WEIR_NO_PLAN UINT32_MAX

struct weir_rules;

/* Where a request belongs. */
struct weir_request_place {
    uint32_t route; /* WEIR_NO_ROUTE: in none, or not known */
    uint32_t plan;  /* of its caller; WEIR_NO_PLAN: none, or no limit has asked for the caller */
};

/* The texts; data == NULL where there is none. They are the rules' own. */
struct weir_bytes weir_rules_route_text(const struct weir_rules *rules, uint32_t route);
struct weir_bytes weir_rules_plan_name(const struct weir_rules *rules, uint32_t plan);

/* --- Within the rules ------------------------------------------------------------------------- */

struct rules_named_route {
    uint32_t atom; /* its number */
    struct weir_bytes text;
};

/* In the order of their numbers. */
struct rules_routes {
    struct rules_named_route *list;
    uint32_t count, room;
};

/* Appends a route; its number is above those before. `text` is borrowed. Errors:
 * WEIR_ERR_MEMORY. */
int rules_routes_add(struct rules_routes *routes, uint32_t atom, struct weir_bytes text)
    __attribute__((warn_unused_result));
void rules_routes_free(struct rules_routes *routes);

struct rules_evaluation;

/* Where the request of an evaluation belongs, as far as its limits have asked. */
void rules_place_of(const struct rules_evaluation *evaluation, struct weir_request_place *place);

#endif
