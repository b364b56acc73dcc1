/* SPDX-License-Identifier: Apache-2.0 */
/* wire/accept_encoding: which codings a client takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "test.h"
#include "wire/http/accept_encoding.h"

static bool takes_gzip(const char *field)
{
    return weir_accepts_coding(weir_bytes_of(field), "gzip");
}

TEST("a coding that is named is taken")
{
    static const char *const taken[] = {"gzip",       "GZip",         "gzip, deflate, br, zstd",
                                        "br,gzip",    "br , gzip ",   "gzip;q=1.0",
                                        "gzip;q=0.1", "gzip ; q=0.5", "identity;q=0,gzip",
                                        ",,gzip",     "gzip;x=0"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        assert_true(takes_gzip(taken[i]));
}

TEST("others and a weight of zero are not")
{
    static const char *const refused[] = {
        "",           "br",           "gzipped",      "x-gzip",   "gzi",          "gzip;q=0",
        "gzip;q=0.0", "gzip;Q=0.000", "gzip ; q=0 ;", "identity", "deflate;gzip", ";gzip",
        "*;q=0"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_false(takes_gzip(refused[i]));
    assert_false(weir_accepts_coding((struct weir_bytes){NULL, 0}, "gzip"));
}

TEST("a star stands for what is not named")
{
    assert_true(takes_gzip("*"));
    assert_true(takes_gzip("br;q=0, *;q=0.1"));
    assert_false(takes_gzip("*, gzip;q=0"));
    assert_false(takes_gzip("gzip;q=0, *"));
}

RUN_TESTS()
