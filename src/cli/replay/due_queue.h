/* SPDX-License-Identifier: Apache-2.0 */
/* A priority queue of items that are due at a time: a binary heap (Williams 1964), the earliest
 * first, and of those due at one time the one that came first.
 *
 * Items are copied. They are structs of one size, whose first member is a struct due_time.
 *
 * Memory: the items, in one block that doubles. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_DUE_QUEUE_H
#define WEIR_CLI_REPLAY_DUE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct due_time {
    uint64_t due_ns;
    uint64_t number; /* of the item among all that came; due_queue_push sets it */
};

/* All zero, except the size of an item: an empty queue. */
struct due_queue {
    size_t item_size;
    size_t count, room;
    uint64_t pushed;
    char *items;
};

void due_queue_free(struct due_queue *queue);

/* Copies an item into the queue. Errors: WEIR_ERR_MEMORY. */
int due_queue_push(struct due_queue *queue, const void *item) __attribute__((warn_unused_result));

/* The time of the first item; the queue must not be empty. */
uint64_t due_queue_first_ns(const struct due_queue *queue);

/* Copies the first item out and removes it; the queue must not be empty. */
void due_queue_pop(struct due_queue *queue, void *item);

#endif
