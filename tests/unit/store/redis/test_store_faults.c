/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis store when its server is gone, silent, or back: what a decision gets, and when the
 * store recovers. */
#include "store_rig.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct store_rig the_rig;

static int set_up(void **state)
{
    store_rig_set_up(&the_rig, false);
    *state = &the_rig;
    return 0;
}

static int tear_down(void **state)
{
    store_rig_end(*state);
    return 0;
}

/* As an engine does: hands over `count` decisions, waits, and cancels what is late. Returns how
 * many were decided; the others were cancelled, or failed. */
static uint32_t ask_within(struct store_rig *rig, const struct weir_limit *limit, uint32_t count,
                           uint64_t deadline_ns, uint32_t *failed)
{
    struct rig_decision *decisions = calloc(count, sizeof *decisions);
    uint32_t decided = 0, done = 0;
    uint64_t by = uv_hrtime() + deadline_ns;

    rig->now_ns = uv_hrtime();
    for (uint32_t i = 0; i < count; i++) {
        store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
        store_rig_add(&decisions[i], limit, "a", 1);
        decisions[i].decision.deadline_ns = rig->now_ns + deadline_ns;
        store_rig_submit(rig, &decisions[i]);
    }
    rig->store->ops->flush(rig->store);
    do {
        done = 0;
        for (uint32_t i = 0; i < count; i++)
            done += decisions[i].done || decisions[i].decision.verdict != WEIR_PENDING;
        if (done < count)
            uv_run(&rig->loop, UV_RUN_ONCE);
    } while (done < count && uv_hrtime() < by);
    *failed = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool pending = decisions[i].decision.verdict == WEIR_PENDING && !decisions[i].done;

        if (pending)
            rig->store->ops->cancel(rig->store, &decisions[i].decision);
        *failed += decisions[i].error != 0;
        decided += !pending && decisions[i].error == 0;
    }
    free(decisions);
    return decided;
}

/* With a server that does not answer. */
static uint32_t ask(struct store_rig *rig, const struct weir_limit *limit, uint32_t count,
                    uint32_t *failed)
{
    return ask_within(rig, limit, count, 20 * MS, failed);
}

/* With one that does, on a machine that is busy with something else. */
static uint32_t ask_patiently(struct store_rig *rig, const struct weir_limit *limit, uint32_t count)
{
    uint32_t failed;

    return ask_within(rig, limit, count, 60 * SECOND, &failed);
}

TEST_WITH(set_up, tear_down,
          "a server that hangs opens the breaker and is used again when it answers")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000000, 3600 * SECOND);
    uint32_t failed, rounds = 0, late = 0;
    uint64_t calls, began;

    assert_int_equal(ask_patiently(rig, &limit, 100), 100);
    redis_server_signal(&rig->server, SIGSTOP);
    while (rig->stats->breaker == WEIR_BREAKER_CLOSED) {
        late += 5 - ask(rig, &limit, 5, &failed);
        assert_true(++rounds < 50);
    }
    assert_in_range(rounds, 2, 20); /* ten calls, over 50 ms at least */
    assert_int_equal(rig->stats->up, 0);
    assert_int_equal(rig->stats->timeouts, late);
    assert_int_equal(store_rig_events(rig, "breaker_open"), 1);
    /* now they fail at once, and only probes go out: at first after 25 ms */
    calls = rig->stats->calls;
    began = uv_hrtime();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ask(rig, &limit, 10, &failed), 0);
        assert_int_equal(failed, 10);
    }
    assert_in_range(rig->stats->calls - calls, 0, 10 + (uv_hrtime() - began) / (25 * MS));
    redis_server_signal(&rig->server, SIGCONT);
    STORE_UNTIL(rig, rig->stats->up == 1);
    assert_int_equal(store_rig_events(rig, "breaker_closed"), 1);
    assert_int_equal(store_rig_events(rig, "breaker_open"), 1);
    assert_int_equal(ask_patiently(rig, &limit, 100), 100);
}

TEST_WITH(set_up, tear_down, "one late turn does not open the breaker")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000000, 3600 * SECOND);
    uint32_t failed;

    redis_server_signal(&rig->server, SIGSTOP);
    assert_int_equal(ask(rig, &limit, 100, &failed), 0);
    redis_server_signal(&rig->server, SIGCONT);
    assert_int_equal(rig->stats->breaker, WEIR_BREAKER_CLOSED);
    assert_int_equal(rig->stats->timeouts, 100);
    assert_int_equal(ask_patiently(rig, &limit, 1), 1);
    assert_int_equal(rig->stats->breaker, WEIR_BREAKER_CLOSED);
}

