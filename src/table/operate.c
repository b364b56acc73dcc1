/* SPDX-License-Identifier: Apache-2.0 */
/* see operate.h */
#include "table/operate.h"

#include "core/cell.h"
#include "core/span/log.h"
#include "core/span/span.h"
#include "table/charge.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/transaction.h"
#include "table/undo.h"

/* Writes edits in place, as a transaction of its own. */
static void apply_edits(struct weir_table_owner *owner, const struct span_view *span)
{
    const struct weir_edits *edits = &owner->edits;

    for (uint32_t i = 0; i < edits->count; i++) {
        undo_save64(owner, &span->at[edits->word[i]]);
        span->at[edits->word[i]] = edits->value[i];
    }
    undo_finish(owner);
}

/* The limit of a state that has leases, in *room as of region_limit; NULL for any other. */
static const struct weir_limit *lease_limit(const struct weir_table *table, uint16_t param,
                                            struct weir_limit *room)
{
    const struct weir_limit *limit = region_limit(table, param, room);

    return limit && limit->spec.algorithm == WEIR_CONCURRENCY ? limit : NULL;
}

/* Ends a lease in a span whose lock is held. */
static bool release_in(struct weir_table_owner *owner, const struct weir_limit *limit,
                       const struct span_view *span, uint64_t lease_id)
{
    if (!span->at || span_release(limit, span, lease_id, &owner->edits) == 0)
        return false;
    apply_edits(owner, span);
    return true;
}

/* Where a key may be: its two buckets, both locked, so that it cannot move between them. */
struct buckets {
    struct table_bucket *pair[2];
    uint64_t tag;
};

/* False: one of them could not be locked. */
static bool lock_buckets(struct weir_table_owner *owner, const uint64_t hash[2],
                         struct buckets *buckets)
{
    struct weir_table *table = owner->table;
    struct position at = position_of(&table->map, hash);
    struct table_bucket *first = region_bucket(table, at.bucket);
    struct table_bucket *second =
        region_bucket(table, position_other(&table->map, at.bucket, at.tag));

    *buckets = (struct buckets){{first, second}, at.tag};
    return owner_lock_pair(owner, &first->lock, &second->lock);
}

static void unlock_buckets(const struct buckets *buckets)
{
    owner_unlock(&buckets->pair[0]->lock);
    if (buckets->pair[1] != buckets->pair[0])
        owner_unlock(&buckets->pair[1]->lock);
}

/* The slot of the key in its bucket `b`, or -1. */
static int find_in(const struct buckets *buckets, uint32_t b)
{
    return slot_find(buckets->pair[b], buckets->tag, b == 1);
}

/* Ends a lease of the key in one of its buckets. A lease that was granted on overflow cells is not
 * recorded: it ends with its life. */
static bool release_in_bucket(struct weir_table_owner *owner, const struct buckets *buckets,
                              uint32_t b, uint64_t lease_id)
{
    struct weir_table *table = owner->table;
    const struct table_bucket *bucket = buckets->pair[b];
    int slot = find_in(buckets, b);
    struct weir_limit room;
    const struct weir_limit *limit =
        slot < 0 ? NULL : lease_limit(table, bucket->param[slot], &room);

    if (!limit)
        return false;

    const struct span_view span = slot_state_span(table, bucket, (uint32_t)slot, limit);

    return release_in(owner, limit, &span, lease_id);
}

int weir_table_release(struct weir_table_owner *owner, const uint64_t hash[2], uint64_t lease_id)
{
    struct buckets buckets;

    if (!lock_buckets(owner, hash, &buckets))
        return WEIR_ERR_BUSY;

    bool found = release_in_bucket(owner, &buckets, 0, lease_id) ||
                 release_in_bucket(owner, &buckets, 1, lease_id);

    unlock_buckets(&buckets);
    return found ? 0 : WEIR_ERR_NOT_FOUND;
}

