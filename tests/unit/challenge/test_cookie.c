/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies by name. */
#include "challenge_test.h"
#include "test.h"

#include "core/bytes.h"
#include "feature/challenge/cookie.h"

/* All values of the cookie `c`, each with a bar behind it. */
static const char *values(const char *field)
{
    static char found[256];
    struct weir_bytes rest = weir_bytes_of(field), value;
    found[0] = '\0';
    while (weir_cookie_next(&rest, weir_bytes_of("c"), &value)) {
        strncat(found, value.data, value.size);
        strcat(found, "|");
    }
    return found;
}

TEST("a cookie is found by its whole name")
{
    assert_string_equal(values("c=1"), "1|");
    assert_string_equal(values("a=0; c=1; b=2"), "1|");
    assert_string_equal(values("xc=1; cx=2; C=3; c; =c; c"), "");
    assert_string_equal(values(""), "");
    assert_string_equal(values(";;, ;"), "");
    assert_string_equal(values("a=c=1"), "");
}

TEST("all cookies of a name are found in order")
{
    assert_string_equal(values("c=1; b=c; c=2;c=3 ;c="), "1|2|3||");
    assert_string_equal(values("a=1, c=1; c=2, c=3"), "1|2|3|");
}

TEST("quotes and white space are taken off")
{
    assert_string_equal(values("  c=\"1\"\t; c=\"; c=\"\"; c=a=b"), "1|\"||a=b|");
}

TEST("a name is a token")
{
    assert_true(weir_cookie_name_is_valid(weir_bytes_of("__Host-weir")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("a b")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("a=b")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("a;b")));
    assert_false(weir_cookie_name_is_valid((struct weir_bytes){"a\0b", 3}));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("caf\xc3\xa9")));
}

RUN_TESTS()
