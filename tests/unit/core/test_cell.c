/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms whose state is a cell, case by case. Random traces: test_model.c. */
#include "core/debit.h"
#include "core_test.h"
#include "test.h"

static struct weir_limit bucket(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns,
                                uint64_t burst)
{
    return make_limit((struct weir_limit_spec){
        .algorithm = algorithm, .rate = rate, .window_ns = window_ns, .burst = burst});
}

static struct weir_limit window(enum weir_algorithm algorithm, uint64_t rate, uint64_t window_ns)
{
    return make_limit(
        (struct weir_limit_spec){.algorithm = algorithm, .rate = rate, .window_ns = window_ns});
}

TEST("gcra denies the request one tick early")
{
    struct weir_limit limit = bucket(WEIR_GCRA, 10, SECOND, 1);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    assert_true(decide(&limit, &cell, START, 1, &report));
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.reset_after_ns, 100 * MS);
    assert_false(decide(&limit, &cell, START + 100 * MS - 1, 1, &report));
    assert_int_equal(report.retry_after_ns, 1);
    assert_true(decide(&limit, &cell, START + 100 * MS, 1, &report));
}

/* From an empty bucket: every minute of a year holds 420, not one more. */
TEST("seven per second is exactly seven per second over a year")
{
    const uint64_t minutes = UINT64_C(366) * 24 * 60;
    struct weir_limit limit = bucket(WEIR_TOKEN_BUCKET, 7, SECOND, 420);
    struct weir_cell cell = {0, 0};
    uint64_t allowed = 0;

    assert_true(decide(&limit, &cell, START, 420, NULL));
    for (uint64_t i = 1; i <= minutes; i++) {
        struct weir_report report;

        assert_true(decide(&limit, &cell, START + i * MINUTE, 420, NULL));
        assert_false(decide(&limit, &cell, START + i * MINUTE, 1, &report));
        assert_int_equal(report.retry_after_ns, 142857143);
        allowed += 420;
    }
    assert_int_equal(allowed, 7 * 366 * UINT64_C(86400));
}

/* As fast as retry_after lets it go: no nanosecond is lost on the way, none is won. */
TEST("waiting as reported admits seven per second")
{
    struct weir_limit limit = bucket(WEIR_TOKEN_BUCKET, 7, SECOND, 7);
    struct weir_cell cell = {0, 0};
    uint64_t allowed = 0, t = START;

    assert_true(decide(&limit, &cell, t, 7, NULL));
    for (;;) {
        struct weir_report report;

        if (decide(&limit, &cell, t, 1, &report)) {
            allowed++;
            continue;
        }
        t += report.retry_after_ns;
        if (t > START + 3600 * SECOND)
            break;
    }
    assert_int_equal(allowed, 7 * 3600);
}

TEST("three buckets decide identically")
{
    static const enum weir_algorithm names[] = {WEIR_TOKEN_BUCKET, WEIR_GCRA, WEIR_LEAKY_BUCKET};
    uint64_t random = 5;

    for (int i = 0; i < 2000; i++) {
        struct weir_limit limits[3];
        struct weir_cell cells[3] = {{0, 0}};
        uint64_t now_ns = START;

        random = random * UINT64_C(6364136223846793005) + 1;
        for (int k = 0; k < 3; k++)
            limits[k] = bucket(names[k], (random >> 40) % 1000 + 1, MS + (random >> 33),
                               (random >> 50) % 50);
        for (int j = 0; j < 50; j++) {
            struct weir_report reports[3];
            bool allowed[3];

            random = random * UINT64_C(6364136223846793005) + 1;
            now_ns += random >> 40;
            for (int k = 0; k < 3; k++)
                allowed[k] = decide(&limits[k], &cells[k], now_ns, (random >> 20) % 4, &reports[k]);
            for (int k = 1; k < 3; k++) {
                assert_int_equal(allowed[k], allowed[0]);
                assert_memory_equal(&reports[k], &reports[0], sizeof(reports[0]));
            }
        }
    }
}

