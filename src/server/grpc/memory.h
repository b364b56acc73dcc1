/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for nghttp2, from lists of the worker's own.
 *
 * nghttp2 asks for some ten small blocks a stream and gives them back when it is closed. They come
 * from lists by size (powers of two from 32 bytes to 32 KiB; larger ones from malloc), so that in a
 * steady state nothing is allocated; and they are counted, so that what all sessions of a worker
 * hold together has a bound: past it nghttp2 hears that there is no memory and fails the session
 * that asked.
 *
 * Memory: blocks that lie idle are kept, up to WEIR_GRPC_MEMORY_IDLE_MAX. 16 bytes a block.
 * Threads: one owner.
 */
#ifndef WEIR_SERVER_GRPC_MEMORY_H
#define WEIR_SERVER_GRPC_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* 16,384 idle sessions are 400 MiB of 25 KiB each; twice that, and they are attacked. */
#define WEIR_GRPC_MEMORY_MAX ((size_t)1 << 30)
#define WEIR_GRPC_MEMORY_IDLE_MAX ((size_t)8 << 20)
#define WEIR_GRPC_MEMORY_CLASSES 11

struct weir_grpc_block;

struct weir_grpc_memory {
    struct weir_grpc_block *idle[WEIR_GRPC_MEMORY_CLASSES];
    size_t used_bytes, idle_bytes;
};

/* As malloc, calloc, realloc and free; `memory` is a struct weir_grpc_memory (zeroed at first). */
void *weir_grpc_malloc(size_t size, void *memory);
void *weir_grpc_calloc(size_t count, size_t size, void *memory);
void *weir_grpc_realloc(void *pointer, size_t size, void *memory);
void weir_grpc_free(void *pointer, void *memory);

/* Frees the idle blocks; all others must have been given back. */
void weir_grpc_memory_close(struct weir_grpc_memory *memory);

#endif
