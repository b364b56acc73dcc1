/* SPDX-License-Identifier: Apache-2.0 */
/* The counters of redis.h, as their one writer changes them and others add them up. Callers kept in
 * Redis (feature/identity/server/directory.h) are counted likewise. */
#ifndef WEIR_STORE_REDIS_STATS_H
#define WEIR_STORE_REDIS_STATS_H

#include <stddef.h>

#include "store/redis/redis.h"

static inline void redis_stats_set(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static inline void redis_stats_add(_Atomic uint64_t *value, uint64_t more)
{
    redis_stats_set(value, atomic_load_explicit(value, memory_order_relaxed) + more);
}

/* Enters the time from a call's writing to its reply: into the sum of all, and a histogram of
 * REDIS_LATENCY_BUCKETS + 1. */
void redis_stats_latency(_Atomic uint64_t *sum_ns, _Atomic uint64_t *buckets, uint64_t ns);

/* Adds counters to others. Both are structs of `size` bytes that hold _Atomic uint64_t and nothing
 * else; `from` changes meanwhile: each is some moment's. */
void redis_stats_sum(void *to, const void *from, size_t size);

#endif
