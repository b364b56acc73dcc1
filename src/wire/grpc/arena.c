/* SPDX-License-Identifier: Apache-2.0 */
/* see arena.h */
#include "wire/grpc/arena.h"

#include <stdint.h>

#define ALIGNMENT 8 /* of a double, a pointer, an int64_t: all that messages hold */

static void *arena_alloc(void *data, size_t size)
{
    return weir_grpc_arena_take(data, size);
}

static void arena_free(void *data, void *pointer)
{
    (void)data, (void)pointer;
}

void weir_grpc_arena_init(struct weir_grpc_arena *arena, size_t bytes_max,
                          char *(*grow)(void *owner, size_t size, size_t *room), void *owner)
{
    *arena = (struct weir_grpc_arena){
        .allocator = {arena_alloc, arena_free, arena},
        .left = bytes_max,
        .grow = grow,
        .owner = owner,
    };
}

static bool arena_grow(struct weir_grpc_arena *arena, size_t size)
{
    size_t room = 0;
    char *block = size <= arena->left ? arena->grow(arena->owner, size, &room) : NULL;
    if (!block) {
        arena->exhausted = true;
        return false;
    }
    arena->left -= room < arena->left ? room : arena->left;
    arena->at = block;
    arena->end = block + room;
    return true;
}

void *weir_grpc_arena_take(struct weir_grpc_arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT) {
        arena->exhausted = true;
        return NULL;
    }
    size = size ? (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    if (size > (size_t)(arena->end - arena->at) && !arena_grow(arena, size))
        return NULL;
    void *taken = arena->at;
    arena->at += size;
    return taken;
}
