/* SPDX-License-Identifier: Apache-2.0 */
/* The history's thread: order, groups, a full queue, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "core/bytes.h"
#include "server/standing/keeper.h"
#include "temporary.h"

#define S UINT64_C(1000000000)

struct rig {
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16];
    uv_loop_t loop;
    struct weir_history *history;
    struct weir_keeper *keeper;
    unsigned done;
    json_t *answer, *moves;
    int err;
};

static int open_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct weir_history_options options;

    temporary_folder(rig->folder);
    snprintf(rig->path, sizeof rig->path, "%s/standing.db", rig->folder);
    options = (struct weir_history_options){.path = rig->path};
    *state = rig;
    uv_loop_init(&rig->loop);
    return weir_history_open(&rig->history, &options, NULL) < 0 ||
           weir_keeper_open(&rig->keeper, rig->history, &rig->loop) < 0;
}

static void close_handle(uv_handle_t *handle, void *context)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static int close_rig(void **state)
{
    struct rig *rig = *state;

    weir_keeper_stop(rig->keeper);
    uv_walk(&rig->loop, close_handle, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    uv_loop_close(&rig->loop);
    weir_keeper_close(rig->keeper);
    weir_history_close(rig->history);
    temporary_remove(rig->folder);
    json_decref(rig->answer);
    json_decref(rig->moves);
    free(rig);
    return 0;
}

static void job_done(struct weir_keeper_job *job)
{
    struct rig *rig = job->context;

    rig->done++;
    rig->err = job->err;
    json_decref(rig->answer);
    rig->answer = json_incref(job->answer);
    json_decref(rig->moves);
    rig->moves = json_incref(job->moves);
    weir_keeper_free(rig->keeper, job);
}

static struct weir_keeper *swap_keeper;

static void swap_done(struct weir_keeper_job *job)
{
    bool *swapped = job->context;

    assert_int_equal(job->err, 0);
    *swapped = job->found;
    weir_keeper_free(swap_keeper, job);
}

static bool start(struct rig *rig, enum weir_keeper_op op, const char *value)
{
    struct weir_keeper_job *job = weir_keeper_take(rig->keeper, op, weir_bytes_of("user"),
                                                   weir_bytes_of(value), weir_bytes_of("eve"));

    if (!job)
        return false;
    job->done = job_done;
    job->context = rig;
    job->now_ns = S;
    job->entry.entry = (struct weir_standing_entry){.since_ns = S,
                                                    .until_ns = WEIR_NEVER,
                                                    .level = WEIR_STANDING_SUSPENDED,
                                                    .origin = WEIR_STANDING_BY_OPERATOR};
    job->filter = (struct weir_history_filter){.level = -1, .now_ns = S, .count = 10000};
    weir_keeper_start(rig->keeper, job);
    return true;
}

static void run_until(struct rig *rig, unsigned done)
{
    while (rig->done < done)
        uv_run(&rig->loop, UV_RUN_ONCE);
}

static void test_jobs_are_done_in_their_order(void **state)
{
    struct rig *rig = *state;

    assert_true(start(rig, WEIR_KEEPER_SET, "ada"));
    assert_true(start(rig, WEIR_KEEPER_SET, "bob"));
    assert_true(start(rig, WEIR_KEEPER_CLEAR, "ada"));
    assert_true(start(rig, WEIR_KEEPER_ENTRIES, ""));
    run_until(rig, 4);
    assert_int_equal(json_array_size(rig->answer), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(rig->answer, 0), "value")),
                        "bob");
    assert_true(start(rig, WEIR_KEEPER_ROWS, ""));
    run_until(rig, 5);
    assert_int_equal(json_array_size(rig->answer), 3);
}

static void test_a_full_queue_takes_no_more_until_jobs_are_done(void **state)
{
    struct rig *rig = *state;
    unsigned count = 0;
    char name[16];

    /* None is done before the loop runs. */
    while (count < WEIR_KEEPER_JOBS_MAX) {
        snprintf(name, sizeof name, "u%u", count);
        assert_true(start(rig, WEIR_KEEPER_SET, name));
        count++;
    }
    assert_int_equal(weir_keeper_jobs(rig->keeper), WEIR_KEEPER_JOBS_MAX);
    assert_false(start(rig, WEIR_KEEPER_SET, "more"));
    run_until(rig, count);
    assert_int_equal(weir_keeper_jobs(rig->keeper), 0);
    assert_true(start(rig, WEIR_KEEPER_ENTRIES, ""));
    run_until(rig, count + 1);
    assert_int_equal(json_array_size(rig->answer), WEIR_KEEPER_JOBS_MAX);
}

