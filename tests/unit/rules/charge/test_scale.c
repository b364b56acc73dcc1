/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several scales counts for a request. */
#include "rules/charge/scale.h"
#include "rules_test.h"
#include "test.h"

static struct weir_joined_scale joined;

static void expect_scale(uint32_t percent, enum weir_scale_kind kind)
{
    assert_int_equal(joined.percent, percent);
    assert_int_equal(joined.kind, kind);
}

TEST("the smallest scale counts")
{
    memset(&joined, 0, sizeof joined);
    weir_rules_join_scale(&joined, 100, WEIR_SCALE_RATE, true);
    expect_scale(0, 0);
    weir_rules_join_scale(&joined, 99, WEIR_SCALE_RATE, false);
    expect_scale(99, WEIR_SCALE_RATE);
    weir_rules_join_scale(&joined, 60, WEIR_SCALE_RESERVE, false);
    expect_scale(60, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&joined, 61, WEIR_SCALE_RATE, false);
    expect_scale(60, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&joined, 100, WEIR_SCALE_RATE, false);
    expect_scale(60, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&joined, 1, WEIR_SCALE_RATE, false);
    expect_scale(1, WEIR_SCALE_RATE);
    assert_int_equal(joined.alone, 0);
}

TEST("of two equal scales a rate counts")
{
    memset(&joined, 0, sizeof joined);
    weir_rules_join_scale(&joined, 20, WEIR_SCALE_RESERVE, false);
    weir_rules_join_scale(&joined, 20, WEIR_SCALE_RATE, false);
    expect_scale(20, WEIR_SCALE_RATE);
    weir_rules_join_scale(&joined, 20, WEIR_SCALE_RESERVE, false);
    expect_scale(20, WEIR_SCALE_RATE);
}

/* The scale of a check of 600/min with this burst, of an adaptive limit and of a throttled caller.
 */
static struct weir_check scaled(uint64_t burst, uint32_t adaptive, uint32_t caller, bool alone)
{
    const struct weir_limit_spec spec = {.algorithm = WEIR_TOKEN_BUCKET,
                                         .rate = 600,
                                         .window_ns = UINT64_C(60000000000),
                                         .burst = burst};
    static struct weir_limit limit;
    struct weir_check check = {.limit = &limit, .cost = 1};
    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    memset(&joined, 0, sizeof joined);
    weir_rules_join_scale(&joined, caller, WEIR_SCALE_RATE, alone);
    weir_rules_join_scale(&joined, adaptive, WEIR_SCALE_RATE, true);
    weir_rules_scale_check(&check, &joined);
    return check;
}

static void expect_counts(struct weir_check check, unsigned percent, bool alone)
{
    assert_int_equal(check.scale, percent);
    assert_int_equal(check.scale_kind, percent != 0);
    assert_int_equal(check.scale_alone, alone);
}

/* Two callers on one state: a throttled one is never better off than the others. */
TEST("a scale that all have counts where a smaller one would slow nobody")
{
    expect_counts(scaled(1, 100, 100, false), 0, false);
    expect_counts(scaled(1, 20, 100, false), 20, true);
    expect_counts(scaled(1, 100, 20, false), 20, false);
    expect_counts(scaled(1, 100, 20, true), 20, true);
    expect_counts(scaled(1, 20, 10, false), 20, true); /* 10 % would be as 100 % */
    expect_counts(scaled(4, 20, 10, false), 20, true);
    expect_counts(scaled(5, 20, 10, false), 10, false); /* 20 % weigh the depth, 10 % no more */
    expect_counts(scaled(50, 20, 10, false), 10, false);
    expect_counts(scaled(1, 20, 10, true), 10, true);
    expect_counts(scaled(1, 10, 20, false), 10, true);
    expect_counts(scaled(1, 20, 20, false), 20, true);
}

RUN_TESTS()
