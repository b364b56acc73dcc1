/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "feature/use/series.h"
#include "test.h"

enum { COUNT, LEVEL, FIELDS };
#define T0 UINT64_C(1700000040) /* a whole minute */

static void put(struct weir_series *series, uint64_t second, float count, float level)
{
    const float values[FIELDS] = {[COUNT] = count, [LEVEL] = level};
    weir_series_put(series, second, values);
}

TEST("seconds and minutes have what was put")
{
    struct weir_series *s;
    assert_int_equal(weir_series_open(&s, FIELDS, 1u << LEVEL), 0);
    assert_int_equal(weir_series_last(s), 0);
    put(s, T0, 3, 5);
    put(s, T0 + 2, 4, 2);
    put(s, T0 + 1, 99, 99); /* late: dropped */
    put(s, T0 + 60, 10, 1);
    assert_int_equal(weir_series_last(s), T0 + 60);
    assert_true(weir_series_get(s, false, T0, COUNT) == 3);
    assert_true(weir_series_get(s, false, T0 + 1, COUNT) == 0);
    assert_true(weir_series_get(s, false, T0 + 2, COUNT) == 4);
    assert_true(weir_series_get(s, true, T0 / 60, COUNT) == 7);
    assert_true(weir_series_get(s, true, T0 / 60, LEVEL) == 5);
    assert_true(weir_series_get(s, true, T0 / 60 + 1, COUNT) == 10);
    weir_series_set_minute(s, T0 + 60, LEVEL, 8);
    assert_true(weir_series_get(s, true, T0 / 60 + 1, LEVEL) == 8);
    weir_series_set_minute(s, T0, LEVEL, 9); /* over */
    assert_true(weir_series_get(s, true, T0 / 60, LEVEL) == 5);
    weir_series_close(s);
}

TEST("what is too old or to come is zero")
{
    struct weir_series *s;
    assert_int_equal(weir_series_open(&s, FIELDS, 0), 0);
    for (uint64_t i = 0; i < 2 * WEIR_SERIES_SECONDS; i++)
        put(s, T0 + i, (float)(i + 1), 0);
    uint64_t last = T0 + 2 * WEIR_SERIES_SECONDS - 1;
    assert_true(weir_series_get(s, false, last - WEIR_SERIES_SECONDS, COUNT) == 0);
    assert_true(weir_series_get(s, false, last - WEIR_SERIES_SECONDS + 1, COUNT) ==
                WEIR_SERIES_SECONDS + 1);
    assert_true(weir_series_get(s, false, last + 1, COUNT) == 0);
    put(s, last + 10 * WEIR_SERIES_SECONDS, 1, 0);
    assert_true(weir_series_get(s, false, last + 10 * WEIR_SERIES_SECONDS - 1, COUNT) == 0);
    weir_series_close(s);
}

RUN_TESTS()
