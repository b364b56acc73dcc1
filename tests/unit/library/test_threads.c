/* SPDX-License-Identifier: Apache-2.0 */
/* The library from many threads at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "temporary.h"
#include "test.h"

#include <weir/weir.h>

#define THREADS 8

static char rules_file[TEMPORARY_MAX];

static void write_rules(const char *rate)
{
    FILE *file = fopen(rules_file, "w");
    assert_non_null(file);
    fprintf(file,
            "version: 1\n"
            "limits:\n"
            "  - { name: all, key: [], algorithm: token_bucket, rate: %s }\n"
            "  - { name: jobs, match: { path: /job }, key: [], algorithm: concurrency, limit: 3,"
            " life: 1h }\n",
            rate);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    assert_int_equal(close(temporary_file(rules_file)), 0);
    return 0;
}

static int teardown(void **state)
{
    temporary_remove(rules_file);
    return 0;
}

static struct weir *open_weir(const char *rate)
{
    struct weir *weir;
    struct weir_reason reason;
    write_rules(rate);
    assert_int_equal(weir_open(&weir, rules_file, NULL, &reason), 0);
    return weir;
}

static void run_threads(void *(*work)(void *), void *context)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, context), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

struct work {
    struct weir *weir;
    _Atomic uint64_t admitted, denied, failed, in_flight, most_in_flight;
    _Atomic bool stop;
};

static void *check_one_key(void *context)
{
    struct work *work = context;
    struct weir_attribute_value request[] = {{"path", "/"}};
    for (int i = 0; i < 1000; i++) {
        struct weir_answer_summary answer;
        if (weir_check(work->weir, request, 1, 1, &answer) < 0)
            atomic_fetch_add(&work->failed, 1);
        else
            atomic_fetch_add(answer.allowed ? &work->admitted : &work->denied, 1);
    }
    return NULL;
}

TEST_WITH(setup, teardown, "eight threads on one key are admitted exactly as often as the limit")
{
    struct work work = {.weir = open_weir("1000/366day")}; /* one more every nine hours */
    run_threads(check_one_key, &work);
    assert_int_equal(work.failed, 0);
    assert_int_equal(work.admitted, 1000);
    assert_int_equal(work.denied, THREADS * 1000 - 1000);
    weir_close(work.weir);
}

static void *hold_leases(void *context)
{
    struct work *work = context;
    struct weir_attribute_value request[] = {{"path", "/job"}};
    for (int i = 0; i < 500; i++) {
        struct weir_answer_summary answer;
        if (weir_check(work->weir, request, 1, 1, &answer) < 0) {
            atomic_fetch_add(&work->failed, 1);
            continue;
        }
        if (!answer.allowed)
            continue;
        uint64_t now = atomic_fetch_add(&work->in_flight, 1) + 1;
        uint64_t most = atomic_load(&work->most_in_flight);
        while (now > most && !atomic_compare_exchange_weak(&work->most_in_flight, &most, now))
            continue;
        atomic_fetch_sub(&work->in_flight, 1);
        if (weir_release(work->weir, &answer.lease) < 0)
            atomic_fetch_add(&work->failed, 1);
        atomic_fetch_add(&work->admitted, 1);
    }
    return NULL;
}

TEST_WITH(setup, teardown, "leases are never held by more than the limit")
{
    struct work work = {.weir = open_weir("unlimited")};
    run_threads(hold_leases, &work);
    assert_int_equal(work.failed, 0);
    assert_in_range(work.most_in_flight, 1, 3);
    assert_true(work.admitted >= 500); /* one thread alone would get that */
    weir_close(work.weir);
}

static void *reload_again_and_again(void *context)
{
    struct work *work = context;
    while (!atomic_load(&work->stop))
        if (weir_reload(work->weir, NULL) < 0)
            atomic_fetch_add(&work->failed, 1);
    return NULL;
}

TEST_WITH(setup, teardown, "reloading while others check loses no count")
{
    struct work work = {.weir = open_weir("1000/366day")};
    pthread_t reloader;
    assert_int_equal(pthread_create(&reloader, NULL, reload_again_and_again, &work), 0);
    run_threads(check_one_key, &work);
    atomic_store(&work.stop, true);
    assert_int_equal(pthread_join(reloader, NULL), 0);
    assert_int_equal(work.failed, 0);
    assert_int_equal(work.admitted, 1000);
    weir_close(work.weir);
}

RUN_TESTS()
