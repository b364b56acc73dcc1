/* SPDX-License-Identifier: Apache-2.0 */
/* One node's part of a limit: all parts together admit no more than the whole, nor nothing. */
#include "rules/division.h"
#include "rules_test.h"

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

static void windows_are_divided_and_rounded_down(void **state)
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

static void segments_and_strict_are_kept(void **state)
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

static void what_comes_over_is_divided_as_the_quota_is(void **state)
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

static void every_node_admits_at_least_one(void **state)
{
    struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW, .rate = 2, .window_ns = 1000000};
    assert_int_equal(divided(spec, 3).capacity, 1);
    spec.algorithm = WEIR_TOKEN_BUCKET;
    assert_int_equal(divided(spec, WEIR_NODES_MAX).capacity, 1);
}

static void a_limit_of_zero_stays_one(void **state)
{
    struct weir_limit_spec spec = {.algorithm = WEIR_FIXED_WINDOW, .rate = 0, .window_ns = 1000000};
    assert_int_equal(divided(spec, 3).capacity, 0);
    spec.algorithm = WEIR_GCRA;
    assert_int_equal(divided(spec, 3).capacity, 0);
}

static void rates_of_buckets_are_divided_exactly(void **state)
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

static void the_largest_limits_can_be_divided(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_divided_and_rounded_down),
        cmocka_unit_test(segments_and_strict_are_kept),
        cmocka_unit_test(what_comes_over_is_divided_as_the_quota_is),
        cmocka_unit_test(every_node_admits_at_least_one),
        cmocka_unit_test(a_limit_of_zero_stays_one),
        cmocka_unit_test(rates_of_buckets_are_divided_exactly),
        cmocka_unit_test(the_largest_limits_can_be_divided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
