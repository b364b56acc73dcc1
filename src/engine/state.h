/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's own state. Only files of this folder include this header. */
#ifndef WEIR_ENGINE_STATE_H
#define WEIR_ENGINE_STATE_H

#include <pthread.h>

#include "engine/borrow.h"
#include "engine/engine.h"
#include "engine/entry.h"
#include "engine/failure.h"
#include "engine/generation.h"
#include "engine/lookup.h"
#include "engine/pool.h"
#include "feature/region/engine/question.h"
#include "feature/region/rules/home.h"
#include "rules/counter.h"

/* Decisions that wait, the earliest deadline first. */
struct weir_deadlines {
    struct weir_entry *first, *last;
};

struct weir_engine {
    struct weir_pool pool;
    struct weir_store *store, *local;
    struct weir_store *const *regions; /* the stores of others, by number; NULL: none lends */
    const uint64_t *secret;
    bool keep_tuples; /* texts of keys are written when they are shown */
    weir_engine_done done;
    void *done_context;
    struct weir_generation *generation; /* NULL: no rules */
    uint64_t deadline_ns, now_ns;
    uint64_t lease_state, lease_owner;

    uint64_t (*clock)(void *context);
    void *clock_context;
    struct weir_moment moment; /* of this generation's schedules; until_ns 0: not known */

    /* What waits for a run. A run takes the list and leaves the other one for what `done` queues.
     */
    struct weir_decision **queue, **batch;
    uint32_t queued;
    struct weir_entry *alone; /* what this run decides without the batch */

    /* With a deadline each: decisions at a store of this region; and those that ask other regions,
     * with their questions. */
    struct weir_deadlines near, far;
    uint32_t pending; /* of requests */
    bool flushes_far; /* something was submitted to another region in this run */

    struct weir_tokens *tokens; /* NULL: no rules so far have read any */
    struct weir_token_counters token_counters;

    const struct weir_standing *standing; /* NULL: no caller has a standing */
    bool standing_missing;                /* there should be one: see _miss_standing */
    struct weir_standing_refusals standing_refusals;
    struct weir_score_counters scores;

    struct weir_directory *directory; /* NULL: no caller is in Redis */
    uint32_t looking;                 /* decisions that wait for it */
    size_t lookup_bytes;              /* of theirs and of those that did */

    weir_engine_warn warn;
    void *warn_context;
    struct weir_warnings *warnings; /* NULL: nothing has warned yet */
    weir_engine_trial tried;
    void *tried_context;
    struct weir_pool *trials;    /* of candidates; NULL: there was none yet */
    struct weir_pool *questions; /* NULL: no rules have reached any yet */
    struct weir_question_counts question_counts[RULES_REGIONS_MAX];
    weir_engine_strike strike;
    void *strike_context;
    struct weir_pool *strikes;  /* NULL: no rules had penalties yet */
    struct weir_strikes struck; /* of the request at hand */
    weir_engine_observe observe;
    void *observe_context;
    uint32_t observe_wait; /* requests until the next sample */
    _Atomic(struct weir_distinct_set *) *distinct;

    struct weir_top_denied *top_denied;
    struct weir_failure failure;
    struct weir_loans loans; /* of the request at hand */
    struct weir_engine_failures failures;
    struct weir_engine_retries retries;
    struct weir_tallies tallies;
    struct weir_counts_place counts_place;
    pthread_mutex_t readers; /* generation against weir_engine_find_counters, never on a decision */
};

static inline void weir_entry_unpin(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->generation)
        weir_generation_unpin(entry->generation, &engine->tallies);
    entry->generation = NULL;
}

/* Asks for the memory of the states of checks whose keys are known. */
static inline void weir_engine_prefetch(const struct weir_engine *engine,
                                        const struct weir_decision *decision)
{
    if (engine->store->ops->prefetch)
        engine->store->ops->prefetch(engine->store, decision);
}

/* Ties the checks of a decision to the rules that they were made from, and asks for their states.
 */
static inline void weir_engine_pin(struct weir_engine *engine, struct weir_entry *entry, int checks)
{
    entry->decision.count = (uint16_t)checks;
    engine->generation->pins++;
    weir_entry_unpin(engine, entry);
    entry->generation = engine->generation;
    entry->hooks |= engine->generation->hooks;
    weir_engine_prefetch(engine, &entry->decision);
}

/* Warnings, see effect/warning.h: the end of their memory, and its decisions. */
void weir_warnings_close(struct weir_engine *engine);
struct weir_pool *weir_warnings_pool(struct weir_engine *engine);

/* Observing, see observe.h: a request of these rules was decided, and somebody observes. */
void weir_observe(struct weir_engine *engine, const struct weir_entry *entry, bool sampled);

/* Keeps the strikes that a request may be with its decision, see strike.h. Errors:
 * WEIR_ERR_TOO_LARGE. */
int weir_strikes_keep(struct weir_entry *entry, const struct weir_strikes *found,
                      struct weir_reason *reason) __attribute__((warn_unused_result));
/* Whether the outcome of a reservation is a strike of a penalty; `count`: counts it as one of each.
 */
struct weir_reservation;
struct weir_settle;
bool weir_strikes_settle(struct weir_engine *engine, const struct weir_reservation *reservation,
                         const struct weir_settle *settle, bool count);

/* Whether a check has charged although the request was denied: a second try leaves it alone. */
static inline bool weir_engine_is_charged(const struct weir_decision *decision, uint16_t i)
{
    return decision->op == WEIR_OP_DECIDE &&
           (decision->checks[i].flags & WEIR_CHECK_CHARGE_ON_DENY) != 0;
}

/* The time now, where the engine has a clock; else that of the last run. */
static inline uint64_t weir_engine_now(const struct weir_engine *engine)
{
    return engine->clock ? engine->clock(engine->clock_context) : engine->now_ns;
}

/* Whether the decision has an idempotency key: the record of it is the last check. */
static inline bool weir_engine_has_record(const struct weir_decision *decision)
{
    return weir_decision_limits(decision) < decision->count;
}

#endif
