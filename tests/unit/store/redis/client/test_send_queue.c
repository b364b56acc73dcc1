/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of calls, beside a plain array of what should be in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/redis/client/send_queue.h"
#include "test.h"

static void push(struct redis_send_queue *queue, struct redis_call *call)
{
    struct redis_place place = {.call = call, .kind = REDIS_PLACE_CALL};
    assert_int_equal(redis_send_queue_push(queue, place), 0);
}

TEST("places are popped in order")
{
    struct redis_send_queue queue = {0};
    struct redis_call calls[1000];
    for (int i = 0; i < 1000; i++)
        push(&queue, &calls[i]);
    for (int i = 0; i < 1000; i++)
        redis_send_queue_pass(&queue);
    for (int i = 0; i < 1000; i++) {
        assert_true(redis_send_queue_in_flight(&queue));
        assert_ptr_equal(redis_send_queue_pop(&queue).call, &calls[i]);
    }
    assert_false(redis_send_queue_in_flight(&queue));
    redis_send_queue_free(&queue);
}

TEST("who leaves before being sent is skipped")
{
    struct redis_send_queue queue = {0};
    struct redis_call calls[4];
    for (int i = 0; i < 4; i++)
        push(&queue, &calls[i]);
    assert_true(redis_send_queue_leave(&queue, &calls[0]));
    assert_true(redis_send_queue_leave(&queue, &calls[2]));
    for (int i = 0; i < 4; i++)
        redis_send_queue_pass(&queue);
    assert_ptr_equal(redis_send_queue_pop(&queue).call, &calls[1]);
    assert_false(redis_send_queue_leave(&queue, &calls[3])); /* it was sent: its reply will come */
    struct redis_place last = redis_send_queue_pop(&queue);
    assert_int_equal(last.kind, REDIS_PLACE_FORGOTTEN);
    assert_null(last.call);
    assert_false(redis_send_queue_in_flight(&queue));
    redis_send_queue_free(&queue);
}

TEST("those that left make room")
{
    struct redis_send_queue queue = {0};
    struct redis_call kept, passing;
    push(&queue, &kept);
    for (int i = 0; i < 100000; i++) {
        push(&queue, &passing);
        assert_true(redis_send_queue_leave(&queue, &passing));
    }
    assert_int_equal(queue.room, 256);
    redis_send_queue_pass(&queue);
    assert_ptr_equal(redis_send_queue_pop(&queue).call, &kept);
    redis_send_queue_free(&queue);
}

enum { CALLS = 3000, QUEUED = 0, SENT, LEFT, FORGOTTEN, POPPED };
static struct redis_call calls[CALLS];
static uint8_t status[CALLS];

/* The first of `from` on that has not left; `end` if there is none. */
static int next_present(int from, int end)
{
    while (from < end && status[from] == LEFT)
        from++;
    return from;
}

/* Sends the next that is still there, over all gaps before it. */
static void send_next(struct redis_send_queue *queue, int next)
{
    struct redis_place place;
    do {
        place = *redis_send_queue_at(queue, queue->sent);
        redis_send_queue_pass(queue);
    } while (place.kind == REDIS_PLACE_GAP);
    assert_ptr_equal(place.call, &calls[next]);
    status[next] = SENT;
}

static void pop_next(struct redis_send_queue *queue, int next)
{
    struct redis_place place = redis_send_queue_pop(queue);
    bool forgotten = status[next] == FORGOTTEN;
    assert_int_equal(place.kind, forgotten ? REDIS_PLACE_FORGOTTEN : REDIS_PLACE_CALL);
    assert_ptr_equal(place.call, forgotten ? NULL : &calls[next]);
    status[next] = POPPED;
}

/* Random pushes, sends, replies and leaves. */
TEST("a line is like its model")
{
    struct redis_send_queue queue = {.first = UINT32_MAX - 500, /* the numbers wrap around */
                                     .sent = UINT32_MAX - 500,
                                     .last = UINT32_MAX - 500};
    int pushed = 0, sent = 0, popped = 0;
    uint32_t random = 1;

    while (popped < CALLS) {
        random = random * 1664525 + 1013904223;
        unsigned what = random >> 28;
        int to_send = next_present(sent, pushed);
        if (what < 6 && pushed < CALLS) {
            push(&queue, &calls[pushed++]);
        } else if (what < 10 && to_send < pushed) {
            send_next(&queue, to_send);
            sent = to_send + 1;
        } else if (what < 12 && pushed > 0) {
            int i = (int)((random >> 8) % (uint32_t)pushed);
            if (status[i] == QUEUED || status[i] == SENT) {
                assert_int_equal(redis_send_queue_leave(&queue, &calls[i]), status[i] == QUEUED);
                status[i] = status[i] == QUEUED ? LEFT : FORGOTTEN;
            }
        } else if (next_present(popped, sent) < sent) {
            popped = next_present(popped, sent);
            pop_next(&queue, popped++);
        } else if (pushed == CALLS && to_send == CALLS) {
            popped = next_present(popped, CALLS); /* only those that left are left */
        }
    }
    redis_send_queue_free(&queue);
}

RUN_TESTS()
