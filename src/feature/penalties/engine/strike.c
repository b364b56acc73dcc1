/* SPDX-License-Identifier: Apache-2.0 */
/* see strike.h */
#include "feature/penalties/engine/strike.h"

#include <string.h>

#include "core/text/reason.h"
#include "engine/hook.h"
#include "engine/state.h"
#include "engine/turn.h"
#include "feature/reserve/engine/reservation.h"

/* --- What a request may be -------------------------------------------------------------------- */

int weir_strikes_keep(struct weir_entry *entry, const struct weir_strikes *found,
                      struct weir_reason *reason)
{
    struct weir_scratch *scratch = &entry->scratch;
    size_t size = found->count * sizeof *found->strikes;
    uintptr_t end = (uintptr_t)(scratch->bytes + scratch->used);
    size_t gap = -end % _Alignof(struct weir_strike);
    if (gap + size > sizeof scratch->bytes - scratch->used) {
        reason_text(reason, "the request has too many and too long keys");
        return WEIR_ERR_TOO_LARGE;
    }
    entry->strikes = (void *)(scratch->bytes + scratch->used + gap);
    entry->strike_count = (uint8_t)found->count;
    entry->hooks |= WEIR_HOOK_BIT(STRIKE);
    memcpy(entry->strikes, found->strikes, size);
    scratch->used += (uint32_t)(gap + size);
    return 0;
}

/* --- Counting --------------------------------------------------------------------------------- */

static void decide(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!engine->store->ops->name_of) {
        weir_turn_decide_now(engine, entry); /* the table answers at once */
    } else {
        entry->state = WEIR_ENTRY_TAKEN;
        weir_engine_queue(engine, &entry->decision);
    }
}

static void count_strike(struct weir_engine *engine, struct weir_generation *generation,
                         uint32_t network, const struct weir_strike *strike)
{
    struct weir_entry *entry = weir_pool_take(engine->strikes);
    struct weir_strike kept = *strike;
    char room[WEIR_KEY_TEXT_MAX];
    if (!entry)
        return;
    entry->generation = generation;
    entry->generation->pins++;
    entry->scratch.used = sizeof kept;
    entry->keeps = true;
    kept.check.key =
        weir_decision_keep(&entry->decision, weir_strike_key_text(generation->rules, strike, room));
    kept.check.key_is_tuple = 0;
    if (strike->value.data)
        kept.value = weir_decision_keep(&entry->decision, strike->value);
    memcpy(entry->scratch.bytes, &kept, sizeof kept);
    entry->checks[0] = kept.check;
    entry->decision.count = 1;
    entry->decision.network = network;
    decide(engine, entry);
}

/* Whether a limit of `for` has denied. */
static bool is_denied(const struct weir_entry *entry, uint32_t penalty)
{
    const struct weir_decision *decision = &entry->decision;
    const struct weir_rules *rules = entry->generation->rules;
    for (uint16_t i = 0; i < decision->count; i++)
        if (decision->outcomes[i].verdict == WEIR_DENIED && !decision->outcomes[i].overflow &&
            (decision->checks[i].flags & WEIR_CHECK_SILENT) == 0 &&
            weir_rules_penalty_denial(rules, penalty, decision->checks[i].rule))
            return true;
    return false;
}

static void follow(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    if (!engine->strikes || decision->op != WEIR_OP_DECIDE || decision->policy != WEIR_POLICY_ALL ||
        decision->verdict != WEIR_DENIED || decision->source != WEIR_SOURCE_STORE ||
        decision->remembered)
        return;
    bool refused = entry->stands && entry->standing.refused;
    if (refused && entry->standing.entry.level == WEIR_STANDING_REVOKED)
        return;
    for (uint8_t i = 0; i < entry->strike_count; i++)
        if (refused || is_denied(entry, entry->strikes[i].penalty))
            count_strike(engine, entry->generation, decision->network, &entry->strikes[i]);
}

uint32_t weir_engine_strike_outcome(struct weir_engine *engine,
                                    const struct weir_decision *decision, unsigned status)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    uint32_t counted = 0;
    if (!engine->strikes)
        return 0;
    for (uint8_t i = 0; i < entry->strike_count; i++) {
        const struct weir_strike *strike = &entry->strikes[i];
        if (!weir_rules_penalty_outcome(entry->generation->rules, strike->penalty, status))
            continue;
        count_strike(engine, entry->generation, decision->network, strike);
        counted++;
    }
    return counted;
}

