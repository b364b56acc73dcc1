/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to homes: a request that its floors deny waits for the exact decision of its key's
 * home. Every order of events of question.h, with fake stores for all regions. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "engine/counters.h"
#include "feature/region/engine/question.h"
#include "feature/region/rules/home.h"
#include "feature/reserve/engine/reservation.h"
#include "test.h"
#include "three_regions.h"

#define WAIT (SECOND / 20)

struct world {
    struct rig rig;
    struct fake_store *us, *ap;
    struct weir_store *regions[RULES_REGIONS_MAX];
    uint64_t now_ns;
};

#define WINDOW "algorithm: fixed_window, key: [user], "
/* 4 of 40 in each region, 32 in the home. */
#define A "- {name: a, " WINDOW "rate: 40/h, global: {floor: 10%, home: us, wait: 50ms}}\n"
#define ZERO "- {name: a, " WINDOW "rate: 10/h, global: {floor: 0, home: us, wait: 50ms}}\n"
#define C "- {name: c, " WINDOW "rate: 40/h, global: {floor: 10%, home: ap, wait: 50ms}}\n"

static void open_world(struct world *world, const char *text)
{
    struct weir_rules *rules = rig_rules(text);
    memset(world, 0, sizeof *world);
    world->now_ns = START;
    world->us = fake_store_open_named();
    world->ap = fake_store_open_named();
    world->regions[1] = &world->us->base;
    world->regions[2] = &world->ap->base;
    rig_open_regions(&world->rig, rules, world->regions);
    weir_rules_unref(rules);
}

static void close_world(struct world *world)
{
    rig_close(&world->rig);
    fake_store_close(world->us);
    fake_store_close(world->ap);
}

static uint64_t turn(struct world *world)
{
    return weir_engine_run(world->rig.engine, world->now_ns);
}

static struct weir_decision *run(struct world *world, struct weir_decision *decision)
{
    weir_engine_queue(world->rig.engine, decision);
    turn(world);
    return decision;
}

static void release(struct world *world, struct weir_decision *decision)
{
    weir_engine_release(world->rig.engine, decision);
}

/* Asks with a cost of 1 so often; returns how many were allowed. */
static uint32_t ask(struct world *world, uint32_t count)
{
    uint32_t allowed = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct weir_decision *decision = run(world, take_request(&world->rig, 1));
        assert_int_not_equal(decision->verdict, WEIR_PENDING);
        allowed += decision->verdict == WEIR_ALLOWED;
        release(world, decision);
    }
    return allowed;
}

static bool is_done(const struct world *world, const struct weir_decision *decision)
{
    for (uint32_t i = 0; i < world->rig.done_count; i++)
        if (world->rig.done[i] == decision)
            return true;
    return false;
}

/* The floors are used up, and homes answer when the test says so. */
static struct weir_decision *waits(struct world *world, const char *text)
{
    open_world(world, text);
    assert_int_equal(ask(world, 4), 4);
    world->us->later_every = world->ap->later_every = 1;
    world->rig.done_count = 0;
    struct weir_decision *decision = run(world, take_request(&world->rig, 1));
    assert_int_equal(world->us->pending_count, 1);
    assert_false(is_done(world, decision));
    return decision;
}

static uint64_t counted(struct world *world, uint32_t region, enum weir_question_result result)
{
    return weir_engine_questions(world->rig.engine, region)->results[result];
}

static uint64_t returned(struct world *world, uint32_t region)
{
    return weir_engine_questions(world->rig.engine, region)->returned;
}

/* The home answers a request that does not wait any more: what it has charged is given back. */
static void expect_refund(struct world *world, uint32_t region)
{
    struct fake_store *home = region == 1 ? world->us : world->ap;
    fake_store_answer(home, 0);
    turn(world); /* the refund is sent */
    fake_store_answer(home, 0);
    assert_int_equal(returned(world, region), 1);
}

static const struct weir_engine_counters *counters(struct world *world, const char *name)
{
    return weir_engine_find_counters(world->rig.engine, name, strlen(name));
}

/* What the home has left: decides one request of that cost there. */
static void expect_left(struct world *world, struct fake_store *home, uint64_t left)
{
    struct weir_report report;
    struct weir_decision *look;
    assert_int_equal(home->pending_count, 0);
    home->later_every = 0;
    look = take_request(&world->rig, 1);
    look->op = WEIR_OP_PEEK;
    run(world, look);
    for (uint16_t i = 0; i < look->count; i++) {
        if (!look->checks[i].limit || look->checks[i].limit->spec.rate != 32)
            continue;
        weir_decision_report(look, i, &report);
        assert_int_equal(report.remaining, left);
    }
    assert_int_equal(look->checks[0].limit->spec.rate, 32);
    release(world, look);
}

