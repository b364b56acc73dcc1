/* see target.h: a span for a new key when the heap has none left */
#include "table/account.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/span_heap.h"
#include "table/target.h"
#include "table/undo.h"

/* How many pages and spans are looked at for one new key: some ten microseconds. */
#define STEPS 512
/* How many states that are not fresh, and don't deny, are compared. */
#define CANDIDATES 16

/* Where in a page the search goes on; a class of larger spans has fewer, and then goes on in the
 * next page. */
#define SPANS_LOOK 32

/* A slot that owns a span, locked. */
struct victim {
    struct table_bucket *bucket;
    uint32_t slot;
};

/* The next span of a size and the slot that it says owns it, which may be out of date as soon as
 * the heap's lock is gone. Returns 0 when there is none. */
static uint64_t next_span(struct weir_table_owner *owner, uint32_t words, uint32_t *steps,
                          uint64_t *at)
{
    struct weir_table *table = owner->table;

    owner_lock(owner, &table->header->heap_lock);

    uint64_t span = heap_next(table, words, &owner->reclaim_at, steps);

    *at = span != 0 ? *heap_owner_of(table, span) : SPAN_UNOWNED;
    owner_unlock(&table->header->heap_lock);
    return span;
}

/* Goes on elsewhere in the heap. Neighbours were often made together and are alike: a page full of
 * long windows says nothing of the many short ones that may be nearer to fresh. */
static void jump(struct weir_table_owner *owner)
{
    uint64_t pages = owner->table->fixed.pages;

    owner->reclaim_at = owner_random(owner) % pages * PAGE_WORDS + owner_random(owner) % SPANS_LOOK;
}

/* Locks the slot `at` if it still owns the span; false when not, or when it is busy. */
static bool lock_victim(struct weir_table_owner *owner, uint64_t span, uint64_t at,
                        struct victim *victim)
{
    struct weir_table *table = owner->table;

    if (at >> 3 >= table->fixed.buckets || (at & 7) >= BUCKET_SLOTS)
        return false;
    victim->bucket = region_bucket(table, at >> 3);
    victim->slot = at & 7;
    if (!owner_try(owner, &victim->bucket->lock))
        return false;

    const struct weir_limit *limit = region_limit(table, victim->bucket->param[victim->slot]);

    if (limit != NULL && region_has_span(limit) && slot_span(victim->bucket, victim->slot) == span)
        return true;
    owner_unlock(&victim->bucket->lock);
    return false;
}

/* Empties a locked slot, and unlocks it. */
static void dismiss(struct weir_table_owner *owner, const struct victim *victim)
{
    struct weir_table *table = owner->table;
    uint16_t *param = &victim->bucket->param[victim->slot];

    owner_lock(owner, &table->header->heap_lock);
    undo_save_param(owner, victim->bucket, victim->slot);
    __atomic_store_n(param, 0, __ATOMIC_RELAXED);
    heap_give(owner, slot_span(victim->bucket, victim->slot));
    undo_finish(owner);
    owner_unlock(&table->header->heap_lock);
    owner_unlock(&victim->bucket->lock);
}

void target_make_room(struct weir_table_owner *owner, uint32_t words, uint64_t now_ns)
{
    uint64_t nearest = UINT64_MAX, best = 0, best_at = 0;
    uint32_t steps = STEPS;
    struct victim victim;

    for (uint32_t candidates = 0; steps > 0 && candidates < CANDIDATES;) {
        uint64_t at, span = next_span(owner, words, &steps, &at);

        if (span == 0 || !lock_victim(owner, span, at, &victim))
            continue;

        struct slot_view view;

        slot_look(owner->table, victim.bucket, victim.slot, now_ns, &view);
        if (view.fresh_at_ns <= now_ns) {
            owner_count(owner, COUNT_RECLAIMED);
            dismiss(owner, &victim);
            return;
        }
        if (!view.denies) {
            candidates++;
            if (view.fresh_at_ns < nearest) {
                nearest = view.fresh_at_ns;
                best = span;
                best_at = at;
            }
        }
        owner_unlock(&victim.bucket->lock);
        jump(owner);
    }
    if (best == 0 || !lock_victim(owner, best, best_at, &victim))
        return;

    struct slot_view view;

    slot_look(owner->table, victim.bucket, victim.slot, now_ns, &view);
    if (view.denies) {
        owner_unlock(&victim.bucket->lock);
        return;
    }
    owner_count(owner, COUNT_EVICTIONS);
    account_count_eviction(owner->table, victim.bucket->param[victim.slot]);
    dismiss(owner, &victim);
}
