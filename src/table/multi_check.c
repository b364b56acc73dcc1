/* SPDX-License-Identifier: Apache-2.0 */
/* see multi_check.h */
#include "table/multi_check.h"

#include "core/cell.h"
#include "core/scale.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/undo.h"

/* One check while it is decided: where its state is, what it is and what it becomes. */
struct part {
    struct table_bucket *bucket;
    uint32_t slot;
    bool admits;
    uint64_t old[2], new[2];
};

/* Whether this is a decision for the short path. */
static inline bool is_short(const struct weir_decision *decision, uint32_t count)
{
    if (decision->op != WEIR_OP_DECIDE || decision->policy != WEIR_POLICY_ALL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct weir_check *check = &decision->checks[i];

        if ((check->flags & ~WEIR_CHECK_NETWORK) != 0 || !check->limit->packs)
            return false;
    }
    return true;
}

/* Puts two locks in address order, without a branch, which the processor could not predict. */
static inline void order(uint32_t **a, uint32_t **b)
{
    uint32_t *low = *a < *b ? *a : *b, *high = *a < *b ? *b : *a;

    *a = low;
    *b = high;
}

/* Sets `locks` to the locks of all checks, in address order; some may be the same. */
static inline void sort_locks(const struct lookup *ahead, uint32_t count,
                              uint32_t *locks[MULTI_CHECK_MAX])
{
    for (uint32_t i = 0; i < count; i++)
        locks[i] = &ahead[i].likely->lock;
    for (uint32_t end = count; end > 1; end--)
        for (uint32_t i = 0; i + 1 < end; i++)
            order(&locks[i], &locks[i + 1]);
}

static inline void unlock_all(uint32_t *const locks[MULTI_CHECK_MAX], uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || locks[i] != locks[i - 1])
            owner_unlock(locks[i]);
}

/* Takes all locks, or none. */
static inline bool lock_all(struct weir_table_owner *owner, uint32_t *const locks[MULTI_CHECK_MAX],
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_expect((i == 0 || locks[i] != locks[i - 1]) && !owner_lock(owner, locks[i]),
                             0)) {
            unlock_all(locks, i);
            return false;
        }
    return true;
}

/* Points a part at a slot; false: an earlier part has it already. */
static inline bool set_slot(struct part *parts, uint32_t i, struct table_bucket *bucket, int slot)
{
    parts[i].bucket = bucket;
    parts[i].slot = (uint32_t)slot;
    for (uint32_t j = 0; j < i; j++)
        if (parts[j].bucket == bucket && parts[j].slot == (uint32_t)slot)
            return false;
    return slot >= 0;
}

/* Finds the slots where the keys seem to be, without the locks. */
static inline bool guess_all(const struct lookup *ahead, struct part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!set_slot(parts, i, ahead[i].likely, slot_look_again(&ahead[i])))
            return false;
    return true;
}

/* Finds the slots of all keys, each a different one. False: one has none. */
static inline bool find_all(const struct weir_decision *decision, const struct lookup *ahead,
                            struct part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!set_slot(parts, i, ahead[i].likely,
                      slot_find_own(ahead[i].likely, ahead[i].slot, ahead[i].at.tag, ahead[i].marks,
                                    decision->checks[i].limit->id)))
            return false;
    return true;
}

/* The same at the check's scale. */
static __attribute__((noinline)) uint64_t take_scaled(struct part *part,
                                                      const struct weir_check *check,
                                                      uint64_t now_ns, struct weir_cell *cell)
{
    const struct weir_limit *limit = check->limit;
    uint32_t state[3] = {(uint32_t)part->old[0], (uint32_t)(part->old[0] >> 32),
                         (uint32_t)part->old[1]};
    struct scale_load load = {0};
    uint64_t delay_ns;

    cell_unpack(limit, state, cell);
    scale_load_add(&load, check);
    part->admits = scale_cell_test(check, cell, now_ns, &load, &delay_ns);
    if (part->admits && check->cost > 0) {
        scale_cell_charge(check, cell, now_ns);
        cell_pack(limit, cell, state);
        part->new[0] = state[0] | (uint64_t)state[1] << 32;
        part->new[1] = part->old[1] >> 32 << 32 | state[2];
    }
    return delay_ns;
}

/* Tests one state, and computes what it becomes if all admit. Returns the delay. */
static inline uint64_t take(struct part *part, const struct weir_check *check, uint64_t now_ns,
                            struct weir_cell *cell)
{
    const struct weir_limit *limit = check->limit;
    uint64_t delay_ns;

    part->new[0] = part->old[0];
    part->new[1] = part->old[1];
    if (__builtin_expect(scale_is_set(check), 0))
        return take_scaled(part, check, now_ns, cell);
    if (limit->plain && check->cost == 1 &&
        bucket_words_plain(part->old[0], (uint32_t)part->old[1])) {
        part->admits = bucket_take_plain(limit, &part->new[0], now_ns);
        *cell = (struct weir_cell){part->new[0], 0};
        return 0;
    }
    part->admits = cell_take_words(limit, part->new, now_ns, check->cost, cell, &delay_ns);
    return delay_ns;
}

/* Tests all states as they are in their slots, and fills the outcomes as if the request was
 * allowed. Returns whether it is; sets decision->delay_ns. */
