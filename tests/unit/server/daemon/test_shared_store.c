/* SPDX-License-Identifier: Apache-2.0 */
/* The store that nodes share, as the daemon tells of it: one line for one change, whatever the
 * number of workers; totals that survive a worker. No server is asked: no server has the port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/stores/shared_store.h"
#include "test.h"

#define WORKERS 3

struct fixture {
    struct weir_log log;
    FILE *lines;
    off_t read; /* of them */
    struct weir_rules *rules;
    struct weir_shared_store *shared;
    uv_loop_t loop;
    struct weir_store *stores[WORKERS];
};

static struct weir_rules *rules_of(const char *text)
{
    struct weir_problems problems = {0};
    struct weir_rules *rules;
    int err = weir_rules_parse(&rules, "rules", ".", text, strlen(text), &problems);
    if (problems.count > 0)
        print_error("%s\n", problems.list[0].message);
    assert_int_equal(err, 0);
    weir_problems_free(&problems);
    return rules;
}

static int set_up(void **state)
{
    static struct fixture f;
    struct weir_reason reason = {{0}};
    f.read = 0;
    f.lines = tmpfile();
    assert_non_null(f.lines);
    weir_log_init(&f.log, fileno(f.lines), WEIR_LOG_TEXT);
    /* RFC 5735: 192.0.2.1 answers nobody; connecting takes longer than any of these tests. */
    f.rules = rules_of("version: 1\nlimits: []\n"
                       "store: {redis: {url: \"redis://192.0.2.1:1\"}, nodes: 2}\n");
    assert_int_equal(weir_shared_store_open(&f.shared, f.rules, &f.log, &reason), 0);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(weir_shared_store_join(f.shared, i, &f.loop, &f.stores[i], &reason), 0);
    *state = &f;
    return 0;
}

static void leave(struct fixture *f, unsigned i)
{
    weir_shared_store_leave(f->shared, i, f->stores[i], NULL, NULL);
    f->stores[i] = NULL;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < WORKERS; i++)
        if (f->stores[i])
            leave(f, i);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    weir_shared_store_close(f->shared);
    weir_rules_unref(f->rules);
    fclose(f->lines);
    return 0;
}

/* The events logged since the last call, each with a space behind it. */
static const char *events(struct fixture *f)
{
    static char found[1024], text[8192];
    found[0] = '\0';
    ssize_t size = pread(fileno(f->lines), text, sizeof text - 1, f->read);
    assert_true(size >= 0);
    f->read += size;
    text[size] = '\0';
    for (const char *at = strstr(text, "event="); at; at = strstr(at + 1, "event=")) {
        char event[64];
        assert_int_equal(sscanf(at, "event=%63s", event), 1);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s ", event);
    }
    return found;
}

static void tell_all(struct fixture *f, const char *event, const char *text)
{
    for (unsigned i = 0; i < WORKERS; i++)
        weir_shared_store_tell(f->shared, i, event, text);
}

TEST_WITH(set_up, tear_down, "a change of all workers is one line")
{
    struct fixture *f = *state;
    tell_all(f, "store_up", "192.0.2.1:1");
    assert_string_equal(events(f), "store_up ");
    tell_all(f, "store_down", "refused");
    assert_string_equal(events(f), "store_down ");
    tell_all(f, "breaker_open", "10 calls");
    tell_all(f, "breaker_closed", "answered");
    tell_all(f, "store_up", "192.0.2.1:1");
    assert_string_equal(events(f), "breaker_open breaker_closed store_up ");
}

TEST_WITH(set_up, tear_down, "an event that the shared breaker is past is no line")
{
    struct fixture *f = *state;
    weir_shared_store_tell(f->shared, 0, "shared_breaker_closed", "answered");
    weir_shared_store_tell(f->shared, 1, "shared_breaker_open", "10 calls");
    assert_string_equal(events(f), "");
}

TEST_WITH(set_up, tear_down, "it is down with the first worker and up with the last")
{
    struct fixture *f = *state;
    weir_shared_store_tell(f->shared, 0, "store_up", "a");
    weir_shared_store_tell(f->shared, 1, "store_up", "a");
    assert_string_equal(events(f), "");
    weir_shared_store_tell(f->shared, 2, "store_up", "a");
    assert_string_equal(events(f), "store_up ");
    weir_shared_store_tell(f->shared, 1, "store_down", "gone");
    weir_shared_store_tell(f->shared, 2, "store_down", "gone");
    assert_string_equal(events(f), "store_down ");
    weir_shared_store_tell(f->shared, 1, "store_up", "a");
    assert_string_equal(events(f), "");
    weir_shared_store_tell(f->shared, 2, "store_up", "a");
    assert_string_equal(events(f), "store_up ");
}

TEST_WITH(set_up, tear_down, "another reason is a line and the same one is none")
{
    struct fixture *f = *state;
    tell_all(f, "store_down", "refused");
    tell_all(f, "store_down", "refused");
    assert_string_equal(events(f), "store_down ");
    tell_all(f, "store_down", "WRONGPASS");
    assert_string_equal(events(f), "store_still_down ");
    tell_all(f, "store_error", "OOM");
    tell_all(f, "store_error", "OOM");
    assert_string_equal(events(f), "store_error ");
}

TEST_WITH(set_up, tear_down, "the admin worker and those that left are not reported of")
{
    struct fixture *f = *state;
    weir_shared_store_tell(f->shared, WEIR_SHARED_STORE_ADMIN, "store_down", "refused");
    assert_string_equal(events(f), "");
    tell_all(f, "store_down", "refused");
    assert_string_equal(events(f), "store_down ");
    struct weir_shared_totals totals;
    weir_shared_store_totals(f->shared, &totals);
    assert_int_equal(totals.workers, WORKERS);
    assert_int_equal(totals.up, 0);
    leave(f, 1);
    weir_shared_store_totals(f->shared, &totals);
    assert_int_equal(totals.workers, WORKERS - 1);
}

TEST_WITH(set_up, tear_down, "rules without such a store have none")
{
    struct fixture *f = *state;
    struct weir_shared_store *shared;
    struct weir_reason reason = {{0}};
    struct weir_rules *rules = rules_of("version: 1\nlimits: []\n");
    assert_int_equal(weir_shared_store_open(&shared, rules, &f->log, &reason), 0);
    assert_null(shared);
    weir_shared_store_close(shared);
    weir_rules_unref(rules);
}

RUN_TESTS()
