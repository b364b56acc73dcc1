/* SPDX-License-Identifier: Apache-2.0 */
/* Units that were given, beside a model that keeps every single one of them. */
#include "core/prepaid.h"
#include "test.h"

#include "core/debit.h"
#include "core_test.h"
#include "draw.h"

#define DAY (UINT64_C(24) * 60 * MINUTE)
#define NOW (START - START % 1000)

static struct weir_limit prepaid(uint64_t life_ns)
{
    return make_limit((struct weir_limit_spec){.algorithm = WEIR_PREPAID, .window_ns = life_ns});
}

TEST("a fresh state has nothing")
{
    struct weir_limit limit = prepaid(DAY);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    assert_false(decide(&limit, &cell, NOW, 1, &report));
    assert_int_equal(report.remaining, 0);
    assert_int_equal(report.retry_after_ns, WEIR_NEVER);
    assert_int_equal(report.reset_after_ns, 0);
    assert_false(decide(&limit, &cell, NOW, 0, NULL));
    assert_int_equal(weir_cell_fresh_at(&limit, &cell), 0);
    assert_true(weir_cell_valid(&limit, &cell));
    assert_false(limit.packs);
    assert_string_equal(weir_algorithm_name(WEIR_PREPAID), "prepaid");
}

TEST("units are taken until none is left")
{
    struct weir_limit limit = prepaid(DAY);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    weir_cell_refund(&limit, &cell, NOW, NOW + DAY, 5);
    assert_true(decide(&limit, &cell, NOW, 3, &report));
    assert_int_equal(report.remaining, 2);
    assert_int_equal(report.reset_after_ns, DAY);
    assert_false(decide(&limit, &cell, NOW, 3, NULL));
    assert_true(decide(&limit, &cell, NOW + DAY - 1, 0, NULL));
    assert_true(decide(&limit, &cell, NOW + DAY - 1, 2, NULL));
    assert_false(decide(&limit, &cell, NOW + DAY - 1, 0, NULL));
    assert_int_equal(weir_cell_fresh_at(&limit, &cell), NOW + DAY); /* for refunds */
}

TEST("units end with those that were added last if these end later")
{
    struct weir_limit limit = prepaid(DAY);
    struct weir_cell cell = {0, 0};

    weir_cell_refund(&limit, &cell, NOW, NOW + 3 * DAY, 5);
    weir_cell_refund(&limit, &cell, NOW, NOW + DAY, 2);
    assert_int_equal(prepaid_left(&cell, NOW + 3 * DAY - 1), 7);
    assert_int_equal(prepaid_left(&cell, NOW + 3 * DAY), 0);
    weir_cell_refund(&limit, &cell, NOW + DAY, NOW + 9 * DAY, 1);
    assert_int_equal(prepaid_left(&cell, NOW + 9 * DAY - 1), 8);
    weir_cell_refund(&limit, &cell, NOW + 9 * DAY, NOW + 10 * DAY, 1); /* the others have ended */
    assert_int_equal(prepaid_left(&cell, NOW + 9 * DAY), 1);
}

TEST("a refund extends nothing and revives nothing")
{
    struct weir_limit limit = prepaid(DAY);
    struct weir_cell cell = {0, 0};

    weir_cell_refund(&limit, &cell, NOW, NOW - 1, 4);
    weir_cell_refund(&limit, &cell, NOW, NOW, 4);
    assert_int_equal(cell.a | cell.b, 0);
    weir_cell_refund(&limit, &cell, NOW, NOW + DAY, 4);
    weir_cell_charge(&limit, &cell, NOW, 4);
    weir_cell_refund(&limit, &cell, NOW + 5, NOW, 3);
    assert_int_equal(prepaid_left(&cell, NOW + 5), 3);
    assert_int_equal(cell.a, NOW + DAY);
    weir_cell_refund(&limit, &cell, NOW + DAY, NOW + 5, 1);
    assert_int_equal(prepaid_left(&cell, NOW + DAY), 0);
}

