/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "server/text/durations.h"
#include "test.h"

TEST("durations have two units and are rounded up")
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "0ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1001, "1.1s"},
        {1100, "1.1s"},
        {1950, "2s"},
        {9900, "9.9s"},
        {9901, "10s"},
        {10001, "11s"},
        {59000, "59s"},
        {59001, "1min"},
        {61000, "1min 1s"},
        {3599000, "59min 59s"},
        {3599001, "1h"},
        {3600000, "1h"},
        {3600001, "1h 1min"},
        {86340001, "1d"},
        {86400000, "1d"},
        {8 * UINT64_C(86400000) + 8 * 3600000, "8d 8h"},
        {8 * UINT64_C(86400000) + 8 * 3600000 + 1, "8d 9h"},
        {366 * UINT64_C(86400000), "366d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[WEIR_DURATION_MAX];
        assert_string_equal(weir_duration(text, cases[i].ms), cases[i].text);
    }
    char text[WEIR_DURATION_MAX];
    assert_non_null(weir_duration(text, UINT64_MAX));
}

TEST("a duration is exact in the largest unit that fits")
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {{0, "0s"},
                 {1, "1ns"},
                 {1500, "1500ns"},
                 {2000, "2us"},
                 {1000000, "1ms"},
                 {UINT64_C(90000000000), "90s"},
                 {UINT64_C(60000000000), "1min"},
                 {UINT64_C(7200000000000), "2h"},
                 {UINT64_C(31622400000000000), "366d"},
                 {UINT64_MAX, "18446744073709551615ns"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[WEIR_DURATION_MAX];
        assert_string_equal(weir_duration_exact(text, cases[i].ns), cases[i].text);
    }
}

TEST("nanoseconds are rounded up to milliseconds")
{
    char text[WEIR_DURATION_MAX];
    assert_string_equal(weir_duration_ns(text, 0), "0ms");
    assert_string_equal(weir_duration_ns(text, 1), "1ms");
    assert_string_equal(weir_duration_ns(text, UINT64_C(721133929000001)), "8d 9h");
    assert_non_null(weir_duration_ns(text, UINT64_MAX));
}

RUN_TESTS()
