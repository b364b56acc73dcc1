/* SPDX-License-Identifier: Apache-2.0 */
/* CL.THROTTLE, THROTTLE, GCRA: the cases of the limiters that they come from, at exact times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"

/* --- CL.THROTTLE ------------------------------------------------------------------------------ */

static void a_bucket_of_sixteen_at_one_in_two_seconds(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE a 15 30 60", "0 16 15 -1 2"},
        {0, "CL.THROTTLE a 15 30 60 1", "0 16 14 -1 4"},
        {0, "CL.THROTTLE a 15 30 60 0", "0 16 14 -1 4"},
        {0, "CL.THROTTLE a 15 30 60 17", "1 16 14 -1 4"},
        {0, "CL.THROTTLE a 15 30 60 14", "0 16 0 -1 32"},
        {0, "CL.THROTTLE a 15 30 60 1", "1 16 0 2 32"},
        {1999, "CL.THROTTLE a 15 30 60 1", "1 16 0 1 31"},
        {2000, "CL.THROTTLE a 15 30 60 1", "0 16 0 -1 32"},
        {34000, "CL.THROTTLE a 15 30 60 0", "0 16 16 -1 0"},
        {40000, "CL.THROTTLE a 15 30 60 16", "0 16 0 -1 32"},
    };
    RUN(steps);
}

static void a_bucket_of_one(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE b 0 1 2", "0 1 0 -1 2"},    {0, "CL.THROTTLE b 0 1 2", "1 1 0 2 2"},
        {500, "CL.THROTTLE b 0 1 2", "1 1 0 2 2"},   {1999, "CL.THROTTLE b 0 1 2", "1 1 0 1 1"},
        {2000, "CL.THROTTLE b 0 1 2", "0 1 0 -1 2"},
    };
    RUN(steps);
}

static void a_bucket_of_five_at_one_a_second(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE c 4 1 1 6", "1 5 5 -1 0"},
        {0, "CL.THROTTLE c 4 1 1", "0 5 4 -1 1"},
        {0, "CL.THROTTLE c 4 1 1", "0 5 3 -1 2"},
        {0, "CL.THROTTLE c 4 1 1", "0 5 2 -1 3"},
        {0, "CL.THROTTLE c 4 1 1", "0 5 1 -1 4"},
        {0, "CL.THROTTLE c 4 1 1", "0 5 0 -1 5"},
        {0, "CL.THROTTLE c 4 1 1", "1 5 0 1 5"},
        {3000, "CL.THROTTLE c 4 1 1", "0 5 2 -1 3"},
        {3100, "CL.THROTTLE c 4 1 1", "0 5 1 -1 4"},
        {4000, "CL.THROTTLE c 4 1 1", "0 5 1 -1 4"},
        {8000, "CL.THROTTLE c 4 1 1", "0 5 4 -1 1"},
        {9500, "CL.THROTTLE c 4 1 1", "0 5 4 -1 1"},
        {9500, "CL.THROTTLE c 4 1 1 0", "0 5 4 -1 1"},
        {9500, "CL.THROTTLE c 4 1 1 2", "0 5 2 -1 3"},
        {9500, "CL.THROTTLE c 4 1 1 5", "1 5 2 3 3"},
    };
    RUN(steps);
}

static void a_refund_never_makes_a_bucket_better_than_full(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE d 4 1 1 5", "0 5 0 -1 5"},
        {0, "CL.THROTTLE d 4 1 1 -2", "0 5 2 -1 3"},
        {0, "CL.THROTTLE d 4 1 1 0", "0 5 2 -1 3"},
        {0, "CL.THROTTLE d 4 1 1 -5", "0 5 5 -1 0"},
        {0, "CL.THROTTLE d 4 1 1 -9223372036854775808", "0 5 5 -1 0"},
        {0, "CL.THROTTLE d 4 1 1 5", "0 5 0 -1 5"},
    };
    RUN(steps);
}

