/* SPDX-License-Identifier: Apache-2.0 */
/* see target.h
 *
 * Spans are as large as what is in them. A state in a span that is too small for what a check may
 * charge, or more than twice too large, is written anew into another span: taken from the heap,
 * filled while no other owner can see it, put into the slot when the check is charged, and the old
 * one given back, all in the transaction of the decision. If the check is not charged, the
 * transaction takes it back.
 *
 * The heap has spans of certain sizes only, most of them a third or a half larger than the one
 * before, and a state gets an eighth more than it needs. So one that grows by a word at a time is
 * copied each time that it has grown by a quarter or so.
 */
#include "table/target.h"

#include <string.h>

#include "core/cell.h"
#include "core/scale.h"
#include "core/span/span.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/params.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span/heap.h"
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

/* Locks `lock` for this transaction. False: it is busy; owner->lost. */
static bool take_lock(struct weir_table_owner *owner, uint32_t *lock)
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

/* The heap's lock comes after all others, so it may be waited for. False: owner->stuck. */
static bool take_heap_lock(struct weir_table_owner *owner)
{
    uint32_t *lock = &owner->table->header->heap_lock;

    if (owner_holds(owner, lock))
        return true;
    if (!owner_lock(owner, lock))
        return false;
    owner->held[owner->held_count++] = lock;
    return true;
}

static void release_locks(struct weir_table_owner *owner)
{
    for (uint32_t i = 0; i < owner->held_count; i++)
        owner_unlock(owner->held[i]);
    owner->held_count = 0;
}

