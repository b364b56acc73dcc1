/* SPDX-License-Identifier: Apache-2.0 */
/* see table.h */
#include "table/table.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/text/reason.h"
#include "table/file/copy.h"
#include "table/file/file.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/params.h"
#include "table/slot.h"
#include "table/span/heap.h"
#include "table/sweep.h"

#define HUGE_PAGE (UINT64_C(2) << 20)

/* Allocates memory of huge pages where the system has them, aligned so that the first page is one.
 */
static int open_private(struct weir_table *table, const struct weir_table_options *options,
                        struct weir_reason *reason)
{
    struct table_header plan;
    int err = layout_plan(&plan, options, reason);

    if (err < 0)
        return err;

    uint64_t size = plan.bytes + HUGE_PAGE;
    uint8_t *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED) {
        reason_text(reason, "not enough memory for the state");
        return WEIR_ERR_MEMORY;
    }

    uint64_t skip = (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;

    if (skip > 0)
        munmap(map, skip);
    if (HUGE_PAGE - skip > 0)
        munmap(map + skip + plan.bytes, HUGE_PAGE - skip);
    table->map_bytes = plan.bytes;
    if (!options->sparse)
        madvise(map + skip, plan.bytes, MADV_HUGEPAGE); /* only a hint: small pages do as well */
    table->base = map + skip;
    err = region_format(table, map + skip, &plan, options);
    return err == 0 && options->copy_of ? copy_region(table, options->copy_of) : err;
}

static void close_region(struct weir_table *table)
{
    region_unmap(table);
    if (table->fd >= 0)
        close(table->fd);
    pthread_mutex_destroy(&table->mutex);
    limit_copies_close(table->copies);
    free(table->pinned);
    free(table->path);
    free(table);
}

int weir_table_open(struct weir_table **result, const struct weir_table_options *options,
                    struct weir_reason *reason)
{
    struct weir_table *table = calloc(1, sizeof *table);
    struct weir_reason unwanted;
    bool alone = false;
    int err;

    if (!reason)
        reason = &unwanted;
    reason->text[0] = 0;
    if (!table)
        return WEIR_ERR_MEMORY;
    table->pinned = calloc(WEIR_TABLE_PARAMS_MAX, sizeof *table->pinned);
    if (!table->pinned || pthread_mutex_init(&table->mutex, NULL) != 0) {
        free(table->pinned);
        free(table);
        return WEIR_ERR_MEMORY;
    }
    table->fd = -1;
    table->patience_ns = options->patience_ns;
    if (options->path) {
        table->copies = limit_copies_open();
        err = WEIR_ERR_MEMORY;
        if (!table->copies)
            goto close_region;
    }
    err = options->path ? file_open(table, options, &alone, reason)
                        : open_private(table, options, reason);
    if (err < 0)
        goto close_region;
    err = weir_table_attach(table, &table->service);
    if (err < 0) {
        reason_text(reason, err == WEIR_ERR_FULL ? "too many processes have the state file open"
                                                 : "cannot attach to the state file");
        goto close_region;
    }
    if (alone) {
        params_count(table);
        overflow_list_holders(table);
    }
    err = table->fd >= 0 ? file_opened(table) : 0;
    if (err < 0)
        goto detach_service;
    *result = table;
    return 0;

detach_service:
    weir_table_detach(table->service);
close_region:
    close_region(table);
    return err;
}

void weir_table_close(struct weir_table *table)
{
    if (!table)
        return;
    sweep_close(table);
    weir_table_detach(table->service);
    close_region(table);
}

uint32_t weir_table_span_percent(const struct weir_table *table)
{
    return table->fixed.span_percent;
}

const uint64_t *weir_table_secret(const struct weir_table *table)
{
    return table->fixed.secret;
}

uint64_t weir_table_bytes(const struct weir_table *table)
{
    return table->fixed.bytes;
}

void weir_table_expect_standing(struct weir_table *table, uint64_t generation)
{
    __atomic_store_n(&table->header->standing, generation, __ATOMIC_RELEASE);
}

uint64_t weir_table_standing(const struct weir_table *table)
{
    return __atomic_load_n(&table->header->standing, __ATOMIC_ACQUIRE);
}

uint64_t weir_table_time(const struct weir_table *table, uint64_t boot_ns)
{
    const struct table_header *fixed = &table->fixed;

    return fixed->t0_ns + (boot_ns > fixed->boot_ns ? boot_ns - fixed->boot_ns : 0);
}

