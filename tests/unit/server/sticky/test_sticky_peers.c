/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes of a fleet as the daemon has them: the line that reports another list, and
 * workers that take lists while others read. No peer is there: decisions are in store/sticky. */
#include "feature/sticky/server/sticky_peers.h"
#include "test.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "table/table.h"
#include "temporary.h"

#define WORKERS 3
#define LISTS 40

struct fixture {
    char folder[TEMPORARY_MAX];
    struct weir_log log;
    FILE *lines;
    off_t read; /* of them */
    struct weir_sticky_peers *peers;
};

/* Rules with this list, of which this node is a. */
static struct weir_rules *rules_of(const struct fixture *f, const char *list, const char *more)
{
    struct weir_problems problems = {0};
    struct weir_rules *rules;
    char path[TEMPORARY_MAX + 8], text[512];
    snprintf(path, sizeof path, "%s/peers", f->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(list, file) >= 0);
    assert_int_equal(fclose(file), 0);
    snprintf(text, sizeof text,
             "version: 1\nlimits: [{name: l, key: [user], rate: 1/s}]\n"
             "sticky: {by: user, self: a, peers: peers%s}\n",
             more);
    int err = weir_rules_parse(&rules, "rules", f->folder, text, strlen(text), &problems);
    if (problems.count > 0)
        print_error("%s\n", problems.list[0].message);
    assert_int_equal(err, 0);
    weir_problems_free(&problems);
    unlink(path);
    return rules;
}

static struct weir_sticky_list *list_of(const struct fixture *f, const char *text, const char *more)
{
    struct weir_sticky_list *list;
    struct weir_reason reason = {{0}};
    struct weir_rules *rules = rules_of(f, text, more);
    assert_int_equal(weir_sticky_list_read(&list, rules, &reason), 0);
    weir_rules_unref(rules);
    return list;
}

static void set(struct fixture *f, const char *text, const char *more)
{
    assert_int_equal(weir_sticky_peers_set(f->peers, list_of(f, text, more)), 0);
}

static int set_up(void **state)
{
    static struct fixture f;
    struct weir_reason reason = {{0}};
    memset(&f, 0, sizeof f);
    temporary_folder(f.folder);
    f.lines = tmpfile();
    assert_non_null(f.lines);
    weir_log_init(&f.log, fileno(f.lines), WEIR_LOG_TEXT);
    struct weir_rules *rules = rules_of(&f, "a unix:/no/a\nb unix:/no/b\nc unix:/no/c\n", "");
    assert_int_equal(weir_sticky_peers_open(&f.peers, rules, &f.log, &reason), 0);
    weir_rules_unref(rules);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    weir_sticky_peers_close(f->peers);
    fclose(f->lines);
    temporary_remove(f->folder);
    return 0;
}

/* The lines since the last call. */
static const char *lines(struct fixture *f)
{
    static char text[8192];
    ssize_t size = pread(fileno(f->lines), text, sizeof text - 1, f->read);
    assert_true(size >= 0);
    f->read += size;
    text[size] = '\0';
    return text;
}

static void assert_names(struct fixture *f, const char *expected)
{
    struct weir_sticky_total totals[STICKY_PEERS_MAX];
    char names[256] = "";
    size_t used = 0;
    uint32_t count = weir_sticky_peers_totals(f->peers, totals);
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%.8s ", totals[i].name);
    assert_string_equal(names, expected);
}

TEST_WITH(set_up, tear_down, "a change of the list is one line")
{
    struct fixture *f = *state;
    assert_names(f, "b c ");
    set(f, "d unix:/no/d\na unix:/no/a\nb unix:/no/b2\ne unix:/no/e\n", "");
    assert_non_null(
        strstr(lines(f), "event=peers_changed nodes=4 joined=\"d e\" left=c moved=b\n"));
    assert_names(f, "d b e ");
    set(f, "b unix:/no/b2\na unix:/no/other\ne unix:/no/e\nd unix:/no/d\n", "");
    assert_string_equal(lines(f), ""); /* another order, and another address of this node */
    set(f, "b unix:/no/b2\na unix:/no/a\ne unix:/no/e\nd unix:/no/d\n", ", token: \"secret\"");
    assert_non_null(strstr(lines(f), "event=peers_changed nodes=4\n"));
    set(f, "a unix:/no/a\n", "");
    assert_non_null(strstr(lines(f), "nodes=1 left=\"b e d\"\n"));
    assert_names(f, "");
}

