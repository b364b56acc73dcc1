/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's own rates: their text, which host has which, and the bucket of one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "client/pace/own.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define START (1000 * S)

static struct weir_own_rate rate_of(const char *text, const char *origin)
{
    struct weir_own_rates rates;
    struct weir_reason reason;

    assert_int_equal(weir_own_parse(&rates, text, &reason), 0);
    return weir_own_of(&rates, origin);
}

TEST("a rate is a number in a period, with a burst")
{
    static const struct {
        const char *text;
        uint64_t interval_ns, credit_ns;
    } cases[] = {
        {"10/s", 100 * MS, 0},
        {" 10/s ", 100 * MS, 0},
        {"1/s", S, 0},
        {"600/min", 100 * MS, 0},
        {"5/10s burst 5", 2 * S, 8 * S},
        {"3/s", 333333334, 0}, /* rounded up: never more than the rate */
        {"1000000000/s", 1, 0},
        {"1/100ms", 100 * MS, 0},
        {"90/h burst 2", 40 * S, 40 * S},
        {"1/31d", 31 * 86400 * S, 0},
        {"1/31d burst 2", 31 * 86400 * S, 31 * 86400 * S},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_own_rate rate = rate_of(cases[i].text, "https://a:443");
        assert_int_equal(rate.interval_ns, cases[i].interval_ns);
        assert_int_equal(rate.credit_ns, cases[i].credit_ns);
    }
}

TEST("what is no rate is refused with a form that works")
{
    static const char *const cases[] = {"",
                                        " ",
                                        "10",
                                        "10/",
                                        "/s",
                                        "0/s",
                                        "10/0s",
                                        "10/x",
                                        "10/s x",
                                        "10/s burst",
                                        "-1/s",
                                        "10/32d",
                                        "10/s burst 0",
                                        "10/s,",
                                        "10/s,5/s",
                                        "a=5/s,a=1/s",
                                        "=5/s",
                                        "a b=5/s",
                                        "a/b=5/s",
                                        "1000000001/s",
                                        "1.5/s",
                                        "1/31d burst 3"};
    struct weir_own_rates rates;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_reason reason = {""};
        int error = weir_own_parse(&rates, cases[i], &reason);
        assert_true(error == WEIR_ERR_SYNTAX || error == WEIR_ERR_RANGE);
        assert_true(reason.text[0] != '\0');
    }
}

TEST("sixteen hosts have a rate, and the seventeenth is refused")
{
    char text[400] = "";
    struct weir_own_rates rates;
    struct weir_reason reason;

    for (int i = 0; i < 17; i++) {
        size_t size = strlen(text);
        assert_int_equal(weir_own_parse(&rates, size > 0 ? text : "1/s", &reason), 0);
        snprintf(text + size, sizeof text - size, "%sh%d=1/s", size > 0 ? "," : "", i);
    }
    assert_int_equal(weir_own_parse(&rates, text, &reason), WEIR_ERR_RANGE);
}

TEST("a host's own rate goes before that of all others and its port before both")
{
    const char *text = "10/s, API.example.com=5/s, api.example.com:8443=2/s, [2001:db8::1]=1/s";

    assert_int_equal(rate_of(text, "https://other:443").interval_ns, 100 * MS);
    assert_int_equal(rate_of(text, "https://api.example.com:443").interval_ns, 200 * MS);
    assert_int_equal(rate_of(text, "https://api.example.com:8443").interval_ns, 500 * MS);
    assert_int_equal(rate_of(text, "https://api.example.com.evil:443").interval_ns, 100 * MS);
    assert_int_equal(rate_of(text, "http://[2001:db8::1]:80").interval_ns, S);
    assert_int_equal(rate_of("a=1/s", "https://b:443").interval_ns, 0);
}

TEST("a bucket never admits more than its burst and its rate in any window")
{
    struct weir_own_rate rate = rate_of("7/s burst 3", "https://a:443");
    uint64_t full = 0, now = START, seed = 3, sent[4000];
    size_t count = 0;

    for (int i = 0; i < 20000 && count < 4000; i++) {
        now += weir_random_up_to(&seed, i % 50 == 0 ? S : 100 * MS);
        if (weir_own_when(&rate, full) > now)
            continue;
        full = weir_own_send(&rate, full, now);
        assert_true(weir_own_valid(full, now));
        sent[count++] = now;
    }
    assert_true(count > 1000);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < count && j < i + 50; j++)
            /* j - i + 1 requests, 3 of them at once, and then 7 a second */
            assert_true((j - i + 1 - 3 + 0.0) <= (double)(sent[j] - sent[i]) * 7 / 1e9 + 1e-6 ||
                        j - i + 1 <= 3);
}

TEST("a request that waits until the stated time goes then and never before")
{
    struct weir_own_rate rate = rate_of("10/s burst 2", "https://a:443");
    uint64_t full = 0;

    for (int i = 0; i < 2; i++) {
        assert_true(weir_own_when(&rate, full) <= START);
        full = weir_own_send(&rate, full, START);
    }
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(weir_own_when(&rate, full), START + i * 100 * MS);
        full = weir_own_send(&rate, full, START + i * 100 * MS);
    }
}

TEST("without a rate a state stays as it is and a wrong one is seen")
{
    struct weir_own_rate none = {0, 0};

    assert_int_equal(weir_own_when(&none, START), 0);
    assert_int_equal(weir_own_send(&none, 5, START), 5);
    assert_true(weir_own_valid(START + 2 * WEIR_OWN_PERIOD_MAX_NS, START));
    assert_false(weir_own_valid(START + 2 * WEIR_OWN_PERIOD_MAX_NS + 1, START));
}

RUN_TESTS()
