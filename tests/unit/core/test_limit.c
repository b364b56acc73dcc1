/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling limits: ranges, defaults, reasons, and the exact derived values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir/limit.h>

#define SECOND UINT64_C(1000000000)

static struct weir_limit_spec spec(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns)
{
    return (struct weir_limit_spec){.algorithm = algorithm, .rate = rate, .window_ns = window_ns};
}

static void assert_accepted(struct weir_limit_spec given, struct weir_limit *limit)
{
    struct weir_reason reason;

    memset(&reason, 'x', sizeof(reason));
    assert_int_equal(weir_limit_init(limit, &given, &reason), 0);
    assert_string_equal(reason.text, "");
    assert_int_equal(weir_limit_init(limit, &given, NULL), 0);
}

static void assert_refused(struct weir_limit_spec given, const char *text)
{
    struct weir_limit limit;
    struct weir_reason reason;

    memset(&limit, 0x5a, sizeof(limit));
    assert_int_equal(weir_limit_init(&limit, &given, &reason), WEIR_ERR_RANGE);
    assert_string_equal(reason.text, text);
    assert_int_equal(weir_limit_init(&limit, &given, NULL), WEIR_ERR_RANGE);
    for (size_t i = 0; i < sizeof(limit); i++) /* left alone */
        assert_int_equal(((unsigned char *)&limit)[i], 0x5a);
}

static void a_window_is_1_ms_to_366_days(void **state)
{
    struct weir_limit limit;

    for (int a = 0; a <= WEIR_CONCURRENCY; a++) {
        assert_accepted(spec((enum weir_algorithm)a, 5, 1000000), &limit);
        assert_accepted(spec((enum weir_algorithm)a, 5, UINT64_C(31622400000000000)), &limit);
        assert_refused(spec((enum weir_algorithm)a, 5, 999999),
                       "window in ns is 999999; the range is 1000000 to 31622400000000000");
        assert_refused(spec((enum weir_algorithm)a, 5, UINT64_C(31622400000000001)),
                       "window in ns is 31622400000000001; the range is 1000000 to "
                       "31622400000000000");
    }
}

static void a_rate_has_the_range_of_its_algorithm(void **state)
{
    struct weir_limit limit;

    assert_accepted(spec(WEIR_FIXED_WINDOW, UINT32_MAX, SECOND), &limit);
    assert_refused(spec(WEIR_FIXED_WINDOW, UINT64_C(1) << 32, SECOND),
                   "rate is 4294967296; the range is 0 to 4294967295");
    assert_accepted(spec(WEIR_SLIDING_WINDOW, UINT32_MAX, SECOND), &limit);
    assert_refused(spec(WEIR_SLIDING_WINDOW, UINT64_C(1) << 32, SECOND),
                   "rate is 4294967296; the range is 0 to 4294967295");
    assert_accepted(spec(WEIR_SLIDING_LOG, 10000, SECOND), &limit);
    assert_refused(spec(WEIR_SLIDING_LOG, 10001, SECOND), "rate is 10001; the range is 0 to 10000");
    assert_accepted(spec(WEIR_CONCURRENCY, 10000, SECOND), &limit);
    assert_refused(spec(WEIR_CONCURRENCY, 10001, SECOND), "rate is 10001; the range is 0 to 10000");
    assert_accepted(spec(WEIR_GCRA, UINT64_C(1) << 40, SECOND), &limit);
    assert_refused(spec(WEIR_GCRA, (UINT64_C(1) << 40) + 1, SECOND),
                   "rate is 1099511627777; the range is 0 to 1099511627776");
}

static void the_burst_of_a_bucket_defaults_to_its_rate(void **state)
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_TOKEN_BUCKET, 7, SECOND);

    assert_accepted(given, &limit);
    assert_int_equal(limit.spec.burst, 7);
    assert_int_equal(limit.capacity, 7);
    given.rate = 1000;
    given.burst = UINT64_C(1) << 40;
    assert_accepted(given, &limit);
    assert_int_equal(limit.capacity, UINT64_C(1) << 40);
    given.burst++;
    assert_refused(given, "burst is 1099511627777; the range is 0 to 1099511627776");
}

static void a_bucket_takes_at_most_2_to_the_62_ns_to_refill(void **state)
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_GCRA, 1 << 10, UINT64_C(1) << 50);

    given.burst = UINT64_C(1) << 22;
    assert_accepted(given, &limit); /* 2^22 * 2^50 / 2^10 = 2^62 */
    assert_int_equal(limit.depth_ns, UINT64_C(1) << 62);
    given.burst++;
    assert_refused(given, "burst is 4194305, which takes longer than 4611686018427387904 ns to "
                          "refill at rate 1024");
    given.burst = UINT64_C(1) << 40;
    given.rate = 1;
    assert_refused(given, "burst is 1099511627776, which takes longer than 4611686018427387904 ns "
                          "to refill at rate 1");
}

