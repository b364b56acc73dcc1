/* SPDX-License-Identifier: Apache-2.0 */
/* see cause.h */
#include "feature/use/engine/cause.h"

#include "engine/effect/action.h"
#include "engine/state.h"
#include "feature/standing/rules/match.h"

const char *const weir_cause_names[WEIR_CAUSES] = {"limit",     "standing", "unknown",
                                                   "challenge", "store",    "unreadable"};

enum weir_cause weir_decision_cause(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct weir_caller_standing *standing = weir_decision_standing(decision);
    if (weir_engine_refusal(decision))
        return WEIR_CAUSE_UNREADABLE;
    if (decision->source == WEIR_SOURCE_CLOSED)
        return WEIR_CAUSE_STORE;
    if (standing && standing->refused)
        return standing->unknown ? WEIR_CAUSE_UNKNOWN : WEIR_CAUSE_STANDING;
    if (entry->generation && entry->generation->acts && weir_action_challenges(decision))
        return WEIR_CAUSE_CHALLENGE;
    return WEIR_CAUSE_LIMIT;
}