static void rates_above_a_thousand_a_second_are_exact(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE f 1000 1000 60", "0 1001 1000 -1 1"},
        {0, "CL.THROTTLE f 1000 1000 60", "0 1001 999 -1 1"},
        {0, "CL.THROTTLE g 4 500000 1 2", "0 5 3 -1 1"},
        {0, "CL.THROTTLE g 4 500000 1 4", "1 5 3 1 1"},
        {1, "CL.THROTTLE g 4 500000 1 5", "0 5 0 -1 1"},
    };
    RUN(steps);
}

static void a_raised_rate_never_denies_and_keeps_what_was_used(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE h 15 10 20 4", "0 16 12 -1 8"},
        /* 0.05 of the 4 have come back; the other 3.95 weigh 20 ms each now. */
        {100, "CL.THROTTLE h 15 1000 20", "0 16 11 -1 1"},
        {100, "CL.THROTTLE h 15 10 20 0", "0 16 11 -1 10"},
        {100, "CL.THROTTLE h 2 10 20", "1 3 0 6 10"},
    };
    RUN(steps);
}

static void errors_are_worded_as_redis_cell_words_them(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE i 1 0 1", "-Cell error: Store error: Zero rates are not supported"},
        {0, "CL.THROTTLE i 1 1 0", "-Cell error: Store error: Zero rates are not supported"},
        {0, "CL.THROTTLE i abc 1 1", "-Cell error: Store error: Couldn't parse as integer: abc"},
        {0, "CL.THROTTLE i 1 1 1 1.5", "-Cell error: Store error: Couldn't parse as integer: 1.5"},
        {0, "CL.THROTTLE i 1 1 9223372036854775808",
         "-Cell error: Store error: Couldn't parse as integer: 9223372036854775808"},
        {0, "CL.THROTTLE i 1 1",
         "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> "
         "<period> [<quantity>]"},
        {0, "CL.THROTTLE i 1 1 1 1 1",
         "-Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> "
         "<period> [<quantity>]"},
        {0, "CL.THROTTLE i -1 1 1", "-Cell error: Store error: Negative bursts are not supported"},
        {0, "CL.THROTTLE i 1 -1 1", "-Cell error: Store error: Negative rates are not supported"},
        {0, "CL.THROTTLE i 1 1 -1", "-Cell error: Store error: Negative rates are not supported"},
        {0, "CL.THROTTLE i 1 1 31622401",
         "-Cell error: Store error: the period is longer than 366 days"},
        {0, "EXISTS i", "0"},
    };
    RUN(steps);
}

static void a_burst_that_no_bucket_holds_is_refused(void **state)
{
    static const struct step steps[] = {
        {0, "THROTTLE w 4611686019 1 1",
         "-ERR Rate limit check failed: the burst is too large: a bucket of this rate holds at "
         "most "
         "4611686018"},
        {0, "THROTTLE w 9223372036854775807 100 60",
         "-ERR Rate limit check failed: the burst is too large: a bucket of this rate holds at "
         "most "
         "7686143364"},
        {0, "CL.THROTTLE w 9223372036854775807 100 60",
         "-Cell error: Store error: the burst is too large: a bucket of this rate holds at most "
         "7686143364"},
        {0, "GCRA w 4611686018 1 1",
         "-ERR the burst is too large: a bucket of this rate holds at most 4611686018"},
        {0, "WEIR.CHECKALL 1 w 1099511627776 1099511627776 1 1",
         "-ERR limit 1: the burst is too large: a bucket of this rate holds at most 1099511627776"},
        {0, "EXISTS w", "0"},
        {0, "CL.THROTTLE w 4611686017 1 1", "0 4611686018 4611686017 -1 1"},
        {0, "CL.THROTTLE v 1099511627775 1099511627776 1", "0 1099511627776 1099511627775 -1 1"},
    };
    RUN(steps);
}

static void the_whole_range_of_numbers_is_taken_where_it_can_be_kept(void **state)
{
    static const struct step steps[] = {
        /* 1 a second, and the deepest bucket of that rate: 2^62 ns. */
        {0, "THROTTLE w 4611686018 9223372036854775807 9223372036854775807",
         "1 4611686018 4611686017 4611686017 0"},
        /* A billion a second is one a nanosecond, whichever way it is said. */
        {0, "CL.THROTTLE x 9 1000000000 1 10", "0 10 0 -1 1"},
        {0, "CL.THROTTLE y 9 3000000000 3 10", "0 10 0 -1 1"},
        /* Twice the longest window, at twice the rate. */
        {0, "CL.THROTTLE z 0 2 63244800", "0 1 0 -1 31622400"},
        {0, "CL.THROTTLE z 0 1 1", "1 1 0 1 1"},
    };
    RUN(steps);
}

