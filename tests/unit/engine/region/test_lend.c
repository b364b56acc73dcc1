/* SPDX-License-Identifier: Apache-2.0 */
/* The second decision, with units that another region lends: a fake store of the own region, and
 * fake homes that hold so many units. */
#include <string.h>

#include "core/bytes.h"
#include "engine/counters.h"
#include "feature/region/engine/lend.h"
#include "feature/region/rules/home.h"
#include "feature/reserve/engine/reservation.h"
#include "test.h"
#include "three_regions.h"

/* A home with units at hand. */
struct home {
    struct weir_store base; /* first */
    uint64_t units, taken, back, wait_ns;
    uint32_t ahead, looks, takes;
    uint64_t limit; /* of the last check */
};

static bool lend(struct weir_store *store, enum weir_lend how, const struct weir_check *check,
                 struct weir_outcome *outcome, struct weir_lent *lent)
{
    struct home *home = (struct home *)store;
    bool covered = check->cost <= home->units;
    home->ahead += how == WEIR_LEND_AHEAD;
    home->looks += how == WEIR_LEND_LOOK;
    home->takes += how == WEIR_LEND_TAKE;
    home->limit = check->limit->capacity;
    *lent = (struct weir_lent){{0}, {0}};
    *outcome = (struct weir_outcome){.verdict = covered ? WEIR_ALLOWED : WEIR_DENIED,
                                     .reported = true,
                                     .report = {.limit = check->limit->capacity,
                                                .remaining = home->units,
                                                .retry_after_ns = covered ? 0 : home->wait_ns,
                                                .reset_after_ns = SECOND}};
    if (covered && how == WEIR_LEND_TAKE) {
        *lent = (struct weir_lent){{9, 0}, {check->cost, 0}};
        home->units -= check->cost;
        home->taken += check->cost;
        outcome->report.remaining = home->units;
    }
    return covered;
}

static void put_back(struct weir_store *store, const struct weir_check *check,
                     const struct weir_lent *lent)
{
    struct home *home = (struct home *)store;
    assert_int_equal(home->limit, check->limit->capacity);
    home->back += lent->units[0] + lent->units[1];
    home->units += lent->units[0] + lent->units[1];
}

static const struct weir_store_ops home_ops = {.lend = lend, .put_back = put_back};

struct world {
    struct rig rig;
    struct home us, ap;
    struct weir_store *regions[RULES_REGIONS_MAX];
};

#define A "{name: a, key: [user], algorithm: fixed_window, rate: 100/h, "
#define FLOOR "global: {floor: 10%, home: us}"

static void open_world(struct world *world, const char *text, uint64_t units)
{
    struct weir_rules *rules = rig_rules(text);
    memset(world, 0, sizeof *world);
    world->us = (struct home){.base.ops = &home_ops, .units = units, .wait_ns = SECOND / 10};
    world->ap = (struct home){.base.ops = &home_ops, .units = units, .wait_ns = SECOND / 10};
    world->regions[1] = &world->us.base;
    world->regions[2] = &world->ap.base;
    rig_open_regions(&world->rig, rules, world->regions);
    weir_rules_unref(rules);
}

static struct weir_decision *run(struct world *world, struct weir_decision *decision)
{
    weir_engine_queue(world->rig.engine, decision);
    weir_engine_run(world->rig.engine, START);
    return decision;
}

/* Asks with a cost of 1 so often; returns how many were allowed. */
static uint32_t ask(struct world *world, uint32_t count)
{
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct weir_decision *decision = run(world, take_request(&world->rig, 1));
        allowed += decision->verdict == WEIR_ALLOWED;
        weir_engine_release(world->rig.engine, decision);
    }
    return allowed;
}

static const struct weir_engine_counters *counters(struct world *world, const char *name)
{
    return weir_engine_find_counters(world->rig.engine, name, strlen(name));
}

