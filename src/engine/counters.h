/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine counts, of one worker. Its thread alone writes; reading while it runs gives values
 * that are each some moment's. Sum over workers for metrics. */
#ifndef WEIR_ENGINE_COUNTERS_H
#define WEIR_ENGINE_COUNTERS_H

#include "core/answer.h"
#include "engine/effect/candidate.h"
#include "feature/priority/rules/priority.h"
#include "feature/score/rules/score.h"
#include "feature/use/counts.h"
#include "feature/webhook/rules/warn.h"

struct weir_engine;

/* Per limit of the rules file, this worker's: the limit's own verdicts on WEIR_OP_DECIDE. Written
 * by the worker alone; reading while it runs gives values that are each some moment's. */
struct weir_engine_counters {
    struct weir_counts counts;     /* what weir_engine_options.counts had no other place for */
    _Atomic uint64_t floor_denied; /* those of `denied` by a region's floor (weir_rules_is_floor) */
    _Atomic uint64_t
        lent; /* those of `allowed` that another region has lent (lend.h of feature/region) */
    _Atomic uint64_t borrowed; /* denied, but its pool, or a top-up, admitted the request: not among
                                  `denied` */
    _Atomic uint64_t bought;   /* units of top-ups that requests have taken, unless
                                  weir_engine_options.counts has a place for their name */
    _Atomic uint64_t trials[WEIR_TRIAL_OUTCOMES]; /* of its candidate */
    _Atomic uint64_t warnings[WEIR_WARN_MAX];     /* reported, by threshold (weir_rules_warn_at) */
    _Atomic uint64_t actions[WEIR_ACTIONS]; /* what its `steps` and `reject` have made of requests:
                                               enum weir_action, without NONE */
    _Atomic uint64_t class_denied[RULES_CLASSES_MAX]; /* those of `denied` whose class is known */
};
/* Counters survive a change of rules by the limit's name; the pointer is valid until the engine is
 * closed, and the counters are this limit's while the rules have it. weir_engine_counters is for
 * the worker's own thread (index = rule of its current rules; NULL beyond them);
 * weir_engine_find_counters for any thread: NULL when the worker's rules have no such limit. Sum
 * over workers for metrics. */
const struct weir_engine_counters *weir_engine_counters(const struct weir_engine *engine,
                                                        uint32_t rule);
/* The same of a limit by its number in `rules`: without a look-up where those are the worker's. */
const struct weir_engine_counters *weir_engine_counters_of(struct weir_engine *engine,
                                                           const struct weir_rules *rules,
                                                           uint32_t rule, const char *name,
                                                           size_t size);
const struct weir_engine_counters *weir_engine_find_counters(struct weir_engine *engine,
                                                             const char *name, size_t size);

/* How long denied requests were asked to wait, this worker's: by bounds in seconds; the last bucket
 * is of those that no wait admits. */
#define WEIR_RETRY_BOUNDS 8
extern const uint32_t weir_retry_bounds_s[WEIR_RETRY_BOUNDS];
struct weir_engine_retries {
    _Atomic uint64_t buckets[WEIR_RETRY_BOUNDS + 2]; /* the last but one: above all bounds */
    _Atomic uint64_t sum_ms;                         /* of all but the last */
};
const struct weir_engine_retries *weir_engine_retries(const struct weir_engine *engine);

/* Why decisions were not the store's, since the engine was opened. */
struct weir_engine_failures {
    _Atomic uint64_t late, failed;        /* the deadline passed; the store said no */
    _Atomic uint64_t open, closed, local; /* decisions by their source */
    _Atomic uint64_t exhausted;           /* takes from an empty pool */
    _Atomic uint64_t by_policy[2][4];     /* decisions without the store: 0: it was late, 1: it
                                             failed; by enum weir_source */
};
const struct weir_engine_failures *weir_engine_failures(const struct weir_engine *engine);

/* Requests that were denied for the standing of their caller, this worker's; peeks are not counted.
 */
struct weir_standing_refusals {
    _Atomic uint64_t suspended, revoked, unknown; /* unknown: by `on_unknown: deny` */
};
const struct weir_standing_refusals *
weir_engine_standing_refusals(const struct weir_engine *engine);

/* Requests by the class of their caller, this worker's; peeks are not counted. */
struct weir_score_counters {
    _Atomic uint64_t requests[WEIR_CLASSES];
};
const struct weir_score_counters *weir_engine_scores(const struct weir_engine *engine);

#endif