void weir_table_mark(struct weir_table *table, uint64_t now_ns)
{
    uint64_t *mark = &table->header->mark_ns;
    uint64_t seen = __atomic_load_n(mark, __ATOMIC_RELAXED);

    while (seen < now_ns && !__atomic_compare_exchange_n(mark, &seen, now_ns, false,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

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
        if (region_has_params(spare, limit->id)) { /* the id meant another limit */
            clear_slots(spare, limit->id);
            params_drop(spare, &spare->params[limit->id - 1]);
        }
        params_place(spare, limit);
    }
    pthread_mutex_unlock(&spare->mutex);
    return 0;
}

/* Buckets to look at for the number of keys: all, or this many, evenly spread. With a sample of
 * 24,576 slots the estimate is within 1 % of the slots, 99 times of 100. */
#define KEYS_SAMPLE 4096

static uint64_t counter(const struct weir_table *table, enum table_counter which)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < table->fixed.owners_max; i++)
        sum += __atomic_load_n(&table->owners[i].counters[which], __ATOMIC_RELAXED);
    return sum;
}

/* Reads without the lock: a write, if only to a lock, would allocate a page of memory. */
static bool is_empty(const struct table_bucket *bucket)
{
    for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
        if (__atomic_load_n(&bucket->param[i], __ATOMIC_RELAXED) != 0)
            return false;
    return true;
}

/* Counts the slots in use of one bucket, and those that are not fresh. Skips a bucket that a
 * stopped owner has locked. */
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
    uint64_t sample = buckets <= 2 * KEYS_SAMPLE ? buckets : KEYS_SAMPLE;

    pthread_mutex_lock(&table->mutex);
    for (uint64_t i = 0; i < sample; i++)
        count_bucket(table->service, &table->buckets[i * (buckets / sample)], now_ns, &used, &keys);
    pthread_mutex_unlock(&table->mutex);
    stats->slots_used = used * buckets / sample;
    stats->keys = keys * buckets / sample;
    stats->slots_error = sample < buckets ? stats->slots / 100 : 0;
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
        stats->params += region_has_params(table, (uint16_t)i);
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

    return slot_find(bucket, tag, second) == (int)i &&
           slot_find(&table->buckets[other], tag, !second) < 0;
}

static int validate_slot(const struct weir_table *table, uint64_t index, uint32_t i,
                         uint64_t *spans, struct weir_reason *reason)
{
    const struct table_bucket *bucket = &table->buckets[index];
    struct weir_limit room;
    const struct weir_limit *limit = region_limit(table, bucket->param[i], &room);

    if (!limit)
        return damaged(reason, "a slot with unknown parameters in bucket", index);
    if (!is_once(table, index, i))
        return damaged(reason, "duplicate key in bucket", index);
    if (region_has_span(limit)) {
        uint64_t span = slot_span(bucket, i);

        if (!heap_state(table, limit, span).at)
            return damaged(reason, "a slot without its span in bucket", index);
        if (*heap_owner_of(table, span) != (index << 3 | i))
            return damaged(reason, "a span of another slot in bucket", index);
        ++*spans;
    }
    if (!slot_valid(table, bucket, i))
        return damaged(reason, "an impossible state in bucket", index);
    return 0;
}

int weir_table_validate(const struct weir_table *table, struct weir_reason *reason)
{
    const struct table_header *header = table->header;
    struct weir_reason unwanted;
    uint64_t spans = 0;

    if (!reason)
        reason = &unwanted;
    if (header->check != layout_header_check(header) || layout_check(header) < 0)
        return damaged(reason, "the header", 0);
    if (!heap_consistent(table))
        return damaged(reason, "the pages of the span heap", 0);

    if (!params_consistent(table))
        return damaged(reason, "the parameters", 0);
    if (!overflow_consistent(table))
        return damaged(reason, "the overflow cells", 0);

    int err = 0;

    for (uint64_t b = 0; err == 0 && b < table->fixed.buckets; b++)
        for (uint32_t i = 0; err == 0 && i < BUCKET_SLOTS; i++)
            if (table->buckets[b].param[i] != 0)
                err = validate_slot(table, b, i, &spans, reason);
    if (err == 0 && spans != heap_spans(table))
        err = damaged(reason, "spans without a slot, or slots without a span", heap_spans(table));
    return err;
}