int weir_table_reset(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2])
{
    struct buckets buckets;
    bool found = false, used = false, cleared = true;

    if (!lock_buckets(owner, hash, &buckets))
        return WEIR_ERR_BUSY;
    for (uint32_t b = 0; b < 2 && !found; b++) {
        int slot = find_in(&buckets, b);

        found = slot >= 0;
        if (!found)
            continue;
        used = slot_fresh_at(owner->table, buckets.pair[b], (uint32_t)slot) > now_ns;
        cleared = slot_clear(owner, buckets.pair[b], (uint32_t)slot);
    }
    unlock_buckets(&buckets);
    if (!cleared)
        return WEIR_ERR_BUSY;
    return used ? 0 : WEIR_ERR_NOT_FOUND;
}

/* Ends all leases of an owner in a span whose lock is held. */
static uint64_t end_in(struct weir_table_owner *owner, const struct weir_limit *limit,
                       const struct span_view *span, uint64_t lease_owner)
{
    uint64_t total = 0;

    for (uint32_t ended = 1; span->at && ended > 0 && total < WEIR_LEASES_MAX; total += ended) {
        ended = span_end_owner(limit, span, lease_owner, &owner->edits);
        if (ended > 0)
            apply_edits(owner, span);
    }
    return total;
}

uint64_t weir_table_lease_owner(const struct weir_table_owner *owner)
{
    return owner->me;
}

void weir_table_lease_owners(const struct weir_table *table, struct weir_lease_owners *alive)
{
    _Static_assert(WEIR_LEASE_OWNERS == WEIR_TABLE_OWNERS_MAX, "a slot's number is its place");

    for (uint32_t i = 0; i < WEIR_LEASE_OWNERS; i++)
        alive->id[i] = 0;
    for (uint32_t i = 0; i < table->fixed.owners_max; i++) {
        uint32_t generation = __atomic_load_n(&table->owners[i].generation, __ATOMIC_ACQUIRE);

        if (generation != 0 && owner_is_alive(table, i))
            alive->id[i] = (uint64_t)generation << 8 | i;
    }
}

void weir_table_owner_generations(const struct weir_table *table,
                                  uint32_t generations[WEIR_LEASE_OWNERS])
{
    for (uint32_t i = 0; i < WEIR_LEASE_OWNERS; i++)
        generations[i] = i < table->fixed.owners_max
                             ? __atomic_load_n(&table->owners[i].generation, __ATOMIC_ACQUIRE)
                             : 0;
}

/* Ends the leases of dead owners in a span whose lock is held: no lease is added meanwhile, so
 * every owner that it names had attached before `alive` is filled anew. */
static uint64_t end_dead_in(struct weir_table_owner *owner, const struct weir_limit *limit,
                            const struct span_view *span, struct weir_lease_owners *alive)
{
    uint64_t total = 0;

    if (!span->at || span_end_dead(limit, span, alive, &owner->edits) == 0)
        return 0;
    weir_table_lease_owners(owner->table, alive);
    for (uint32_t ended = 1; ended > 0 && total < WEIR_LEASES_MAX; total += ended) {
        ended = span_end_dead(limit, span, alive, &owner->edits);
        if (ended > 0)
            apply_edits(owner, span);
    }
    return total;
}

/* Whose leases end: one owner's, or those of all that are not alive. */
struct ending {
    uint64_t owner;
    struct weir_lease_owners *alive; /* NULL: the one owner's */
};

/* Whether parameters seem to be of leases: as the file says at the moment. */
static bool seems_lease(const struct weir_table *table, uint16_t param)
{
    return region_has_params(table, param) &&
           table->params[param - 1].limit.spec.algorithm == WEIR_CONCURRENCY;
}

static bool has_leases(const struct weir_table *table, const struct table_bucket *bucket)
{
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
        if (seems_lease(table, __atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED)))
            return true;
    return false;
}

static uint64_t end_in_bucket(struct weir_table_owner *owner, struct table_bucket *bucket,
                              const struct ending *ending)
{
    struct weir_table *table = owner->table;
    uint64_t total = 0;

    if (!has_leases(table, bucket) || !owner_lock(owner, &bucket->lock))
        return 0;
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
        struct weir_limit room;
        const struct weir_limit *limit = lease_limit(table, bucket->param[i], &room);

        if (!limit)
            continue;

        struct span_view span = slot_state_span(table, bucket, i, limit);

        total += ending->alive ? end_dead_in(owner, limit, &span, ending->alive)
                               : end_in(owner, limit, &span, ending->owner);
    }
    owner_unlock(&bucket->lock);
    return total;
}

