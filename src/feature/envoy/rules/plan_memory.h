/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of a plan, which match.c, key.c and respond.c read and allocate from; see plan.h.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_PLAN_MEMORY_H
#define WEIR_FEATURE_ENVOY_RULES_PLAN_MEMORY_H

#include "feature/envoy/rules/envoy.h"

/* What is to be done for one descriptor. */
struct weir_envoy_item {
    const struct weir_envoy_rule *rule; /* NULL: no limit, or an override */
    const struct weir_limit *override;  /* of the request; NULL: none */
    struct weir_bytes stat;             /* the key of its counters; data == NULL: nothing counts */
    uint64_t hits;
    const struct weir_bytes *patterns; /* one per entry: replaces its value where data != NULL;
                                          NULL: none does */
    uint32_t part, parts;
    bool unlimited, fixed_stat; /* fixed_stat: `stat` is the rule's own */
};

/* One limit of one item: becomes one check. */
struct weir_envoy_part {
    const struct weir_limit *limit;
    uint64_t cost, now_ns;
    uint64_t used; /* of its limit, before this request; a fixed window may be over it */
    struct weir_report report;
    uint32_t item;
    uint8_t flags, on_store_error, op, index; /* index: of the limit in its rule */
    uint8_t verdict;
    int8_t error;
};

struct weir_envoy_plan {
    const struct weir_envoy *envoy;
    const struct weir_envoy_request *request;
    struct weir_envoy_item *items; /* one a descriptor */
    struct weir_envoy_part *parts;
    uint32_t part_count;
    uint32_t decisions;  /* that its parts take */
    uint32_t filled;     /* parts that are in a decision */
    bool refunds;        /* some hits are given back */
    bool unknown_domain; /* to be counted */
    bool together;       /* one atomic decision */
    bool overrides;      /* some descriptor brings its own limit */
    char *memory;        /* what is left of it */
};

/* Memory of a plan, rounded up to 16 bytes a piece; never NULL: weir_envoy_plan_size counted it. */
#define ENVOY_ALIGNED(size) (((size) + 15) & ~(size_t)15)
static inline void *envoy_plan_alloc(struct weir_envoy_plan *plan, size_t size)
{
    char *memory = plan->memory;
    plan->memory += ENVOY_ALIGNED(size);
    return memory;
}

#endif
