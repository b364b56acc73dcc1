/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "engine/request.h"

#include "engine/borrow.h"
#include "engine/effect/action.h"
#include "engine/failure.h"
#include "engine/state.h"
#include "feature/region/engine/lend.h"
#include "feature/region/engine/reach.h"
#include "feature/region/rules/region.h"
#include "feature/use/engine/pack.h"
#include "rules/charge/top_up.h"

static void account_borrowed(const struct weir_entry *entry)
{
    struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
    uint16_t count = weir_engine_borrowed(&entry->decision, borrowed);
    for (uint16_t i = 0; i < count; i++) {
        uint32_t rule = borrowed[i].check->rule;
        struct weir_engine_counters *counters = &entry->generation->views[rule].tally->counters;
        weir_count(&counters->borrowed, 1);
        if (borrowed[i].pool == rule)
            weir_count(&counters->bought, borrowed[i].check->cost);
    }
}

/* Not inlined: the list would be on the stack of every decision. */
static __attribute__((noinline)) void record_denial(struct weir_engine *engine,
                                                    const struct weir_entry *entry,
                                                    const struct weir_check *check,
                                                    struct weir_bytes name)
{
    struct weir_shown_list key;
    if (!weir_top_denied_count(engine->top_denied, check->hash))
        return;
    weir_pack_key(&key, entry->generation->rules, check, engine->standing);
    weir_top_denied_name(engine->top_denied, name, weir_shown_packed(&key));
}

/* The books of each limit, whose checks stand together (weir_decision_limit_end): its counters, and
 * who was denied most. A limit of a command has no name to ask for, and a flood of its denials must
 * not push the keys of named limits out of the sketch. */
static void account(struct weir_engine *engine, const struct weir_entry *entry)
{
    const struct weir_generation *generation = entry->generation;
    uint16_t count = generation ? entry->decision.count : 0;
    bool admitted = entry->decision.verdict == WEIR_ALLOWED;
    struct weir_distinct_set *distinct =
        engine->distinct ? atomic_load_explicit(engine->distinct, memory_order_acquire) : NULL;
    for (uint16_t i = 0, end; i < count; i = end) {
        const struct weir_check *check = &entry->checks[i];
        bool denied = entry->outcomes[i].verdict == WEIR_DENIED;
        end = i + 1;
        if (check->rule >= generation->count)
            continue;
        for (; end < count && entry->checks[end].rule == check->rule; end++)
            denied |= entry->outcomes[end].verdict == WEIR_DENIED;
        const struct weir_rule_view *view = &generation->views[check->rule];
        bool shadow = (check->flags & WEIR_CHECK_SHADOW) != 0;
        struct weir_counts *counts = view->counts;
        weir_count(!denied  ? &counts->allowed
                   : shadow ? &counts->shadow_denied
                            : &counts->denied,
                   1);
        if (admitted)
            weir_count(&counts->cost, check->cost);
        if (__builtin_expect(entry->outcomes[i].delay_ns > 0, 0) && !denied)
            weir_count(&counts->delayed, 1);
        /* It was stored after the number. */
        uint16_t below = atomic_load_explicit(&counts->keys_below, memory_order_acquire);
        if (distinct && weir_distinct_matters(check->hash[1], below)) {
            uint8_t number = atomic_load_explicit(&counts->keys_number, memory_order_relaxed);
            /* Counts may lie in a file that others write. */
            weir_distinct_add(&distinct->limits[number % WEIR_DISTINCT_LIMITS], check->hash[1]);
        }
        if (denied && !shadow && __builtin_expect(entry->class != 0, 0))
            weir_count(&view->tally->counters.class_denied[entry->class - 1], 1);
        if (denied)
            record_denial(engine, entry, check, view->name);
        if (denied && !shadow && weir_rules_is_floor(generation->rules, check->rule, check->limit))
            weir_count(&view->tally->counters.floor_denied, 1);
    }
    if (__builtin_expect(entry->borrow != NULL, 0))
        account_borrowed(entry);
    if (__builtin_expect(entry->lending != NULL, 0))
        weir_lend_account(entry);
}

/* Not inlined, as record_denial. */
static __attribute__((noinline)) void record_refusal(struct weir_engine *engine,
                                                     const struct weir_caller_standing *standing)
{
    static const struct weir_bytes name = {WEIR_ANSWER_BY_STANDING,
                                           sizeof(WEIR_ANSWER_BY_STANDING) - 1};
    struct weir_shown_list key;
    if (!weir_top_denied_count(engine->top_denied, standing->hash))
        return;
    weir_pack_text(&key, standing->by);
    weir_top_denied_name(engine->top_denied, name, weir_shown_packed(&key));
}

/* The standing of the caller, at the time of the decision: it may deny, with no check there. */
static void conclude_standing(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_caller_standing *standing = &entry->standing;
    struct weir_standing_refusals *c = &engine->standing_refusals;
    struct weir_decision *d = &entry->decision;
    uint64_t until_ns = standing->entry.until_ns, left_ns = 1; /* it ended since it was found */
    if (until_ns > engine->now_ns)
        left_ns = until_ns - engine->now_ns;
    entry->standing_ends_ns = standing->missing        ? WEIR_FAILURE_RETRY_NS
                              : until_ns == WEIR_NEVER ? WEIR_NEVER
                                                       : left_ns;
    if (!standing->refused)
        return;
    d->verdict = WEIR_DENIED;
    d->source = standing->missing ? WEIR_SOURCE_CLOSED : WEIR_SOURCE_STORE;
    d->error = standing->missing ? WEIR_ERR_STORE : d->error;
    d->now_ns = engine->now_ns;
    if (d->op != WEIR_OP_DECIDE || standing->missing)
        return;
    weir_count(standing->entry.level == WEIR_STANDING_REVOKED     ? &c->revoked
               : standing->entry.level == WEIR_STANDING_SUSPENDED ? &c->suspended
                                                                  : &c->unknown,
               1);
    if (standing->by.size > 0)
        record_refusal(engine, standing);
}

