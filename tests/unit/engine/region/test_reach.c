/* SPDX-License-Identifier: Apache-2.0 */
/* Resets and grants that also act in the homes of their keys, with fake stores for all regions. */
#include <string.h>

#include "core/bytes.h"
#include "feature/region/engine/question.h"
#include "feature/region/rules/home.h"
#include "rules/match/key_values.h"
#include "test.h"
#include "three_regions.h"

struct world {
    struct rig rig;
    struct fake_store *us;
    struct weir_store *regions[RULES_REGIONS_MAX];
    uint64_t now_ns;
};

#define A "- {name: a, algorithm: fixed_window, key: [user], rate: 40/h, global: "

static void open_world(struct world *world, const char *text)
{
    struct weir_rules *rules = rig_rules(text);
    memset(world, 0, sizeof *world);
    world->now_ns = START;
    world->us = fake_store_open_named();
    world->regions[1] = &world->us->base;
    rig_open_regions(&world->rig, rules, world->regions);
    weir_rules_unref(rules);
}

static void close_world(struct world *world)
{
    rig_close(&world->rig);
    fake_store_close(world->us);
}

static void run(struct world *world, struct weir_decision *decision)
{
    weir_engine_queue(world->rig.engine, decision);
    weir_engine_run(world->rig.engine, world->now_ns);
}

static uint32_t ask(struct world *world, uint32_t count)
{
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct weir_decision *decision = take_request(&world->rig, 1);
        run(world, decision);
        allowed += decision->verdict == WEIR_ALLOWED;
        weir_engine_release(world->rig.engine, decision);
    }
    return allowed;
}

/* An operation on ann's state of the first limit. */
static struct weir_decision *operate(struct world *world, enum weir_op op, uint64_t cost)
{
    struct weir_reason reason;
    const struct weir_key_values values = {.values = {weir_bytes_of("ann")}, .count = 1};
    struct weir_decision *decision = rig_take(&world->rig, 0);
    assert_int_equal(weir_engine_apply_key(world->rig.engine, decision, 0, &values, &reason), 0);
    decision->op = (uint8_t)op;
    decision->checks[0].cost = cost;
    decision->charged_at_ns = world->now_ns;
    weir_engine_reach_homes(decision);
    world->rig.done_count = 0;
    run(world, decision);
    return decision;
}

static bool unreached(const struct weir_decision *decision)
{
    struct weir_bytes region = {"", 0};
    bool is = weir_engine_unreached(decision, &region);
    assert_true(!is || weir_bytes_are(region, "us"));
    return is;
}

