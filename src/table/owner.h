/* SPDX-License-Identifier: Apache-2.0 */
/* Owners, their locks, and recovery when one dies.
 *
 * A lock is a 32-bit word: 0 when free, else the holder's slot in the registry of owners and its
 * generation. An owner takes it by a compare-and-swap and releases it by a store. An owner that is
 * alive holds an open file description lock (F_OFD_SETLK) on the byte of its slot, in a descriptor
 * of its own; the kernel releases it when the process ends, however it ends, and unlike a pid it
 * cannot be reused.
 *
 * An owner that waits too long for a lock tries that file lock. If it gets it, the holder is dead:
 * it applies the dead owner's undo journal and raises its generation. From then on all owners see
 * that the locks left behind are stale (they name an old generation) and take them over. A process
 * that dies during this recovery is recovered in the same way.
 *
 * A holder that lives and does not go on is stopped: by a debugger, `docker pause`, a frozen
 * cgroup. It keeps its lock, since it may continue at any instruction; a waiter gives up after the
 * table's patience, having written nothing. The table remembers, for each owner, the lock that was
 * waited for, so that later waits for it are short while it is still held. Waits for threads of
 * this process have no bound: they stop only together with the waiter.
 *
 * In private memory owners are threads of this process and always alive.
 *
 * Order: bucket and overflow locks are waited for only when no lock is held, or in address order;
 * otherwise they are tried, and on failure everything is released (transaction.c). The lock of
 * chunks, the heap's and the spill area's come after all of them, in this order; an owner takes the
 * spill area's only while it holds the heap's. */
#ifndef WEIR_TABLE_OWNER_H
#define WEIR_TABLE_OWNER_H

#include "table/region.h"

/* Waits for a lock that was not free, and recovers its holder if that is dead. False: a live holder
 * of another process has not released it within the table's patience; then owner->stuck is set, and
 * later waits for this holder are short until it continues. */
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

/* False: as owner_wait. The caller releases what it holds, and writes nothing. */
static inline bool __attribute__((warn_unused_result))
owner_lock(struct weir_table_owner *owner, uint32_t *lock)
{
    return __builtin_expect(owner_try(owner, lock), 1) || owner_wait(owner, lock);
}

/* Takes both locks, which may be the same, or none. */
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

/* Marks a decision that could not get its locks: see weir_table_submit. */
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

/* 31 random bits: the step of Numerical Recipes' LCG, whose high bits are good enough to choose a
 * bucket or a page. */
static inline uint64_t owner_random(struct weir_table_owner *owner)
{
    owner->random = owner->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return owner->random >> 33;
}

/* An owner for changing a region that no other process and no other owner uses: it uses slot 0
 * without holding it. The caller frees it with free(). NULL: out of memory. */
struct weir_table_owner *owner_open_alone(struct weir_table *table);

/* Undoes what the holder of a slot left unfinished and ends its generation. The caller knows that
 * the holder is dead: it has the slot's file lock, or is the only process with the region open. */
void owner_recover(struct weir_table *table, uint32_t index);

/* Whether a live owner holds this slot of the registry. */
bool owner_is_alive(const struct weir_table *table, uint32_t index);

/* How many slots of the registry are held, including those of tables' own owners. */
uint64_t owner_count_alive(const struct weir_table *table);

#endif
