/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates at the engine: after a decision on a limit that has one (rules/charge/candidate.h),
 * the candidate decides the same request, in shadow, and what differs is counted.
 *
 *   decision concluded
 *     └▶ a decision of the engine's own, that no client waits for: in the next round of the same
 * run (with a remote store: in the next run) └▶ decided: counted by the live verdict and its own
 *
 * It is charged by its own verdict: iff it admits and no other limit has denied the request,
 * whatever the live limit of its own has said. So its state is what it would be if it were live, as
 * far as requests that the live limit has denied are still made. One decision for each candidate:
 * its rates are all charged or none.
 *
 * Where another limit has denied and the store knows that from its denial cache, the live limit was
 * asked a moment ago: what it admitted then it may deny now. Its verdict is then asked for again,
 * with the candidate's and at the same time; nothing is charged by either.
 *
 * Requests only (WEIR_OP_DECIDE): what is given back or settled later, and grants of an operator,
 * are the live limit's alone. No candidate decides a repeat of an idempotency key. Where the store
 * does not decide the live one, where another region has lent or decided it (a candidate has its
 * floor alone there), where it fails the candidate, and where WEIR_TRIALS_MAX are at work, the
 * candidate is skipped, and that is counted.
 *
 * Memory: WEIR_TRIALS_MAX decisions of its own, so that none is taken from requests, from the first
 * rules on that have a candidate. Threads: the engine's own.
 */
#ifndef WEIR_ENGINE_EFFECT_CANDIDATE_H
#define WEIR_ENGINE_EFFECT_CANDIDATE_H

#include "core/check.h"

/* More than a turn of a busy worker has requests. */
#define WEIR_TRIALS_MAX 1024

/* How a candidate's verdict compares with the live one. */
enum weir_trial_outcome {
    WEIR_TRIAL_BOTH_ALLOW,
    WEIR_TRIAL_BOTH_DENY,
    WEIR_TRIAL_STRICTER, /* it denies, and the live limit does not */
    WEIR_TRIAL_LOOSER,   /* the other way round */
    WEIR_TRIAL_SKIPPED,
    WEIR_TRIAL_OUTCOMES,
};

/* "stricter", as in metrics. */
const char *weir_trial_name(enum weir_trial_outcome outcome);

/* Called for each trial that was decided (`weir replay` lists them), from weir_engine_run or the
 * store's callback; `check` is the candidate's first one, valid during the call. It may not call
 * the engine. */
typedef void (*weir_engine_trial)(void *context, const struct weir_check *check,
                                  enum weir_trial_outcome outcome);

#endif
