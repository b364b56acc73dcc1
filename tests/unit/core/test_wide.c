/* SPDX-License-Identifier: Apache-2.0 */
/* wide.h beside the compiler's 128-bit integers; built twice, see meson.build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/wide.h"

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

static void products_of_border_values_are_exact(void **state)
{
    for (size_t i = 0; i < BORDERS; i++)
        for (size_t j = 0; j < BORDERS; j++)
            check_product(borders[i], borders[j]);
}

static void products_of_random_values_are_exact(void **state)
{
    uint64_t random = 1;

    for (int i = 0; i < 300000; i++)
        check_product(next(&random), next(&random));
}

static void quotients_of_border_values_are_exact(void **state)
{
    for (size_t i = 0; i < BORDERS; i++) {
        for (size_t j = 0; j < BORDERS; j++) {
            for (size_t k = 0; k < BORDERS; k++)
                if (borders[i] < borders[k])
                    check_quotient(borders[i], borders[j], borders[k]);
        }
    }
}

static void quotients_of_random_values_are_exact(void **state)
{
    uint64_t random = 2;

    for (int i = 0; i < 300000; i++) {
        uint64_t divisor = next(&random) + 1;

        if (divisor != 0)
            check_quotient(next(&random) % divisor, next(&random), divisor);
    }
}

/* The estimate of a digit is 2 too large for such divisors (Knuth, 4.3.1, exercise 21). */
static void quotients_whose_first_estimate_is_too_large_are_exact(void **state)
{
    check_quotient(UINT64_C(0x7fffffffffffffff), UINT64_MAX, UINT64_C(0x80000000ffffffff));
    check_quotient(UINT64_C(0x7fff800000000000), 0, UINT64_C(0x8000000000000001));
    check_quotient(UINT64_C(0x80000000fffffffe), UINT64_MAX, UINT64_C(0x80000000ffffffff));
    for (uint64_t i = 0; i < 1000; i++)
        check_quotient(UINT64_C(0x8000000000000000) - 1 - i, UINT64_MAX - i,
                       UINT64_C(0x8000000000000000) + (i << 22));
}

static void adding_carries_into_the_upper_half(void **state)
{
    struct wide sum = wide_add((struct wide){6, UINT64_MAX}, 1);

    assert_int_equal(sum.hi, 7);
    assert_int_equal(sum.lo, 0);
    sum = wide_add((struct wide){6, UINT64_MAX - 1}, 1);
    assert_int_equal(sum.hi, 6);
    assert_int_equal(sum.lo, UINT64_MAX);
}

static void the_upper_half_decides_a_comparison_first(void **state)
{
    assert_true(wide_less((struct wide){1, UINT64_MAX}, (struct wide){2, 0}));
    assert_false(wide_less((struct wide){2, 0}, (struct wide){1, UINT64_MAX}));
    assert_true(wide_less((struct wide){1, 4}, (struct wide){1, 5}));
    assert_false(wide_less((struct wide){1, 5}, (struct wide){1, 5}));
}

static void leading_zeros_are_counted_from_63_down_to_0(void **state)
{
    for (int bit = 0; bit < 64; bit++) {
        assert_int_equal(wide_leading_zeros(UINT64_C(1) << bit), 63 - bit);
        assert_int_equal(wide_leading_zeros((UINT64_C(2) << bit) - 1), 63 - bit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_border_values_are_exact),
        cmocka_unit_test(products_of_random_values_are_exact),
        cmocka_unit_test(quotients_of_border_values_are_exact),
        cmocka_unit_test(quotients_of_random_values_are_exact),
        cmocka_unit_test(quotients_whose_first_estimate_is_too_large_are_exact),
        cmocka_unit_test(adding_carries_into_the_upper_half),
        cmocka_unit_test(the_upper_half_decides_a_comparison_first),
        cmocka_unit_test(leading_zeros_are_counted_from_63_down_to_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
