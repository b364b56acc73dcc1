/* SPDX-License-Identifier: Apache-2.0 */
/* Leased mode through the store: decisions from portions of budgets, over a real server. */
#include "store_rig.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct store_rig the_rig;

/* A machine that stands still fails no decision. */
static struct weir_store_redis_options patient(struct store_rig *rig)
{
    struct weir_store_redis_options options = store_rig_options(rig);
    options.deadline_ns = 60 * SECOND;
    return options;
}

static int set_up(void **state)
{
    store_rig_set_up(&the_rig, false);
    const struct weir_store_redis_options options = patient(&the_rig);
    store_rig_close(&the_rig);
    store_rig_open(&the_rig, &options);
    *state = &the_rig;
    return 0;
}

static int tear_down(void **state)
{
    store_rig_end(*state);
    return 0;
}

struct tally {
    uint64_t allowed, denied, failed;
};

/* One turn: `count` decisions of cost 1, all answered before it returns. */
static void turn(struct store_rig *rig, struct weir_store *store, const struct weir_limit *limit,
                 uint32_t count, struct tally *tally)
{
    struct rig_decision *decisions = calloc(count, sizeof *decisions);
    struct weir_store *usual = rig->store;

    rig->store = store;
    for (uint32_t i = 0; i < count; i++) {
        store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
        store_rig_add(&decisions[i], limit, "hot", 1)->flags = WEIR_CHECK_LEASED;
        store_rig_submit(rig, &decisions[i]);
    }
    store->ops->flush(store);
    for (uint32_t i = 0; i < count; i++) {
        STORE_UNTIL(rig, decisions[i].done || decisions[i].decision.verdict != WEIR_PENDING);
        if (decisions[i].error != 0)
            tally->failed++;
        else if (decisions[i].decision.verdict == WEIR_ALLOWED)
            tally->allowed++;
        else
            tally->denied++;
    }
    rig->store = usual;
    free(decisions);
}

TEST_WITH(set_up, tear_down, "a hot key takes few calls and never more than its limit")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_SLIDING_LOG, 10000, 3600 * SECOND);
    struct tally tally = {0, 0, 0};

    for (int i = 0; i < 400; i++)
        turn(rig, rig->store, &limit, 50, &tally);
    assert_int_equal(tally.failed, 0);
    assert_in_range(tally.allowed, 9000, 10000);
    assert_int_equal(tally.allowed + tally.denied, 20000);
    assert_in_range(rig->stats->calls, 1, 20000 / 20);
    assert_true(rig->stats->share_decisions > 18000);
    assert_true(rig->stats->share_refills > 0);
}

TEST_WITH(set_up, tear_down, "two workers together never pass the limit")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_GCRA, 4000, WEIR_WINDOW_MAX_NS);
    struct weir_store_redis_options options = patient(rig);
    struct tally tally = {0, 0, 0};
    struct weir_store *first = rig->store, *second;

    store_rig_open(rig, &options);
    second = rig->store;
    for (int i = 0; i < 200; i++) {
        turn(rig, first, &limit, 20, &tally);
        turn(rig, second, &limit, 30, &tally);
    }
    assert_int_equal(tally.failed, 0);
    assert_in_range(tally.allowed, 3000, 4000);
    store_rig_close(rig);
    rig->store = first;
    rig->stats = weir_store_redis_stats(first);
}

TEST_WITH(set_up, tear_down, "what was not used is given back at the end")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000, 24 * 3600 * SECOND);
    struct weir_store_redis_options options = patient(rig);
    struct tally tally = {0, 0, 0};
    struct rig_decision look;
    struct weir_report report;

    for (int i = 0; i < 20; i++)
        turn(rig, rig->store, &limit, 10, &tally);
    assert_int_equal(tally.allowed, 200);
    assert_true(rig->stats->shares > 0);
    store_rig_close(rig);
    store_rig_open(rig, &options);
    store_rig_begin(&look, WEIR_OP_PEEK);
    store_rig_add(&look, &limit, "hot", 1);
    assert_int_equal(store_rig_decide(rig, &look), WEIR_ALLOWED);
    weir_decision_report(&look.decision, 0, &report);
    assert_int_equal(report.remaining, 800);
}

TEST_WITH(set_up, tear_down, "a portion is used while the server is silent")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000000, 24 * 3600 * SECOND);
    struct rig_decision decision;
    struct tally tally = {0, 0, 0};

    for (int i = 0; i < 50; i++)
        turn(rig, rig->store, &limit, 100, &tally);
    redis_server_signal(&rig->server, SIGSTOP);
    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "hot", 1)->flags = WEIR_CHECK_LEASED;
    assert_false(store_rig_submit(rig, &decision));
    assert_int_equal(decision.decision.verdict, WEIR_ALLOWED);
    redis_server_signal(&rig->server, SIGCONT);
}

/* Decisions that wait for a portion, cancelled in every order. */
TEST_WITH(set_up, tear_down, "a decision that waits can be cancelled")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 100000, 24 * 3600 * SECOND);
    struct rig_decision decisions[40];
    struct tally tally = {0, 0, 0};

    for (int i = 0; i < 20; i++)
        turn(rig, rig->store, &limit, 100, &tally);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 40; i++) {
            store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
            store_rig_add(&decisions[i], &limit, "hot", 1 + (uint64_t)round * 3)->flags =
                WEIR_CHECK_LEASED;
            store_rig_submit(rig, &decisions[i]);
        }
        rig->store->ops->flush(rig->store);
        for (int i = 0; i < 40; i++)
            if (decisions[i].decision.verdict == WEIR_PENDING && !decisions[i].done && i % 3 != 0)
                rig->store->ops->cancel(rig->store, &decisions[i].decision);
        for (int i = 0; i < 40; i += 3)
            STORE_UNTIL(rig, decisions[i].done || decisions[i].decision.verdict != WEIR_PENDING);
    }
    assert_int_equal(tally.failed, 0);
}

/* A timer's callback cancels and reads the clocks by that; then the loop waits, and what it brings
 * comes later than the portion that is given ends. */
TEST_WITH(set_up, tear_down, "a portion that ended while the loop waited is not used")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 100000, 24 * 3600 * SECOND);
    struct weir_store_redis_options options = store_rig_options(rig);
    struct rig_decision waits, late;
    struct tally tally = {0, 0, 0};

    rig->now_ns = START;
    options.test_time_ns = &rig->now_ns;
    options.deadline_ns = 2 * SECOND;
    store_rig_close(rig);
    store_rig_open(rig, &options);
    for (int i = 0; i < 5; i++)
        turn(rig, rig->store, &limit, 20, &tally);
    store_rig_begin(&late, WEIR_OP_DECIDE);
    store_rig_add(&late, &limit, "another", 1);
    late.decision.deadline_ns = rig->now_ns + 1;
    store_rig_begin(&waits, WEIR_OP_DECIDE);
    store_rig_add(&waits, &limit, "hot", 5000)->flags = WEIR_CHECK_LEASED;
    assert_true(store_rig_submit(rig, &late));
    assert_true(store_rig_submit(rig, &waits));
    rig->store->ops->flush(rig->store);
    rig->store->ops->cancel(rig->store, &late.decision);
    rig->now_ns += 2 * SECOND;
    STORE_UNTIL(rig, waits.done);
    assert_int_equal(waits.error, 0);
    assert_int_equal(waits.decision.verdict, WEIR_ALLOWED);
    assert_true(waits.decision.now_ns >= rig->now_ns);
}

RUN_TESTS()
