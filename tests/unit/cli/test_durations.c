/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cli/durations.h"

static void durations_have_two_units_and_are_rounded_up(void **state)
{
    (void)state;
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        {0, "0ms"},
        {999, "999ms"},
        {1000, "1s"},
        {1001, "2s"},
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
        char text[CLI_DURATION_MAX];
        assert_string_equal(cli_duration(text, cases[i].ms), cases[i].text);
    }
    char text[CLI_DURATION_MAX];
    assert_non_null(cli_duration(text, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_have_two_units_and_are_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
