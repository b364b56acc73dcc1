/* SPDX-License-Identifier: Apache-2.0 */
/* see multi_check.h */
#include "table/multi_check.h"

#include "core/cell.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/undo.h"

/* One check while it is decided. */
struct part {
    union table_slot *at;
    uint64_t old[2], new[2];
    struct weir_cell cell;
    uint64_t delay_ns;
    bool admits;
};

/* Whether this is a decision for the short way. */
static inline bool is_short(const struct weir_decision *decision)
{
    if (decision->count > SEVERAL_MAX || decision->op != WEIR_OP_DECIDE ||
        decision->policy != WEIR_POLICY_ALL)
        return false;
    for (uint32_t i = 0; i < decision->count; i++)
        if ((decision->checks[i].flags & ~WEIR_CHECK_NETWORK) != 0 ||
            !decision->checks[i].limit->packs)
            return false;
    return true;
}

/* Sets `locks` to the different locks of all checks, in address order. Returns their number. */
static inline uint32_t sort_locks(const struct lookup *ahead, uint32_t count,
                                  uint32_t *locks[SEVERAL_MAX])
{
    uint32_t sorted = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t *lock = &ahead[i].likely->lock, at = sorted;

        while (at > 0 && locks[at - 1] > lock)
            at--;
        if (at > 0 && locks[at - 1] == lock)
            continue;
        for (uint32_t j = sorted++; j > at; j--)
            locks[j] = locks[j - 1];
        locks[at] = lock;
    }
    return sorted;
}

/* Finds the slots of all keys, each its own; false: one is not there. */
static inline bool find_all(const struct weir_decision *decision, const struct lookup *ahead,
                            struct part *parts)
{
    for (uint32_t i = 0; i < decision->count; i++) {
        int slot = slot_find_own(ahead[i].likely, ahead[i].slot, ahead[i].at.tag, ahead[i].marks,
                                 decision->checks[i].limit->id);

        if (slot < 0)
            return false;
        parts[i].at = &ahead[i].likely->slot[slot];
        for (uint32_t j = 0; j < i; j++)
            if (parts[j].at == parts[i].at)
                return false;
    }
    return true;
}

/* Tests one state, and computes what it becomes if all admit. */
static inline void test(struct part *part, const struct weir_check *check, uint64_t now_ns)
{
    const struct weir_limit *limit = check->limit;
    uint32_t state[3];

    part->old[0] = part->new[0] = part->at->words[0];
    part->old[1] = part->new[1] = part->at->words[1];
    if (__builtin_expect(!cell_is_window(limit) && check->cost == 1, 1)) {
        part->cell = bucket_unpack_words(part->old[0], (uint32_t)part->old[1]);
        part->admits = bucket_take_one(limit, &part->cell, now_ns, &part->delay_ns);
        part->new[0] = bucket_pack_time(&part->cell);
        part->new[1] = part->old[1] >> 32 << 32 | (uint32_t)part->cell.b;
        return;
    }
    cell_unpack(limit, part->at->state, &part->cell);
    part->admits = cell_test(limit, &part->cell, now_ns, check->cost, &part->delay_ns);
    if (!part->admits)
        return;
    cell_charge(limit, &part->cell, now_ns, check->cost);
    cell_pack(limit, &part->cell, state);
    part->new[0] = state[0] | (uint64_t)state[1] << 32;
    part->new[1] = part->old[1] >> 32 << 32 | state[2];
}

/* Writes all states, so that a death at any instruction can be taken back. */
static inline void write_all(struct weir_table_owner *owner, const struct part *parts,
                             uint32_t count)
{
    struct table_owner_slot *slot = owner->slot;
    uint32_t entries = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t where = region_offset(owner->table, parts[i].at);

        slot->undo[entries++] = (struct table_undo){where, parts[i].old[0]};
        if (parts[i].new[1] != parts[i].old[1])
            slot->undo[entries++] = (struct table_undo){where + 8, parts[i].old[1]};
    }
    UNDO_BARRIER();
    __atomic_store_n(&slot->undo_count, entries, __ATOMIC_RELAXED);
    UNDO_BARRIER();
    for (uint32_t i = 0; i < count; i++) {
        parts[i].at->words[0] = parts[i].new[0];
        if (parts[i].new[1] != parts[i].old[1])
            parts[i].at->words[1] = parts[i].new[1];
    }
    UNDO_BARRIER();
    __atomic_store_n(&slot->undo_count, 0, __ATOMIC_RELAXED);
    UNDO_BARRIER();
}

/* The state of a check that is not charged is what it was. */
static void fill_outcome(struct weir_outcome *outcome, const struct part *part,
                         const struct weir_check *check, bool charged)
{
    outcome->cell = part->cell;
    if (!charged && part->admits) {
        const uint32_t state[3] = {(uint32_t)part->old[0], (uint32_t)(part->old[0] >> 32),
                                   (uint32_t)part->old[1]};

        cell_unpack(check->limit, state, &outcome->cell);
    }
    outcome->delay_ns = part->delay_ns;
    outcome->verdict = part->admits ? WEIR_ALLOWED : WEIR_DENIED;
    outcome->reported = false;
    outcome->overflow = false;
    outcome->charged = charged && check->cost > 0;
}

/* Takes all locks, or none. */
static inline bool lock_all(struct weir_table_owner *owner, uint32_t *const locks[SEVERAL_MAX],
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_expect(!owner_lock(owner, locks[i]), 0)) {
            while (i > 0)
                owner_unlock(locks[--i]);
            return false;
        }
    return true;
}

bool multi_check_decide(struct weir_table_owner *owner, uint64_t now_ns,
                        struct weir_decision *decision, const struct lookup *ahead)
{
    uint32_t *locks[SEVERAL_MAX];
    struct part parts[SEVERAL_MAX];
    uint32_t count = decision->count;
    uint64_t delay_ns = 0;
    bool allowed = true;

    if (!is_short(decision))
        return false;

    uint32_t locked = sort_locks(ahead, count, locks);

    if (__builtin_expect(!lock_all(owner, locks, locked), 0)) {
        decision->now_ns = now_ns;
        decision->source = WEIR_SOURCE_STORE;
        owner_fail(decision);
        return true;
    }

    bool found = find_all(decision, ahead, parts);

    if (found) {
        for (uint32_t i = 0; i < count; i++) {
            test(&parts[i], &decision->checks[i], now_ns);
            allowed = allowed && parts[i].admits;
        }
        if (allowed)
            write_all(owner, parts, count);
    }
    for (uint32_t i = 0; i < locked; i++)
        owner_unlock(locks[i]);
    if (!found)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        fill_outcome(&decision->outcomes[i], &parts[i], &decision->checks[i], allowed);
        if (allowed && parts[i].delay_ns > delay_ns)
            delay_ns = parts[i].delay_ns;
    }
    decision->now_ns = now_ns;
    decision->delay_ns = delay_ns;
    decision->verdict = allowed ? WEIR_ALLOWED : WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    return true;
}
