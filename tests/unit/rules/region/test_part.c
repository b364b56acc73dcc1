/* SPDX-License-Identifier: Apache-2.0 */
#include "feature/region/rules/part.h"
#include "test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static struct weir_limit limit(enum weir_algorithm algorithm, uint64_t rate, uint64_t burst)
{
    const struct weir_limit_spec spec = {
        .algorithm = algorithm, .rate = rate, .window_ns = 60 * SECOND, .burst = burst};
    struct weir_limit made;
    assert_int_equal(weir_limit_init(&made, &spec, NULL), 0);
    return made;
}

static const struct rules_fraction third = {1, 3}, twentieth = {500, 10000};

TEST("rates and bursts are rounded down")
{
    struct weir_reason reason = {{0}};
    struct weir_limit whole = limit(WEIR_TOKEN_BUCKET, 100, 50), part;
    assert_int_equal(rules_limit_part(&whole, third, &part, &reason), 0);
    assert_int_equal(part.spec.rate, 33);
    assert_int_equal(part.spec.burst, 16);
    assert_int_equal(part.spec.window_ns, 60 * SECOND);
    whole = limit(WEIR_FIXED_WINDOW, 59, 0);
    assert_int_equal(rules_limit_part(&whole, twentieth, &part, &reason), 0);
    assert_int_equal(part.spec.rate, 2);
    whole = limit(WEIR_TOKEN_BUCKET, WEIR_BUCKET_MAX, WEIR_BUCKET_MAX);
    assert_int_equal(rules_limit_part(&whole, (struct rules_fraction){9999, 10000}, &part, &reason),
                     0);
    assert_int_equal(part.spec.rate,
                     WEIR_BUCKET_MAX / 10000 * 9999 + WEIR_BUCKET_MAX % 10000 * 9999 / 10000);
}

TEST("a part is never rounded up to one")
{
    struct weir_reason reason = {{0}};
    struct weir_limit whole = limit(WEIR_FIXED_WINDOW, 19, 0), part;
    assert_int_equal(rules_limit_part(&whole, twentieth, &part, &reason), WEIR_ERR_RANGE);
    assert_string_equal(reason.text, "500/10000 of 19 is less than 1");
    whole = limit(WEIR_TOKEN_BUCKET, 100, 2);
    assert_int_equal(rules_limit_part(&whole, third, &part, &reason), WEIR_ERR_RANGE);
    assert_string_equal(reason.text, "1/3 of 2 is less than 1");
    whole = limit(WEIR_FIXED_WINDOW, 0, 0);
    assert_int_equal(rules_limit_part(&whole, third, &part, &reason), 0);
    assert_int_equal(part.capacity, 0);
}

/* A queue admits B + 1 at once: parts of B alone would admit R of these ones. */
TEST("capacities of queues add up")
{
    struct weir_reason reason = {{0}};
    struct weir_limit whole = limit(WEIR_LEAKY_QUEUE, 100, 10), part;
    assert_int_equal(whole.capacity, 11);
    assert_int_equal(rules_limit_part(&whole, third, &part, &reason), 0);
    assert_int_equal(part.capacity, 3);
    whole = limit(WEIR_LEAKY_QUEUE, 100, 4);
    assert_int_equal(rules_limit_part(&whole, third, &part, &reason), WEIR_ERR_RANGE);
    assert_string_equal(reason.text, "1/3 of 5 is less than 2");
}

TEST("fractions add up exactly")
{
    assert_true(rules_fractions_fit(third, 2, third));
    assert_false(rules_fractions_fit(third, 3, (struct rules_fraction){1, 10000}));
    assert_true(rules_fractions_fit(twentieth, 2, (struct rules_fraction){9, 10}));
    assert_false(rules_fractions_fit(twentieth, 2, (struct rules_fraction){9001, 10000}));
    struct rules_fraction rest = rules_fraction_rest(twentieth, 2);
    assert_int_equal(rest.numerator * 10, rest.denominator * 9);
    assert_int_equal(rules_fraction_rest(third, 3).numerator, 0);
    assert_int_equal(rules_fraction_rest(third, 15).numerator, 0);
}

RUN_TESTS()
