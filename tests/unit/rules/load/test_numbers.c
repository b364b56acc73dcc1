/* SPDX-License-Identifier: Apache-2.0 */
/* Rates, durations, sizes. */
#include "core/algorithm.h"
#include "core/bytes.h"
#include "rules/load/numbers.h"
#include "rules_test.h"
#include "test.h"

#define S UINT64_C(1000000000)

static void expect_rate(const char *text, uint64_t count, uint64_t window_ns, uint64_t burst)
{
    struct weir_rate rate;
    struct weir_reason reason = {{0}};
    assert_int_equal(weir_rate_parse(&rate, text, strlen(text), &reason), 0);
    assert_int_equal(rate.kind, WEIR_RATE_COUNT);
    assert_int_equal(rate.count, count);
    assert_int_equal(rate.window_ns, window_ns);
    assert_int_equal(rate.burst, burst);
}

static void refuse_rate(const char *text, int err, const char *says)
{
    struct weir_rate rate;
    struct weir_reason reason = {{0}};
    assert_int_equal(weir_rate_parse(&rate, text, strlen(text), &reason), err);
    assert_non_null(strstr(reason.text, says));
}

TEST("every unit has its length")
{
    expect_rate("1/ms", 1, S / 1000, 0);
    expect_rate("2/s", 2, S, 0);
    expect_rate("3/sec", 3, S, 0);
    expect_rate("4/min", 4, 60 * S, 0);
    expect_rate("5/h", 5, 3600 * S, 0);
    expect_rate("6/hour", 6, 3600 * S, 0);
    expect_rate("7/d", 7, 86400 * S, 0);
    expect_rate("8/day", 8, 86400 * S, 0);
    expect_rate("9/w", 9, 604800 * S, 0);
    expect_rate("10/week", 10, 604800 * S, 0);
}

TEST("a window may be several units")
{
    expect_rate("100/15min", 100, 900 * S, 0);
    expect_rate("5/500ms", 5, S / 2, 0);
    expect_rate("0/s", 0, S, 0);
    expect_rate("18446744073709551615/s", UINT64_MAX, S, 0);
}

TEST("a burst may follow")
{
    expect_rate("100/min burst 20", 100, 60 * S, 20);
    expect_rate("3/second", 3, S, 0);
    expect_rate("3/seconds", 3, S, 0);
    expect_rate("3/minute", 3, 60 * S, 0);
    expect_rate("3/10minutes", 3, 600 * S, 0);
    expect_rate("3/2hours", 3, 7200 * S, 0);
    expect_rate("3/days", 3, 86400 * S, 0);
    expect_rate("3/weeks", 3, 604800 * S, 0);
    expect_rate("100/2min  burst   1", 100, 120 * S, 1);
}

static void expect_decimal(const char *text, uint64_t count, uint64_t window_ns, uint64_t whole)
{
    struct weir_rate rate;
    struct weir_reason reason;
    assert_int_equal(weir_rate_parse_decimal(&rate, text, strlen(text), &reason), 0);
    assert_int_equal(rate.count, count);
    assert_int_equal(rate.window_ns, window_ns);
    assert_int_equal(rate.whole, whole);
}

TEST("decimals are exact")
{
    expect_decimal("1.67/s", 167, 100 * S, 2);
    expect_decimal("0.08/s", 8, 100 * S, 1);
    expect_decimal("0.5/2min", 5, 1200 * S, 1);
    expect_decimal("1.50/s", 15, 10 * S, 2);
    expect_decimal("3.00/s", 3, S, 0);
    expect_decimal("3/s", 3, S, 0);
    expect_decimal("0.0/s", 0, S, 0);
    expect_decimal("1.000000001/ms", 1000000001, 1000000 * S, 2);
}

TEST("decimals are those of a number, and no others")
{
    static const char *const texts[] = {"1./s", ".5/s",   "1.5.5/s", "1,5/s",
                                        "1.5",  "1. 5/s", "1.-5/s"};
    static const char *const large[] = {"1844674407370955161.6/s", "1.12345678901/d",
                                        "0.00000000000000000001/s"};
    struct weir_rate rate;
    struct weir_reason reason;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(weir_rate_parse_decimal(&rate, texts[i], strlen(texts[i]), &reason),
                         WEIR_ERR_SYNTAX);
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
        assert_int_equal(weir_rate_parse_decimal(&rate, large[i], strlen(large[i]), &reason),
                         WEIR_ERR_RANGE);
    assert_int_equal(weir_rate_parse(&rate, "1.5/s", 5, &reason), WEIR_ERR_SYNTAX);
}

