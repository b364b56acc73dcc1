/* SPDX-License-Identifier: Apache-2.0 */
/* Limits at a scale: the ends of its range, weights, joint loads, debits, reports. test_model.c
 * runs all algorithms beside their models. */
#include "core/scale.h"
#include "test.h"

#include "core/debit.h"
#include "core_test.h"

static struct weir_limit bucket(uint64_t rate, uint64_t window_ns, uint64_t burst)
{
    return make_limit((struct weir_limit_spec){
        .algorithm = WEIR_TOKEN_BUCKET, .rate = rate, .window_ns = window_ns, .burst = burst});
}

static struct weir_check at(const struct weir_limit *limit, uint64_t cost, unsigned percent,
                            enum weir_scale_kind kind)
{
    return (struct weir_check){
        .limit = limit, .cost = cost, .scale = percent & 0x7f, .scale_kind = kind & 1};
}

static bool take(const struct weir_check *check, struct weir_cell *cell, uint64_t now_ns)
{
    struct scale_load load = {0};
    uint64_t delay_ns;

    scale_load_add(&load, check);
    if (!scale_cell_test(check, cell, now_ns, &load, &delay_ns))
        return false;
    scale_cell_charge(check, cell, now_ns);
    return true;
}

TEST("a scale leaves one of any capacity but none of none")
{
    assert_int_equal(scale_part(0, 1), 0);
    assert_int_equal(scale_part(1, 1), 1);
    assert_int_equal(scale_part(99, 1), 1);
    assert_int_equal(scale_part(199, 1), 1);
    assert_int_equal(scale_part(200, 1), 2);
    assert_int_equal(scale_part(10, 99), 9);
    assert_int_equal(scale_part(WEIR_BUCKET_MAX + 1, 100), WEIR_BUCKET_MAX + 1);
}

TEST("a reserve leaves the refill of a bucket as it is")
{
    struct weir_limit limit = bucket(10, SECOND, 10);
    struct weir_check check = at(&limit, 1, 60, WEIR_SCALE_RESERVE);
    struct weir_cell cell = {0, 0};
    for (int i = 0; i < 6; i++)
        assert_true(take(&check, &cell, START));
    assert_false(take(&check, &cell, START));
    assert_false(take(&check, &cell, START + 100 * MS - 1));
    assert_true(take(&check, &cell, START + 100 * MS));
    check.scale = 0;
    for (int i = 0; i < 4; i++)
        assert_true(take(&check, &cell, START + 100 * MS));
    assert_false(take(&check, &cell, START + 100 * MS));
}