/* --- In time ---------------------------------------------------------------------------------- */

TEST("a small limit is exact at its home")
{
    struct world world;
    open_world(&world, REGIONS ZERO);
    assert_int_equal(ask(&world, 30), 10);
    assert_int_equal(world.rig.store->state_count, 0); /* a floor that is nothing has no state */
    assert_int_equal(world.ap->submits, 0);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 10);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_DENIED), 20);
    assert_int_equal(counters(&world, "a")->counts.allowed, 10);
    assert_int_equal(counters(&world, "a")->counts.denied, 20);
    assert_int_equal(counters(&world, "a")->floor_denied, 0); /* the home has denied them */
    assert_int_equal(counters(&world, "a")->lent, 0);
    assert_true(world.us->flushes > 0);
    close_world(&world);
}

TEST("what the floor denies the home decides")
{
    struct world world;
    open_world(&world, REGIONS A);
    assert_int_equal(ask(&world, 50), 4 + 32);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 32);
    close_world(&world);
}

TEST("the answer is the homes")
{
    struct world world;
    struct weir_report report;
    struct weir_decision *decision = waits(&world, REGIONS A);
    assert_int_equal(weir_engine_pending(world.rig.engine), 1);
    fake_store_answer(world.us, 0);
    turn(&world);
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    assert_int_equal(decision->source, WEIR_SOURCE_STORE);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 32);
    assert_int_equal(report.remaining, 31);
    assert_int_equal(decision->checks[0].limit->spec.rate, 32);
    assert_int_equal(decision->checks[0].flags, 0);
    assert_int_equal(weir_engine_pending(world.rig.engine), 0);
    release(&world, decision);
    close_world(&world);
}

TEST("a denial is the homes with the shorter wait")
{
    struct world world;
    struct weir_report report;
    open_world(&world, REGIONS "- {name: a, key: [user], algorithm: token_bucket,\n"
                               "   rate: 40/h, global: {floor: 10%, home: us, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 36), 36);
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 0);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 32);
    assert_int_equal(report.remaining, 0);
    assert_in_range(report.retry_after_ns, 3600 * SECOND / 32, 3600 * SECOND / 32 + 1);
    release(&world, decision);
    /* beyond what the floor's burst ever admits, but not the home's */
    decision = run(&world, take_request(&world.rig, 30));
    weir_decision_report(decision, 0, &report);
    assert_in_range(report.retry_after_ns, 3600 * SECOND / 32 * 29, 3600 * SECOND);
    release(&world, decision);
    /* the floor admits before the home does */
    world.now_ns += 3600 * SECOND;
    assert_int_equal(ask(&world, 3), 3);
    decision = run(&world, take_request(&world.rig, 32));
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    release(&world, decision);
    decision = run(&world, take_request(&world.rig, 2));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_decision_report(decision, 0, &report);
    assert_in_range(report.retry_after_ns, 2 * 3600 * SECOND / 32 - 1, 2 * 3600 * SECOND / 32 + 1);
    release(&world, decision);
    close_world(&world);
}

TEST("a floor that is nothing is reported by the home")
{
    struct world world;
    struct weir_report report;
    open_world(&world, REGIONS ZERO);
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 10);
    assert_int_equal(report.remaining, 9);
    release(&world, decision);
    decision = run(&world, take_request(&world.rig, 11));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 10);
    assert_int_equal(report.remaining, 9);
    release(&world, decision);
    close_world(&world);
}

TEST("a peek asks and charges nothing")
{
    struct world world;
    open_world(&world, REGIONS A);
    ask(&world, 4);
    for (int i = 0; i < 5; i++) {
        struct weir_decision *decision = take_request(&world.rig, 32);
        decision->op = WEIR_OP_PEEK;
        assert_int_equal(run(&world, decision)->verdict, WEIR_ALLOWED);
        release(&world, decision);
    }
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 5);
    turn(&world);
    assert_int_equal(returned(&world, 1), 0);
    expect_left(&world, world.us, 32);
    close_world(&world);
}

