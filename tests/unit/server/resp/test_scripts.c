/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts of limiter libraries, by their hashes: what each answers, at times of the test's
 * choice. The libraries themselves are in test_limiter_libraries.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis_steps.h"
#include "server/resp/script/known.h"
#include "test.h"

struct call {
    uint64_t t_ms;
    enum weir_script script;
    const char *arguments, *reply;
};

/* One of the hashes of a script. */
static const char *sha_of(enum weir_script script)
{
    for (unsigned i = 0; i < weir_known_script_count; i++)
        if (weir_known_scripts[i].script == script)
            return weir_known_scripts[i].sha;
    fail_msg("no script %d", (int)script);
    return NULL;
}

static void run_calls(struct redis_harness *harness, const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char command[256];
        snprintf(command, sizeof command, "EVALSHA %s %s", sha_of(calls[i].script),
                 calls[i].arguments);
        const char *reply = redis_harness_ask(harness, calls[i].t_ms, command);
        if (strcmp(reply, calls[i].reply) != 0)
            fail_msg("call %zu: %s: got %s, want %s", i, command, reply, calls[i].reply);
    }
}
#define RUN_CALLS(calls) run_calls(*state, (calls), sizeof(calls) / sizeof *(calls))

TEST("hashes are in order")
{
    bool seen[WEIR_SCRIPTS] = {false};
    for (unsigned i = 0; i < weir_known_script_count; i++) {
        assert_int_equal(strlen(weir_known_scripts[i].sha), WEIR_SCRIPT_SHA);
        assert_true(i == 0 || strcmp(weir_known_scripts[i - 1].sha, weir_known_scripts[i].sha) < 0);
        seen[weir_known_scripts[i].script] = true;
    }
    for (int i = 0; i < WEIR_SCRIPTS; i++)
        assert_true(seen[i]);
}

TEST_WITH(open_harness, close_harness, "windows begin with their first hit")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_INCREMENT_NEW, "1 a 3 10", "3 10000"},
        {4000, WEIR_SCRIPT_INCREMENT_NEW, "1 a 2 10 5 10", "5 6000"},
        {4000, WEIR_SCRIPT_COUNT_AND_LIFE, "1 a", "5 6000"},
        {10001, WEIR_SCRIPT_INCREMENT_NEW, "1 a 1 10", "1 10000"},
        {0, WEIR_SCRIPT_COUNT_AND_LIFE, "1 none", "nil -2"},
        {0, WEIR_SCRIPT_WINDOW, "1 b 5000", "1 5000"},
        {1000, WEIR_SCRIPT_WINDOW, "1 b 5000", "2 4000"},
        {6000, WEIR_SCRIPT_WINDOW, "1 b 5000", "1 5000"},
        {7000, WEIR_SCRIPT_WINDOW_OR_RESET, "1 b 1 5000", "2 5000"},
        {8000, WEIR_SCRIPT_WINDOW_OR_RESET, "1 b 0 5000", "3 4000"},
        {0, WEIR_SCRIPT_INCREMENT, "1 c 60 5", "5"},
        {0, WEIR_SCRIPT_INCREMENT, "1 c 60", "6"},
        {60001, WEIR_SCRIPT_INCREMENT, "1 c 60 2", "2"},
        {0, WEIR_SCRIPT_FIXED, "1 d 60 2 2", "0 2"},
        {0, WEIR_SCRIPT_FIXED, "1 d 60 2 1", "1 3"},
        {0, WEIR_SCRIPT_INCREMENT_MS, "1 e 4 700", "4 700"},
        {200, WEIR_SCRIPT_INCREMENT_MS, "1 e 1 700", "5 500"},
        {200, WEIR_SCRIPT_COUNT_OR_ZERO, "1 e", "5 500"},
        {900, WEIR_SCRIPT_COUNT_OR_ZERO, "1 e", "0 0"},
    };
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "windows slide")
{
    /* 10 within 10 s. At 10 s the count moves to the window before, of which 100 % are left. */
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_SLIDING_TAKE, "2 p q 10 10 11", "nil"},
        {0, WEIR_SCRIPT_SLIDING_TAKE, "2 p q 10 10 8", "1"},
        {0, WEIR_SCRIPT_SLIDING_TAKE, "2 p q 10 10 3", "nil"},
        {0, WEIR_SCRIPT_SLIDING_COUNTS, "2 p q 10", "nil -2 8 20000"},
        {12500, WEIR_SCRIPT_SLIDING_TAKE, "2 p q 10 10 5", "nil"}, /* 8 * 75 % = 6 */
        {12500, WEIR_SCRIPT_SLIDING_TAKE, "2 p q 10 10 4", "1"},
        {12500, WEIR_SCRIPT_SLIDING_COUNTS, "2 p q 10", "8 7500 4 17500"},
    };
    RUN_CALLS(calls);
}

