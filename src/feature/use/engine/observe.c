/* SPDX-License-Identifier: Apache-2.0 */
/* see observe.h */
#include "feature/use/engine/observe.h"

#include "engine/state.h"
#include "feature/standing/rules/match.h"
#include "feature/use/engine/pack.h"

void weir_observed_key(const struct weir_observed *observed, uint16_t i,
                       struct weir_shown_list *list)
{
    weir_pack_key(list, observed->rules, &observed->decision->checks[i],
                  observed->engine->standing);
}

void weir_observed_refused(const struct weir_observed *observed, struct weir_shown_list *list)
{
    weir_pack_text(list, weir_entry_of(observed->decision)->standing.by);
}

struct weir_asker weir_observed_caller(const struct weir_observed *observed)
{
    const struct weir_entry *entry = weir_entry_of(observed->decision);
    return (struct weir_asker){entry->identity.user, entry->identity.org, &entry->client};
}

void weir_observed_pack(const struct weir_observed *observed, struct weir_shown_list *list,
                        const char *kind, struct weir_bytes value)
{
    weir_pack_value(list, kind, value, observed->engine->standing);
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
