/* see table.h: statistics and the validity of a region at rest */
#include "core/reason.h"
#include "table/owner.h"
#include "table/params.h"
#include "table/slot.h"
#include "table/span_heap.h"

/* Buckets that are looked at for the number of keys: all, or this many, evenly spread. With 24,576
 * slots of a sample the estimate is within 1 % of the slots, 99 times of 100. */
#define SAMPLE 4096

static uint64_t counter(const struct weir_table *table, enum table_counter which)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < table->header->owners_max; i++)
        sum += __atomic_load_n(&table->owners[i].counters[which], __ATOMIC_RELAXED);
    return sum;
}

/* Counts the slots in use of one bucket, and those that are not fresh. */
static void count_bucket(struct weir_table_owner *owner, struct table_bucket *bucket,
                         uint64_t now_ns, uint64_t *used, uint64_t *keys)
{
    owner_lock(owner, &bucket->lock);
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
        *used += bucket->param[i] != 0;
        *keys += slot_fresh_at(owner->table, bucket, i) > now_ns;
    }
    owner_unlock(&bucket->lock);
}

static void count_keys(struct weir_table *table, uint64_t now_ns, struct weir_table_stats *stats)
{
    uint64_t buckets = table->header->buckets, used = 0, keys = 0;
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
    const struct table_header *header = table->header;

    *stats = (struct weir_table_stats){
        .bytes = header->bytes,
        .slots = header->buckets * BUCKET_SLOTS,
        .span_bytes = header->pages * TABLE_PAGE,
        .span_bytes_used = heap_used(table),
        .params_max = header->params_max,
        .owners = owner_count_alive(table),
        .inserts = counter(table, COUNT_INSERTS),
        .evictions = counter(table, COUNT_EVICTIONS),
        .overflows = counter(table, COUNT_OVERFLOWS),
        .reclaimed = counter(table, COUNT_RECLAIMED),
        .recoveries = counter(table, COUNT_RECOVERIES),
        .lock_waits = counter(table, COUNT_LOCK_WAITS),
    };
    for (uint32_t i = 1; i <= header->params_max; i++)
        stats->params += region_limit(table, (uint16_t)i) != NULL;
    count_keys(table, now_ns, stats);
}

static int damaged(struct weir_reason *reason, const char *what, uint64_t where)
{
    reason->text[0] = 0;
    reason_text(reason, what);
    reason_text(reason, ", number ");
    reason_number(reason, where);
    return WEIR_ERR_DAMAGED;
}

/* Whether the two buckets of a key hold it once. */
static bool is_once(const struct weir_table *table, uint64_t index, uint32_t i)
{
    const struct table_bucket *bucket = &table->buckets[index];
    uint64_t tag = slot_tag(bucket, i);
    bool second = slot_is_second(bucket, i);
    uint64_t other = position_other(&table->map, index, tag);

    if (bucket->param[i] & PARAM_SHARED)
        return true;
    return slot_find(bucket, tag, second) == (int)i &&
           slot_find(&table->buckets[other], tag, !second) < 0;
}

static int validate_bucket(const struct weir_table *table, uint64_t index, uint64_t *spans,
                           struct weir_reason *reason)
{
    const struct table_bucket *bucket = &table->buckets[index];

    for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
        const struct weir_limit *limit = region_limit(table, bucket->param[i]);

        if (bucket->param[i] == 0)
            continue;
        if (limit == NULL)
            return damaged(reason, "a slot with unknown parameters in bucket", index);
        if (!is_once(table, index, i))
            return damaged(reason, "a key that stands twice in bucket", index);
        if (region_words(limit) == 0)
            continue;

        uint64_t span = slot_span(bucket, i);

        if (heap_span(table, span, region_words(limit)) == NULL)
            return damaged(reason, "a slot without its span in bucket", index);
        if (*heap_owner_of(table, span) != (index << 3 | i))
            return damaged(reason, "a span of another slot in bucket", index);
        ++*spans;
    }
    return 0;
}

int weir_table_validate(const struct weir_table *table, struct weir_reason *reason)
{
    const struct table_header *header = table->header;
    struct weir_reason unwanted;
    uint64_t spans = 0;

    if (reason == NULL)
        reason = &unwanted;
    if (header->check != layout_header_check(header) || layout_check(header) < 0)
        return damaged(reason, "the header", 0);
    if (!heap_consistent(table))
        return damaged(reason, "the pages of the span heap", 0);
    if (!params_consistent(table))
        return damaged(reason, "the parameters", 0);
    for (uint64_t b = 0; b < header->buckets; b++) {
        int err = validate_bucket(table, b, &spans, reason);

        if (err < 0)
            return err;
    }
    for (uint32_t i = 0; i < header->params_max; i++) {
        const struct weir_limit *limit = region_limit(table, (uint16_t)(i + 1));

        spans += limit != NULL && limit->span_words > 0;
    }
    if (spans != heap_spans(table))
        return damaged(reason, "spans that nobody has, of those in use", heap_spans(table) - spans);
    return 0;
}
