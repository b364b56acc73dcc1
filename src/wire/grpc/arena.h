/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the messages of one call: taken in blocks, freed all at once.
 *
 * protobuf-c asks an allocator for every message, string and array that it reads, and frees none of
 * them one by one. An arena hands out the bytes of a block one after the other, asks its owner for
 * another block when one is used up, and never for more than its bound: what a message grows to in
 * memory is otherwise for its sender to say (two bytes on the wire may be 64 in memory).
 *
 * Threads: one owner.
 */
#ifndef WEIR_WIRE_GRPC_ARENA_H
#define WEIR_WIRE_GRPC_ARENA_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct weir_grpc_arena {
    ProtobufCAllocator allocator; /* its data is the arena */
    char *at, *end;               /* what is left of the block */
    size_t left;                  /* bytes that it may still ask for */
    /* A block of at least `size` bytes, *room of them; NULL: none. It stays the owner's. */
    char *(*grow)(void *owner, size_t size, size_t *room);
    void *owner;
    bool exhausted; /* something found no room */
};

/* Starts with no block. */
void weir_grpc_arena_init(struct weir_grpc_arena *arena, size_t bytes_max,
                          char *(*grow)(void *owner, size_t size, size_t *room), void *owner);

/* Aligned for any object; NULL: no room. */
void *weir_grpc_arena_take(struct weir_grpc_arena *arena, size_t size);

#endif
