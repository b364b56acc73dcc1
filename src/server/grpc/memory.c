/* SPDX-License-Identifier: Apache-2.0 */
/* see memory.h */
#include "server/grpc/memory.h"

#include <stdlib.h>
#include <string.h>

#define CLASS_SIZE_MIN 32
#define CLASS_LARGE WEIR_GRPC_MEMORY_CLASSES /* of no list */

/* Before each block's bytes. */
struct weir_grpc_block {
    union {
        struct weir_grpc_block *next; /* while it lies idle */
        size_t size;                  /* of its bytes, while in use */
    };
    uint64_t size_class;
};
_Static_assert(sizeof(struct weir_grpc_block) == 16, "blocks keep malloc's alignment");

static unsigned class_of(size_t size)
{
    unsigned size_class = 0;
    while (size_class < CLASS_LARGE && (size_t)CLASS_SIZE_MIN << size_class < size)
        size_class++;
    return size_class;
}

void *weir_grpc_malloc(size_t size, void *context)
{
    struct weir_grpc_memory *memory = context;
    unsigned size_class = class_of(size);
    size_t bytes = size_class < CLASS_LARGE ? (size_t)CLASS_SIZE_MIN << size_class : size;
    struct weir_grpc_block *block = size_class < CLASS_LARGE ? memory->idle[size_class] : NULL;
    if (bytes > WEIR_GRPC_MEMORY_MAX || memory->used_bytes + bytes > WEIR_GRPC_MEMORY_MAX)
        return NULL;
    if (block) {
        memory->idle[size_class] = block->next;
        memory->idle_bytes -= bytes;
    } else {
        block = malloc(sizeof *block + bytes);
        if (!block)
            return NULL;
        block->size_class = size_class;
    }
    block->size = bytes;
    memory->used_bytes += bytes;
    return block + 1;
}

void *weir_grpc_calloc(size_t count, size_t size, void *memory)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *pointer = weir_grpc_malloc(bytes, memory);
    return pointer ? memset(pointer, 0, bytes) : NULL;
}

void weir_grpc_free(void *pointer, void *context)
{
    struct weir_grpc_memory *memory = context;
    if (!pointer)
        return;
    struct weir_grpc_block *block = (struct weir_grpc_block *)pointer - 1;
    size_t bytes = block->size;
    memory->used_bytes -= bytes;
    if (block->size_class == CLASS_LARGE ||
        memory->idle_bytes + bytes > WEIR_GRPC_MEMORY_IDLE_MAX) {
        free(block);
        return;
    }
    memory->idle_bytes += bytes;
    block->next = memory->idle[block->size_class];
    memory->idle[block->size_class] = block;
}

void *weir_grpc_realloc(void *pointer, size_t size, void *memory)
{
    if (!pointer)
        return weir_grpc_malloc(size, memory);
    const struct weir_grpc_block *block = (const struct weir_grpc_block *)pointer - 1;
    if (size <= block->size)
        return pointer;
    void *larger = weir_grpc_malloc(size, memory);
    if (!larger)
        return NULL;
    memcpy(larger, pointer, block->size);
    weir_grpc_free(pointer, memory);
    return larger;
}

void weir_grpc_memory_close(struct weir_grpc_memory *memory)
{
    for (unsigned i = 0; i < WEIR_GRPC_MEMORY_CLASSES; i++) {
        while (memory->idle[i]) {
            struct weir_grpc_block *block = memory->idle[i];
            memory->idle[i] = block->next;
            free(block);
        }
    }
    memory->idle_bytes = 0;
}
