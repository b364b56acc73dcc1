/* SPDX-License-Identifier: Apache-2.0 */
/* INCREX and WEIR.CHECKALL: counters with bounds, and several buckets in one decision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"
#include "test.h"

/* The harness starts 1,700,000,000.123 s after the epoch. */

TEST_WITH(open_harness, close_harness, "a window begins with its first hit")
{
    static const struct step steps[] = {
        {0, "INCREX w BYINT 3 UBOUND 10 EX 10 ENX", "3 3"},
        {0, "INCREX w UBOUND 10 EX 10 ENX", "4 1"},
        {0, "INCREX w BYINT 7 UBOUND 10 EX 10 ENX", "4 0"},
        {0, "increx w enx ubound 10 lbound 0 px 10000 byint 6", "10 6"},
        {0, "INCREX w UBOUND 10 EX 10 ENX", "10 0"},
        {0, "INCREX w BYINT 0 UBOUND 10 EX 10 ENX", "10 0"},
        {9999, "INCREX w UBOUND 10 EX 10 ENX", "10 0"},
        {10000, "INCREX w UBOUND 10 EX 10 ENX", "1 1"},
        {10000, "GET w", "1"},
        {10000, "PTTL w", "10000"},
    };
    RUN(steps);
}

/* The examples of Redis' documentation. */
TEST_WITH(open_harness, close_harness, "the documented examples are answered as documented")
{
    static const struct step steps[] = {
        {0, "INCREX k", "1 1"},
        {0, "INCREX k", "2 1"},
        {0, "SET k 100", "OK"},
        {0, "INCREX k BYINT 5", "105 5"},
        {0, "INCREX k BYINT -10", "95 -10"},
        {0, "DEL k", "1"},
        {0, "INCREX k BYINT 1 EX 100", "1 1"},
        {0, "TTL k", "100"},
        {0, "SET k 10", "OK"},
        {0, "INCREX k BYINT 1 EX 100 ENX", "11 1"},
        {0, "TTL k", "100"},
        {0, "SET k 10 EX 500", "OK"},
        {0, "INCREX k BYINT 1 EX 10 ENX", "11 1"},
        {0, "TTL k", "500"},
        {0, "SET k 5 EX 1000", "OK"},
        {0, "INCREX k BYINT 1 PERSIST", "6 1"},
        {0, "TTL k", "-1"},
        {0, "SET k 99", "OK"},
        {0, "INCREX k BYINT 5 UBOUND 100", "99 0"},
        {0, "SET k 99", "OK"},
        {0, "INCREX k BYINT 5 UBOUND 100 SATURATE", "100 1"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "what is declined changes neither count nor end")
{
    static const struct step steps[] = {
        {0, "INCREX none BYINT 6 UBOUND 5 EX 10", "0 0"},
        {0, "EXISTS none", "0"},
        {0, "SET k 10 EX 500", "OK"},
        {0, "INCREX k UBOUND 10 EX 5", "10 0"},
        {0, "INCREX k BYINT 5 UBOUND 5 PERSIST", "10 0"},
        {0, "INCREX k BYINT -5 LBOUND 6 PX 5", "10 0"},
        {0, "TTL k", "500"},
        {0, "SET k 9223372036854775807 EX 500", "OK"},
        {0, "INCREX k PERSIST", "9223372036854775807 0"},
        {0, "TTL k", "500"},
        {0, "SET k -9223372036854775808", "OK"},
        {0, "INCREX k BYINT -1", "-9223372036854775808 0"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "a saturated sum is the bound and its end is set")
{
    static const struct step steps[] = {
        {0, "INCREX k BYINT 7 UBOUND 5 SATURATE EX 10", "5 5"},
        {0, "INCREX k BYINT 7 UBOUND 5 SATURATE EX 20", "5 0"},
        {0, "TTL k", "20"},
        {0, "INCREX k BYINT -9 LBOUND 1 SATURATE", "1 -4"},
        {0, "SET k 20", "OK"},
        {0, "INCREX k UBOUND 15 SATURATE", "15 -5"},
        {0, "SET k 9223372036854775800", "OK"},
        {0, "INCREX k BYINT 100 SATURATE", "9223372036854775807 7"},
        {0, "SET k -9223372036854775808", "OK"},
        {0, "INCREX k BYINT 0 LBOUND 5 SATURATE", "-ERR applied increment would overflow"},
        {0, "GET k", "-9223372036854775808"},
        {0, "SET k 9223372036854775800", "OK"},
        {0, "INCREX k SATURATE UBOUND -9223372036854775808",
         "-ERR applied increment would overflow"},
        {0, "DEL k", "1"},
        {0, "INCREX k UBOUND 0 SATURATE", "0 0"}, /* the key is made */
        {0, "EXISTS k", "1"},
    };
    RUN(steps);
}

/* What Redis 8.8 makes of values that are beyond a bound already, and of bounds that are met. */
TEST_WITH(open_harness, close_harness, "a value beyond a bound may come back")
{
    static const struct step steps[] = {
        {0, "SET k 50", "OK"},
        {0, "INCREX k BYINT 5 UBOUND 30", "50 0"},
        {0, "INCREX k BYINT -25 UBOUND 30", "25 -25"},
        {0, "SET k 50", "OK"},
        {0, "INCREX k BYINT 5 UBOUND 30 SATURATE", "30 -20"},
        {0, "SET k -50", "OK"},
        {0, "INCREX k BYINT -5 LBOUND -30 SATURATE", "-30 20"},
        {0, "SET k 10", "OK"},
        {0, "INCREX k BYINT 5 LBOUND 20", "10 0"},
        {0, "INCREX k BYINT 5 LBOUND 10 UBOUND 10", "10 0"},
        {0, "INCREX k BYINT 9223372036854775807 UBOUND 100", "10 0"},
        {0, "INCREX k BYINT 9223372036854775807 UBOUND 100 SATURATE", "100 90"},
        {0, "INCREX k LBOUND 0 BYINT 100 UBOUND 100 SATURATE EX 10", "100 0"},
        {0, "TTL k", "10"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "an end may be a time")
{
    static const struct step steps[] = {
        {0, "INCREX k EXAT 1700000010", "1 1"},
        {0, "PTTL k", "9877"},
        {0, "INCREX k PXAT 1700000005123", "2 1"},
        {0, "PTTL k", "5000"},
        {0, "INCREX k EXAT 100 ENX", "3 1"}, /* it has an end already */
        {0, "PTTL k", "5000"},
        {0, "INCREX k EXAT 100", "4 1"},
        {0, "EXISTS k", "0"},
        {0, "SET k 10", "OK"},
        {0, "INCREX k EXAT 100 ENX", "11 1"},
        {0, "EXISTS k", "0"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "wrong options are refused as redis refuses them")
{
    static const char *const syntax[] = {"BYINT 1 BYINT 2",
                                         "LBOUND 0 LBOUND 1",
                                         "SATURATE SATURATE",
                                         "EX 1 PX 1",
                                         "EX 10 EX 20",
                                         "PERSIST PERSIST",
                                         "EX 10 PERSIST",
                                         "PERSIST EX 10",
                                         "PERSIST ENX",
                                         "ENX PERSIST",
                                         "UBOUND",
                                         "BYINT",
                                         "WHAT 5",
                                         "ENX ENX EX 10"};
    for (size_t i = 0; i < sizeof syntax / sizeof *syntax; i++) {
        char command[128];
        snprintf(command, sizeof command, "INCREX k %s", syntax[i]);
        assert_string_equal(redis_harness_ask(*state, 0, command), "-ERR syntax error");
    }
    static const struct step steps[] = {
        {0, "INCREX k ENX UBOUND 5", "-ERR ENX flag requires an expiration"},
        {0, "INCREX k BYINT 1.5", "-ERR Increment is not an integer or out of range"},
        {0, "INCREX k UBOUND abc", "-ERR UBOUND is not an integer or out of range"},
        {0, "INCREX k LBOUND 9223372036854775808", "-ERR LBOUND is not an integer or out of range"},
        {0, "INCREX k LBOUND 10 UBOUND 5", "-ERR LBOUND can't be greater than UBOUND"},
        {0, "INCREX k EX 0", "-ERR invalid expire time in 'increx' command"},
        {0, "INCREX k PXAT -5", "-ERR invalid expire time in 'increx' command"},
        {0, "INCREX k EX 9223372036854775807", "-ERR invalid expire time in 'increx' command"},
        {0, "INCREX k EX x", "-ERR value is not an integer or out of range"},
        {0, "INCREX k BYFLOAT 0.5",
         "-ERR INCREX with BYFLOAT is not served: weir counts in integers; count in a smaller "
         "unit, "
         "with BYINT"},
        {0, "INCREX k NX", "-ERR INCREX with NX, an option of Valkey, is not served"},
        {0, "EXISTS k", "0"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "a counter and a bucket of one name are one key")
{
    static const struct step steps[] = {
        {0, "INCREX k UBOUND 5 EX 10 ENX", "1 1"},
        {0, "CL.THROTTLE k 1 1 1", "0 2 1 -1 1"},
        {0, "INCREX k UBOUND 5 EX 10 ENX", "2 1"},
        {0, "EXISTS k", "1"},
        {0, "PTTL k", "10000"},
        {0, "DEL k", "1"},
        {0, "INCREX k UBOUND 5 EX 10 ENX", "1 1"},
        {0, "CL.THROTTLE k 1 1 1", "0 2 1 -1 1"},
    };
    RUN(steps);
}

TEST_WITH(open_harness, close_harness, "all limits are charged or none is")
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

TEST_WITH(open_harness, close_harness, "checkall names what is wrong and charges nothing")
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

TEST_WITH(open_harness, close_harness, "thirty two limits are one decision")
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

RUN_TESTS()