TEST("a rate of zero denies every cost for ever")
{
    for (int a = 0; a <= WEIR_LEAKY_QUEUE; a++) {
        struct weir_limit limit;
        struct weir_cell cell = {0, 0};
        struct weir_report report;

        if (a == WEIR_SLIDING_LOG)
            continue;
        limit = bucket((enum weir_algorithm)a, 0, SECOND, 20); /* `0/s burst 20` too */
        assert_false(decide(&limit, &cell, START, 1, &report));
        assert_int_equal(report.limit, 0);
        assert_int_equal(report.remaining, 0);
        assert_int_equal(report.retry_after_ns, WEIR_NEVER);
        assert_int_equal(report.reset_after_ns, 0);
        assert_true(decide(&limit, &cell, START, 0, &report));
        assert_int_equal(report.retry_after_ns, 0);
        weir_cell_charge(&limit, &cell, START, 3);
        weir_cell_charge_denied(&limit, &cell, START, 3);
        weir_cell_refund(&limit, &cell, START, START, 3);
        assert_false(decide(&limit, &cell, START, 1, &report));
    }
}

TEST("a cost above the capacity never passes")
{
    for (int a = 0; a <= WEIR_LEAKY_QUEUE; a++) {
        struct weir_limit limit;
        struct weir_cell cell = {0, 0};
        struct weir_report report;

        if (a == WEIR_SLIDING_LOG)
            continue;
        limit = bucket((enum weir_algorithm)a, 5, SECOND, 5);
        assert_false(decide(&limit, &cell, START, limit.capacity + 1, &report));
        assert_int_equal(report.retry_after_ns, WEIR_NEVER);
        assert_false(decide(&limit, &cell, START, UINT64_MAX, &report));
        assert_int_equal(report.retry_after_ns, WEIR_NEVER);
        assert_int_equal(report.remaining, limit.capacity);
        assert_true(decide(&limit, &cell, START, limit.capacity, &report));
        assert_int_equal(report.remaining, 0);
    }
}

TEST("a clock that goes back and forth fills no empty bucket")
{
    for (int a = WEIR_FIXED_WINDOW; a <= WEIR_LEAKY_QUEUE; a++) {
        struct weir_limit limit;
        struct weir_cell cell = {0, 0};

        if (a == WEIR_SLIDING_LOG)
            continue;
        limit = bucket((enum weir_algorithm)a, 3, 1000 * SECOND, 3);
        assert_true(decide(&limit, &cell, START, limit.capacity, NULL));
        for (int i = 0; i < 1000; i++)
            assert_false(decide(&limit, &cell, START - (uint64_t)(i % 2) * SECOND, 1, NULL));
        assert_false(decide(&limit, &cell, 0, 1, NULL)); /* a clock that was reset */
    }
}

TEST("a retry reported at an earlier time counts from there")
{
    struct weir_limit limit = window(WEIR_FIXED_WINDOW, 1, SECOND);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    assert_true(decide(&limit, &cell, 10 * SECOND + 5, 1, NULL));
    assert_false(decide(&limit, &cell, 7 * SECOND, 1, &report));
    assert_int_equal(report.retry_after_ns, 4 * SECOND);
    assert_int_equal(report.reset_after_ns, 4 * SECOND);
}

TEST("a debit goes into debt and even cost 0 waits for it")
{
    struct weir_limit limit = bucket(WEIR_TOKEN_BUCKET, 10, SECOND, 10);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    weir_cell_charge(&limit, &cell, START, 25);
    assert_false(decide(&limit, &cell, START, 0, &report));
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, 1500 * MS);
    assert_int_equal(report.reset_after_ns, 2500 * MS);
    assert_true(decide(&limit, &cell, START + 1500 * MS, 0, &report));
    assert_false(decide(&limit, &cell, START + 1500 * MS, 1, &report));
    assert_int_equal(report.retry_after_ns, 100 * MS);
}