static bool has_lease_limit(const struct weir_table *table)
{
    for (uint32_t i = 1; i <= table->fixed.params_max; i++)
        if (seems_lease(table, (uint16_t)i))
            return true;
    return false;
}

uint64_t weir_table_end_owner(struct weir_table_owner *owner, uint64_t lease_owner)
{
    struct weir_table *table = owner->table;
    const struct ending ending = {.owner = lease_owner};
    uint64_t count = has_lease_limit(table) ? table->fixed.buckets : 0, total = 0;

    for (uint64_t b = 0; b < count; b++)
        total += end_in_bucket(owner, &table->buckets[b], &ending);
    return total;
}

uint64_t weir_table_end_dead(struct weir_table_owner *owner, uint64_t *from, uint64_t buckets)
{
    struct weir_table *table = owner->table;
    struct weir_lease_owners alive;
    const struct ending ending = {.alive = &alive};
    uint64_t count = has_lease_limit(table) ? table->fixed.buckets : 0, total = 0;

    weir_table_lease_owners(table, &alive);
    for (; *from < count && buckets > 0; buckets--)
        total += end_in_bucket(owner, &table->buckets[(*from)++], &ending);
    if (*from >= count)
        *from = 0;
    return total;
}

static bool renew_in_bucket(struct weir_table_owner *owner, const struct buckets *buckets,
                            uint32_t b, const struct weir_use *use)
{
    struct weir_table *table = owner->table;
    const struct table_bucket *bucket = buckets->pair[b];
    int slot = find_in(buckets, b);
    struct weir_limit room;
    const struct weir_limit *limit =
        slot < 0 ? NULL : lease_limit(table, bucket->param[slot], &room);
    struct span_view span =
        limit ? slot_state_span(table, bucket, (uint32_t)slot, limit) : (struct span_view){NULL, 0};

    if (!span.at || span_renew(limit, &span, use, &owner->edits) == 0)
        return false;
    apply_edits(owner, &span);
    return true;
}

int weir_table_renew(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2],
                     uint64_t lease_id)
{
    const struct weir_use use = {.now_ns = now_ns, .lease = {.id = lease_id}};
    struct buckets buckets;

    if (!lock_buckets(owner, hash, &buckets))
        return WEIR_ERR_BUSY;

    bool found =
        renew_in_bucket(owner, &buckets, 0, &use) || renew_in_bucket(owner, &buckets, 1, &use);

    unlock_buckets(&buckets);
    return found ? 0 : WEIR_ERR_NOT_FOUND;
}

/* What is reported of a slot's state, besides when it is fresh: see enum weir_look. */
static void look_kind(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i,
                      uint64_t now_ns, uint64_t cost, struct weir_report *report)
{
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);
    struct weir_cell cell;

    if (limit && limit->spec.algorithm == WEIR_SLIDING_LOG) {
        const struct span_view span = slot_state_span(table, bucket, i, limit);

        if (span.at)
            log_look(limit, &span, now_ns, cost, report);
        return;
    }
    if (!limit || !counter_is(limit))
        return;
    report->limit = WEIR_LOOK_COUNTER;
    if (!slot_cell(table, bucket, i, &cell))
        return;
    report->remaining = cell.b;
    if (counter_is_endless(&cell))
        report->retry_after_ns = WEIR_NEVER;
}

/* As weir_table_look; fills `report` as WEIR_OP_LOOK says. */
static int look_at(struct weir_table_owner *owner, uint64_t now_ns, const uint64_t hash[2],
                   uint64_t cost, uint64_t *fresh_at_ns, struct weir_report *report)
{
    struct buckets buckets;
    int found = -1;

    if (!lock_buckets(owner, hash, &buckets))
        return WEIR_ERR_BUSY;
    for (uint32_t b = 0; b < 2 && found < 0; b++) {
        found = find_in(&buckets, b);
        if (found < 0)
            continue;
        *fresh_at_ns = slot_fresh_at(owner->table, buckets.pair[b], (uint32_t)found);
        if (*fresh_at_ns > now_ns) /* else as if there were none */
            look_kind(owner->table, buckets.pair[b], (uint32_t)found, now_ns, cost, report);
    }
    unlock_buckets(&buckets);
    return found >= 0 ? 0 : WEIR_ERR_NOT_FOUND;
}

