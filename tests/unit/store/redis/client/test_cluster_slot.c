/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of keys, against values that Redis itself tells (CLUSTER KEYSLOT of 7.0). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "store/redis/client/client.h"
#include "test.h"

static uint16_t slot_of(const char *key)
{
    return redis_cluster_slot(key, strlen(key));
}

TEST("slots are those of redis")
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

TEST("a tag is what stands between the first braces")
{
    assert_int_equal(slot_of("{user1000}.following"), slot_of("user1000"));
    assert_int_equal(slot_of("x{user1000}.followers{other}"), slot_of("user1000"));
    assert_int_equal(slot_of("foo{{bar}}zap"), slot_of("{bar"));
    assert_int_equal(slot_of("foo{bar}{zap}"), slot_of("bar"));
}

TEST("an empty or open tag is none")
{
    assert_int_not_equal(slot_of("foo{}{bar}"), slot_of("bar"));
    assert_int_not_equal(slot_of("foo{}{bar}"), slot_of(""));
    assert_int_not_equal(slot_of("foo{bar"), slot_of("bar"));
    assert_int_not_equal(slot_of("foo}bar{"), slot_of(""));
    assert_int_equal(slot_of("}{x}"), slot_of("x"));
}

TEST("any byte may be in a key")
{
    assert_int_not_equal(redis_cluster_slot("a\0b", 3), redis_cluster_slot("a", 1));
    assert_int_equal(redis_cluster_slot("\xff{\0}x", 5), redis_cluster_slot("\0", 1));
}

RUN_TESTS()
