/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of keys: which bytes are encoded. Both sets are golden, as the texts name states in Redis
 * that nodes of other versions share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/match/key_writer.h"
#include "test.h"

/* Writes each byte alone, and expects it as it is iff it is graphic ASCII and not in `encoded`. */
static void expect_encoded(enum rules_key_syntax syntax, const char *encoded)
{
    for (int byte = 0; byte < 256; byte++) {
        const char value = (char)byte;
        char room[8], expected[8];
        struct rules_key_writer writer = {room, room + sizeof room, false};
        bool is_plain = byte > 0x20 && byte < 0x7f && !strchr(encoded, byte);
        snprintf(expected, sizeof expected, is_plain ? "%c" : "%%%02x", byte);
        rules_key_put_encoded(&writer, (struct weir_bytes){&value, 1}, syntax);
        assert_false(writer.full);
        assert_int_equal(writer.end - room, strlen(expected));
        assert_memory_equal(room, expected, strlen(expected));
    }
}

TEST("percent and comma are syntax in keys of limits")
{
    expect_encoded(RULES_KEY_OF_LIMIT, "%,");
}

TEST("what separates descriptors is syntax too in keys of envoy")
{
    expect_encoded(RULES_KEY_OF_ENVOY, "%,=|~:");
}

TEST("plain bytes are never encoded")
{
    char room[16];
    struct rules_key_writer writer = {room, room + sizeof room, false};
    rules_key_put(&writer, "%, \n", 4);
    rules_key_put_byte(&writer, 'a');
    assert_int_equal(writer.end - room, 7);
    assert_memory_equal(room, "%, \n%61", 7);
}

/* "a,b" takes 5 bytes. */
TEST("a value fits or the writer is full")
{
    const struct weir_bytes value = {"a,b", 3};
    for (size_t size = 0; size < 8; size++) {
        char room[9];
        struct rules_key_writer writer = {room, room + size, false};
        size_t fits = size < 5 ? size : 5;
        memset(room, '!', sizeof room);
        rules_key_put_encoded(&writer, value, RULES_KEY_OF_LIMIT);
        assert_int_equal(writer.full, size < 5);
        assert_int_equal(writer.end - room, fits);
        assert_memory_equal(room, "a%2cb", fits);
        assert_int_equal(room[fits], '!');
    }
}

TEST("an empty value is nothing")
{
    char room[1];
    struct rules_key_writer writer = {room, room, false};
    rules_key_put_encoded(&writer, (struct weir_bytes){NULL, 0}, RULES_KEY_OF_ENVOY);
    assert_false(writer.full);
    assert_ptr_equal(writer.end, room);
}

RUN_TESTS()
