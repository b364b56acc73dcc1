/* SPDX-License-Identifier: Apache-2.0 */
/* Three regions for tests of the engine: this node is in eu, and asks us and ap. */
#ifndef TESTS_ENGINE_THREE_REGIONS_H
#define TESTS_ENGINE_THREE_REGIONS_H

#include "rig.h"

/* Rules up to their limits. */
#define REGIONS                                                                                    \
    "store: {nodes: 1}\n"                                                                          \
    "regions: {self: eu, eu: {redis: 'redis://h:1'}, us: {redis: 'redis://h:2'},\n"                \
    "          ap: {redis: 'redis://h:3'}}\n"                                                      \
    "limits:\n"

/* A request of the user ann that the rules have made checks of; it is not queued. */
static inline struct weir_decision *take_request(struct rig *rig, uint64_t cost)
{
    static const char *const pairs[] = {"user", "ann", NULL};
    struct weir_reason reason;
    struct weir_request request;
    struct weir_decision *decision = rig_take(rig, 0);
    rig_request(&request, weir_engine_rules(rig->engine), pairs);
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(rig->engine, decision, &request, &reason), 0);
    return decision;
}

#endif
