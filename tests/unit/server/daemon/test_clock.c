/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, and the one way a date is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/daemon/clock.h"
#include "test.h"

static void check_date(uint64_t wall_s, const char *expected)
{
    char text[WEIR_HTTP_DATE_SIZE];
    weir_clock_http_date(wall_s, text);
    assert_int_equal(strlen(expected), sizeof text);
    assert_memory_equal(text, expected, sizeof text);
}

TEST("dates are written as http wants them")
{
    check_date(0, "Thu, 01 Jan 1970 00:00:00 GMT");
    check_date(784111777, "Sun, 06 Nov 1994 08:49:37 GMT"); /* RFC 9110 5.6.7 */
    check_date(951782400, "Tue, 29 Feb 2000 00:00:00 GMT");
    check_date(4102444799, "Thu, 31 Dec 2099 23:59:59 GMT");
}

TEST("boot time never goes back")
{
    uint64_t last_ns = weir_clock_boot_ns();
    assert_true(last_ns > 0);
    for (int i = 0; i < 10000; i++) {
        uint64_t now_ns = weir_clock_boot_ns();
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
}

TEST("seconds and nanoseconds are of the same clock")
{
    uint64_t before_s = weir_clock_wall_s(), now_s = weir_clock_wall_ns() / 1000000000;
    assert_true(now_s >= before_s && now_s <= before_s + 60);
}

RUN_TESTS()
