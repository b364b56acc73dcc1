/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's turns: what is queued becomes a batch, and what a store leaves pending gets a
 * deadline. weir_engine_queue, weir_engine_decide, weir_engine_run and weir_engine_cancel of
 * engine.h are here.
 *
 *   queue ──▶ batch ──▶ the store ──▶ decided, failed ──▶ finish
 *                           └──▶ pending ──▶ answered, or late: failed
 *
 * What happens at `decided`, `failed` and `finish` depends on what the decision is for: its
 * purpose. A turn knows no feature of the engine, only purposes:
 *
 *   request.h      decisions of front ends
 *   settle         settlements, in several steps (reservation.h)
 *   candidate.h    decisions of candidates
 *   warning.h      records of warnings
 *   question       what homes are asked, and given back (feature/region/engine/question.h)
 *   unattended     decisions whose asker is gone (below)
 *
 * Decisions with `alone` set, and those of the local store, run one by one after the batch. Those
 * of another region (weir_entry.far) are `alone`, and come with their deadline.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_TURN_H
#define WEIR_ENGINE_TURN_H

#include "engine/pool.h"

struct weir_engine;

struct weir_purpose {
    /* The store has decided. False: there is nothing to finish, because the decision was queued
     * again or given back. */
    bool (*decided)(struct weir_engine *engine, struct weir_entry *entry);
    /* The store has failed to decide, with `error`. Returns as `decided`. */
    bool (*failed)(struct weir_engine *engine, struct weir_entry *entry, int error);
    /* Calls `done`, gives the decision back, or queues its next step. NULL: never finished. */
    void (*finish)(struct weir_engine *engine, struct weir_entry *entry);
    /* Its purpose after its asker has gone. NULL: operations become weir_unattended_purpose;
     * others are cancelled. */
    const struct weir_purpose *unattended;
    bool alone; /* not in a batch */
};

/* An operation whose asker is gone: it is done, and then given back. */
extern const struct weir_purpose weir_unattended_purpose;
bool weir_unattended_decided(struct weir_engine *engine, struct weir_entry *entry);
bool weir_unattended_failed(struct weir_engine *engine, struct weir_entry *entry, int error);

/* Decides a taken decision at once, at the time of this run. Not from inside the store. */
void weir_turn_decide_now(struct weir_engine *engine, struct weir_entry *entry);

/* Has a decision wait in ASKING until its deadline_ns, for others that were queued for it. Then
 * `failed` of its purpose comes with WEIR_ERR_DEADLINE, if it was not resumed. */
void weir_turn_wait(struct weir_engine *engine, struct weir_entry *entry);
/* It waits no longer, and is TAKEN: it is to be queued, or settled. */
void weir_turn_resume(struct weir_engine *engine, struct weir_entry *entry);
/* Completes the decision as if the store had answered: decided (`error` 0) or failed. Call only
 * from store callbacks. */
void weir_turn_settle(struct weir_engine *engine, struct weir_entry *entry, int error);

/* Cancels all that waits. */
void weir_turn_end(struct weir_engine *engine);

/* What the store calls: see weir_store_done. `context` is the engine. */
void weir_turn_answered(void *context, struct weir_decision *decision, int error);

/* Whether a decision is an operation on states, not a request. */
static inline bool weir_turn_is_operation(const struct weir_decision *decision)
{
    return decision->op >= WEIR_OP_RELEASE;
}

/* Denies an operation that no store has done, with `error`. */
void weir_turn_refuse(struct weir_engine *engine, struct weir_decision *decision, int error);

#endif
