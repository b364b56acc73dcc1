/* SPDX-License-Identifier: Apache-2.0 */
/* see observe.h */
#include "engine/observe/observe.h"

#include "engine/state.h"

struct weir_bytes weir_observed_key(const struct weir_observed *observed, uint16_t i,
                                    char room[WEIR_KEY_TEXT_MAX])
{
    return weir_engine_key_text(observed->engine, weir_entry_of(observed->decision),
                                &observed->decision->checks[i], room);
}

void weir_observe(struct weir_engine *engine, const struct weir_entry *entry, bool sampled)
{
    const struct weir_observed observed = {
        .engine = engine,
        .decision = &entry->decision,
        .rules = entry->generation->rules,
        .place = entry->place,
        .sampled = sampled,
    };
    uint32_t gap = engine->observe(engine->observe_context, &observed);
    if (sampled)
        engine->observe_wait = gap;
}