/* The windows are those of the clock. The harness begins 20.123 s after one of 60 s did. */
TEST_WITH(open_harness, close_harness, "two windows count what their version counts")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_TWO_WINDOWS, "2 a b 60 2 2 0", "nil 2 0"},
        {0, WEIR_SCRIPT_TWO_WINDOWS, "2 a b 60 2 1 0", "1 3 39.877000000"},
        {0, WEIR_SCRIPT_TWO_WINDOWS, "2 a b 60 2 1 0", "1 3 39.877000000"},
        {0, WEIR_SCRIPT_TWO_WINDOWS, "2 a b 60 2 0 0", "nil 2 0"},
        {0, WEIR_SCRIPT_COUNT_AND_LIFE, "1 a", "2 180000"},
        {0, WEIR_SCRIPT_TWO_WINDOWS_ALL, "2 c d 60 2 2 0", "nil 2 0"},
        {0, WEIR_SCRIPT_TWO_WINDOWS_ALL, "2 c d 60 2 1 0", "1 3 39.877000000"},
        {0, WEIR_SCRIPT_TWO_WINDOWS_ALL, "2 c d 60 2 1 0", "1 4 39.877000000"},
        {0, WEIR_SCRIPT_TWO_WINDOWS_ALL, "2 c d 60 2 0 0", "1 4 39.877000000"},
        {0, WEIR_SCRIPT_COUNT_AND_LIFE, "1 c", "4 180000"},
        {0, WEIR_SCRIPT_TWO_WINDOWS_ALL, "2 e c 60 2 1 0", "1 3 19.938500000"},
    };
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "a counter without an end is what the version makes of it")
{
    static const struct step counters[] = {
        {0, "SET a 5", "OK"}, {0, "SET b 5", "OK"}, {0, "SET c 5", "OK"}, {0, "SET d 5", "OK"}};
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_INCREMENT_NEW, "1 a 1 10", "6 10000"},
        {0, WEIR_SCRIPT_INCREMENT_KEPT, "1 b 1 10", "6 -1"},
        {0, WEIR_SCRIPT_INCREMENT_KEPT, "1 new 1 10", "1 10000"},
        {0, WEIR_SCRIPT_COUNT_THEN_LIFE, "1 c 0 10000", "6 10000"},
        {1000, WEIR_SCRIPT_COUNT_THEN_LIFE, "1 c 0 10000", "7 9000"},
        {1000, WEIR_SCRIPT_COUNT_THEN_LIFE, "1 c 1 10000", "8 10000"},
        {0, WEIR_SCRIPT_WINDOW_OR_RESET, "1 d 0 10000", "1 10000"},
    };
    RUN(counters);
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "a value is swapped for the one that was seen")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_SWAP, "1 s 1 2 60", "-key does not exist"},
        {0, WEIR_SCRIPT_INCREMENT, "1 s 60 1700000000000000000", "1700000000000000000"},
        {0, WEIR_SCRIPT_SWAP, "1 s 5 6 60", "0"},
        {0, WEIR_SCRIPT_SWAP, "1 s 1700000000000000000 1800000000000000000 60", "1"},
        {0, WEIR_SCRIPT_COUNT_AND_LIFE, "1 s", "1800000000000000000 60000"},
    };
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "buckets are exact")
{
    /* Ten per minute, ten at once: one in six seconds. */
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_RATE, "1 r 10 10 60 4", "4 6 -1 24"},
        {0, WEIR_SCRIPT_RATE, "1 r 10 10 60 7", "0 0 6 24"},
        {1500, WEIR_SCRIPT_RATE, "1 r 10 10 60 7", "0 0 4.500000000 22.500000000"},
        {6000, WEIR_SCRIPT_RATE, "1 r 10 10 60 7", "7 0 -1 60"},
        {6000, WEIR_SCRIPT_RATE_AT_MOST, "1 r 10 10 60 3", "0 0 6 60"},
        {18000, WEIR_SCRIPT_RATE_AT_MOST, "1 r 10 10 60 3", "2 0 -1 60"},
        {48000, WEIR_SCRIPT_RATE_AT_MOST, "1 r 10 10 60 3", "3 2 -1 48"},
        {0, WEIR_SCRIPT_RATE, "1 half 1 1 0.5 1", "1 0 -1 0.500000000"},
        {0, WEIR_SCRIPT_BUCKET, "1 t 0.16666666666666666 10 4", "nil 6"},
        {0, WEIR_SCRIPT_BUCKET, "1 t 0.16666666666666666 10 7", "1 6"},
        {6000, WEIR_SCRIPT_BUCKET, "1 t 0.16666666666666666 10 7", "nil 0"},
        {0, WEIR_SCRIPT_GCRA, "1 g 6.0 10 4", "0 6 24 0"},
        {0, WEIR_SCRIPT_GCRA, "1 g 6.0 10 7", "1 6 24 6"},
        {0, WEIR_SCRIPT_GCRA_PEEK, "1 g 6.0 10", "0 6 24 0"},
        {0, WEIR_SCRIPT_GCRA, "1 g 6.0 10 6", "0 0 60 0"},
        {0, WEIR_SCRIPT_GCRA_PEEK, "1 g 6.0 10", "1 0 60 6"},
        {0, WEIR_SCRIPT_SPRING, "2 k1 k2 1 5 0 3", "1 2"},
        {0, WEIR_SCRIPT_SPRING, "2 k1 k2 1 5 0 3", "0 2"},
        {1000, WEIR_SCRIPT_SPRING, "2 k1 k2 1 5 0 3", "1 0"},
    };
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "a log moves")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_MOVING_COUNT, "1 m 0 5", "nil"},
        {0, WEIR_SCRIPT_MOVING_TAKE, "1 m 0 5 60 6", "nil"},
        {0, WEIR_SCRIPT_MOVING_TAKE, "1 m 0 5 60 3", "1"},
        {10000, WEIR_SCRIPT_MOVING_TAKE, "1 m 0 5 60", "1"},
        {10000, WEIR_SCRIPT_MOVING_TAKE, "1 m 0 5 60 2", "nil"},
        {61000, WEIR_SCRIPT_MOVING_TAKE, "1 m 0 5 60 4", "1"},
    };
    RUN_CALLS(calls);
    char command[128];
    snprintf(command, sizeof command, "EVALSHA %s 1 m 0 5", sha_of(WEIR_SCRIPT_MOVING_COUNT));
    const char *reply = redis_harness_ask(*state, 61000, command);
    assert_non_null(strstr(reply, " 5"));
}