TEST("a decimal rate is a bucket's, whose burst is the rate rounded up")
{
    struct weir_limit_spec spec = {.algorithm = WEIR_GCRA};
    struct weir_rate rate;
    struct weir_reason reason;
    assert_int_equal(weir_rate_parse_decimal(&rate, "1.67/s", 6, &reason), 0);
    assert_int_equal(rules_numbers_use(&rate, &spec, &reason), 0);
    assert_int_equal(spec.rate, 167);
    assert_int_equal(spec.window_ns, 100 * S);
    assert_int_equal(spec.burst, 2);
    spec = (struct weir_limit_spec){.algorithm = WEIR_TOKEN_BUCKET, .burst = 7};
    assert_int_equal(rules_numbers_use(&rate, &spec, &reason), 0);
    assert_int_equal(spec.burst, 7);
    spec = (struct weir_limit_spec){.algorithm = WEIR_SLIDING_WINDOW};
    assert_int_equal(rules_numbers_use(&rate, &spec, &reason), WEIR_ERR_RANGE);
    assert_string_equal(reason.text,
                        "a rate with decimals needs a bucket (token_bucket, gcra, leaky_bucket); "
                        "sliding_window counts whole requests: write `167/100s`");
}

TEST("the words are rates")
{
    struct weir_rate rate;
    struct weir_reason reason;
    assert_int_equal(weir_rate_parse(&rate, "unlimited", 9, &reason), 0);
    assert_int_equal(rate.kind, WEIR_RATE_UNLIMITED);
    assert_int_equal(weir_rate_parse(&rate, "plan", 4, &reason), 0);
    assert_int_equal(rate.kind, WEIR_RATE_PLAN);
}

TEST("what is no rate is refused")
{
    static const char *const texts[] = {"",
                                        "5",
                                        "5/",
                                        "/s",
                                        "-1/s",
                                        "+1/s",
                                        "1.5/s",
                                        "1e3/s",
                                        "5 / s",
                                        "5/ s",
                                        " 5/s",
                                        "5/s ",
                                        "5/S",
                                        "5/m",
                                        "5/s burst",
                                        "5/s burst ",
                                        "5/s burstt 3",
                                        "5/s burst -1",
                                        "5/s burst 3 4",
                                        "5/s burst 0",
                                        "5/0s",
                                        "5/1.5s",
                                        "Unlimited",
                                        "plans",
                                        "5/s/s",
                                        "5/s\xff",
                                        "5/s,burst 3",
                                        "0x5/s"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct weir_rate rate;
        struct weir_reason reason = {{0}};
        assert_int_equal(weir_rate_parse(&rate, texts[i], strlen(texts[i]), &reason),
                         WEIR_ERR_SYNTAX);
        assert_true(reason.text[0] != '\0');
    }
}

TEST("refusals say what is allowed")
{
    refuse_rate("5/minn", WEIR_ERR_SYNTAX, "did you mean `min`?");
    refuse_rate("5/fortnight", WEIR_ERR_SYNTAX, "units are ms, s, sec, min");
    refuse_rate("five/s", WEIR_ERR_SYNTAX, "allowed are `N/unit`");
    refuse_rate("18446744073709551616/s", WEIR_ERR_RANGE, "too large");
    refuse_rate("1/18446744073709551616s", WEIR_ERR_RANGE, "too large");
    refuse_rate("1/18446744074s", WEIR_ERR_RANGE, "too large");
    refuse_rate("1/s burst 18446744073709551616", WEIR_ERR_RANGE, "too large");
}

TEST("durations need a number and a unit")
{
    uint64_t ns;
    struct weir_reason reason;
    assert_int_equal(weir_duration_parse(&ns, "30s", 3, &reason), 0);
    assert_int_equal(ns, 30 * S);
    assert_int_equal(weir_duration_parse(&ns, "1500ms", 6, &reason), 0);
    assert_int_equal(ns, 3 * S / 2);
    assert_int_equal(weir_duration_parse(&ns, "30", 2, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_duration_parse(&ns, "s", 1, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_duration_parse(&ns, "", 0, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_duration_parse(&ns, "0s", 2, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_duration_parse(&ns, "1s ", 3, &reason), WEIR_ERR_SYNTAX);
}

TEST("sizes are bytes or powers of 1024")
{
    uint64_t bytes;
    struct weir_reason reason;
    assert_int_equal(weir_size_parse(&bytes, "65536", 5, &reason), 0);
    assert_int_equal(bytes, 65536);
    assert_int_equal(weir_size_parse(&bytes, "64MiB", 5, &reason), 0);
    assert_int_equal(bytes, UINT64_C(64) << 20);
    assert_int_equal(weir_size_parse(&bytes, "3GiB", 4, &reason), 0);
    assert_int_equal(bytes, UINT64_C(3) << 30);
    assert_int_equal(weir_size_parse(&bytes, "64MB", 4, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_size_parse(&bytes, "", 0, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_size_parse(&bytes, "18446744073709551615KiB", 23, &reason),
                     WEIR_ERR_RANGE);
}

TEST("the names of algorithms are those of the core")
{
    uint32_t word = 0;
    for (int i = 0; i < ALGORITHMS; i++) {
        if (!algorithm_has((enum weir_algorithm)i, ALGORITHM_CHOSEN))
            continue;
        assert_non_null(algorithm_words[word]);
        assert_string_equal(algorithm_words[word], algorithm_rows[i].name);
        assert_int_equal(rules_algorithm_named(weir_bytes_of(algorithm_words[word++])), i);
    }
    assert_null(algorithm_words[word]);
    assert_int_equal(rules_algorithm_named(weir_bytes_of("counter")), -1);
    assert_int_equal(rules_algorithm_named(weir_bytes_of("gcr")), -1);
}

RUN_TESTS()