static void a_queue_is_one_deeper_than_its_burst(void **state)
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_LEAKY_QUEUE, 3, SECOND);

    given.burst = 5;
    assert_accepted(given, &limit);
    assert_int_equal(limit.capacity, 6);
    assert_int_equal(limit.depth_ns, 2 * SECOND);
    assert_int_equal(limit.depth_rem, 0);
}

static void the_period_of_a_bucket_is_exact_and_in_lowest_terms(void **state)
{
    struct weir_limit limit;

    assert_accepted(spec(WEIR_GCRA, 7, SECOND), &limit); /* 142857142 and 6/7 ns */
    assert_int_equal(limit.period_ns, 142857142);
    assert_int_equal(limit.period_rem, 6);
    assert_int_equal(limit.denom, 7);
    assert_accepted(spec(WEIR_GCRA, 6000, 60 * SECOND), &limit);
    assert_int_equal(limit.period_ns, 10000000);
    assert_int_equal(limit.period_rem, 0);
    assert_int_equal(limit.denom, 1);
    assert_true(limit.packs);
    assert_accepted(spec(WEIR_GCRA, (UINT64_C(1) << 40) - 1, 1000003), &limit);
    assert_int_equal(limit.period_ns, 0);
    assert_int_equal(limit.period_rem, 1000003);
    assert_false(limit.packs); /* a denominator above 2^33 */
}

static void segments_must_divide_the_window(void **state)
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_SLIDING_WINDOW, 5, SECOND);

    assert_accepted(given, &limit);
    assert_int_equal(limit.spec.segments, 1);
    given.segments = 120;
    given.window_ns = 60 * SECOND;
    assert_accepted(given, &limit);
    assert_int_equal(limit.segment_ns, SECOND / 2);
    given.window_ns = SECOND;
    given.segments = 7;
    assert_refused(given, "segments is 7, which does not divide the window of 1000000000 ns; the "
                          "nearest that does is 8");
    given.segments = 120;
    assert_refused(given, "segments is 120, which does not divide the window of 1000000000 ns; the "
                          "nearest that does is 100");
    given.segments = 121;
    assert_refused(given, "segments is 121; the range is 1 to 120");
    given.window_ns = 1000003; /* a prime */
    given.segments = 2;
    assert_refused(given, "segments is 2, which does not divide the window of 1000003 ns; the "
                          "nearest that does is 1");
}

static void fields_that_an_algorithm_has_no_use_for_become_zero(void **state)
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_SLIDING_LOG, 5, SECOND);

    given.burst = 9;
    given.segments = 3;
    given.strict = true;
    assert_accepted(given, &limit);
    assert_int_equal(limit.spec.burst, 0);
    assert_int_equal(limit.spec.segments, 0);
    assert_false(limit.spec.strict);
    assert_int_equal(limit.id, 0);
}

static void equal_limits_are_equal_bytes(void **state)
{
    struct weir_limit a, b;
    struct weir_limit_spec given;

    memset(&given, 0xff, sizeof(given)); /* its padding, and what a bucket does not use */
    given.algorithm = WEIR_GCRA;
    given.rate = given.burst = 5;
    given.window_ns = SECOND;
    given.strict = true;
    memset(&a, 0x11, sizeof(a));
    memset(&b, 0x22, sizeof(b));
    assert_accepted(given, &a);
    assert_accepted(spec(WEIR_GCRA, 5, SECOND), &b);
    assert_memory_equal(&a, &b, sizeof(a));
}

static void states_have_the_sizes_that_the_docs_state(void **state)
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_SLIDING_WINDOW, 5, 60 * SECOND);

    for (int a = WEIR_FIXED_WINDOW; a <= WEIR_LEAKY_QUEUE; a++) {
        assert_accepted(spec((enum weir_algorithm)a, 5, SECOND), &limit);
        assert_int_equal(limit.span_words, a == WEIR_SLIDING_LOG ? 2 + 2 * 5 : 0);
    }
    assert_accepted(spec(WEIR_CONCURRENCY, 5, SECOND), &limit);
    assert_int_equal(limit.span_words, 2 + 4 * 5);
    given.segments = 60;
    assert_accepted(given, &limit);
    assert_int_equal(limit.span_words, 2 + 31);
    given.segments = 120;
    assert_accepted(given, &limit);
    assert_int_equal(limit.span_words, 2 + 61);
}