TEST("each rate is asked for by itself")
{
    struct world world;
    open_world(&world, REGIONS "- {name: a, " WINDOW "rate: [40/h, 3000/24h],\n"
                               "   global: {floor: 10%, home: us, wait: 50ms, lend: false}}\n");
    assert_int_equal(ask(&world, 50), 36);
    assert_int_equal(world.us->state_count, 1); /* 36 of 300 in a day: the floor's own */
    close_world(&world);
}

TEST("what a denial charges is charged once")
{
    struct world world;
    open_world(&world, REGIONS A "- {name: b, " WINDOW "rate: 15/h, on_deny: charge}\n");
    assert_int_equal(ask(&world, 15), 15);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 11);
    assert_int_equal(ask(&world, 1), 0);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 11);
    close_world(&world);
}

/* --- Not asked -------------------------------------------------------------------------------- */

TEST("a floor in shadow is not asked for")
{
    struct world world;
    open_world(&world, REGIONS "- {name: a, " WINDOW "rate: 40/h, shadow: true,\n"
                               "   global: {floor: 10%, home: us, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 20), 20);
    assert_int_equal(world.us->submits, 0);
    assert_int_equal(counters(&world, "a")->counts.shadow_denied, 16);
    close_world(&world);
}

TEST("what another limit denies is not asked for")
{
    struct world world;
    open_world(&world, REGIONS A "- {name: b, " WINDOW "rate: 6/h}\n");
    assert_int_equal(ask(&world, 6), 6);
    uint32_t submits = world.us->submits;
    assert_int_equal(ask(&world, 6), 0);
    assert_int_equal(world.us->submits, submits);
    close_world(&world);
}

/* A floor that is nothing does not say "never": the other limit's end counts. */
TEST("what another limit denies ends with that limit")
{
    struct world world;
    struct weir_report report;
    uint64_t retry_ns;
    open_world(&world, REGIONS ZERO "- {name: b, " WINDOW "rate: 6/h}\n");
    assert_int_equal(ask(&world, 6), 6);
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 1);
    assert_int_equal(weir_decision_blame(decision, &retry_ns), 1);
    assert_true(retry_ns > SECOND && retry_ns <= 3600 * SECOND);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.retry_after_ns, SECOND);
    release(&world, decision);
    close_world(&world);
}

TEST("the home itself asks nobody")
{
    struct world world;
    open_world(&world, REGIONS "- {name: a, " WINDOW "rate: 40/h,\n"
                               "   global: {floor: 10%, home: eu, wait: 50ms}}\n");
    assert_int_equal(ask(&world, 40), 32);
    assert_int_equal(world.us->submits + world.ap->submits, 0);
    close_world(&world);
}

TEST("a region without a store is not asked")
{
    struct world world;
    open_world(&world, REGIONS A);
    world.regions[1] = NULL;
    assert_int_equal(ask(&world, 40), 4);
    close_world(&world);
}

/* --- Late, lost, left ------------------------------------------------------------------------- */

TEST("when the wait is over the floor denies")
{
    struct world world;
    struct weir_report report;
    struct weir_decision *decision = waits(&world, REGIONS A);
    assert_int_equal(turn(&world), START + WAIT); /* when the engine has to be run again */
    world.now_ns = START + WAIT;
    turn(&world);
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 4);
    assert_in_range(report.retry_after_ns, SECOND, 3600 * SECOND);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_LATE), 1);
    assert_int_equal(counters(&world, "a")->floor_denied, 1);
    assert_int_equal(weir_engine_failures(world.rig.engine)->late, 0); /* not of the own store */
    release(&world, decision);
    close_world(&world);
}

TEST("an answer after the wait goes back")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A);
    world.now_ns = START + WAIT;
    turn(&world);
    assert_true(is_done(&world, decision));
    release(&world, decision);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 0);
    turn(&world); /* the refund is sent */
    assert_int_equal(world.us->pending[0]->op, WEIR_OP_REFUND);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    expect_left(&world, world.us, 32);
    close_world(&world);
}

TEST("a denial after the wait gives nothing back")
{
    struct world world;
    open_world(&world, REGIONS A);
    assert_int_equal(ask(&world, 36), 36);
    world.us->later_every = 1;
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    world.now_ns = START + WAIT;
    turn(&world);
    release(&world, decision);
    fake_store_answer(world.us, 0);
    turn(&world);
    assert_int_equal(world.us->pending_count, 0);
    assert_int_equal(returned(&world, 1), 0);
    close_world(&world);
}

