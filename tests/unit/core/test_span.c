/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms whose state is a span, case by case. Random traces: test_model.c. */
#include "core_test.h"
#include "test.h"

#include <stdlib.h>

static uint64_t *fresh_span(const struct weir_limit *limit)
{
    uint64_t *span = calloc(limit->span_words, sizeof(*span));

    assert_non_null(span);
    return span;
}

static struct weir_limit segments(uint64_t rate, uint64_t window_ns, uint32_t count, bool strict)
{
    return make_limit((struct weir_limit_spec){.algorithm = WEIR_SLIDING_WINDOW,
                                               .rate = rate,
                                               .window_ns = window_ns,
                                               .segments = count,
                                               .strict = strict});
}

static struct weir_limit list(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns)
{
    return make_limit(
        (struct weir_limit_spec){.algorithm = algorithm, .rate = rate, .window_ns = window_ns});
}

static void charge(const struct weir_limit *limit, uint64_t *span, uint64_t now_ns, uint64_t cost,
                   struct weir_lease lease)
{
    struct weir_use use = {.now_ns = now_ns, .cost = cost, .lease = lease};
    struct weir_edits edits;

    weir_span_charge(limit, span, &use, &edits);
    weir_edits_apply(&edits, span);
}

static void refund(const struct weir_limit *limit, uint64_t *span, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost)
{
    struct weir_use use = {.now_ns = now_ns, .cost = cost, .charged_at_ns = charged_at_ns};
    struct weir_edits edits;

    weir_span_refund(limit, span, &use, &edits);
    weir_edits_apply(&edits, span);
}

TEST("the log forgets an admission after exactly its window")
{
    struct weir_limit limit = list(WEIR_SLIDING_LOG, 2, SECOND);
    uint64_t *span = fresh_span(&limit);
    struct weir_report report;

    assert_true(decide(&limit, span, START, 1, NULL));
    assert_true(decide(&limit, span, START + 5, 1, NULL));
    assert_false(decide(&limit, span, START + SECOND - 1, 1, &report));
    assert_int_equal(report.retry_after_ns, 1);
    assert_int_equal(report.reset_after_ns, 6);
    assert_true(decide(&limit, span, START + SECOND, 1, &report));
    assert_int_equal(report.remaining, 0);
    free(span);
}

TEST("a log of ten thousand fills expires and fills again")
{
    struct weir_limit limit = list(WEIR_SLIDING_LOG, WEIR_LOG_MAX, SECOND);
    uint64_t *span = fresh_span(&limit);
    struct weir_report report;

    for (uint64_t round = 0; round < 3; round++) {
        uint64_t start = START + round * SECOND;

        for (uint64_t i = 0; i < WEIR_LOG_MAX; i++)
            assert_true(decide(&limit, span, start + i, 1, NULL));
        assert_false(decide(&limit, span, start + WEIR_LOG_MAX, 1, &report));
        assert_int_equal(report.retry_after_ns, SECOND - WEIR_LOG_MAX);
        report = report_of(&limit, span, start + WEIR_LOG_MAX, 5000, false);
        assert_int_equal(report.retry_after_ns, SECOND - WEIR_LOG_MAX + 4999);
    }
    free(span);
}

/* A refund in the middle makes room for an entry, wherever in the list it stood. */
TEST("refunds leave no holes in a log")
{
    struct weir_limit limit = list(WEIR_SLIDING_LOG, 3, SECOND);
    uint64_t *span = fresh_span(&limit);

    assert_true(decide(&limit, span, START, 1, NULL)); /* stays */
    assert_true(decide(&limit, span, START + 1, 1, NULL));
    for (uint64_t i = 2; i < 1000; i++) {
        assert_true(decide(&limit, span, START + i, 1, NULL));
        assert_false(decide(&limit, span, START + i, 1, NULL));
        refund(&limit, span, START + i, START + i - 1, 1);
    }
    /* 1 at START, 1 at START + 999: each expires at its own time. */
    assert_false(decide(&limit, span, START + SECOND - 1, 2, NULL));
    assert_true(decide(&limit, span, START + SECOND, 2, NULL));
    free(span);
}

