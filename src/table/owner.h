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
 * In private memory owners are threads of this process and always alive.
 *
 * Order: bucket and overflow locks are waited for only when no lock is held, or in address order;
 * otherwise they are tried, and on failure everything is released (transaction.c). The lock of
 * chunks, the heap's and the spill area's come after all of them, in this order.
 */
#ifndef WEIR_TABLE_OWNER_H
#define WEIR_TABLE_OWNER_H

#include "table/region.h"

/* Waits for a lock that was not free, cleaning up after its holder where that is dead. */
void owner_wait(struct weir_table_owner *owner, uint32_t *lock);

static inline bool owner_try(struct weir_table_owner *owner, uint32_t *lock)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(lock, &free, owner->me, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static inline void owner_lock(struct weir_table_owner *owner, uint32_t *lock)
{
    if (__builtin_expect(!owner_try(owner, lock), 0))
        owner_wait(owner, lock);
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

/* Takes back what the holder of a slot left undone and ends its generation. The caller knows that
 * it is dead: it holds the slot's file lock, or is the only one to have the region open. */
void owner_recover(struct weir_table *table, uint32_t index);

/* Whether somebody holds this slot of the registry. */
bool owner_is_alive(const struct weir_table *table, uint32_t index);

/* How many slots of the registry are held, by tables' own owners too. */
uint64_t owner_count_alive(const struct weir_table *table);

#endif
