/* SPDX-License-Identifier: Apache-2.0 */
/* Matching a descriptor against the nodes of its domain, and the key of its counters. */
#ifndef WEIR_FEATURE_ENVOY_RULES_MATCH_H
#define WEIR_FEATURE_ENVOY_RULES_MATCH_H

#include "feature/envoy/rules/compiled.h"
#include "feature/envoy/rules/plan_memory.h"

/* How one entry was matched. */
struct envoy_step {
    const struct envoy_node *node;
    bool by_pattern, by_value;
};

/* The path of one descriptor. */
struct envoy_walk {
    const struct weir_envoy_rule *rule; /* NULL: no limit */
    uint32_t steps;
    struct envoy_step path[ENVOY_LEVELS_MAX];
};
/* `room` has place for the longest "key_value" of the request. */
void envoy_walk(const struct weir_envoy *envoy, uint32_t domain,
                const struct weir_envoy_descriptor *descriptor, char *room,
                struct envoy_walk *walk);

/* The pattern's part that stands for a value: "foo*" of "wild_foo*" under the key "wild". */
struct weir_bytes envoy_pattern_value(const struct envoy_node *node, struct weir_bytes key);

/* The key of the counters of a walk that found a rule; `fixed` where it is the rule's own. */
struct weir_bytes envoy_stat(struct weir_envoy_plan *plan, const struct weir_envoy_descriptor *of,
                             const struct envoy_walk *walk, bool *fixed);
struct weir_bytes envoy_override_stat(struct weir_envoy_plan *plan,
                                      const struct weir_envoy_descriptor *of);
size_t envoy_stat_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request);

#endif
