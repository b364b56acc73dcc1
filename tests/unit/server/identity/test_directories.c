/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of all workers: what is forgotten reaches each of them, from any caller; terms
 * that a reload changes. No server is asked: the address answers nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "feature/identity/server/directories.h"
#include "test.h"

#define WORKERS 3
#define KEYS 5000

struct fixture {
    struct weir_log log;
    FILE *lines;
    struct weir_rules *rules;
    struct weir_directories *all;
    uv_loop_t loop;
    struct weir_redis_directory *directories[WORKERS];
};

static int set_up(void **state)
{
    /* RFC 5735: 192.0.2.1 answers nobody; connecting takes longer than any of these tests. */
    static const char text[] =
        "version: 1\nlimits: []\nidentities: {redis: 'redis://192.0.2.1:1'}\n"
        "identify: [header.x-key]\n";
    static struct fixture f;
    struct weir_reason reason = {{0}};
    struct weir_problems problems = {0};
    f.lines = tmpfile();
    assert_non_null(f.lines);
    weir_log_init(&f.log, fileno(f.lines), WEIR_LOG_TEXT);
    assert_int_equal(weir_rules_parse(&f.rules, "rules", ".", text, sizeof text - 1, &problems), 0);
    weir_problems_free(&problems);
    assert_int_equal(weir_directories_open(&f.all, f.rules, NULL, &f.log, &reason), 0);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(
            weir_directories_join(f.all, i, &f.loop, NULL, NULL, &f.directories[i], &reason), 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < WORKERS; i++)
        weir_directories_leave(f->all, i);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    weir_directories_close(f->all);
    weir_rules_unref(f->rules);
    fclose(f->lines);
    return 0;
}

static void digest_of(uint32_t key, uint8_t digest[WEIR_DIGEST_BYTES])
{
    memset(digest, 7, WEIR_DIGEST_BYTES);
    memcpy(digest, &key, sizeof key);
}

static struct weir_directory_cache *known_of(struct fixture *f, unsigned i)
{
    return &weir_redis_directory_of(f->directories[i])->known;
}

static void fill(struct fixture *f, unsigned i, uint32_t keys)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    for (uint32_t key = 0; key < keys; key++) {
        digest_of(key, digest);
        weir_directory_cache_put(known_of(f, i), digest);
    }
}

TEST_WITH(set_up, tear_down, "what is forgotten reaches every worker once it catches up")
{
    struct fixture *f = *state;
    uint8_t digest[WEIR_DIGEST_BYTES];
    for (unsigned i = 0; i < WORKERS; i++)
        fill(f, i, 10);
    digest_of(3, digest);
    weir_directories_forget(f->all, digest);
    weir_directories_catch_up(f->all, 0);
    assert_int_equal(known_of(f, 0)->count, 9);
    assert_null(weir_directory_cache_find(known_of(f, 0), digest));
    assert_int_equal(known_of(f, 1)->count, 10);
    weir_directory_cache_put(known_of(f, 0), digest);
    weir_directories_catch_up(f->all, 0); /* it has that one already */
    assert_int_equal(known_of(f, 0)->count, 10);
    weir_directories_catch_up(f->all, 1);
    assert_int_equal(known_of(f, 1)->count, 9);
}

TEST_WITH(set_up, tear_down, "who is too far behind forgets all")
{
    struct fixture *f = *state;
    uint8_t digest[WEIR_DIGEST_BYTES];
    fill(f, 0, 2000);
    for (uint32_t key = 5000; key < 6024; key++) {
        digest_of(key, digest);
        weir_directories_forget(f->all, digest);
    }
    weir_directories_catch_up(f->all, 0);
    assert_int_equal(known_of(f, 0)->count, 2000);
    for (uint32_t key = 5000; key < 6025; key++)
        weir_directories_forget(f->all, digest);
    weir_directories_catch_up(f->all, 0);
    assert_int_equal(known_of(f, 0)->count, 0);
}

struct worker {
    struct fixture *fixture;
    unsigned index;
};

static void *catch_up(void *context)
{
    struct worker *worker = context;
    while (known_of(worker->fixture, worker->index)->count > 0)
        weir_directories_catch_up(worker->fixture->all, worker->index);
    return NULL;
}

TEST_WITH(set_up, tear_down, "workers catch up while more is forgotten and totals are read")
{
    struct fixture *f = *state;
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    struct weir_directories_totals totals;
    uint8_t digest[WEIR_DIGEST_BYTES];
    for (unsigned i = 0; i < WORKERS; i++) {
        fill(f, i, KEYS);
        workers[i] = (struct worker){f, i};
        assert_int_equal(pthread_create(&threads[i], NULL, catch_up, &workers[i]), 0);
    }
    for (uint32_t key = 0; key < KEYS; key++) {
        digest_of(key, digest);
        weir_directories_forget(f->all, digest);
        if (key % 500 == 0)
            weir_directories_totals(f->all, &totals);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    weir_directories_totals(f->all, &totals);
    assert_int_equal(totals.workers, WORKERS);
    assert_int_equal(totals.up, 0);
    assert_int_equal(totals.counters.known, 0);
}

TEST_WITH(set_up, tear_down, "a reload changes terms but not which redis")
{
    struct fixture *f = *state;
    struct weir_directories_totals totals;
    struct weir_identities_settings settings = weir_rules_settings(f->rules)->identities, other;
    weir_directories_totals(f->all, &totals);
    assert_false(totals.deny);
    settings.deny = true;
    settings.life_ns = 5;
    weir_directories_set(f->all, &settings);
    weir_directories_totals(f->all, &totals);
    assert_true(totals.deny);
    assert_int_equal(weir_redis_directory_of(f->directories[0])->options.terms->life_ns, 5);
    assert_false(weir_directories_differ(&weir_rules_settings(f->rules)->identities, &settings));
    other = settings;
    other.max_keys++;
    assert_true(weir_directories_differ(&other, &settings));
    other = settings;
    other.prefix = "who:";
    assert_true(weir_directories_differ(&other, &settings));
    other = settings;
    other.redis.url = NULL;
    assert_true(weir_directories_differ(&other, &settings));
}

RUN_TESTS()