TEST("a refund of what a log no longer holds changes nothing")
{
    struct weir_limit limit = list(WEIR_SLIDING_LOG, 3, SECOND);
    uint64_t *span = fresh_span(&limit);

    assert_true(decide(&limit, span, START, 2, NULL));
    refund(&limit, span, START + SECOND, START, 1); /* expired */
    refund(&limit, span, START + 1, START + 1, 1);  /* never charged */
    assert_int_equal(report_of(&limit, span, START + 1, 1, true).remaining, 1);
    refund(&limit, span, START + 1, START, UINT64_MAX);
    assert_int_equal(report_of(&limit, span, START + 1, 1, true).remaining, 3);
    assert_int_equal(weir_span_fresh_at(&limit, span), 0);
    free(span);
}

TEST("a debit to a full log joins the newest entry")
{
    struct weir_limit limit = list(WEIR_SLIDING_LOG, 2, SECOND);
    uint64_t *span = fresh_span(&limit);

    for (uint64_t i = 0; i < 5; i++)
        charge(&limit, span, START + i, 1, (struct weir_lease){0, 0});
    /* 1 at START, 4 at START + 4. */
    assert_int_equal(report_of(&limit, span, START + SECOND + 3, 1, false).retry_after_ns, 1);
    assert_int_equal(weir_span_fresh_at(&limit, span), START + 4 + SECOND);
    free(span);
}

TEST("a log takes one word an event and two where a cost is above 1")
{
    struct weir_limit limit = list(WEIR_SLIDING_LOG, 1000, SECOND);
    uint64_t *span = fresh_span(&limit);
    struct weir_span_source source = {&limit, span, START + 100, 0};

    assert_int_equal(weir_span_needs(NULL, &limit, 1, 1), 2 + 2);
    for (uint64_t i = 0; i < 60; i++)
        assert_true(decide(&limit, span, START + i, 1, NULL));
    assert_int_equal(weir_span_needs(&source, &limit, 0, 0), 2 + 60);
    assert_int_equal(weir_span_needs(&source, &limit, 1, 1), 2 + 61);
    assert_true(decide(&limit, span, START + 60, 2, NULL));
    assert_true(decide(&limit, span, START + 60, 7, NULL)); /* the same time: one event */
    assert_int_equal(weir_span_needs(&source, &limit, 0, 0), 2 + 62);
    refund(&limit, span, START + 61, START + 30, 1); /* from the middle */
    assert_int_equal(weir_span_needs(&source, &limit, 0, 0), 2 + 61);
    source.now_ns = START + SECOND + 9; /* ten have expired */
    assert_int_equal(weir_span_needs(&source, &limit, 0, 0), 2 + 51);
    source.now_ns = START + 2 * SECOND;
    assert_int_equal(weir_span_needs(&source, &limit, 0, 0), 2 + 2);
    free(span);
}

/* A log of a few words beside a list of all that was ever charged: what the log admits fits into
 * the window, whatever is charged, refunded or owed. */
TEST("a log that may not grow denies early but never late")
{
    uint64_t random = 5, early = 0, admitted = 0;

    for (uint32_t run = 0; run < 400; run++) {
        struct weir_limit limit = list(WEIR_SLIDING_LOG, 1 + run % 12, SECOND);
        uint64_t *span = calloc(8, sizeof(*span)), now_ns = START;
        struct weir_use charged[300];
        uint32_t count = 0;

        assert_non_null(span);
        weir_span_resize(NULL, &limit, span, 4 + run % 4);
        for (uint32_t i = 0; i < 300; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            now_ns += (random >> 40) % 3 * (SECOND / 16);

            uint64_t draw = random >> 43, used = 0, cost = draw % 8 == 0 ? 1 + draw / 8 % 3 : 1;
            bool admits = weir_span_test(&limit, span, now_ns, cost);

            for (uint32_t k = 0; k < count; k++)
                used += charged[k].now_ns + SECOND > now_ns ? charged[k].cost : 0;
            assert_true(!admits || used + cost <= limit.spec.rate);
            early += !admits && used + cost <= limit.spec.rate;
            admitted += admits;
            if (draw / 32 % 8 == 0 && count > 0) {
                struct weir_use *back = &charged[count - 1 - draw / 256 % count];

                refund(&limit, span, now_ns, back->now_ns, back->cost);
                back->cost = 0;
            } else if (admits || draw / 4096 % 16 == 0) {
                charge(&limit, span, now_ns, cost, (struct weir_lease){0, 0});
                charged[count++] = (struct weir_use){.now_ns = now_ns, .cost = cost};
            }
            assert_true(weir_span_valid(&limit, span));
            assert_true(weir_span_words(&limit, span) <= 7);
        }
        free(span);
    }
    assert_true(early > 1000 && admitted > 1000);
}

