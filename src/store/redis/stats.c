/* see stats.h */
#include "store/redis/stats.h"

const uint32_t redis_latency_bounds_us[REDIS_LATENCY_BUCKETS] = {
    50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
};

void redis_stats_latency(struct weir_store_redis_stats *stats, uint64_t ns)
{
    unsigned bucket = 0;

    while (bucket < REDIS_LATENCY_BUCKETS && ns > redis_latency_bounds_us[bucket] * UINT64_C(1000))
        bucket++;
    redis_stats_add(&stats->latency_ns, ns);
    redis_stats_add(&stats->latency_buckets[bucket], 1);
}