TEST("what the floor denies the home lends")
{
    struct world world;
    open_world(&world, REGIONS "- " A FLOOR "}", 7);
    assert_int_equal(ask(&world, 30), 10 + 7);
    assert_int_equal(world.us.taken, 7);
    assert_int_equal(world.us.back, 0);
    assert_int_equal(world.us.limit, 80); /* the home's part */
    assert_int_equal(world.ap.takes, 0);
    assert_int_equal(counters(&world, "a")->counts.allowed, 17);
    assert_int_equal(counters(&world, "a")->lent, 7);
    assert_int_equal(counters(&world, "a")->counts.denied, 13);
    assert_int_equal(counters(&world, "a")->floor_denied, 13);
    rig_close(&world.rig);
}

TEST("a lent answer reports the home")
{
    struct world world;
    struct weir_report report;
    open_world(&world, REGIONS "- " A FLOOR "}", 7);
    assert_int_equal(ask(&world, 10), 10);
    struct weir_decision *decision = run(&world, take_request(&world.rig, 2));
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 80);
    assert_int_equal(report.remaining, 5);
    assert_int_equal(decision->checks[0].limit->capacity, 80);
    assert_int_equal(decision->checks[0].flags, 0);
    rig_close(&world.rig);
}

/* A candidate of 50/h has a floor of 5 here, and nothing is lent of it. */
TEST("a candidate is not tried on what is lent")
{
    struct world world;
    open_world(&world, REGIONS "- " A FLOOR ", candidate: 50/h}", 7);
    const _Atomic uint64_t *trials = counters(&world, "a")->trials;
    assert_int_equal(ask(&world, 30), 10 + 7);
    assert_int_equal(trials[WEIR_TRIAL_BOTH_ALLOW], 5);
    assert_int_equal(trials[WEIR_TRIAL_STRICTER], 5);
    assert_int_equal(trials[WEIR_TRIAL_SKIPPED], 7);
    assert_int_equal(trials[WEIR_TRIAL_BOTH_DENY], 13);
    rig_close(&world.rig);
}

TEST("a home is asked ahead from half the floor on")
{
    struct world world;
    open_world(&world, REGIONS "- " A FLOOR "}", 0);
    ask(&world, 4);
    assert_int_equal(world.us.ahead, 0);
    ask(&world, 6);
    assert_int_equal(world.us.ahead, 6);
    assert_int_equal(world.us.takes, 0);
    assert_int_equal(world.ap.ahead, 0);
    rig_close(&world.rig);
}

TEST("a denial says the shorter wait")
{
    struct world world;
    struct weir_report report;
    open_world(&world, REGIONS "- " A FLOOR "}", 0);
    ask(&world, 10);
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.retry_after_ns, SECOND / 10);
    assert_int_equal(report.limit, 10);
    world.us.wait_ns = WEIR_NEVER;
    decision = run(&world, take_request(&world.rig, 1));
    weir_decision_report(decision, 0, &report);
    assert_in_range(report.retry_after_ns, SECOND, 3600 * SECOND);
    rig_close(&world.rig);
}

TEST("a peek takes nothing")
{
    struct world world;
    open_world(&world, REGIONS "- " A FLOOR "}", 3);
    ask(&world, 10);
    for (int i = 0; i < 5; i++) {
        struct weir_decision *decision = take_request(&world.rig, 1);
        decision->op = WEIR_OP_PEEK;
        assert_int_equal(run(&world, decision)->verdict, WEIR_ALLOWED);
    }
    assert_int_equal(world.us.units, 3);
    assert_int_equal(world.us.looks, 5);
    assert_int_equal(counters(&world, "a")->lent, 0);
    rig_close(&world.rig);
}

static const char with_own[] =
    REGIONS "- " A FLOOR "}\n"
            "- {name: b, key: [user], algorithm: fixed_window, rate: 12/h}\n";

TEST("units go back when another limit denies")
{
    struct world world;
    open_world(&world, with_own, 50);
    assert_int_equal(ask(&world, 12), 12);
    assert_int_equal(world.us.taken - world.us.back, 2);
    /* b denies in the first decision already: nothing is asked */
    uint32_t takes = world.us.takes;
    assert_int_equal(ask(&world, 5), 0);
    assert_int_equal(world.us.takes, takes);
    assert_int_equal(counters(&world, "b")->counts.allowed, 12);
    rig_close(&world.rig);
}

