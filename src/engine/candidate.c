/* see candidate.h */
#include "engine/candidate.h"

#include <stdlib.h>

#include "engine/state.h"
#include "rules/candidate.h"

struct weir_trials {
    struct weir_pool pool;
};

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
    weir_count(&entry->generation->views[rule].tally->counters.trials[outcome]);
}

/* --- Asking ----------------------------------------------------------------------------------- */

/* The checks that the live limits decided by themselves: of what was borrowed, the first try. */
struct live {
    const struct weir_check *checks;
    const struct weir_outcome *outcomes;
    uint16_t count;
};

static struct live live_of(const struct weir_entry *entry)
{
    const struct weir_borrow *borrow = entry->borrow;
    if (borrow != NULL && borrow->borrowed)
        return (struct live){borrow->checks, borrow->outcomes, borrow->count};
    return (struct live){entry->checks, entry->outcomes, entry->decision.count};
}

/* Where the checks of the limit end whose first is `first`; whether one of them denies. */
static uint16_t end_of(const struct live *live, uint16_t first, bool *denied)
{
    uint16_t i = first;
    *denied = false;
    do
        *denied |= live->outcomes[i].verdict == WEIR_DENIED;
    while (++i < live->count && live->checks[i].rule == live->checks[first].rule);
    return i;
}

/* Whether a limit other than `rule` has denied the request. */
static bool others_deny(const struct weir_entry *entry, const struct live *live, uint32_t rule)
{
    if (entry->decision.verdict != WEIR_DENIED)
        return false;
    for (uint16_t i = 0; i < live->count; i++)
        if (live->checks[i].rule != rule && live->outcomes[i].verdict == WEIR_DENIED &&
            (live->checks[i].flags & (WEIR_CHECK_SHADOW | WEIR_CHECK_ONCE)) == 0)
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
    generation->pins++;
    return true;
}

bool weir_engine_apply_candidate(struct weir_decision *decision, const struct weir_decision *of,
                                 const struct weir_check *live)
{
    return apply(weir_entry_of(decision), weir_entry_of(of)->generation, live);
}

/* Lets the candidate of a limit decide, where it has one. */
static void try_limit(struct weir_engine *engine, struct weir_entry *entry, const struct live *live,
                      uint16_t first, bool denied)
{
    const struct weir_check *check = &live->checks[first];
    struct weir_generation *generation = entry->generation;
    if (!weir_rules_tries(generation->rules, check))
        return;
    struct weir_entry *trial =
        entry->decision.source == WEIR_SOURCE_STORE ? weir_pool_take(&engine->trials->pool) : NULL;
    if (trial == NULL) {
        count(entry, check->rule, WEIR_TRIAL_SKIPPED);
        return;
    }
    trial->trial = denied ? WEIR_TRIAL_OF_DENIED : WEIR_TRIAL_OF_ALLOWED;
    if (!apply(trial, generation, check)) {
        weir_engine_give_back(engine, trial);
        return;
    }
    /* What is charged on a denial is charged whoever has denied it. */
    bool charges =
        (check->flags & WEIR_CHECK_CHARGE_ON_DENY) != 0 || !others_deny(entry, live, check->rule);
    trial->decision.op = charges ? WEIR_OP_DECIDE : WEIR_OP_PEEK;
    weir_engine_queue(engine, &trial->decision);
}

void weir_candidates_follow(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    struct live live = live_of(entry);
    if (engine->trials == NULL || decision->op != WEIR_OP_DECIDE || decision->repeated ||
        decision->policy != WEIR_POLICY_ALL)
        return;
    for (uint16_t i = 0, end; i < live.count; i = end) {
        bool denied;
        end = end_of(&live, i, &denied);
        if (live.checks[i].rule < entry->generation->count)
            try_limit(engine, entry, &live, i, denied);
    }
}

/* --- Counting --------------------------------------------------------------------------------- */

void weir_candidate_decided(struct weir_engine *engine, struct weir_entry *trial, int error)
{
    uint32_t rule = trial->checks[0].rule;
    bool denied = trial->decision.verdict == WEIR_DENIED;
    enum weir_trial_outcome outcome = WEIR_TRIAL_SKIPPED;
    if (error == 0 && trial->trial == WEIR_TRIAL_OF_DENIED)
        outcome = denied ? WEIR_TRIAL_BOTH_DENY : WEIR_TRIAL_LOOSER;
    else if (error == 0)
        outcome = denied ? WEIR_TRIAL_STRICTER : WEIR_TRIAL_BOTH_ALLOW;
    count(trial, rule, outcome);
    if (engine->tried != NULL && outcome != WEIR_TRIAL_SKIPPED)
        engine->tried(engine->tried_context, &trial->checks[0], outcome);
    weir_engine_give_back(engine, trial);
}

/* --- Memory ----------------------------------------------------------------------------------- */

int weir_candidates_open(struct weir_engine *engine, const struct weir_rules *rules)
{
    if (engine->trials != NULL || !weir_rules_try(rules))
        return 0;
    struct weir_trials *trials = calloc(1, sizeof *trials);
    if (trials == NULL)
        return WEIR_ERR_MEMORY;
    int err = weir_pool_open(&trials->pool, WEIR_TRIALS_MAX);
    if (err < 0) {
        free(trials);
        return err;
    }
    engine->trials = trials;
    return 0;
}

void weir_candidates_close(struct weir_engine *engine)
{
    if (engine->trials == NULL)
        return;
    weir_pool_close(&engine->trials->pool);
    free(engine->trials);
    engine->trials = NULL;
}

struct weir_pool *weir_candidates_pool(struct weir_engine *engine)
{
    return &engine->trials->pool;
}