TEST("a question without an answer ends")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A);
    world.now_ns = START + WAIT;
    assert_int_equal(turn(&world), START + WEIR_QUESTION_NS);
    release(&world, decision);
    world.now_ns = START + WEIR_QUESTION_NS;
    assert_int_equal(turn(&world), WEIR_NEVER);
    assert_int_equal(world.us->cancels, 1);
    assert_int_equal(world.us->pending_count, 0);
    turn(&world);
    assert_int_equal(world.us->pending_count,
                     0); /* nothing is given back that may not be charged */
    assert_int_equal(returned(&world, 1), 0);
    close_world(&world);
}

TEST("a refund that fails stays charged")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A);
    world.now_ns = START + WAIT;
    turn(&world);
    release(&world, decision);
    fake_store_answer(world.us, 0);
    turn(&world);
    fake_store_fail(world.us, 0, WEIR_ERR_STORE);
    turn(&world);
    assert_int_equal(returned(&world, 1), 0);
    assert_int_equal(weir_engine_questions(world.rig.engine, 1)->kept, 1);
    expect_left(&world, world.us, 31);
    close_world(&world);
}

TEST("a floor that is nothing says to come again")
{
    struct world world;
    struct weir_report report;
    open_world(&world, REGIONS ZERO);
    world.us->later_every = 1;
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    world.now_ns = START + WAIT;
    turn(&world);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 0);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.retry_after_ns, SECOND);
    assert_int_equal(counters(&world, "a")->floor_denied, 1);
    release(&world, decision);
    close_world(&world);
}

TEST("a home that fails leaves the floors denial")
{
    struct world world;
    struct weir_report report;
    struct weir_decision *decision = waits(&world, REGIONS A);
    fake_store_fail(world.us, 0, WEIR_ERR_STORE);
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 4);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_FAILED), 1);
    release(&world, decision);
    world.us->fails_at_once = WEIR_ERR_STORE; /* its breaker is open */
    assert_int_equal(ask(&world, 3), 0);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_FAILED), 4);
    turn(&world);
    assert_int_equal(world.us->pending_count, 0);
    close_world(&world);
}

TEST("a client that leaves is given back")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A);
    weir_engine_cancel(world.rig.engine, decision);
    assert_int_equal(weir_engine_pending(world.rig.engine), 0);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_LEFT), 1);
    expect_refund(&world, 1);
    assert_int_equal(world.rig.done_count, 0);
    expect_left(&world, world.us, 32);
    close_world(&world);
}

TEST("a deadline of the front end ends the wait")
{
    struct world world;
    open_world(&world, REGIONS A);
    assert_int_equal(ask(&world, 4), 4);
    world.us->later_every = 1;
    struct weir_decision *decision = take_request(&world.rig, 1);
    decision->deadline_ns = START + SECOND / 100;
    weir_engine_queue(world.rig.engine, decision);
    assert_int_equal(turn(&world), START + SECOND / 100);
    world.now_ns = START + SECOND / 100;
    world.rig.done_count = 0;
    turn(&world);
    assert_true(is_done(&world, decision));
    release(&world, decision);
    close_world(&world);
}

TEST("the engine closes while homes are asked")
{
    struct world world;
    (void)waits(&world, REGIONS A C);
    assert_int_equal(world.ap->pending_count, 1);
    close_world(&world);
}

TEST("rules change while a home is asked")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A);
    struct weir_rules *rules = rig_rules(REGIONS ZERO);
    assert_int_equal(weir_engine_set_rules(world.rig.engine, rules), 0);
    weir_rules_unref(rules);
    weir_engine_cancel(world.rig.engine, decision); /* the question alone has the old rules now */
    expect_refund(&world, 1);
    close_world(&world);
}

TEST("questions without room are denied")
{
    struct world world;
    struct weir_decision *first;
    open_world(&world, REGIONS ZERO);
    world.us->later_every = 1;
    first = run(&world, take_request(&world.rig, 1));
    assert_false(is_done(&world, first));
    for (uint32_t i = 1; i < WEIR_QUESTIONS_MAX; i++) {
        struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
        weir_engine_cancel(world.rig.engine, decision); /* its question stays */
    }
    struct weir_decision *decision = run(&world, take_request(&world.rig, 1));
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_FAILED), 1);
    release(&world, decision);
    fake_store_answer(world.us, 0);
    turn(&world);
    assert_int_equal(first->verdict, WEIR_ALLOWED);
    release(&world, first);
    close_world(&world);
}

/* --- Two homes -------------------------------------------------------------------------------- */

