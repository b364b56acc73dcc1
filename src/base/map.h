/* SPDX-License-Identifier: Apache-2.0 */
/* A set of items by what identifies them: a hash table of pointers, open addressing with linear
 * probing, at most half full.
 *
 *   slots   NULL | item | item | NULL | …   an item is at its hash, or behind it without a gap
 *
 * The items are the caller's: allocated, freed, and bounded by it. Their hashes come from the kind,
 * which a table is always used with; where a peer chooses what is hashed, the hash needs a secret
 * (core/text/siphash.h). Filtering moves items up that a probe would no longer reach (Knuth, TAOCP
 * vol. 3, 6.4, algorithm R).
 *
 * Memory: 16 to 32 bytes an item, and 8 * 2 * the items that it was opened for. Threads: one owner,
 * or a lock of the caller.
 */
#ifndef WEIR_BASE_MAP_H
#define WEIR_BASE_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct weir_map_kind {
    uint64_t (*hash)(const void *item);
    bool (*same)(const void *item, const void *key); /* whether it is the one that a key means */
};

struct weir_map {
    void **slots;
    uint32_t mask, count;
};

/* Makes an empty one, with room for `items` before it grows, 1 to 2^30. False: no memory. */
bool weir_map_open(struct weir_map *map, uint32_t items);

/* Frees it, not the items. */
void weir_map_close(struct weir_map *map);

/* The item of a key with this hash, or NULL. */
void *weir_map_find(const struct weir_map *map, const struct weir_map_kind *kind, uint64_t hash,
                    const void *key);

/* Adds an item that is not in it. False: no memory to grow, or 2^31 slots; nothing has changed. */
bool weir_map_add(struct weir_map *map, const struct weir_map_kind *kind, void *item);

/* The next item, in no order; *at is 0 before the first call. NULL: no more. Not while items are
 * added. */
void *weir_map_next(const struct weir_map *map, uint32_t *at);

/* Removes the items for which `keep` returns false, which may free them. It may ask twice about one
 * that it keeps. */
void weir_map_filter(struct weir_map *map, const struct weir_map_kind *kind,
                     bool (*keep)(void *context, void *item), void *context);

#endif
