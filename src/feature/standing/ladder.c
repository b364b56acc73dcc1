/* SPDX-License-Identifier: Apache-2.0 */
/* see ladder.h */
#include "feature/standing/ladder.h"

#include <string.h>

#include "core/text/reason.h"

uint8_t weir_ladder_forgive(const struct weir_ladder *ladder, struct weir_ladder_state *state,
                            uint64_t now_ns)
{
    if (state->step == 0 || ladder->forgive_ns == 0 || now_ns <= state->clean_ns)
        return 0;
    uint64_t times = (now_ns - state->clean_ns) / ladder->forgive_ns;
    uint8_t steps = times < state->step ? (uint8_t)times : state->step;
    state->step -= steps;
    state->clean_ns += steps * ladder->forgive_ns; /* at most now_ns */
    return steps;
}

void weir_ladder_strike(const struct weir_ladder *ladder, struct weir_ladder_state *state,
                        uint64_t now_ns)
{
    weir_ladder_forgive(ladder, state, now_ns);
    if (now_ns > state->clean_ns)
        state->clean_ns = now_ns;
}

const struct weir_ladder_step *weir_ladder_at(const struct weir_ladder *ladder,
                                              const struct weir_ladder_state *state)
{
    uint8_t step = state->step < ladder->count ? state->step : ladder->count;
    return step > 0 ? &ladder->steps[step - 1] : NULL;
}

uint64_t weir_ladder_gone_ns(const struct weir_ladder *ladder,
                             const struct weir_ladder_state *state)
{
    uint64_t steps_ns, gone_ns;
    if (state->step == 0)
        return 0;
    if (ladder->forgive_ns == 0 ||
        __builtin_mul_overflow(ladder->forgive_ns, (uint64_t)state->step, &steps_ns) ||
        __builtin_add_overflow(state->clean_ns, steps_ns, &gone_ns))
        return WEIR_NEVER;
    return gone_ns;
}

const struct weir_ladder_step *weir_ladder_move(const struct weir_ladder *ladder,
                                                struct weir_ladder_state *state, uint64_t now_ns)
{
    weir_ladder_forgive(ladder, state, now_ns);
    if (state->step < ladder->count)
        state->step++;
    else
        state->step = ladder->count; /* rules that were reloaded may have fewer */
    const struct weir_ladder_step *step = &ladder->steps[state->step - 1];
    if (__builtin_add_overflow(now_ns, step->term_ns, &state->until_ns))
        state->until_ns = WEIR_NEVER;
    state->clean_ns = state->until_ns;
    return step;
}

static bool begins(struct weir_bytes text, const char *word)
{
    size_t size = strlen(word);
    return text.size >= size && memcmp(text.data, word, size) == 0 &&
           (text.size == size || text.data[size] == ' ');
}

int weir_ladder_step_parse(struct weir_ladder_step *step, struct weir_bytes text,
                           weir_ladder_duration duration, struct weir_reason *reason)
{
    static const struct {
        const char *word;
        uint8_t level;
    } words[] = {{"warn", WEIR_STANDING_WARNED},
                 {"throttle", WEIR_STANDING_THROTTLED},
                 {"challenge", WEIR_STANDING_CHALLENGED},
                 {"suspend", WEIR_STANDING_SUSPENDED},
                 {"revoke", WEIR_STANDING_REVOKED}};
    size_t at = 0, count = sizeof words / sizeof words[0];
    while (at < count && !begins(text, words[at].word))
        at++;
    if (at == count) {
        reason_text(reason,
                    "a step is warn, throttle, challenge or suspend and a duration, such as "
                    "`suspend 10min`, or `revoke`");
        return WEIR_ERR_SYNTAX;
    }
    size_t size = strlen(words[at].word);
    step->level = words[at].level;
    if (step->level == WEIR_STANDING_REVOKED) {
        step->term_ns = WEIR_NEVER;
        if (text.size == size)
            return 0;
        reason_text(reason, "`revoke` has no end: remove the duration");
        return WEIR_ERR_SYNTAX;
    }
    if (text.size <= size + 1) {
        reason_text(reason, words[at].word);
        reason_text(reason, " needs a duration, such as `10min`");
        return WEIR_ERR_SYNTAX;
    }
    int err = duration(&step->term_ns, text.data + size + 1, text.size - size - 1, reason);
    if (err == 0 && step->term_ns == 0) {
        reason_text(reason, "the duration of a step must be more than 0");
        err = WEIR_ERR_RANGE;
    }
    return err;
}
