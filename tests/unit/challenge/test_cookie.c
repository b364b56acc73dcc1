/* SPDX-License-Identifier: Apache-2.0 */
/* Cookies by name. */
#include "challenge_test.h"

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

static void a_cookie_is_found_by_its_whole_name(void **state)
{
    (void)state;
    assert_string_equal(values("c=1"), "1|");
    assert_string_equal(values("a=0; c=1; b=2"), "1|");
    assert_string_equal(values("xc=1; cx=2; C=3; c; =c; c"), "");
    assert_string_equal(values(""), "");
    assert_string_equal(values(";;, ;"), "");
    assert_string_equal(values("a=c=1"), "");
}

static void all_cookies_of_a_name_are_found_in_order(void **state)
{
    (void)state;
    assert_string_equal(values("c=1; b=c; c=2;c=3 ;c="), "1|2|3||");
    assert_string_equal(values("a=1, c=1; c=2, c=3"), "1|2|3|");
}

static void quotes_and_white_space_are_taken_off(void **state)
{
    (void)state;
    assert_string_equal(values("  c=\"1\"\t; c=\"; c=\"\"; c=a=b"), "1|\"||a=b|");
}

static void a_name_is_a_token(void **state)
{
    (void)state;
    assert_true(weir_cookie_name_is_valid(weir_bytes_of("__Host-weir")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("a b")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("a=b")));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("a;b")));
    assert_false(weir_cookie_name_is_valid((struct weir_bytes){"a\0b", 3}));
    assert_false(weir_cookie_name_is_valid(weir_bytes_of("caf\xc3\xa9")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cookie_is_found_by_its_whole_name),
        cmocka_unit_test(all_cookies_of_a_name_are_found_in_order),
        cmocka_unit_test(quotes_and_white_space_are_taken_off),
        cmocka_unit_test(a_name_is_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