TEST("two homes are asked at once")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A C);
    assert_int_equal(world.ap->pending_count, 1);
    fake_store_answer(world.ap, 0);
    turn(&world);
    assert_false(is_done(&world, decision));
    fake_store_answer(world.us, 0);
    turn(&world);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    release(&world, decision);
    turn(&world);
    assert_int_equal(returned(&world, 1) + returned(&world, 2), 0);
    close_world(&world);
}

TEST("limits of one home are one question")
{
    struct world world;
    struct weir_decision *decision =
        waits(&world, REGIONS A "- {name: c, " WINDOW
                                "rate: 40/2h, global: {floor: 10%, home: us, wait: 20ms}}\n");
    assert_int_equal(world.us->pending[0]->count, 2);
    assert_int_equal(turn(&world), START + SECOND / 50); /* the shortest `wait` */
    fake_store_answer(world.us, 0);
    turn(&world);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    release(&world, decision);
    close_world(&world);
}

TEST("what one home charged goes back when the other denies")
{
    struct world world;
    struct weir_decision *decision =
        waits(&world, REGIONS A "- {name: c, " WINDOW
                                "rate: 44/h, global: {floor: 10%, home_share: 20%, home: ap,"
                                " wait: 50ms}}\n");
    world.ap->later_every = 0;
    for (int i = 0; i < 8; i++) { /* ap's 8 of 44 are used by others */
        struct weir_check check = decision->checks[1];
        struct weir_outcome outcome;
        struct weir_decision other = {.checks = &check, .outcomes = &outcome, .count = 1};
        check.limit = world.ap->pending[0]->checks[0].limit;
        fake_store_decide(world.ap, START, &other);
        assert_int_equal(other.verdict, WEIR_ALLOWED);
    }
    fake_store_answer(world.us, 0);
    assert_false(is_done(&world, decision));
    fake_store_answer(world.ap, 0);
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 1);
    assert_int_equal(decision->outcomes[0].verdict, WEIR_ALLOWED); /* its home has admitted it */
    assert_int_equal(decision->checks[1].limit->spec.rate, 8);
    release(&world, decision);
    turn(&world);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    assert_int_equal(returned(&world, 2), 0);
    close_world(&world);
}

TEST("what one home charged goes back when the other is late")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A C);
    fake_store_answer(world.us, 0);
    world.now_ns = START + WAIT;
    turn(&world);
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 1);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 1);
    assert_int_equal(counted(&world, 2, WEIR_QUESTION_LATE), 1);
    release(&world, decision);
    fake_store_answer(world.us, 0); /* the refund */
    assert_int_equal(returned(&world, 1), 1);
    expect_refund(&world, 2);
    close_world(&world);
}

TEST("what one home charged goes back when the other fails")
{
    struct world world;
    struct weir_decision *decision = waits(&world, REGIONS A C);
    fake_store_fail(world.ap, 0, WEIR_ERR_STORE);
    assert_false(is_done(&world, decision));
    fake_store_answer(world.us, 0);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    release(&world, decision);
    turn(&world);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    close_world(&world);
}

/* --- Portions and questions ------------------------------------------------------------------- */

static uint64_t lent_units, lent_back;

static bool lend(struct weir_store *store, enum weir_lend how, const struct weir_check *check,
                 struct weir_outcome *outcome, struct weir_lent *lent)
{
    (void)store;
    bool covered = how != WEIR_LEND_AHEAD && check->cost <= lent_units;
    *outcome = (struct weir_outcome){.verdict = covered ? WEIR_ALLOWED : WEIR_DENIED,
                                     .reported = true,
                                     .report = {.limit = check->limit->capacity}};
    *lent = (struct weir_lent){{9, 0}, {covered ? check->cost : 0, 0}};
    if (covered && how == WEIR_LEND_TAKE)
        lent_units -= check->cost;
    return covered;
}

static void put_back(struct weir_store *store, const struct weir_check *check,
                     const struct weir_lent *lent)
{
    (void)store;
    (void)check;
    lent_back += lent->units[0];
}

/* a: 100/h, which us lends; c: 40/h, which ap decides. */
static struct weir_decision *mixed(struct world *world, uint64_t units)
{
    static struct weir_store_ops ops;
    open_world(world,
               REGIONS "- {name: a, " WINDOW "rate: 100/h, global: {floor: 4%, home: us}}\n" C);
    ops = *world->us->base.ops;
    ops.lend = lend;
    ops.put_back = put_back;
    world->us->base.ops = &ops;
    lent_units = units;
    lent_back = 0;
    assert_int_equal(ask(world, 4), 4);
    world->ap->later_every = 1;
    world->rig.done_count = 0;
    return run(world, take_request(&world->rig, 1));
}

