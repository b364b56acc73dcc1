/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of penalties: strikes move the standing of callers.
 *
 *   worker: a strike was counted (feature/penalties/engine/strike.h)
 *     ├▶ it moves the ladder ──────────────────┐
 *     └▶ it moves nothing, the value has a step ┴▶ queue ─▶ main thread: read the value's ladders
 *          (known.h; else it ends here)                      ─▶ move (feature/standing/ladder.h)
 *                                                            ─▶ compare and set (ladder_store.h) ─┐
 *        in force (map) ◀── log, webhook, counters ◀── swapped ◀────────────────────────────┤
 *                                                        another state was there: once more ┘
 *
 * One value has one entry of all penalties: the strictest of the terms that run. When it ends while
 * another penalty's term still runs, the main thread puts that one back (within a second).
 *
 * Strikes that move nothing are gathered for a second, so a value that strikes all the time costs
 * one change of the store in a second. A move knows those gathered before it.
 *
 * No move is lost where there are many: the count of its strikes begins anew only once the move is
 * in force. A move that finds no room in the queue gives its last strike back, so that the caller's
 * next strike moves; one that the store does not take is tried again every second, TRIES times, and
 * then gives its strike back, too.
 *
 * Bounds: the queue; WEIR_PENALTIES_AT_WORK values at work, the others wait in the queue;
 * WEIR_DUE_TERMS_MAX terms that wait for the end of another one.
 * Where a node's standing is its own, steps are in memory (ladder_memory.h), so a move waits for no
 * disk. What the history does not keep, as its queue is full, is in force until its term or this
 * process ends, or until the next strike writes it. A change that Redis may have made is read again
 * every second, and made where it was not.
 *
 * Threads: weir_penalties_struck from any; the rest is the main thread's.
 */
#ifndef WEIR_FEATURE_PENALTIES_SERVER_PENALTIES_H
#define WEIR_FEATURE_PENALTIES_SERVER_PENALTIES_H

#include <uv.h>

#include "feature/penalties/engine/strike.h"
#include "feature/penalties/server/counts.h"
#include "feature/penalties/server/ladder_store.h"
#include "feature/webhook/server/webhook.h"

#define WEIR_PENALTIES_AT_WORK 1024
/* Times that a move is tried: each time another node or worker was faster, or the store failed. */
#define WEIR_PENALTIES_TRIES 16

struct weir_penalties;

/* Counters. */
struct weir_penalties_stats {
    _Atomic uint64_t queue_full; /* strikes that move nothing and were lost: there was no room */
    _Atomic uint64_t deferred;   /* moves for which there was no room: the next strike makes them */
    uint64_t retried;            /* moves that the store did not take at once */
    uint64_t lost;               /* strikes that the store did not take; moves that are given up,
                                    until the next strike; terms that are not put back */
    uint64_t unkept;             /* moves in force only until a restart or the next strike */
    uint64_t unplaced;           /* moves that the map of standing had no room for */
};

/* Opens the penalties of rules, with the steps that the history of the standing service has, if
 * there is one. Errors: WEIR_ERR_MEMORY, and those of weir_history_ladders, which *reason explains.
 */
int weir_penalties_open(struct weir_penalties **penalties, struct weir_standing_service *standing,
                        struct weir_webhook *webhook, struct weir_rules *rules, uint64_t now_ns,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* Takes strikes from now on, on this loop. `store` keeps the steps; NULL: the history of the
 * standing service, which has joined the loop. Errors: WEIR_ERR_IO. */
int weir_penalties_join(struct weir_penalties *penalties, uv_loop_t *loop,
                        struct weir_ladder_store *store) __attribute__((warn_unused_result));

/* Has the store keep what is gathered or at work: before weir_standing_service_stop, when no worker
 * runs any more. Runs the loop for it. What it does not take is counted as lost, and logged. NULL
 * is allowed. */
void weir_penalties_stop(struct weir_penalties *penalties);
/* After the loop is closed, and after the last worker. NULL is allowed. */
void weir_penalties_close(struct weir_penalties *penalties);

/* Takes one reference. Counters stay with the names of penalties. */
void weir_penalties_set_rules(struct weir_penalties *penalties, struct weir_rules *rules);

/* A weir_engine_strike; `context` is a struct weir_penalties. */
enum weir_strike_answer weir_penalties_struck(void *context, const struct weir_struck *struck);

/* Ends the counts of moves (weir_engine_strike_end). Called on the loop; false: later. NULL: none
 * is ended. */
typedef bool (*weir_penalties_end)(void *context, const struct weir_strike_count *count,
                                   bool moved);
void weir_penalties_end_by(struct weir_penalties *penalties, weir_penalties_end end, void *context);

/* Once a second: sends what is gathered, and puts back terms that were hidden by stricter ones. */
void weir_penalties_tick(struct weir_penalties *penalties, uint64_t now_ns);

/* Forgets the steps of a value that are kept in this process. False: there are none. */
bool weir_penalties_forget(struct weir_penalties *penalties, struct weir_bytes kind,
                           struct weir_bytes value);

const struct weir_penalties_stats *weir_penalties_stats(const struct weir_penalties *penalties);
/* The counters of a penalty of the newest rules. */
const struct weir_penalty_count *weir_penalties_count(struct weir_penalties *penalties,
                                                      struct weir_bytes name);

#endif
