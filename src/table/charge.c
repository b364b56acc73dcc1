/* SPDX-License-Identifier: Apache-2.0 */
/* see charge.h */
#include "table/charge.h"

#include "core/cell.h"
#include "core/debit.h"
#include "core/scale.h"
#include "core/span/span.h"
#include "table/account.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/placement.h"
#include "table/slot.h"
#include "table/span/heap.h"
#include "table/undo.h"

static void release_later(struct weir_table_owner *owner, uint64_t span)
{
    if (span != 0)
        owner->freed[owner->freed_count++] = span;
}

static bool save_state(struct weir_table_owner *owner, const struct table_bucket *bucket,
                       uint32_t i)
{
    const uint64_t *slot = (const uint64_t *)(const void *)&bucket->slot[i];

    return undo_save64(owner, &slot[0]) && undo_save64(owner, &slot[1]);
}

/* The words of the slot: the packed cell, or the offset of the span. */
static void slot_state(const struct weir_limit *limit, const struct target *target,
                       uint32_t state[3])
{
    if (target->span == 0) {
        cell_pack(limit, &target->cell, state);
    } else {
        state[0] = (uint32_t)target->span;
        state[1] = (uint32_t)(target->span >> 32);
        state[2] = 0;
    }
}

/* The span of the state that a slot holds now; 0: none. */
static uint64_t occupant_span(const struct weir_table *table, const struct table_bucket *bucket,
                              uint32_t i)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);

    return limit && region_has_span(limit) ? slot_span(bucket, i) : 0;
}

/* Writes the whole slot of a new key, or of one whose parameters change. */
static void put_slot(struct weir_table_owner *owner, const struct weir_limit *limit,
                     struct target *target, bool single)
{
    struct weir_table *table = owner->table;
    struct table_bucket *bucket = target->bucket;
    bool second = target->second;
    uint64_t tag = target->at.tag;
    uint16_t param = limit->id;
    uint32_t state[3];

    if (target->kind == TARGET_NEW)
        target->replaced = occupant_span(table, bucket, target->slot);
    if ((!single || target->kind != TARGET_NEW || target->span != 0 || target->replaced != 0) &&
        !undo_save_slot(owner, bucket, target->slot))
        return;
    if (target->kind == TARGET_NEW) {
        owner_count(owner, COUNT_INSERTS);
        if (target->placement == PLACE_RECLAIM)
            owner_count(owner, COUNT_RECLAIMED);
        else if (target->placement == PLACE_EVICT) {
            owner_count(owner, COUNT_EVICTIONS);
            account_count_eviction(table, bucket->param[target->slot]);
        }
    } else {
        second = slot_is_second(bucket, target->slot);
        tag = slot_tag(bucket, target->slot);
    }
    if (target->span != 0)
        *heap_owner_of(table, target->span) =
            (uint64_t)(bucket - table->buckets) << 3 | target->slot;
    slot_state(limit, target, state);
    slot_put(bucket, target->slot, tag, second, param, state);
    release_later(owner, target->replaced);
    target->kind = TARGET_SLOT; /* the slot has the key now; another check may share it */
    target->rewrite = false;
    target->span_new = false;
    target->replaced = 0;
}

static void write_words(struct weir_table_owner *owner, uint64_t *to, const struct weir_cell *cell)
{
    if (!undo_save64(owner, &to[0]) || !undo_save64(owner, &to[1]))
        return;
    to[0] = cell->a;
    to[1] = cell->b;
}

void charge_store_cell(struct weir_table_owner *owner, const struct weir_limit *limit,
                       struct target *target, bool single)
{
    struct weir_table *table = owner->table;
    struct table_bucket *bucket = target->bucket;

    uint64_t *span = target->span != 0 ? heap_span(table, target->span, 2) : NULL;

    if (span)
        write_words(owner, span, &target->cell);
    if (target->kind == TARGET_NEW || target->rewrite) {
        put_slot(owner, limit, target, single);
    } else if (target->span == 0) {
        uint32_t state[3];

        cell_pack(limit, &target->cell, state);
        if (single || save_state(owner, bucket, target->slot))
            slot_write_state(bucket, target->slot, state);
    }
}

/* The same three at a scale. */
static void charge_scaled(const struct weir_check *check, struct weir_cell *cell,
                          const struct weir_use *use, enum charge_kind kind)
{
    if (kind == CHARGE_COST)
        scale_cell_charge(check, cell, use->now_ns);
    else if (kind == CHARGE_DENIED)
        scale_cell_charge_denied(check, cell, use->now_ns);
    else
        scale_cell_refund(check, cell, use->now_ns, use->charged_at_ns);
}

