/* SPDX-License-Identifier: Apache-2.0 */
/* see heap.h */
#include "client/heap.h"

#include <stdlib.h>

static void put(struct weir_heap *heap, size_t at, struct weir_heap_item *item)
{
    heap->items[at] = item;
    item->place = at + 1;
}

static void up(struct weir_heap *heap, size_t at, struct weir_heap_item *item)
{
    while (at > 0 && heap->before(item, heap->items[(at - 1) / 2])) {
        put(heap, at, heap->items[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(heap, at, item);
}

static void down(struct weir_heap *heap, size_t at, struct weir_heap_item *item)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < heap->count && heap->before(heap->items[child + 1], heap->items[child]))
            child++;
        if (child >= heap->count || !heap->before(heap->items[child], item))
            break;
        put(heap, at, heap->items[child]);
        at = child;
    }
    put(heap, at, item);
}

bool weir_heap_add(struct weir_heap *heap, struct weir_heap_item *item)
{
    if (heap->count == heap->room) {
        size_t room = heap->room > 0 ? heap->room * 2 : 16;
        struct weir_heap_item **items = realloc(heap->items, room * sizeof(void *));
        if (!items)
            return false;
        heap->items = items;
        heap->room = room;
    }
    up(heap, heap->count++, item);
    return true;
}

void weir_heap_remove(struct weir_heap *heap, struct weir_heap_item *item)
{
    if (item->place == 0)
        return;
    size_t at = item->place - 1;
    item->place = 0;
    struct weir_heap_item *last = heap->items[--heap->count];
    if (last == item)
        return;
    if (at > 0 && heap->before(last, heap->items[(at - 1) / 2]))
        up(heap, at, last);
    else
        down(heap, at, last);
}

void weir_heap_free(struct weir_heap *heap)
{
    free(heap->items);
    heap->items = NULL;
    heap->count = heap->room = 0;
}
