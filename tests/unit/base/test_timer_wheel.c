/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: never early, at most a tick late, however time moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/timer_wheel.h"
#include "test.h"

#define TICK_MS 250
#define NODES 500

/* What the wheel has to be like: all deadlines in one array. */
struct model {
    struct weir_wheel wheel;
    struct weir_timer nodes[NODES];
    bool set[NODES];
    uint64_t random;
};

static uint64_t draw(struct model *model, uint64_t below)
{
    model->random = model->random * 6364136223846793005u + 1442695040888963407u;
    return (model->random >> 33) % below;
}

TEST("a deadline expires after it has passed and not before")
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 1000);
    weir_wheel_set(&wheel, &node, 1600);
    assert_null(weir_wheel_expire(&wheel, 1599));
    assert_ptr_equal(weir_wheel_expire(&wheel, 1600 + TICK_MS), &node);
    assert_null(weir_wheel_expire(&wheel, 100000));
    assert_null(node.next);
}

TEST("a deadline that moves later is found at its new time")
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, 1000);
    weir_wheel_set(&wheel, &node, 5000);
    assert_null(weir_wheel_expire(&wheel, 4999));
    assert_ptr_equal(weir_wheel_expire(&wheel, 5000 + TICK_MS), &node);
}

TEST("a deadline that comes nearer is found in time")
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, 60000);
    weir_wheel_set(&wheel, &node, 500);
    assert_ptr_equal(weir_wheel_expire(&wheel, 500 + TICK_MS), &node);
}

TEST("a deadline beyond the wheel waits for its time")
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    uint64_t deadline_ms = 10 * WEIR_WHEEL_SLOTS * TICK_MS;
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, deadline_ms);
    for (uint64_t now_ms = 0; now_ms < deadline_ms; now_ms += 333)
        assert_null(weir_wheel_expire(&wheel, now_ms));
    assert_ptr_equal(weir_wheel_expire(&wheel, deadline_ms + TICK_MS), &node);
}

TEST("after a long sleep all that passed expires")
{
    struct weir_wheel wheel;
    struct weir_timer nodes[3] = {{0}};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &nodes[0], 100);
    weir_wheel_set(&wheel, &nodes[1], 30000);
    weir_wheel_set(&wheel, &nodes[2], 1u << 30);
    assert_non_null(weir_wheel_expire(&wheel, 1u << 29));
    assert_non_null(weir_wheel_expire(&wheel, 1u << 29));
    assert_null(weir_wheel_expire(&wheel, 1u << 29));
    assert_ptr_equal(weir_wheel_expire(&wheel, (1u << 30) + TICK_MS), &nodes[2]);
}

TEST("a removed node never expires")
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, 100);
    weir_wheel_remove(&wheel, &node);
    weir_wheel_remove(&wheel, &node);
    assert_null(weir_wheel_expire(&wheel, 100000));
}

TEST("the next look is due when the first deadline has passed")
{
    struct weir_wheel wheel;
    struct weir_timer nodes[2] = {{0}};
    weir_wheel_init(&wheel, TICK_MS, 0);
    assert_int_equal(weir_wheel_due(&wheel), UINT64_MAX);
    weir_wheel_set(&wheel, &nodes[0], 900);
    weir_wheel_set(&wheel, &nodes[1], 30000);
    assert_int_equal(weir_wheel_due(&wheel), 1000);
    assert_ptr_equal(weir_wheel_expire(&wheel, 1000), &nodes[0]);
    assert_null(weir_wheel_expire(&wheel, 1000));
    assert_int_equal(weir_wheel_due(&wheel), 30250);
    weir_wheel_remove(&wheel, &nodes[1]);
    assert_int_equal(weir_wheel_due(&wheel), UINT64_MAX);
}

/* As a wheel that is opened before anybody knows the time: the first look finds where it is. */
TEST("a wheel that stood still finds its place")
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    const uint64_t now_ms = UINT64_C(1700000000000);
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, now_ms + 600);
    assert_null(weir_wheel_expire(&wheel, now_ms));
    assert_in_range(weir_wheel_due(&wheel), now_ms + 600, now_ms + 600 + TICK_MS);
    assert_null(weir_wheel_expire(&wheel, now_ms + 599));
    assert_ptr_equal(weir_wheel_expire(&wheel, now_ms + 600 + TICK_MS), &node);
}

static void check_expired(struct model *model, uint64_t now_ms)
{
    struct weir_timer *node;
    while ((node = weir_wheel_expire(&model->wheel, now_ms))) {
        size_t i = (size_t)(node - model->nodes);
        assert_true(model->set[i]);
        assert_true(node->deadline <= now_ms);
        model->set[i] = false;
    }
    uint64_t due_ms = weir_wheel_due(&model->wheel);
    assert_true(due_ms > now_ms);
    for (size_t i = 0; i < NODES; i++)
        assert_false(model->set[i] && model->nodes[i].deadline + TICK_MS < due_ms);
    for (size_t i = 0; i < NODES; i++)
        assert_false(model->set[i] && model->nodes[i].deadline + TICK_MS <= now_ms);
}

TEST("random deadlines expire as in a plain list")
{
    struct model *model = calloc(1, sizeof *model);
    uint64_t now_ms = 7;
    assert_non_null(model);
    model->random = 42;
    weir_wheel_init(&model->wheel, TICK_MS, now_ms);
    for (int step = 0; step < 20000; step++) {
        size_t i = draw(model, NODES);
        if (draw(model, 10) == 0) {
            weir_wheel_remove(&model->wheel, &model->nodes[i]);
            model->set[i] = false;
        } else {
            weir_wheel_set(&model->wheel, &model->nodes[i], now_ms + draw(model, 100000));
            model->set[i] = true;
        }
        now_ms += draw(model, 1000) == 0 ? draw(model, 200000) : draw(model, 40);
        check_expired(model, now_ms);
    }
    free(model);
}

RUN_TESTS()
