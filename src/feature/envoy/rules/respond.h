/* SPDX-License-Identifier: Apache-2.0 */
/* From the outcomes of a plan to the response, and to what is counted. */
#ifndef WEIR_FEATURE_ENVOY_RULES_RESPOND_H
#define WEIR_FEATURE_ENVOY_RULES_RESPOND_H

#include "feature/envoy/rules/plan_memory.h"

/* What one descriptor adds to its counters, in the original's way. */
struct weir_envoy_tally {
    uint64_t total_hits, over_limit, near_limit, over_limit_with_local_cache, within_limit,
        shadow_mode, total_negative_hits;
};
void weir_envoy_tally(const struct weir_envoy_plan *plan, uint32_t item,
                      struct weir_envoy_tally *tally);

/* The response of a plan whose parts are all taken; what it points at is in the plan's memory,
 * in the request and in the configuration. *shadowed: SHADOW_MODE turned it. Errors: WEIR_ERR_STORE
 * where the store failed for a limit with WEIR_ENVOY_STORE_FAIL. */
int weir_envoy_respond(struct weir_envoy_plan *plan, struct weir_envoy_response *response,
                       bool *shadowed) __attribute__((warn_unused_result));

/* The bytes of a plan's memory that a response may need. */
size_t envoy_respond_size(const struct weir_envoy *envoy, const struct weir_envoy_request *request);

#endif
