/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: what a limit answers below 100 % of its use.
 *
 *   steps: [ { at: 60%, mark: true }, { at: 80%, delay: 500ms }, { at: 90%, challenge: true } ]
 *
 *   mark        the request is admitted, and the upstream sees it
 *   delay       the request is admitted later: by a constant, or, for a bucket (`delay: true`),
 *               after the time until the bucket owes no more than the step
 *   challenge   a scale of the kind WEIR_SCALE_RESERVE (charge/scale.h) for requests that have not
 *               passed a challenge: above the step they are denied, and charged nothing
 *
 * A step is a percentage of the capacity in force, as a threshold of `warn_at` is. It is reached by
 * what is used after the request; of several rates the one that is used most counts. The highest
 * step that is reached and applies to the request is the limit's action (engine/effect/action.h).
 *
 * Memory: in the arena of the rules. Threads: immutable once loaded.
 */
#ifndef WEIR_RULES_ACTIONS_STEPS_H
#define WEIR_RULES_ACTIONS_STEPS_H

#include "core/answer.h"
#include "rules/rules.h"

#define WEIR_STEPS_MAX 8 /* of a limit */

/* The longest `delay` and `tarpit`: proxies give up after about a minute. */
#define WEIR_DELAY_MAX_NS (UINT64_C(60) * 1000000000)

struct weir_step {
    uint64_t delay_ns; /* of WEIR_ACTION_DELAY; 0: until what is owed is back at the step */
    uint8_t percent;   /* 1..99 */
    uint8_t action;    /* WEIR_ACTION_MARK or WEIR_ACTION_DELAY */
};

struct weir_steps {
    uint8_t count;
    uint8_t challenge; /* the percentage of the challenge, which is not in `list`; 0: none */
    struct weir_step list[WEIR_STEPS_MAX]; /* ascending */
};

/* The steps of a limit; NULL: none. A shadow limit has none, because it is not enforced. */
const struct weir_steps *weir_rules_steps(const struct weir_rules *rules, uint32_t rule);

/* Whether any limit has steps, or shapes its denials (reject.h). */
bool weir_rules_acts(const struct weir_rules *rules);

/* How long a bucket (rate > 0) that owes `owed_ns`, below 2^63, waits until it owes no more than
 * the step, rounded up. 0: the step is not passed. */
uint64_t weir_step_drain_ns(const struct weir_limit *limit, uint8_t percent, uint64_t owed_ns);

#endif
