/* SPDX-License-Identifier: Apache-2.0 */
/* Items by their due time: against a sorted list, and without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/due_queue.h"
#include "failing_memory.h"
#include "test.h"

#include <weir/error.h>

struct item {
    struct due_time time;
    uint32_t name;
};

static void push(struct due_queue *queue, uint64_t due_ns, uint32_t name)
{
    const struct item item = {.time.due_ns = due_ns, .name = name};
    assert_int_equal(due_queue_push(queue, &item), 0);
}

static uint32_t pop(struct due_queue *queue)
{
    struct item item;
    assert_true(queue->count > 0);
    uint64_t first_ns = due_queue_first_ns(queue);
    due_queue_pop(queue, &item);
    assert_int_equal(item.time.due_ns, first_ns);
    return item.name;
}

TEST("items of one time leave in the order they came")
{
    struct due_queue queue = {.item_size = sizeof(struct item)};
    for (uint32_t i = 0; i < 100; i++)
        push(&queue, i < 50 ? 7 : 3, i);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(pop(&queue), (i + 50) % 100);
    assert_int_equal(queue.count, 0);
    due_queue_free(&queue);
}

/* The slow model: the least of all that are there. */
static size_t least(const struct item *items, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        if (items[i].time.due_ns < items[best].time.due_ns ||
            (items[i].time.due_ns == items[best].time.due_ns && items[i].name < items[best].name))
            best = i;
    return best;
}

TEST("random pushes and pops are those of a list")
{
    enum { MOST = 300 };
    struct due_queue queue = {.item_size = sizeof(struct item)};
    struct item model[MOST];
    uint32_t name = 0;
    size_t count = 0;
    srand(1);
    for (int turn = 0; turn < 20000; turn++) {
        if (count < MOST && (count == 0 || rand() % 2 == 0)) {
            model[count] = (struct item){.time.due_ns = (uint64_t)(rand() % 40), .name = name++};
            push(&queue, model[count].time.due_ns, model[count].name);
            count++;
            continue;
        }
        size_t first = least(model, count);
        assert_int_equal(pop(&queue), model[first].name);
        model[first] = model[--count];
    }
    assert_int_equal(queue.count, count);
    due_queue_free(&queue);
}

TEST("without memory nothing is lost")
{
    const struct item more = {.time.due_ns = 1, .name = 1000};
    struct due_queue queue = {.item_size = sizeof(struct item)};
    size_t room;
    push(&queue, 1, 0);
    room = queue.room;
    for (uint32_t i = 1; i < room; i++)
        push(&queue, 1, i);
    failing_memory_after(0);
    int error = due_queue_push(&queue, &more);
    assert_true(failing_memory_stop());
    assert_int_equal(error, WEIR_ERR_MEMORY);
    for (uint32_t i = 0; i < room; i++)
        assert_int_equal(pop(&queue), i);
    due_queue_free(&queue);
}

RUN_TESTS()