TEST("denied charges stop a bucket at empty")
{
    struct weir_limit limit = bucket(WEIR_TOKEN_BUCKET, 10, SECOND, 10);
    struct weir_cell cell = {0, 0}, deeper;
    struct weir_report report;

    assert_true(decide(&limit, &cell, START, 8, NULL));
    for (int i = 0; i < 300; i++)
        weir_cell_charge_denied(&limit, &cell, START, 15);
    report = report_of(&limit, &cell, START, 1, false);
    assert_int_equal(report.retry_after_ns, 100 * MS); /* not minutes */
    weir_cell_charge(&limit, &cell, START, 5);
    deeper = cell;
    weir_cell_charge_denied(&limit, &cell, START, 1);
    assert_memory_equal(&cell, &deeper, sizeof(cell)); /* and never out of a debt */
}

TEST("the debt of a bucket saturates")
{
    struct weir_limit limit = bucket(WEIR_GCRA, 3, WEIR_WINDOW_MAX_NS, 3);
    struct weir_cell cell = {0, 0};

    for (int i = 0; i < 3; i++) {
        weir_cell_charge(&limit, &cell, START, UINT64_MAX);
        assert_int_equal(cell.a, UINT64_MAX >> 1);
        assert_int_equal(cell.b, 0);
    }
    assert_int_equal(weir_cell_fresh_at(&limit, &cell), UINT64_MAX >> 1);
    assert_false(decide(&limit, &cell, START, 1, NULL));
}

TEST("window counters saturate at their packed width")
{
    struct weir_limit packed = window(WEIR_SLIDING_WINDOW, 5, MS); /* 26 bits */
    struct weir_limit whole = window(WEIR_SLIDING_WINDOW, UINT32_MAX, MS);
    struct weir_cell cell = {0, 0};

    weir_cell_charge(&packed, &cell, START, 7);
    weir_cell_charge(&packed, &cell, START, UINT64_MAX);
    assert_int_equal(cell.b, (1 << 26) - 1);
    cell = (struct weir_cell){0, 0};
    weir_cell_charge(&whole, &cell, START, 7);
    weir_cell_charge(&whole, &cell, START, UINT64_MAX);
    assert_int_equal(cell.b, UINT32_MAX);
}

TEST("a queue tells how long to wait rounded up")
{
    struct weir_limit limit = bucket(WEIR_LEAKY_QUEUE, 3, SECOND, 2);
    struct weir_cell cell = {0, 0};
    struct weir_use use = {.now_ns = START, .cost = 1};
    uint64_t delay_ns;

    assert_true(weir_decide(&limit, &cell, &use, NULL, &delay_ns));
    assert_int_equal(delay_ns, 0);
    assert_true(weir_decide(&limit, &cell, &use, NULL, &delay_ns));
    assert_int_equal(delay_ns, 333333334);
    assert_true(weir_decide(&limit, &cell, &use, NULL, &delay_ns));
    assert_int_equal(delay_ns, 666666667);
    assert_false(weir_decide(&limit, &cell, &use, NULL, &delay_ns)); /* two wait already */
    assert_int_equal(delay_ns, 0);
}

TEST("a sliding window weighs the previous one exactly")
{
    struct weir_limit limit = window(WEIR_SLIDING_WINDOW, 10, SECOND);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    assert_true(decide(&limit, &cell, 100 * SECOND + 999 * MS, 10, NULL));
    /* floor(10 * (1 - e)) is 9 from the first nanosecond of the next window on. */
    assert_false(decide(&limit, &cell, 101 * SECOND, 1, &report));
    assert_int_equal(report.retry_after_ns, 1);
    assert_true(decide(&limit, &cell, 101 * SECOND + 1, 1, &report));
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.reset_after_ns, 2 * SECOND - 1);
    /* 1 is used; 5 more fit when floor(10 * (1 - e)) <= 4, which is after 0.5 s. */
    report = report_of(&limit, &cell, 101 * SECOND + 1, 5, false);
    assert_int_equal(report.retry_after_ns, 500 * MS);
}

