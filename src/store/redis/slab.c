/* SPDX-License-Identifier: Apache-2.0 */
/* see slab.h */
#include "store/redis/slab.h"

#include <stdlib.h>

/* The address sanitizer sees no slab as blocks unless it is told. */
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

    while ((size_t)REDIS_BLOCKS_MIN << rank < size)
        rank++;
    return rank;
}

void redis_slabs_init(struct redis_slabs *blocks, size_t bytes_max)
{
    *blocks = (struct redis_slabs){.bytes_max = bytes_max};
}

void redis_slabs_end(struct redis_slabs *blocks)
{
    while (blocks->slabs != NULL) {
        struct redis_slab *slab = blocks->slabs;

        blocks->slabs = slab->next;
        SHOW(slab, slab->bytes);
        free(slab);
    }
    redis_slabs_init(blocks, blocks->bytes_max);
}

static void add_slab(struct redis_slabs *blocks, unsigned rank)
{
    size_t size = (size_t)REDIS_BLOCKS_MIN << rank;
    size_t count = size < REDIS_BLOCKS_SLAB ? REDIS_BLOCKS_SLAB / size : 1;
    size_t bytes = SLAB_HEAD + count * size;

    if (bytes > blocks->bytes_max - blocks->bytes)
        return;

    char *memory = malloc(bytes);

    if (memory == NULL)
        return;
    blocks->bytes += bytes;

    struct redis_slab *slab = (struct redis_slab *)(void *)memory;

    slab->bytes = bytes;
    slab->next = blocks->slabs;
    blocks->slabs = slab;
    for (size_t i = count; i-- > 0;) {
        struct redis_block *block = (struct redis_block *)(void *)(memory + SLAB_HEAD + i * size);

        block->next = blocks->free[rank];
        blocks->free[rank] = block;
        HIDE(block + 1, size - sizeof *block);
    }
}

void *redis_slabs_take(struct redis_slabs *blocks, size_t size)
{
    if (size > REDIS_BLOCKS_MAX)
        return NULL;

    unsigned rank = class_of(size);

    if (blocks->free[rank] == NULL)
        add_slab(blocks, rank);

    struct redis_block *block = blocks->free[rank];

    if (block == NULL)
        return NULL;
    blocks->free[rank] = block->next;
    blocks->taken++;
    SHOW(block, size);
    return block;
}

void redis_slabs_give(struct redis_slabs *blocks, void *block, size_t size)
{
    struct redis_block *free_block = block;
    unsigned rank = class_of(size);

    free_block->next = blocks->free[rank];
    blocks->free[rank] = free_block;
    blocks->taken--;
    HIDE(free_block + 1, ((size_t)REDIS_BLOCKS_MIN << rank) - sizeof *free_block);
}
