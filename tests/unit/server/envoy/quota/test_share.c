/* SPDX-License-Identifier: Apache-2.0 */
/* server/envoy/quota/share: what an assignment costs, number by number, and when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "feature/envoy/server/quota/share.h"
#include "test.h"

#define NOW UINT64_C(1700000000000)
#define LIFE (WEIR_QUOTA_TTL_S * 1000 + WEIR_QUOTA_LATE_MS)

/* A window that has much left; a bucket of 10 requests a second, fresh. */
static const struct weir_quota_supply window = {
    .unit = 1, .remaining = 1000000, .end_ms = NOW + 1000000, .rate = 1, .window_ms = 1000};
static const struct weir_quota_supply bucket = {
    .bucket = true, .unit = 1, .remaining = 1000000, .rate = 10, .window_ms = 1000};

/* The cost of the next assignment of one supply. */
static uint64_t cost_of(struct weir_quota_plan *plan, const struct weir_quota_share *held,
                        const struct weir_quota_supply *supply, uint64_t per_fill, uint64_t now_ms)
{
    uint64_t cost = 0;
    weir_quota_plan(plan, held, supply, 1, per_fill, now_ms, &cost);
    return cost;
}

TEST("a first assignment costs all that it admits")
{
    struct weir_quota_share none = {0};
    struct weir_quota_plan plan;
    assert_int_equal(cost_of(&plan, &none, &window, 100, NOW), 2 + 60);
    assert_int_equal(plan.move, WEIR_QUOTA_CHANGED);
    assert_int_equal(plan.ttl_s, 5);
    assert_true(plan.share.ends_ms == NOW + LIFE && plan.share.expires_ms == NOW + 5000);
    assert_int_equal(cost_of(&plan, &none, &window, 1, NOW), 1);      /* 1 + 0.6 */
    assert_int_equal(cost_of(&plan, &none, &window, 1000, NOW), 611); /* 11 tokens are kept */
    /* A bucket's state becomes that of the end: 6 s of 10 requests. */
    assert_int_equal(cost_of(&plan, &none, &bucket, 100, NOW), 2 + 60 + 60);
    struct weir_quota_supply used = bucket;
    used.fresh_ms = NOW + 4000;
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 2 + 60 + 20);
    used.fresh_ms = NOW + 9000;
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 2 + 60);
    used.unit = 3;
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 3 * 62);
}

TEST("an equal one costs what it adds")
{
    struct weir_quota_share none = {0};
    struct weir_quota_plan first, plan;
    cost_of(&first, &none, &window, 100, NOW);
    assert_int_equal(cost_of(&plan, &first.share, &window, 100, NOW + 2500), 25);
    assert_int_equal(plan.move, WEIR_QUOTA_EQUAL);
    assert_true(plan.share.ends_ms == NOW + 2500 + LIFE && plan.share.started_ms == NOW);
    struct weir_quota_supply used = bucket; /* and, of a bucket, the tokens that Envoy keeps */
    used.fresh_ms = NOW + 20000;
    assert_int_equal(cost_of(&plan, &first.share, &used, 100, NOW + 2500), 2 + 25);
}

TEST("a changed one uses what is charged already")
{
    struct weir_quota_share none = {0};
    struct weir_quota_plan first, plan;
    cost_of(&first, &none, &window, 100, NOW);
    /* Up: 2.5 s more of 200, and 100 more in the 3.5 s that both live; 3 tokens. */
    assert_int_equal(cost_of(&plan, &first.share, &window, 200, NOW + 2500), 3 + 50 + 35);
    assert_int_equal(plan.move, WEIR_QUOTA_CHANGED);
    /* Down: 2.5 s of 40. What 100 would have had more is lost. */
    assert_int_equal(cost_of(&plan, &first.share, &window, 40, NOW + 2500), 1 + 10);
    /* After its end nothing of it counts. */
    assert_int_equal(cost_of(&plan, &first.share, &window, 200, NOW + LIFE), 3 + 120);
    /* After a denial Envoy begins with full tokens also where the rate is the same. */
    struct weir_quota_share denied = first.share;
    denied.denied = true;
    assert_int_equal(cost_of(&plan, &denied, &window, 100, NOW + 2500), 2 + 25);
    assert_int_equal(plan.move, WEIR_QUOTA_CHANGED);
}

TEST("what cannot be charged is less or denied")
{
    struct weir_quota_share none = {0};
    struct weir_quota_plan plan, next;
    struct weir_quota_supply scarce = window;
    scarce.remaining = 50;
    assert_true(cost_of(&plan, &none, &scarce, 1000, NOW) <= 50);
    assert_int_equal(plan.move, WEIR_QUOTA_CHANGED);
    assert_int_equal(plan.share.per_fill, 83); /* 1 + 49.8; 84 would be 51 */
    scarce.remaining = 0;
    cost_of(&next, &plan.share, &scarce, 1000, NOW + 2500);
    assert_int_equal(next.move, WEIR_QUOTA_WAIT); /* it lasts for a while */
    cost_of(&next, &plan.share, &scarce, 1000, NOW + 4000);
    assert_int_equal(next.move, WEIR_QUOTA_DENY);
    cost_of(&plan, &none, &scarce, 1000, NOW);
    assert_int_equal(plan.move, WEIR_QUOTA_DENY);
    cost_of(&next, &plan.share, &scarce, 1000, NOW + 500);
    assert_int_equal(next.move, WEIR_QUOTA_WAIT); /* the denial lasts */
    assert_int_equal(cost_of(&next, &plan.share, &window, 100, NOW + 500), 62);
}