/* If spans are released, everything that was written is in the journal. */
bool target_finish(struct weir_table_owner *owner)
{
    if (owner->freed_count > 0) {
        if (!take_heap_lock(owner)) {
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
    release_locks(owner);
    return true;
}

void target_cancel(struct weir_table_owner *owner)
{
    owner->freed_count = 0;
    undo_cancel(owner);
    release_locks(owner);
}

/* The record of an idempotency key never counts in shared cells: there the record of another key
 * would look like it, and a request would pass uncharged. Nor do counters that are edited, nor
 * units that were given to one key. */
static bool is_unshared(const struct weir_decision *decision, const struct weir_check *check)
{
    return (check->flags & WEIR_CHECK_IDEMPOTENCY) != 0 || decision->op == WEIR_OP_EDIT ||
           prepaid_is(check->limit);
}

/* Spans smaller than this are not worth shrinking. */
#define SHRINK_MIN 11

/* What the checks of a decision on one key charge together. */
struct joint {
    uint64_t cost;
    uint32_t count;
};

static struct joint joint_use(const struct transaction *txn, uint32_t i)
{
    const struct weir_check *checks = txn->decision->checks;
    struct joint joint = {0, 0};

    for (uint32_t j = txn->first; j < txn->first + txn->count; j++) {
        if (checks[j].hash[0] != checks[i].hash[0] || checks[j].hash[1] != checks[i].hash[1] ||
            checks[j].cost == 0)
            continue;
        joint.cost =
            checks[j].cost > UINT64_MAX - joint.cost ? UINT64_MAX : joint.cost + checks[j].cost;
        joint.count++;
    }
    return joint;
}

/* The words to allocate for a state that needs `needs`: an eighth more, so that a log that loses
 * some events and gains others is not copied each time. */
static uint32_t words_for(const struct weir_limit *limit, uint32_t needs)
{
    uint32_t words = needs + needs / 8;

    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return limit->span_words;
    return heap_round(words < limit->span_words ? words : limit->span_words);
}

/* Takes a span for a state, and writes what `source` (NULL: nothing) has used into it. False: there
 * is no room, or owner->stuck. */
static bool take_span(struct weir_table_owner *owner, const struct weir_span_source *source,
                      const struct weir_limit *limit, uint32_t words, struct target *target)
{
    if (!take_heap_lock(owner))
        return false;

    uint64_t offset = heap_take(owner, words);

    if (offset == 0)
        return false;
    target->span = offset;
    target->span_new = true;
    if (limit->span_words > 0) {
        uint64_t *span = heap_span(owner->table, offset, words);

        if (!span) /* another process wrote into the heap */
            return false;
        weir_span_resize(source, limit, span, words);
    }
    return true;
}

static bool no_room(struct weir_table_owner *owner, const struct weir_limit *limit, uint32_t words)
{
    owner->no_room = !owner->stuck;
    owner->need = words;
    owner->need_param = limit->id;
    owner->need_span = 0;
    owner->need_used = 0;
    return false;
}

/* The same for an existing state with this span (0: none). */
static bool no_room_to_grow(struct weir_table_owner *owner, const struct transaction *txn,
                            uint32_t i, uint32_t words, uint64_t span)
{
    const struct target *target = &owner->targets[i];
    struct slot_view view;

    slot_look(owner->table, target->bucket, target->slot, txn->now_ns, &view);
    no_room(owner, txn->decision->checks[i].limit, words);
    owner->need_span = span;
    owner->need_used = view.used;
    return false;
}

/* Makes a fresh state for check `i` in target->bucket and ->slot, with room for what the check may
 * charge. False: owner->no_room or owner->stuck. */
static bool load_fresh(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                       struct target *target)
{
    const struct weir_limit *limit = txn->decision->checks[i].limit;
    uint32_t words = 2; /* a cell */

    target->cell = (struct weir_cell){0, 0};
    if (!region_has_span(limit))
        return true;
    if (limit->span_words > 0) {
        struct joint joint = joint_use(txn, i);

        words = words_for(limit, weir_span_needs(NULL, limit, joint.cost, joint.count));
    }
    return take_span(owner, NULL, limit, words, target) || no_room(owner, limit, words);
}

/* The state in a slot was made under other parameters: carries over what was used. If there is no
 * span for it, the key is denied until there is one: in cells it would start fresh. */
static bool load_converted(struct weir_table_owner *owner, const struct transaction *txn,
                           uint32_t i, struct target *target)
{
    struct weir_table *table = owner->table;
    const struct weir_limit *limit = txn->decision->checks[i].limit;
    const struct table_bucket *bucket = target->bucket;
    struct weir_limit room;
    const struct weir_limit *from = region_limit(table, bucket->param[target->slot], &room);
    bool has_span = from && region_has_span(from);
    uint64_t offset = has_span ? slot_span(bucket, target->slot) : 0;
    struct span_view span = {NULL, 0};
    struct weir_cell cell = {0, 0};

    if (has_span)
        span = heap_state(table, from, offset);
    target->rewrite = true;
    target->replaced = span.at ? offset : 0;
    target->cell = cell;
    if (!from || (has_span && !span.at) || !weir_limit_converts(from, limit)) {
        from = NULL;
    } else if (limit->span_words == 0) {
        if (span.at)
            cell = (struct weir_cell){span_word(&span, 0), span_word(&span, 1)};
        else
            cell_unpack(from, bucket->slot[target->slot].state, &cell);
        weir_cell_convert(from, limit, &cell, txn->now_ns);
        target->cell = cell;
    }
    if (!region_has_span(limit))
        return true;

    const struct weir_span_source source = {from, span.at, txn->now_ns, span.words};
    struct joint joint = joint_use(txn, i);
    uint32_t words = 2;

    if (limit->span_words > 0)
        words = words_for(limit,
                          weir_span_needs(from ? &source : NULL, limit, joint.cost, joint.count));
    if (take_span(owner, from ? &source : NULL, limit, words, target))
        return true;
    if (!owner->give_up || owner->stuck)
        return no_room_to_grow(owner, txn, i, words, target->replaced);
    target->full = true;
    return true;
}

/* Whether a check on the key of check `i` may be charged, as far as its span decides that. */
static bool may_charge(const struct transaction *txn, uint32_t i, const struct span_view *span)
{
    const struct weir_check *checks = txn->decision->checks;

    if (txn->decision->op == WEIR_OP_DEBIT)
        return true;
    for (uint32_t j = txn->first; j < txn->first + txn->count; j++)
        if (checks[j].hash[0] == checks[i].hash[0] && checks[j].hash[1] == checks[i].hash[1] &&
            weir_check_has_state(&checks[j]) &&
            ((checks[j].flags & WEIR_CHECK_CHARGE_ON_DENY) ||
             span_test(checks[i].limit, span, txn->now_ns,
                       scale_lifted(&checks[j], checks[j].cost))))
            return true;
    return false;
}

/* Copies the state of a check that may be charged to another span if its own is too small for that,
 * or far too large. If there is no larger one, a log joins events to keep within its own, which
 * denies early. */
static bool fit(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                const struct span_view *span, struct target *target)
{
    const struct weir_limit *limit = txn->decision->checks[i].limit;
    const struct weir_span_source source = {limit, span->at, txn->now_ns, span->words};
    uint32_t has = span->words;
    struct joint joint = joint_use(txn, i);
    bool fits = span_fits(limit, span, txn->now_ns, joint.cost, joint.count);

    if (joint.count == 0 || (fits && has < SHRINK_MIN) || !may_charge(txn, i, span))
        return true;

    uint32_t words = words_for(limit, weir_span_needs(&source, limit, joint.cost, joint.count));
    uint64_t old = target->span;

    if (fits && has < 2 * words)
        return true;
    if (take_span(owner, &source, limit, words, target)) {
        target->replaced = old;
        target->rewrite = true;
        return true;
    }
    if (fits && !owner->unsaved) { /* a smaller one can wait */
        owner->stuck = false;
        return true;
    }
    if (!owner->give_up || owner->stuck)
        return no_room_to_grow(owner, txn, i, words, old);
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        target->joins = true; /* log.h: its newest events become one */
    else
        target->full = true;
    return true;
}

/* Reads the state in target->bucket and ->slot, with room for what the check may charge. False: as
 * load_fresh. */
static bool load(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                 struct target *target)
{
    const struct weir_limit *limit = txn->decision->checks[i].limit;
    const struct table_bucket *bucket = target->bucket;

    if (bucket->param[target->slot] != limit->id)
        return load_converted(owner, txn, i, target);
    if (!region_has_span(limit)) {
        cell_unpack(limit, bucket->slot[target->slot].state, &target->cell);
        return true;
    }

    uint64_t offset = slot_span(bucket, target->slot);
    const struct span_view span = heap_state(owner->table, limit, offset);

    if (!span.at) { /* of a damaged file */
        target->rewrite = true;
        return load_fresh(owner, txn, i, target);
    }
    target->span = offset;
    if (limit->span_words == 0)
        target->cell = (struct weir_cell){span_word(&span, 0), span_word(&span, 1)};
    else if (txn->decision->op == WEIR_OP_DECIDE || txn->decision->op == WEIR_OP_DEBIT)
        return fit(owner, txn, i, &span, target);
    return true;
}

/* Looks for the key of a check in its two buckets, first in the likely one. */
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

        if (!take_lock(owner, &bucket->lock))
            return false;

        int slot = slot_find(bucket, ahead->at.tag, is_second);

        if (slot >= 0) {
            target->kind = TARGET_SLOT;
            target->bucket = bucket;
            target->slot = (uint8_t)slot;
            return load(owner, txn, i, target);
        }
    }
    target->kind = TARGET_NEW;
    return true;
}