TEST_WITH(open_harness, close_harness, "what laravel asks")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_LARAVEL_ADD, "1 l 0 60", "OK"},
        {0, WEIR_SCRIPT_LARAVEL_ADD, "1 l 0 60", "nil"},
        {60001, WEIR_SCRIPT_LARAVEL_ADD, "1 l 0 60", "OK"},
    };
    RUN_CALLS(calls);
    char command[128];
    long ends = 0;
    int acquired = 0, remaining = 0;
    snprintf(command, sizeof command, "EVALSHA %s 1 d 0 0 60 2",
             sha_of(WEIR_SCRIPT_LARAVEL_DURATION));
    for (int i = 0; i < 2; i++) {
        const char *reply = redis_harness_ask(*state, 0, command);
        assert_int_equal(sscanf(reply, "%d %ld %d", &acquired, &ends, &remaining), 3);
        assert_int_equal(remaining, 1 - i);
    }
    assert_memory_equal(redis_harness_ask(*state, 0, command), "nil ", 4);
    snprintf(command, sizeof command, "EVALSHA %s 1 d 0 0 60 2",
             sha_of(WEIR_SCRIPT_LARAVEL_TOO_MANY));
    long same = 0;
    assert_int_equal(sscanf(redis_harness_ask(*state, 0, command), "%ld %d", &same, &remaining), 2);
    assert_int_equal(same, ends);
    assert_int_equal(remaining, -1);
}

