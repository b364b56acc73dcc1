/* SPDX-License-Identifier: Apache-2.0 */
/* see score_count.h */
#include "feature/score/engine/score_count.h"

#include "engine/state.h"

static void decided(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->score.found && entry->decision.op == WEIR_OP_DECIDE)
        weir_count(&engine->scores.requests[entry->score.class], 1);
}

static bool wanted(const struct weir_rules *rules)
{
    return weir_rules_score(rules);
}

const struct weir_hook weir_hook_score = {.wanted = wanted, .decided = decided};