static bool charge_cell(struct weir_table_owner *owner, const struct weir_check *check,
                        struct target *target, const struct weir_use *use, enum charge_kind kind,
                        bool single)
{
    const struct weir_limit *limit = check->limit;
    struct weir_cell before = target->cell;

    if (scale_is_set(check))
        charge_scaled(check, &target->cell, use, kind);
    else if (kind == CHARGE_COST)
        cell_charge(limit, &target->cell, use->now_ns, use->cost);
    else if (kind == CHARGE_DENIED)
        weir_cell_charge_denied(limit, &target->cell, use->now_ns, use->cost);
    else
        weir_cell_refund(limit, &target->cell, use->now_ns, use->charged_at_ns, use->cost);
    if (target->cell.a == before.a && target->cell.b == before.b)
        return false;
    charge_store_cell(owner, limit, target, single);
    return true;
}

static bool charge_span(struct weir_table_owner *owner, const struct weir_limit *limit,
                        struct target *target, const struct weir_use *use, enum charge_kind kind)
{
    struct weir_edits *edits = &owner->edits;
    const struct span_view span = heap_state(owner->table, limit, target->span);

    if (kind == CHARGE_REFUND)
        span_refund(limit, &span, use, edits);
    else
        span_charge(limit, &span, use, edits);
    if (edits->count == 0)
        return false;
    for (uint32_t i = 0; i < edits->count; i++)
        if (target->span_new || undo_save64(owner, &span.at[edits->word[i]]))
            span.at[edits->word[i]] = edits->value[i];
    if (target->kind == TARGET_NEW || target->rewrite)
        put_slot(owner, limit, target, false);
    return true;
}

/* The room for a debit in a span; of 0, which is none, as in a fresh one. */
static uint64_t span_room(const struct weir_table_owner *owner, const struct weir_limit *limit,
                          uint64_t offset, uint64_t now_ns, uint64_t debt)
{
    const struct span_view span = heap_state(owner->table, limit, offset);

    return weir_span_debit_room(limit, &span, now_ns, debt);
}

/* Lowers the cost of a debit so that it keeps to its floor of debt. */
static void keep_to_floor(struct weir_table_owner *owner, const struct target *target,
                          struct weir_check *check, uint64_t now_ns)
{
    const struct weir_limit *limit = check->limit;
    uint64_t debt = weir_check_debt(check), room;
    struct weir_limit replacement;
    struct weir_check counted;

    overflow_check(check, &replacement, &counted);
    if (target->kind == TARGET_OVERFLOW)
        room = overflow_debit_room(&counted, target->cells, now_ns, debt);
    else if (limit->span_words > 0)
        room = span_room(owner, limit, target->span, now_ns, debt);
    else
        room = weir_check_debit_room(check, &target->cell, now_ns, debt);
    if (check->cost > room)
        check->cost = room;
}

bool charge_check(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                  enum charge_kind kind, bool single)
{
    const struct weir_decision *decision = txn->decision;
    struct weir_check *check = &decision->checks[i];
    const struct weir_limit *limit = check->limit;
    struct target *target = &owner->targets[owner->targets[i].leader];

    if (decision->op == WEIR_OP_DEBIT && check->floor != 0 &&
        (target->kind != TARGET_NONE || prepaid_is(limit))) /* without a state it has nothing */
        keep_to_floor(owner, target, check, txn->now_ns);

    struct weir_use use = {.now_ns = txn->now_ns,
                           .cost = check->cost,
                           .charged_at_ns = decision->charged_at_ns,
                           .lease = decision->lease};

    if (target->kind == TARGET_NONE || check->cost == 0 ||
        (target->full && target->span == 0)) /* a state that could not be carried over */
        return false;
    if (target->kind == TARGET_OVERFLOW) {
        struct weir_limit replacement;
        struct weir_check counted;
        const struct overflow_charge charge = {&counted, txn->now_ns, decision->op == WEIR_OP_DEBIT,
                                               check->floor != 0 ? weir_check_debt(check)
                                                                 : WEIR_NEVER};

        overflow_check(check, &replacement, &counted);
        return overflow_charge(owner, target->param, target->cells, &charge);
    }
    if (limit->span_words > 0)
        return charge_span(owner, limit, target, &use, kind);
    return charge_cell(owner, check, target, &use, kind, single);
}

void charge_drop_unused(struct weir_table_owner *owner, const struct transaction *txn)
{
    for (uint32_t i = txn->first; i < txn->first + txn->count; i++)
        if (owner->targets[i].span_new && owner->targets[i].leader == i) {
            release_later(owner, owner->targets[i].span);
            owner->targets[i].span_new = false;
        }
}