bool weir_strikes_settle(struct weir_engine *engine, const struct weir_reservation *reservation,
                         const struct weir_settle *settle, bool count)
{
    const struct weir_rules *rules = weir_engine_rules(engine);
    struct weir_strike strike;
    bool any = false;
    if (settle->how == WEIR_SETTLE_RELEASE || settle->status == 0 || settle->no_strikes ||
        !engine->strikes)
        return false;
    for (uint8_t i = 0; i < reservation->strikes.count; i++) {
        if (!weir_strike_find(rules, &reservation->strikes.strikes[i], &strike) ||
            !weir_rules_penalty_outcome(rules, strike.penalty, settle->status))
            continue;
        any = true;
        if (count)
            count_strike(engine, engine->generation, reservation->network, &strike);
    }
    return any;
}

static bool strike_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    (void)engine;
    (void)entry;
    return true;
}

static bool strike_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    (void)error;
    weir_engine_give_back(engine, entry);
    return false;
}

/* The count begins anew, or has room for its last strike again. */
static void end_count(struct weir_engine *engine, struct weir_entry *entry, uint64_t charged_at_ns,
                      bool moved)
{
    struct weir_decision *decision = &entry->decision;
    decision->op = moved ? WEIR_OP_RESET : WEIR_OP_REFUND;
    decision->charged_at_ns = charged_at_ns;
    decision->deadline_ns = 0;
    decide(engine, entry);
}

bool weir_engine_strike_end(struct weir_engine *engine, const struct weir_strike_count *count,
                            bool moved)
{
    const struct weir_rules *rules = weir_engine_rules(engine);
    int number = rules ? weir_rules_penalty_find(rules, count->penalty) : -1;
    struct weir_entry *entry;
    if (number < 0 || !engine->strikes)
        return true;
    entry = weir_pool_take(engine->strikes);
    if (!entry)
        return false;
    entry->generation = engine->generation;
    entry->generation->pins++;
    entry->keeps = true;
    entry->scratch.used = 0;
    entry->checks[0] =
        (struct weir_check){.limit = weir_rules_penalty_limit(rules, (uint32_t)number),
                            .hash = {count->hash[0], count->hash[1]},
                            .tag = count->tag,
                            .key = weir_decision_keep(&entry->decision, count->key),
                            .cost = 1,
                            .rule = UINT32_MAX,
                            .on_store_error = WEIR_FAIL_OPEN};
    entry->decision.count = 1;
    end_count(engine, entry, count->now_ns, moved);
    return true;
}

/* Reports it; what a move means for the count, its answer says. */
static void strike_finish(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_strike strike;
    struct weir_report report;
    if (decision->op != WEIR_OP_DECIDE || decision->verdict != WEIR_ALLOWED ||
        entry->outcomes[0].overflow) {
        weir_engine_give_back(engine, entry);
        return;
    }
    memcpy(&strike, entry->scratch.bytes, sizeof strike);
    weir_decision_report(decision, 0, &report);
    const struct weir_rules *rules = entry->generation->rules;
    const struct weir_penalty *penalty = weir_rules_penalty(rules, strike.penalty);
    const struct weir_struck struck = {
        .penalty = penalty,
        .kind = &weir_rules_settings(rules)->standing->kinds[penalty->kind],
        .strike = &strike,
        .now_ns = decision->now_ns,
        .moves = report.remaining == 0,
    };
    enum weir_strike_answer answer = engine->strike(engine->strike_context, &struck);
    if (!struck.moves || answer == WEIR_STRIKE_LATER)
        weir_engine_give_back(engine, entry);
    else
        end_count(engine, entry, decision->now_ns, answer == WEIR_STRIKE_DONE);
}

static const struct weir_purpose strike_purpose = {
    .decided = strike_decided,
    .failed = strike_failed,
    .finish = strike_finish,
};

/* --- Memory ----------------------------------------------------------------------------------- */

static int open(struct weir_engine *engine, const struct weir_rules *rules)
{
    if (!engine->strike || engine->strikes || weir_rules_penalty_count(rules) == 0)
        return 0;
    return weir_pool_make(&engine->strikes, WEIR_STRIKES_AT_WORK, &strike_purpose);
}

const struct weir_hook weir_hook_strike = {.open = open, .told = follow};