TEST_WITH(open_harness, close_harness, "what fastify counts")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_FASTIFY_READ, "1 a", "0 0"},
        {0, WEIR_SCRIPT_FASTIFY, "1 a 1000 2 false false", "1 1000"},
        {400, WEIR_SCRIPT_FASTIFY, "1 a 1000 2 false false", "2 600"},
        {400, WEIR_SCRIPT_FASTIFY, "1 a 1000 2 false false", "3 600"},
        {500, WEIR_SCRIPT_FASTIFY, "1 a 1000 2 true false", "4 1000"},
        {600, WEIR_SCRIPT_FASTIFY_READ, "1 a", "4 900"},
        {600, WEIR_SCRIPT_FASTIFY, "1 a 1000 2 false true", "5 4000"}, /* 1000 * 2^2 */
        {600, WEIR_SCRIPT_FASTIFY, "1 a 1000 2 true true", "6 1000"},
        {600, WEIR_SCRIPT_FASTIFY_LIFE, "1 a 1000 9 false", "7 1000"},
        {600, WEIR_SCRIPT_FASTIFY_LIFE, "1 b 1000 1 false true", "1 1000"},
        {600, WEIR_SCRIPT_FASTIFY_LIFE, "1 b 1000 1 false true", "2 1000"}, /* 1000 * 2^0 */
        {600, WEIR_SCRIPT_FASTIFY_LIFE, "1 b 1000 1 false true", "3 2000"},
        {600, WEIR_SCRIPT_FASTIFY_BAN, "1 c 1000 1 1 false", "1 1000 nil"},
        {600, WEIR_SCRIPT_FASTIFY_BAN, "1 c 1000 1 1 false", "2 1000 nil"},
        {700, WEIR_SCRIPT_FASTIFY_BAN, "1 c 1000 1 1 false", "3 900 1"},
        {700, WEIR_SCRIPT_FASTIFY_BAN, "1 c 1000 1 -1 true", "4 1000 nil"},
    };
    RUN_CALLS(calls);
    /* However often the limit is passed, the window stays one that a counter can have. */
    char command[128];
    snprintf(command, sizeof command, "EVALSHA %s 1 d 1000 0 false true",
             sha_of(WEIR_SCRIPT_FASTIFY));
    for (int i = 0; i < 90; i++)
        redis_harness_ask(*state, 700, command);
    assert_string_equal(redis_harness_ask(*state, 700, command), "91 31622400000");
}

TEST_WITH(open_harness, close_harness, "what nest blocks")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_NEST, "2 h b default 1000 2 5000", "1 1000 0 0"},
        {100, WEIR_SCRIPT_NEST, "2 h b default 1000 2 5000", "2 900 0 0"},
        {200, WEIR_SCRIPT_NEST, "2 h b default 1000 2 5000", "3 800 1 5000"},
        {1100, WEIR_SCRIPT_NEST, "2 h b default 1000 2 5000", "1 1000 1 4100"},
        {5199, WEIR_SCRIPT_NEST, "2 h b default 1000 2 5000", "1 1000 1 1"},
        {5200, WEIR_SCRIPT_NEST, "2 h b default 1000 2 5000", "2 999 0 0"},
    };
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "what fastapi limiter waits")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_FASTAPI, "1 a 2 1000", "0"},
        {100, WEIR_SCRIPT_FASTAPI, "1 a 2 1000", "0"},
        {300, WEIR_SCRIPT_FASTAPI, "1 a 2 1000", "700"},
        {1000, WEIR_SCRIPT_FASTAPI, "1 a 2 1000", "0"},
    };
    RUN_CALLS(calls);
}

