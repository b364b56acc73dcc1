/* SPDX-License-Identifier: Apache-2.0 */
/* p99 and errors of the last ten seconds, and the scales of the last hour. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/adaptive/results.h"
#include "feature/adaptive/scale_history.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static struct weir_results results;
static struct weir_results_window window;
static struct weir_reading readings[WEIR_SIGNALS];

static int setup(void **state)
{
    memset(&results, 0, sizeof results);
    memset(&window, 0, sizeof window);
    return 0;
}

static void look(uint64_t now_ns)
{
    weir_results_read(&window, &results, now_ns, readings);
}

static void add(uint64_t latency_ns, bool failed)
{
    weir_results_add(&results, &latency_ns, &failed);
}

TEST_WITH(setup, NULL, "a result without a latency counts for errors only")
{
    for (int i = 0; i < 100; i++)
        weir_results_add(&results, NULL, &(bool){i < 25});
    look(S);
    assert_int_equal(readings[WEIR_SIGNAL_P99].until_ns, 0);
    assert_int_equal(readings[WEIR_SIGNAL_ERRORS].value, 2500);
}

TEST_WITH(setup, NULL, "too few results are no reading")
{
    for (int i = 0; i < WEIR_RESULTS_LEAST - 1; i++)
        add(MS, true);
    look(S);
    assert_int_equal(readings[WEIR_SIGNAL_P99].until_ns, 0);
    assert_int_equal(readings[WEIR_SIGNAL_ERRORS].until_ns, 0);
    add(MS, true);
    look(2 * S);
    assert_true(readings[WEIR_SIGNAL_P99].until_ns > 2 * S);
    assert_int_equal(readings[WEIR_SIGNAL_ERRORS].value, 10000);
}

static int ascending(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return a < b ? -1 : a > b;
}

/* Of random latencies over the whole range: never above the true p99, at most 6.3 % below. */
TEST("p99 is the lower bound of the true one")
{
    static uint64_t sorted[3000];
    uint64_t random = 1;

    for (int round = 0; round < 200; round++) {
        size_t count = 20 + (size_t)round * 14;

        setup(NULL);
        for (size_t i = 0; i < count; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            sorted[i] = 1024 + (random >> 20) % (UINT64_C(1) << (11 + random % 26));
            add(sorted[i], i % 4 == 0);
        }
        qsort(sorted, count, sizeof sorted[0], ascending);
        look(S);

        uint64_t exact = sorted[count - count / 100 - 1], seen = readings[WEIR_SIGNAL_P99].value;

        assert_true(seen <= exact);
        assert_true((double)seen >= (double)exact * (1 - 0.063));
        assert_int_equal(readings[WEIR_SIGNAL_ERRORS].value, (count + 3) / 4 * 10000 / count);
    }
}

TEST_WITH(setup, NULL, "extremes are kept within the buckets")
{
    for (int i = 0; i < 100; i++)
        add(i % 2 == 0 ? 0 : UINT64_MAX, false);
    look(S);
    assert_true(readings[WEIR_SIGNAL_P99].value > 100 * S);
}

TEST_WITH(setup, NULL, "results leave the window after ten seconds")
{
    for (int i = 0; i < 100; i++)
        add(5 * S, true);
    for (uint64_t second = 1; second <= 10; second++) {
        look(second * S);
        assert_int_equal(readings[WEIR_SIGNAL_ERRORS].value, 10000);
    }
    look(11 * S);
    assert_int_equal(readings[WEIR_SIGNAL_ERRORS].until_ns, 0);
    for (int i = 0; i < 100; i++)
        add(MS, false);
    look(12 * S);
    assert_int_equal(readings[WEIR_SIGNAL_ERRORS].value, 0);
    assert_in_range(readings[WEIR_SIGNAL_P99].value, MS * 93 / 100, MS);
}

TEST("the history keeps the lowest of each slice")
{
    struct weir_scale_history history = {0};
    const uint64_t slice = WEIR_SCALE_SLICE_NS, start = 1000 * slice;

    assert_int_equal(weir_scale_history_at(&history, 0), 0);
    weir_scale_history_note(&history, start, 100);
    weir_scale_history_note(&history, start + S, 40);
    weir_scale_history_note(&history, start + 2 * S, 70);
    assert_int_equal(weir_scale_history_at(&history, 0), 40);
    weir_scale_history_note(&history, start + 3 * slice, 90);
    assert_int_equal(weir_scale_history_at(&history, 0), 90);
    assert_int_equal(weir_scale_history_at(&history, 1), 70); /* nothing was noted: it held */
    assert_int_equal(weir_scale_history_at(&history, 2), 70);
    assert_int_equal(weir_scale_history_at(&history, 3), 40);
    assert_int_equal(weir_scale_history_at(&history, 4), 0);
    assert_int_equal(weir_scale_history_at(&history, WEIR_SCALE_SLICES), 0);
}

TEST("after a long gap the history is what held")
{
    struct weir_scale_history history = {0};
    const uint64_t slice = WEIR_SCALE_SLICE_NS;

    weir_scale_history_note(&history, 1000 * slice, 50);
    weir_scale_history_note(&history, 5000 * slice, 80);
    assert_int_equal(weir_scale_history_at(&history, 0), 80);
    for (uint32_t age = 1; age < WEIR_SCALE_SLICES; age++)
        assert_int_equal(weir_scale_history_at(&history, age), 50);
}

RUN_TESTS()