/* What must hold for any numbers: waiting for that long is enough, and a second less is not. */
static void waiting_as_reported_is_enough(void **state)
{
    static const struct {
        int burst, count, period, quantity;
    } limits[] = {{2, 7, 1, 1}, {0, 3, 7, 1}, {9, 11, 100, 4}, {4, 999, 1000, 5}, {0, 1, 30, 1}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char all[96], some[96];
        int limited, limit, remaining, retry, reset;
        snprintf(all, sizeof all, "CL.THROTTLE wait%zu %d %d %d %d", i, limits[i].burst,
                 limits[i].count, limits[i].period, limits[i].burst + 1);
        snprintf(some, sizeof some, "CL.THROTTLE wait%zu %d %d %d %d", i, limits[i].burst,
                 limits[i].count, limits[i].period, limits[i].quantity);
        redis_harness_ask(*state, 0, all);
        const char *reply = redis_harness_ask(*state, 1, some);
        assert_int_equal(
            sscanf(reply, "%d %d %d %d %d", &limited, &limit, &remaining, &retry, &reset), 5);
        assert_int_equal(limited, 1);
        assert_true(retry >= 1 && reset >= retry);
        if (retry > 1)
            assert_int_equal(redis_harness_ask(*state, (uint64_t)(retry - 1) * 1000, some)[0], '1');
        assert_int_equal(redis_harness_ask(*state, 1 + (uint64_t)retry * 1000, some)[0], '0');
    }
}

/* --- THROTTLE --------------------------------------------------------------------------------- */

static void throttlecrab_is_reported_what_it_knows(void **state)
{
    static const struct step steps[] = {
        {0, "THROTTLE a 10 100 60", "1 10 9 5 0"},
        {0, "THROTTLE b 10 100 60 5", "1 10 5 7 0"},
        {0, "THROTTLE c 10 100 60 15", "0 10 10 0 2147483647"},
        {0, "THROTTLE c 10 100 60 0", "1 10 10 0 0"},
        {0, "throttle d 5 10 60 4", "1 5 1 42 0"},
        {0, "THROTTLE d 5 10 60", "1 5 0 48 0"},
        {0, "THROTTLE d 5 10 60", "0 5 0 48 6"},
        {6000, "THROTTLE d 5 10 60", "1 5 0 48 0"},
        {0, "THROTTLE e 2 60 60", "1 2 1 1 0"},
        {0, "THROTTLE e 2 60 60", "1 2 0 2 0"},
        {0, "THROTTLE e 2 60 60", "0 2 0 2 1"},
        {1000, "THROTTLE e 2 60 60", "1 2 0 2 0"},
        {0, "THROTTLE f 10 10 60 5", "1 10 5 78 0"},
        {0, "THROTTLE f 10 10 60 6", "0 10 5 78 6"},
        {0, "THROTTLE f 10 10 60 5", "1 10 0 108 0"},
        {0, "THROTTLE \"\" 5 5 5", "1 5 4 4 0"},
        {0, "THROTTLE \"\" 5 5 5", "1 5 3 5 0"},
    };
    RUN(steps);
}

static void its_defects_are_not(void **state)
{
    static const struct step steps[] = {
        /* A burst of one limits. */
        {0, "THROTTLE one 1 1 60", "1 1 0 60 0"},
        {59999, "THROTTLE one 1 1 60", "0 1 0 1 1"},
        {60000, "THROTTLE one 1 1 60", "1 1 0 60 0"},
        /* An idle key is full, not twice full. */
        {0, "THROTTLE idle 10 1 1 10", "1 10 0 18 0"},
        {17000, "THROTTLE idle 10 1 1 0", "1 10 10 0 0"},
        {17000, "THROTTLE idle 10 1 1 11", "0 10 10 0 2147483647"},
        /* A lowered limit never tells more than it is. */
        {0, "THROTTLE less 10 10 60 7", "1 10 3 90 0"},
        {0, "THROTTLE less 5 10 60 0", "0 5 0 60 12"},
        /* 2^32 + 1 is not 1. */
        {0, "THROTTLE wide 4294967297 1000000000 1", "1 4294967297 4294967296 4 0"},
    };
    RUN(steps);
}

