/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling limits: ranges, defaults, reasons, and the exact derived values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "test.h"
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

TEST("a window is 1 ms to 366 days")
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

TEST("a rate has the range of its algorithm")
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

TEST("the burst of a bucket defaults to its rate")
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

TEST("a bucket takes at most 2 to the 62 ns to refill")
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

TEST("a queue is one deeper than its burst")
{
    struct weir_limit limit;
    struct weir_limit_spec given = spec(WEIR_LEAKY_QUEUE, 3, SECOND);

    given.burst = 5;
    assert_accepted(given, &limit);
    assert_int_equal(limit.capacity, 6);
    assert_int_equal(limit.depth_ns, 2 * SECOND);
    assert_int_equal(limit.depth_rem, 0);
}

TEST("the period of a bucket is exact and in lowest terms")
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

TEST("segments must divide the window")
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

TEST("fields that an algorithm has no use for become zero")
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

TEST("equal limits are equal bytes")
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

TEST("states have the sizes that the docs state")
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

TEST("a packed sliding window leaves its counters what the index does not need")
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

TEST("an unknown algorithm is refused")
{
    assert_refused(spec((enum weir_algorithm)11, 5, SECOND),
                   "algorithm is 11; the range is 0 to 10");
}

TEST("algorithms are called what rules files call them")
{
    static const char *const names[] = {
        "fixed_window", "sliding_window", "sliding_log", "token_bucket", "gcra",   "leaky_bucket",
        "leaky_bucket", "concurrency",    "quota",       "counter",      "prepaid"};

    for (int a = 0; a <= WEIR_PREPAID; a++)
        assert_string_equal(weir_algorithm_name((enum weir_algorithm)a), names[a]);
    assert_string_equal(weir_algorithm_name((enum weir_algorithm)11), "unknown");
}

TEST("a state converts to the same kind of limit only")
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

RUN_TESTS()