/* Two workers' moves from one state, in one transaction: one of them is made, with its entry. */
static void test_of_two_swaps_from_one_state_one_is_made(void **state)
{
    struct rig *rig = *state;
    const struct weir_keeper_swap swap = {.penalty = weir_bytes_of("brute"),
                                          .next = {.until_ns = 9 * S, .clean_ns = 9 * S, .step = 1},
                                          .gone_ns = 20 * S,
                                          .sets = true};
    struct weir_keeper_ladders ladders;
    bool swapped[2];

    for (int i = 0; i < 2; i++) {
        struct weir_keeper_job *job = weir_keeper_take(
            rig->keeper, WEIR_KEEPER_SWAP, weir_bytes_of("user"), weir_bytes_of("ada"),
            weir_bytes_of(i == 0 ? "penalty one" : "penalty two"));

        assert_non_null(job);
        job->swap = &swap;
        job->now_ns = S;
        job->entry.entry = (struct weir_standing_entry){.since_ns = S,
                                                        .until_ns = 9 * S,
                                                        .level = WEIR_STANDING_WARNED,
                                                        .origin = WEIR_STANDING_BY_PENALTY};
        job->done = swap_done;
        job->context = &swapped[i];
        swap_keeper = rig->keeper;
        weir_keeper_start(rig->keeper, job);
    }
    struct weir_keeper_job *job =
        weir_keeper_take(rig->keeper, WEIR_KEEPER_ENTRIES, weir_bytes_of("user"),
                         weir_bytes_of("ada"), weir_bytes_of("eve"));
    job->ladders = &ladders;
    job->done = job_done;
    job->context = rig;
    job->filter = (struct weir_history_filter){.kind = weir_bytes_of("user"),
                                               .value = weir_bytes_of("ada"),
                                               .level = -1,
                                               .now_ns = S,
                                               .count = 10};
    weir_keeper_start(rig->keeper, job);
    run_until(rig, 1);
    assert_true(swapped[0]);
    assert_false(swapped[1]);
    assert_int_equal(ladders.count, 1);
    assert_int_equal(ladders.ladders[0].state.step, 1);
    assert_string_equal(ladders.ladders[0].penalty, "brute");
    assert_string_equal(json_string_value(json_object_get(json_array_get(rig->answer, 0), "by")),
                        "penalty one");
    assert_int_equal(json_array_size(rig->moves), 1);
}

static void test_what_is_queued_is_kept_when_it_stops(void **state)
{
    struct rig *rig = *state;
    struct weir_history_options options = {.path = rig->path};
    struct weir_history *history = NULL;
    struct weir_history_entry like = {.kind = weir_bytes_of("user"), .value = weir_bytes_of("u99")};
    int was;

    for (int i = 0; i < 100; i++) {
        char name[16];

        snprintf(name, sizeof name, "u%d", i);
        assert_true(start(rig, WEIR_KEEPER_SET, name));
    }
    weir_keeper_stop(rig->keeper);
    assert_int_equal(weir_history_open(&history, &options, NULL), 0);
    like.entry.origin = WEIR_STANDING_BY_OPERATOR;
    assert_int_equal(weir_history_clear(history, S, &like, &was, NULL), 1);
    weir_history_close(history);
}

int main(void)
{
#define WITH_A_RIG(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        WITH_A_RIG(test_jobs_are_done_in_their_order),
        WITH_A_RIG(test_a_full_queue_takes_no_more_until_jobs_are_done),
        WITH_A_RIG(test_of_two_swaps_from_one_state_one_is_made),
        WITH_A_RIG(test_what_is_queued_is_kept_when_it_stops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
