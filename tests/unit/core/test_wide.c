/* SPDX-License-Identifier: Apache-2.0 */
/* wide.h beside the compiler's 128-bit integers; built twice, see meson.build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/wide.h"
#include "test.h"

__extension__ typedef unsigned __int128 exact;

static const uint64_t borders[] = {0,
                                   1,
                                   2,
                                   3,
                                   0x7fffffff,
                                   0x80000000,
                                   0x80000001,
                                   0xfffffffe,
                                   0xffffffff,
                                   0x100000000,
                                   0x100000001,
                                   0x1ffffffff,
                                   UINT64_C(0x7fffffffffffffff),
                                   UINT64_C(0x8000000000000000),
                                   UINT64_C(0x8000000000000001),
                                   UINT64_C(0xffffffff00000000),
                                   UINT64_C(0xfffffffeffffffff),
                                   UINT64_C(0xfffffffffffffffe),
                                   UINT64_C(0xffffffffffffffff)};
#define BORDERS (sizeof(borders) / sizeof(borders[0]))

static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *random ^ *random >> 33;

    return x >> (*random >> 58); /* every magnitude */
}

static void check_product(uint64_t a, uint64_t b)
{
    struct wide product = wide_multiply(a, b);
    exact expected = (exact)a * b;

    assert_int_equal(product.hi, (uint64_t)(expected >> 64));
    assert_int_equal(product.lo, (uint64_t)expected);
}

static void check_quotient(uint64_t hi, uint64_t lo, uint64_t divisor)
{
    exact dividend = (exact)hi << 64 | lo;
    uint64_t rest, quotient = wide_divide(hi, lo, divisor, &rest);

    assert_int_equal(quotient, (uint64_t)(dividend / divisor));
    assert_int_equal(rest, (uint64_t)(dividend % divisor));
}

TEST("products of border values are exact")
{
    for (size_t i = 0; i < BORDERS; i++)
        for (size_t j = 0; j < BORDERS; j++)
            check_product(borders[i], borders[j]);
}

TEST("products of random values are exact")
{
    uint64_t random = 1;

    for (int i = 0; i < 300000; i++)
        check_product(next(&random), next(&random));
}

TEST("quotients of border values are exact")
{
    for (size_t i = 0; i < BORDERS; i++) {
        for (size_t j = 0; j < BORDERS; j++) {
            for (size_t k = 0; k < BORDERS; k++)
                if (borders[i] < borders[k])
                    check_quotient(borders[i], borders[j], borders[k]);
        }
    }
}

TEST("quotients of random values are exact")
{
    uint64_t random = 2;

    for (int i = 0; i < 300000; i++) {
        uint64_t divisor = next(&random) + 1;

        if (divisor != 0)
            check_quotient(next(&random) % divisor, next(&random), divisor);
    }
}

/* The estimate of a digit is 2 too large for such divisors (Knuth, 4.3.1, exercise 21). */
TEST("quotients whose first estimate is too large are exact")
{
    check_quotient(UINT64_C(0x7fffffffffffffff), UINT64_MAX, UINT64_C(0x80000000ffffffff));
    check_quotient(UINT64_C(0x7fff800000000000), 0, UINT64_C(0x8000000000000001));
    check_quotient(UINT64_C(0x80000000fffffffe), UINT64_MAX, UINT64_C(0x80000000ffffffff));
    for (uint64_t i = 0; i < 1000; i++)
        check_quotient(UINT64_C(0x8000000000000000) - 1 - i, UINT64_MAX - i,
                       UINT64_C(0x8000000000000000) + (i << 22));
}

TEST("adding carries into the upper half")
{
    struct wide sum = wide_add((struct wide){6, UINT64_MAX}, 1);

    assert_int_equal(sum.hi, 7);
    assert_int_equal(sum.lo, 0);
    sum = wide_add((struct wide){6, UINT64_MAX - 1}, 1);
    assert_int_equal(sum.hi, 6);
    assert_int_equal(sum.lo, UINT64_MAX);
}

TEST("the upper half decides a comparison first")
{
    assert_true(wide_less((struct wide){1, UINT64_MAX}, (struct wide){2, 0}));
    assert_false(wide_less((struct wide){2, 0}, (struct wide){1, UINT64_MAX}));
    assert_true(wide_less((struct wide){1, 4}, (struct wide){1, 5}));
    assert_false(wide_less((struct wide){1, 5}, (struct wide){1, 5}));
}

TEST("leading zeros are counted from 63 down to 0")
{
    for (int bit = 0; bit < 64; bit++) {
        assert_int_equal(wide_leading_zeros(UINT64_C(1) << bit), 63 - bit);
        assert_int_equal(wide_leading_zeros((UINT64_C(2) << bit) - 1), 63 - bit);
    }
}

RUN_TESTS()
