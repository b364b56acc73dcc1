/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay prints: durations, times, losses. The tables are tested from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/report.h"

static void a_duration_is_exact_in_the_largest_unit_that_fits(void **state)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {{0, "0 s"},
                 {1, "1 ns"},
                 {1500, "1500 ns"},
                 {2000, "2 us"},
                 {1000000, "1 ms"},
                 {UINT64_C(90000000000), "90 s"},
                 {UINT64_C(60000000000), "1 min"},
                 {UINT64_C(7200000000000), "2 h"},
                 {UINT64_C(31622400000000000), "366 d"},
                 {UINT64_MAX, "18446744073709551615 ns"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[REPLAY_DURATION_MAX];
        assert_string_equal(replay_duration_text(cases[i].ns, text), cases[i].text);
    }
}

static void times_are_utc_up_to_the_end_of_the_range(void **state)
{
    char text[REPLAY_TIME_MAX];
    assert_string_equal(replay_time_text(0, text), "1970-01-01 00:00:00");
    assert_string_equal(replay_time_text(UINT64_C(1078704349999999999), text),
                        "2004-03-08 00:05:49");
    assert_string_equal(replay_time_text((UINT64_C(1) << 62) - 1, text), "2116-02-20 23:53:38");
}

static void losses_are_reported_when_there_are_any_and_only_then(void **state)
{
    char printed[512] = {0};
    FILE *out = fmemopen(printed, sizeof printed, "w");
    assert_non_null(out);
    assert_false(replay_report_losses(out, &(struct weir_table_stats){.reclaimed = 5}));
    assert_int_equal(ftell(out), 0);
    assert_true(replay_report_losses(out, &(struct weir_table_stats){.evictions = 12}));
    assert_true(replay_report_losses(out, &(struct weir_table_stats){.overflows = 34}));
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(printed, "Not exact"));
    assert_non_null(strstr(printed, "12 states in use were forgotten"));
    assert_non_null(strstr(printed, "34 decisions were made on a shared state"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_is_exact_in_the_largest_unit_that_fits),
        cmocka_unit_test(times_are_utc_up_to_the_end_of_the_range),
        cmocka_unit_test(losses_are_reported_when_there_are_any_and_only_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
