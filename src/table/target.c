/* SPDX-License-Identifier: Apache-2.0 */
/* see target.h: locks and resolving */
#include "table/target.h"

#include <string.h>

#include "core/cell.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span_heap.h"
#include "table/undo.h"

void target_want(struct weir_table_owner *owner, uint32_t *lock)
{
    uint32_t at = owner->wanted_count;

    for (uint32_t i = 0; i < at; i++)
        if (owner->wanted[i] == lock)
            return;
    for (; at > 0 && owner->wanted[at - 1] > lock; at--)
        owner->wanted[at] = owner->wanted[at - 1];
    owner->wanted[at] = lock;
    owner->wanted_count++;
}

bool target_lock_wanted(struct weir_table_owner *owner)
{
    for (uint32_t i = 0; i < owner->wanted_count; i++) {
        if (!owner_lock(owner, owner->wanted[i]))
            return false;
        owner->held[owner->held_count++] = owner->wanted[i];
    }
    return true;
}

bool target_lock(struct weir_table_owner *owner, uint32_t *lock)
{
    if (owner_holds(owner, lock))
        return true;
    if (owner_try(owner, lock)) {
        owner->held[owner->held_count++] = lock;
        return true;
    }
    target_want(owner, lock);
    owner->lost = true;
    return false;
}

bool target_lock_heap(struct weir_table_owner *owner)
{
    uint32_t *lock = &owner->table->header->heap_lock;

    if (owner_holds(owner, lock))
        return true;
    if (!owner_lock(owner, lock))
        return false;
    owner->held[owner->held_count++] = lock;
    return true;
}

void target_unlock_all(struct weir_table_owner *owner)
{
    for (uint32_t i = 0; i < owner->held_count; i++)
        owner_unlock(owner->held[i]);
    owner->held_count = 0;
}

/* Where spans are released, all that was written is in the journal. */
bool target_finish(struct weir_table_owner *owner)
{
    if (owner->freed_count > 0) {
        if (!target_lock_heap(owner)) {
            target_cancel(owner);
            return false;
        }
        for (uint32_t i = 0; i < owner->freed_count; i++)
            heap_give(owner, owner->freed[i]);
        owner->freed_count = 0;
    }
    if (!undo_finish(owner)) {
        target_cancel(owner);
        return false;
    }
    target_unlock_all(owner);
    return true;
}

void target_cancel(struct weir_table_owner *owner)
{
    owner->freed_count = 0;
    undo_cancel(owner);
    target_unlock_all(owner);
}

static bool stateless(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) != 0;
}

/* The record of an idempotency key is its own or none at all: in cells that keys share, the record
 * of another would pass for it, and a request would go through uncharged. */
static bool is_unshared(const struct weir_check *check)
{
    return (check->flags & WEIR_CHECK_ONCE) != 0;
}

/* Looks for the key of a check in its buckets: the likely one first. */
static bool find_key(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                     struct target *target)
{
    const struct lookup *ahead = &txn->ahead[i];
    struct weir_table *table = owner->table;
    uint64_t other = position_other(&table->map, ahead->at.bucket, ahead->at.tag);
    struct table_bucket *first = region_bucket(table, ahead->at.bucket);
    struct table_bucket *second = region_bucket(table, other);
    bool begin = ahead->likely == second && first != second;

    target->at = ahead->at;
    for (uint32_t b = 0; b < 2; b++) {
        bool is_second = begin != (b == 1);
        struct table_bucket *bucket = is_second ? second : first;

        if (!target_lock(owner, &bucket->lock))
            return false;

        int slot = slot_find(bucket, ahead->at.tag, is_second);

        if (slot >= 0) {
            target->kind = TARGET_SLOT;
            target->bucket = bucket;
            target->slot = (uint8_t)slot;
            return target_load(owner, txn, i, target);
        }
    }
    target->kind = TARGET_NEW;
    return true;
}

uint32_t target_taken(const struct weir_table_owner *owner, const struct transaction *txn,
                      const struct table_bucket *bucket)
{
    uint32_t mask = 0;

    for (uint32_t i = txn->first; txn->count > 1 && i < txn->first + txn->count; i++)
        if (owner->targets[i].bucket == bucket)
            mask |= 1u << owner->targets[i].slot;
    return mask;
}

/* The span that this attempt allocated for a target which turns out not to need it. */
static void drop_span(struct weir_table_owner *owner, const struct target *target)
{
    if (target->span_new && target->span != 0 && target->leader == target - owner->targets)
        owner->freed[owner->freed_count++] = target->span;
}

/* Points a target at the overflow cells of its key. */
static bool find_cells(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                       struct target *target)
{
    const struct weir_decision *decision = txn->decision;
    const struct weir_check *check = &decision->checks[i];
    struct table_param *param = &owner->table->params[check->limit->id - 1];
    uint32_t network = (check->flags & WEIR_CHECK_NETWORK) != 0 ? decision->network : 0;

    *target = (struct target){.kind = TARGET_OVERFLOW, .param = param, .at = target->at};
    target->leader = (uint16_t)i;
    if (!target_lock(owner, &param->lock))
        return false;
    if (!overflow_open(owner, param, txn->now_ns))
        return false;
    overflow_find(owner->table, param, check, network, target->cells);
    return true;
}

/* There is no room for the key of a check. */
static bool use_overflow(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                         struct target *target)
{
    drop_span(owner, target);
    if (!is_unshared(&txn->decision->checks[i]) && txn->decision->op != WEIR_OP_REFUND)
        return find_cells(owner, txn, i, target);
    *target = (struct target){.kind = TARGET_NONE, .leader = (uint16_t)i};
    return true;
}

