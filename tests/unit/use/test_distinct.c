/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "feature/use/distinct.h"
#include "test.h"
#include "zipf.h"

static struct weir_distinct a, b;

/* Four standard errors of 3.3 %, and a little for tiny counts. */
static void check_close(uint64_t estimate, uint64_t exact)
{
    double away = fabs((double)estimate - (double)exact);
    assert_true(away <= 0.13 * (double)exact + 1);
}

static void add_range(struct weir_distinct *distinct, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        uint64_t hash[2];
        zipf_hash(i, hash);
        weir_distinct_add(distinct, hash[1]);
    }
}

TEST("estimates are near exact counts")
{
    static const uint32_t counts[] = {0, 1, 2, 10, 100, 1000, 2500, 5000, 100000, 1000000};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        weir_distinct_clear(&a);
        add_range(&a, 0, counts[i]);
        add_range(&a, 0, counts[i]); /* again: they are the same */
        check_close(weir_distinct_count(&a), counts[i]);
    }
}

TEST("merging is as if one had seen all")
{
    weir_distinct_clear(&a);
    weir_distinct_clear(&b);
    add_range(&a, 0, 6000);
    add_range(&b, 3000, 9000);
    weir_distinct_merge(&a, &b);
    check_close(weir_distinct_count(&a), 9000);
    weir_distinct_clear(&b);
    add_range(&b, 0, 9000);
    assert_int_equal(weir_distinct_count(&a), weir_distinct_count(&b));
}

TEST("every hash has a rank")
{
    weir_distinct_clear(&a);
    weir_distinct_add(&a, 0);
    assert_int_equal(a.registers[0], UINT16_MAX);
    weir_distinct_add(&a, UINT64_C(0xfffe) << 48 | 7);
    assert_int_equal(a.registers[7], 1);
    assert_int_equal(weir_distinct_count(&a), 2);
    assert_false(weir_distinct_matters(0, WEIR_DISTINCT_NONE));
    assert_true(weir_distinct_matters(0, WEIR_DISTINCT_ALL));
}

/* Also while they are added: the bound is asked for again and again, as the server does. */
TEST("keys that change nothing may be left out")
{
    uint16_t below = WEIR_DISTINCT_ALL;
    uint32_t left_out = 0;
    weir_distinct_clear(&a);
    weir_distinct_clear(&b);
    for (uint32_t i = 0; i < 300000; i++) {
        uint64_t hash[2];
        zipf_hash(i, hash);
        if (i % 1000 == 0)
            below = weir_distinct_below(&b);
        weir_distinct_add(&a, hash[1]);
        if (weir_distinct_matters(hash[1], below))
            weir_distinct_add(&b, hash[1]);
        else
            left_out++;
    }
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(left_out > 200000);
    assert_true(weir_distinct_below(&b) < UINT16_MAX / 20);
    weir_distinct_clear(&b);
    assert_int_equal(weir_distinct_below(&b), WEIR_DISTINCT_ALL);
}

RUN_TESTS()