TEST("a portion and a question cover one request")
{
    struct world world;
    struct weir_decision *decision = mixed(&world, 5);
    assert_int_equal(world.us->pending_count, 0);
    assert_int_equal(world.ap->pending_count, 1);
    assert_int_equal(lent_units, 4);
    fake_store_answer(world.ap, 0);
    turn(&world);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    assert_int_equal(lent_back, 0);
    assert_int_equal(counters(&world, "a")->lent, 1);
    assert_int_equal(counters(&world, "c")->lent, 0);
    release(&world, decision);
    close_world(&world);
}

TEST("a portion goes back when a home is late")
{
    struct world world;
    struct weir_decision *decision = mixed(&world, 5);
    world.now_ns = START + WAIT;
    turn(&world);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 1);
    assert_int_equal(lent_back, 1);
    release(&world, decision);
    close_world(&world);
}

TEST("a portion goes back when the client leaves")
{
    struct world world;
    struct weir_decision *decision = mixed(&world, 5);
    weir_engine_cancel(world.rig.engine, decision);
    assert_int_equal(lent_back, 1);
    close_world(&world);
}

TEST("without a portion no other home is asked")
{
    struct world world;
    struct weir_decision *decision = mixed(&world, 0);
    assert_true(is_done(&world, decision));
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(world.ap->pending_count, 0);
    release(&world, decision);
    close_world(&world);
}

/* --- The second decision ---------------------------------------------------------------------- */

#define OWN REGIONS A "- {name: b, " WINDOW "rate: 5/h}\n"

/* The home has admitted, and the own store decides the other limit when the test says so. */
static struct weir_decision *second_try(struct world *world, bool once)
{
    struct weir_reason reason;
    open_world(world, OWN);
    assert_int_equal(ask(world, 4), 4);
    world->us->later_every = 1;
    world->rig.done_count = 0;
    struct weir_decision *decision = take_request(&world->rig, 1);
    if (once)
        assert_int_equal(weir_engine_apply_idempotency(world->rig.engine, decision,
                                                       weir_bytes_of("once"), &reason),
                         0);
    run(world, decision);
    world->rig.store->later_every = 1;
    world->now_ns += WAIT / 2; /* longer than the own store has for a decision */
    fake_store_answer(world->us, 0);
    turn(world);
    assert_int_equal(world->rig.store->pending_count, 1);
    assert_false(is_done(world, decision));
    return decision;
}

TEST("the own limits decide after the home")
{
    struct world world;
    struct weir_decision *decision = second_try(&world, false);
    fake_store_answer(world.rig.store, 0);
    assert_int_equal(decision->verdict, WEIR_ALLOWED);
    assert_int_equal(counters(&world, "b")->counts.allowed, 5);
    release(&world, decision);
    turn(&world);
    assert_int_equal(world.us->pending_count, 0);
    close_world(&world);
}

TEST("the own limits deny after the home")
{
    struct world world;
    struct weir_decision *decision = second_try(&world, false);
    struct weir_check check = decision->checks[1]; /* another request was faster */
    struct weir_outcome outcome;
    struct weir_decision other = {.checks = &check, .outcomes = &outcome, .count = 1};
    fake_store_decide(world.rig.store, START, &other);
    fake_store_answer(world.rig.store, 0);
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->denied_by, 1);
    assert_int_equal(decision->outcomes[0].verdict, WEIR_ALLOWED);
    release(&world, decision);
    turn(&world);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    assert_int_equal(counters(&world, "b")->counts.denied, 1);
    assert_int_equal(counters(&world, "a")->counts.denied, 0);
    close_world(&world);
}

static void expect_failed(struct world *world, struct weir_decision *decision)
{
    struct weir_report report;
    assert_int_equal(decision->verdict, WEIR_DENIED);
    assert_int_equal(decision->source, WEIR_SOURCE_STORE);
    weir_decision_report(decision, 0, &report);
    assert_int_equal(report.limit, 4);
    assert_int_equal(decision->denied_by, 0);
    release(world, decision);
    turn(world);
}

TEST("the own store fails after the home")
{
    struct world world;
    struct weir_decision *decision = second_try(&world, false);
    fake_store_fail(world.rig.store, 0, WEIR_ERR_STORE);
    expect_failed(&world, decision);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    close_world(&world);
}

