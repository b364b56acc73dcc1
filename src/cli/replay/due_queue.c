/* SPDX-License-Identifier: Apache-2.0 */
/* see due_queue.h */
#include "cli/replay/due_queue.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#define ROOM_FIRST 64

static void *item_at(const struct due_queue *queue, size_t at)
{
    return queue->items + at * queue->item_size;
}

static bool is_before(const struct due_time *a, const struct due_time *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void put(struct due_queue *queue, size_t at, const void *item)
{
    memcpy(item_at(queue, at), item, queue->item_size);
}

void due_queue_free(struct due_queue *queue)
{
    free(queue->items);
    *queue = (struct due_queue){.item_size = queue->item_size};
}

int due_queue_push(struct due_queue *queue, const void *item)
{
    if (queue->count == queue->room) {
        size_t room = queue->room != 0 ? queue->room * 2 : ROOM_FIRST;
        char *items = realloc(queue->items, room * queue->item_size);
        if (!items)
            return WEIR_ERR_MEMORY;
        queue->items = items;
        queue->room = room;
    }
    struct due_time time;
    size_t at = queue->count++;
    memcpy(&time, item, sizeof time);
    time.number = queue->pushed++;
    for (; at > 0 && is_before(&time, item_at(queue, (at - 1) / 2)); at = (at - 1) / 2)
        put(queue, at, item_at(queue, (at - 1) / 2));
    put(queue, at, item);
    memcpy(item_at(queue, at), &time, sizeof time);
    return 0;
}

uint64_t due_queue_first_ns(const struct due_queue *queue)
{
    const struct due_time *first = item_at(queue, 0);
    return first->due_ns;
}

void due_queue_pop(struct due_queue *queue, void *item)
{
    size_t count = --queue->count, at = 0, child;
    const struct due_time *last = item_at(queue, count);
    memcpy(item, queue->items, queue->item_size);
    while ((child = 2 * at + 1) < count) {
        if (child + 1 < count && is_before(item_at(queue, child + 1), item_at(queue, child)))
            child++;
        if (!is_before(item_at(queue, child), last))
            break;
        put(queue, at, item_at(queue, child));
        at = child;
    }
    if (at != count)
        put(queue, at, last);
}
