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

static bool same_state(const struct weir_check *a, const struct weir_check *b)
{
    bool same_limit = a->limit == b->limit || (a->limit != NULL && b->limit != NULL &&
                                               a->limit->id != 0 && a->limit->id == b->limit->id);
    return same_limit && a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1];
}

void weir_decision_merge(struct weir_decision *decision, uint8_t place[WEIR_CHECKS_MAX])
{
    struct weir_check *checks = decision->checks;
    uint16_t kept = 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        uint16_t at = 0;
        while (at < kept && !same_state(&checks[at], &checks[i]))
            at++;
        if (at == kept)
            checks[kept++] = checks[i];
        else if (__builtin_add_overflow(checks[at].cost, checks[i].cost, &checks[at].cost))
            checks[at].cost = UINT64_MAX;
        if (place != NULL)
            place[i] = (uint8_t)at;
    }
    decision->count = kept;
}
