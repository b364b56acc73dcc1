/* SPDX-License-Identifier: Apache-2.0 */
/* One node's part of a limit: all parts together admit no more than the whole, nor nothing. */
#include "rules/division.h"
#include "rules_test.h"
#include "test.h"

static struct weir_limit divided(struct weir_limit_spec spec, uint32_t nodes)
{
    struct weir_limit limit, part;
    struct weir_reason reason = {{0}};
    int err = weir_limit_init(&limit, &spec, &reason);
    assert_int_equal(err, 0);
    limit.name = "api";
    weir_limit_divide(&limit, nodes, &part);
    assert_ptr_equal(part.name, limit.name);
    assert_null(part.local);
    assert_int_equal(part.spec.algorithm, spec.algorithm);
    return part;
}

TEST("windows are divided and rounded down")
{
    static const enum weir_algorithm counted[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW,
                                                  WEIR_SLIDING_LOG, WEIR_CONCURRENCY};
    for (int i = 0; i < 4; i++) {
        struct weir_limit_spec spec = {.algorithm = counted[i], .rate = 100, .window_ns = 1000000};
        struct weir_limit part = divided(spec, 3);
        assert_int_equal(part.spec.rate, 33);
        assert_int_equal(part.spec.window_ns, 1000000);
        assert_int_equal(part.capacity, 33);
        assert_int_equal(divided(spec, 1).capacity, 100);
        assert_int_equal(divided(spec, 100).capacity, 1);
    }
}

TEST("segments and strict are kept")
{
    struct weir_limit part = divided((struct weir_limit_spec){.algorithm = WEIR_SLIDING_WINDOW,
                                                              .rate = 600,
                                                              .window_ns = 60000000000,
                                                              .segments = 60,
                                                              .strict = true},
                                     3);
    assert_int_equal(part.spec.rate, 200);
    assert_int_equal(part.spec.segments, 60);
    assert_true(part.spec.strict);
}

TEST("what comes over is divided as the quota is")
{
    static const uint64_t bounds[] = {0, 86400000000000};
    struct weir_limit_spec spec = {.algorithm = WEIR_QUOTA,
                                   .rate = 100,
                                   .rollover = 100,
                                   .window_ns = 86400000000000,
                                   .calendar = 3,
                                   .bounds = bounds,
                                   .bound_count = 2};
    struct weir_limit part = divided(spec, 3);
    assert_int_equal(part.spec.rate, 33);
    assert_int_equal(part.spec.rollover, 33);
    assert_int_equal(part.capacity, 66);
    assert_int_equal(part.spec.calendar, 3);
    assert_ptr_equal(part.spec.bounds, bounds);
    spec.rollover = 1;
    assert_int_equal(divided(spec, 3).capacity, 33);
}

TEST("every node admits at least one")
{
    struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW, .rate = 2, .window_ns = 1000000};
    assert_int_equal(divided(spec, 3).capacity, 1);
    spec.algorithm = WEIR_TOKEN_BUCKET;
    assert_int_equal(divided(spec, WEIR_NODES_MAX).capacity, 1);
}

TEST("a limit of zero stays one")
{
    struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW, .rate = 0, .window_ns = 1000000};
    assert_int_equal(divided(spec, 3).capacity, 0);
    spec.algorithm = WEIR_GCRA;
    assert_int_equal(divided(spec, 3).capacity, 0);
}

TEST("rates of buckets are divided exactly")
{
    struct weir_limit_spec spec = {
        .algorithm = WEIR_TOKEN_BUCKET, .rate = 7, .window_ns = 60000000000, .burst = 20};
    struct weir_limit part = divided(spec, 3);
    assert_int_equal(part.spec.rate, 7);
    assert_int_equal(part.spec.window_ns, 180000000000);
    assert_int_equal(part.spec.burst, 6);
    part = divided(spec, 7);
    assert_int_equal(part.spec.rate, 1);
    assert_int_equal(part.spec.window_ns, 60000000000);
    assert_int_equal(part.spec.burst, 2);
    spec.algorithm = WEIR_LEAKY_QUEUE;
    assert_int_equal(divided(spec, 4).capacity, 5 + 1);
}

TEST("the largest limits can be divided")
{
    /* No longer window is to be had, so N is divided, and the burst cut to what refills in time:
     * without that its depth would pass 2^62 ns. */
    struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = 5, .window_ns = WEIR_WINDOW_MAX_NS, .burst = 720};
    struct weir_limit part = divided(spec, 3);
    assert_int_equal(part.spec.rate, 1);
    assert_int_equal(part.spec.window_ns, WEIR_WINDOW_MAX_NS);
    assert_int_equal(part.capacity, 120);
    spec = (struct weir_limit_spec){.algorithm = WEIR_TOKEN_BUCKET,
                                    .rate = WEIR_BUCKET_MAX,
                                    .window_ns = WEIR_WINDOW_MIN_NS,
                                    .burst = WEIR_BUCKET_MAX};
    assert_int_equal(divided(spec, WEIR_NODES_MAX).capacity, WEIR_BUCKET_MAX / WEIR_NODES_MAX);
}

RUN_TESTS()