/* Whether a key without a slot counts in overflow cells still. Sets *target if so; false with
 * owner->lost or owner->stuck: they could not be locked. */
static bool still_overflows(struct weir_table_owner *owner, const struct transaction *txn,
                            uint32_t i, struct target *target)
{
    const struct weir_check *check = &txn->decision->checks[i];
    struct table_param *param = &owner->table->params[check->limit->id - 1];
    struct target before = *target;
    struct weir_limit room;

    if (!overflow_is_live(param, txn->now_ns) || is_unshared(check) ||
        !find_cells(owner, txn, i, target))
        return false;
    if (overflow_holds(overflow_limit(check->limit, &room), target->cells, txn->now_ns))
        return true;
    *target = before;
    return false;
}

/* Finds a place for the key of check `i`, which has none. */
static bool find_place(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                       struct target *target)
{
    struct weir_table *table = owner->table;
    const struct weir_limit *limit = txn->decision->checks[i].limit;
    uint64_t other = position_other(&table->map, target->at.bucket, target->at.tag);
    struct table_bucket *pair[2] = {region_bucket(table, target->at.bucket),
                                    region_bucket(table, other)};
    struct place place = {.taken = {0, 0}};

    if (txn->decision->op == WEIR_OP_REFUND) {
        target->kind = TARGET_NONE;
        return true;
    }
    if (still_overflows(owner, txn, i, target))
        return true;
    if (owner->lost || owner->stuck)
        return false;
    for (uint32_t b = 0; b < 2; b++)
        place.taken[b] = target_taken(owner, txn, pair[b]);

    enum placement found = placement_free(table, pair, txn->now_ns, &place);

    if (found == PLACE_NONE && target_relocate(owner, txn, pair, &place))
        found = PLACE_EMPTY;
    if (found == PLACE_NONE)
        found = placement_evict(owner, pair, limit->id, txn->now_ns, &place);
    if (found == PLACE_NONE)
        return use_overflow(owner, txn, i, target);
    target->kind = TARGET_NEW;
    target->bucket = place.bucket;
    target->slot = (uint8_t)place.slot;
    target->second = place.bucket != pair[0];
    target->placement = (uint8_t)found;
    return target_load_fresh(owner, txn, i, target);
}

static bool same_state(const struct target *a, const struct target *b)
{
    if (a->kind == TARGET_NONE || b->kind == TARGET_NONE)
        return false;
    return a->bucket == b->bucket && a->slot == b->slot && a->param == b->param;
}

/* The earlier check whose new key this one has too; -1: none. */
static int same_new_key(const struct weir_table_owner *owner, const struct transaction *txn,
                        uint32_t i)
{
    const struct target *targets = owner->targets;

    for (uint32_t j = txn->first; j < i; j++)
        if (targets[j].kind == TARGET_NEW && targets[j].at.bucket == targets[i].at.bucket &&
            targets[j].at.tag == targets[i].at.tag)
            return (int)j;
    return -1;
}

/* The span that a check allocated for a state which an earlier one has already carried over. */
static void drop_second_span(struct weir_table_owner *owner, struct target *target)
{
    if (!target->span_new || target->span == owner->targets[target->leader].span)
        return;
    owner->freed[owner->freed_count++] = target->span;
    target->span_new = false;
}

/* Finds the checks that meet in one state. Different limits cannot share one (only a hash collision
 * makes them): the later one is then decided on overflow cells. Cells are no state of one check,
 * so there is nothing to lead: their costs are joined (transaction.c). */
static bool find_leaders(struct weir_table_owner *owner, struct transaction *txn)
{
    const struct weir_check *checks = txn->decision->checks;

    for (uint32_t i = txn->first + 1; i < txn->first + txn->count; i++)
        for (uint32_t j = txn->first; j < i; j++) {
            struct target *target = &owner->targets[i];

            if (!same_state(target, &owner->targets[j]))
                continue;
            txn->shares = true;
            if (target->kind == TARGET_OVERFLOW)
                break;
            if (checks[i].limit->id != checks[j].limit->id) {
                if (!use_overflow(owner, txn, i, target))
                    return false;
                j = txn->first - 1u; /* once more, with the new target */
                continue;
            }
            target->leader = owner->targets[j].leader;
            drop_second_span(owner, target);
            break;
        }
    return true;
}

/* A check for which there is no span left is decided on overflow cells. */
static bool resolved(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                     bool found)
{
    if (found || !owner->no_room || !owner->give_up)
        return found;
    owner->no_room = false;
    return use_overflow(owner, txn, i, &owner->targets[i]);
}

bool target_resolve(struct weir_table_owner *owner, struct transaction *txn)
{
    const struct weir_check *checks = txn->decision->checks;
    uint32_t end = txn->first + txn->count;
    bool missing = false;

    for (uint32_t i = txn->first; i < end; i++) {
        struct target *target = &owner->targets[i];

        *target = (struct target){.kind = TARGET_NONE, .leader = (uint16_t)i};
        if (stateless(&checks[i]))
            continue;

        bool found = find_key(owner, txn, i, target);

        if (!resolved(owner, txn, i, found))
            return false;
        missing = missing || target->kind == TARGET_NEW;
    }
    for (uint32_t i = txn->first; missing && i < end; i++) {
        struct target *target = &owner->targets[i];

        if (target->kind != TARGET_NEW)
            continue;

        int same = same_new_key(owner, txn, i);

        if (same >= 0) {
            *target = owner->targets[same];
            continue;
        }
        if (!resolved(owner, txn, i, find_place(owner, txn, i, target)))
            return false;
    }
    return txn->count < 2 || find_leaders(owner, txn);
}