static void its_errors_are_worded_as_it_words_them(void **state)
{
    static const struct step steps[] = {
        {0, "THROTTLE k 1 1", "-ERR wrong number of arguments for 'throttle' command"},
        {0, "THROTTLE k x 1 1", "-ERR invalid max_burst"},
        {0, "THROTTLE k 1 x 1", "-ERR invalid count_per_period"},
        {0, "THROTTLE k 1 1 x", "-ERR invalid period"},
        {0, "THROTTLE k 1 1 1 x", "-ERR invalid quantity"},
        {0, "THROTTLE k 0 1 1", "-ERR Rate limit check failed: invalid rate limit parameters"},
        {0, "THROTTLE k 1 -1 1", "-ERR Rate limit check failed: invalid rate limit parameters"},
        {0, "THROTTLE k 1 1 1 -1", "-ERR Rate limit check failed: negative quantity: -1"},
    };
    RUN(steps);
    static const char null_key[] =
        "*5\r\n$8\r\nTHROTTLE\r\n$-1\r\n$1\r\n5\r\n$1\r\n5\r\n$1\r\n5\r\n";
    assert_string_equal(redis_harness_send(*state, null_key, sizeof null_key - 1),
                        "-ERR invalid key\r\n");
    static const char integers[] = "*5\r\n$8\r\nTHROTTLE\r\n$1\r\nn\r\n:5\r\n:60\r\n:60\r\n";
    assert_string_equal(redis_harness_send(*state, integers, sizeof integers - 1),
                        "*5\r\n:1\r\n:5\r\n:4\r\n:4\r\n:0\r\n");
}

/* --- GCRA ------------------------------------------------------------------------------------- */

static void gcra_takes_fractions_of_a_second(void **state)
{
    static const struct step steps[] = {
        {0, "GCRA a 4 1 1.5 TOKENS 2", "0 5 3 -1 3"},
        {0, "GCRA a 4 1 1.5 tokens 4", "1 5 3 2 3"},
        {0, "GCRA a 4 1 1.5 TOKENS 6", "1 5 3 -1 3"},
        {1500, "GCRA a 4 1 1.5 TOKENS 4", "0 5 0 -1 8"},
        {0, "GCRA b 0 1 0.001", "0 1 0 -1 1"},
        {0, "GCRA b 0 1 0.001", "1 1 0 1 1"},
        {1, "GCRA b 0 1 0.001", "0 1 0 -1 1"},
    };
    RUN(steps);
}

static void gcra_refuses_what_redis_refuses(void **state)
{
    static const struct step steps[] = {
        {0, "GCRA k 1 1 0", "-ERR period must be > 0 and < 1e12"},
        {0, "GCRA k 1 1 1e12", "-ERR period must be > 0 and < 1e12"},
        {0, "GCRA k 1 1 nan", "-ERR period must be > 0 and < 1e12"},
        {0, "GCRA k 1 1 1x", "-ERR period must be > 0 and < 1e12"},
        {0, "GCRA k 1 1 1 TOKENS", "-ERR Missing TOKENS value"},
        {0, "GCRA k 1 1 1 TOKENS 0", "-ERR TOKENS is not an integer or out of range"},
        {0, "GCRA k 1 1 1 COUNT 1", "-ERR syntax error"},
        {0, "GCRA k 1 1 1 TOKENS 1 2", "-ERR syntax error"},
        {0, "GCRA k -1 1 1", "-ERR max_burst is not an integer or out of range"},
        {0, "GCRA k 1 0 1", "-ERR tokens_per_period is not an integer or out of range"},
        {0, "GCRA k 1 1", "-ERR wrong number of arguments for 'gcra' command"},
        {0, "EXISTS k", "0"},
    };
    RUN(steps);
}

