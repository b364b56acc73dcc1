/* SPDX-License-Identifier: Apache-2.0 */
/* Limits given in commands: one compiled limit a spec, for all clients, up to the bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "server/adhoc/adhoc_limits.h"
#include "table/table.h"
#include "test.h"

#define THREADS 4
#define SPECS 200
#define MAX 150

struct asker {
    struct weir_adhoc_limits *limits;
    struct weir_table *table;
    const struct weir_limit *found[SPECS];
    int errors[SPECS];
};

static void *ask(void *context)
{
    struct asker *asker = context;
    struct weir_store *store;
    if (weir_store_embedded_open(&store, asker->table) < 0)
        abort();
    for (unsigned i = 0; i < SPECS; i++) {
        struct weir_limit_spec spec = {
            .algorithm = WEIR_GCRA, .rate = 1 + i, .window_ns = 1000000000, .burst = 5};
        asker->errors[i] =
            weir_adhoc_limits_find(asker->limits, store, NULL, &spec, NULL, &asker->found[i], NULL);
    }
    store->ops->close(store);
    return NULL;
}

TEST("threads share each limit up to the bound")
{
    struct weir_table_options options = {.bytes = 16 << 20, .wall_ns = 1};
    static struct asker askers[THREADS];
    struct weir_adhoc_limits *limits;
    struct weir_table *table;
    pthread_t threads[THREADS];
    unsigned made = 0;
    assert_int_equal(weir_table_open(&table, &options, NULL), 0);
    assert_int_equal(weir_adhoc_limits_open(&limits, MAX, table, 0), 0);
    for (unsigned t = 0; t < THREADS; t++) {
        askers[t].limits = limits;
        askers[t].table = table;
        assert_int_equal(pthread_create(&threads[t], NULL, ask, &askers[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    for (unsigned i = 0; i < SPECS; i++) {
        made += askers[0].errors[i] == 0;
        for (unsigned t = 0; t < THREADS; t++) {
            if (askers[t].errors[i] != 0)
                assert_int_equal(askers[t].errors[i], WEIR_ERR_FULL);
            else
                assert_int_equal(askers[t].found[i]->spec.rate, 1 + i);
            for (unsigned u = 0; u < t; u++)
                if (askers[t].errors[i] == 0 && askers[u].errors[i] == 0)
                    assert_ptr_equal(askers[t].found[i], askers[u].found[i]);
        }
    }
    assert_true(made <= MAX);
    assert_int_equal(weir_adhoc_limits_count(limits), MAX);
    weir_adhoc_limits_close(limits);
    weir_table_close(table);
}

TEST("what no store could keep is refused and takes no place")
{
    struct weir_limit_spec spec = {.algorithm = WEIR_GCRA, .rate = 1, .window_ns = 1, .burst = 1};
    struct weir_adhoc_limits *limits;
    const struct weir_limit *limit = NULL;
    struct weir_reason reason;
    assert_int_equal(weir_adhoc_limits_open(&limits, 1, NULL, 0), 0);
    assert_int_equal(weir_adhoc_limits_find(limits, NULL, NULL, &spec, NULL, &limit, &reason),
                     WEIR_ERR_RANGE);
    assert_non_null(strstr(reason.text, "window"));
    assert_null(limit);
    assert_int_equal(weir_adhoc_limits_count(limits), 0);
    weir_adhoc_limits_close(limits);
}

/* Remote stores tell states apart by the name. */
TEST("a spec under two names is two limits")
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = 1, .window_ns = 1000000000, .burst = 5};
    struct weir_table_options options = {.bytes = 16 << 20, .params_max = 16, .wall_ns = 1};
    const struct weir_limit *plain, *named, *again;
    struct weir_adhoc_limits *limits;
    struct weir_table *table;
    struct weir_store *store;
    assert_int_equal(weir_table_open(&table, &options, NULL), 0);
    assert_int_equal(weir_adhoc_limits_open(&limits, 12, table, 0), 0);
    assert_int_equal(weir_store_embedded_open(&store, table), 0);
    assert_int_equal(weir_adhoc_limits_find(limits, store, NULL, &spec, NULL, &plain, NULL), 0);
    assert_int_equal(weir_adhoc_limits_find(limits, store, NULL, &spec, "n", &named, NULL), 0);
    assert_int_equal(weir_adhoc_limits_find(limits, store, NULL, &spec, "n", &again, NULL), 0);
    assert_null(plain->name);
    assert_string_equal(named->name, "n");
    assert_ptr_equal(again, named);
    assert_int_equal(weir_adhoc_limits_count(limits), 2);
    store->ops->close(store);
    weir_adhoc_limits_close(limits);
    weir_table_close(table);
}

