/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules say about warnings: `warn_at`, the soft thresholds of a limit.
 *
 * A threshold is a percentage of the capacity in force: of the burst of a bucket, of a quota with
 * what came over. Used is what is not remaining. Of several rates it is the one with the longest
 * window that warns; the shorter ones are bursts that pass by themselves.
 *
 * A threshold of a key warns once per period. The record of a warning is a state like any other, so
 * that all workers and nodes together warn once, also across a restart, and a refund followed by a
 * second crossing does not warn again. The limit of the record has one of a few lengths, at least
 * the period's; the record's name contains the period.
 *
 * The state is a bucket that has room for one record and a unit more, and has it again when its
 * length is over: so a second record is denied, and yet it does not count as denying, which a table
 * that is full would keep before all states of callers (docs/state.md).
 */
#ifndef WEIR_FEATURE_WEBHOOK_RULES_WARN_H
#define WEIR_FEATURE_WEBHOOK_RULES_WARN_H

#include "rules/rules.h"

#define WEIR_WARN_MAX 4 /* thresholds of a limit */

#define WEIR_WARNED_COST 101 /* of a record, of a capacity of one more */

struct weir_warn_at {
    uint8_t count;
    uint8_t percent[WEIR_WARN_MAX]; /* ascending, 1..100 */
};

/* The thresholds of a limit, count 0: none. A shadow limit has none, because it is
 * not enforced. */
const struct weir_warn_at *weir_rules_warn_at(const struct weir_rules *rules, uint32_t rule);

/* Whether any limit has some. */
bool weir_rules_warns(const struct weir_rules *rules);

/* The limit of the records of a period that is about `window_ns` long (weir_limit_spec), prepared
 * with all others where weir_rules_warns. */
const struct weir_limit *weir_rules_warned_limit(const struct weir_rules *rules,
                                                 uint64_t window_ns);

/* Compiles the limits of the records of warnings, while the rules are loaded. Errors: none for the
 * ranges that they have. */
int rules_make_warned(struct weir_rules *rules) __attribute__((warn_unused_result));

/* Whether a threshold of a capacity is reached. */
static inline bool weir_warn_reached(uint8_t percent, uint64_t used, uint64_t capacity)
{
    return capacity > 0 && used * 100 >= percent * capacity; /* capacities are below 2^42 */
}

#endif
