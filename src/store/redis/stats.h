/* The counters of redis.h, as their one writer changes them. */
#ifndef WEIR_STORE_REDIS_STATS_H
#define WEIR_STORE_REDIS_STATS_H

#include "store/redis/redis.h"

static inline void redis_stats_set(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static inline void redis_stats_add(_Atomic uint64_t *value, uint64_t more)
{
    redis_stats_set(value, atomic_load_explicit(value, memory_order_relaxed) + more);
}

/* Enters the time from a call's writing to its reply. */
void redis_stats_latency(struct weir_store_redis_stats *stats, uint64_t ns);

#endif
