/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of one rules file: many small pieces, freed together.
 *
 * A loaded file is immutable and dies as a whole, so nothing in it is freed alone: an arena of
 * blocks of 64 KiB (larger pieces get a block of their own) replaces a free() for each of ten
 * thousand limits. Threads: one owner.
 */
#ifndef WEIR_RULES_ARENA_H
#define WEIR_RULES_ARENA_H

#include <stddef.h>

struct rules_arena_block;

/* All zero is empty. */
struct rules_arena {
    struct rules_arena_block *last;
};

/* `size` zeroed bytes, aligned for any type; NULL when memory is out. */
void *rules_arena_alloc(struct rules_arena *arena, size_t size);

/* A copy of `size` bytes with a NUL behind it; NULL when memory is out. */
char *rules_arena_copy(struct rules_arena *arena, const char *text, size_t size);

void rules_arena_free(struct rules_arena *arena);

#endif