TEST("refunds touch only the window that was charged")
{
    struct weir_limit limit = window(WEIR_FIXED_WINDOW, 5, SECOND);
    struct weir_cell cell = {0, 0};

    assert_true(decide(&limit, &cell, 10 * SECOND, 3, NULL));
    weir_cell_refund(&limit, &cell, 10 * SECOND + 1, 10 * SECOND, 1);
    assert_int_equal(report_of(&limit, &cell, 10 * SECOND + 1, 1, true).remaining, 3);
    weir_cell_refund(&limit, &cell, 10 * SECOND + 1, 9 * SECOND, 1);
    assert_int_equal(report_of(&limit, &cell, 10 * SECOND + 1, 1, true).remaining, 3);
    assert_true(decide(&limit, &cell, 11 * SECOND, 4, NULL));
    weir_cell_refund(&limit, &cell, 11 * SECOND, 10 * SECOND, 2); /* expired */
    assert_int_equal(report_of(&limit, &cell, 11 * SECOND, 1, true).remaining, 1);
    weir_cell_refund(&limit, &cell, 11 * SECOND, 11 * SECOND, UINT64_MAX); /* all there is */
    assert_int_equal(report_of(&limit, &cell, 11 * SECOND, 1, true).remaining, 5);
    assert_int_equal(weir_cell_fresh_at(&limit, &cell), 0);
}

TEST("a refund never makes a bucket better than fresh")
{
    struct weir_limit limit = bucket(WEIR_GCRA, 10, SECOND, 10);
    struct weir_cell cell = {0, 0};

    assert_true(decide(&limit, &cell, START, 2, NULL));
    weir_cell_refund(&limit, &cell, START, START, 1);
    assert_int_equal(report_of(&limit, &cell, START, 1, true).remaining, 9);
    weir_cell_refund(&limit, &cell, START, START, UINT64_MAX);
    assert_int_equal(report_of(&limit, &cell, START, 1, true).remaining, 10);
    assert_true(decide(&limit, &cell, START, 10, NULL));
    assert_false(decide(&limit, &cell, START, 1, NULL));
}

TEST("what was used stays used when a rate changes")
{
    struct weir_limit slow = bucket(WEIR_TOKEN_BUCKET, 10, MINUTE, 10);
    struct weir_limit fast = bucket(WEIR_TOKEN_BUCKET, 70, SECOND, 20);
    struct weir_cell cell = {0, 0};

    assert_true(decide(&slow, &cell, START, 7, NULL));
    weir_cell_convert(&slow, &fast, &cell, START);
    assert_int_equal(report_of(&fast, &cell, START, 1, true).remaining, 13);
    weir_cell_convert(&fast, &slow, &cell, START);
    assert_int_equal(report_of(&slow, &cell, START, 1, true).remaining, 3);
    weir_cell_convert(&slow, &slow, &cell, START);
    assert_int_equal(report_of(&slow, &cell, START, 1, true).remaining, 3);
}

TEST("raising a limit denies nobody who was allowed")
{
    uint64_t random = 11;

    for (int i = 0; i < 20000; i++) {
        uint64_t rate, burst, now_ns = START, cost, window_ns;
        struct weir_limit from, to;
        struct weir_cell cell = {0, 0};
        bool before;

        random = random * UINT64_C(6364136223846793005) + 1;
        rate = (random >> 45) + 1;
        burst = (random >> 30) % 1000 + 1;
        window_ns = SECOND + (random >> 31);
        from = bucket(WEIR_GCRA, rate, window_ns, burst);
        to = bucket(WEIR_GCRA, rate + (random >> 20) % 9, window_ns - (random >> 10) % 3 * MS,
                    burst + (random >> 15) % 3);
        for (int j = 0; j < 5; j++)
            (void)decide(&from, &cell, now_ns += (random >> (30 + j)) % MS, 1 + burst / 5, NULL);
        cost = report_of(&from, &cell, now_ns, 0, true).remaining;
        before = decide(&from, &(struct weir_cell){cell.a, cell.b}, now_ns, cost, NULL);
        assert_true(before);
        weir_cell_convert(&from, &to, &cell, now_ns);
        assert_true(decide(&to, &cell, now_ns, cost, NULL));
    }
}

TEST("another algorithm starts fresh")
{
    struct weir_limit from = bucket(WEIR_GCRA, 10, MINUTE, 10);
    struct weir_limit to = window(WEIR_SLIDING_WINDOW, 10, MINUTE);
    struct weir_cell cell = {0, 0};

    assert_true(decide(&from, &cell, START, 7, NULL));
    weir_cell_convert(&from, &to, &cell, START);
    assert_int_equal(cell.a | cell.b, 0);
}

