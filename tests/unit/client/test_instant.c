/* SPDX-License-Identifier: Apache-2.0 */
/* Dates, durations and Retry-After, as servers write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/instant.h"
#include "core/bytes.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define NOW INT64_C(784111777) /* Sun, 06 Nov 1994 08:49:37 GMT, of RFC 9110 */

TEST("the three dates of rfc 9110 are one")
{
    static const char *const texts[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};

    for (int i = 0; i < 3; i++) {
        int64_t seconds = 0;
        assert_true(weir_instant_http_date(weir_bytes_of(texts[i]), NOW, &seconds));
        assert_int_equal(seconds, NOW);
    }
}

TEST("a year of two digits is near now")
{
    int64_t seconds;

    assert_true(weir_instant_http_date(weir_bytes_of("Thursday, 01-Jan-26 00:00:00 GMT"),
                                       1800000000, &seconds));
    assert_int_equal(seconds, 1767225600);
    assert_true(weir_instant_http_date(weir_bytes_of("Thursday, 01-Jan-98 00:00:00 GMT"),
                                       1800000000, &seconds));
    assert_int_equal(seconds, 883612800);
}

TEST("ends of the range of dates")
{
    int64_t seconds;

    assert_true(
        weir_instant_http_date(weir_bytes_of("Thu, 01 Jan 1970 00:00:00 GMT"), NOW, &seconds));
    assert_int_equal(seconds, 0);
    assert_true(
        weir_instant_http_date(weir_bytes_of("Fri, 31 Dec 9999 23:59:59 GMT"), NOW, &seconds));
    assert_int_equal(seconds, INT64_C(253402300799));
    assert_true(
        weir_instant_http_date(weir_bytes_of("Thu, 29 Feb 2024 00:00:00 GMT"), NOW, &seconds));
}

TEST("wrong dates are refused")
{
    static const char *const texts[] = {"",
                                        "Sun",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 GMTx",
                                        "Sun, 31 Feb 2020 08:49:37 GMT",
                                        "Sun, 29 Feb 2023 08:49:37 GMT",
                                        "Sun, 06 Nov 1969 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:49:37 GMT",
                                        "Sun, 06-Nov 1994 08:49:37 GMT",
                                        "Xyz, 06 Nov 1994 08:49:37 GMT",
                                        "Sun Nov 66 08:49:37 1994",
                                        "06 Nov 1994 08:49:37 GMT"};
    int64_t seconds;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(weir_instant_http_date(weir_bytes_of(texts[i]), NOW, &seconds));
}

TEST("rfc 3339 has offsets and fractions")
{
    int64_t seconds;

    assert_true(weir_instant_rfc3339(weir_bytes_of("1994-11-06T08:49:37Z"), &seconds));
    assert_int_equal(seconds, NOW);
    assert_true(weir_instant_rfc3339(weir_bytes_of("1994-11-06T10:19:37.123456+01:30"), &seconds));
    assert_int_equal(seconds, NOW);
    assert_false(weir_instant_rfc3339(weir_bytes_of("1994-11-06T08:49:37"), &seconds));
    assert_false(weir_instant_rfc3339(weir_bytes_of("1994-11-06T08:49:37+1"), &seconds));
    assert_false(weir_instant_rfc3339(weir_bytes_of("1994-13-06T08:49:37Z"), &seconds));
}

TEST("durations as go writes them")
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"1s", S},           {"6m0s", 360 * S}, {"20ms", 20000000}, {"1h2m3s", 3723 * S},
                {"1.5s", 3 * S / 2}, {"2d", 172800 * S}};
    static const char *const bad[] = {"",    "s",   "1",     "1x", "1s2", "99999999999999999999s",
                                      "40d", "1.s", "20d20d"};
    uint64_t ns;

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(weir_instant_duration(weir_bytes_of(good[i].text), &ns));
        assert_int_equal(ns, good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weir_instant_duration(weir_bytes_of(bad[i]), &ns));
}

TEST("retry after counts from the servers own date")
{
    uint64_t ns;
    int64_t server = NOW - 3600;

    assert_true(weir_instant_retry_after(weir_bytes_of("120"), NULL, NOW, &ns));
    assert_int_equal(ns, 120 * S);
    assert_true(weir_instant_retry_after(weir_bytes_of("0.25"), NULL, NOW, &ns));
    assert_int_equal(ns, S / 4);
    assert_true(
        weir_instant_retry_after(weir_bytes_of("Sun, 06 Nov 1994 08:49:47 GMT"), NULL, NOW, &ns));
    assert_int_equal(ns, 10 * S);
    assert_true(weir_instant_retry_after(weir_bytes_of("Sun, 06 Nov 1994 07:49:47 GMT"), &server,
                                         NOW, &ns));
    assert_int_equal(ns, 10 * S);
}

TEST("retry after in the past is 0 and nonsense is refused")
{
    static const char *const bad[] = {"",   "-1", "soon",    "1e9",  "1 2",
                                      "1,", ",",  "1, soon", "1,, 2"};
    uint64_t ns = 77;

    assert_true(
        weir_instant_retry_after(weir_bytes_of("Thu, 01 Jan 1970 00:00:00 GMT"), NULL, NOW, &ns));
    assert_int_equal(ns, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weir_instant_retry_after(weir_bytes_of(bad[i]), NULL, NOW, &ns));
}

TEST("a long retry after is the horizon")
{
    static const char *const far[] = {"99999999999999999999", "3000000", "2764800",
                                      "Fri, 31 Dec 9999 23:59:59 GMT"};
    uint64_t ns;

    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        assert_true(weir_instant_retry_after(weir_bytes_of(far[i]), NULL, NOW, &ns));
        assert_true(ns == WEIR_INSTANT_HORIZON_NS);
    }
    assert_true(weir_instant_retry_after(weir_bytes_of("2764799"), NULL, NOW, &ns));
    assert_true(ns == WEIR_INSTANT_HORIZON_NS - S);
}

TEST("of several retry after the longest counts")
{
    static const char *const lists[] = {"10,3", "3 , 10", "3, Sun, 06 Nov 1994 08:49:47 GMT",
                                        "Sun, 06 Nov 1994 08:49:47 GMT,1"};
    uint64_t ns;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_true(weir_instant_retry_after(weir_bytes_of(lists[i]), NULL, NOW, &ns));
        assert_int_equal(ns, 10 * S);
    }
}

RUN_TESTS()