TEST("a reset acts in this region and in the home")
{
    struct world world;
    open_world(&world, REGIONS A "{floor: 10%, home: us, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 40), 36);
    struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
    assert_int_equal(world.rig.done_count, 1);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    assert_false(unreached(decision));
    assert_true(weir_engine_reached(decision));
    weir_engine_release(world.rig.engine, decision);
    assert_int_equal(ask(&world, 40), 36);
    assert_int_equal(weir_engine_questions(world.rig.engine, 1)->results[WEIR_QUESTION_LATE], 0);
    /* of a key that nobody has used there is nothing */
    decision = operate(&world, WEIR_OP_RESET, 1);
    weir_engine_release(world.rig.engine, decision);
    decision = operate(&world, WEIR_OP_RESET, 1);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_engine_release(world.rig.engine, decision);
    close_world(&world);
}

TEST("a floor that is nothing is reset in the home")
{
    struct world world;
    open_world(&world, REGIONS A "{floor: 0, home: us, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 50), 40);
    struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    weir_engine_release(world.rig.engine, decision);
    assert_int_equal(ask(&world, 50), 40);
    close_world(&world);
}

TEST("a home that lends is reached too")
{
    struct world world;
    open_world(&world, REGIONS "- {name: a, algorithm: fixed_window, key: [user], rate: 400/h,\n"
                               "   global: {floor: 10%, home: us}}\n");
    assert_int_equal(ask(&world, 50), 40);
    struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
    assert_int_equal(world.us->submits, 1);
    assert_false(unreached(decision));
    weir_engine_release(world.rig.engine, decision);
    assert_int_equal(ask(&world, 50), 40);
    close_world(&world);
}

TEST("a home that is not reached is left alone")
{
    static const char *const texts[] = {
        REGIONS "- {name: a, algorithm: fixed_window, key: [user], rate: 400/h,\n"
                "   global: {floor: 10%, home: us, lend: false}}\n",
        REGIONS A "{floor: 10%, home: eu, wait: 50ms}}\n",
    };
    for (int i = 0; i < 2; i++) {
        struct world world;
        open_world(&world, texts[i]);
        ask(&world, 3);
        struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
        assert_int_equal(decision->verdict, WEIR_ALLOWED);
        assert_false(unreached(decision) || weir_engine_reached(decision));
        assert_int_equal(world.us->submits, 0);
        weir_engine_release(world.rig.engine, decision);
        close_world(&world);
    }
}

TEST("a grant gives back in both")
{
    struct world world;
    struct weir_report report;
    open_world(&world, REGIONS A "{floor: 10%, home: us, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 40), 36);
    struct weir_decision *decision = operate(&world, WEIR_OP_REFUND, 3);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    assert_true(decision->outcomes[0].charged);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 32);
    assert_int_equal(report.remaining, 3);
    weir_engine_release(world.rig.engine, decision);
    assert_int_equal(ask(&world, 40), 6);
    close_world(&world);
}

TEST("a home that fails is named")
{
    for (int how = 0; how < 4; how++) {
        struct world world;
        open_world(&world, REGIONS A "{floor: 10%, home: us, wait: 50ms}}\n");
        assert_int_equal(ask(&world, 36), 36);
        if (how == 0)
            world.us->fails_at_once = WEIR_ERR_STORE;
        else if (how == 1)
            world.regions[1] = NULL;
        else
            world.us->later_every = 1;
        struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
        if (how == 2) {
            fake_store_fail(world.us, 0, WEIR_ERR_STORE);
        } else if (how == 3) {
            assert_int_equal(world.rig.done_count, 0);
            world.now_ns += WEIR_QUESTION_NS;
            weir_engine_run(world.rig.engine, world.now_ns);
        }
        assert_int_equal(world.rig.done_count, 1);
        assert_true(unreached(decision));
        assert_int_equal(decision->verdict, WEIR_ALLOWED); /* this region's state is gone */
        weir_engine_release(world.rig.engine, decision);
        world.us->later_every = 0;
        world.us->fails_at_once = 0;
        assert_int_equal(ask(&world, 40), 4);
        close_world(&world);
    }
}

TEST("the own store fails first")
{
    struct world world;
    open_world(&world, REGIONS A "{floor: 10%, home: us, wait: 50ms}}\n");
    ask(&world, 3);
    world.rig.store->fails_at_once = WEIR_ERR_STORE;
    struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
    assert_int_equal(decision->error, WEIR_ERR_STORE);
    assert_int_equal(world.us->submits, 0);
    weir_engine_release(world.rig.engine, decision);
    close_world(&world);
}

TEST("an operator who leaves ends nothing")
{
    struct world world;
    open_world(&world, REGIONS A "{floor: 10%, home: us, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 36), 36);
    world.us->later_every = 1;
    struct weir_decision *decision = operate(&world, WEIR_OP_RESET, 1);
    weir_engine_cancel(world.rig.engine, decision);
    fake_store_answer(world.us, 0);
    weir_engine_run(world.rig.engine, world.now_ns);
    assert_int_equal(world.us->pending_count, 0);
    world.us->later_every = 0;
    assert_int_equal(ask(&world, 40), 36);
    close_world(&world);
}

RUN_TESTS()