TEST("the own store is late after the home")
{
    struct world world;
    struct weir_decision *decision = second_try(&world, false);
    world.now_ns += DEADLINE - 1;
    turn(&world);
    assert_false(is_done(&world, decision)); /* its deadline began after the wait */
    world.now_ns++;
    turn(&world);
    expect_failed(&world, decision);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    close_world(&world);
}

TEST("the client leaves after the home")
{
    struct world world;
    struct weir_decision *decision = second_try(&world, false);
    weir_engine_cancel(world.rig.engine, decision);
    turn(&world);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    close_world(&world);
}

/* The own store may have recorded the key: the repetition is admitted without a charge. */
TEST("what may be recorded stays charged")
{
    for (int how = 0; how < 3; how++) {
        struct world world;
        struct weir_decision *decision = second_try(&world, true);
        if (how == 0) {
            fake_store_fail(world.rig.store, 0, WEIR_ERR_STORE);
            expect_failed(&world, decision);
        } else if (how == 1) {
            world.now_ns += DEADLINE;
            turn(&world);
            expect_failed(&world, decision);
        } else {
            weir_engine_cancel(world.rig.engine, decision);
        }
        turn(&world);
        assert_int_equal(world.us->pending_count, 0);
        assert_int_equal(returned(&world, 1), 0);
        close_world(&world);
    }
}

TEST("a repeated request is charged once")
{
    struct world world;
    struct weir_reason reason;
    open_world(&world, REGIONS A);
    assert_int_equal(ask(&world, 4), 4);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision = take_request(&world.rig, 1);
        assert_int_equal(weir_engine_apply_idempotency(world.rig.engine, decision,
                                                       weir_bytes_of("once"), &reason),
                         0);
        assert_int_equal(run(&world, decision)->verdict, WEIR_ALLOWED);
        assert_int_equal(decision->repeated, i > 0);
        release(&world, decision);
    }
    turn(&world);
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 1);
    expect_left(&world, world.us, 31);
    close_world(&world);
}

TEST("a repeated request is charged once without a floor")
{
    struct world world;
    struct weir_reason reason;
    open_world(&world, REGIONS ZERO);
    for (int i = 0; i < 3; i++) {
        struct weir_decision *decision = take_request(&world.rig, 1);
        assert_int_equal(weir_engine_apply_idempotency(world.rig.engine, decision,
                                                       weir_bytes_of("once"), &reason),
                         0);
        assert_int_equal(run(&world, decision)->verdict, WEIR_ALLOWED);
        assert_int_equal(decision->repeated, i > 0);
        release(&world, decision);
    }
    assert_int_equal(counted(&world, 1, WEIR_QUESTION_ADMITTED), 1);
    assert_int_equal(ask(&world, 20), 9);
    close_world(&world);
}

/* Both are on their way at one time: one of them is the repetition. */
TEST("the second of two repetitions goes back")
{
    struct world world;
    struct weir_reason reason;
    struct weir_decision *two[2];
    open_world(&world, REGIONS A);
    assert_int_equal(ask(&world, 4), 4);
    world.us->later_every = 1;
    for (int i = 0; i < 2; i++) {
        two[i] = take_request(&world.rig, 1);
        assert_int_equal(
            weir_engine_apply_idempotency(world.rig.engine, two[i], weir_bytes_of("once"), &reason),
            0);
        run(&world, two[i]);
    }
    fake_store_answer(world.us, 0);
    fake_store_answer(world.us, 0);
    turn(&world);
    assert_int_equal(two[0]->verdict, WEIR_ALLOWED);
    assert_int_equal(two[1]->verdict, WEIR_ALLOWED);
    assert_true(two[1]->repeated);
    release(&world, two[0]);
    release(&world, two[1]);
    turn(&world);
    fake_store_answer(world.us, 0);
    assert_int_equal(returned(&world, 1), 1);
    expect_left(&world, world.us, 31);
    close_world(&world);
}

/* --- At random -------------------------------------------------------------------------------- */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

#define AT_WORK 8

struct play {
    struct world world;
    struct weir_decision *open[AT_WORK];
    uint32_t admitted;
    uint64_t seed;
};

