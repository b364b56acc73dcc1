/* SPDX-License-Identifier: Apache-2.0 */
/* What storms of refusals say of a fixed window that a server does not state. Answers come 20 ms
 * after their requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/pace/window.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define BEGIN (UINT64_C(1000) * S)

static struct weir_window window;

static int setup(void **state)
{
    window = (struct weir_window){0};
    return 0;
}

static void refused(uint64_t at_ms)
{
    weir_window_refused(&window, BEGIN + at_ms * MS, BEGIN + (at_ms + 20) * MS);
}

static enum weir_window_verdict admitted(uint64_t at_ms)
{
    return weir_window_admitted(&window, BEGIN + at_ms * MS, BEGIN + (at_ms + 20) * MS, true);
}

/* So many in a row, 1 ms apart. */
static void admit(uint64_t from_ms, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(admitted(from_ms + i), WEIR_WINDOW_NOTHING);
}

/* Refusals from `from_ms` to `to_ms`. */
static void storm(uint64_t from_ms, uint64_t to_ms)
{
    refused(from_ms);
    refused(to_ms);
}

static void is_rate(double rate)
{
    assert_true(weir_window_rate(&window) > rate * 0.999 &&
                weir_window_rate(&window) < rate * 1.001);
}

/* Windows of 10 s with 50 requests, from 0 on. */
static void know_fifty_in_ten_seconds(void)
{
    storm(9000, 9800);
    assert_int_equal(admitted(10100), WEIR_WINDOW_MEASURE);
    admit(10200, 49);
    storm(19000, 19900);
    assert_int_equal(admitted(20100), WEIR_WINDOW_KNOWN);
    assert_int_equal(window.limit, 50);
    is_rate(5);
}

TEST_WITH(setup, NULL, "two storms a measured window apart say its limit and length")
{
    know_fifty_in_ten_seconds();
    assert_int_equal(window.lo_ns, 9800 * MS);  /* 19.9 - 10.1 s */
    assert_int_equal(window.hi_ns, 10300 * MS); /* 20.1 - 9.8 s */
    assert_int_equal(weir_window_keep_ns(&window), 3600 * S);
}

TEST_WITH(setup, NULL, "a length that is not usual is the middle of its bounds")
{
    storm(9000, 9800);
    assert_int_equal(admitted(10000), WEIR_WINDOW_MEASURE);
    admit(10100, 49);
    storm(19500, 20800);
    assert_int_equal(admitted(21000), WEIR_WINDOW_KNOWN);
    is_rate(50 / 11.0);
}

TEST_WITH(setup, NULL, "bounds that are far apart say nothing")
{
    storm(5000, 6000);
    assert_int_equal(admitted(10000), WEIR_WINDOW_MEASURE);
    admit(10100, 49);
    storm(15000, 17000);
    assert_int_equal(admitted(22000), WEIR_WINDOW_MEASURE); /* 7 to 16 s */
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "one refusal is no storm")
{
    refused(9900);
    assert_int_equal(admitted(10100), WEIR_WINDOW_MEASURE);
    admit(10200, 49);
    refused(19900);
    refused(19910); /* on its way with the first */
    assert_int_equal(admitted(20100), WEIR_WINDOW_MEASURE);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "a request that was on its way does not end a storm")
{
    storm(9000, 9800);
    assert_int_equal(admitted(10100), WEIR_WINDOW_MEASURE);
    admit(10200, 48);
    refused(19000);
    assert_int_equal(admitted(19005), WEIR_WINDOW_NOTHING);
    refused(19900);
    assert_int_equal(admitted(20100), WEIR_WINDOW_KNOWN);
    assert_int_equal(window.limit, 50);
}

TEST_WITH(setup, NULL, "without a pace the same number twice says it")
{
    storm(1000, 9800);
    for (uint64_t from = 10000; from <= 20000; from += 10000) {
        enum weir_window_verdict verdict =
            weir_window_admitted(&window, BEGIN + from * MS, BEGIN + from * MS, false);
        assert_int_equal(verdict, WEIR_WINDOW_NOTHING);
        admit(from + 1, 49);
        storm(from + 5000, from + 9800);
    }
    assert_int_equal(admitted(30000), WEIR_WINDOW_KNOWN);
    assert_int_equal(window.limit, 50);
    is_rate(5);
}

