/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h: statistics */
#include "table/owner.h"
#include "table/slot.h"
#include "table/span_heap.h"

/* Buckets that are looked at for the number of keys: all, or this many, evenly spread. With 24,576
 * slots of a sample the estimate is within 1 % of the slots, 99 times of 100. */
#define SAMPLE 4096

static uint64_t counter(const struct weir_table *table, enum table_counter which)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < table->fixed.owners_max; i++)
        sum += __atomic_load_n(&table->owners[i].counters[which], __ATOMIC_RELAXED);
    return sum;
}

/* A look without the lock: what is written to, if only a lock, takes a page of memory. */
static bool is_empty(const struct table_bucket *bucket)
{
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
        if (__atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED) != 0)
            return false;
    return true;
}

/* Counts the slots in use of one bucket, and those that are not fresh. A bucket that an owner which
 * is stopped has locked is passed over. */
static void count_bucket(struct weir_table_owner *owner, struct table_bucket *bucket,
                         uint64_t now_ns, uint64_t *used, uint64_t *keys)
{
    if (is_empty(bucket) || !owner_lock(owner, &bucket->lock))
        return;
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
        *used += bucket->param[i] != 0;
        *keys += slot_fresh_at(owner->table, bucket, i) > now_ns;
    }
    owner_unlock(&bucket->lock);
}

static void count_keys(struct weir_table *table, uint64_t now_ns, struct weir_table_stats *stats)
{
    uint64_t buckets = table->fixed.buckets, used = 0, keys = 0;
    uint64_t sample = buckets <= 2 * SAMPLE ? buckets : SAMPLE;

    pthread_mutex_lock(&table->mutex);
    for (uint64_t i = 0; i < sample; i++)
        count_bucket(table->service, &table->buckets[i * (buckets / sample)], now_ns, &used, &keys);
    pthread_mutex_unlock(&table->mutex);
    stats->slots_used = used * buckets / sample;
    stats->keys = keys * buckets / sample;
}

void weir_table_stats(struct weir_table *table, uint64_t now_ns, struct weir_table_stats *stats)
{
    *stats = (struct weir_table_stats){
        .bytes = table->fixed.bytes,
        .slots = table->fixed.buckets * BUCKET_SLOTS,
        .span_bytes = table->fixed.pages * TABLE_PAGE,
        .span_bytes_used = heap_used(table),
        .params_max = table->fixed.params_max,
        .owners = owner_count_alive(table),
        .inserts = counter(table, COUNT_INSERTS),
        .evictions = counter(table, COUNT_EVICTIONS),
        .overflows = counter(table, COUNT_OVERFLOWS),
        .reclaimed = counter(table, COUNT_RECLAIMED),
        .recoveries = counter(table, COUNT_RECOVERIES),
        .lock_waits = counter(table, COUNT_LOCK_WAITS),
        .given_up = __atomic_load_n(&table->given_up, __ATOMIC_RELAXED),
    };
    for (uint32_t i = 1; i <= table->fixed.params_max; i++)
        stats->params += region_limit(table, (uint16_t)i) != NULL;
    count_keys(table, now_ns, stats);
}