const uint32_t weir_retry_bounds_s[WEIR_RETRY_BOUNDS] = {1, 5, 15, 60, 300, 900, 3600, 86400};

static void count_retry(struct weir_engine *engine, uint64_t retry_after_ns)
{
    struct weir_engine_retries *retries = &engine->retries;
    unsigned i = 0;
    if (retry_after_ns == WEIR_NEVER) {
        weir_count(&retries->buckets[WEIR_RETRY_BOUNDS + 1], 1);
        return;
    }
    while (i < WEIR_RETRY_BOUNDS && retry_after_ns > weir_retry_bounds_s[i] * UINT64_C(1000000000))
        i++;
    weir_count(&retries->buckets[i], 1);
    weir_count(&retries->sum_ms, retry_after_ns / 1000000);
}

/* What limits answer besides their verdict, and what they warn of. */
static __attribute__((noinline)) void tell(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->generation->acts)
        weir_actions_count(entry);
    if (entry->generation->warns)
        weir_warnings_look(engine, entry);
}

/* What the store leaves to the engine: whom to blame, and the books. Returns true: the decision is
 * to be finished. */
static bool conclude(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *d = &entry->decision;
    const struct weir_generation *generation = entry->generation;
    d->denied_by = UINT16_MAX;
    if (__builtin_expect(entry->stands, 0))
        conclude_standing(engine, entry);
    if (__builtin_expect(entry->score.found, 0) && d->op == WEIR_OP_DECIDE)
        weir_count(&engine->scores.requests[entry->score.class], 1);
    if (__builtin_expect(entry->borrow != NULL, 0))
        weir_borrow_decided(entry);
    if (d->op == WEIR_OP_DECIDE)
        account(engine, entry);
    if (generation && __builtin_expect(generation->tries, 0))
        weir_candidates_follow(engine, entry);
    if (__builtin_expect(entry->borrow != NULL, 0))
        weir_borrow_choose(entry);
    if (d->verdict == WEIR_DENIED) {
        uint64_t retry_after_ns;
        d->denied_by = weir_decision_blame(d, &retry_after_ns);
        if (d->op == WEIR_OP_DECIDE && d->denied_by != UINT16_MAX)
            count_retry(engine, retry_after_ns);
    }
    if (generation && __builtin_expect(generation->tells, 0))
        tell(engine, entry);
    if (__builtin_expect(entry->strike_count > 0, 0))
        weir_strikes_follow(engine, entry);
    if (engine->observe && d->op == WEIR_OP_DECIDE && generation) {
        bool sampled = --engine->observe_wait == 0;
        if (__builtin_expect(sampled || d->verdict == WEIR_DENIED, 0))
            weir_observe(engine, entry, sampled);
    }
    return true;
}

/* The same where other regions are asked, or what the request may borrow, or was bought. Apart, so
 * that other decisions save no registers. */
static __attribute__((noinline)) bool decided_once(struct weir_engine *engine,
                                                   struct weir_entry *entry)
{
    bool reaches = engine->regions && entry->generation && entry->generation->reaches;
    if (reaches && entry->homes && weir_reach_decided(engine, entry))
        return false;
    if (reaches && weir_lend_decided(engine, entry))
        return false;
    if (weir_borrow_again(engine, entry))
        return false;
    return conclude(engine, entry);
}

bool weir_request_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    if (engine->regions || entry->borrow || entry->decision.verdict == WEIR_DENIED)
        return decided_once(engine, entry);
    return conclude(engine, entry);
}

/* Settles the checks of a request by their on_store_error. */
static void settle_failed(struct weir_engine *engine, struct weir_decision *decision, int error)
{
    struct weir_engine_failures *f = &engine->failures;
    weir_failure_settle(&engine->failure, engine->local, engine->now_ns, decision, error);
    weir_count(decision->source == WEIR_SOURCE_CLOSED  ? &f->closed
               : decision->source == WEIR_SOURCE_LOCAL ? &f->local
                                                       : &f->open,
               1);
    weir_count(&f->by_policy[error == WEIR_ERR_DEADLINE ? 0 : 1][decision->source & 3], 1);
}

bool weir_request_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    struct weir_engine_failures *f = &engine->failures;
    if (entry->state == WEIR_ENTRY_ASKING) {
        if (entry->homes)
            weir_reach_late(engine, entry);
        else
            weir_lend_late(engine, entry);
        return conclude(engine, entry);
    }
    weir_count(error == WEIR_ERR_DEADLINE ? &f->late : &f->failed, 1);
    if (weir_turn_is_operation(&entry->decision)) {
        weir_turn_refuse(engine, &entry->decision, error);
        return true;
    }
    if (!weir_lend_failed(engine, entry) && !weir_borrow_failed(entry))
        settle_failed(engine, &entry->decision, error);
    return conclude(engine, entry);
}

void weir_request_finish(struct weir_engine *engine, struct weir_entry *entry)
{
    entry->state = WEIR_ENTRY_FINISHED;
    engine->done(engine->done_context, &entry->decision);
}

const struct weir_purpose weir_request_purpose = {
    .decided = weir_request_decided,
    .failed = weir_request_failed,
    .finish = weir_request_finish,
};
