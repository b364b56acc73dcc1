/* SPDX-License-Identifier: Apache-2.0 */
/* see candidate.h */
#include "engine/effect/candidate.h"

#include "engine/hook.h"
#include "engine/state.h"
#include "engine/turn.h"
#include "feature/region/rules/region.h"
#include "rules/charge/candidate.h"

const char *weir_trial_name(enum weir_trial_outcome outcome)
{
    static const char *const names[WEIR_TRIAL_OUTCOMES] = {
        [WEIR_TRIAL_BOTH_ALLOW] = "both_allow", [WEIR_TRIAL_BOTH_DENY] = "both_deny",
        [WEIR_TRIAL_STRICTER] = "stricter",     [WEIR_TRIAL_LOOSER] = "looser",
        [WEIR_TRIAL_SKIPPED] = "skipped",
    };
    return names[outcome];
}

static void count(const struct weir_entry *entry, uint32_t rule, enum weir_trial_outcome outcome)
{
    weir_count(&entry->generation->views[rule].tally->counters.trials[outcome], 1);
}

/* --- Asking ----------------------------------------------------------------------------------- */

/* Whether one of the checks [first, end) of a limit denies: its own verdict, also in shadow. */
static bool denies(const struct weir_decision *live, uint16_t first, uint16_t end)
{
    for (uint16_t i = first; i < end; i++)
        if (live->outcomes[i].verdict == WEIR_DENIED)
            return true;
    return false;
}

/* Whether a limit other than `rule` has denied the request. */
static bool others_deny(const struct weir_decision *live, uint32_t rule)
{
    for (uint16_t i = 0; i < live->count; i++)
        if (live->checks[i].rule != rule && live->outcomes[i].verdict == WEIR_DENIED &&
            (live->checks[i].flags & WEIR_CHECK_SILENT) == 0)
            return true;
    return false;
}

/* Fills a decision with a candidate's checks; false: there is none. */
static bool apply(struct weir_entry *entry, struct weir_generation *generation,
                  const struct weir_check *live)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_bytes key;
    decision->count = weir_rules_candidate(generation->rules, live, decision->checks);
    if (decision->count == 0)
        return false;
    key = weir_decision_keep(decision, live->key);
    for (uint16_t i = 0; i < decision->count; i++)
        decision->checks[i].key = key;
    entry->generation = generation;
    entry->hooks |= generation->hooks;
    generation->pins++;
    return true;
}

bool weir_engine_apply_candidate(struct weir_decision *decision, const struct weir_decision *of,
                                 const struct weir_check *live)
{
    return apply(weir_entry_of(decision), weir_entry_of(of)->generation, live);
}

/* Has a trial look at the live limit, too: what it admitted is remembered, not decided now. */
static void look_at_live(struct weir_entry *trial, const struct weir_decision *live, uint16_t first,
                         uint16_t end)
{
    struct weir_decision *decision = &trial->decision;
    for (uint16_t i = first; i < end; i++) {
        struct weir_check *check = &decision->checks[decision->count++];
        *check = live->checks[i];
        check->key = decision->checks[0].key;
        trial->trial_live++;
    }
}
_Static_assert(2 * WEIR_RATES_MAX <= WEIR_CHECKS_MAX, "a candidate and its limit fit");

/* Lets the candidate of a limit decide, where it has one; `live`: what its limits decided by
 * themselves, of which that limit's checks are [first, end). */
static void try_limit(struct weir_engine *engine, const struct weir_entry *entry,
                      const struct weir_decision *live, uint16_t first, uint16_t end)
{
    const struct weir_check *check = &live->checks[first];
    struct weir_generation *generation = entry->generation;
    if (!weir_rules_has_candidate(generation->rules, check))
        return;
    bool by_own_store = live->source == WEIR_SOURCE_STORE;
    for (uint16_t i = first; i < end && by_own_store; i++)
        by_own_store = !weir_rules_is_by_other_home(generation->rules, &live->checks[i]);
    struct weir_entry *trial = by_own_store ? weir_pool_take(engine->trials) : NULL;
    if (!trial) {
        count(entry, check->rule, WEIR_TRIAL_SKIPPED);
        return;
    }
    trial->live_denied = denies(live, first, end);
    if (!apply(trial, generation, check)) {
        weir_engine_give_back(engine, trial);
        return;
    }
    /* A limit that is charged on a denial is charged whichever limit has denied the request. */
    bool charges = (check->flags & WEIR_CHECK_CHARGE_ON_DENY) != 0 ||
                   live->verdict != WEIR_DENIED || !others_deny(live, check->rule);
    trial->decision.network = live->network;
    trial->decision.op = charges ? WEIR_OP_DECIDE : WEIR_OP_PEEK;
    if (live->remembered && !charges && !trial->live_denied)
        look_at_live(trial, live, first, end);
    weir_engine_prefetch(engine, &trial->decision);
    weir_engine_queue(engine, &trial->decision);
}

static void follow(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    struct weir_decision live;
    if (!engine->trials || decision->op != WEIR_OP_DECIDE || decision->repeated ||
        decision->policy != WEIR_POLICY_ALL)
        return;
    weir_engine_own(decision, &live);
    for (uint16_t i = 0, end; i < weir_decision_limits(&live); i = end) {
        end = weir_decision_limit_end(&live, i);
        if (live.checks[i].rule < entry->generation->count)
            try_limit(engine, entry, &live, i, end);
    }
}

/* --- Counting --------------------------------------------------------------------------------- */

static void count_outcome(struct weir_engine *engine, const struct weir_entry *trial,
                          enum weir_trial_outcome outcome)
{
    count(trial, trial->checks[0].rule, outcome);
    if (engine->tried && outcome != WEIR_TRIAL_SKIPPED)
        engine->tried(engine->tried_context, &trial->checks[0], outcome);
}

static bool trial_decided(struct weir_engine *engine, struct weir_entry *trial)
{
    const struct weir_decision *decision = &trial->decision;
    uint16_t rates = decision->count - trial->trial_live;
    bool live = trial->live_denied || denies(decision, rates, decision->count);
    bool denied = denies(decision, 0, rates);
    count_outcome(engine, trial,
                  live ? (denied ? WEIR_TRIAL_BOTH_DENY : WEIR_TRIAL_LOOSER)
                       : (denied ? WEIR_TRIAL_STRICTER : WEIR_TRIAL_BOTH_ALLOW));
    weir_engine_give_back(engine, trial);
    return false;
}

static bool trial_failed(struct weir_engine *engine, struct weir_entry *trial, int error)
{
    (void)error;
    count_outcome(engine, trial, WEIR_TRIAL_SKIPPED);
    weir_engine_give_back(engine, trial);
    return false;
}

static const struct weir_purpose trial_purpose = {.decided = trial_decided, .failed = trial_failed};

/* --- Memory ----------------------------------------------------------------------------------- */

static int open(struct weir_engine *engine, const struct weir_rules *rules)
{
    if (engine->trials || !weir_rules_any_candidate(rules))
        return 0;
    return weir_pool_make(&engine->trials, WEIR_TRIALS_MAX, &trial_purpose);
}

const struct weir_hook weir_hook_candidate = {
    .wanted = weir_rules_any_candidate,
    .open = open,
    .counted = follow,
};