/* Bits of the slots of `bucket` that checks of this decision are decided on. */
static uint32_t taken_slots(const struct weir_table_owner *owner, const struct transaction *txn,
                            const struct table_bucket *bucket)
{
    uint32_t mask = 0;

    for (uint32_t i = txn->first; txn->count > 1 && i < txn->first + txn->count; i++)
        if (owner->targets[i].bucket == bucket)
            mask |= 1u << owner->targets[i].slot;
    return mask;
}

/* Releases the span that this attempt has allocated for a target which does not need it. */
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
    if (!take_lock(owner, &param->lock))
        return false;
    if (!overflow_open(owner, param, txn->now_ns))
        return false;
    overflow_find(owner->table, param, check, network, target->cells);
    return true;
}

/* Has a check for whose key there is no room decided on overflow cells. */
static bool use_overflow(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                         struct target *target)
{
    drop_span(owner, target);
    if (!is_unshared(txn->decision, &txn->decision->checks[i]) &&
        txn->decision->op != WEIR_OP_REFUND)
        return find_cells(owner, txn, i, target);
    *target = (struct target){.kind = TARGET_NONE, .leader = (uint16_t)i};
    return true;
}

/* Whether a key without a slot still counts in overflow cells. Sets *target if so; false with
 * owner->lost or owner->stuck: they could not be locked. */
