/* SPDX-License-Identifier: Apache-2.0 */
/* INCREX and WEIR.CHECKALL: windows, and several buckets in one decision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"

/* The harness starts 1,700,000,000.123 s after the epoch: 38 s of 60 are left, 8 s of 10. */

static void increx_counts_up_to_its_bound(void **state)
{
    static const struct step steps[] = {
        {0, "INCREX w BYINT 3 UBOUND 10 EX 10 ENX", "3 3"},
        {0, "INCREX w UBOUND 10 EX 10 ENX", "4 1"},
        {0, "INCREX w BYINT 7 UBOUND 10 EX 10 ENX", "4 0"},
        {0, "increx w enx ubound 10 lbound 0 px 10000 byint 6", "10 6"},
        {0, "INCREX w UBOUND 10 EX 10 ENX", "10 0"},
        {0, "INCREX w BYINT 0 UBOUND 10 EX 10 ENX", "10 0"},
        {9876, "INCREX w UBOUND 10 EX 10 ENX", "10 0"},
        {9877, "INCREX w UBOUND 10 EX 10 ENX", "1 1"},
    };
    RUN(steps);
}

static void a_changed_bound_keeps_the_count(void **state)
{
    static const struct step steps[] = {
        {0, "INCREX w BYINT 8 UBOUND 10 EX 10 ENX", "8 8"},
        {0, "INCREX w UBOUND 5 EX 10 ENX", "8 0"},
        {0, "INCREX w UBOUND 20 EX 10 ENX", "9 1"},
        {0, "INCREX z UBOUND 0 EX 10 ENX", "0 0"},
        {0, "INCREX l BYINT 4294967295 UBOUND 4294967295 EX 1 ENX", "4294967295 4294967295"},
    };
    RUN(steps);
}

static void what_is_no_window_is_refused_in_words(void **state)
{
    static const char usage[] = ": weir serves it for windows, as INCREX key BYINT n UBOUND limit "
                                "EX seconds ENX";
    static const struct {
        const char *options, *why;
    } uses[] = {{"", "without EX or PX"},
                {"UBOUND 5", "without EX or PX"},
                {"EX 10 UBOUND 5", "without ENX"},
                {"EX 10 ENX", "without UBOUND"},
                {"LBOUND 1 UBOUND 5 EX 10 ENX", "with LBOUND above 0"}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        char command[128], want[256];
        snprintf(command, sizeof command, "INCREX k %s", uses[i].options);
        snprintf(want, sizeof want, "-ERR INCREX %s%s", uses[i].why, usage);
        assert_string_equal(redis_harness_ask(*state, 0, command), want);
    }
    static const char *const refused[] = {"BYFLOAT", "SATURATE", "EXAT", "PXAT", "PERSIST"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char command[128], want[256];
        snprintf(command, sizeof command, "INCREX k %s 1 UBOUND 5 EX 10 ENX", refused[i]);
        snprintf(want, sizeof want,
                 "-ERR INCREX with %s is not served: weir counts in fixed windows", refused[i]);
        assert_string_equal(redis_harness_ask(*state, 0, command), want);
    }
    static const struct step steps[] = {
        {0, "INCREX k ENX UBOUND 5", "-ERR ENX flag requires an expiration"},
        {0, "INCREX k UBOUND", "-ERR syntax error"},
        {0, "INCREX k WHAT 5", "-ERR syntax error"},
        {0, "INCREX k EX 5 PX 5 UBOUND 5 ENX", "-ERR syntax error"},
        {0, "INCREX k UBOUND x EX 5 ENX", "-ERR value is not an integer or out of range"},
        {0, "INCREX k BYINT -1 UBOUND 5 EX 5 ENX", "-ERR BYINT must be 0 or more"},
        {0, "INCREX k UBOUND 5 EX 0 ENX", "-ERR EX must be 1 or more"},
        {0, "INCREX k UBOUND 4294967296 EX 5 ENX",
         "-ERR rate is 4294967296; the range is 0 to 4294967295"},
        {0, "INCREX k UBOUND 5 EX 9223372036854775807 ENX",
         "-ERR the window is longer than 366 days"},
        {0, "EXISTS k", "0"},
    };
    RUN(steps);
}