TEST_WITH(set_up, tear_down, "files of certificates are read with the list")
{
    struct fixture *f = *state;
    struct weir_sticky_list *list;
    struct weir_reason reason = {{0}};
    struct weir_rules *rules =
        rules_of(f, "a unix:/no/a\nb rediss://localhost:1\n", ", tls: {ca: /nonexistent/ca.pem}");
    assert_int_equal(weir_sticky_list_read(&list, rules, &reason), WEIR_ERR_RULES);
    assert_non_null(strstr(reason.text, "sticky.tls: "));
    assert_non_null(strstr(reason.text, "/nonexistent/ca.pem"));
    assert_null(list);
    weir_rules_unref(rules);
    rules = rules_of(f, "a unix:/no/a\nb unix:/no/b\n", ", tls: {ca: /nonexistent/ca.pem}");
    assert_int_equal(weir_sticky_list_read(&list, rules, &reason), 0); /* nobody needs it */
    weir_sticky_list_unref(list);
    weir_rules_unref(rules);
}

/* --- Threads ---------------------------------------------------------------------------------- */

struct worker {
    struct fixture *fixture;
    unsigned index;
    pthread_t thread;
    _Atomic bool *stop;
    pthread_barrier_t *joined;
};

static void *work(void *context)
{
    const struct worker *worker = context;
    struct weir_sticky_peers *peers = worker->fixture->peers;
    const struct weir_table_options options = {.bytes = WEIR_TABLE_BYTES_MIN, .wall_ns = 1};
    struct weir_table *table;
    struct weir_store *embedded, *store;
    struct weir_reason reason = {{0}};
    uv_loop_t loop;
    bool fine = uv_loop_init(&loop) == 0 && weir_table_open(&table, &options, NULL) == 0 &&
                weir_store_embedded_open(&embedded, table) == 0 &&
                weir_sticky_peers_join(peers, worker->index, &loop, embedded,
                                       weir_table_secret(table), &store, &reason) == 0;
    pthread_barrier_wait(worker->joined);
    while (fine && !atomic_load(worker->stop)) {
        weir_sticky_peers_take(peers, worker->index, store);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    if (!fine)
        return NULL;
    weir_sticky_peers_leave(peers, worker->index, store, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    fine = uv_loop_close(&loop) == 0;
    embedded->ops->close(embedded);
    weir_table_close(table);
    return fine ? context : NULL;
}

TEST_WITH(set_up, tear_down, "workers take lists while others read")
{
    static const char *const texts[] = {
        "a unix:/no/a\nb unix:/no/b\nc unix:/no/c\n",
        "a unix:/no/a\nc unix:/no/c\n",
        "b unix:/no/b\na unix:/no/a\nc unix:/no/c2\nd unix:/no/d\n",
        "a unix:/no/a\n",
    };
    struct fixture *f = *state;
    struct worker workers[WORKERS];
    _Atomic bool stop = false;
    pthread_barrier_t joined;
    assert_int_equal(pthread_barrier_init(&joined, NULL, WORKERS + 1), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){f, i == 0 ? WEIR_WORKERS_MAX : i, 0, &stop, &joined};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    pthread_barrier_wait(&joined);
    for (int i = 0; i < LISTS; i++) {
        struct weir_sticky_total totals[STICKY_PEERS_MAX];
        set(f, texts[i % 4], "");
        for (int reads = 0; reads < 20; reads++)
            assert_true(weir_sticky_peers_totals(f->peers, totals) <= 3);
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < WORKERS; i++) {
        void *result;
        assert_int_equal(pthread_join(workers[i].thread, &result), 0);
        assert_ptr_equal(result, &workers[i]);
    }
    pthread_barrier_destroy(&joined);
    assert_null(strstr(lines(f), "peers_failed"));
}

RUN_TESTS()
