/* see pool.h */
#include "engine/pool.h"

#include <stdlib.h>

#define CACHE_LINE 64

/* Entries are an odd number of cache lines apart. */
static size_t stride(void)
{
    size_t lines = (sizeof(struct weir_entry) + CACHE_LINE - 1) / CACHE_LINE;
    return (lines | 1) * CACHE_LINE;
}

int weir_pool_open(struct weir_pool *pool, uint32_t size)
{
    void *memory;
    if (posix_memalign(&memory, CACHE_LINE, size * stride()) != 0)
        return WEIR_ERR_MEMORY;
    *pool = (struct weir_pool){.memory = memory, .size = size};
    return 0;
}

void weir_pool_close(struct weir_pool *pool)
{
    free(pool->memory);
}

struct weir_entry *weir_pool_at(const struct weir_pool *pool, uint32_t index)
{
    return (struct weir_entry *)(void *)(pool->memory + index * stride());
}

struct weir_entry *weir_pool_take(struct weir_pool *pool)
{
    struct weir_entry *entry = pool->free;
    if (entry != NULL) {
        pool->free = entry->next;
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
    entry->generation = NULL;
    entry->state = WEIR_ENTRY_TAKEN;
    entry->identity = (struct weir_identity){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    entry->scratch.used = 0;
    return entry;
}

void weir_pool_give(struct weir_pool *pool, struct weir_entry *entry)
{
    entry->state = WEIR_ENTRY_FREE;
    entry->next = pool->free;
    pool->free = entry;
}