static void a_window_and_a_bucket_of_one_name_are_one_key(void **state)
{
    static const struct step steps[] = {
        {0, "INCREX k UBOUND 5 EX 10 ENX", "1 1"},
        {0, "CL.THROTTLE k 1 1 1", "0 2 1 -1 1"},
        {0, "INCREX k UBOUND 5 EX 10 ENX", "2 1"},
        {0, "EXISTS k", "1"},
        {0, "PTTL k", "9877"},
        {0, "DEL k", "1"},
        {0, "INCREX k UBOUND 5 EX 10 ENX", "1 1"},
        {0, "CL.THROTTLE k 1 1 1", "0 2 1 -1 1"},
    };
    RUN(steps);
}

static void all_limits_are_charged_or_none_is(void **state)
{
    static const struct step steps[] = {
        {0, "WEIR.CHECKALL 2 a 4 1 1 2 b 1 1 60 1",
         "allowed 1 denied_by -1 retry_after_ms 0 limits 0 5 3 0 2000 0 2 1 0 60000"},
        {0, "WEIR.CHECKALL 2 a 4 1 1 2 b 1 1 60 2",
         "allowed 0 denied_by 1 retry_after_ms 60000 limits 0 5 3 0 2000 1 2 1 60000 60000"},
        {0, "WEIR.CHECKALL 2 a 4 1 1 4 b 1 1 60 3",
         "allowed 0 denied_by 1 retry_after_ms -1 limits 1 5 3 1000 2000 1 2 1 -1 60000"},
        {0, "CL.THROTTLE a 4 1 1 0", "0 5 3 -1 2"},
        {0, "CL.THROTTLE b 1 1 60 0", "0 2 1 -1 60"},
        {0, "WEIR.CHECKALL 1 a 4 1 1 0",
         "allowed 1 denied_by -1 retry_after_ms 0 limits 0 5 3 0 2000"},
    };
    RUN(steps);
}

static void checkall_names_what_is_wrong_and_charges_nothing(void **state)
{
    static const struct step steps[] = {
        {0, "WEIR.CHECKALL", "-ERR wrong number of arguments for 'weir.checkall' command"},
        {0, "WEIR.CHECKALL 0", "-ERR the number of limits must be 1 to 32"},
        {0, "WEIR.CHECKALL 33 a", "-ERR the number of limits must be 1 to 32"},
        {0, "WEIR.CHECKALL 2 a 1 1 1 1",
         "-ERR 2 limits of key, max_burst, count, period and quantity are 10 arguments"},
        {0, "WEIR.CHECKALL 2 a 1 1 1 1 b 1 0 1 1",
         "-ERR limit 2: count is not an integer or out of range"},
        {0, "WEIR.CHECKALL 2 a 1 1 1 1 b 1 1 1 -1",
         "-ERR limit 2: quantity is not an integer or out of range"},
        {0, "WEIR.CHECKALL 2 a 1 1 1 1 a 2 1 1 1",
         "-ERR limits 1 and 2 have the same key; give each its own"},
        {0, "WEIR.CHECKALL 1 a 1 1 99999999 1", "-ERR limit 1: the period is longer than 366 days"},
        {0, "EXISTS a b", "0"},
    };
    RUN(steps);
    assert_int_equal(((struct redis_harness *)*state)->state.taken, 0);
}

static void thirty_two_limits_are_one_decision(void **state)
{
    char command[2048];
    size_t used = (size_t)snprintf(command, sizeof command, "WEIR.CHECKALL 32");
    for (int i = 0; i < 32; i++)
        used += (size_t)snprintf(command + used, sizeof command - used, " k%d %d 1 1 1", i, i);
    assert_memory_equal(redis_harness_ask(*state, 0, command), "allowed 1 denied_by -1 ", 23);
    assert_memory_equal(redis_harness_ask(*state, 0, command),
                        "allowed 0 denied_by 0 retry_after_ms 1000 limits 1 1 0 1000 1000 ", 65);
    assert_string_equal(redis_harness_ask(*state, 0, "CL.THROTTLE k31 31 1 1 0"), "0 32 31 -1 1");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_harness, close_harness)
    const struct CMUnitTest tests[] = {
        CASE(increx_counts_up_to_its_bound),
        CASE(a_changed_bound_keeps_the_count),
        CASE(what_is_no_window_is_refused_in_words),
        CASE(a_window_and_a_bucket_of_one_name_are_one_key),
        CASE(all_limits_are_charged_or_none_is),
        CASE(checkall_names_what_is_wrong_and_charges_nothing),
        CASE(thirty_two_limits_are_one_decision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
