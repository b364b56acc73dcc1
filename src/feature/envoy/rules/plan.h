/* SPDX-License-Identifier: Apache-2.0 */
/* One ShouldRateLimit request: from its descriptors to checks, and from their outcomes back to each
 * limit. The response is made from the plan (respond.h).
 *
 *   plan memory   | items | parts | patterns, keys of counters, texts of keys … statuses, headers |
 *
 * Threads: a plan belongs to one thread.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_PLAN_H
#define WEIR_FEATURE_ENVOY_RULES_PLAN_H

#include "core/check.h"
#include "feature/envoy/rules/plan_memory.h"

/* Gives the compiled limit of an override, or NULL and `reason`: the server knows the store. */
typedef const struct weir_limit *(*weir_envoy_override_fn)(void *context, uint32_t requests,
                                                           uint32_t seconds,
                                                           struct weir_reason *reason);

/* What is wrong with a request whatever the configuration says: WEIR_ERR_SYNTAX (no domain, no
 * descriptor), WEIR_ERR_TOO_LARGE (too many descriptors). */
int weir_envoy_request_check(const struct weir_envoy_request *request, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The bytes that a plan of a request that was checked may need. */
size_t weir_envoy_plan_size(const struct weir_envoy *envoy,
                            const struct weir_envoy_request *request);

/* Matches all descriptors. `memory` (aligned to 16) has weir_envoy_plan_size bytes and stays with
 * the plan, as do `envoy` and `request`. Errors: WEIR_ERR_RANGE (an override without a unit, or
 * beside another limit of the same state where all are charged together), WEIR_ERR_TOO_LARGE (too
 * many limits to be decided together), WEIR_ERR_FULL (no room for an override's limit); `reason`
 * has the text for the client. */
int weir_envoy_plan_make(struct weir_envoy_plan *plan, const struct weir_envoy *envoy,
                         const struct weir_envoy_request *request, void *memory,
                         weir_envoy_override_fn override, void *context, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Puts the next parts into a decision (room for WEIR_CHECKS_MAX checks): op, policy, checks, count.
 * Key texts, which only shared stores need, are in the plan's memory; `secret` is what keys
 * are hashed with; refunds are of what was charged in the window of `now_ns`, and so, with
 * redis_compat, are counters: then it is the wall clock's. Returns the number of the first part, to
 * be given to weir_envoy_plan_take; -1: there are no more. */
long weir_envoy_plan_fill(struct weir_envoy_plan *plan, struct weir_decision *decision,
                          const uint64_t secret[2], uint64_t now_ns);

/* Takes the outcomes of a finished decision. */
void weir_envoy_plan_take(struct weir_envoy_plan *plan, long first,
                          const struct weir_decision *decision);

#endif
