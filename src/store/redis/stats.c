/* SPDX-License-Identifier: Apache-2.0 */
/* see stats.h */
#include "store/redis/stats.h"

const uint32_t redis_latency_bounds_us[REDIS_LATENCY_BUCKETS] = {
    50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
};

void redis_stats_latency(_Atomic uint64_t *sum_ns, _Atomic uint64_t *buckets, uint64_t ns)
{
    unsigned bucket = 0;

    while (bucket < REDIS_LATENCY_BUCKETS && ns > redis_latency_bounds_us[bucket] * UINT64_C(1000))
        bucket++;
    redis_stats_add(sum_ns, ns);
    redis_stats_add(&buckets[bucket], 1);
}

void redis_stats_sum(void *to, const void *from, size_t size)
{
    _Atomic uint64_t *sums = to;
    const _Atomic uint64_t *values = from;

    for (size_t i = 0; i < size / sizeof *sums; i++)
        atomic_fetch_add_explicit(&sums[i], atomic_load_explicit(&values[i], memory_order_relaxed),
                                  memory_order_relaxed);
}
