/* SPDX-License-Identifier: Apache-2.0 */
/* see pool.h */
#include "engine/pool.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CACHE_LINE 64
#define HUGE_PAGE (2u << 20)

/* Entries are an odd number of cache lines apart. */
static size_t stride(void)
{
    size_t lines = (sizeof(struct weir_entry) + CACHE_LINE - 1) / CACHE_LINE;
    return (lines | 1) * CACHE_LINE;
}

int weir_pool_open(struct weir_pool *pool, uint32_t size, const struct weir_purpose *purpose)
{
    void *memory;
    if (posix_memalign(&memory, HUGE_PAGE, size * stride()) != 0)
        return WEIR_ERR_MEMORY;
    madvise(memory, size * stride(), MADV_HUGEPAGE); /* advice: the pool works without */
    *pool = (struct weir_pool){.memory = memory, .purpose = purpose, .size = size};
    return 0;
}

void weir_pool_close(struct weir_pool *pool)
{
    free(pool->memory);
}

int weir_pool_make(struct weir_pool **out, uint32_t size, const struct weir_purpose *purpose)
{
    struct weir_pool *pool = malloc(sizeof *pool);
    if (!pool)
        return WEIR_ERR_MEMORY;
    int err = weir_pool_open(pool, size, purpose);
    if (err < 0) {
        free(pool);
        return err;
    }
    *out = pool;
    return 0;
}

void weir_pool_drop(struct weir_pool **pool)
{
    if (!*pool)
        return;
    weir_pool_close(*pool);
    free(*pool);
    *pool = NULL;
}

struct weir_entry *weir_pool_at(const struct weir_pool *pool, uint32_t index)
{
    return (struct weir_entry *)(void *)(pool->memory + index * stride());
}

/* Asks for the lines that taking, filling and deciding will write. */
static void fetch(const struct weir_entry *entry)
{
    const char *start = (const char *)entry;
    for (size_t at = 0; at <= offsetof(struct weir_entry, checks); at += CACHE_LINE)
        __builtin_prefetch(start + at, 1, 3);
    __builtin_prefetch(&entry->outcomes[0], 1, 3);
}

struct weir_entry *weir_pool_take(struct weir_pool *pool)
{
    struct weir_entry *entry = pool->free;
    if (entry) {
        pool->free = entry->next;
        if (pool->free)
            fetch(pool->free);
    } else {
        if (pool->touched == pool->size)
            return NULL;
        entry = weir_pool_at(pool, pool->touched++);
    }
    entry->decision = (struct weir_decision){
        .checks = entry->checks,
        .outcomes = entry->outcomes,
        .denied_by = UINT16_MAX,
    };
    entry->pool = pool;
    entry->purpose = pool->purpose;
    entry->generation = NULL;
    entry->lookup = NULL;
    entry->drop = NULL;
    entry->hooks = 0;
    entry->borrow = NULL;
    entry->lending = NULL;
    entry->far = NULL;
    entry->unaided = false;
    entry->strike_count = 0;
    entry->trial_live = 0;
    entry->place = (struct weir_request_place){WEIR_NO_ROUTE, WEIR_NO_PLAN};
    entry->state = WEIR_ENTRY_TAKEN;
    entry->keeps = entry->local = entry->live_denied = entry->stands = false;
    entry->reserves = entry->hurries = entry->homes = false;
    entry->score.found = entry->score.counted = false;
    entry->identity = (struct weir_identity){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    return entry;
}

void weir_pool_give(struct weir_entry *entry)
{
    struct weir_pool *pool = entry->pool;
    entry->state = WEIR_ENTRY_FREE;
    entry->next = pool->free;
    pool->free = entry;
}

void *weir_scratch_take(struct weir_scratch *scratch, size_t size)
{
    uintptr_t end = (uintptr_t)(scratch->bytes + scratch->used);
    size_t gap = (size_t)(-end & (alignof(max_align_t) - 1));
    if (gap + size > sizeof scratch->bytes - scratch->used)
        return NULL;
    scratch->used += (uint32_t)(gap + size);
    return scratch->bytes + scratch->used - size;
}
