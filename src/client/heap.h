/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of items that know their places, so that any of them can be removed.
 *
 * An item is a member of the caller's struct. The least one, by the caller's order, is items[0].
 * Memory: a pointer for each item; a heap grows by doubling and never shrinks. Threads: one owner.
 */
#ifndef WEIR_CLIENT_HEAP_H
#define WEIR_CLIENT_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct weir_heap_item {
    size_t place; /* its index and 1; 0: it is in no heap */
};

struct weir_heap {
    struct weir_heap_item **items;
    size_t count, room;
    bool (*before)(const struct weir_heap_item *a, const struct weir_heap_item *b);
};

/* False: no memory; nothing has changed. */
bool weir_heap_add(struct weir_heap *heap, struct weir_heap_item *item)
    __attribute__((warn_unused_result));

/* An item that is in no heap is ignored. */
void weir_heap_remove(struct weir_heap *heap, struct weir_heap_item *item);

void weir_heap_free(struct weir_heap *heap);

static inline struct weir_heap_item *weir_heap_first(const struct weir_heap *heap)
{
    return heap->count > 0 ? heap->items[0] : NULL;
}

#endif
