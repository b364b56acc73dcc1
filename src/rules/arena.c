/* SPDX-License-Identifier: Apache-2.0 */
/* see arena.h */
#include "rules/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES 65536

struct rules_arena_block {
    struct rules_arena_block *before;
    size_t used, size;
    alignas(max_align_t) char bytes[];
};

void *rules_arena_alloc(struct rules_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct rules_arena_block *block = arena->last;
    if (!block || block->size - block->used < rounded) {
        size_t room = rounded > ARENA_BLOCK_BYTES ? rounded : ARENA_BLOCK_BYTES;
        block = malloc(sizeof(*block) + room);
        if (!block)
            return NULL;
        block->before = arena->last;
        block->used = 0;
        block->size = room;
        arena->last = block;
    }
    void *piece = block->bytes + block->used;
    block->used += rounded;
    return memset(piece, 0, rounded);
}

char *rules_arena_copy(struct rules_arena *arena, const char *text, size_t size)
{
    char *copy = rules_arena_alloc(arena, size + 1);
    if (copy && size > 0)
        memcpy(copy, text, size);
    return copy;
}

void rules_arena_free(struct rules_arena *arena)
{
    while (arena->last) {
        struct rules_arena_block *before = arena->last->before;
        free(arena->last);
        arena->last = before;
    }
}