/* Asks for the limits first .. end - 1 as one run of a server would; counts those it gets. */
static unsigned run_of_a_server(struct weir_table *table, unsigned first, unsigned end)
{
    struct weir_adhoc_limits *limits;
    struct weir_store *store;
    unsigned made = 0;
    assert_int_equal(weir_adhoc_limits_open(&limits, 12, table, 0), 0);
    assert_int_equal(weir_store_embedded_open(&store, table), 0);
    for (unsigned i = first; i < end; i++) {
        struct weir_limit_spec spec = {
            .algorithm = WEIR_GCRA, .rate = 1 + i, .window_ns = 1000000000, .burst = 5};
        const struct weir_limit *limit;
        int err = weir_adhoc_limits_find(limits, store, NULL, &spec, NULL, &limit, NULL);
        assert_true(err == 0 || err == WEIR_ERR_FULL);
        made += err == 0;
    }
    store->ops->close(store);
    weir_adhoc_limits_close(limits);
    return made;
}

TEST("what earlier runs have left in the list counts too")
{
    struct weir_table_options options = {.bytes = 16 << 20, .params_max = 16, .wall_ns = 1};
    struct weir_table *table;
    assert_int_equal(weir_table_open(&table, &options, NULL), 0);
    assert_int_equal(run_of_a_server(table, 0, 20), 12);
    assert_int_equal(run_of_a_server(table, 100, 120), 2);
    assert_int_equal(run_of_a_server(table, 0, 20), 12); /* those that it knows are served */
    assert_int_equal(weir_table_param_count(table), 14); /* an eighth is left for rules */
    weir_table_close(table);
}

static const struct weir_limit *find(struct weir_adhoc_limits *limits, struct weir_store *store,
                                     uint64_t rate)
{
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = rate, .window_ns = 1000000000, .burst = 5};
    const struct weir_limit *limit = NULL;
    int err = weir_adhoc_limits_find(limits, store, NULL, &spec, NULL, &limit, NULL);
    assert_true(err == 0 || err == WEIR_ERR_FULL);
    return limit;
}

TEST("limits that are not used give up their places")
{
    const uint64_t second = 1000000000, start = 15000 * second;
    struct weir_table_options options = {.bytes = 16 << 20, .params_max = 16, .wall_ns = 1};
    struct weir_adhoc_limits *limits;
    struct weir_table *table;
    struct weir_store *store;
    assert_int_equal(weir_table_open(&table, &options, NULL), 0);
    assert_int_equal(weir_adhoc_limits_open(&limits, 4, table, 0), 0);
    assert_int_equal(weir_store_embedded_open(&store, table), 0);
    weir_adhoc_limits_tick(limits, start);
    const struct weir_limit *first = find(limits, store, 1);
    for (uint64_t rate = 2; rate <= 4; rate++)
        assert_non_null(find(limits, store, rate));
    assert_null(find(limits, store, 5));
    weir_adhoc_limits_tick(limits, start + 59 * second);
    assert_ptr_equal(find(limits, store, 1), first);
    assert_null(find(limits, store, 5));
    weir_adhoc_limits_tick(limits, start + 80 * second);
    assert_non_null(find(limits, store, 5));
    assert_int_equal(weir_adhoc_limits_count(limits), 2);
    assert_ptr_equal(find(limits, store, 1), first);
    store->ops->close(store);
    weir_adhoc_limits_close(limits);
    weir_table_close(table);
}

TEST("limits that differ in any number or option are two")
{
    static const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = 6000000000},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = 6000000000, .segments = 6},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = 6000000000, .segments = 3},
        {.algorithm = WEIR_SLIDING_WINDOW,
         .rate = 6,
         .window_ns = 6000000000,
         .segments = 6,
         .strict = true},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 6, .window_ns = 6000000000},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 7, .window_ns = 6000000000},
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 7, .window_ns = 7000000000},
        {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = 7000000000, .burst = 8},
        {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = 7000000000, .burst = 9},
    };
    struct weir_table_options options = {.bytes = 16 << 20, .wall_ns = 1};
    const struct weir_limit *found[sizeof specs / sizeof *specs];
    struct weir_adhoc_limits *limits;
    struct weir_table *table;
    struct weir_store *store;
    size_t count = sizeof specs / sizeof *specs;
    assert_int_equal(weir_table_open(&table, &options, NULL), 0);
    assert_int_equal(weir_store_embedded_open(&store, table), 0);
    assert_int_equal(weir_adhoc_limits_open(&limits, MAX, table, 0), 0);
    for (int twice = 0; twice < 2; twice++)
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(
                weir_adhoc_limits_find(limits, store, NULL, &specs[i], NULL, &found[i], NULL), 0);
            assert_int_equal(found[i]->spec.segments > 1 ? found[i]->spec.segments : 0,
                             specs[i].segments);
            assert_int_equal(found[i]->spec.strict, specs[i].strict);
        }
    assert_int_equal(weir_adhoc_limits_count(limits), count);
    weir_adhoc_limits_close(limits);
    store->ops->close(store);
    weir_table_close(table);
}

RUN_TESTS()