TEST("no assignment outlasts a segment")
{
    struct weir_quota_share none = {0};
    for (uint64_t left_ms = 1; left_ms < 9000; left_ms += 7) {
        struct weir_quota_plan plan;
        struct weir_quota_supply ending = window;
        ending.end_ms = NOW + left_ms;
        cost_of(&plan, &none, &ending, 100, NOW);
        if (left_ms < 1000 + WEIR_QUOTA_LATE_MS)
            assert_true(plan.move == WEIR_QUOTA_DENY && plan.again_ms == ending.end_ms);
        else
            assert_true(plan.move == WEIR_QUOTA_CHANGED && plan.share.ends_ms <= ending.end_ms &&
                        plan.ttl_s * 1000 + WEIR_QUOTA_LATE_MS <= left_ms);
    }
}

/* What a peek says, which was sent at 5 s and made at the store's 100 s. */
TEST("times of a store are read as early as they can come")
{
    const struct weir_limit_spec minute = {
        .algorithm = WEIR_FIXED_WINDOW, .rate = 9, .window_ns = 60000000000};
    const struct weir_limit_spec hour = {
        .algorithm = WEIR_GCRA, .rate = 3600, .window_ns = 3600000000000, .burst = 100};
    const struct weir_quota_moment here = {100000000000, 100000000000, 0};
    const struct weir_quota_moment there = {100000000000, 5000000000, WEIR_QUOTA_DRIFT_MS};
    const struct weir_report report = {.remaining = 7, .reset_after_ns = 3000000000};
    struct weir_quota_supply supply;
    struct weir_limit limit;
    assert_int_equal(weir_limit_init(&limit, &minute, NULL), 0);
    supply = weir_quota_supply_of(&limit, &report, 1, &here);
    assert_true(!supply.bucket && supply.end_ms == 120000 && supply.remaining == 7);
    supply = weir_quota_supply_of(&limit, &report, 1, &there);
    assert_int_equal(supply.end_ms, 5000 + 20000 - WEIR_QUOTA_DRIFT_MS);
    assert_int_equal(weir_limit_init(&limit, &hour, NULL), 0);
    supply = weir_quota_supply_of(&limit, &report, 1, &here);
    assert_true(supply.bucket && supply.fresh_ms == 103000);
    supply = weir_quota_supply_of(&limit, &report, 1, &there);
    assert_true(supply.fresh_ms == 8000 && supply.drift_ms == WEIR_QUOTA_DRIFT_MS);
}

/* The answer came 2 s after the question: the state may have been reached as long ago, or just
 * now, so a bucket is charged for both. */
TEST("a slow answer costs a bucket more")
{
    struct weir_quota_share none = {0};
    struct weir_quota_plan plan;
    struct weir_quota_supply used = bucket;
    used.fresh_ms = NOW + 4000;
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 62 + 20);
    used.fresh_ms = NOW + 2000; /* read as of 2 s earlier */
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 62 + 40);
    used.drift_ms = WEIR_QUOTA_DRIFT_MS;
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 62 + 41);
    used.fresh_ms = NOW - 2000;
    assert_int_equal(cost_of(&plan, &none, &used, 100, NOW), 62 + 61);
}

TEST("a charge after a jump of the clock does not hold")
{
    const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_FIXED_WINDOW, .rate = 9, .window_ns = 60000000000},
        {.algorithm = WEIR_GCRA, .rate = 3600, .window_ns = 3600000000000, .burst = 100}};
    const uint64_t at = 119999999999;
    struct weir_limit limit;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_limit_init(&limit, &specs[i], NULL), 0);
        assert_true(weir_quota_holds(&limit, at, at) && weir_quota_holds(&limit, at - 9, at));
        assert_false(weir_quota_holds(&limit, at, at - 1));
        assert_int_equal(weir_quota_holds(&limit, at, at + 1),
                         i); /* a new window, but no bucket's */
    }
}

TEST("limits that are too short cannot be assigned")
{
    static const struct {
        struct weir_limit_spec spec;
        bool assignable;
    } cases[] = {
        {{.algorithm = WEIR_FIXED_WINDOW, .rate = 9, .window_ns = 20000000000}, true},
        {{.algorithm = WEIR_FIXED_WINDOW, .rate = 9, .window_ns = 19999000000}, false},
        {{.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = 60000000000}, true},
        {{.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = 60000000000, .segments = 6},
         false},
        {{.algorithm = WEIR_GCRA, .rate = 10, .window_ns = 1000000000, .burst = 120}, true},
        {{.algorithm = WEIR_TOKEN_BUCKET, .rate = 10, .window_ns = 1000000000, .burst = 119},
         false},
        {{.algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = 1000000000, .burst = 999}, false},
        {{.algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = 60000000000}, false},
        {{.algorithm = WEIR_CONCURRENCY, .rate = 10, .window_ns = 60000000000}, false},
        {{.algorithm = WEIR_GCRA, .rate = 0, .window_ns = 60000000000, .burst = 9}, false},
    };
    struct weir_limit limit;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(weir_limit_init(&limit, &cases[i].spec, NULL), 0);
        assert_int_equal(weir_quota_assignable(&limit), cases[i].assignable);
    }
}

RUN_TESTS()
