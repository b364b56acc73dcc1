/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several scales counts for a request. */
#include "rules/charge/scale.h"
#include "rules_test.h"

static void expect_scale(const struct weir_check *check, uint32_t percent,
                         enum weir_scale_kind kind)
{
    assert_int_equal(check->scale, percent);
    assert_int_equal(check->scale_kind, kind);
}

static void the_smallest_scale_counts(void **state)
{
    (void)state;
    struct weir_check check = {0};
    weir_rules_join_scale(&check, 100, WEIR_SCALE_RATE);
    expect_scale(&check, 0, 0);
    weir_rules_join_scale(&check, 99, WEIR_SCALE_RATE);
    expect_scale(&check, 99, WEIR_SCALE_RATE);
    weir_rules_join_scale(&check, 60, WEIR_SCALE_RESERVE);
    expect_scale(&check, 60, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&check, 61, WEIR_SCALE_RATE);
    expect_scale(&check, 60, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&check, 100, WEIR_SCALE_RATE);
    expect_scale(&check, 60, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&check, 1, WEIR_SCALE_RATE);
    expect_scale(&check, 1, WEIR_SCALE_RATE);
}

static void of_two_equal_scales_a_rate_counts(void **state)
{
    (void)state;
    struct weir_check check = {0};
    weir_rules_join_scale(&check, 20, WEIR_SCALE_RESERVE);
    weir_rules_join_scale(&check, 20, WEIR_SCALE_RATE);
    expect_scale(&check, 20, WEIR_SCALE_RATE);
    weir_rules_join_scale(&check, 20, WEIR_SCALE_RESERVE);
    expect_scale(&check, 20, WEIR_SCALE_RATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_scale_counts),
        cmocka_unit_test(of_two_equal_scales_a_rate_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
