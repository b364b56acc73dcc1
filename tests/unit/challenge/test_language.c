/* SPDX-License-Identifier: Apache-2.0 */
/* Languages by Accept-Language. */
#include "challenge_test.h"

#include "core/bytes.h"
#include "feature/challenge/language.h"

static const char *const languages[] = {"en", "de", "fr", "zh"};

static const char *chosen(const char *accept)
{
    return languages[weir_language_choose(weir_bytes_of(accept), languages, 4)];
}

static void the_language_with_the_highest_weight_is_chosen(void **state)
{
    (void)state;
    assert_string_equal(chosen("de"), "de");
    assert_string_equal(chosen("en;q=0.3, de;q=0.4, fr;q=0.35"), "de");
    assert_string_equal(chosen("en;q=0.9,fr"), "fr");
    assert_string_equal(chosen("de;q=0.001,fr;q=0.002"), "fr");
    assert_string_equal(chosen("fr;q=1.000 , de;q=1"), "fr");
}

static void a_language_is_known_by_its_first_part_in_any_case(void **state)
{
    (void)state;
    assert_string_equal(chosen("de-CH, en"), "de");
    assert_string_equal(chosen("ZH-Hant-TW"), "zh");
    assert_string_equal(chosen("deu, fra, zha"), "en");
    assert_string_equal(chosen("d, e, -de"), "en");
}

static void what_names_no_language_gives_the_first(void **state)
{
    static const char *const none[] = {
        "",         "*",     "xx", ",,,",     ";q=1",   "de;q=0",   "de;q=x",     "de;q=2",
        "de;q=1.5", "de;q=", " ",  "de;q=.5", "de;q=-", "de;q=0,5", "de;q=0.0001"};
    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_string_equal(chosen(none[i]), "en");
    assert_int_equal(weir_language_choose((struct weir_bytes){NULL, 0}, languages, 4), 0);
}

static void other_parameters_do_not_count(void **state)
{
    (void)state;
    assert_string_equal(chosen("fr;level=1;q=0.2, de;q=0.1"), "fr");
    assert_string_equal(chosen("en;q=0.5, de ; Q=0.6 ;x"), "de");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_language_with_the_highest_weight_is_chosen),
        cmocka_unit_test(a_language_is_known_by_its_first_part_in_any_case),
        cmocka_unit_test(what_names_no_language_gives_the_first),
        cmocka_unit_test(other_parameters_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
