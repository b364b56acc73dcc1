/* SPDX-License-Identifier: Apache-2.0 */
/* see reach.h */
#include "feature/region/engine/reach.h"

#include "engine/hook.h"
#include "engine/state.h"
#include "engine/turn.h"
#include "feature/region/engine/question.h"
#include "feature/region/rules/region.h"

/* The operation is given back: its questions are left. */
static void drop(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_entry *next;
    for (struct weir_entry *asked = entry->reached; asked; asked = next) {
        next = asked->question->next;
        weir_question_end(engine, asked, true, WEIR_QUESTION_LEFT);
    }
    entry->reached = NULL;
}

void weir_engine_reach_homes(struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    entry->homes = true;
    entry->hooks |= WEIR_HOOK_BIT(REACH);
    entry->drop = drop;
    entry->asked = entry->acts_far = false;
    entry->reached = NULL;
    entry->unreached = 0;
}

bool weir_engine_unreached(const struct weir_decision *decision, struct weir_bytes *region)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    struct weir_region_info info;
    if (!entry->homes || entry->unreached == 0)
        return false;
    const struct weir_check *check = &entry->checks[entry->unreached - 1];
    (void)weir_rules_region(entry->generation->rules, check->rule, check->key, &info);
    *region = info.home;
    return true;
}

bool weir_engine_reached(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->homes && entry->acts_far;
}

/* The home's outcome in place of the own one; what the own store has done counts too. */
static void merge(struct weir_decision *decision, const struct weir_entry *answered)
{
    for (uint16_t i = 0; i < answered->decision.count; i++) {
        uint8_t place = answered->question->places[i];
        struct weir_check *check = &decision->checks[place];
        struct weir_outcome *outcome = &decision->outcomes[place], own = *outcome;
        weir_question_outcome(answered, i, outcome);
        outcome->charged |= own.charged;
        if (own.verdict == WEIR_ALLOWED)
            outcome->verdict = WEIR_ALLOWED;
        check->limit = answered->decision.checks[i].limit;
        check->flags &= (uint8_t)~WEIR_CHECK_ALWAYS_DENY; /* of a floor that is nothing */
    }
}

static void conclude(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_entry *next;
    for (struct weir_entry *answered = entry->reached; answered; answered = next) {
        const struct weir_question *question = answered->question;
        next = question->next;
        if (question->open || question->result == WEIR_QUESTION_FAILED)
            entry->unreached = (uint8_t)(1 + question->places[0]);
        else
            merge(&entry->decision, answered);
        weir_question_end(engine, answered, true, WEIR_QUESTION_LATE);
    }
    entry->reached = NULL;
    weir_decision_join(&entry->decision);
}

static void answered(struct weir_engine *engine, struct weir_entry *entry)
{
    for (struct weir_entry *next = entry->reached; next; next = next->question->next)
        if (next->question->open)
            return;
    weir_turn_resume(engine, entry);
    conclude(engine, entry);
    weir_turn_settle(engine, entry, 0);
}

/* The operation on one check, in its home. */
static void add(struct weir_engine *engine, struct weir_entry *entry, uint16_t i,
                const struct weir_home *home, struct weir_entry **question)
{
    struct weir_store *store = engine->regions[home->region];
    if (store && !*question) {
        *question = weir_question_take(engine, entry, home->region, WEIR_QUESTION_NS, answered);
        if (*question) {
            uint64_t now_ns = weir_engine_now(engine);
            (*question)->decision.charged_at_ns =
                store->ops->time ? store->ops->time(store, now_ns) : now_ns;
            (*question)->question->next = entry->reached;
            entry->reached = *question;
        }
    }
    if (!*question || !weir_question_add(*question, &entry->checks[i], home->limit, (uint8_t)i))
        entry->unreached = (uint8_t)(1 + i);
}

/* The own store has done an operation with `homes` set. */
static bool again(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_entry *of[RULES_REGIONS_MAX] = {NULL};
    if (!engine->regions || !entry->homes || entry->asked ||
        !weir_rules_regions_reached(entry->generation->rules))
        return false;
    entry->asked = true;
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_home home;
        if (weir_rules_home(entry->generation->rules, &decision->checks[i], &home))
            add(engine, entry, i, &home, &of[home.region]);
    }
    if (!entry->reached)
        return false;
    for (struct weir_entry *next = entry->reached; next; next = next->question->next)
        weir_question_send(engine, next);
    entry->acts_far = true;
    decision->deadline_ns = weir_engine_now(engine) + WEIR_QUESTION_NS;
    weir_turn_wait(engine, entry);
    return true;
}

static void late(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->homes)
        conclude(engine, entry);
}

const struct weir_hook weir_hook_reach = {.again = again, .late = late};
