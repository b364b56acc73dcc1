/* SPDX-License-Identifier: Apache-2.0 */
/* Languages by Accept-Language. */
#include "challenge_test.h"
#include "test.h"

#include "core/bytes.h"
#include "feature/challenge/language.h"

static const char *const languages[] = {"en", "de", "fr", "zh"};

static const char *chosen(const char *accept)
{
    return languages[weir_language_choose(weir_bytes_of(accept), languages, 4)];
}

TEST("the language with the highest weight is chosen")
{
    assert_string_equal(chosen("de"), "de");
    assert_string_equal(chosen("en;q=0.3, de;q=0.4, fr;q=0.35"), "de");
    assert_string_equal(chosen("en;q=0.9,fr"), "fr");
    assert_string_equal(chosen("de;q=0.001,fr;q=0.002"), "fr");
    assert_string_equal(chosen("fr;q=1.000 , de;q=1"), "fr");
}

TEST("a language is known by its first part in any case")
{
    assert_string_equal(chosen("de-CH, en"), "de");
    assert_string_equal(chosen("ZH-Hant-TW"), "zh");
    assert_string_equal(chosen("deu, fra, zha"), "en");
    assert_string_equal(chosen("d, e, -de"), "en");
}

TEST("what names no language gives the first")
{
    static const char *const none[] = {
        "",         "*",     "xx", ",,,",     ";q=1",   "de;q=0",   "de;q=x",     "de;q=2",
        "de;q=1.5", "de;q=", " ",  "de;q=.5", "de;q=-", "de;q=0,5", "de;q=0.0001"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_string_equal(chosen(none[i]), "en");
    assert_int_equal(weir_language_choose((struct weir_bytes){NULL, 0}, languages, 4), 0);
}

TEST("other parameters do not count")
{
    assert_string_equal(chosen("fr;level=1;q=0.2, de;q=0.1"), "fr");
    assert_string_equal(chosen("en;q=0.5, de ; Q=0.6 ;x"), "de");
}

RUN_TESTS()