TEST("a strict window of segments counts the oldest in full")
{
    struct weir_limit weighted = segments(4, SECOND, 4, false);
    struct weir_limit strict = segments(4, SECOND, 4, true);
    uint64_t *a = fresh_span(&weighted), *b = fresh_span(&strict);
    struct weir_report report;

    assert_true(decide(&weighted, a, 1000 * SECOND, 4, NULL));
    assert_true(decide(&strict, b, 1000 * SECOND, 4, NULL));
    assert_false(decide(&weighted, a, 1000 * SECOND, 2, &report));
    assert_int_equal(report.retry_after_ns, SECOND + 250 * MS / 4 + 1);
    assert_false(decide(&strict, b, 1000 * SECOND, 2, &report));
    assert_int_equal(report.retry_after_ns, SECOND + 250 * MS);
    assert_int_equal(report.reset_after_ns, SECOND + 250 * MS);
    free(a);
    free(b);
}

TEST("segments that were skipped hold nothing old")
{
    struct weir_limit limit = segments(100, 10 * SECOND, 10, true);
    uint64_t *span = fresh_span(&limit);

    for (uint64_t i = 0; i < 11; i++)
        assert_true(decide(&limit, span, 1000 * SECOND + i * SECOND, 5, NULL));
    /* On by 4 segments: 7 of the 11 are still seen, and the skipped 3 count nothing. */
    assert_true(decide(&limit, span, 1014 * SECOND, 1, NULL));
    assert_int_equal(report_of(&limit, span, 1014 * SECOND, 1, true).remaining, 100 - 7 * 5 - 1);
    free(span);
}

TEST("a window of 120 segments needs at most 64 edits")
{
    struct weir_limit limit = segments(100, 120 * SECOND, 120, false);
    uint64_t *span = fresh_span(&limit);
    struct weir_edits edits;
    uint32_t most = 0;

    for (uint64_t gap = 1; gap < 125; gap++) {
        uint64_t t = gap * 1000 * SECOND;
        struct weir_use use = {.cost = 1};

        for (int i = 0; i < 2; i++) {
            use.now_ns = t + (uint64_t)i * gap * SECOND;
            weir_span_charge(&limit, span, &use, &edits);
            assert_true(edits.count <= WEIR_EDITS_MAX);
            most = edits.count > most ? edits.count : most;
            weir_edits_apply(&edits, span);
        }
    }
    assert_int_equal(most, 63); /* two of the header, all the counters */
    /* After a pause nothing needs zeroing. */
    struct weir_use late = {.now_ns = UINT64_C(1) << 61, .cost = 1};

    weir_span_charge(&limit, span, &late, &edits);
    assert_int_equal(edits.count, 3);
    free(span);
}

TEST("segments at the beginning of time have no past")
{
    struct weir_limit limit = segments(5, 10 * SECOND, 10, false);
    uint64_t *span = fresh_span(&limit);
    struct weir_report report;

    assert_true(decide(&limit, span, 0, 5, NULL));
    assert_false(decide(&limit, span, 0, 1, &report));
    assert_int_equal(report.retry_after_ns, 10 * SECOND + 1);
    assert_int_equal(report.reset_after_ns, 11 * SECOND);
    free(span);
}

TEST("leases count until released or expired")
{
    struct weir_limit limit = list(WEIR_CONCURRENCY, 3, 30 * SECOND);
    uint64_t *span = fresh_span(&limit);
    struct weir_edits edits;

    charge(&limit, span, START, 1, (struct weir_lease){1, 0});
    charge(&limit, span, START + 1, 2, (struct weir_lease){2, 0});
    assert_false(weir_span_test(&limit, span, START + 2, 1));
    assert_int_equal(report_of(&limit, span, START + 2, 1, false).retry_after_ns, 30 * SECOND - 2);
    assert_int_equal(weir_span_release(&limit, span, 2, &edits), 1);
    weir_edits_apply(&edits, span);
    assert_int_equal(report_of(&limit, span, START + 2, 1, true).remaining, 2);
    assert_int_equal(weir_span_release(&limit, span, 2, &edits), 0); /* idempotent */
    assert_int_equal(edits.count, 0);
    assert_false(weir_span_test(&limit, span, START + 30 * SECOND - 1, 3));
    assert_true(weir_span_test(&limit, span, START + 30 * SECOND, 3));
    free(span);
}