/* Seconds since 1970: the harness begins at 1,700,000,000.123. */
TEST_WITH(open_harness, close_harness, "what koa remains")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_KOA, "1 a 9.5 10000 2 1", "2 1700000000 2"},
        {0, WEIR_SCRIPT_KOA, "1 a 9.5 10000 2 0", "2 1700000010 2"},
        {4000, WEIR_SCRIPT_KOA, "1 a 9.5 10000 2", "1 1700000014 2"},
        {5000, WEIR_SCRIPT_KOA, "1 a 9.5 10000 2 0", "0 1700000010 2"},
        {5000, WEIR_SCRIPT_KOA, "1 a 9.5 10000 2 1", "0 1700000010 2"},
        {10000, WEIR_SCRIPT_KOA, "1 a 9.5 10000 2 0", "1 1700000020 2"},
        {10000, WEIR_SCRIPT_KOA, "1 a 9.5 10000 10001 0",
         "-ERR ARGV[3] of this script is out of range: '10001'"},
    };
    RUN_CALLS(calls);
}

TEST_WITH(open_harness, close_harness, "all rates of pyrate are charged or none")
{
    /* 2 in 1 s and 3 in 10 s. The client's clock is far away. */
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 1 x 2 49000 2 1 40000 3 2", "-1 -1"},
        {0, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 1 x 2 49000 2 1 40000 3 2", "-1 -1"},
        {500, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 1 x 2 49000 2 1 40000 3 2", "0 1700000000123"},
        {1000, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 2 x 2 49000 2 0 40000 3 1",
         "1 1700000000123"},
        {1000, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 1 x 2 49000 2 1 40000 3 2", "-1 -1"},
        {2000, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 3 x 2 49000 2 -1 40000 3 0", "0 -1"},
        {0, WEIR_SCRIPT_PYRATE_INTERVALS, "1 b 50000 2 x 2 1000 2 10000 3", "-1"},
        {1000, WEIR_SCRIPT_PYRATE_INTERVALS, "1 b 50000 2 x 2 1000 2 10000 3", "1"},
        {1000, WEIR_SCRIPT_PYRATE_INTERVALS, "1 b 50000 1 x 2 1000 2 10000 3", "-1"},
        {0, WEIR_SCRIPT_PYRATE_GCRA, "1 c 50000 2 60000 2 500000 2 3000000 3", "-1 0"},
        {0, WEIR_SCRIPT_PYRATE_GCRA, "1 c 50000 1 60000 2 500000 2 3000000 3", "0 500"},
        {1000, WEIR_SCRIPT_PYRATE_GCRA, "1 c 50000 2 60000 2 500000 2 3000000 3", "1 2000"},
        {1000, WEIR_SCRIPT_PYRATE_GCRA, "1 c 50000 3 60000 2 500000 2 3000000 3", "0 -1"},
        {1000, WEIR_SCRIPT_PYRATE_GCRA, "1 c 50000 1 60000 17 500000 2",
         "-ERR ARGV[4] of this script is out of range: '17'"},
        {1000, WEIR_SCRIPT_PYRATE_GCRA, "1 c 50000 1 60000 2 500000 2",
         "-ERR this script takes 2 arguments for each rate"},
    };
    RUN_CALLS(calls);
    assert_string_equal(redis_harness_ask(*state, 1000, "ZREMRANGEBYSCORE a 0 1"), "0");
}

/* 2 in 1 s and 3 in 10 s. The clock is at 1,700,000,000.123 s at first. */
TEST_WITH(open_harness, close_harness, "fixed windows of pyrate are those that the client names")
{
#define FIXED(t_ms, now, weight, second, ten_seconds, reply)                                       \
    {                                                                                              \
        (t_ms), WEIR_SCRIPT_PYRATE_WINDOWS,                                                        \
            "1 a 1700000" now " " weight " x 2 1700000" second " 2 -1 1700000" ten_seconds         \
            " 3 -1",                                                                               \
            (reply)                                                                                \
    }
    static const struct call calls[] = {
        FIXED(0, "000123", "1", "000000", "000000", "-1 -1"),
        FIXED(10, "000123", "2", "000000", "000000", "0 -1"),
        FIXED(20, "000124", "1", "000000", "000000", "-1 -1"),
        FIXED(800, "000923", "1", "000000", "000000", "0 -1"),
        FIXED(900, "001001", "2", "001000", "000000", "1 -1"), /* its clock decides */
        FIXED(900, "001001", "1", "001000", "000000", "-1 -1"),
        FIXED(901, "000999", "1", "000000", "000000", "1 -1"), /* one behind it */
        FIXED(1900, "002010", "1", "002000", "000000", "1 -1"),
        FIXED(9900, "010010", "2", "010000", "010000", "-1 -1"),
        FIXED(9900, "010010", "3", "010000", "010000", "0 -1"), /* a weight that never fits */
        FIXED(9900, "010010", "0", "010000", "010000", "-1 -1"),
        /* A weight of one above all limits says nothing of the kind, nor when the window began. */
        {9900, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 1700000010000 3 x 1 1700000010000 2 -1", "0 -1"},
        {9900, WEIR_SCRIPT_PYRATE_WINDOWS, "1 log 50000 3 x 1 49000 2 -1", "0 -1"},
        FIXED(9900, "130010", "1", "130000", "130000",
              "-ERR the client's clock is more than a minute apart from weir's, and it says when "
              "the fixed windows of pyrate-limiter begin"),
        {9900, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 1700000010010 1 x 1 1700000010011 2 -1",
         "-ERR ARGV[5] of this script is out of range: '1700000010011'"},
        {9900, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 1700000010010 1 x 1 1700000010000 2097152 -1",
         "-ERR ARGV[6] of this script is out of range: '2097152'"},
    };
    static const struct step steps[] = {
        {9900, "ZCARD a", "2"},
        {9900, "ZRANGE a -1 -1 WITHSCORES", "item 1700000010000"}, /* when the window began */
        {9900, "ZRANGE a -2 -2 WITHSCORES", "item 1700000010000"},
        {9900, "ZRANGE a -3 -3 WITHSCORES", ""},
        {9900, "TTL a", "31622400"}, /* the counter of 1 s had ended */
        {9900, "ZREMRANGEBYSCORE a 0 1700000010000", "0"},
        {9900, "ZREMRANGEBYSCORE a 0 1700000020000", "2"},
        {9900, "ZCARD a", "0"},
        {9900, "SET a -1", "OK"},
        {9900, "ZCARD a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
    };
    static const struct call after[] = {
        FIXED(9900, "010010", "1", "010000", "010000",
              "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    };
    RUN_CALLS(calls);
    RUN(steps);
    RUN_CALLS(after);
#undef FIXED
}

/* Its first window may be any that began then; what the second tells is how long both are. */
TEST_WITH(open_harness, close_harness, "a fixed window of pyrate outlives its counter never")
{
    static const struct call first[] = {
        {0, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 1700000000123 1 x 1 1699992000000 1 -1", "-1 -1"}};
    static const struct step lives_long[] = {{0, "TTL a", "31622400"}};
    static const struct call second[] = {
        {1600000, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 1700001600123 1 x 1 1699992000000 1 -1", "0 -1"},
        {1600000, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 1700001600123 1 x 1 1700001600000 1 -1",
         "-1 -1"}};
    static const struct step lives_a_window[] = {{1600000, "TTL a", "4800"}};
    RUN_CALLS(first);
    RUN(lives_long);
    RUN_CALLS(second);
    RUN(lives_a_window);
}

TEST_WITH(open_harness, close_harness, "what pyrate counts and peeks at")
{
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 2 x 2 49000 4 2 40000 5 3", "-1 -1"},
        {700, WEIR_SCRIPT_PYRATE_WINDOWS, "1 a 50000 1 x 2 49000 4 3 40000 5 4", "-1 -1"},
    };
    static const struct step steps[] = {
        {1700, "ZCARD a", "3"}, /* by the longer one */
        {1700, "ZRANGE a -1 -1 WITHSCORES", "item 1700000000823"},
        {1700, "ZRANGE a -2 -2 withscores", "item 1700000000123"},
        {1700, "ZRANGE a -3 -3 WITHSCORES", "item 1700000000123"},
        {1700, "ZRANGE a -4 -4 WITHSCORES", ""},
        {1700, "ZCARD none", "0"},
        {1700, "ZRANGE none -1 -1 WITHSCORES", ""},
        {1700, "ZRANGE a 0 0 WITHSCORES",
         "-ERR weir serves ZRANGE key -n -n WITHSCORES, as pyrate-limiter asks, and no other"},
        {1700, "ZRANGE a x 0", "-ERR value is not an integer or out of range"},
        {1700, "HELLO 3", NULL},
        {1700, "ZRANGE a -1 -1 WITHSCORES", "item ,1700000000823"},
        {1700, "DEL a", "1"}, /* of all rates */
        {1700, "ZCARD a", "0"},
        {1700, "DEL a", "0"},
    };
    RUN_CALLS(calls);
    static const struct call buckets[] = {
        {700, WEIR_SCRIPT_PYRATE_GCRA, "1 b 50000 2 60000 2 500000 2 3000000 3", "-1 0"}};
    static const struct step owed[] = {
        {700, "HMGET b tat1 tat2", "1700000001823457 1700000006823457"},
        {1700, "HMGET b tat1 tat2", "nil 1700000006823457"},
        {1700, "HMGET none tat1", "nil"},
        {1700, "HMGET b tat2",
         "-ERR weir serves HMGET key tat1 tat2 .., as pyrate-limiter asks, and no other"},
        {1700, "HMGET b field",
         "-ERR weir serves HMGET key tat1 tat2 .., as pyrate-limiter asks, and no other"},
    };
    RUN_CALLS(buckets);
    RUN(owed);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const char *reply = redis_harness_ask(*state, steps[i].t_ms, steps[i].command);
        if (steps[i].reply)
            assert_string_equal(reply, steps[i].reply);
    }
}

TEST_WITH(open_harness, close_harness, "a library that is not served is named")
{
    assert_memory_equal(redis_harness_ask(*state, 0, "EVAL \"local x = job_expirations_key\" 0"),
                        "-ERR bottleneck's clustering is a queue", 39);
    assert_memory_equal(redis_harness_ask(*state, 0, "SET k \x80\x04\x95. EX 60"),
                        "-ERR weir keeps 64-bit integers only", 36);
}

TEST_WITH(open_harness, close_harness, "what is unknown or wrong is said")
{
    static const char unknown[] = "-ERR weir runs no Lua, and does not know this script "
                                  "(e0e1f9fabfc9d4800c877a703b823ac0578ff8db). It knows those of ";
    char command[160];
    const char *reply = redis_harness_ask(*state, 0, "EVAL \"return 1\" 0");
    assert_memory_equal(reply, unknown, sizeof unknown - 1);
    assert_non_null(strstr(reply, "rate-limiter-flexible"));
    assert_non_null(strstr(reply, ": see docs/limiter-libraries.md"));
    assert_memory_equal(redis_harness_ask(*state, 0, "SCRIPT LOAD \"return 1\""), unknown,
                        sizeof unknown - 1);
    assert_string_equal(redis_harness_ask(*state, 0, "EVALSHA abc 0"),
                        "-NOSCRIPT No matching script. Please use EVAL.");
    assert_string_equal(redis_harness_ask(*state, 0, "SCRIPT FLUSH"), "OK");
    snprintf(command, sizeof command, "SCRIPT EXISTS %s x", sha_of(WEIR_SCRIPT_RATE));
    assert_string_equal(redis_harness_ask(*state, 0, command), "1 0");
    static const struct call calls[] = {
        {0, WEIR_SCRIPT_RATE, "2 a", "-ERR Number of keys can't be greater than number of args"},
        {0, WEIR_SCRIPT_RATE, "-1 a", "-ERR Number of keys can't be negative"},
        {0, WEIR_SCRIPT_RATE, "x a", "-ERR value is not an integer or out of range"},
        {0, WEIR_SCRIPT_RATE, "1 a 1", "-ERR this script takes 1 keys and 4 arguments"},
        {0, WEIR_SCRIPT_RATE, "1 a 0 1 1 1", "-ERR ARGV[1] of this script is out of range: '0'"},
        {0, WEIR_SCRIPT_RATE, "1 a 1 1 nan 1",
         "-ERR ARGV[3] of this script is out of range: 'nan'"},
        {0, WEIR_SCRIPT_RATE, "1 a 1 1 0x1 1",
         "-ERR ARGV[3] of this script is out of range: '0x1'"},
        {0, WEIR_SCRIPT_MOVING_TAKE, "1 a 0 10001 1 1",
         "-ERR ARGV[2] of this script is out of range: '10001'"},
        {0, WEIR_SCRIPT_INCREMENT_NEW, "1 a 1 0",
         "-ERR ARGV[2] of this script is out of range: '0'"},
    };
    RUN_CALLS(calls);
}

RUN_TESTS()
