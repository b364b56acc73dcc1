/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h: the table that a process decides on by itself while a neighbour is stopped */
#include "table/owner.h"
#include "table/params.h"
#include "table/slot.h"

int weir_table_open_spare(struct weir_table **spare, const struct weir_table *table,
                          struct weir_reason *reason)
{
    const struct table_header *header = &table->fixed;
    uint32_t percent = (uint32_t)(header->pages * TABLE_PAGE * 100 / header->bytes);
    const struct weir_table_options options = {
        .bytes = header->bytes,
        .span_percent = percent > 0 ? percent : 1,
        .params_max = header->params_max,
        .sparse = true,
        .secret = {header->secret[0], header->secret[1]},
        .wall_ns = __atomic_load_n(&table->header->mark_ns, __ATOMIC_RELAXED),
    };

    return weir_table_open(spare, &options, reason);
}

/* Empties the slots that have these parameters. */
static void clear_slots(struct weir_table *table, uint16_t id)
{
    for (uint64_t b = 0; b < table->fixed.buckets; b++) {
        struct table_bucket *bucket = region_bucket(table, b);

        for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
            if (__atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED) != id)
                continue;
            if (!owner_lock(table->service, &bucket->lock))
                continue; /* never: a spare has no neighbours */
            if (bucket->param[i] == id)
                (void)!slot_clear(table->service, bucket, i);
            owner_unlock(&bucket->lock);
        }
    }
}

int weir_table_adopt(struct weir_table *spare, const struct weir_limit *limit)
{
    if (limit->id == 0 || limit->id > spare->fixed.params_max)
        return WEIR_ERR_RANGE;
    if (params_are(spare, limit))
        return 0;
    pthread_mutex_lock(&spare->mutex);
    if (!params_are(spare, limit)) {
        if (region_limit(spare, limit->id) != NULL) { /* the id has come to mean another limit */
            clear_slots(spare, limit->id);
            params_drop(spare, &spare->params[limit->id - 1]);
        }
        params_place(spare, limit);
    }
    pthread_mutex_unlock(&spare->mutex);
    return 0;
}
