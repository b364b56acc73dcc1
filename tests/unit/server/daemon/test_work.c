/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for the background thread, and when the log says so; in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/daemon/background.h"
#include "server/daemon/work.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)

struct fixture {
    struct weir_daemon *daemon;
    struct weir_job job;
    FILE *file;
    int gate[2]; /* the job reads from it until it is closed */
    unsigned begun;
    char text[4096];
};
static struct fixture fixture;

static void hang(struct weir_job *job)
{
    char byte;
    (void)job;
    while (read(fixture.gate[0], &byte, 1) > 0)
        continue;
}

static void ended(struct weir_job *job)
{
    (void)job;
    weir_daemon_want(fixture.daemon, 0);
}

static void begin(struct weir_daemon *daemon, unsigned wanted)
{
    (void)daemon;
    assert_int_equal(wanted, WEIR_WANT_RELOAD);
    fixture.begun++;
}

/* A daemon whose background thread hangs in a job. */
static int set_up(void **state)
{
    struct weir_daemon *daemon = calloc(1, sizeof *daemon);
    memset(&fixture, 0, sizeof fixture);
    assert_non_null(daemon);
    fixture.daemon = daemon;
    fixture.file = tmpfile();
    assert_non_null(fixture.file);
    weir_log_init(&daemon->log, fileno(fixture.file), WEIR_LOG_TEXT);
    daemon->work.begin = begin;
    assert_int_equal(pipe(fixture.gate), 0);
    assert_int_equal(weir_background_open(&daemon->background), 0);
    fixture.job = (struct weir_job){.what = "a look", .run = hang, .done = ended};
    weir_background_start(daemon->background, &fixture.job);
    *state = daemon;
    return 0;
}

static void release(void)
{
    close(fixture.gate[1]);
    fixture.gate[1] = -1;
    weir_background_wait(fixture.daemon->background);
}

static int tear_down(void **state)
{
    if (fixture.gate[1] >= 0)
        release();
    assert_true(weir_background_close(fixture.daemon->background, 60000));
    close(fixture.gate[0]);
    fclose(fixture.file);
    free(*state);
    return 0;
}

/* How many lines the log has, and the text of them. */
static unsigned logged(void)
{
    unsigned lines = 0;
    ssize_t size = pread(fileno(fixture.file), fixture.text, sizeof fixture.text - 1, 0);
    assert_true(size >= 0);
    fixture.text[size] = '\0';
    for (const char *at = fixture.text; *at; at++)
        lines += *at == '\n';
    return lines;
}

TEST_WITH(set_up, tear_down, "a reload that waits long says for what and says it each minute")
{
    weir_daemon_want(fixture.daemon, WEIR_WANT_RELOAD);
    assert_int_equal(fixture.begun, 0);
    for (uint64_t second = 100; second < 105; second++)
        weir_daemon_work_tick(fixture.daemon, second * SECOND);
    assert_int_equal(logged(), 0);
    weir_daemon_work_tick(fixture.daemon, 105 * SECOND);
    assert_int_equal(logged(), 1);
    assert_non_null(strstr(fixture.text, "event=reload_waits since_ms=5000 for=\"a look\""));
    for (uint64_t second = 106; second < 165; second++)
        weir_daemon_work_tick(fixture.daemon, second * SECOND);
    assert_int_equal(logged(), 1);
    weir_daemon_work_tick(fixture.daemon, 165 * SECOND);
    assert_int_equal(logged(), 2);
    release();
    assert_int_equal(fixture.begun, 1);
}

TEST_WITH(set_up, tear_down, "each wait is counted anew and only reloads are logged")
{
    weir_daemon_want(fixture.daemon, WEIR_WANT_WATCH);
    for (uint64_t second = 100; second < 200; second++)
        weir_daemon_work_tick(fixture.daemon, second * SECOND);
    weir_daemon_want(fixture.daemon, WEIR_WANT_RELOAD);
    weir_daemon_work_tick(fixture.daemon, 200 * SECOND);
    weir_daemon_work_tick(fixture.daemon, 204 * SECOND);
    fixture.daemon->work.wanted = 0; /* it has begun */
    weir_daemon_work_tick(fixture.daemon, 205 * SECOND);
    weir_daemon_want(fixture.daemon, WEIR_WANT_RELOAD);
    weir_daemon_work_tick(fixture.daemon, 206 * SECOND);
    weir_daemon_work_tick(fixture.daemon, 210 * SECOND);
    assert_int_equal(logged(), 0);
    weir_daemon_work_tick(fixture.daemon, 211 * SECOND);
    assert_int_equal(logged(), 1);
}

RUN_TESTS()
