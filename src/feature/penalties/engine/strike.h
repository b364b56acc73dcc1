/* SPDX-License-Identifier: Apache-2.0 */
/* Strikes: a denial, or a reported outcome, that a penalty counts
 * (feature/penalties/rules/penalty.h).
 *
 *   request denied by a limit of `for`
 *     └▶ a decision of the engine's own, that no client waits for, in the limit NAME~strikes
 *          ├▶ admitted: a strike
 *          └▶ admitted as the last that the limit has room for: a strike that moves the ladder
 *               ├▶ the move is in force: the count is reset
 *               └▶ nobody has room for the move: the strike is given back, the next one is the last
 *
 * The limit of N strikes has room for N + 1, so exactly one strike finds itself the last, over all
 * workers and nodes. Those that come between it and the reset are denied, and count nothing. After
 * a move the count begins anew. Where the reset is lost, as the process dies or the store fails,
 * strikes count nothing until the log has room again; then one of them is the last.
 *
 * One strike at most per penalty and request. None from shadow limits, dry runs, repeats of an
 * idempotency key, candidates, what on_store_error decides, states that a full table shares
 * (overflow), and denials that are answered from memory. A strike is lost if the process dies
 * between the denial and its count, if the store fails to count it, and where WEIR_STRIKES_AT_WORK
 * are at work.
 *
 * Memory: WEIR_STRIKES_AT_WORK decisions of its own, from the first rules on that have penalties.
 * Threads: the engine's own.
 */
#ifndef WEIR_FEATURE_PENALTIES_ENGINE_STRIKE_H
#define WEIR_FEATURE_PENALTIES_ENGINE_STRIKE_H

#include "engine/callbacks.h"
#include "feature/penalties/rules/strikes.h"

/* Strikes at a remote store at one time. The table answers each at once. */
#define WEIR_STRIKES_AT_WORK 256

struct weir_engine;

struct weir_struck {
    const struct weir_penalty *penalty;
    const struct weir_standing_kind *kind; /* of its values */
    const struct weir_strike *strike; /* whom it is held against; its number is of these rules */
    uint64_t now_ns;                  /* of the store's time */
    bool moves;                       /* the ladder, one step up */
    bool again;                       /* it was refused before, and has waited */
};

/* The count of a strike that was answered by WEIR_STRIKE_LATER. */
struct weir_strike_count {
    struct weir_bytes penalty; /* its name */
    uint64_t hash[2], tag;     /* of its check (weir_check_tag) */
    struct weir_bytes key;     /* likewise; empty: the store is a table */
    uint64_t now_ns;           /* of the strike */
};

/* Ends a count, on any engine of the same store. `moved`: it is reset; else its last strike is
 * given back, so that the next one moves. Not from inside the store. True also where the newest
 * rules have no such penalty; false: too many strikes are at work, so try it later. */
bool weir_engine_strike_end(struct weir_engine *engine, const struct weir_strike_count *count,
                            bool moved) __attribute__((warn_unused_result));

#endif
