/* SPDX-License-Identifier: Apache-2.0 */
/* What is done for one value at a time: its ladders are read, its next state is computed, and the
 * store compares and sets it. Also the insides of the penalties, which penalties.c and work.c
 * share.
 *
 *   begun ─▶ reading ─▶ swapping ─▶ in force ─▶ its count ends ─▶ free
 *              └────────────┴─ the store fails: later, once more; then given up
 *
 * Threads: the main one.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_WORK_H
#define WEIR_FEATURE_PENALTIES_SERVER_WORK_H

#include "feature/penalties/server/due.h"
#include "feature/penalties/server/known.h"
#include "feature/penalties/server/ladder_memory.h"
#include "feature/penalties/server/ladder_shared.h"
#include "feature/penalties/server/penalties.h"
#include "feature/penalties/server/restoring.h"

/* Values whose strikes are gathered at a time. */
#define WEIR_PENALTIES_GATHERED 256
/* Buckets of the works that are begun. */
#define WEIR_PENALTIES_ACTIVE 256

/* What is done for one value. */
struct penalty_work {
    struct weir_penalties *penalties;
    struct penalty_work *next, **at;    /* in the list of all */
    struct penalty_work *active_next;   /* works begun whose values share a bucket */
    struct penalty_work *behind, *last; /* those of the same value that wait for this one */
    struct weir_queued_strike strike;
    struct weir_standing_kind kind; /* of the value: the rules may be replaced meanwhile */
    uint64_t struck_ns;             /* the last strike that moves nothing; 0: none */
    bool settles;                   /* puts back a term, and moves nothing */
    bool unsure;                    /* whether its change was made is not known: it is read again */
    bool deferred;                  /* it is tried again */
    bool failed;                    /* it is given up: the next strike moves */
    bool ended;                     /* only its count is left to be ended */
    bool counted;                   /* its count is ended */
    struct penalty_work *later_next; /* those that wait for the next second */
    unsigned tries;
    struct weir_ladder_call call;
    char by[WEIR_KEEPER_BY_ROOM + 1];
    uint64_t due_ns;    /* when the entry ends before another penalty's term; 0: it does not */
    uint8_t was, steps; /* the step before the move; how many the ladder has */
};

struct weir_penalties {
    struct weir_standing_service *standing;
    struct weir_webhook *webhook;
    struct weir_rules *rules;
    struct weir_ladder_memory memory;
    struct weir_ladder_shared shared;
    struct weir_ladder_store *store;
    struct weir_ladder_restoring restoring;
    struct weir_strike_queue queue;
    struct weir_known known;
    uv_loop_t *loop;
    uv_async_t queued; /* its loop closes it */
    _Atomic bool joined;
    weir_penalties_end end;
    void *end_context;
    struct weir_penalties_stats stats;
    uint64_t deferred_logged; /* of the queue */
    struct weir_penalty_counts counts;
    struct penalty_work *works;
    unsigned work_count;
    struct penalty_work *spare; /* memory for the next one; NULL: none is kept */
    bool starved;               /* there is no memory for it: logged */
    bool crowded;               /* strikes wait in the queue for a work to end */
    struct penalty_work *active[WEIR_PENALTIES_ACTIVE];
    struct penalty_work *gathered[WEIR_PENALTIES_GATHERED];
    struct penalty_work *later;
    struct weir_due_terms due;
    uint64_t now_ns; /* of the last tick */
};

/* Whether there is room for one more work, and memory, which is kept for it. */
bool penalty_work_fits(struct weir_penalties *penalties);

/* A work, once for each penalty_work_fits that was true. */
struct penalty_work *penalty_work_new(struct weir_penalties *penalties,
                                      const struct weir_queued_strike *strike);

/* Begins to work on a value at a time, once the works of the same value have ended that were begun
 * before: moves of one value happen in their order. */
void penalty_work_start(struct penalty_work *work, uint64_t now_ns);

/* Continues those that wait for the next second. */
void penalty_works_go_on(struct weir_penalties *penalties);

/* Remembers that a term is to be put back. */
void penalty_add_due(struct weir_penalties *penalties, const struct weir_queued_strike *strike,
                     uint64_t at_ns);

#endif
