/* SPDX-License-Identifier: Apache-2.0 */
/* The module's thread: waits end in their time, once, and never after their stream. */
#include "host.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#include "draw.h"
#include "envoy/clock.h"

#define WAITS 300
#define HOUR_NS (UINT64_C(3600) * 1000000000)

static sem_t ticks;

static void tick(void *context)
{
    sem_post(context);
}

static void start(struct weir_evy_clock *clock)
{
    assert_int_equal(sem_init(&ticks, 0, 0), 0);
    assert_int_equal(weir_evy_clock_start(clock, tick, &ticks), 0);
}

TEST("waits end once each, none before its time, and those that were ended never")
{
    struct weir_evy_clock clock;
    struct weir_evy_wait *waits = calloc(WAITS, sizeof *waits);
    struct host *hosts = calloc(WAITS, sizeof *hosts);
    uint64_t seed = 7, early = 0;
    assert_true(waits && hosts);
    start(&clock);
    for (unsigned i = 0; i < WAITS; i++) {
        bool ends = draw_below(&seed, 3) == 0; /* before its time, which is in an hour */
        uint64_t delay_ns =
            ends ? HOUR_NS + draw_below(&seed, HOUR_NS) : draw_below(&seed, 50000000);
        assert_true(weir_evy_wait_begin(&clock, &waits[i], &hosts[i], delay_ns, false));
        early += ends;
    }
    for (unsigned i = 0; i < WAITS; i++)
        if (waits[i].timer.deadline < weir_evy_now_ns() + HOUR_NS / 2) {
            uint64_t due_ns = waits[i].timer.deadline;
            host_await(&hosts[i]);
            assert_true(weir_evy_now_ns() >= due_ns);
        }
    assert_int_equal(clock.wheel.count, early);
    for (unsigned i = 0; i < WAITS; i++)
        weir_evy_wait_end(&clock, &waits[i]);
    assert_int_equal(clock.wheel.count, 0);
    assert_int_equal(host_schedulers, 0);
    weir_evy_clock_stop(&clock);
    for (unsigned i = 0; i < WAITS; i++)
        assert_true(hosts[i].scheduled <= 1);
    free(waits);
    free(hosts);
}

TEST("denials that are held back leave room for requests that queue")
{
    struct weir_evy_clock clock;
    struct weir_evy_wait *waits = calloc(WEIR_EVY_HELD_MAX + 2, sizeof *waits);
    struct host host;
    memset(&host, 0, sizeof host);
    assert_non_null(waits);
    start(&clock);
    for (unsigned i = 0; i < WEIR_EVY_HELD_MAX; i++)
        assert_true(weir_evy_wait_begin(&clock, &waits[i], &host, HOUR_NS, true));
    assert_false(weir_evy_wait_begin(&clock, &waits[WEIR_EVY_HELD_MAX], &host, HOUR_NS, true));
    assert_true(weir_evy_wait_begin(&clock, &waits[WEIR_EVY_HELD_MAX], &host, HOUR_NS, false));
    weir_evy_wait_end(&clock, &waits[5]);
    assert_true(weir_evy_wait_begin(&clock, &waits[5], &host, HOUR_NS, true));
    for (unsigned i = 0; i < WEIR_EVY_HELD_MAX + 2; i++)
        weir_evy_wait_end(&clock, &waits[i]);
    assert_int_equal(clock.wheel.count + clock.held, 0);
    assert_int_equal(host_schedulers, 0);
    weir_evy_clock_stop(&clock);
    free(waits);
}

TEST("it ticks, and more often when it is to hurry")
{
    struct weir_evy_clock clock;
    start(&clock);
    weir_evy_clock_hurry(&clock, 0); /* 10 ms is the least */
    assert_int_equal(clock.period_ns, 10000000);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(sem_wait(&ticks), 0);
    weir_evy_clock_stop(&clock);
}

RUN_TESTS()