TEST("both ends of the range hold")
{
    struct weir_limit limit = prepaid(DAY);
    struct weir_cell cell = {0, 0};

    weir_cell_refund(&limit, &cell, NOW, WEIR_NEVER, UINT64_MAX);
    assert_int_equal(prepaid_left(&cell, NOW), PREPAID_MAX);
    assert_true(weir_cell_valid(&limit, &cell));
    weir_cell_refund(&limit, &cell, NOW, NOW + DAY, 1);
    assert_int_equal(prepaid_left(&cell, NOW), PREPAID_MAX);
    assert_false(decide(&limit, &cell, NOW, UINT64_MAX, NULL));
    assert_true(decide(&limit, &cell, NOW, PREPAID_MAX, NULL));
    assert_int_equal(prepaid_left(&cell, NOW), 0);

    const struct weir_cell wrong[] = {{0, 1}, {1000, PREPAID_MAX + 1}, {1001, 1}, {1ull << 62, 1}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(weir_cell_valid(&limit, &wrong[i]));
}

TEST("a debit takes what is there")
{
    struct weir_limit limit = prepaid(DAY);
    struct weir_check check = {.limit = &limit, .cost = 9, .floor = 1};
    struct weir_cell cell = {0, 0};

    assert_int_equal(weir_check_debt(&check), 0);
    assert_int_equal(weir_check_debit_room(&check, &cell, NOW, 0), 0);
    weir_cell_refund(&limit, &cell, NOW, NOW + DAY, 6);
    assert_int_equal(weir_check_debit_room(&check, &cell, NOW, 0), 6);
    weir_cell_charge(&limit, &cell, NOW, 9);
    assert_int_equal(prepaid_left(&cell, NOW), 0);
}

TEST("another life in the rules keeps what is left")
{
    struct weir_limit from = prepaid(DAY), to = prepaid(9 * DAY);
    struct weir_limit other =
        make_limit((struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .window_ns = DAY});
    struct weir_cell cell = {0, 0};

    weir_cell_refund(&from, &cell, NOW, NOW + DAY, 6);
    assert_true(weir_limit_converts(&from, &to));
    assert_false(weir_limit_converts(&from, &other));
    weir_cell_convert(&from, &to, &cell, NOW);
    assert_int_equal(prepaid_left(&cell, NOW), 6);
    weir_cell_convert(&to, &other, &cell, NOW);
    assert_int_equal(cell.a | cell.b, 0);
}

/* Every unit by itself. */
#define UNITS_MAX 4096
struct units {
    uint64_t ends_ns; /* all of them together */
    uint32_t count;
    bool unit[UNITS_MAX]; /* whether it is there */
};

static uint32_t units_left(const struct units *units, uint64_t now_ns)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < units->count; i++)
        left += units->unit[i] && now_ns < units->ends_ns;
    return left;
}

static void units_add(struct units *units, uint64_t now_ns, uint64_t until_ns, uint32_t count)
{
    if (count == 0)
        return;
    if (now_ns >= units->ends_ns)
        *units = (struct units){.count = 0};
    if (until_ns > units->ends_ns)
        units->ends_ns = until_ns;
    for (uint32_t i = 0; i < count && now_ns < units->ends_ns; i++)
        units->unit[units->count++] = true;
}

static void units_take(struct units *units, uint32_t count)
{
    for (uint32_t i = 0; i < units->count && count > 0; i++) {
        count -= units->unit[i];
        units->unit[i] = false;
    }
}

TEST("random operations equal those of single units")
{
    struct weir_limit limit = prepaid(DAY);
    uint64_t random = 11, taken = 0, denied = 0;

    for (int world = 0; world < 400; world++) {
        struct units units = {.count = 0};
        struct weir_cell cell = {0, 0};
        uint64_t now_ns = NOW;

        for (int step = 0; step < 60; step++) {
            uint32_t count = (uint32_t)draw_below(&random, 6);
            uint64_t until_ns = now_ns + draw_below(&random, 40) * 1000;

            now_ns += draw_below(&random, 12) * 500;
            if (draw_below(&random, 3) == 0) {
                weir_cell_refund(&limit, &cell, now_ns, until_ns, count);
                units_add(&units, now_ns, until_ns - until_ns % 1000, count);
            } else {
                bool admits = units_left(&units, now_ns) >= (count > 0 ? count : 1);

                assert_int_equal(decide(&limit, &cell, now_ns, count, NULL), admits);
                taken += admits ? count : 0;
                denied += !admits;
                if (admits)
                    units_take(&units, count);
            }
            assert_int_equal(prepaid_left(&cell, now_ns), units_left(&units, now_ns));
            assert_true(weir_cell_valid(&limit, &cell));
        }
    }
    assert_true(taken > 1000 && denied > 1000);
}

RUN_TESTS()
