/* SPDX-License-Identifier: Apache-2.0 */
/* The library beside a process on the same state file that is stopped while it holds locks. The
 * neighbour is a child that takes them through the table's internals and stops itself. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/weir.h>

#include "table/owner.h"
#include "table/params.h"
#include "temporary.h"
#include "test.h"

#define SIZE (UINT64_C(1) << 20)
#define MS UINT64_C(1000000)

struct place {
    char folder[TEMPORARY_MAX], rules[96], state[96];
    pid_t neighbour;
};

/* A limit for each answer to a store that fails, of three a day; and one more. */
static void write_rules(const struct place *place, const char *more)
{
    FILE *file = fopen(place->rules, "w");
    assert_non_null(file);
    fputs("version: 1\nlimits:\n", file);
    for (int i = 0; i < 3; i++) {
        const char *how = (const char *[]){"open", "closed", "local"}[i];
        fprintf(file,
                "  - { name: %s, match: { path: /%s }, key: [client.ip], rate: 3/day, "
                "algorithm: sliding_log, on_store_error: %s }\n",
                how, how, how);
    }
    fprintf(file,
            "  - { name: jobs, match: { path: /jobs }, key: [client.ip], algorithm: concurrency, "
            "limit: 5, life: 1h }\n%s",
            more);
    assert_int_equal(fclose(file), 0);
}

enum held { BUCKETS, LIST };

static void set_locks(struct weir_table_owner *owner, enum held held, bool locked)
{
    struct weir_table *table = owner->table;
    if (held == LIST && locked && params_lock(table) < 0)
        abort();
    if (held == LIST && !locked)
        params_unlock(table);
    for (uint64_t b = 0; held == BUCKETS && b < table->fixed.buckets; b++)
        if (!locked)
            owner_unlock(&table->buckets[b].lock);
        else if (!owner_lock(owner, &table->buckets[b].lock))
            abort();
}

/* Stopped by turns with the locks and without. */
static void live_as_neighbour(const char *path, enum held held)
{
    const struct weir_table_options options = {.path = path, .bytes = SIZE};
    struct weir_table_owner *owner;
    struct weir_table *table;
    if (weir_table_open(&table, &options, NULL) < 0 || weir_table_attach(table, &owner) < 0)
        abort();
    for (bool locked = true;; locked = !locked) {
        set_locks(owner, held, locked);
        raise(SIGSTOP);
    }
}

static void wait_stopped(const struct place *place)
{
    int status;
    assert_int_equal(waitpid(place->neighbour, &status, WUNTRACED), place->neighbour);
    assert_true(WIFSTOPPED(status));
}

static void start_neighbour(struct place *place, enum held held)
{
    place->neighbour = fork();
    assert_true(place->neighbour >= 0);
    if (place->neighbour == 0)
        live_as_neighbour(place->state, held);
    wait_stopped(place);
}

/* It takes its locks if it has none, and else gives them back. */
static void go_on(const struct place *place)
{
    assert_int_equal(kill(place->neighbour, SIGCONT), 0);
    wait_stopped(place);
}

static int setup(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    temporary_folder(place->folder);
    snprintf(place->rules, sizeof place->rules, "%s/rules.yaml", place->folder);
    snprintf(place->state, sizeof place->state, "%s/state", place->folder);
    write_rules(place, "");
    *state = place;
    return 0;
}

static int teardown(void **state)
{
    struct place *place = *state;
    if (place->neighbour > 0) {
        kill(place->neighbour, SIGKILL);
        waitpid(place->neighbour, NULL, 0);
    }
    temporary_remove(place->folder);
    free(place);
    return 0;
}

/* So long a patience that a thousand checks which each waited for it would take minutes. */
static int try_open(const struct place *place, struct weir **weir, struct weir_reason *reason)
{
    const struct weir_options options = {.state_file = place->state,
                                         .state_bytes = SIZE,
                                         .state_patience_ns = 200 * MS,
                                         .state_must_open = true};
    return weir_open(weir, place->rules, &options, reason);
}

static struct weir *open_weir(const struct place *place)
{
    struct weir_reason reason;
    struct weir *weir;
    if (try_open(place, &weir, &reason) < 0)
        fail_msg("%s", reason.text);
    return weir;
}

static void check(struct weir *weir, const char *path, struct weir_answer_summary *answer)
{
    const struct weir_attribute_value request[] = {{"path", path}, {"client.ip", "192.0.2.1"}};
    assert_int_equal(weir_check(weir, request, 2, 1, answer), 0);
}

static void expect(struct weir *weir, const char *path, bool allowed, bool failed)
{
    struct weir_answer_summary answer;
    check(weir, path, &answer);
    assert_int_equal(answer.allowed, allowed);
    assert_int_equal(answer.store_failed, failed);
}

TEST_WITH(setup, teardown, "a check is decided by on store error until the neighbour resumes")
{
    struct place *place = *state;
    struct weir *weir = open_weir(place);
    struct weir_answer_summary lease;
    static const char *const paths[] = {"/open", "/closed", "/local"};
    check(weir, "/jobs", &lease);
    assert_string_not_equal(lease.lease.text, "");
    for (int i = 0; i < 3; i++)
        for (int n = 0; n < 3; n++)
            expect(weir, paths[i], true, false);
    start_neighbour(place, BUCKETS);
    for (int n = 0; n < 500; n++) {
        expect(weir, "/open", true, true);
        expect(weir, "/closed", false, true);
        expect(weir, "/local", n < 3, true); /* the whole limit, in this process */
    }
    assert_int_equal(weir_release(weir, &lease.lease), WEIR_ERR_BUSY);
    go_on(place);
    for (int i = 0; i < 3; i++)
        expect(weir, paths[i], false, false);
    assert_int_equal(weir_release(weir, &lease.lease), 0);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "what a neighbour kept locked is free when it dies")
{
    struct place *place = *state;
    struct weir *weir = open_weir(place);
    start_neighbour(place, BUCKETS);
    expect(weir, "/closed", false, true);
    kill(place->neighbour, SIGKILL);
    assert_int_equal(waitpid(place->neighbour, NULL, 0), place->neighbour);
    place->neighbour = 0;
    expect(weir, "/closed", true, false);
    weir_close(weir);
}

TEST_WITH(setup, teardown,
          "a list of limits that stays locked is an error of opening and of reloading")
{
    struct place *place = *state;
    struct weir *weir = open_weir(place), *other;
    struct weir_reason reason;
    start_neighbour(place, LIST);
    assert_int_equal(try_open(place, &other, &reason), WEIR_ERR_BUSY);
    assert_non_null(
        strstr(reason.text, "limit open: a process that shares the state file is stopped"));
    write_rules(place, "  - { name: new, key: [client.ip], rate: 1/day }\n");
    assert_int_equal(weir_reload(weir, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, "is stopped"));
    expect(weir, "/closed", true, false); /* by the old rules */
    go_on(place);
    assert_int_equal(weir_reload(weir, &reason), 0);
    weir_close(weir);
}

RUN_TESTS()
