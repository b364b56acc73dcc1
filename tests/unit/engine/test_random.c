/* SPDX-License-Identifier: Apache-2.0 */
/* A front end and a store that do anything at any time: every decision is reported exactly once,
 * or, when it was cancelled, never; and all find back to the pool. */
#include <string.h>

#include "draw.h"
#include "engine/counters.h"
#include "rig.h"
#include "test.h"

#define POOL 48

enum life { IDLE, TAKEN, QUEUED, FINISHED };

struct client {
    struct weir_decision *decision;
    enum life life;
    bool chatty; /* cancels or queues another one from `done` */
};

static struct client clients[POOL];
static struct weir_limit limit;
static struct rig rig;
static uint64_t random_state, now_ns, reported, cancelled;

static uint64_t draw(uint64_t below)
{
    return draw_below(&random_state, below);
}

static void take(struct client *client)
{
    client->decision = weir_engine_take(rig.engine);
    if (client->decision == NULL)
        return; /* cancelled ones come back with the next run */
    client->decision->owner = client;
    client->life = TAKEN;
    client->chatty = draw(4) == 0;
    rig_check(client->decision, &limit, "k", 1)->on_store_error = (uint8_t)draw(3);
    if (draw(3) == 0)
        client->decision->deadline_ns = now_ns + draw(2 * DEADLINE);
}

static void cancel(struct client *client)
{
    weir_engine_cancel(rig.engine, client->decision);
    client->life = IDLE;
    cancelled++;
}

static void queue(struct client *client)
{
    weir_engine_queue(rig.engine, client->decision);
    client->life = QUEUED;
}

/* What a front end may do whenever it has the turn. */
static void act(struct client *client)
{
    switch (client->life) {
    case IDLE:
        take(client);
        break;
    case TAKEN:
        if (draw(8) == 0)
            cancel(client);
        else
            queue(client);
        break;
    case QUEUED: /* or decided, or pending: it cannot know */
        if (draw(8) == 0)
            cancel(client);
        break;
    case FINISHED:
        if (draw(8) == 0)
            cancel(client);
        else
            weir_engine_release(rig.engine, client->decision);
        client->life = IDLE;
        break;
    }
}

static void result(struct rig *same, struct weir_decision *decision)
{
    struct client *client = decision->owner;
    assert_ptr_equal(client->decision, decision);
    assert_int_equal(client->life, QUEUED); /* once, and not after it was cancelled */
    client->life = FINISHED;
    reported++;
    rig.done_count = 0;
    if (client->chatty)
        for (uint64_t times = draw(4); times > 0; times--)
            act(&clients[draw(POOL)]);
}

static void store_acts(void)
{
    if (rig.store->pending_count == 0)
        return;
    uint32_t index = (uint32_t)draw(rig.store->pending_count);
    if (draw(3) == 0)
        fake_store_fail(rig.store, index, WEIR_ERR_STORE);
    else
        fake_store_answer(rig.store, index);
}

TEST("whatever happens every decision is reported once or cancelled")
{
    rig_open(&rig, POOL, true);
    rig.on_done = result;
    limit = rig_limit(WEIR_GCRA, 1000, SECOND);
    random_state = 2463534242U;
    now_ns = START;
    for (int step = 0; step < 200000; step++) {
        rig.store->later_every = (uint32_t)draw(4);
        switch (draw(8)) {
        case 0:
            weir_engine_run(rig.engine, now_ns);
            break;
        case 1:
            store_acts();
            break;
        case 2:
            now_ns += draw(DEADLINE / 4);
            break;
        default:
            act(&clients[draw(POOL)]);
            break;
        }
    }
    assert_true(reported > 1000 && cancelled > 1000);
    assert_true(weir_engine_failures(rig.engine)->late > 100);

    /* Drained, nothing is pending and the whole pool is there. */
    for (int i = 0; i < POOL; i++)
        if (clients[i].life != IDLE)
            cancel(&clients[i]);
    assert_int_equal(weir_engine_run(rig.engine, now_ns), WEIR_NEVER);
    assert_int_equal(weir_engine_pending(rig.engine), 0);
    assert_int_equal(rig.store->pending_count, 0);
    for (int i = 0; i < POOL; i++)
        rig_take(&rig, 0);
    assert_null(weir_engine_take(rig.engine));
    rig_close(&rig);
}

RUN_TESTS()
