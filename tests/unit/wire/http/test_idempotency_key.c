/* SPDX-License-Identifier: Apache-2.0 */
/* wire/idempotency_key: the field Idempotency-Key, quoted as the draft says, and bare. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "test.h"
#include "wire/http/idempotency_key.h"

static char key[WEIR_IDEMPOTENCY_KEY_MAX];

static long parse(const char *text)
{
    memset(key, '?', sizeof key);
    return weir_idempotency_key_parse(weir_bytes_of(text), key);
}

static void assert_key(const char *text, const char *expected)
{
    assert_int_equal(parse(text), strlen(expected));
    assert_memory_equal(key, expected, strlen(expected));
}

TEST("a quoted key and a bare one are the same")
{
    assert_key("\"8e03978e-40d5\"", "8e03978e-40d5");
    assert_key("8e03978e-40d5", "8e03978e-40d5");
    assert_key("*a:b/c", "*a:b/c"); /* a token of structured fields */
}

TEST("escapes are undone and parameters skipped")
{
    assert_key("\"a\\\"b\\\\ c\"", "a\"b\\ c");
    assert_key("\"a\";p=1;q=\"x\"", "a");
    assert_key("a;p=1", "a;p=1"); /* bare: unchanged */
}

TEST("what is no key is refused")
{
    static const char *const wrong[] = {
        "",    "\"\"", "\"",       "\"a",          "\"a\\\"",  "\"a\\", "\"a\\b\"", "\"a\" x",
        "a b", "a\"b", "\"a\tb\"", "\"\xc3\xa9\"", "\xc3\xa9", "a\x7f", "\"a\x7f\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(parse(wrong[i]), WEIR_ERR_SYNTAX);
}

TEST("a key has at most 255 bytes")
{
    char text[WEIR_IDEMPOTENCY_KEY_MAX + 4];
    memset(text, 'k', sizeof text);
    text[WEIR_IDEMPOTENCY_KEY_MAX] = '\0';
    assert_int_equal(parse(text), WEIR_IDEMPOTENCY_KEY_MAX);
    strcpy(text + WEIR_IDEMPOTENCY_KEY_MAX, "k");
    assert_int_equal(parse(text), WEIR_ERR_SYNTAX);
    text[0] = '"';
    strcpy(text + WEIR_IDEMPOTENCY_KEY_MAX, "k\"");
    assert_int_equal(parse(text), WEIR_IDEMPOTENCY_KEY_MAX);
    strcpy(text + WEIR_IDEMPOTENCY_KEY_MAX, "kk\"");
    assert_int_equal(parse(text), WEIR_ERR_SYNTAX);
}

RUN_TESTS()