/* Two requests are on their way at one time, and b has room for one of them. */
TEST("units go back when the second decision is denied")
{
    struct world world;
    open_world(&world, with_own, 50);
    assert_int_equal(ask(&world, 11), 11);
    world.rig.store->later_every = 1;
    struct weir_decision *one = run(&world, take_request(&world.rig, 1)),
                         *two = run(&world, take_request(&world.rig, 1));
    assert_int_equal(world.rig.store->pending_count, 2);
    fake_store_answer(world.rig.store, 0);
    fake_store_answer(world.rig.store, 0);
    weir_engine_run(world.rig.engine, START);
    assert_int_equal(world.rig.store->pending_count, 2); /* the second tries */
    assert_int_equal(world.us.taken, 3);
    fake_store_answer(world.rig.store, 0);
    fake_store_answer(world.rig.store, 0);
    assert_int_equal(one->verdict, WEIR_ALLOWED);
    assert_int_equal(two->verdict, WEIR_DENIED);
    assert_int_equal(world.us.back, 1);
    assert_int_equal(two->checks[0].limit->capacity, 10);
    assert_int_equal(counters(&world, "a")->lent, 2);
    /* the floor was covered: b is to blame */
    assert_int_equal(two->outcomes[0].verdict, WEIR_ALLOWED);
    assert_int_equal(two->denied_by, 1);
    assert_int_equal(counters(&world, "a")->floor_denied, 0);
    assert_int_equal(counters(&world, "a")->counts.denied, 0);
    assert_int_equal(counters(&world, "b")->counts.denied, 1);
    rig_close(&world.rig);
}

static struct weir_decision *second_try(struct world *world)
{
    open_world(world, with_own, 50);
    assert_int_equal(ask(world, 10), 10);
    world->rig.store->later_every = 1;
    struct weir_decision *decision = run(world, take_request(&world->rig, 1));
    fake_store_answer(world->rig.store, 0);
    weir_engine_run(world->rig.engine, START);
    assert_int_equal(world->us.taken, 1);
    assert_int_equal(world->rig.store->pending_count, 1);
    return decision;
}

TEST("units go back when the store fails")
{
    struct world world;
    struct weir_decision *decision = second_try(&world);
    fake_store_fail(world.rig.store, 0, WEIR_ERR_STORE);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->source, WEIR_SOURCE_STORE);
    assert_int_equal(decision->checks[0].limit->capacity, 10);
    assert_int_equal(world.us.back, 1);
    rig_close(&world.rig);
}

TEST("units go back when the deadline passes")
{
    struct world world;
    struct weir_decision *decision = second_try(&world);
    weir_engine_run(world.rig.engine, START + 2 * DEADLINE);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(world.us.back, 1);
    rig_close(&world.rig);
}

TEST("units go back when the client leaves")
{
    struct world world;
    struct weir_decision *decision = second_try(&world);
    weir_engine_cancel(world.rig.engine, decision);
    assert_int_equal(world.us.back, 1);
    rig_close(&world.rig);
}

/* As second_try, with an idempotency key. */
static struct weir_decision *second_try_once(struct world *world)
{
    struct weir_reason reason;
    open_world(world, with_own, 50);
    assert_int_equal(ask(world, 10), 10);
    world->rig.store->later_every = 1;
    struct weir_decision *decision = take_request(&world->rig, 1);
    assert_int_equal(
        weir_engine_apply_idempotency(world->rig.engine, decision, weir_bytes_of("once"), &reason),
        0);
    run(world, decision);
    fake_store_answer(world->rig.store, 0);
    weir_engine_run(world->rig.engine, START);
    assert_int_equal(world->us.taken, 1);
    assert_int_equal(world->rig.store->pending_count, 1);
    return decision;
}

/* The own store may have recorded the key: the repetition is admitted without a charge. */
TEST("units stay charged when a recorded request is late")
{
    struct world world;
    struct weir_decision *decision = second_try_once(&world);
    weir_engine_run(world.rig.engine, START + 2 * DEADLINE);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_engine_release(world.rig.engine, decision);
    assert_int_equal(world.us.back, 0);
    rig_close(&world.rig);
}

TEST("units stay charged when the client of a recorded request leaves")
{
    struct world world;
    struct weir_decision *decision = second_try_once(&world);
    weir_engine_cancel(world.rig.engine, decision);
    assert_int_equal(world.us.back, 0);
    rig_close(&world.rig);
}

