/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of keys, against values that Redis itself tells (CLUSTER KEYSLOT of 7.0). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "store/redis/client/client.h"

static uint16_t slot_of(const char *key)
{
    return redis_cluster_slot(key, strlen(key));
}

static void slots_are_those_of_redis(void **state)
{
    static const struct {
        const char *key;
        uint16_t slot;
    } cases[] = {
        {"123456789", 12739}, /* CRC-16/XMODEM's check value, 0x31c3 */
        {"foo", 12182},       {"bar", 5061},           {"hello", 866},          {"a", 15495},
        {"somekey", 11058},   {"foo{hash_tag}", 2515}, {"bar{hash_tag}", 2515},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(slot_of(cases[i].key), cases[i].slot);
    assert_int_equal(redis_cluster_slot("", 0), 0);
}

static void a_tag_is_what_stands_between_the_first_braces(void **state)
{
    assert_int_equal(slot_of("{user1000}.following"), slot_of("user1000"));
    assert_int_equal(slot_of("x{user1000}.followers{other}"), slot_of("user1000"));
    assert_int_equal(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    assert_int_equal(slot_of("foo{bar}{zap}"), slot_of("bar"));
}

static void an_empty_or_open_tag_is_none(void **state)
{
    assert_int_not_equal(slot_of("foo{}{bar}"), slot_of("bar"));
    assert_int_not_equal(slot_of("foo{}{bar}"), slot_of(""));
    assert_int_not_equal(slot_of("foo{bar"), slot_of("bar"));
    assert_int_not_equal(slot_of("foo}bar{"), slot_of(""));
    assert_int_equal(slot_of("}{x}"), slot_of("x"));
}

static void any_byte_may_stand_in_a_key(void **state)
{
    assert_int_not_equal(redis_cluster_slot("a\0b", 3), redis_cluster_slot("a", 1));
    assert_int_equal(redis_cluster_slot("\xff{\0}x", 5), redis_cluster_slot("\0", 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_redis),
        cmocka_unit_test(a_tag_is_what_stands_between_the_first_braces),
        cmocka_unit_test(an_empty_or_open_tag_is_none),
        cmocka_unit_test(any_byte_may_stand_in_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
