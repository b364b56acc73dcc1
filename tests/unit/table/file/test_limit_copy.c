/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/file/limit_copy.h"
#include "test.h"

#define ID 7
#define DAY_NS (UINT64_C(86400) * 1000000000)

static const struct weir_limit_spec bucket = {
    .algorithm = WEIR_TOKEN_BUCKET, .rate = 7, .window_ns = UINT64_C(1000000000)};
static const struct weir_limit_spec window = {
    .algorithm = WEIR_FIXED_WINDOW, .rate = 5, .window_ns = UINT64_C(60000000000)};

/* Parameters as params.c writes them. */
static struct table_param make(const struct weir_limit_spec *spec)
{
    struct table_param param;

    memset(&param, 0, sizeof param);
    assert_int_equal(weir_limit_init(&param.limit, spec, NULL), 0);
    param.live = 1;
    param.limit.id = ID;
    param.limit.spec.bounds = NULL;
    param.limit.spec.bound_count = 0;
    param.account = 3;
    param.check = layout_param_check(&param);
    return param;
}

static bool same(const struct weir_limit *a, const struct weir_limit *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

TEST("the copy is the limit of the parameters")
{
    static const uint64_t bounds[] = {0, DAY_NS};
    const struct weir_limit_spec specs[] = {
        bucket,
        window,
        {.algorithm = WEIR_LEAKY_QUEUE, .rate = 3, .window_ns = 1000000, .burst = 9},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 60, .window_ns = 60000000, .segments = 60},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 1, .window_ns = 1000000, .strict = true},
        {.algorithm = WEIR_SLIDING_LOG, .rate = 9, .window_ns = 1000000},
        {.algorithm = WEIR_CONCURRENCY, .rate = 9, .window_ns = 1000000},
        {.algorithm = WEIR_QUOTA,
         .rate = 9,
         .window_ns = DAY_NS,
         .bounds = bounds,
         .bound_count = 2,
         .rollover = 4,
         .calendar = 5},
        {.algorithm = WEIR_COUNTER, .rate = 20, .window_ns = 1000000},
    };
    struct limit_copies *copies = limit_copies_open();
    struct weir_limit limit;

    assert_non_null(copies);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct table_param param = make(&specs[i]);

        for (int again = 0; again < 2; again++) {
            assert_true(limit_copy_read(copies, &param, ID, &limit));
            assert_true(same(&limit, &param.limit));
        }
    }
    limit_copies_close(copies);
}

TEST("a limit that is overwritten is read as it was")
{
    struct limit_copies *copies = limit_copies_open();
    struct table_param param = make(&bucket);
    struct weir_limit before = param.limit, limit;

    assert_true(limit_copy_read(copies, &param, ID, &limit));
    memset(&param.limit, 0, sizeof param.limit);
    assert_true(limit_copy_read(copies, &param, ID, &limit));
    assert_true(same(&limit, &before));
    limit_copies_close(copies);
}

TEST("an id that gets another limit has another copy")
{
    struct limit_copies *copies = limit_copies_open();
    struct table_param first = make(&bucket), second = make(&window);
    struct weir_limit limit;

    assert_true(limit_copy_read(copies, &first, ID, &limit));
    assert_true(limit_copy_read(copies, &second, ID, &limit));
    assert_true(same(&limit, &second.limit));
    assert_true(limit_copy_read(copies, &first, ID, &limit));
    assert_true(same(&limit, &first.limit));
    limit_copies_close(copies);
}

TEST("compiled numbers come from the spec even where the checksum fits")
{
    struct limit_copies *copies = limit_copies_open();
    struct table_param param = make(&bucket), hostile = param;
    struct weir_limit limit;

    hostile.limit.denom = hostile.limit.period_ns = hostile.limit.capacity = 0;
    hostile.limit.segment_ns = 0;
    hostile.limit.plain = true;
    hostile.check = layout_param_check(&hostile);
    assert_true(limit_copy_read(copies, &hostile, ID, &limit));
    assert_true(same(&limit, &param.limit));
    limit_copies_close(copies);
}

/* Whether parameters are refused once their checksum fits. */
static bool is_refused(const struct table_param *given)
{
    struct limit_copies *copies = limit_copies_open();
    struct table_param param = *given;
    struct weir_limit limit;
    bool refused;

    param.check = layout_param_check(&param);
    refused = !limit_copy_read(copies, &param, ID, &limit);
    limit_copies_close(copies);
    return refused;
}

TEST("parameters that nobody can have written are refused")
{
    struct limit_copies *copies = limit_copies_open();
    struct table_param good = make(&bucket), param = good;
    struct weir_limit limit;

    param.check ^= 1;
    assert_false(limit_copy_read(copies, &param, ID, &limit));
    limit_copies_close(copies);

    assert_false(is_refused(&good));
    param = good, param.limit.id = ID + 1;
    assert_true(is_refused(&param));
    param = good, param.limit.spec.window_ns = 0;
    assert_true(is_refused(&param));
    param = good, param.limit.spec.rate = UINT64_MAX;
    assert_true(is_refused(&param));
    param = good, param.limit.spec.algorithm = 999;
    assert_true(is_refused(&param));
    param = good, param.limit.span_words = 1;
    assert_true(is_refused(&param));
    param = good, param.limit.name = "";
    assert_true(is_refused(&param));
    param = good, param.limit.local = &good.limit;
    assert_true(is_refused(&param));
    param = good, param.limit.spec.bounds = (const uint64_t *)16;
    assert_true(is_refused(&param));
    param = good, param.limit.spec.bound_count = 2;
    assert_true(is_refused(&param));
}

TEST("a flag may be any byte")
{
    struct limit_copies *copies = limit_copies_open();
    struct table_param param = make(&(struct weir_limit_spec){
        .algorithm = WEIR_SLIDING_WINDOW, .rate = 1, .window_ns = 1000000, .strict = true});
    struct weir_limit limit;

    memset(&param.limit.spec.strict, 0x37, 1);
    memset(&param.limit.yields, 0x42, 1);
    param.check = layout_param_check(&param);
    assert_true(limit_copy_read(copies, &param, ID, &limit));
    assert_int_equal(limit.spec.strict, 1);
    assert_int_equal(limit.yields, 1);
    limit_copies_close(copies);
}

/* --- Threads ---------------------------------------------------------------------------------- */

#define READERS 3
#define READS 20000

struct reader {
    struct limit_copies *copies;
    const struct table_param *params; /* of two limits */
    uint32_t read, wrong;
};

/* Reads the copy of one id that means one limit and then another, over and over. */
static void *read_both(void *context)
{
    struct reader *reader = context;
    struct weir_limit limit;

    for (uint32_t i = 0; i < READS; i++) {
        const struct table_param *param = &reader->params[i / 3 % 2];

        if (!limit_copy_read(reader->copies, param, ID, &limit))
            continue;
        reader->read++;
        reader->wrong += !same(&limit, &param->limit);
    }
    return NULL;
}

TEST("no thread reads a mixture of two limits")
{
    struct limit_copies *copies = limit_copies_open();
    const struct table_param params[] = {make(&bucket), make(&window)};
    struct reader readers[READERS];
    pthread_t threads[READERS];

    for (int i = 0; i < READERS; i++) {
        readers[i] = (struct reader){copies, params, 0, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_both, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readers[i].read, READS);
        assert_int_equal(readers[i].wrong, 0);
    }
    limit_copies_close(copies);
}

RUN_TESTS()
