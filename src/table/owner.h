/* SPDX-License-Identifier: Apache-2.0 */
/* Owners, their locks, and what happens when one dies.
 *
 * A lock is a 32-bit word: 0 when free, else the holder's slot in the registry of owners and its
 * generation. Taking one is a compare-and-swap, giving it back a store. An owner that is alive
 * holds an open file description lock (F_OFD_SETLK) on the byte of its slot, in a descriptor of its
 * own; the kernel drops it with the process, however that ends, and unlike a pid it cannot be
 * reused.
 *
 * Who waits too long for a lock tries that file lock. Getting it means that the holder is dead: its
 * undo journal is taken back, and its generation raised. From then on everyone sees that the locks
 * it left behind are stale (they name a generation that is over) and takes them over. A process
 * that dies while cleaning up is cleaned up after in the same way.
 *
 * A holder that lives and does not go on is stopped: by a debugger, `docker pause`, a frozen
 * cgroup. Its lock stays its own, since it may go on at any instruction; who waits for it gives up
 * after the table's patience, having written nothing. The table remembers, for each owner, the lock
 * that was waited for so long, so that nobody waits for it as long again while it is still held.
 * Threads of this process are waited for without end: they stop only with the one that waits.
 *
 * In private memory owners are threads of this process and always alive.
 *
 * Order: bucket and overflow locks are waited for only when no lock is held, or in address order;
 * otherwise they are tried, and on failure everything is released (transaction.c). The lock of
 * chunks, the heap's and the spill area's come after all of them, in this order; who takes the
 * spill area's has taken the heap's.
 */
#ifndef WEIR_TABLE_OWNER_H
#define WEIR_TABLE_OWNER_H

#include "table/region.h"

/* Waits for a lock that was not free, cleaning up after its holder where that is dead. False: its
 * holder, of another process, lives and has not given it back for the table's patience; then
 * owner->stuck is set, and no later wait for this holder is long until it has gone on. */
bool owner_wait(struct weir_table_owner *owner, uint32_t *lock) __attribute__((warn_unused_result));

static inline bool owner_try(struct weir_table_owner *owner, uint32_t *lock)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(lock, &free, owner->me, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* As owner_try; also takes over a lock that a dead owner left behind, where its generation says
 * that it has been recovered. */
bool owner_try_stale(struct weir_table_owner *owner, uint32_t *lock);

/* False: as owner_wait. The caller gives back what it holds, and writes nothing. */
static inline bool __attribute__((warn_unused_result))
owner_lock(struct weir_table_owner *owner, uint32_t *lock)
{
    return __builtin_expect(owner_try(owner, lock), 1) || owner_wait(owner, lock);
}

/* Both locks, which may be one, or none. */
static inline bool __attribute__((warn_unused_result))
owner_lock_pair(struct weir_table_owner *owner, uint32_t *a, uint32_t *b)
{
    uint32_t *first = a < b ? a : b, *second = a < b ? b : a;

    if (!owner_lock(owner, first))
        return false;
    if (second == first || owner_lock(owner, second))
        return true;
    __atomic_store_n(first, 0, __ATOMIC_RELEASE);
    return false;
}

/* What a decision is that could not have its locks: see weir_table_submit. */
static inline void owner_fail(struct weir_decision *decision)
{
    decision->verdict = WEIR_PENDING;
    decision->error = WEIR_ERR_BUSY;
    decision->repeated = false;
}

static inline void owner_unlock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static inline bool owner_holds(const struct weir_table_owner *owner, const uint32_t *lock)
{
    return __atomic_load_n(lock, __ATOMIC_RELAXED) == owner->me;
}

static inline void owner_count(struct weir_table_owner *owner, enum table_counter counter)
{
    uint64_t *at = &owner->slot->counters[counter];

    __atomic_store_n(at, *at + 1, __ATOMIC_RELAXED);
}

/* 31 random bits: the step of Numerical Recipes' LCG, of which the high bits are good enough to
 * choose a bucket or a page. */
static inline uint64_t owner_random(struct weir_table_owner *owner)
{
    owner->random = owner->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return owner->random >> 33;
}

/* An owner for changing a region that no other process and no other owner uses: it has the place of
 * slot 0 without holding it. To be freed with free(). NULL: there is no memory. */
struct weir_table_owner *owner_open_alone(struct weir_table *table);

/* Takes back what the holder of a slot left undone and ends its generation. The caller knows that
 * it is dead: it holds the slot's file lock, or is the only one to have the region open. */
void owner_recover(struct weir_table *table, uint32_t index);

/* Whether somebody holds this slot of the registry. */
bool owner_is_alive(const struct weir_table *table, uint32_t index);

/* How many slots of the registry are held, by tables' own owners too. */
uint64_t owner_count_alive(const struct weir_table *table);

#endif