TEST("an owner ends with all its leases batch by batch")
{
    struct weir_limit limit = list(WEIR_CONCURRENCY, 1000, MINUTE);
    uint64_t *span = fresh_span(&limit);
    struct weir_edits edits;
    uint32_t ended = 0, batches = 0, batch;

    for (uint64_t i = 0; i < 1000; i++)
        charge(&limit, span, START + i, 1, (struct weir_lease){i + 1, i % 3 == 0 ? 7 : 9});
    do {
        batch = weir_span_end_owner(&limit, span, 7, &edits);
        assert_true(edits.count <= WEIR_EDITS_MAX);
        weir_edits_apply(&edits, span);
        ended += batch;
        batches++;
    } while (batch > 0);
    assert_int_equal(ended, 334);
    assert_true(batches > 5);
    assert_int_equal(report_of(&limit, span, START + 1000, 1, true).remaining, 334);
    assert_int_equal(weir_span_end_owner(&limit, span, 0, &edits), 0); /* 0 is nobody */
    free(span);
}

TEST("the leases of owners that are not alive end")
{
    struct weir_limit limit = list(WEIR_CONCURRENCY, 1000, MINUTE);
    struct weir_lease_owners alive = {{0}};
    const uint64_t living = UINT64_C(3) << 8 | 7, older = UINT64_C(2) << 8 | 7, gone = 1 << 8 | 9;
    const uint64_t owners[] = {0, living, older, gone};
    uint64_t *span = fresh_span(&limit);
    struct weir_edits edits;
    uint32_t ended = 0, batch;

    alive.id[7] = living;
    for (uint64_t i = 0; i < 1000; i++)
        charge(&limit, span, START + i, 1, (struct weir_lease){i + 1, owners[i % 4]});
    do {
        batch = weir_span_end_dead(&limit, span, &alive, &edits);
        assert_true(edits.count <= WEIR_EDITS_MAX);
        weir_edits_apply(&edits, span);
        ended += batch;
    } while (batch > 0);
    assert_int_equal(ended, 500); /* those without an owner stay, and the living one's */
    assert_true(weir_span_valid(&limit, span));
    assert_int_equal(report_of(&limit, span, START + 1000, 1, true).remaining, 500);
    free(span);
}

TEST("a renewed lease expires a whole life later")
{
    struct weir_limit limit = list(WEIR_CONCURRENCY, 3, 30 * SECOND);
    uint64_t *span = fresh_span(&limit);
    struct weir_use use = {.now_ns = START + 20 * SECOND, .lease = {.id = 1}};
    struct weir_edits edits;

    charge(&limit, span, START, 2, (struct weir_lease){1, 77});
    charge(&limit, span, START + 1, 1, (struct weir_lease){2, 0});
    assert_int_equal(weir_span_renew(&limit, span, &use, &edits), 1);
    weir_edits_apply(&edits, span);
    assert_true(weir_span_valid(&limit, span));
    assert_int_equal(report_of(&limit, span, START + 31 * SECOND, 1, true).remaining, 1);
    assert_false(weir_span_test(&limit, span, START + 50 * SECOND - 1, 2));
    assert_int_equal(weir_span_end_owner(&limit, span, 77, &edits), 1); /* its owner is the same */
    use.lease.id = 9;
    assert_int_equal(weir_span_renew(&limit, span, &use, &edits), 0);
    assert_int_equal(edits.count, 0);
    free(span);
}

TEST("a debit without room for its lease charges nothing")
{
    struct weir_limit limit = list(WEIR_CONCURRENCY, 2, MINUTE);
    uint64_t *span = fresh_span(&limit);
    struct weir_edits edits;
    struct weir_use use = {.now_ns = START, .cost = 5, .lease = {3, 0}};

    charge(&limit, span, START, 5, (struct weir_lease){1, 0});
    charge(&limit, span, START, 5, (struct weir_lease){2, 0});
    weir_span_charge(&limit, span, &use, &edits);
    assert_int_equal(edits.count, 0);
    free(span);
}

TEST("a part of a lease can be refunded")
{
    struct weir_limit limit = list(WEIR_CONCURRENCY, 5, MINUTE);
    uint64_t *span = fresh_span(&limit);
    struct weir_edits edits;
    struct weir_use use = {.now_ns = START + 1, .cost = 3, .lease = {1, 0}};

    charge(&limit, span, START, 5, (struct weir_lease){1, 0});
    weir_span_refund(&limit, span, &use, &edits);
    weir_edits_apply(&edits, span);
    assert_int_equal(report_of(&limit, span, START + 1, 1, true).remaining, 3);
    weir_span_refund(&limit, span, &use, &edits);
    weir_edits_apply(&edits, span);
    assert_int_equal(weir_span_fresh_at(&limit, span), 0);
    assert_int_equal(weir_span_release(&limit, span, 1, &edits), 0);
    free(span);
}

