/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of memory for calls and plans: size classes with free lists, so that the path of a
 * decision allocates nothing once it has been used as much as it is used now.
 *
 * A class is a power of two. An empty class cuts a slab of REDIS_SLABS_SLAB bytes (or one block,
 * where that is larger) into blocks; slabs are freed at the end only. The block given back last is
 * taken first, while the cache still holds it. All slabs together are bounded.
 *
 * Threads: one owner.
 */
#ifndef WEIR_STORE_REDIS_SLAB_H
#define WEIR_STORE_REDIS_SLAB_H

#include <stddef.h>
#include <stdint.h>

#define REDIS_SLABS_MIN 256           /* bytes: a call on a short key */
#define REDIS_SLABS_MAX (1024 * 1024) /* a call of 32 checks on keys of 16 KiB has room */
#define REDIS_SLABS_CLASSES 13        /* 256 << 12 = 1 MiB */
#define REDIS_SLABS_SLAB (64 * 1024)

struct redis_block;
struct redis_slab;

struct redis_slabs {
    struct redis_block *free[REDIS_SLABS_CLASSES];
    struct redis_slab *slabs;
    size_t bytes, bytes_max; /* of all slabs */
    size_t taken;            /* blocks in use */
};

void redis_slabs_init(struct redis_slabs *slabs, size_t bytes_max);

/* Frees all slabs, and with them whatever was not given back. */
void redis_slabs_end(struct redis_slabs *slabs);

/* `size` bytes, aligned for any type and not cleared. NULL: larger than REDIS_SLABS_MAX, no room
 * within the bound, or no memory. */
void *redis_slabs_take(struct redis_slabs *slabs, size_t size);

/* Gives it back, with the size that it was taken with. */
void redis_slabs_give(struct redis_slabs *slabs, void *block, size_t size);

#endif
