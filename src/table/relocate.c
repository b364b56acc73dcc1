/* SPDX-License-Identifier: Apache-2.0 */
/* see placement.h, and target_relocate in target.h */
#include "table/owner.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span_heap.h"
#include "table/target.h"
#include "table/undo.h"

/* Keys of the two buckets that are tried: see placement.h. Each try may miss the cache. */
#define TRIES 6
/* After so many failures, new keys without room only try every so often: the table is full. */
#define FAILURES_MAX 4
#define SKIPS 32

/* Moves a key that has no span to a free slot of its other bucket. */
static void move(struct weir_table_owner *owner, struct table_bucket *from, uint32_t i,
                 const struct place *to)
{
    uint64_t tag = slot_tag(from, i);
    bool second = !slot_is_second(from, i);

    undo_save_slot(owner, to->bucket, to->slot);
    undo_save_param(owner, from, i);
    slot_put(to->bucket, to->slot, tag, second, from->param[i], from->slot[i].state);
    slot_set_param(from, i, 0);
    undo_finish(owner);
}

/* Whether a slot's state takes no span: moving one would have to tell the heap. */
static bool has_no_span(const struct weir_table *table, uint16_t param)
{
    const struct weir_limit *limit = region_limit(table, param);

    return limit != NULL && !region_has_span(limit);
}

static bool try_slot(struct weir_table_owner *owner, const struct transaction *txn,
                     struct table_bucket *from, uint32_t i)
{
    struct weir_table *table = owner->table;
    uint64_t index = (uint64_t)(from - table->buckets);
    struct table_bucket *other =
        region_bucket(table, position_other(&table->map, index, slot_tag(from, i)));
    struct place place = {.taken = {0, 0}};

    if (!has_no_span(table, from->param[i]) || other == from ||
        __atomic_load_n(&table->params[from->param[i] - 1].swept, __ATOMIC_RELAXED) != 0)
        return false;

    bool held = owner_holds(owner, &other->lock);

    if (!held && !owner_try(owner, &other->lock))
        return false;
    place.taken[0] = place.taken[1] = target_taken(owner, txn, other);

    enum placement found =
        placement_free(table, (struct table_bucket *const[2]){other, other}, txn->now_ns, &place);
    bool moves = found == PLACE_EMPTY ||
                 (found == PLACE_RECLAIM && has_no_span(table, other->param[place.slot]));

    if (moves)
        move(owner, from, i, &place);
    if (!held)
        owner_unlock(&other->lock);
    return moves;
}

bool target_relocate(struct weir_table_owner *owner, const struct transaction *txn,
                     struct table_bucket *const pair[2], struct place *place)
{
    /* A move is final at once, so nothing else may be in the journal. */
    if (owner->slot->undo_count > 0)
        return false;
    if (owner->relocate_failures >= FAILURES_MAX) {
        if (++owner->relocate_skips < SKIPS)
            return false;
        owner->relocate_skips = 0;
    }
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        uint32_t b = tries % 2, i = tries / 2;

        if ((place->taken[b] >> i & 1) || !try_slot(owner, txn, pair[b], i))
            continue;
        place->bucket = pair[b];
        place->slot = i;
        owner->relocate_failures = 0;
        return true;
    }
    owner->relocate_failures++;
    return false;
}