TEST("a shorter life keeps leases in the order of expiry")
{
    struct weir_limit longer = list(WEIR_CONCURRENCY, 3, MINUTE);
    struct weir_limit shorter = list(WEIR_CONCURRENCY, 3, SECOND);
    uint64_t *a = fresh_span(&longer), *b = fresh_span(&shorter);

    charge(&longer, a, START, 1, (struct weir_lease){1, 0});
    weir_span_convert(&longer, a, &shorter, b);
    charge(&shorter, b, START + 1, 2, (struct weir_lease){2, 0});
    assert_false(weir_span_test(&shorter, b, START + SECOND, 1));
    assert_true(weir_span_test(&shorter, b, START + SECOND + 1, 2)); /* the younger went first */
    assert_false(weir_span_test(&shorter, b, START + MINUTE - 1, 3));
    assert_true(weir_span_test(&shorter, b, START + MINUTE, 3));
    free(a);
    free(b);
}

TEST("a smaller log keeps what was used and forgets none early")
{
    struct weir_limit large = list(WEIR_SLIDING_LOG, 5, SECOND);
    struct weir_limit small = list(WEIR_SLIDING_LOG, 2, SECOND);
    uint64_t *a = fresh_span(&large), *b = fresh_span(&small);

    for (uint64_t i = 0; i < 5; i++)
        assert_true(decide(&large, a, START + i, 1, NULL));
    weir_span_convert(&large, a, &small, b);
    assert_false(weir_span_test(&small, b, START + SECOND, 1));
    assert_false(weir_span_test(&small, b, START + SECOND + 3, 1));
    assert_true(weir_span_test(&small, b, START + SECOND + 4, 2));
    /* And back: entries that were merged stay merged. */
    weir_span_convert(&small, b, &large, a);
    assert_int_equal(report_of(&large, a, START + 5, 1, true).remaining, 0);
    free(a);
    free(b);
}

TEST("another window starts a fresh span")
{
    struct weir_limit from = segments(5, 10 * SECOND, 10, false);
    struct weir_limit to = segments(5, 10 * SECOND, 5, false);
    uint64_t *a = fresh_span(&from), *b = fresh_span(&to);

    assert_true(decide(&from, a, START, 5, NULL));
    memset(b, 0xff, to.span_words * sizeof(*b));
    weir_span_convert(&from, a, &to, b);
    for (uint32_t i = 0; i < to.span_words; i++)
        assert_int_equal(b[i], 0);
    free(a);
    free(b);
}

/* Flips each bit of a valid state: whatever is then called valid must at least be safe to use. */
TEST("damaged spans are not valid or at least harmless")
{
    static const struct weir_limit_spec specs[] = {
        {.algorithm = WEIR_SLIDING_LOG, .rate = 6, .window_ns = SECOND},
        {.algorithm = WEIR_CONCURRENCY, .rate = 6, .window_ns = SECOND},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND, .segments = 5},
    };

    for (size_t k = 0; k < 3; k++) {
        struct weir_limit limit = make_limit(specs[k]);
        uint64_t *span = fresh_span(&limit);
        uint32_t refused = 0;

        for (uint64_t i = 0; i < 5; i++)
            charge(&limit, span, START + i * 150 * MS, 1, (struct weir_lease){i + 1, 7});
        refund(&limit, span, START + 600 * MS, START + 300 * MS, 1);
        assert_true(weir_span_valid(&limit, span));
        for (uint32_t bit = 0; bit < limit.span_words * 64; bit++) {
            uint64_t *copy = fresh_span(&limit);

            memcpy(copy, span, limit.span_words * sizeof(*copy));
            copy[bit / 64] ^= UINT64_C(1) << (bit % 64);
            if (!weir_span_valid(&limit, copy)) {
                refused++;
            } else {
                (void)decide(&limit, copy, START + 700 * MS, 1, NULL);
                (void)report_of(&limit, copy, START + 2 * SECOND, 3, false);
                assert_true(weir_span_valid(&limit, copy));
            }
            free(copy);
        }
        assert_true(refused > 100);
        free(span);
    }
}

RUN_TESTS()