TEST("cells survive packing at the ends of their range")
{
    struct weir_limit limit = bucket(WEIR_GCRA, (UINT64_C(1) << 33) - 1, 1000003, 5);
    struct weir_limit sliding = window(WEIR_SLIDING_WINDOW, (1 << 26) - 1, MS);
    struct weir_cell cell = {UINT64_MAX >> 1, (UINT64_C(1) << 33) - 2}, back;
    uint32_t packed[3];

    assert_true(limit.packs);
    weir_cell_pack(&limit, &cell, packed);
    weir_cell_unpack(&limit, packed, &back);
    assert_memory_equal(&back, &cell, sizeof(cell));

    assert_true(sliding.packs);
    cell.a = ((UINT64_C(1) << 62) - 1) / MS;
    cell.b = ((1 << 26) - 1) | UINT64_C(0x2aaaaaa) << 32;
    weir_cell_pack(&sliding, &cell, packed);
    weir_cell_unpack(&sliding, packed, &back);
    assert_memory_equal(&back, &cell, sizeof(cell));

    memset(&cell, 0, sizeof(cell)); /* fresh is zero, packed or not */
    weir_cell_pack(&sliding, &cell, packed);
    assert_int_equal(packed[0] | packed[1] | packed[2], 0);
    weir_cell_pack(&limit, &cell, packed);
    assert_int_equal(packed[0] | packed[1] | packed[2], 0);
}

TEST("cells outside their range are not valid")
{
    struct weir_limit limit = bucket(WEIR_GCRA, 7, SECOND, 5);
    struct weir_limit sliding = window(WEIR_SLIDING_WINDOW, 5, MS);
    struct weir_limit fixed = window(WEIR_FIXED_WINDOW, 5, MS);
    struct weir_limit zero = bucket(WEIR_GCRA, 0, SECOND, 5);

    assert_true(weir_cell_valid(&limit, &(struct weir_cell){UINT64_MAX >> 1, 0}));
    assert_false(weir_cell_valid(&limit, &(struct weir_cell){UINT64_MAX >> 1, 1}));
    assert_false(weir_cell_valid(&limit, &(struct weir_cell){(UINT64_MAX >> 1) + 1, 0}));
    assert_true(weir_cell_valid(&limit, &(struct weir_cell){START, 6}));
    assert_false(weir_cell_valid(&limit, &(struct weir_cell){START, 7}));
    assert_false(weir_cell_valid(&zero, &(struct weir_cell){START, 0}));
    assert_true(weir_cell_valid(&sliding, &(struct weir_cell){5, UINT64_C(5) << 32 | 5}));
    assert_false(weir_cell_valid(&sliding, &(struct weir_cell){5, 1 << 26}));
    assert_false(weir_cell_valid(&sliding, &(struct weir_cell){5, UINT64_C(1) << 58}));
    assert_false(weir_cell_valid(&sliding, &(struct weir_cell){UINT64_C(1) << 43, 0}));
    assert_false(weir_cell_valid(&fixed, &(struct weir_cell){5, UINT64_C(1) << 32}));
}

/* A state owes until the year 2262 at most: what lies beyond is not charged, and is not said to be.
 */
TEST("a debit has no room beyond the latest time")
{
    const uint64_t day = 24 * 60 * MINUTE, most = 53000; /* 145 years */
    struct weir_limit limit = bucket(WEIR_TOKEN_BUCKET, 1, day, most);
    struct weir_cell cell = {0, 0};
    const struct weir_use use = {.now_ns = START, .cost = 0};
    struct weir_report report;
    uint64_t room = weir_cell_debit_room(&limit, &cell, START, 10 * most);

    assert_int_equal(room, (INT64_MAX - START) / day);
    weir_cell_charge(&limit, &cell, START, room);
    weir_cell_report(&limit, &cell, &use, true, &report);
    assert_int_equal(report.reset_after_ns, room * day);
    assert_int_equal(weir_cell_debit_room(&limit, &cell, START, 10 * most), 0);
}

RUN_TESTS()
