/* SPDX-License-Identifier: Apache-2.0 */
/* The series of use: once a second, what the counters of limits, fronts and stores have grown by.
 *
 * A limit gets a series when it is first used, and counters of its keys (HyperLogLog) while it is
 * among the WEIR_DISTINCT_LIMITS busiest: that is looked at once a minute.
 *
 * With 100,000 limits a tick takes tens of milliseconds, so it is done in pieces, between which
 * the main loop has other turns.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_HISTORY_H
#define WEIR_FEATURE_USE_SERVER_HISTORY_H

#include "feature/use/server/use.h"

/* Errors: WEIR_ERR_MEMORY. */
int weir_use_history_open(struct weir_use_service *use) __attribute__((warn_unused_result));
void weir_use_history_close(struct weir_use_service *use);

/* Limits of rules, with nothing known of them: on any thread, since 100,000 names take long.
 * Errors: WEIR_ERR_MEMORY. */
struct weir_use_limits {
    struct weir_use_limit *list;
    uint32_t count;
    struct rules_string_map names;
};
int weir_use_limits_open(struct weir_use_limits **limits, const struct weir_rules *rules)
    __attribute__((warn_unused_result));
/* NULL is allowed. */
void weir_use_limits_free(struct weir_use_limits *limits);

/* The rules of the daemon are others, and `limits` are theirs (taken over). Those that were there
 * before keep their series, by their names. */
void weir_use_history_take(struct weir_use_service *use, struct weir_use_limits *limits);

/* The series of a limit, made where it has none; NULL: there is no room. */
struct weir_series *weir_use_series_of(struct weir_use_service *use, struct weir_use_limit *limit);

/* Between two ticks: workers need not count keys any more that change nothing, of limits with many
 * keys. */
void weir_use_history_skip(struct weir_use_service *use);

/* Once a second: begins a tick and does its first piece, WEIR_USE_PIECE limits. A tick before that
 * has not ended is done to its end. */
#define WEIR_USE_PIECE 2048 /* half a millisecond, for which nothing else has its turn */
void weir_use_history_tick(struct weir_use_service *use, uint64_t now_ns);
/* At the end: counts what has come since the last tick. */
void weir_use_history_end(struct weir_use_service *use, uint64_t now_ns);
/* Does the next piece. Returns whether there are more. */
bool weir_use_history_step(struct weir_use_service *use);

#endif