static inline bool take_all(struct weir_decision *decision, uint64_t now_ns, struct part *parts,
                            uint32_t count)
{
    uint64_t longest_ns = 0;
    bool allowed = true;

    for (uint32_t i = 0; i < count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_outcome *outcome = &decision->outcomes[i];
        const union table_slot *at = &parts[i].bucket->slot[parts[i].slot];

        parts[i].old[0] = at->words[0];
        parts[i].old[1] = at->words[1];
        outcome->delay_ns = take(&parts[i], check, now_ns, &outcome->cell);
        outcome->verdict = parts[i].admits ? WEIR_ALLOWED : WEIR_DENIED;
        outcome->reported = false;
        outcome->charged = check->cost > 0;
        outcome->overflow = false;
        allowed = allowed && parts[i].admits;
        longest_ns = outcome->delay_ns > longest_ns ? outcome->delay_ns : longest_ns;
    }
    decision->delay_ns = allowed ? longest_ns : 0;
    return allowed;
}

/* Whether all slots, which are now locked, are the same as when the results were computed. */
static inline bool all_same(const struct weir_decision *decision, const struct lookup *ahead,
                            const struct part *parts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!slot_is_same(parts[i].bucket, parts[i].slot, parts[i].old, &ahead[i],
                          decision->checks[i].limit->id))
            return false;
    return true;
}

/* Writes all states, so that they can be undone after a death at any instruction. */
static inline void write_all(struct weir_table_owner *owner, const struct part *parts,
                             uint32_t count)
{
    struct table_owner_slot *slot = owner->slot;
    uint32_t entries = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t where = region_offset(owner->table, &parts[i].bucket->slot[parts[i].slot]);

        slot->undo[entries++] = (struct table_undo){where, parts[i].old[0]};
        if (parts[i].new[1] != parts[i].old[1])
            slot->undo[entries++] = (struct table_undo){where + 8, parts[i].old[1]};
    }
    UNDO_BARRIER();
    __atomic_store_n(&slot->undo_count, entries, __ATOMIC_RELAXED);
    UNDO_BARRIER();
    for (uint32_t i = 0; i < count; i++) {
        union table_slot *at = &parts[i].bucket->slot[parts[i].slot];

        at->words[0] = parts[i].new[0];
        if (parts[i].new[1] != parts[i].old[1])
            at->words[1] = parts[i].new[1];
    }
    UNDO_BARRIER();
    __atomic_store_n(&slot->undo_count, 0, __ATOMIC_RELAXED);
    UNDO_BARRIER();
}

/* Nothing was charged: the states that admit are what they were. */
static __attribute__((noinline)) void deny(struct weir_decision *decision, const struct part *parts)
{
    for (uint32_t i = 0; i < decision->count; i++) {
        struct weir_outcome *outcome = &decision->outcomes[i];
        const uint32_t state[3] = {(uint32_t)parts[i].old[0], (uint32_t)(parts[i].old[0] >> 32),
                                   (uint32_t)parts[i].old[1]};

        outcome->charged = false;
        if (parts[i].admits)
            cell_unpack(decision->checks[i].limit, state, &outcome->cell);
    }
}

static __attribute__((noinline, cold)) void fail(struct weir_decision *decision, uint64_t now_ns)
{
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    owner_fail(decision);
}

/* Inlined with a count that the compiler knows, so that it unrolls most loops. Results are computed
 * from states that were read without the locks; under the locks it only checks that the states are
 * the same. */
static inline __attribute__((always_inline)) bool decide(struct weir_table_owner *owner,
                                                         uint64_t now_ns,
                                                         struct weir_decision *decision,
                                                         const struct lookup *ahead, uint32_t count)
{
    uint32_t *locks[MULTI_CHECK_MAX];
    struct part parts[MULTI_CHECK_MAX];

    if (!is_short(decision, count))
        return false;

    bool seen = SLOT_LOOKS != 0 && guess_all(ahead, parts, count);
    bool allowed = seen && take_all(decision, now_ns, parts, count);

    sort_locks(ahead, count, locks);
    if (__builtin_expect(!lock_all(owner, locks, count), 0)) {
        fail(decision, now_ns);
        return true;
    }
    if (__builtin_expect(!seen || !all_same(decision, ahead, parts, count), 0)) {
        if (!find_all(decision, ahead, parts, count)) {
            unlock_all(locks, count);
            return false;
        }
        allowed = take_all(decision, now_ns, parts, count);
    }
    if (allowed)
        write_all(owner, parts, count);
    unlock_all(locks, count);
    if (!allowed)
        deny(decision, parts);
    decision->now_ns = now_ns;
    decision->verdict = allowed ? WEIR_ALLOWED : WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    return true;
}

bool multi_check_decide(struct weir_table_owner *owner, uint64_t now_ns,
                        struct weir_decision *decision, const struct lookup *ahead)
{
    switch (decision->count) {
    case 2:
        return decide(owner, now_ns, decision, ahead, 2);
    case 3:
        return decide(owner, now_ns, decision, ahead, 3);
    default:
        return decision->count <= MULTI_CHECK_MAX && decision->count > 0 &&
               decide(owner, now_ns, decision, ahead, decision->count);
    }
}