TEST("a repeat is lent nothing")
{
    struct world world;
    struct weir_reason reason;
    open_world(&world, REGIONS "- " A FLOOR "}", 50);
    assert_int_equal(ask(&world, 10), 10);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision = take_request(&world.rig, 1);
        assert_int_equal(weir_engine_apply_idempotency(world.rig.engine, decision,
                                                       weir_bytes_of("once"), &reason),
                         0);
        assert_int_equal(run(&world, decision)->verdict, WEIR_ALLOWED);
        assert_int_equal(decision->repeated, i > 0);
    }
    assert_int_equal(world.us.taken - world.us.back, 1);
    rig_close(&world.rig);
}

TEST("a reservation is not lent")
{
    struct world world;
    struct weir_reason reason;
    open_world(&world, REGIONS "- " A FLOOR "}", 50);
    assert_int_equal(ask(&world, 10), 10);
    struct weir_decision *decision = take_request(&world.rig, 1);
    assert_int_equal(weir_engine_apply_reservation(world.rig.engine, decision, 1,
                                                   WEIR_RESERVATION_LIFE_NS, &reason),
                     0);
    assert_int_equal(run(&world, decision)->verdict, WEIR_DENIED);
    assert_int_equal(world.us.takes, 0);
    weir_engine_release(world.rig.engine, decision);
    assert_int_equal(ask(&world, 1), 1); /* the next decision in its place is none */
    rig_close(&world.rig);
}

TEST("a floor in shadow is not lent")
{
    struct world world;
    open_world(&world, REGIONS "- " A "shadow: true, " FLOOR "}", 50);
    assert_int_equal(ask(&world, 20), 20);
    assert_int_equal(world.us.takes, 0);
    assert_int_equal(counters(&world, "a")->counts.shadow_denied, 10);
    rig_close(&world.rig);
}

TEST("what a denial charges is charged once")
{
    struct world world;
    open_world(&world,
               REGIONS "- " A FLOOR "}\n"
                       "- {name: b, key: [user], algorithm: fixed_window, rate: 15/h,\n"
                       "   on_deny: charge}\n",
               50);
    assert_int_equal(ask(&world, 15), 15);
    assert_int_equal(world.us.taken, 5);
    assert_int_equal(ask(&world, 1), 0);
    rig_close(&world.rig);
}

/* Each rate has states of its own: the home is asked for those that its floor denies. */
TEST("each rate is lent by itself")
{
    struct world world;
    open_world(&world,
               REGIONS "- {name: a, key: [user], algorithm: fixed_window,\n"
                       "   rate: [100/h, 2000/24h], " FLOOR "}",
               50);
    assert_int_equal(ask(&world, 30), 30);
    assert_int_equal(world.us.taken, 20);
    assert_int_equal(world.us.limit, 80);
    assert_int_equal(counters(&world, "a")->lent, 20);
    rig_close(&world.rig);
}

TEST("two homes lend for one request or none does")
{
    struct world world;
    open_world(&world,
               REGIONS "- " A FLOOR "}\n"
                       "- {name: c, key: [user], algorithm: fixed_window, rate: 100/h,\n"
                       "   global: {floor: 10%, home: ap}}",
               4);
    world.ap.units = 2;
    assert_int_equal(ask(&world, 20), 12);
    assert_int_equal(world.us.units, 2); /* those that ap could not follow came back */
    assert_int_equal(world.ap.units, 0);
    rig_close(&world.rig);
}

TEST("without lend a floor is all")
{
    struct world world;
    open_world(&world, REGIONS "- " A "global: {floor: 10%, home: us, lend: false}}", 50);
    assert_int_equal(ask(&world, 20), 10);
    assert_int_equal(world.us.takes + world.us.ahead, 0);
    rig_close(&world.rig);
}

TEST("a home that is this region lends nothing")
{
    struct world world;
    open_world(&world, REGIONS "- " A "global: {floor: 10%, home: eu}}", 50);
    assert_int_equal(ask(&world, 90), 80);
    assert_int_equal(world.us.takes + world.ap.takes, 0);
    rig_close(&world.rig);
}

RUN_TESTS()
