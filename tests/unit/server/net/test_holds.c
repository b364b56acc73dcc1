/* SPDX-License-Identifier: Apache-2.0 */
/* Places of held replies: how many there are, and how many of one prefix. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/net/holds.h"
#include "test.h"

static uint32_t prefix_of(const char *text)
{
    struct weir_address address;
    assert_int_equal(weir_address_parse(&address, text, strlen(text)), 0);
    return weir_hold_prefix(&address);
}

TEST("a prefix has eight places")
{
    static struct weir_hold_places places;
    uint32_t one = prefix_of("192.0.2.1"), other = prefix_of("192.0.2.2");
    int taken[WEIR_HELD_PREFIX_MAX];
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

TEST("delays take all places that are left")
{
    static struct weir_hold_places places;
    for (int i = 0; i < WEIR_HELD_MAX; i++)
        assert_int_equal(weir_hold_place_take(&places, WEIR_HOLD_DELAY), i);
    assert_int_equal(weir_hold_place_take(&places, WEIR_HOLD_DELAY), -1);
    assert_int_equal(weir_hold_place_take(&places, prefix_of("192.0.2.1")), -1);
    weir_hold_place_give(&places, 500);
    assert_int_equal(weir_hold_place_take(&places, prefix_of("192.0.2.1")), 500);
}

TEST("a prefix is an address or a 64")
{
    struct weir_address none = {0};
    assert_int_equal(prefix_of("2001:db8::1"), prefix_of("2001:db8::ffff:0:0:1"));
    assert_int_not_equal(prefix_of("2001:db8::1"), prefix_of("2001:db8:0:1::1"));
    assert_int_not_equal(prefix_of("192.0.2.1"), prefix_of("192.0.2.2"));
    assert_int_not_equal(weir_hold_prefix(&none), WEIR_HOLD_FREE);
    assert_int_not_equal(weir_hold_prefix(&none), WEIR_HOLD_DELAY);
}

RUN_TESTS()