static void a_packed_sliding_window_leaves_its_counters_what_the_index_does_not_need(void **state)
{
    struct weir_limit limit;

    assert_accepted(spec(WEIR_SLIDING_WINDOW, (1 << 26) - 1, 1000000), &limit);
    assert_int_equal(limit.index_bits, 43);
    assert_int_equal(limit.count_bits, 26);
    assert_true(limit.packs);
    assert_accepted(spec(WEIR_SLIDING_WINDOW, 1 << 26, 1000000), &limit);
    assert_int_equal(limit.count_bits, 32);
    assert_false(limit.packs);
    assert_accepted(spec(WEIR_SLIDING_WINDOW, UINT32_MAX, 60 * SECOND), &limit);
    assert_int_equal(limit.index_bits, 27);
    assert_int_equal(limit.count_bits, 32);
    assert_true(limit.packs);
    assert_accepted(spec(WEIR_FIXED_WINDOW, UINT32_MAX, 1000000), &limit);
    assert_true(limit.packs);
}

static void an_unknown_algorithm_is_refused(void **state)
{
    assert_refused(spec((enum weir_algorithm)11, 5, SECOND),
                   "algorithm is 11; the range is 0 to 10");
}

static void algorithms_are_called_what_rules_files_call_them(void **state)
{
    static const char *const names[] = {
        "fixed_window", "sliding_window", "sliding_log", "token_bucket", "gcra",   "leaky_bucket",
        "leaky_bucket", "concurrency",    "quota",       "counter",      "prepaid"};

    for (int a = 0; a <= WEIR_PREPAID; a++)
        assert_string_equal(weir_algorithm_name((enum weir_algorithm)a), names[a]);
    assert_string_equal(weir_algorithm_name((enum weir_algorithm)11), "unknown");
}

static void a_state_converts_to_the_same_kind_of_limit_only(void **state)
{
    struct weir_limit a, b;
    struct weir_limit_spec sliding = spec(WEIR_SLIDING_WINDOW, 5, 60 * SECOND);

    assert_accepted(spec(WEIR_GCRA, 5, SECOND), &a);
    assert_accepted(spec(WEIR_GCRA, 9, 60 * SECOND), &b);
    assert_true(weir_limit_converts(&a, &b)); /* buckets: any rate, window, burst */
    assert_accepted(spec(WEIR_TOKEN_BUCKET, 5, SECOND), &b);
    assert_false(weir_limit_converts(&a, &b));

    assert_accepted(sliding, &a);
    sliding.rate = 6;
    assert_accepted(sliding, &b);
    assert_true(weir_limit_converts(&a, &b));
    sliding.segments = 2;
    assert_accepted(sliding, &b);
    assert_false(weir_limit_converts(&a, &b));
    sliding.segments = 1;
    sliding.strict = true;
    assert_accepted(sliding, &b);
    assert_false(weir_limit_converts(&a, &b));
    sliding.strict = false;
    sliding.window_ns = SECOND;
    assert_accepted(sliding, &b);
    assert_false(weir_limit_converts(&a, &b));

    assert_accepted(spec(WEIR_SLIDING_LOG, 5, SECOND), &a);
    assert_accepted(spec(WEIR_SLIDING_LOG, 6, SECOND), &b);
    assert_true(weir_limit_converts(&a, &b));
    assert_accepted(spec(WEIR_SLIDING_LOG, 6, 2 * SECOND), &b);
    assert_false(weir_limit_converts(&a, &b));

    assert_accepted(spec(WEIR_CONCURRENCY, 5, SECOND), &a);
    assert_accepted(spec(WEIR_CONCURRENCY, 6, 2 * SECOND), &b);
    assert_true(weir_limit_converts(&a, &b)); /* leases keep the expiry they were given */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_1_ms_to_366_days),
        cmocka_unit_test(a_rate_has_the_range_of_its_algorithm),
        cmocka_unit_test(the_burst_of_a_bucket_defaults_to_its_rate),
        cmocka_unit_test(a_bucket_takes_at_most_2_to_the_62_ns_to_refill),
        cmocka_unit_test(a_queue_is_one_deeper_than_its_burst),
        cmocka_unit_test(the_period_of_a_bucket_is_exact_and_in_lowest_terms),
        cmocka_unit_test(segments_must_divide_the_window),
        cmocka_unit_test(fields_that_an_algorithm_has_no_use_for_become_zero),
        cmocka_unit_test(equal_limits_are_equal_bytes),
        cmocka_unit_test(states_have_the_sizes_that_the_docs_state),
        cmocka_unit_test(a_packed_sliding_window_leaves_its_counters_what_the_index_does_not_need),
        cmocka_unit_test(an_unknown_algorithm_is_refused),
        cmocka_unit_test(algorithms_are_called_what_rules_files_call_them),
        cmocka_unit_test(a_state_converts_to_the_same_kind_of_limit_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
