/* SPDX-License-Identifier: Apache-2.0 */
/* see slab.h */
#include "store/redis/slab.h"

#include <stdlib.h>

/* Marks free blocks for the address sanitizer, which sees a slab as one allocation. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HIDE(at, size) ASAN_POISON_MEMORY_REGION(at, size)
#define SHOW(at, size) ASAN_UNPOISON_MEMORY_REGION(at, size)
#else
#define HIDE(at, size) ((void)0)
#define SHOW(at, size) ((void)0)
#endif

struct redis_block {
    struct redis_block *next;
};

/* Its blocks follow, aligned as malloc's memory is. */
struct redis_slab {
    struct redis_slab *next;
    size_t bytes;
};
#define SLAB_HEAD 64

static unsigned class_of(size_t size)
{
    unsigned rank = 0;

    while ((size_t)REDIS_SLABS_MIN << rank < size)
        rank++;
    return rank;
}

void redis_slabs_init(struct redis_slabs *slabs, size_t bytes_max)
{
    *slabs = (struct redis_slabs){.bytes_max = bytes_max};
}

void redis_slabs_end(struct redis_slabs *slabs)
{
    while (slabs->slabs) {
        struct redis_slab *slab = slabs->slabs;

        slabs->slabs = slab->next;
        SHOW(slab, slab->bytes);
        free(slab);
    }
    redis_slabs_init(slabs, slabs->bytes_max);
}

static void add_slab(struct redis_slabs *slabs, unsigned rank)
{
    size_t size = (size_t)REDIS_SLABS_MIN << rank;
    size_t count = size < REDIS_SLABS_SLAB ? REDIS_SLABS_SLAB / size : 1;
    size_t bytes = SLAB_HEAD + count * size;

    if (bytes > slabs->bytes_max - slabs->bytes)
        return;

    char *memory = malloc(bytes);

    if (!memory)
        return;
    slabs->bytes += bytes;

    struct redis_slab *slab = (struct redis_slab *)(void *)memory;

    slab->bytes = bytes;
    slab->next = slabs->slabs;
    slabs->slabs = slab;
    for (size_t i = count; i-- > 0;) {
        struct redis_block *block = (struct redis_block *)(void *)(memory + SLAB_HEAD + i * size);

        block->next = slabs->free[rank];
        slabs->free[rank] = block;
        HIDE(block + 1, size - sizeof *block);
    }
}

void *redis_slabs_take(struct redis_slabs *slabs, size_t size)
{
    if (size > REDIS_SLABS_MAX)
        return NULL;

    unsigned rank = class_of(size);

    if (!slabs->free[rank])
        add_slab(slabs, rank);

    struct redis_block *block = slabs->free[rank];

    if (!block)
        return NULL;
    slabs->free[rank] = block->next;
    slabs->taken++;
    SHOW(block, size);
    return block;
}

void redis_slabs_give(struct redis_slabs *slabs, void *block, size_t size)
{
    struct redis_block *free_block = block;
    unsigned rank = class_of(size);

    free_block->next = slabs->free[rank];
    slabs->free[rank] = free_block;
    slabs->taken--;
    HIDE(free_block + 1, ((size_t)REDIS_SLABS_MIN << rank) - sizeof *free_block);
}