TEST("a rate scales the refill of a bucket too")
{
    struct weir_limit limit = bucket(10, SECOND, 10);
    struct weir_check check = at(&limit, 1, 20, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    assert_true(take(&check, &cell, START));
    assert_true(take(&check, &cell, START));
    assert_false(take(&check, &cell, START));
    assert_false(take(&check, &cell, START + 500 * MS - 1));
    assert_true(take(&check, &cell, START + 500 * MS));
}

TEST("a cost of one weighs at most the depth")
{
    struct weir_limit limit = bucket(3, SECOND, 3);
    struct weir_check check = at(&limit, 1, 1, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    struct weir_report report;
    const struct weir_use use = {.now_ns = START, .cost = 1};
    scale_cell_report(&check, &cell, &use, false, &report);
    assert_int_equal(report.limit, 1);
    assert_int_equal(report.remaining, 1);
    assert_true(take(&check, &cell, START));
    scale_cell_report(&check, &cell, &use, false, &report);
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, SECOND);
    assert_int_equal(report.reset_after_ns, SECOND);
    check.cost = 2;
    scale_cell_report(&check, &cell, &(struct weir_use){.now_ns = START, .cost = 2}, false,
                      &report);
    assert_int_equal(report.retry_after_ns, WEIR_NEVER);
}

TEST("a weight is rounded down to the unit of the state")
{
    struct weir_limit limit = bucket(7, SECOND, 100); /* T = 142857142 + 6/7 ns */
    struct weir_check check = at(&limit, 1, 30, WEIR_SCALE_RATE);
    struct bucket_time weight;
    scale_weight(&check, 1, &weight); /* 10^9 * 100 / 30 / 7: 476190476 + 1.33/7, and down */
    assert_int_equal(weight.ns, 476190476);
    assert_int_equal(weight.rem, 1);
    scale_weight(&check, 3, &weight);
    assert_int_equal(weight.ns, 1428571428);
    assert_int_equal(weight.rem, 4);
    scale_weight(&check, UINT64_MAX, &weight);
    assert_int_equal(weight.ns, BUCKET_TAT_MAX);
    scale_weight(&check, 0, &weight);
    assert_int_equal(weight.ns + weight.rem, 0);
}

/* gcra 100/h at 67 %: 67 at once, and not 66 and one 28 ns later. */
TEST("what a scale leaves of a burst is admitted at once")
{
    static const uint64_t rates[] = {1, 3, 7, 60, 100, 999, 1000000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (uint64_t burst = 1; burst <= 200; burst += 1 + burst / 11)
            for (unsigned percent = 1; percent < 100; percent++) {
                struct weir_limit limit = bucket(rates[i], 3600 * SECOND, burst);
                struct weir_check check = at(&limit, 1, percent, WEIR_SCALE_RATE);
                struct weir_cell cell = {0, 0};
                struct weir_report report;
                uint64_t part = scale_capacity(&check);

                for (uint64_t left = part; left > 0; left--) {
                    const struct weir_use use = {.now_ns = START, .cost = 1};

                    scale_cell_report(&check, &cell, &use, false, &report);
                    assert_int_equal(report.remaining, left);
                    assert_true(take(&check, &cell, START));
                }
                assert_false(take(&check, &cell, START));
            }
}

/* How many requests of one caller pass in a minute at 600/min who always comes as soon as it may.
 */
static int passed_in_a_minute(uint64_t burst, unsigned percent, bool alone)
{
    struct weir_limit limit = bucket(600, MINUTE, burst);
    struct weir_check check = at(&limit, 1, percent, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    struct weir_use use = {.now_ns = START, .cost = 1};
    struct weir_report report;
    int passed = 0;

    check.scale_alone = alone;
    while (use.now_ns <= START + MINUTE) {
        passed += take(&check, &cell, use.now_ns);
        scale_cell_report(&check, &cell, &use, false, &report);
        use.now_ns += report.retry_after_ns;
    }
    return passed;
}

TEST("a scale slows a bucket of any burst")
{
    for (uint64_t burst = 1; burst <= 10; burst++)
        for (unsigned percent = 1; percent < 100; percent++) {
            int part = burst * percent < 100 ? 1 : (int)(burst * percent / 100);

            assert_int_equal(passed_in_a_minute(burst, percent, true) - part, 6 * (int)percent);
        }
    assert_int_equal(passed_in_a_minute(1, 20, false), 601);
    assert_int_equal(passed_in_a_minute(2, 20, false), 301);
    assert_int_equal(passed_in_a_minute(5, 20, false), 121);
}

/* What passes is one after the other, a cost of 0 waits as in any debt, and nothing larger ever
 * passes. */
TEST("alone one request may owe more than the depth")
{
    struct weir_limit limit = bucket(10, SECOND, 2);
    struct weir_check check = at(&limit, 1, 20, WEIR_SCALE_RATE), none = check, two = check;
    struct weir_cell cell = {0, 0};
    struct weir_report report;
    struct weir_use use = {.now_ns = START, .cost = 1};
    check.scale_alone = none.scale_alone = two.scale_alone = 1;
    none.cost = 0;
    two.cost = 2;
    assert_false(take(&two, &cell, START));
    assert_true(take(&check, &cell, START)); /* 500 ms; the depth is 200 ms */
    assert_false(take(&none, &cell, START + 300 * MS - 1));
    assert_true(take(&none, &cell, START + 300 * MS));
    scale_cell_report(&none, &cell, &(struct weir_use){.now_ns = START, .cost = 0}, false, &report);
    assert_int_equal(report.retry_after_ns, 300 * MS);
    scale_cell_report(&check, &cell, &use, false, &report);
    assert_int_equal(report.limit, 1);
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, 500 * MS);
    use.cost = 2;
    scale_cell_report(&two, &cell, &use, false, &report);
    assert_int_equal(report.retry_after_ns, WEIR_NEVER);
    assert_false(take(&check, &cell, START + 500 * MS - 1));
    scale_cell_charge_denied(&check, &cell, START + 400 * MS); /* fills what one request fills */
    assert_false(take(&check, &cell, START + 900 * MS - 1));
    assert_true(take(&check, &cell, START + 900 * MS));
    scale_cell_refund(&check, &cell, START + 900 * MS, START + 900 * MS);
    assert_true(take(&check, &cell, START + 900 * MS));
}

/* What is owed stays when the scale changes; the wait is that of the scale now. */
TEST("what is owed stays when the scale moves")
{
    struct weir_limit limit = bucket(10, SECOND, 1);
    struct weir_check slow = at(&limit, 1, 10, WEIR_SCALE_RATE),
                      whole = {.limit = &limit, .cost = 1};
    struct weir_check half = at(&limit, 1, 50, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    struct weir_report report;
    const struct weir_use use = {.now_ns = START, .cost = 1};
    slow.scale_alone = half.scale_alone = 1;
    assert_true(take(&slow, &cell, START)); /* 1 s */
    scale_cell_report(&half, &cell, &use, false, &report);
    assert_int_equal(report.retry_after_ns, SECOND);
    scale_cell_report(&whole, &cell, &use, false, &report);
    assert_int_equal(report.retry_after_ns, SECOND);
    assert_false(take(&whole, &cell, START + SECOND - 1));
    assert_true(take(&half, &cell, START + SECOND)); /* 200 ms */
    assert_true(take(&whole, &cell, START + 1200 * MS));
}

/* A debit with a floor of debt of nothing charges the one that a request could take. */
TEST("alone a debit has room for one")
{
    struct weir_limit limit = bucket(10, SECOND, 2);
    struct weir_check check = at(&limit, 1, 20, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    check.scale_alone = 1;
    assert_int_equal(weir_check_debit_room(&check, &cell, START, 0), 1);
    assert_int_equal(weir_check_debit_room(&check, &cell, START, 8), 2); /* 10 units of 5 each */
    scale_cell_charge(&check, &cell, START);
    assert_int_equal(weir_check_debit_room(&check, &cell, START, 0), 0);
    assert_int_equal(weir_check_debit_room(&check, &cell, START, 8), 1);
}

TEST("what shares a state is added by weight")
{
    struct weir_limit limit = bucket(10, SECOND, 10);
    struct weir_check rate = at(&limit, 1, 50, WEIR_SCALE_RATE);
    struct weir_check reserve = at(&limit, 2, 60, WEIR_SCALE_RESERVE);
    struct weir_check huge = at(&limit, UINT64_MAX, 50, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    struct scale_load load = {0};
    uint64_t delay_ns;
    scale_load_add(&load, &rate);
    scale_load_add(&load, &rate);
    scale_load_add(&load, &reserve);
    assert_int_equal(load.cost, 4);
    assert_int_equal(load.weight.ns, 600 * MS);
    assert_true(scale_cell_test(&rate, &cell, START, &load, &delay_ns));
    assert_true(scale_cell_test(&reserve, &cell, START, &load, &delay_ns)); /* 6 of 6 */
    scale_load_add(&load, &rate);
    assert_true(scale_cell_test(&rate, &cell, START, &load, &delay_ns));
    assert_false(scale_cell_test(&reserve, &cell, START, &load, &delay_ns));
    scale_load_add(&load, &huge);
    scale_load_add(&load, &huge);
    assert_int_equal(load.cost, UINT64_MAX);
    assert_int_equal(load.weight.ns, BUCKET_TAT_MAX);
}

TEST("a refund gives back the weight that was charged")
{
    struct weir_limit limit = bucket(7, SECOND, 70);
    struct weir_check check = at(&limit, 9, 33, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0}, before;
    weir_cell_charge(&limit, &cell, START, 5);
    before = cell;
    assert_true(take(&check, &cell, START));
    scale_cell_refund(&check, &cell, START, START);
    assert_memory_equal(&cell, &before, sizeof cell);
}

/* At 50 % a unit weighs two: of a debt of 10 beyond the capacity of 10, 10 units have room. A
 * reserve binds no debit. */
TEST("a debit has room by its weight")
{
    struct weir_limit limit = bucket(10, SECOND, 10);
    struct weir_check rate = at(&limit, 1, 50, WEIR_SCALE_RATE);
    struct weir_check reserve = at(&limit, 1, 50, WEIR_SCALE_RESERVE);
    struct weir_cell cell = {0, 0};
    assert_int_equal(weir_check_debit_room(&rate, &cell, START, 10), 10);
    assert_int_equal(weir_check_debit_room(&reserve, &cell, START, 10), 20);
    scale_cell_charge(&rate, &cell, START);
    assert_int_equal(weir_check_debit_room(&rate, &cell, START, 10), 9);
}

TEST("a decision tells the limit at its scale and as a whole")
{
    struct weir_limit limit = make_limit(
        (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ns = MINUTE});
    struct weir_check checks[2];
    struct weir_outcome outcomes[2] = {{.verdict = WEIR_DENIED}, {.verdict = WEIR_DENIED}};
    struct weir_decision decision = {
        .checks = checks, .outcomes = outcomes, .count = 2, .now_ns = START};
    struct weir_report report;
    checks[0] = checks[1] = at(&limit, 1, 60, WEIR_SCALE_RESERVE);
    weir_cell_charge(&limit, &outcomes[0].cell, START, 60);
    outcomes[1].reported = true; /* limit and remaining at 100 %, the retry at the scale */
    outcomes[1].report = (struct weir_report){100, 40, 7, 8};
    for (uint16_t i = 0; i < 2; i++) {
        weir_decision_report(&decision, i, &report);
        assert_int_equal(report.limit, 60);
        assert_int_equal(report.remaining, 0);
        assert_int_not_equal(report.retry_after_ns, 0);
        weir_decision_report_whole(&decision, i, &report);
        assert_int_equal(report.limit, 100);
        assert_int_equal(report.remaining, 40);
    }
}

/* Where a report is all there is, a bucket at a rate reports one unit less at most. */
TEST("a report of a bucket at a rate is scaled downwards")
{
    struct weir_limit limit = bucket(10, SECOND, 97);
    struct weir_check check = at(&limit, 1, 37, WEIR_SCALE_RATE);
    struct weir_cell cell = {0, 0};
    const struct weir_use use = {.now_ns = START, .cost = 1};
    for (int used = 0; used <= 97; used++) {
        struct weir_report exact, scaled;

        scale_cell_report(&check, &cell, &use, true, &exact);
        weir_cell_report(&limit, &cell, &use, true, &scaled);
        scale_report(&check, &scaled);
        assert_int_equal(scaled.limit, exact.limit);
        assert_true(scaled.remaining <= exact.remaining);
        assert_true(scaled.remaining + 1 >= exact.remaining);
        weir_cell_charge(&limit, &cell, START, 1);
    }
}

RUN_TESTS()
