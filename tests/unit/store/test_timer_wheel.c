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

#include "store/timer_wheel.h"

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

static void a_deadline_expires_after_it_has_passed_and_not_before(void **state)
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

static void a_deadline_that_moves_later_is_found_at_its_new_time(void **state)
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, 1000);
    weir_wheel_set(&wheel, &node, 5000);
    assert_null(weir_wheel_expire(&wheel, 4999));
    assert_ptr_equal(weir_wheel_expire(&wheel, 5000 + TICK_MS), &node);
}

static void a_deadline_that_comes_nearer_is_found_in_time(void **state)
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, 60000);
    weir_wheel_set(&wheel, &node, 500);
    assert_ptr_equal(weir_wheel_expire(&wheel, 500 + TICK_MS), &node);
}

static void a_deadline_beyond_the_wheel_waits_for_its_time(void **state)
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

static void after_a_long_sleep_all_that_passed_expires(void **state)
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

static void a_removed_node_never_expires(void **state)
{
    struct weir_wheel wheel;
    struct weir_timer node = {0};
    weir_wheel_init(&wheel, TICK_MS, 0);
    weir_wheel_set(&wheel, &node, 100);
    weir_wheel_remove(&wheel, &node);
    weir_wheel_remove(&wheel, &node);
    assert_null(weir_wheel_expire(&wheel, 100000));
}

static void the_next_look_is_due_when_the_first_deadline_has_passed(void **state)
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
static void a_wheel_that_stood_still_finds_its_place(void **state)
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

static void random_deadlines_expire_as_in_a_plain_list(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deadline_expires_after_it_has_passed_and_not_before),
        cmocka_unit_test(a_deadline_that_moves_later_is_found_at_its_new_time),
        cmocka_unit_test(a_deadline_that_comes_nearer_is_found_in_time),
        cmocka_unit_test(a_deadline_beyond_the_wheel_waits_for_its_time),
        cmocka_unit_test(after_a_long_sleep_all_that_passed_expires),
        cmocka_unit_test(a_removed_node_never_expires),
        cmocka_unit_test(the_next_look_is_due_when_the_first_deadline_has_passed),
        cmocka_unit_test(a_wheel_that_stood_still_finds_its_place),
        cmocka_unit_test(random_deadlines_expire_as_in_a_plain_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
