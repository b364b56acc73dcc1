/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay prints: times, losses. The tables are tested from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/report.h"
#include "cli/times.h"
#include "test.h"

TEST("times reach to the end of the range")
{
    char text[WEIR_MOMENT_MAX];
    cli_time_choose(true);
    assert_string_equal(cli_time_text(text, 0), "1970-01-01T00:00:00Z");
    assert_string_equal(cli_time_text(text, UINT64_C(1078704349999999999)), "2004-03-08T00:05:49Z");
    assert_string_equal(cli_time_text(text, (UINT64_C(1) << 62) - 1), "2116-02-20T23:53:38Z");
    assert_string_equal(cli_time_text(text, UINT64_MAX), "2554-07-21T23:34:33Z");
}

TEST("losses are reported when there are any and only then")
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

RUN_TESTS()
