/* SPDX-License-Identifier: Apache-2.0 */
/* Strikes: a denial, or a reported outcome, that a penalty counts (rules/charge/penalty.h).
 *
 *   request denied by a limit of `for`
 *     └▶ a decision of the engine's own, that no client waits for, in the limit NAME~strikes
 *          ├▶ admitted: a strike
 *          └▶ admitted as the last that the limit has room for: a strike that moves the ladder;
 *             then the count is reset
 *
 * The limit of N strikes has room for N + 1, so exactly one strike finds itself the last, over all
 * workers and nodes. Those that come between it and the reset are denied, and count nothing. After
 * a move the count begins anew. Where the reset is lost, the next move may need fewer strikes.
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
#ifndef WEIR_ENGINE_STRIKE_H
#define WEIR_ENGINE_STRIKE_H

#include "rules/match/strikes.h"

/* Strikes at a remote store at one time. The table answers each at once. */
#define WEIR_STRIKES_AT_WORK 256

struct weir_struck {
    const struct weir_penalty *penalty;
    const struct weir_standing_kind *kind; /* of its values */
    const struct weir_strike *strike; /* whom it is held against; its number is of these rules */
    uint64_t now_ns;                  /* of the store's time */
    bool moves;                       /* the ladder, one step up */
};

/* Called on the engine's thread for each strike that was counted, from weir_engine_run or the
 * store's callback; what it is given is valid during the call. It may not call the engine. */
typedef void (*weir_engine_strike)(void *context, const struct weir_struck *struck);

#endif
