/* SPDX-License-Identifier: Apache-2.0 */
/* What keys ask for, beside the core's sliding window; samples; memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/suggest/demand.h"
#include "draw.h"
#include "failing_memory.h"
#include "test.h"

#include <weir/limit.h>

#define START UINT64_C(1700000000123456789)
#define ASKED 400

/* How many of the requests a sliding window of N would deny. */
static unsigned denials(uint64_t window_ns, uint64_t n, const uint64_t *times,
                        const uint64_t *costs)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_SLIDING_WINDOW, .rate = n, .window_ns = window_ns};
    struct weir_cell cell = {0, 0};
    struct weir_limit limit;
    unsigned denied = 0;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    for (unsigned i = 0; i < ASKED; i++) {
        const struct weir_use use = {.now_ns = times[i], .cost = costs[i]};

        denied += !weir_decide(&limit, &cell, &use, NULL, NULL);
    }
    return denied;
}

TEST("the most is the smallest limit that denies nothing")
{
    uint64_t random = 88172645463325252, times[ASKED], costs[ASKED], t = START;

    for (unsigned trial = 0; trial < 60; trial++) {
        struct suggest_demand *demand = suggest_demand_open(100);
        const uint64_t hash[2] = {trial, trial};
        const struct suggest_key *key;
        uint64_t pause_ns = UINT64_C(1) << (10 + draw_next(&random) % 32);

        for (unsigned i = 0; i < ASKED; i++) {
            t += draw_next(&random) % 8 == 0 ? 0 : draw_next(&random) % pause_ns;
            times[i] = t;
            costs[i] = trial % 2 == 0 ? 1 : draw_next(&random) % 5000;
            assert_int_equal(suggest_demand_add(demand, 3, hash, t, costs[i], &key), 0);
        }
        assert_non_null(key);
        assert_int_equal(key->requests, ASKED);
        for (int w = 0; w < SUGGEST_WINDOWS; w++) {
            assert_int_equal(denials(suggest_window_ns[w], key->most[w], times, costs), 0);
            assert_true(denials(suggest_window_ns[w], key->most[w] - 1, times, costs) > 0);
        }
        suggest_demand_close(demand);
    }
}

TEST("counts stop at their largest")
{
    struct suggest_demand *demand = suggest_demand_open(1);
    const uint64_t hash[2] = {0, 0};
    const struct suggest_key *key = NULL;

    for (int i = 0; i < 3; i++)
        assert_int_equal(suggest_demand_add(demand, 0, hash, START, UINT64_C(3000000000), &key), 0);
    assert_int_equal(key->most[0], UINT32_MAX);
    assert_int_equal(
        suggest_demand_add(demand, 0, hash, START + suggest_window_ns[0], UINT64_MAX, &key), 0);
    assert_int_equal(key->most[2], UINT32_MAX);
    suggest_demand_close(demand);
}

TEST("a sample is the same in whatever order keys come")
{
    enum { KEYS = 5000, MAX = 700 };
    size_t counts[2];
    uint64_t shares[2];

    for (int order = 0; order < 2; order++) {
        struct suggest_demand *demand = suggest_demand_open(MAX);

        for (unsigned i = 0; i < 2 * KEYS; i++) {
            uint64_t number = order == 0 ? i % KEYS : KEYS - 1 - i % KEYS, random = number + 1;
            const uint64_t hash[2] = {draw_next(&random) >> 7, number};
            const struct suggest_key *key;

            assert_int_equal(suggest_demand_add(demand, 1, hash, START, 1, &key), 0);
            if (key != NULL && i >= KEYS)
                assert_int_equal(key->most[0], 2); /* complete, although others went */
        }

        uint32_t *sorted = suggest_demand_sorted(demand, 1, 0, &counts[order]);

        assert_non_null(sorted);
        assert_int_equal(sorted[0], 2);
        free(sorted);
        shares[order] = suggest_demand_share(demand);
        suggest_demand_close(demand);
    }
    assert_int_equal(shares[0], shares[1]);
    assert_int_equal(counts[0], counts[1]);
    assert_int_equal(shares[0], 8);
    assert_in_range(counts[0], MAX / 2, MAX);
}

TEST("routes are reported apart and sorted")
{
    struct suggest_demand *demand = suggest_demand_open(1000);
    const struct suggest_key *key;
    size_t count;

    for (unsigned i = 0; i < 50; i++) {
        const uint64_t hash[2] = {i, i};

        assert_int_equal(suggest_demand_add(demand, i % 2, hash, START, 100 - i, &key), 0);
    }

    uint32_t *sorted = suggest_demand_sorted(demand, 1, 1, &count);

    assert_int_equal(count, 25);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(sorted[i], 51 + 2 * i);
    free(sorted);
    assert_null(suggest_demand_sorted(demand, 7, 1, &count));
    assert_int_equal(count, 0);
    suggest_demand_close(demand);
}

TEST("memory that runs out is an error")
{
    const struct suggest_key *key;
    int failures = 0;

    for (long after = 0; after < 8; after++) {
        struct suggest_demand *demand;
        int error = 0;

        failing_memory_after(after);
        demand = suggest_demand_open(100000);
        for (unsigned i = 0; demand != NULL && error == 0 && i < 4000; i++) {
            const uint64_t hash[2] = {i, i};

            error = suggest_demand_add(demand, 0, hash, START, 1, &key);
        }
        if (failing_memory_stop()) {
            failures++;
            assert_true(demand == NULL || error == WEIR_ERR_MEMORY);
        }
        suggest_demand_close(demand);
    }
    assert_true(failures >= 4);
}

RUN_TESTS()
