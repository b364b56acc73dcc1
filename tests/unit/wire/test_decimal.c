/* SPDX-License-Identifier: Apache-2.0 */
/* wire/decimal: numbers as text, as printf writes them. */
#include <inttypes.h>
#include <stdio.h>

#include "draw.h"
#include "test.h"

#include "wire/decimal.h"

static void assert_written(uint64_t value)
{
    char expected[32], room[32];
    memset(room, '#', sizeof room);
    size_t size = (size_t)snprintf(expected, sizeof expected, "%" PRIu64, value);
    assert_ptr_equal(weir_decimal_write(room, value), room + size);
    assert_memory_equal(room, expected, size);
    assert_int_equal(room[size], '#'); /* and nothing beyond */
}

TEST("numbers beside each power of ten and of two are written")
{
    uint64_t power = 1;
    for (int i = 0; i < 20; i++, power *= 10)
        for (int beside = -1; beside <= 1; beside++)
            assert_written(power + (uint64_t)beside);
    for (int bit = 0; bit < 64; bit++)
        for (int beside = -1; beside <= 1; beside++)
            assert_written((UINT64_C(1) << bit) + (uint64_t)beside);
    assert_written(0);
    assert_written(UINT64_MAX);
}

TEST("random numbers of every size are written")
{
    uint64_t random = 7;
    for (int i = 0; i < 200000; i++)
        assert_written(draw_next(&random) >> draw_below(&random, 64));
}

RUN_TESTS()