static bool still_overflows(struct weir_table_owner *owner, const struct transaction *txn,
                            uint32_t i, struct target *target)
{
    const struct weir_check *check = &txn->decision->checks[i];
    struct table_param *param = &owner->table->params[check->limit->id - 1];
    struct target before = *target;
    struct weir_limit room;

    if (!overflow_is_live(param, txn->now_ns) || is_unshared(txn->decision, check) ||
        !find_cells(owner, txn, i, target))
        return false;
    if (overflow_holds(overflow_limit(check->limit, &room), target->cells, txn->now_ns))
        return true;
    *target = before;
    return false;
}

/* Keys of the two buckets that are tried: see placement.h. Each try may miss the cache. */
#define TRIES 6
/* After FAILURES_MAX failures the table is full: only one of SKIPS new keys without room tries. */
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

/* Whether a slot's state has no span: if it had one, a move would have to change the span's owner.
 */
static bool has_no_span(const struct weir_table *table, uint16_t param)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, param, &room);

    return limit && !region_has_span(limit);
}

static bool try_slot(struct weir_table_owner *owner, const struct transaction *txn,
                     struct table_bucket *from, uint32_t i)
{
    struct weir_table *table = owner->table;
    uint64_t index = (uint64_t)(from - table->buckets);
    struct table_bucket *other =
        region_bucket(table, position_other(&table->map, index, slot_tag(from, i)));
    struct place place = {.taken = {0, 0}};

    if (!has_no_span(table, from->param[i]) || other == from)
        return false;

    bool held = owner_holds(owner, &other->lock);

    if (!held && !owner_try_stale(owner, &other->lock))
        return false;
    place.taken[0] = place.taken[1] = taken_slots(owner, txn, other);

    enum placement found =
        placement_free(table, (struct table_bucket *const[2]){other, other}, txn->now_ns, &place);
    bool moves = found == PLACE_EMPTY ||
                 (found == PLACE_RECLAIM && has_no_span(table, other->param[place.slot]));

    /* A sweep must find the state in one of the two buckets: see params_set_swept. */
    if (moves && params_is_swept(table, from->param[i]))
        moves = false;
    if (moves)
        move(owner, from, i, &place);
    if (!held)
        owner_unlock(&other->lock);
    return moves;
}

/* Empties a slot of two full buckets by moving its key to that key's other bucket, as a transaction
 * of its own. Returns whether that was possible, and sets place->bucket and ->slot. */
static bool relocate(struct weir_table_owner *owner, const struct transaction *txn,
                     struct table_bucket *const pair[2], struct place *place)
{
    /* A move is committed at once, so nothing else may be in the journal. */
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

    /* A refund makes no state; of units that are given it alone does. */
    if ((txn->decision->op == WEIR_OP_REFUND) != prepaid_is(limit)) {
        target->kind = TARGET_NONE;
        return true;
    }
    if (still_overflows(owner, txn, i, target))
        return true;
    if (owner->lost || owner->stuck)
        return false;
    for (uint32_t b = 0; b < 2; b++)
        place.taken[b] = taken_slots(owner, txn, pair[b]);

    enum placement found = placement_free(table, pair, txn->now_ns, &place);

    if (found == PLACE_NONE && relocate(owner, txn, pair, &place))
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
    return load_fresh(owner, txn, i, target);
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

/* Finds the checks that have one state. If checks of different limits do, after a hash collision,
 * the later one is decided on overflow cells. Overflow cells need no leader: the costs of their
 * checks are joined (transaction.c). */
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

/* Decides a check for which no span is left on overflow cells. */
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
        if (!weir_check_has_state(&checks[i]))
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
