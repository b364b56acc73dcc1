/* SPDX-License-Identifier: Apache-2.0 */
/* Header fields of an answer, one by one. */
#include <string.h>

#include "test.h"

#include "proxy/fields.h"

/* How many fields a text has, up to what is none; *read: the bytes that they take. */
static unsigned count(const char *text, size_t size, size_t *read)
{
    struct weir_field field;
    const char *at = text;
    unsigned fields = 0;
    while (weir_field_next(&field, &at, text + size))
        fields++;
    *read = (size_t)(at - text);
    return fields;
}

TEST("names and values are taken apart in their order")
{
    const char text[] = "RateLimit: \"a\";r=1\r\nRetry-After: 7\r\nX: \r\n";
    const char *at = text, *end = text + sizeof text - 1;
    struct weir_field field;
    assert_true(weir_field_next(&field, &at, end));
    assert_int_equal(field.name_size, strlen("RateLimit"));
    assert_memory_equal(field.value, "\"a\";r=1", field.value_size);
    assert_true(weir_field_next(&field, &at, end));
    assert_memory_equal(field.name, "Retry-After", field.name_size);
    assert_int_equal(field.value_size, 1);
    assert_true(weir_field_next(&field, &at, end));
    assert_int_equal(field.value_size, 0);
    assert_false(weir_field_next(&field, &at, end));
    assert_true(at == end);
}

TEST("a text that ends early has the fields before, and nothing of the last")
{
    const char text[] = "A: b\r\nC: d\r\n";
    size_t read;
    for (size_t size = 0; size < sizeof text; size++) {
        unsigned whole = size >= 12 ? 2 : size >= 6;
        assert_int_equal(count(text, size, &read), whole);
        assert_int_equal(read, whole * 6);
    }
}

TEST("a line without a colon ends the fields")
{
    size_t read;
    assert_int_equal(count("A: b\r\nnone\r\nC: d\r\n", 18, &read), 1);
    assert_int_equal(count("A:\r\n", 4, &read), 0);
}

RUN_TESTS()
