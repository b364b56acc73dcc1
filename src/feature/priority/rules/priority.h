/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities: the class of a request, and what of a limit each class may use.
 *
 *   priority: { from: header.x-priority, classes: [critical, normal, sheddable] }
 *   limits:
 *   - { name: api, key: [], rate: 1000/s, shed: { normal: 90%, sheddable: 60% } }
 *
 * A class comes from a header field of a trusted request (weir_request.trusted), from the caller's
 * plan, or from the path. A request without one of the classes has the default class.
 *
 * `shed` is a scale of the kind WEIR_SCALE_RESERVE (scale.h): at 60 % the last 40 % of the limit
 * are kept for the classes above, and a bucket refills at its whole rate.
 *
 * Threads: reads the rules only. Allocates nothing.
 */
#ifndef WEIR_FEATURE_PRIORITY_RULES_PRIORITY_H
#define WEIR_FEATURE_PRIORITY_RULES_PRIORITY_H

#include <stdint.h>

#define RULES_CLASSES_MAX 16

enum rules_priority_source {
    RULES_PRIORITY_HEADER, /* `attribute`, of trusted requests only */
    RULES_PRIORITY_PLAN,
    RULES_PRIORITY_ROUTES,
};

/* Requests whose path is in the pattern have the class. */
struct rules_class_route {
    uint32_t atom;
    uint8_t class;
};

struct rules_priority {
    uint8_t source, class_count, fallback; /* fallback: the default class */
    uint16_t attribute;
    const char *names[RULES_CLASSES_MAX];   /* the most important first, unless they are plans */
    const struct rules_class_route *routes; /* the first that holds counts */
    uint32_t route_count;
};

struct rules_evaluation;

/* The class of the request: an index into `names`. The rules have priorities. */
uint8_t rules_class_of(struct rules_evaluation *evaluation);

struct weir_rules;

/* The classes of the rules; NULL: they have no `priority`. */
const struct rules_priority *weir_rules_priority(const struct weir_rules *rules);

/* What each class may use of a limit, in percent; NULL: the limit has no `shed`. */
const uint8_t *weir_rules_shed(const struct weir_rules *rules, uint32_t rule);

#endif