static void collect(struct play *play)
{
    for (uint32_t i = 0; i < play->world.rig.done_count; i++) {
        struct weir_decision *decision = play->world.rig.done[i];
        for (int s = 0; s < AT_WORK; s++)
            if (play->open[s] == decision)
                play->open[s] = NULL;
        play->admitted += decision->verdict == WEIR_ALLOWED;
        release(&play->world, decision);
    }
    play->world.rig.done_count = 0;
}

static void answer_one(struct play *play, struct fake_store *store)
{
    if (store->pending_count == 0)
        return;
    uint32_t index = draw(&play->seed, store->pending_count);
    if (draw(&play->seed, 8) == 0)
        fake_store_fail(store, index, WEIR_ERR_STORE);
    else
        fake_store_answer(store, index);
}

static void step(struct play *play)
{
    struct world *world = &play->world;
    uint32_t slot = draw(&play->seed, AT_WORK);
    switch (draw(&play->seed, 6)) {
    case 0:
    case 1:
        if (!play->open[slot])
            weir_engine_queue(world->rig.engine, play->open[slot] = take_request(&world->rig, 1));
        break;
    case 2:
        answer_one(play, draw(&play->seed, 2) == 0 ? world->us : world->ap);
        break;
    case 3:
        answer_one(play, world->rig.store);
        break;
    case 4:
        if (play->open[slot] && draw(&play->seed, 3) == 0) {
            weir_engine_cancel(world->rig.engine, play->open[slot]);
            play->open[slot] = NULL;
        }
        break;
    default:
        world->now_ns += draw(&play->seed, 3) * (SECOND / 100);
        break;
    }
    turn(world);
    collect(play);
}

/* us admits 32 of 40, ap 8; what the own store fails is denied. */
#define OWN_OPEN                                                                                   \
    REGIONS                                                                                        \
    "- {name: a, " WINDOW "rate: 40/h, on_store_error: closed,\n"                                  \
    "   global: {floor: 10%, home: us, wait: 50ms}}\n"                                             \
    "- {name: c, " WINDOW "rate: 40/h, on_store_error: closed,\n"                                  \
    "   global: {floor: 10%, home_share: 20%, home: ap, wait: 30ms}}\n"

TEST("whatever happens no more is admitted")
{
    uint32_t most = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct play *play = calloc(1, sizeof *play);
        assert_non_null(play);
        play->seed = seed;
        open_world(&play->world, OWN_OPEN);
        play->world.us->later_every = play->world.ap->later_every = 1;
        play->world.rig.store->later_every = 1 + draw(&play->seed, 3);
        for (int i = 0; i < 400; i++)
            step(play);
        /* 4 of the floor, 8 of the home that has less */
        assert_true(play->admitted <= 12);
        most = play->admitted > most ? play->admitted : most;
        close_world(&play->world);
        free(play);
    }
    assert_true(most > 6);
}

/* A candidate counts here alone (rules/charge/candidate.h): half of the limit's parts. */
TEST("a candidate is not tried where the home has decided")
{
    struct world world;
    open_world(&world, REGIONS
               "- {name: a, " WINDOW
               "rate: 40/h, global: {floor: 10%, home: us, wait: 50ms}, candidate: 20/h}\n");
    const _Atomic uint64_t *trials = counters(&world, "a")->trials;
    assert_int_equal(ask(&world, 4), 4);
    assert_int_equal(trials[WEIR_TRIAL_BOTH_ALLOW], 2);
    assert_int_equal(trials[WEIR_TRIAL_STRICTER], 2);
    assert_int_equal(trials[WEIR_TRIAL_SKIPPED], 0);
    assert_int_equal(ask(&world, 40), 32); /* the home admits 32 and denies 8 */
    assert_int_equal(trials[WEIR_TRIAL_SKIPPED], 40);
    assert_int_equal(trials[WEIR_TRIAL_BOTH_ALLOW] + trials[WEIR_TRIAL_STRICTER], 4);
    assert_int_equal(trials[WEIR_TRIAL_BOTH_DENY] + trials[WEIR_TRIAL_LOOSER], 0);
    /* without an answer of the home, its floor has decided */
    world.us->later_every = 1;
    struct weir_decision *late = run(&world, take_request(&world.rig, 1));
    world.now_ns += WAIT + 1;
    turn(&world);
    assert_int_equal(late->verdict, WEIR_DENIED);
    assert_int_equal(trials[WEIR_TRIAL_SKIPPED], 40);
    assert_int_equal(trials[WEIR_TRIAL_BOTH_DENY], 1);
    release(&world, late);
    close_world(&world);
}

RUN_TESTS()
