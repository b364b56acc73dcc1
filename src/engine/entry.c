/* SPDX-License-Identifier: Apache-2.0 */
/* see entry.h */
#include "engine/entry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/state.h"
#include "feature/priority/rules/priority.h"

/* --- The pool --------------------------------------------------------------------------------- */

struct weir_decision *weir_engine_take(struct weir_engine *engine)
{
    struct weir_entry *entry = weir_pool_take(&engine->pool);
    if (!entry) {
        weir_count(&engine->failures.exhausted, 1);
        return NULL;
    }
    return &entry->decision;
}

void weir_lookup_end(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_lookup *lookup = entry->lookup;
    entry->lookup = NULL;
    if (lookup->waits) {
        engine->directory->ops->leave(engine->directory, &lookup->waiter);
        lookup->waits = false;
        engine->looking--;
    }
    engine->lookup_bytes -= lookup->size;
    free(lookup);
}

void weir_engine_give_back(struct weir_engine *engine, struct weir_entry *entry)
{
    if (__builtin_expect(entry->lookup != NULL, 0))
        weir_lookup_end(engine, entry);
    if (__builtin_expect(entry->drop != NULL, 0))
        entry->drop(engine, entry);
    weir_entry_unpin(engine, entry);
    weir_pool_give(entry);
}

void weir_engine_release(struct weir_engine *engine, struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    assert(entry->state == WEIR_ENTRY_TAKEN || entry->state == WEIR_ENTRY_FINISHED);
    weir_engine_give_back(engine, entry);
}

/* --- What it keeps ---------------------------------------------------------------------------- */

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

struct weir_bytes weir_entry_keep_name(struct weir_decision *decision, struct weir_bytes name)
{
    bool kept = name.data && name.size <= WEIR_IDENTITY_MAX;
    return kept ? weir_decision_keep(decision, name) : (struct weir_bytes){NULL, 0};
}

void weir_engine_keep_identity(struct weir_entry *entry, const struct weir_identity *identity)
{
    entry->identity.user = weir_entry_keep_name(&entry->decision, identity->user);
    entry->identity.org = weir_entry_keep_name(&entry->decision, identity->org);
    entry->identity.plan = weir_entry_keep_name(&entry->decision, identity->plan);
}

struct weir_bytes weir_engine_key_text(const struct weir_engine *engine,
                                       const struct weir_entry *entry,
                                       const struct weir_check *check, char room[WEIR_KEY_TEXT_MAX])
{
    return check->key_is_tuple ? weir_rules_key_text(entry->generation->rules, check, room)
                               : check->key;
}

void weir_engine_unaided(struct weir_decision *decision)
{
    struct weir_entry *entry = weir_entry_of(decision);
    entry->unaided = true;
    entry->borrow = NULL;
    for (uint16_t i = 0; i < decision->count; i++)
        decision->checks[i].flags &= (uint8_t)~WEIR_CHECK_LEASED;
}

/* --- What it says ----------------------------------------------------------------------------- */

const struct weir_rules *weir_decision_rules(const struct weir_decision *decision)
{
    const struct weir_generation *generation = weir_entry_of(decision)->generation;
    return generation ? generation->rules : NULL;
}

const char *weir_decision_class(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    const struct rules_priority *priority =
        entry->class != 0 ? weir_rules_priority(weir_decision_rules(decision)) : NULL;
    return priority ? priority->names[entry->class - 1] : NULL;
}

const struct weir_caller_standing *weir_decision_standing(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->stands ? &entry->standing : NULL;
}

const struct weir_caller_score *weir_decision_score(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->score.found ? &entry->score : NULL;
}

uint64_t weir_decision_caller(const struct weir_decision *decision)
{
    const struct weir_entry *entry = weir_entry_of(decision);
    return entry->generation && entry->generation->adapts ? entry->caller : 0;
}

struct weir_rules *weir_engine_rules(const struct weir_engine *engine)
{
    return engine->generation ? engine->generation->rules : NULL;
}

uint64_t weir_engine_store_time(const struct weir_engine *engine, uint64_t now_ns)
{
    const struct weir_store_ops *ops = engine->store->ops;
    return ops->time ? ops->time(engine->store, now_ns) : now_ns;
}
