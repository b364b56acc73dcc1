/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "engine/request.h"

#include "engine/failure.h"
#include "engine/hook.h"
#include "engine/state.h"
#include "feature/region/rules/region.h"
#include "feature/use/engine/observe.h"
#include "feature/use/engine/pack.h"
#include "feature/use/engine/top_denied.h"

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

/* What is counted of a denial beside the denial. */
static __attribute__((noinline)) void account_denial(struct weir_engine *engine,
                                                     const struct weir_entry *entry,
                                                     const struct weir_check *check)
{
    const struct weir_generation *generation = entry->generation;
    const struct weir_rule_view *view = &generation->views[check->rule];
    bool shadow = (check->flags & WEIR_CHECK_SHADOW) != 0;
    if (!shadow && entry->class != 0)
        weir_count(&view->tally->counters.class_denied[entry->class - 1], 1);
    record_denial(engine, entry, check, view->name);
    if (!shadow && weir_rules_is_floor(generation->rules, check->rule, check->limit))
        weir_count(&view->tally->counters.floor_denied, 1);
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
        struct weir_counts *counts = generation->views[check->rule].counts;
        weir_count(!denied                                   ? &counts->allowed
                   : (check->flags & WEIR_CHECK_SHADOW) != 0 ? &counts->shadow_denied
                                                             : &counts->denied,
                   1);
        if (admitted)
            weir_count(&counts->cost, check->cost);
        if (__builtin_expect(entry->outcomes[i].delay_ns > 0, 0) && !denied)
            weir_count(&counts->delayed, 1);
        if (distinct) {
            /* It was stored after the number. */
            uint16_t below = atomic_load_explicit(&counts->keys_below, memory_order_acquire);
            uint8_t number = atomic_load_explicit(&counts->keys_number, memory_order_relaxed);
            /* Counts may lie in a file that others write. */
            if (weir_distinct_matters(check->hash[1], below))
                weir_distinct_add(&distinct->limits[number % WEIR_DISTINCT_LIMITS], check->hash[1]);
        }
        if (denied)
            account_denial(engine, entry, check);
    }
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

/* What the store leaves to the engine: whom to blame, and the books. Returns true: the decision is
 * to be finished. */
static bool conclude(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *d = &entry->decision;
    const struct weir_generation *generation = entry->generation;
    const uint32_t hooks = entry->hooks;
    d->denied_by = UINT16_MAX;
    if (__builtin_expect((hooks & WEIR_HOOKS_DECIDED) != 0, 0))
        weir_hooks_decided(engine, entry);
    if (d->op == WEIR_OP_DECIDE)
        account(engine, entry);
    if (__builtin_expect((hooks & WEIR_HOOKS_COUNTED) != 0, 0))
        weir_hooks_counted(engine, entry);
    if (d->verdict == WEIR_DENIED) {
        uint64_t retry_after_ns;
        d->denied_by = weir_decision_blame(d, &retry_after_ns);
        if (d->op == WEIR_OP_DECIDE && d->denied_by != UINT16_MAX)
            count_retry(engine, retry_after_ns);
    }
    if (__builtin_expect((hooks & WEIR_HOOKS_TOLD) != 0, 0))
        weir_hooks_told(engine, entry);
    if (engine->observe && d->op == WEIR_OP_DECIDE && generation) {
        bool sampled = --engine->observe_wait == 0;
        if (__builtin_expect(sampled || d->verdict == WEIR_DENIED, 0))
            weir_observe(engine, entry, sampled);
    }
    return true;
}

/* Apart, so that other decisions save no registers. */
static __attribute__((noinline)) bool decided_hooked(struct weir_engine *engine,
                                                     struct weir_entry *entry)
{
    return !weir_hooks_again(engine, entry) && conclude(engine, entry);
}

bool weir_request_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    return __builtin_expect((entry->hooks & WEIR_HOOKS_AGAIN) != 0, 0)
               ? decided_hooked(engine, entry)
               : conclude(engine, entry);
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
        weir_hooks_late(engine, entry);
        return conclude(engine, entry);
    }
    weir_count(error == WEIR_ERR_DEADLINE ? &f->late : &f->failed, 1);
    if (weir_turn_is_operation(&entry->decision)) {
        weir_turn_refuse(engine, &entry->decision, error);
        return true;
    }
    if (!weir_hooks_failed(engine, entry))
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