/* Two windows, the first of which is not used up: twice the same would be a limit of 90 in 20 s. */
TEST_WITH(setup, NULL, "two windows in one are not taken for one")
{
    storm(1000, 9800);
    for (uint64_t from = 10000; from <= 30000; from += 20000) {
        (void)weir_window_admitted(&window, BEGIN + from * MS, BEGIN + from * MS, false);
        admit(from + 1, 89);
        storm(from + 18000, from + 19800);
    }
    (void)admitted(50000);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "a small limit is not measured")
{
    storm(9000, 9800);
    assert_int_equal(admitted(10100), WEIR_WINDOW_MEASURE);
    admit(10200, 8);
    storm(19000, 19900);
    assert_int_equal(admitted(20100), WEIR_WINDOW_MEASURE);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "a later storm narrows the length")
{
    know_fifty_in_ten_seconds();
    storm(49900, 49960);
    assert_int_equal(admitted(50000), WEIR_WINDOW_KNOWN);
    assert_int_equal(window.lo_ns, 9965 * MS);  /* (49.96 - 10.1 s) / 4 */
    assert_int_equal(window.hi_ns, 10050 * MS); /* (50 - 9.8 s) / 4 */
    storm(85000, 87000);                        /* in the midst of a window */
    assert_int_not_equal(admitted(87500), WEIR_WINDOW_KNOWN);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "a storm that narrows nothing ends the knowledge")
{
    know_fifty_in_ten_seconds();
    storm(28000, 29000);
    assert_int_not_equal(admitted(31000), WEIR_WINDOW_KNOWN);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "the fourth refusal of a pace that was kept ends the knowledge")
{
    know_fifty_in_ten_seconds();
    for (uint64_t i = 0; i < 3; i++) {
        refused(21000 + i * 1000);
        assert_int_equal(admitted(21500 + i * 1000), WEIR_WINDOW_KNOWN);
    }
    refused(25000);
    assert_int_equal(admitted(25500), WEIR_WINDOW_MEASURE);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "measurements are few in an hour")
{
    uint64_t at = 1000;
    for (unsigned i = 0; i < WEIR_WINDOW_MEASUREMENTS; i++, at += 1000) {
        refused(at);
        assert_int_equal(admitted(at + 500), WEIR_WINDOW_MEASURE);
    }
    refused(at);
    assert_int_equal(admitted(at + 500), WEIR_WINDOW_NOTHING);
    at += 3600 * 1000;
    refused(at);
    assert_int_equal(admitted(at + 500), WEIR_WINDOW_MEASURE);
}

TEST_WITH(setup, NULL, "a measurement that takes too long is none")
{
    storm(9000, 9800);
    assert_int_equal(admitted(10000), WEIR_WINDOW_MEASURE); /* for 20 s */
    admit(10100, 49);
    storm(31000, 39900);
    assert_int_equal(admitted(40000), WEIR_WINDOW_MEASURE);
    assert_int_equal(window.limit, 0);
}

TEST_WITH(setup, NULL, "what is read from a file is checked")
{
    uint64_t now = BEGIN + 30 * S;
    assert_true(weir_window_valid(&window, now));
    know_fifty_in_ten_seconds();
    assert_true(weir_window_valid(&window, now));
    struct weir_window good = window;
    window.lo_ns = 0;
    assert_false(weir_window_valid(&window, now));
    window = good;
    window.hi_ns = UINT64_MAX;
    assert_false(weir_window_valid(&window, now));
    window = good;
    window.begin_hi_ns = now + 1;
    assert_false(weir_window_valid(&window, now));
    window = good;
    window.measuring_ns = UINT64_MAX;
    assert_false(weir_window_valid(&window, now));
}

RUN_TESTS()