/* --- Keys and limits -------------------------------------------------------------------------- */

static void the_three_commands_share_a_key(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE k 9 1 1 4", "0 10 6 -1 4"},
        {0, "THROTTLE k 10 1 1 4", "1 10 2 16 0"},
        {0, "GCRA k 9 1 1 TOKENS 2", "0 10 0 -1 10"},
        {0, "SELECT 1", "OK"},
        {0, "CL.THROTTLE k 9 1 1 0", "0 10 10 -1 0"},
        {0, "SELECT 0", "OK"},
        {0, "TTL k", "10"},
        {0, "PTTL k", "10000"},
        {1, "PTTL k", "9999"},
        {1, "TTL k", "10"},
        {1, "EXISTS k k nobody", "2"},
        {1, "DEL k k nobody", "1"},
        {1, "TTL k", "-2"},
        {1, "CL.THROTTLE k 9 1 1", "0 10 9 -1 1"},
        {1001, "EXISTS k", "0"},
    };
    RUN(steps);
}

static void a_pipeline_keeps_its_order_around_commands_that_look_at_once(void **state)
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE p 1 1 1 2\r\nCL.THROTTLE p 1 1 1\r\nDEL p\r\nCL.THROTTLE p 1 1 1\r\nTTL p",
         "0 2 0 -1 2 1 2 0 1 2 1 0 2 1 -1 1 1"},
    };
    RUN(steps);
}

static void limits_of_commands_are_bounded(void **state)
{
    struct redis_harness *harness = redis_harness_open(NULL, 3);
    for (int i = 1; i <= 5; i++) {
        char command[64];
        snprintf(command, sizeof command, "CL.THROTTLE k%d %d 1 1", i, i);
        const char *reply = redis_harness_ask(harness, 0, command);
        if (i <= 3)
            assert_int_equal(reply[0], '0');
        else
            assert_string_equal(reply, "-ERR too many distinct limits");
    }
    assert_string_equal(redis_harness_ask(harness, 0, "CL.THROTTLE k1 1 1 1"), "0 2 0 -1 2");
    assert_int_equal(weir_adhoc_limits_count(harness->shared.limits), 3);
    (void)state;
    redis_harness_close(harness);
}

static void keys_are_bytes(void **state)
{
    static const char zero[] =
        "*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\na\0b\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n1\r\n";
    static const char other[] =
        "*5\r\n$11\r\nCL.THROTTLE\r\n$3\r\na\0c\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n1\r\n";
    static const char first[] = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1\r\n";
    static const char second[] = "*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:2\r\n";
    assert_string_equal(redis_harness_send(*state, zero, sizeof zero - 1), first);
    assert_string_equal(redis_harness_send(*state, other, sizeof other - 1), first);
    assert_string_equal(redis_harness_send(*state, zero, sizeof zero - 1), second);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_harness, close_harness)
    const struct CMUnitTest tests[] = {
        CASE(a_bucket_of_sixteen_at_one_in_two_seconds),
        CASE(a_bucket_of_one),
        CASE(a_bucket_of_five_at_one_a_second),
        CASE(a_refund_never_makes_a_bucket_better_than_full),
        CASE(rates_above_a_thousand_a_second_are_exact),
        CASE(a_raised_rate_never_denies_and_keeps_what_was_used),
        CASE(errors_are_worded_as_redis_cell_words_them),
        CASE(a_burst_that_no_bucket_holds_is_refused),
        CASE(the_whole_range_of_numbers_is_taken_where_it_can_be_kept),
        CASE(waiting_as_reported_is_enough),
        CASE(throttlecrab_is_reported_what_it_knows),
        CASE(its_defects_are_not),
        CASE(its_errors_are_worded_as_it_words_them),
        CASE(gcra_takes_fractions_of_a_second),
        CASE(gcra_refuses_what_redis_refuses),
        CASE(the_three_commands_share_a_key),
        CASE(a_pipeline_keeps_its_order_around_commands_that_look_at_once),
        CASE(limits_of_commands_are_bounded),
        CASE(keys_are_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
