/* SPDX-License-Identifier: Apache-2.0 */
/* One thread beside a loop: jobs one after the other, and one that does not return. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/daemon/background.h"
#include "test.h"

/* Long enough never to be waited for in full. */
#define LONG_MS 60000

struct test_job {
    struct weir_job job;
    struct weir_background *background;
    uv_thread_t opener, ran_on;
    int gate[2];     /* `run` reads a byte from it; closed: it continues */
    int begun[2];    /* `run` writes a byte to it */
    atomic_uint ran; /* how often */
    unsigned done, dropped;
    struct test_job *next;
};

static void job_run(struct weir_job *job)
{
    struct test_job *test = (struct test_job *)(void *)job;
    char byte;
    test->ran_on = uv_thread_self();
    assert_int_equal(write(test->begun[1], "x", 1), 1);
    while (read(test->gate[0], &byte, 1) > 0)
        continue;
    test->ran++;
}

static void job_done(struct weir_job *job)
{
    struct test_job *test = (struct test_job *)(void *)job;
    uv_thread_t self = uv_thread_self();
    assert_true(uv_thread_equal(&self, &test->opener));
    assert_false(uv_thread_equal(&self, &test->ran_on));
    test->done++;
    assert_false(weir_background_busy(test->background));
    if (test->next)
        weir_background_start(test->background, &test->next->job);
}

static void job_drop(struct weir_job *job)
{
    ((struct test_job *)(void *)job)->dropped++;
}

static void job_make(struct test_job *test, struct weir_background *background)
{
    *test = (struct test_job){.job = {.run = job_run, .done = job_done, .drop = job_drop},
                              .background = background,
                              .opener = uv_thread_self()};
    assert_int_equal(pipe(test->gate), 0);
    assert_int_equal(pipe(test->begun), 0);
}

static void job_release(struct test_job *test)
{
    close(test->gate[1]);
}

static void job_free(struct test_job *test)
{
    close(test->gate[0]);
    close(test->begun[0]);
    close(test->begun[1]);
}

static void close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void expect_closing(uv_handle_t *handle, void *context)
{
    assert_non_null(
        handle->data); /* reads it, for the sanitizers, which do not see libuv's reads */
    assert_true(uv_is_closing(handle));
}

static void loop_close(uv_loop_t *loop)
{
    uv_walk(loop, close_handle, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(loop), 0);
}

TEST("a job is waited for before there is a loop")
{
    struct weir_background *background;
    struct test_job job;
    assert_int_equal(weir_background_open(&background), 0);
    assert_false(weir_background_busy(background));
    job_make(&job, background);
    job_release(&job);
    weir_background_start(background, &job.job);
    assert_true(weir_background_busy(background));
    weir_background_wait(background);
    assert_int_equal(job.ran, 1);
    assert_int_equal(job.done, 1);
    assert_true(weir_background_close(background, LONG_MS));
    assert_int_equal(job.dropped, 0); /* it was done */
    job_free(&job);
}

TEST("jobs run beside the loop one after the other")
{
    struct weir_background *background;
    struct test_job first, second;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(weir_background_open(&background), 0);
    assert_int_equal(weir_background_join_loop(background, &loop), 0);
    job_make(&first, background);
    job_make(&second, background);
    first.next = &second;
    weir_background_start(background, &first.job);
    uv_run(&loop, UV_RUN_NOWAIT); /* it does not wait for the job */
    assert_true(weir_background_busy(background));
    assert_int_equal(first.done, 0);
    job_release(&first);
    while (first.done == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(second.ran, 0);
    job_release(&second);
    while (second.done == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(first.ran + second.ran, 2);
    assert_int_equal(first.done + second.done, 2);
    assert_true(weir_background_close(background, LONG_MS));
    uv_walk(&loop, expect_closing, NULL); /* the loop still has the handle, and so its memory */
    loop_close(&loop);
    job_free(&first);
    job_free(&second);
}

TEST("jobs that are queued run in their order, after those that are started")
{
    struct weir_background *background;
    struct test_job jobs[4]; /* the first starts the last, before those that are queued */
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(weir_background_open(&background), 0);
    assert_int_equal(weir_background_join_loop(background, &loop), 0);
    for (unsigned i = 0; i < 4; i++)
        job_make(&jobs[i], background);
    jobs[0].next = &jobs[3];
    for (unsigned i = 0; i < 3; i++)
        weir_background_queue(background, &jobs[i].job);
    const unsigned order[] = {0, 3, 1, 2};
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned later = i; later < 4; later++)
            assert_int_equal(jobs[order[later]].ran, 0);
        job_release(&jobs[order[i]]);
        while (jobs[order[i]].done == 0)
            uv_run(&loop, UV_RUN_ONCE);
    }
    assert_false(weir_background_busy(background));
    assert_true(weir_background_close(background, LONG_MS));
    loop_close(&loop);
    for (unsigned i = 0; i < 4; i++)
        job_free(&jobs[i]);
}

TEST("jobs that are queued are dropped at a close, and have a bound")
{
    static struct test_job jobs[WEIR_BACKGROUND_QUEUE_MAX + 1];
    struct weir_background *background;
    char byte;
    assert_int_equal(weir_background_open(&background), 0);
    for (unsigned i = 0; i <= WEIR_BACKGROUND_QUEUE_MAX; i++) {
        job_make(&jobs[i], background);
        assert_true(weir_background_has_room(background));
        weir_background_queue(background, &jobs[i].job);
    }
    assert_false(weir_background_has_room(background));
    assert_int_equal(read(jobs[0].begun[0], &byte, 1), 1);
    job_release(&jobs[0]);
    assert_true(weir_background_close(background, LONG_MS));
    for (unsigned i = 0; i <= WEIR_BACKGROUND_QUEUE_MAX; i++) {
        assert_int_equal(jobs[i].ran, i == 0);
        assert_int_equal(jobs[i].done, 0);
        assert_int_equal(jobs[i].dropped, 1);
        if (i > 0)
            job_release(&jobs[i]);
        job_free(&jobs[i]);
    }
}

TEST("a loop may be closed before")
{
    struct weir_background *background;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(weir_background_open(&background), 0);
    assert_int_equal(weir_background_join_loop(background, &loop), 0);
    loop_close(&loop);
    assert_true(weir_background_close(background, LONG_MS));
}

TEST("closing leaves a job that does not return")
{
    struct weir_background *background;
    struct test_job job;
    assert_int_equal(weir_background_open(&background), 0);
    job_make(&job, background);
    weir_background_start(background, &job.job);
    char byte;
    assert_int_equal(read(job.begun[0], &byte, 1), 1);
    assert_false(weir_background_close(background, 1));
    assert_int_equal(job.dropped, 0); /* the thread still uses it */
    job_release(&job);
    assert_true(weir_background_close(background, LONG_MS));
    assert_int_equal(job.done, 0); /* nobody takes over what it has made */
    assert_int_equal(job.dropped, 1);
    job_free(&job);
    assert_true(weir_background_close(NULL, 0));
}

RUN_TESTS()
