/* SPDX-License-Identifier: Apache-2.0 */
/* What a front end does with a decision that is its own; see engine.h */
#include <string.h>

#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/pool.h"

const struct weir_identity *weir_engine_identity(const struct weir_decision *decision)
{
    return &weir_entry_of(decision)->identity;
}

const struct weir_rules *weir_decision_rules(const struct weir_decision *decision)
{
    const struct weir_generation *generation = weir_entry_of(decision)->generation;
    return generation != NULL ? generation->rules : NULL;
}

struct weir_bytes weir_decision_keep(struct weir_decision *decision, struct weir_bytes bytes)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct weir_scratch *scratch = &entry->scratch;
    if (!entry->keeps)
        scratch->used = 0;
    entry->keeps = true;
    if (bytes.size > sizeof scratch->bytes - scratch->used)
        return (struct weir_bytes){NULL, 0};
    char *kept = scratch->bytes + scratch->used;
    if (bytes.size > 0)
        memcpy(kept, bytes.data, bytes.size);
    scratch->used += (uint32_t)bytes.size;
    return (struct weir_bytes){kept, bytes.size};
}
