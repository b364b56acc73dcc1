/* SPDX-License-Identifier: Apache-2.0 */
/* Counters with a life: how they are packed, when they end, and in which order they are evicted. */
#include "core/counter.h"
#include "core_test.h"
#include "test.h"

#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static struct weir_limit counter(uint64_t bits)
{
    return make_limit(
        (struct weir_limit_spec){.algorithm = WEIR_COUNTER, .rate = bits, .window_ns = DAY});
}

TEST("values and ends survive packing")
{
    static const int64_t values[] = {0,           1,         -1,        2047,
                                     2048,        -2048,     1ll << 21, 1ll << 22,
                                     1ll << 31,   1ll << 32, 1ll << 40, (1ll << 53) - 1,
                                     -(1ll << 53)};
    const uint64_t ends[] = {MS,
                             START - START % MS,
                             ((UINT64_C(1) << 42) - (UINT64_C(1) << 25) - 1) * MS,
                             counter_endless(0),
                             counter_endless(START),
                             counter_endless((UINT64_C(1) << 62) - 1)};
    struct weir_limit limit = counter(COUNTER_PACKED_BITS);

    assert_true(limit.packs);
    for (size_t v = 0; v < sizeof values / sizeof *values; v++)
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
            struct weir_cell cell = {ends[e], (uint64_t)values[v]}, back;
            uint32_t packed[3];

            assert_true(counter_packs(&cell));
            assert_true(weir_cell_valid(&limit, &cell));
            weir_cell_pack(&limit, &cell, packed);
            weir_cell_unpack(&limit, packed, &back);
            assert_int_equal(back.a, cell.a);
            assert_int_equal(back.b, cell.b);
        }
}

TEST("all zero is no counter")
{
    struct weir_limit limit = counter(COUNTER_PACKED_BITS);
    struct weir_cell cell = {0, 0};
    uint32_t packed[3] = {1, 1, 1};

    weir_cell_pack(&limit, &cell, packed);
    assert_int_equal(packed[0] | packed[1] | packed[2], 0);
    assert_int_equal(weir_cell_fresh_at(&limit, &cell), 0);
    assert_true(weir_cell_valid(&limit, &cell));
    cell.b = 1;
    assert_false(weir_cell_valid(&limit, &cell));
}

TEST("what is too wide is not packed")
{
    static const uint64_t values[] = {1ull << 53, 0 - (1ull << 53) - 1, 1ull << 63};
    const uint64_t late = ((UINT64_C(1) << 42) - (UINT64_C(1) << 25)) * MS;
    struct weir_limit narrow = counter(COUNTER_PACKED_BITS), wide = counter(COUNTER_WIDE_BITS);
    struct weir_cell cell = {late, 0};

    assert_false(wide.packs);
    assert_false(counter_packs(&cell));
    assert_false(weir_cell_valid(&narrow, &cell));
    assert_true(weir_cell_valid(&wide, &cell));
    for (int i = 0; i < 3; i++) {
        cell = (struct weir_cell){MS, values[i]};
        assert_false(counter_packs(&cell));
        assert_true(weir_cell_valid(&wide, &cell));
    }
    assert_true(weir_limit_converts(&narrow, &wide));
    weir_cell_convert(&wide, &narrow, &cell, START);
    assert_int_equal(cell.b, values[2]);
}

TEST("a counter without an end lives a day after its last use")
{
    struct weir_limit limit = counter(COUNTER_PACKED_BITS);
    struct weir_cell cell = {0, 0};

    weir_cell_charge(&limit, &cell, START, 3);
    assert_true(counter_is_endless(&cell));
    assert_true(weir_cell_fresh_at(&limit, &cell) >= START + DAY);
    assert_true(weir_cell_fresh_at(&limit, &cell) <= START + DAY + HOUR);
    weir_cell_charge(&limit, &cell, START + 23 * HOUR, 1);
    assert_int_equal(cell.b, 4);
    assert_true(weir_cell_fresh_at(&limit, &cell) >= START + 47 * HOUR);
    weir_cell_charge(&limit, &cell, START + 90 * HOUR, 1);
    assert_int_equal(cell.b, 1);
}

TEST("a counter keeps within 64 bits")
{
    struct weir_limit limit = counter(COUNTER_WIDE_BITS);
    struct weir_cell cell = {MS + START - START % MS, (uint64_t)INT64_MAX - 1};

    weir_cell_charge(&limit, &cell, START, 5);
    assert_int_equal((int64_t)cell.b, INT64_MAX);
    weir_cell_refund(&limit, &cell, START, START, UINT64_MAX);
    assert_int_equal((int64_t)cell.b, INT64_MIN);
    weir_cell_refund(&limit, &cell, START + MINUTE, START, 1); /* it has ended */
    assert_int_equal((int64_t)cell.b, INT64_MIN);
}

/* Eviction takes the state with the most remaining. */
TEST("the larger counter has used more")
{
    static const int64_t rising[] = {-5, 0, 1, 2, 3, 4, 100, 101, 1ll << 40, INT64_MAX};
    struct weir_limit limit = counter(COUNTER_WIDE_BITS);
    uint64_t last = limit.capacity + 1;

    for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
        struct weir_cell cell = {counter_endless(START), (uint64_t)rising[i]};
        struct weir_report report = report_of(&limit, &cell, START, 1, false);

        assert_int_equal(report.limit, limit.capacity);
        assert_true(report.remaining < last || (rising[i] == 0 && report.remaining == last));
        last = report.remaining;
    }
    assert_true(last < limit.capacity);
}

TEST("a counter limits nothing")
{
    struct weir_limit limit = counter(COUNTER_PACKED_BITS);
    struct weir_cell cell = {0, 0};

    for (int i = 0; i < 1000; i++)
        assert_true(decide(&limit, &cell, START, 1000, NULL));
    assert_string_equal(weir_algorithm_name(WEIR_COUNTER), "counter");
}

RUN_TESTS()
