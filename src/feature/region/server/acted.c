/* SPDX-License-Identifier: Apache-2.0 */
/* see acted.h */
#include "feature/region/server/acted.h"

#include <stdio.h>

#include "engine/engine.h"
#include "feature/region/rules/region.h"

size_t weir_acted_json(const struct weir_decision *decision, char text[WEIR_ACTED_MAX])
{
    const struct weir_rules *rules = weir_decision_rules(decision);
    const struct weir_check *check = &decision->checks[0];
    struct weir_region_info info;
    int size = 0;
    text[0] = '\0';
    if (!rules || check->rule == UINT32_MAX ||
        !weir_rules_region(rules, check->rule, check->key, &info))
        return 0;
    if (weir_engine_reached(decision))
        size = snprintf(text, WEIR_ACTED_MAX, "\"regions\":[\"%.*s\",\"%.*s\"],",
                        (int)info.self.size, info.self.data, (int)info.home.size, info.home.data);
    else
        size = snprintf(text, WEIR_ACTED_MAX, "\"regions\":[\"%.*s\"],", (int)info.self.size,
                        info.self.data);
    return (size_t)size;
}

bool weir_acted_problem(const struct weir_decision *decision, char text[WEIR_ACTED_MAX])
{
    struct weir_bytes region;
    if (!weir_engine_unreached(decision, &region))
        return false;
    /* To repeat a grant would give this region's part twice. */
    bool grants = decision->op == WEIR_OP_REFUND;
    snprintf(text, WEIR_ACTED_MAX,
             "done in this region, but not in the key's home, %.*s, which has not answered; %s",
             (int)region.size, region.data,
             grants ? "grant that part at a node of its region" : "try again");
    return true;
}
