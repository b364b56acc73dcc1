/* SPDX-License-Identifier: Apache-2.0 */
/* The ladder of a penalty: how strikes move the standing of one value, step by step.
 *
 *   ladder: [warn 1h, throttle 1h, suspend 10min, suspend 1h, suspend 1d]     forgive: 1d
 *
 *   step  0 ──move──▶ 1 ──move──▶ 2 ── … ──▶ the last one, which a further move begins anew
 *         ◀─────────────────────────────────  one down for each `forgive` without a strike, counted
 *                                             from the end of the last term
 *
 * The user of this module counts strikes in a limit. It calls weir_ladder_strike where the limit
 * admits the strike, and weir_ladder_move where the strike is one too many. Between two strikes
 * nothing has to be done: what was forgiven meanwhile is computed at the next call.
 *
 * Pure: no clock, no memory, no store. A state that sees an earlier time than before forgives
 * nothing for it. Times are nanoseconds of weir's timeline. Threads: any, one owner a state.
 */
#ifndef WEIR_FEATURE_STANDING_LADDER_H
#define WEIR_FEATURE_STANDING_LADDER_H

#include "feature/standing/standing.h"

#define WEIR_LADDER_STEPS_MAX 16

struct weir_ladder_step {
    uint64_t term_ns; /* at least 1; WEIR_NEVER: without an end, as of a revocation */
    uint8_t level;    /* enum weir_standing_level: WARNED to REVOKED */
};

struct weir_ladder {
    uint64_t forgive_ns; /* at least 1; 0: nothing is forgiven */
    uint8_t count;       /* of steps: 1 to WEIR_LADDER_STEPS_MAX */
    struct weir_ladder_step steps[WEIR_LADDER_STEPS_MAX];
};

/* Of one value. All zero: it has never reached a step. The step may be above those of the ladder,
 * which was longer before a reload: the last one counts. */
struct weir_ladder_state {
    uint64_t until_ns; /* the end of the last term */
    uint64_t clean_ns; /* without a strike since then: not before until_ns */
    uint8_t step;      /* reached last and not forgiven; 0: none */
};

/* Takes off what has been forgiven by now. Call it to look at a state; the other functions do it by
 * themselves. Returns how many steps that was. */
uint8_t weir_ladder_forgive(const struct weir_ladder *ladder, struct weir_ladder_state *state,
                            uint64_t now_ns);

/* A strike that moves nothing: the time without one begins anew. */
void weir_ladder_strike(const struct weir_ladder *ladder, struct weir_ladder_state *state,
                        uint64_t now_ns);

/* The step that a state is at, or NULL: none. */
const struct weir_ladder_step *weir_ladder_at(const struct weir_ladder *ladder,
                                              const struct weir_ladder_state *state);

/* When all of a state will be forgiven; WEIR_NEVER: never. */
uint64_t weir_ladder_gone_ns(const struct weir_ladder *ladder,
                             const struct weir_ladder_state *state);

/* One step up, or the last one once more: its term begins now. Returns the step: its level is in
 * force until state->until_ns. */
const struct weir_ladder_step *weir_ladder_move(const struct weir_ladder *ladder,
                                                struct weir_ladder_state *state, uint64_t now_ns);

/* One step of a rules file: "warn 1h", "throttle 30min", "challenge 1h", "suspend 1d", "revoke".
 * `duration` reads the term. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE; *reason says what is wrong.
 */
typedef int (*weir_ladder_duration)(uint64_t *duration_ns, const char *text, size_t size,
                                    struct weir_reason *reason);
int weir_ladder_step_parse(struct weir_ladder_step *step, struct weir_bytes text,
                           weir_ladder_duration duration, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