int weir_table_look(struct weir_table_owner *owner, const uint64_t hash[2], uint64_t *fresh_at_ns)
{
    struct weir_report report = {0, 0, 0, 0};

    return look_at(owner, 0, hash, 0, fresh_at_ns, &report);
}

/* Reports the time until the state is fresh. Errors: as weir_table_look; WEIR_ERR_NOT_FOUND also if
 * it is already. */
static int look(struct weir_table_owner *owner, uint64_t now_ns, const struct weir_check *check,
                struct weir_report *report)
{
    uint64_t fresh_at_ns;
    int err = look_at(owner, now_ns, check->hash, check->cost, &fresh_at_ns, report);

    if (err == 0 && fresh_at_ns <= now_ns)
        err = WEIR_ERR_NOT_FOUND;
    if (err == 0)
        report->reset_after_ns = fresh_at_ns - now_ns;
    return err;
}

/* --- Edits ------------------------------------------------------------------------------------ */

/* When a live state that says nothing under the limit of its check will be fresh; 0: the key has
 * none. */
static uint64_t other_until(const struct weir_table *table, const struct target *target,
                            const struct weir_limit *wanted, uint64_t now_ns)
{
    if (target->kind != TARGET_SLOT || !target->rewrite)
        return 0;

    struct weir_limit room;
    const struct weir_limit *limit =
        region_limit(table, target->bucket->param[target->slot], &room);
    uint64_t fresh_at_ns = slot_fresh_at(table, target->bucket, target->slot);

    return limit && !weir_limit_converts(limit, wanted) && fresh_at_ns > now_ns ? fresh_at_ns : 0;
}

/* Whether a key that has no room, and so no state, is read as fresh: not one for which a span was
 * wanted, as it may have a state without one. */
static bool reads_absent(const struct target *target, const struct weir_limit *limit)
{
    return target->kind == TARGET_NONE && limit->packs;
}

/* Reads the cells of all checks. False: there is no room for one of them. */
static bool read_all(const struct weir_table_owner *owner, const struct transaction *txn,
                     struct weir_edit_state *states)
{
    for (uint32_t i = 0; i < txn->count; i++) {
        const struct target *target = &owner->targets[i];
        const struct weir_limit *limit = txn->decision->checks[i].limit;

        if (reads_absent(target, limit)) {
            states[i] = (struct weir_edit_state){.cell = {0, 0}};
            continue;
        }
        if (target->kind == TARGET_NONE || target->full)
            return false;
        states[i] = (struct weir_edit_state){
            .cell = target->cell,
            .other_until_ns = other_until(owner->table, target, limit, txn->now_ns),
        };
        if (cell_fresh_at(limit, &target->cell) <= txn->now_ns)
            states[i].cell = (struct weir_cell){0, 0};
    }
    return true;
}

/* Whether an edit is to be written. A fresh state, and one that is all zero, are alike. */
static bool is_changed(const struct transaction *txn, const struct target *target, uint32_t i,
                       const struct weir_edit_state *state)
{
    if (state->clear)
        return true;
    if (state->cell.a == 0)
        return cell_fresh_at(txn->decision->checks[i].limit, &target->cell) > txn->now_ns;
    return state->cell.a != target->cell.a || state->cell.b != target->cell.b;
}

/* Whether a key that has no room was given a state. */
static bool lacks_room(const struct weir_table_owner *owner, const struct transaction *txn,
                       const struct weir_edit_state *states)
{
    for (uint32_t i = 0; i < txn->count; i++)
        if (owner->targets[i].kind == TARGET_NONE && states[i].cell.a != 0)
            return true;
    return false;
}

