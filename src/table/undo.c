/* SPDX-License-Identifier: Apache-2.0 */
/* see undo.h */
#include "table/undo.h"

#include "table/owner.h"
#include "table/span/heap.h"

#define NARROW 1u /* in table_undo.where: 4 bytes, not 8 */

static struct table_undo *entry_at(struct weir_table *table, struct table_owner_slot *slot,
                                   uint32_t i)
{
    return i < UNDO_OWN ? &slot->undo[i] : &table->spill[i - UNDO_OWN];
}

/* Locks the spill area, after the heap's lock: then its holder waits for no other lock, so that
 * waiting for it is safe. */
static bool lock_spill(struct weir_table_owner *owner)
{
    struct table_header *header = owner->table->header;

    if (!owner_holds(owner, &header->heap_lock)) {
        if (!owner_lock(owner, &header->heap_lock))
            return false;
        owner->held[owner->held_count++] = &header->heap_lock;
    }
    return owner_lock(owner, &header->spill_lock);
}

/* Whether the spill area has a place for the next entry. Only a damaged file can need more than the
 * area has. */
static bool spill_has_room(struct weir_table_owner *owner, uint32_t count)
{
    return (count > UNDO_OWN || lock_spill(owner)) &&
           count < UNDO_OWN + layout_spill_entries(&owner->table->fixed);
}

static bool save(struct weir_table_owner *owner, uint64_t where, uint64_t old)
{
    uint32_t count = owner->slot->undo_count;

    if (count >= UNDO_OWN && (owner->unsaved || !spill_has_room(owner, count))) {
        owner->unsaved = owner->stuck = true;
        return false;
    }
    *entry_at(owner->table, owner->slot, count) = (struct table_undo){where, old};
    UNDO_BARRIER();
    __atomic_store_n(&owner->slot->undo_count, count + 1, __ATOMIC_RELAXED);
    UNDO_BARRIER();
    return true;
}

bool undo_save64(struct weir_table_owner *owner, const uint64_t *word)
{
    return save(owner, region_offset(owner->table, word), *word);
}

bool undo_save32(struct weir_table_owner *owner, const uint32_t *word)
{
    return save(owner, region_offset(owner->table, word) | NARROW, *word);
}

/* tag_hi and param are saved in pairs, as words of 4 bytes. */
bool undo_save_slot(struct weir_table_owner *owner, const struct table_bucket *bucket, uint32_t i)
{
    const uint64_t *slot = (const uint64_t *)(const void *)&bucket->slot[i];

    return undo_save64(owner, &slot[0]) && undo_save64(owner, &slot[1]) &&
           undo_save32(owner, (const uint32_t *)(const void *)&bucket->tag_hi[i & ~1u]) &&
           undo_save32(owner, &bucket->marks) && undo_save_param(owner, bucket, i);
}

bool undo_save_param(struct weir_table_owner *owner, const struct table_bucket *bucket, uint32_t i)
{
    return undo_save32(owner, (const uint32_t *)(const void *)&bucket->param[i & ~1u]);
}

static void clear(struct weir_table *table, struct table_owner_slot *slot)
{
    uint32_t count = slot->undo_count;

    UNDO_BARRIER();
    __atomic_store_n(&slot->undo_count, 0, __ATOMIC_RELAXED);
    UNDO_BARRIER();
    if (count > UNDO_OWN)
        owner_unlock(&table->header->spill_lock);
}

bool undo_finish(struct weir_table_owner *owner)
{
    if (owner->unsaved) {
        undo_cancel(owner);
        return false;
    }
    if (owner->slot->undo_count > 0)
        clear(owner->table, owner->slot);
    return true;
}

void undo_cancel(struct weir_table_owner *owner)
{
    undo_take_back(owner->table, owner->slot);
    owner->unsaved = false;
}

void undo_take_back(struct weir_table *table, struct table_owner_slot *slot)
{
    uint32_t count = slot->undo_count;

    if (count == 0)
        return;
    if (!undo_valid(table, slot)) {
        /* The file was overwritten; nothing can be undone safely. */
        __atomic_store_n(&slot->undo_count, 0, __ATOMIC_RELAXED);
        return;
    }
    for (uint32_t i = count; i > 0; i--) {
        struct table_undo undo = *entry_at(table, slot, i - 1);

        if (undo.where & NARROW)
            __atomic_store_n((uint32_t *)(void *)(table->base + (undo.where & ~UINT64_C(3))),
                             (uint32_t)undo.old, __ATOMIC_RELAXED);
        else
            __atomic_store_n((uint64_t *)(void *)(table->base + undo.where), undo.old,
                             __ATOMIC_RELAXED);
    }
    heap_note_free(table); /* it may have taken pages */
    clear(table, slot);
}

bool undo_valid(const struct weir_table *table, const struct table_owner_slot *slot)
{
    if (slot->undo_count > UNDO_OWN + layout_spill_entries(&table->fixed))
        return false;
    for (uint32_t i = 0; i < slot->undo_count; i++) {
        const struct table_undo *undo = i < UNDO_OWN ? &slot->undo[i] : &table->spill[i - UNDO_OWN];
        uint64_t at = undo->where & ~(uint64_t)NARROW;
        uint64_t align = undo->where & NARROW ? 4 : 8;

        if (at % align != 0 || at < offsetof(struct table_header, heap_lock) ||
            at > table->fixed.bytes - 8)
            return false;
    }
    return true;
}
