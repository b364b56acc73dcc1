/* SPDX-License-Identifier: Apache-2.0 */
/* CL.THROTTLE, THROTTLE, GCRA: the cases of the limiters that they come from, at exact times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"
#include "test.h"

/* --- CL.THROTTLE ------------------------------------------------------------------------------ */

TEST_WITH(open_harness, close_harness, "a bucket of sixteen at one in two seconds")
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

TEST_WITH(open_harness, close_harness, "a bucket of one")
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE b 0 1 2", "0 1 0 -1 2"},    {0, "CL.THROTTLE b 0 1 2", "1 1 0 2 2"},
        {500, "CL.THROTTLE b 0 1 2", "1 1 0 2 2"},   {1999, "CL.THROTTLE b 0 1 2", "1 1 0 1 1"},
        {2000, "CL.THROTTLE b 0 1 2", "0 1 0 -1 2"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "a bucket of five at one a second")
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

TEST_WITH(open_harness, close_harness, "a refund never makes a bucket better than full")
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

TEST_WITH(open_harness, close_harness, "rates above a thousand a second are exact")
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

TEST_WITH(open_harness, close_harness, "a raised rate never denies and keeps what was used")
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

TEST_WITH(open_harness, close_harness, "errors are worded as redis cell words them")
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

TEST_WITH(open_harness, close_harness, "a burst that no bucket holds is refused")
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

TEST_WITH(open_harness, close_harness, "the whole range of numbers is taken where it can be kept")
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
TEST_WITH(open_harness, close_harness, "waiting as reported is enough")
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

TEST_WITH(open_harness, close_harness, "throttlecrab is reported what it knows")
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

TEST_WITH(open_harness, close_harness, "its defects are not")
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

TEST_WITH(open_harness, close_harness, "its errors are worded as it words them")
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

TEST_WITH(open_harness, close_harness, "gcra takes fractions of a second")
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

TEST_WITH(open_harness, close_harness, "gcra refuses what redis refuses")
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

TEST_WITH(open_harness, close_harness, "the three commands share a key")
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

TEST_WITH(open_harness, close_harness,
          "a pipeline keeps its order around commands that look at once")
{
    static const struct step steps[] = {
        {0, "CL.THROTTLE p 1 1 1 2\r\nCL.THROTTLE p 1 1 1\r\nDEL p\r\nCL.THROTTLE p 1 1 1\r\nTTL p",
         "0 2 0 -1 2 1 2 0 1 2 1 0 2 1 -1 1 1"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "limits of commands are bounded")
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
    redis_harness_close(harness);
}

TEST_WITH(open_harness, close_harness, "keys are bytes")
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

RUN_TESTS()
