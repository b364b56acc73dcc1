/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>

#include "use/distinct.h"
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

static void estimates_are_near_exact_counts(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 10, 100, 1000, 2500, 5000, 100000, 1000000};
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        weir_distinct_clear(&a);
        add_range(&a, 0, counts[i]);
        add_range(&a, 0, counts[i]); /* again: they are the same */
        check_close(weir_distinct_count(&a), counts[i]);
    }
}

static void merging_is_as_if_one_had_seen_all(void **state)
{
    (void)state;
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

static void every_hash_has_a_rank(void **state)
{
    (void)state;
    weir_distinct_clear(&a);
    weir_distinct_add(&a, 0);
    weir_distinct_add(&a, UINT64_MAX);
    assert_int_equal(a.registers[0], 64 - WEIR_DISTINCT_BITS + 1);
    assert_int_equal(a.registers[WEIR_DISTINCT_REGISTERS - 1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_near_exact_counts),
        cmocka_unit_test(merging_is_as_if_one_had_seen_all),
        cmocka_unit_test(every_hash_has_a_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
