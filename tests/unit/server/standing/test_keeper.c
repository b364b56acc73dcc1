/* SPDX-License-Identifier: Apache-2.0 */
/* The history's thread: order, groups, a full queue, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/bytes.h"
#include "feature/standing/server/keeper.h"
#include "temporary.h"
#include "test.h"

#define S UINT64_C(1000000000)

struct rig {
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16];
    uv_loop_t loop;
    struct weir_history *history;
    struct weir_keeper *keeper;
    unsigned done, late;
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
           weir_keeper_open(&rig->keeper, rig->history, rig->path, &rig->loop) < 0;
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
    job->filter = (struct weir_history_filter){.level = -1, .now_ns = S, .count = 100000};
    weir_keeper_start(rig->keeper, job);
    return true;
}

static void run_until(struct rig *rig, unsigned done)
{
    while (rig->done < done)
        uv_run(&rig->loop, UV_RUN_ONCE);
}

TEST_WITH(open_rig, close_rig, "test jobs are done in their order")
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

TEST_WITH(open_rig, close_rig, "test a full queue takes no more until jobs are done")
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
TEST_WITH(open_rig, close_rig, "test of two swaps from one state one is made")
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

TEST_WITH(open_rig, close_rig, "test what is queued is kept when it stops")
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

static void job_late(struct weir_keeper_job *job)
{
    struct rig *rig = job->context;

    rig->late++;
}

/* Another process that has the history locked. */
static sqlite3 *lock(struct rig *rig)
{
    sqlite3 *other;

    assert_int_equal(sqlite3_open(rig->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return other;
}

static void unlock(sqlite3 *other)
{
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(other);
}

static struct weir_keeper_job *waited_for(struct rig *rig, const char *value)
{
    struct weir_keeper_job *job =
        weir_keeper_take(rig->keeper, WEIR_KEEPER_SET, weir_bytes_of("user"), weir_bytes_of(value),
                         weir_bytes_of("eve"));

    assert_non_null(job);
    job->done = job_done;
    job->late = job_late;
    job->context = rig;
    job->now_ns = S;
    job->entry.entry = (struct weir_standing_entry){.since_ns = S,
                                                    .until_ns = WEIR_NEVER,
                                                    .level = WEIR_STANDING_SUSPENDED,
                                                    .origin = WEIR_STANDING_BY_OPERATOR};
    return job;
}

TEST_WITH(open_rig, close_rig, "test changes that wait are late once and made in their order later")
{
    struct rig *rig = *state;
    struct weir_keeper_state now;
    sqlite3 *other = lock(rig);

    weir_keeper_start(rig->keeper, waited_for(rig, "ada"));
    weir_keeper_start(rig->keeper, waited_for(rig, "bob"));
    assert_true(start(rig, WEIR_KEEPER_CLEAR, "ada"));
    while (rig->late < 2)
        uv_run(&rig->loop, UV_RUN_ONCE);
    assert_int_equal(rig->done, 0);
    assert_int_equal(weir_keeper_jobs(rig->keeper), 3);
    do
        weir_keeper_state(rig->keeper, &now);
    while (!now.down);
    assert_true(start(rig, WEIR_KEEPER_ENTRIES, "")); /* reading does not wait */
    run_until(rig, 1);
    assert_int_equal(json_array_size(rig->answer), 0);
    unlock(other);
    run_until(rig, 4);
    assert_int_equal(rig->late, 2);
    assert_true(start(rig, WEIR_KEEPER_ENTRIES, ""));
    run_until(rig, 5);
    assert_int_equal(json_array_size(rig->answer), 1);
    do
        weir_keeper_state(rig->keeper, &now);
    while (now.down);
}

static void take_lost(void *context, const struct weir_keeper_job *job)
{
    char *names = context;

    strncat(names, job->entry.value.data, job->entry.value.size);
    strcat(names, job->op == WEIR_KEEPER_CLEAR ? "- " : "+ ");
}

TEST_WITH(open_rig, close_rig, "test a stop names what it could not write")
{
    struct rig *rig = *state;
    struct weir_keeper_state now;
    sqlite3 *other = lock(rig);
    char names[100] = "";

    weir_keeper_start(rig->keeper, waited_for(rig, "ada"));
    assert_true(start(rig, WEIR_KEEPER_CLEAR, "bob"));
    weir_keeper_stop(rig->keeper);
    weir_keeper_state(rig->keeper, &now);
    assert_int_equal(now.lost, 2);
    weir_keeper_each_lost(rig->keeper, take_lost, names);
    assert_string_equal(names, "ada+ bob- ");
    unlock(other);
}

TEST_WITH(open_rig, close_rig, "test a file that is gone is written again")
{
    struct rig *rig = *state;
    struct weir_keeper_state now;

    assert_true(start(rig, WEIR_KEEPER_SET, "ada"));
    run_until(rig, 1);
    assert_int_equal(unlink(rig->path), 0);
    weir_keeper_reopen(rig->keeper);
    do
        weir_keeper_state(rig->keeper, &now);
    while (now.reopened == 0);
    assert_true(start(rig, WEIR_KEEPER_SET, "bob"));
    assert_true(start(rig, WEIR_KEEPER_ENTRIES, ""));
    run_until(rig, 3);
    assert_int_equal(json_array_size(rig->answer), 2);
    assert_int_equal(access(rig->path, F_OK), 0);
}

/* As where the disk was full, or the database locked, when weir started. */
TEST_WITH(open_rig, close_rig, "test a history that was not open is opened later")
{
    struct rig *rig = *state;
    struct weir_keeper *keeper;
    struct weir_keeper_state now;
    char path[sizeof rig->path + 16];

    snprintf(path, sizeof path, "%s/later/standing.db", rig->folder);
    assert_int_equal(weir_keeper_open(&keeper, NULL, path, &rig->loop), 0);
    weir_keeper_state(keeper, &now);
    assert_true(now.down && !now.opened);
    *strrchr(path, '/') = '\0';
    assert_int_equal(mkdir(path, 0700), 0);
    do
        weir_keeper_state(keeper, &now);
    while (!now.opened || now.down);
    assert_int_equal(now.reopened, 0);
    weir_keeper_stop(keeper);
    uv_walk(&rig->loop, close_handle, NULL);
    uv_run(&rig->loop, UV_RUN_DEFAULT);
    weir_keeper_close(keeper);
}

RUN_TESTS()