/* Gives the wide limit to the checks whose counters need it. Returns whether there were any. */
static bool widen(const struct transaction *txn, const struct weir_edit_state *states)
{
    bool any = false;

    for (uint32_t i = 0; i < txn->count; i++) {
        struct weir_check *check = &txn->decision->checks[i];

        if (!check->limit->packs || !counter_is(check->limit) || counter_packs(&states[i].cell))
            continue;
        check->limit = txn->decision->edit->wide;
        any = true;
    }
    return any;
}

/* Writes what changed, and ends the transaction. False: owner->stuck, and nothing was written. */
static bool write_all(struct weir_table_owner *owner, const struct transaction *txn,
                      const struct weir_edit_state *states)
{
    bool changed[WEIR_CHECKS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < txn->count; i++) {
        changed[i] = is_changed(txn, &owner->targets[i], i, &states[i]);
        count += changed[i];
    }
    if (count == 0) {
        target_cancel(owner);
        return true;
    }
    for (uint32_t i = 0; i < txn->count; i++) {
        if (!changed[i])
            continue;
        owner->targets[i].cell = states[i].cell;
        charge_store_cell(owner, txn->decision->checks[i].limit, &owner->targets[i], count == 1);
    }
    if (owner->unsaved) {
        target_cancel(owner);
        return false;
    }
    charge_drop_unused(owner, txn);
    return target_finish(owner);
}

/* Returns whether the table has room for the edit; with owner->stuck it has failed. */
static bool run(struct weir_table_owner *owner, struct transaction *txn)
{
    struct weir_edit *edit = txn->decision->edit;
    struct weir_edit_state states[WEIR_CHECKS_MAX];

    for (;;) {
        if (!transaction_resolve(owner, txn))
            return false;
        if (!read_all(owner, txn, states)) {
            target_cancel(owner);
            return false;
        }
        edit->run(edit, states, txn->count, txn->now_ns);
        if (lacks_room(owner, txn, states)) {
            target_cancel(owner);
            return false;
        }
        if (!widen(txn, states))
            return write_all(owner, txn, states);
        target_cancel(owner);
    }
}

static void edit_decide(struct weir_table_owner *owner, struct weir_decision *decision,
                        const struct lookup *ahead)
{
    struct transaction txn = {.decision = decision,
                              .ahead = ahead,
                              .now_ns = decision->now_ns,
                              .first = 0,
                              .count = decision->count};

    owner->stuck = false;

    bool done = run(owner, &txn);

    if (owner->stuck) {
        owner_fail(decision);
        return;
    }
    decision->verdict = done ? WEIR_ALLOWED : WEIR_DENIED;
    decision->delay_ns = 0;
    for (uint32_t i = 0; i < decision->count; i++)
        decision->outcomes[i] = (struct weir_outcome){
            .report = {0, 0, 0, 0}, .reported = true, .verdict = decision->verdict};
}

/* --- Any operation ---------------------------------------------------------------------------- */

void operate(struct weir_table_owner *owner, struct weir_decision *decision,
             const struct lookup *ahead)
{
    bool any = false, stuck = false;

    if (decision->op == WEIR_OP_EDIT) {
        edit_decide(owner, decision, ahead);
        return;
    }

    for (uint32_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_outcome *outcome = &decision->outcomes[i];
        int err;

        *outcome = (struct weir_outcome){.report = {0, 0, 0, 0}, .reported = true};
        if (!weir_check_has_state(check))
            err = WEIR_ERR_NOT_FOUND;
        else if (decision->op == WEIR_OP_RELEASE)
            err = weir_table_release(owner, check->hash, decision->lease.id);
        else if (decision->op == WEIR_OP_RESET)
            err = weir_table_reset(owner, decision->now_ns, check->hash);
        else
            err = look(owner, decision->now_ns, check, &outcome->report);
        outcome->verdict = err == 0 ? WEIR_ALLOWED : WEIR_DENIED;
        any = any || err == 0;
        stuck = stuck || err == WEIR_ERR_BUSY;
    }
    decision->delay_ns = 0;
    if (stuck) {
        owner_fail(decision);
        return;
    }
    decision->verdict = any ? WEIR_ALLOWED : WEIR_DENIED;
}
