/* SPDX-License-Identifier: Apache-2.0 */
/* The exact log of any length, against a list that forgets nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/replay/log.h"
#include "failing_memory.h"
#include "test.h"

#include <weir/error.h>

#define WINDOW UINT64_C(1000)

TEST("what is a window old is forgotten to the nanosecond")
{
    struct replay_log log = {0};
    assert_int_equal(replay_log_add(&log, 5000, 3), 0);
    replay_log_expire(&log, 5999, WINDOW);
    assert_false(replay_log_admits(&log, 3, 1));
    assert_true(replay_log_admits(&log, 3, 0));
    replay_log_expire(&log, 6000, WINDOW);
    assert_true(replay_log_admits(&log, 3, 3));
    assert_false(replay_log_admits(&log, 3, 4));
    replay_log_free(&log);
}

TEST("equal times take one entry and cost nothing none")
{
    struct replay_log log = {0};
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(replay_log_add(&log, 7, 1), 0);
        assert_int_equal(replay_log_add(&log, 8 + (uint64_t)i, 0), 0);
    }
    assert_int_equal(log.count, 1);
    assert_int_equal(log.sum, 1000);
    replay_log_free(&log);
}

TEST("the greatest cost does not wrap around")
{
    struct replay_log log = {0};
    assert_int_equal(replay_log_add(&log, 1, 2), 0);
    assert_false(replay_log_admits(&log, 100, UINT64_MAX));
    assert_false(replay_log_admits(&log, 1, 0)); /* it holds more than the limit */
    replay_log_free(&log);
}

/* Slow and obvious: all admissions ever. */
static uint64_t sum_of(const struct replay_admission *all, size_t count, uint64_t after,
                       uint64_t until)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].t_ns > after && all[i].t_ns <= until)
            sum += all[i].cost;
    return sum;
}

TEST("sum and worst window equal those of a list that forgets nothing")
{
    enum { COUNT = 3000 };
    static struct replay_admission all[COUNT];
    struct replay_log log = {0};
    uint64_t t = WINDOW, worst = 0;
    srand(1);
    for (size_t i = 0; i < COUNT; i++) {
        t += (uint64_t)(rand() % 3 == 0 ? rand() % 700 : rand() % 4);
        all[i] = (struct replay_admission){t, (uint64_t)(rand() % 5)};
        replay_log_expire(&log, t, WINDOW);
        assert_int_equal(replay_log_add(&log, t, all[i].cost), 0);
        uint64_t sum = sum_of(all, i + 1, t - WINDOW, t);
        worst = sum > worst ? sum : worst;
        assert_int_equal(log.sum, sum);
        assert_int_equal(log.worst, worst);
    }
    replay_log_free(&log);
}

TEST("without memory nothing is added and the log stays whole")
{
    struct replay_log log = {0};
    for (uint64_t t = 1; t <= 4; t++)
        assert_int_equal(replay_log_add(&log, t, 1), 0);
    failing_memory_after(0);
    assert_int_equal(replay_log_add(&log, 5, 1), WEIR_ERR_MEMORY);
    assert_true(failing_memory_stop());
    assert_int_equal(log.sum, 4);
    assert_int_equal(replay_log_add(&log, 5, 1), 0);
    assert_int_equal(log.sum, 5);
    replay_log_free(&log);
}

RUN_TESTS()
