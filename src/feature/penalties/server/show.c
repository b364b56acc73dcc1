/* SPDX-License-Identifier: Apache-2.0 */
/* see show.h */
#include "feature/penalties/server/show.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/penalties/rules/penalty.h"

static json_t *time_json(uint64_t time_ns)
{
    return time_ns == WEIR_NEVER ? json_null() : json_integer((json_int_t)(time_ns / 1000000));
}

static json_t *ladder_json(const struct weir_penalty *penalty, struct weir_ladder_state state,
                           uint64_t now_ns)
{
    const struct weir_ladder *ladder = &penalty->ladder;
    const struct weir_ladder_step *step;
    uint64_t forgiven_ns;

    weir_ladder_forgive(ladder, &state, now_ns);
    step = weir_ladder_at(ladder, &state);
    if (!step)
        return NULL;
    if (ladder->forgive_ns == 0 ||
        __builtin_add_overflow(state.clean_ns, ladder->forgive_ns, &forgiven_ns))
        forgiven_ns = WEIR_NEVER;
    return json_pack("{s:s%, s:i, s:i, s:s, s:o, s:o}", "penalty", penalty->name.data,
                     penalty->name.size, "step", (int)state.step, "steps", (int)ladder->count,
                     "standing", weir_standing_level_name(step->level), "until_ms",
                     time_json(state.until_ns), "forgiven_ms", time_json(forgiven_ns));
}

json_t *weir_penalties_json(const struct weir_rules *rules,
                            const struct weir_keeper_ladders *ladders, uint64_t now_ns)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < ladders->count; i++) {
        const char *name = ladders->ladders[i].penalty;
        int number = weir_rules_penalty_find(rules, weir_bytes_of(name));
        json_t *json = number < 0 ? NULL
                                  : ladder_json(weir_rules_penalty(rules, (uint32_t)number),
                                                ladders->ladders[i].state, now_ns);

        if (json)
            json_array_append_new(list, json);
    }
    return list;
}
