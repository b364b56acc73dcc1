/* SPDX-License-Identifier: Apache-2.0 */
/* How open files are shared among listeners: the pools fit the limit, the admin listener has its
 * part, and a limit that is too low is said to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <unistd.h>

#include <weir/error.h>

#include "draw.h"
#include "server/net/files.h"
#include "test.h"

static uint64_t needed(const struct weir_files *files, const struct weir_files_plan *plan)
{
    return files->taken +
           (uint64_t)files->listeners * (plan->decisions.max + plan->decisions.refusals) +
           (uint64_t)files->admin_listeners * (plan->admin.max + plan->admin.refusals);
}

TEST("there is enough for everybody")
{
    const struct weir_files files = {1048576, 40, 2, 3, 1};
    struct weir_files_plan plan;
    assert_int_equal(weir_files_plan(&files, &plan), 0);
    assert_int_equal(plan.decisions.max, 2 * WEIR_CONNECTIONS_MAX);
    assert_int_equal(plan.decisions.refusals, WEIR_REFUSALS_MAX);
    assert_int_equal(plan.admin.max, WEIR_ADMIN_CONNECTIONS_MAX);
    assert_true(needed(&files, &plan) <= plan.full);
    assert_true(plan.full < files.limit);
}

TEST("few files are shared and the admin listener has its part")
{
    const struct weir_files files = {64, 36, 2, 1, 1};
    struct weir_files_plan plan;
    assert_int_equal(weir_files_plan(&files, &plan), 0);
    assert_int_equal(plan.admin.max, 3);
    assert_int_equal(plan.admin.refusals, 1);
    assert_int_equal(plan.decisions.max, 21);
    assert_int_equal(plan.decisions.refusals, 3);
}

TEST("without a limit nothing is counted over")
{
    const struct weir_files files = {UINT64_MAX, 40, WEIR_WORKERS_MAX, 3, 2};
    struct weir_files_plan plan;
    assert_int_equal(weir_files_plan(&files, &plan), 0);
    assert_int_equal(plan.decisions.max, WEIR_WORKERS_MAX * WEIR_CONNECTIONS_MAX);
}

TEST("of listeners that are off nothing is kept")
{
    const struct weir_files files = {100, 40, 1, 0, 0};
    struct weir_files_plan plan;
    assert_int_equal(weir_files_plan(&files, &plan), 0);
    assert_int_equal(needed(&files, &plan), 40);
    assert_int_equal(plan.least, 40);
}

TEST("random plans fit their limit and waste little")
{
    uint64_t random = 88172645463325252;
    unsigned refused = 0, tight = 0;
    for (int step = 0; step < 200000; step++) {
        (void)draw_next(&random);
        struct weir_files files = {.limit = (random >> 8) % (step % 2 ? 200 : 200000),
                                   .taken = (random >> 32) % 100,
                                   .workers = 1 + (uint32_t)(random >> 40) % 8,
                                   .listeners = (uint32_t)(random >> 50) % 4,
                                   .admin_listeners = (uint32_t)(random >> 60) % 3};
        struct weir_files_plan plan, next;
        int err = weir_files_plan(&files, &plan);
        assert_int_equal(err, files.limit < plan.least ? WEIR_ERR_FULL : 0);
        refused += err != 0;
        if (err != 0) {
            files.limit = plan.least;
            assert_int_equal(weir_files_plan(&files, &plan), 0);
        }
        assert_true(needed(&files, &plan) <= files.limit);
        if (files.listeners > 0) {
            assert_true(plan.decisions.max >= 3 && plan.decisions.refusals >= 1);
            uint64_t wasted = files.limit - needed(&files, &plan);
            bool all = plan.decisions.max == files.workers * WEIR_CONNECTIONS_MAX;
            assert_true(all ||
                        wasted < files.listeners + files.admin_listeners * WEIR_REFUSALS_MAX);
            tight += !all;
        }
        assert_true(files.admin_listeners == 0 || plan.admin.max >= 3);
        files.limit++; /* one file more takes nothing from a client but what the limit shows */
        assert_int_equal(weir_files_plan(&files, &next), 0);
        assert_true(next.decisions.max + next.decisions.refusals + files.admin_listeners >=
                    plan.decisions.max + plan.decisions.refusals);
    }
    assert_true(refused > 1000 && tight > 1000);
}

TEST("files that are open are counted")
{
    uint32_t before = weir_files_count();
    int fds[2];
    assert_true(before >= 3);
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(weir_files_count(), before + 2);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(weir_files_count(), before);
}

RUN_TESTS()