TEST_WITH(set_up, tear_down,
          "a server that dies fails what is pending and is used again when it is back")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000000, 3600 * SECOND);
    struct rig_decision decision;
    uint32_t failed;

    for (int round = 1; round <= 3; round++) {
        redis_server_signal(&rig->server, SIGSTOP);
        store_rig_begin(&decision, WEIR_OP_DECIDE);
        store_rig_add(&decision, &limit, "a", 1);
        assert_true(store_rig_submit(rig, &decision));
        rig->store->ops->flush(rig->store);
        redis_server_end(&rig->server);
        STORE_UNTIL(rig, decision.done);
        assert_int_equal(decision.error, WEIR_ERR_STORE);
        STORE_UNTIL(rig, rig->stats->up == 0);
        assert_int_equal(ask(rig, &limit, 10, &failed), 0);
        assert_int_equal(failed, 10);
        assert_true(store_rig_events(rig, "store_down") >= (uint32_t)round);

        redis_server_restart(&rig->server);
        STORE_UNTIL(rig, rig->stats->up == 1);
        assert_int_equal(ask_patiently(rig, &limit, 10), 10);
        assert_int_equal(store_rig_events(rig, "store_up"), 1 + round);
    }
    assert_int_equal(store_rig_events(rig, "breaker_open"), 0); /* one line says it */
    assert_int_equal(store_rig_events(rig, "breaker_closed"), 0);
}

TEST_WITH(set_up, tear_down, "leases that may have been given in an outage are ended")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_CONCURRENCY, 100, 3600 * SECOND);
    uint32_t failed;

    /* leases that may have been given: each is followed by what ends it */
    for (int round = 0; round < 5; round++) {
        redis_server_signal(&rig->server, SIGSTOP);
        ask(rig, &limit, 20, &failed);
        redis_server_signal(&rig->server, SIGCONT);
        STORE_UNTIL(rig, rig->stats->up == 1);
    }

    struct rig_decision look;
    struct weir_report report;

    store_rig_begin(&look, WEIR_OP_PEEK);
    store_rig_add(&look, &limit, "a", 1);
    assert_int_equal(store_rig_decide(rig, &look), WEIR_ALLOWED);
    weir_decision_report(&look.decision, 0, &report);
    assert_int_equal(report.remaining, 100);
}

TEST_WITH(set_up, tear_down, "what is remembered stands while the server is gone")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_SLIDING_LOG, 1, 3600 * SECOND);

    assert_int_equal(store_rig_take(rig, &limit, "a", 1), WEIR_ALLOWED);
    redis_server_signal(&rig->server, SIGSTOP);
    redis_server_signal(&rig->server, SIGCONT);
    STORE_UNTIL(rig, store_rig_take(rig, &limit, "a", 1) == WEIR_DENIED);

    struct rig_decision decision;
    uint64_t remembered = rig->stats->remembered;

    redis_server_end(&rig->server);
    store_rig_begin(&decision, WEIR_OP_DECIDE);
    store_rig_add(&decision, &limit, "a", 1);
    /* a machine that took 100 ms for this has nothing to say */
    if (!store_rig_submit(rig, &decision)) {
        assert_int_equal(decision.decision.verdict, WEIR_DENIED);
        assert_int_equal(rig->stats->remembered, remembered + 1);
    } else {
        rig->store->ops->cancel(rig->store, &decision.decision);
    }
}

TEST_WITH(set_up, tear_down, "a store that never had a server says so and fails at once")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 10, SECOND);
    struct weir_store_redis_options options = store_rig_options(rig);
    struct weir_reason reason;

    store_rig_close(rig);
    redis_server_end(&rig->server);
    rig->event_count = 0;
    assert_int_equal(weir_store_redis_open(&rig->store, &options, &reason), 0);
    rig->stats = weir_store_redis_stats(rig->store);
    rig->closed = false;
    rig->store->done = NULL; /* nothing is asked yet */
    STORE_UNTIL(rig, store_rig_events(rig, "store_down") == 1);
    assert_int_equal(rig->stats->up, 0);
    store_rig_close(rig);
    redis_server_restart(&rig->server);
    store_rig_open(rig, &options);
    assert_int_equal(ask_patiently(rig, &limit, 1), 1);
}

TEST_WITH(set_up, tear_down, "it closes with decisions pending and a silent server")
{
    struct store_rig *rig = *state;
    struct weir_limit limit = store_rig_limit(WEIR_FIXED_WINDOW, 1000, 3600 * SECOND);
    struct rig_decision decisions[20];

    redis_server_signal(&rig->server, SIGSTOP);
    for (int i = 0; i < 20; i++) {
        store_rig_begin(&decisions[i], WEIR_OP_DECIDE);
        store_rig_add(&decisions[i], &limit, "a", 1);
        assert_true(store_rig_submit(rig, &decisions[i]));
        if (i == 10)
            rig->store->ops->flush(rig->store);
    }
    for (int i = 0; i < 20; i++)
        rig->store->ops->cancel(rig->store, &decisions[i].decision);
    store_rig_close(rig);
    redis_server_signal(&rig->server, SIGCONT);
    assert_int_equal(rig->finished, 0);
}

TEST_WITH(set_up, tear_down, "a store can be closed at once")
{
    struct store_rig *rig = *state;

    rig->store->ops->close(rig->store);
    rig->store = NULL;
}

RUN_TESTS()
