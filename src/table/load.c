/* SPDX-License-Identifier: Apache-2.0 */
/* see target.h: reading states, and spans as large as what is in them
 *
 * A state in a span that is too small for what a check may charge, or more than twice too large,
 * is written anew into another span: taken from the heap, filled while nobody sees it, put into
 * the slot when the check is charged, and the old one given back, all in the transaction of the
 * decision. If the check is not charged, the transaction takes it back.
 *
 * The heap has spans of certain sizes only, most of them a third or a half larger than the one
 * before, and a state gets an eighth more than it needs. So one that grows by a word at a time is
 * copied each time that it has grown by a quarter or so.
 */
#include "core/cell.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/span_heap.h"
#include "table/target.h"

/* Spans below this are not worth writing anew to make them smaller. */
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

/* Words for a state that needs so many: with an eighth more, so that a log that loses some events
 * and gains others is not written anew each time. */
static uint32_t words_for(const struct weir_limit *limit, uint32_t needs)
{
    uint32_t words = needs + needs / 8;

    if (limit->spec.algorithm == WEIR_SLIDING_WINDOW)
        return limit->span_words;
    return heap_round(words < limit->span_words ? words : limit->span_words);
}

/* Takes a span for a state, and writes what `source` (NULL: nothing) has used into it. False: there
 * is none, or (owner->stuck) none can be had. */
static bool take_span(struct weir_table_owner *owner, const struct weir_span_source *source,
                      const struct weir_limit *limit, uint32_t words, struct target *target)
{
    if (!target_lock_heap(owner))
        return false;

    uint64_t offset = heap_take(owner, words);

    if (offset == 0)
        return false;
    target->span = offset;
    target->span_new = true;
    if (limit->span_words > 0)
        weir_span_resize(source, limit, heap_span(owner->table, offset, words), words);
    return true;
}

static bool no_room(struct weir_table_owner *owner, const struct weir_limit *limit, uint32_t words,
                    uint64_t span)
{
    owner->no_room = !owner->stuck;
    owner->need = words;
    owner->need_param = limit->id;
    owner->need_span = span;
    return false;
}

bool target_load_fresh(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
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
    return take_span(owner, NULL, limit, words, target) || no_room(owner, limit, words, 0);
}

/* The state in a slot was made under other parameters: carries over what was used. Where there is
 * no span for it, the key is denied until there is one: elsewhere it would start fresh. */
static bool load_converted(struct weir_table_owner *owner, const struct transaction *txn,
                           uint32_t i, struct target *target)
{
    struct weir_table *table = owner->table;
    const struct weir_limit *limit = txn->decision->checks[i].limit;
    const struct table_bucket *bucket = target->bucket;
    const struct weir_limit *from = region_limit(table, bucket->param[target->slot]);
    bool has_span = from != NULL && region_has_span(from);
    const uint64_t *span = has_span ? slot_state_span(table, bucket, target->slot, from) : NULL;
    struct weir_cell cell = {0, 0};

    target->rewrite = true;
    target->replaced = span != NULL ? slot_span(bucket, target->slot) : 0;
    target->cell = cell;
    if (from == NULL || (has_span && span == NULL) || !weir_limit_converts(from, limit)) {
        from = NULL;
    } else if (limit->span_words == 0) {
        if (span != NULL)
            cell = (struct weir_cell){span[0], span[1]};
        else
            cell_unpack(from, bucket->slot[target->slot].state, &cell);
        weir_cell_convert(from, limit, &cell, txn->now_ns);
        target->cell = cell;
    }
    if (!region_has_span(limit))
        return true;

    const struct weir_span_source source = {from, span, txn->now_ns};
    struct joint joint = joint_use(txn, i);
    uint32_t words = 2;

    if (limit->span_words > 0)
        words = words_for(
            limit, weir_span_needs(from != NULL ? &source : NULL, limit, joint.cost, joint.count));
    if (take_span(owner, from != NULL ? &source : NULL, limit, words, target))
        return true;
    if (!owner->give_up || owner->stuck)
        return no_room(owner, limit, words, target->replaced);
    target->full = true;
    return true;
}

/* Whether a check may be charged to its span, as far as that says. */
static bool may_charge(const struct transaction *txn, const struct weir_check *check,
                       const uint64_t *span)
{
    return txn->decision->op == WEIR_OP_DEBIT || (check->flags & WEIR_CHECK_CHARGE_ON_DENY) ||
           weir_span_test(check->limit, span, txn->now_ns, check->cost);
}

/* Writes the state of a check that may be charged anew where its span is too small for that, or far
 * too large. Where there is no larger one, a log makes do with what it has, which denies early. */
static bool fit(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                const uint64_t *span, struct target *target)
{
    const struct weir_check *check = &txn->decision->checks[i];
    const struct weir_limit *limit = check->limit;
    const struct weir_span_source source = {limit, span, txn->now_ns};
    uint32_t has = heap_words(owner->table, target->span);
    struct joint joint = joint_use(txn, i);
    bool fits = weir_span_fits(limit, span, txn->now_ns, joint.cost, joint.count);

    if (joint.count == 0 || (fits && has < SHRINK_MIN) || !may_charge(txn, check, span))
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
        return no_room(owner, limit, words, old);
    if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        target->joins = true; /* log.h: its newest events become one */
    else
        target->full = true;
    return true;
}

bool target_load(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
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

    const uint64_t *span = slot_state_span(owner->table, bucket, target->slot, limit);

    if (span == NULL) { /* of a damaged file */
        target->rewrite = true;
        return target_load_fresh(owner, txn, i, target);
    }
    target->span = slot_span(bucket, target->slot);
    if (limit->span_words == 0)
        target->cell = (struct weir_cell){span[0], span[1]};
    else if (txn->decision->op == WEIR_OP_DECIDE || txn->decision->op == WEIR_OP_DEBIT)
        return fit(owner, txn, i, span, target);
    return true;
}
