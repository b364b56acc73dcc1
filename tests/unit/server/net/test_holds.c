/* SPDX-License-Identifier: Apache-2.0 */
/* Places of held replies: how many there are, and how many of one prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/net/holds.h"

static uint32_t prefix_of(const char *text)
{
    struct weir_address address;
    assert_int_equal(weir_address_parse(&address, text, strlen(text)), 0);
    return weir_hold_prefix(&address);
}

static void a_prefix_has_eight_places(void **state)
{
    static struct weir_hold_places places;
    uint32_t one = prefix_of("192.0.2.1"), other = prefix_of("192.0.2.2");
    int taken[WEIR_HELD_PREFIX_MAX];
    (void)state;
    for (int i = 0; i < WEIR_HELD_PREFIX_MAX; i++) {
        taken[i] = weir_hold_place_take(&places, one);
        assert_true(taken[i] >= 0);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(taken[i], taken[j]);
    }
    assert_int_equal(weir_hold_place_take(&places, one), -1);
    assert_true(weir_hold_place_take(&places, other) >= 0);
    weir_hold_place_give(&places, taken[3]);
    assert_int_equal(weir_hold_place_take(&places, one), taken[3]);
    assert_int_equal(weir_hold_place_take(&places, one), -1);
}

static void delays_take_all_places_that_are_left(void **state)
{
    static struct weir_hold_places places;
    (void)state;
    for (int i = 0; i < WEIR_HELD_MAX; i++)
        assert_int_equal(weir_hold_place_take(&places, WEIR_HOLD_DELAY), i);
    assert_int_equal(weir_hold_place_take(&places, WEIR_HOLD_DELAY), -1);
    assert_int_equal(weir_hold_place_take(&places, prefix_of("192.0.2.1")), -1);
    weir_hold_place_give(&places, 500);
    assert_int_equal(weir_hold_place_take(&places, prefix_of("192.0.2.1")), 500);
}

static void a_prefix_is_an_address_or_a_64(void **state)
{
    struct weir_address none = {0};
    (void)state;
    assert_int_equal(prefix_of("2001:db8::1"), prefix_of("2001:db8::ffff:0:0:1"));
    assert_int_not_equal(prefix_of("2001:db8::1"), prefix_of("2001:db8:0:1::1"));
    assert_int_not_equal(prefix_of("192.0.2.1"), prefix_of("192.0.2.2"));
    assert_int_not_equal(weir_hold_prefix(&none), WEIR_HOLD_FREE);
    assert_int_not_equal(weir_hold_prefix(&none), WEIR_HOLD_DELAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_has_eight_places),
        cmocka_unit_test(delays_take_all_places_that_are_left),
        cmocka_unit_test(a_prefix_is_an_address_or_a_64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
