/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that are given in commands: compiled once, shared by all workers, kept while they are
 * used.
 *
 * CL.THROTTLE and its like name their limit in every command, and a program has few of them. Each
 * is compiled and made known to the table once; from then on a worker finds it in a small cache of
 * its own by the three numbers of the command, without a lock.
 *
 * The table's list of limits is finite, and rules need it too. So commands may have `max` limits at
 * a time, and add to the list only while it has room; one more is refused with WEIR_ERR_FULL. When
 * there is no room, those that have not been used for a minute give up their places. Use is
 * measured in epochs of 15 s: a worker empties its cache when an epoch begins
 * (weir_adhoc_limits_epoch), so that whatever is in use is looked up, and stamped, in every epoch.
 * A limit may go when its stamp is five epochs old: no cache has it any more, and no decision that
 * was begun with it is pending, since the deadline of every store is below that.
 *
 * Memory: about 350 bytes a distinct limit; a cache is 8 KiB.
 * Threads: struct weir_adhoc_limits is internally locked; a cache belongs to one worker.
 */
#ifndef WEIR_SERVER_ADHOC_ADHOC_LIMITS_H
#define WEIR_SERVER_ADHOC_ADHOC_LIMITS_H

#include "store/store.h"

struct weir_adhoc_limits;

/* At most `max` distinct limits, and a new one only while the list of `table` (NULL: there is none)
 * is not nearly full. `nodes` share the store and decide alone where it fails, each on its part of
 * the limit; 0 or 1: on all of it. Errors: WEIR_ERR_MEMORY. */
int weir_adhoc_limits_open(struct weir_adhoc_limits **limits, uint32_t max,
                           struct weir_table *table, uint32_t nodes)
    __attribute__((warn_unused_result));
void weir_adhoc_limits_close(struct weir_adhoc_limits *limits);

/* The compiled limit of a spec, valid until the end of the next epoch (see above). `store` is the
 * caller's own, `local` the table beside it, or NULL; `name` (static, may be NULL) is the limit's,
 * for keys in a shared store. Errors: WEIR_ERR_RANGE (`reason` says of what), WEIR_ERR_FULL,
 * WEIR_ERR_MEMORY, and those of the store's prepare. */
int weir_adhoc_limits_find(struct weir_adhoc_limits *limits, struct weir_store *store,
                           struct weir_store *local, const struct weir_limit_spec *spec,
                           const char *name, const struct weir_limit **limit,
                           struct weir_reason *reason) __attribute__((warn_unused_result));

/* Begins a new epoch if it is time; called once a second or so. */
void weir_adhoc_limits_tick(struct weir_adhoc_limits *limits, uint64_t now_ns);

/* The number of the epoch: a cache of limits is emptied when this changes. */
uint64_t weir_adhoc_limits_epoch(const struct weir_adhoc_limits *limits);

/* How many there are. */
uint32_t weir_adhoc_limits_count(struct weir_adhoc_limits *limits);

/* A worker's way to them: direct mapped, by the numbers of the command. */
#define WEIR_ADHOC_CACHE_SIZE 256

struct weir_adhoc_cached {
    uint64_t a, b, c; /* the command's numbers; what they mean is the caller's */
    const struct weir_limit *limit;
};

struct weir_adhoc_cache {
    struct weir_adhoc_cached entries[WEIR_ADHOC_CACHE_SIZE];
};

static inline struct weir_adhoc_cached *weir_adhoc_cache_at(struct weir_adhoc_cache *cache,
                                                            uint64_t a, uint64_t b, uint64_t c)
{
    /* Odd multipliers spread small numbers over the upper bits; a bad spread costs a lock. */
    uint64_t mix = a * UINT64_C(0x9e3779b97f4a7c15) ^ b * UINT64_C(0xc2b2ae3d27d4eb4f) ^
                   c * UINT64_C(0x165667b19e3779f9);
    return &cache->entries[mix >> 56];
}

_Static_assert(WEIR_ADHOC_CACHE_SIZE == 256, "the index is the top byte");

#endif
