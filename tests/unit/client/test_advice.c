/* SPDX-License-Identifier: Apache-2.0 */
/* Header fields of every dialect, and what cannot be true in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/advice.h"
#include "client/instant.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define NOW INT64_C(1800000000) /* Fri, 15 Jan 2027 08:00:00 GMT */
#define UNKNOWN WEIR_ADVICE_UNKNOWN

static struct weir_advice read;

/* "Name: value" lines. */
static void give(const char *fields)
{
    weir_advice_begin(&read);
    while (*fields != '\0') {
        size_t name = strcspn(fields, ":"), line = strcspn(fields, "\n");
        weir_advice_field(&read, (struct weir_bytes){fields, name},
                          (struct weir_bytes){fields + name + 1, line - name - 1});
        fields += line + (fields[line] == '\n');
    }
    weir_advice_finish(&read, NOW);
}

static void expect(const char *name, uint64_t limit, uint64_t remaining, uint64_t window_ns,
                   uint64_t reset_ns)
{
    for (uint32_t i = 0; i < read.count; i++) {
        const struct weir_advice_policy *stated = &read.policies[i];
        if (strcmp(stated->name, name) != 0)
            continue;
        assert_int_equal(stated->limit, limit);
        assert_int_equal(stated->remaining, remaining);
        assert_int_equal(stated->window_ns, window_ns);
        assert_int_equal(stated->reset_ns, reset_ns);
        return;
    }
    fail_msg("no policy '%s'", name);
}

TEST("the newest draft")
{
    give("RateLimit-Policy: \"burst\";q=100;w=60, \"day\";q=5000;w=86400\n"
         "RateLimit: \"burst\";r=9;t=30, \"day\";r=4000;t=7200");
    assert_int_equal(read.count, 2);
    expect("burst", 100, 9, 60 * S, 30 * S);
    expect("day", 5000, 4000, 86400 * S, 7200 * S);
}

TEST("units other than requests")
{
    give("RateLimit-Policy: \"c\";q=10;qu=\"concurrent-requests\", "
         "\"b\";q=1000;qu=\"content-bytes\";w=60, \"r\";q=5;qu=\"requests\";w=1\n"
         "RateLimit: \"b\";r=0;t=60");
    assert_int_equal(read.count, 2);
    expect("c", 10, UNKNOWN, UNKNOWN, UNKNOWN);
    expect("r", 5, UNKNOWN, S, UNKNOWN);
}

TEST("draft 7")
{
    give("RateLimit: limit=100, remaining=50, reset=5\nRateLimit-Policy: 100;w=60;comment=\"x,y\"");
    assert_int_equal(read.count, 1);
    expect("", 100, 50, 60 * S, 5 * S);
}

TEST("draft 3")
{
    give(
        "RateLimit-Limit: 100, 100;w=60, 1000;w=3600\nRateLimit-Remaining: 7\nRateLimit-Reset: 20");
    assert_int_equal(read.count, 2);
    expect("", 100, 7, 60 * S, 20 * S);
    expect("w=3600", 1000, UNKNOWN, 3600 * S, UNKNOWN);
}

TEST("github and twitter write epochs")
{
    give("X-RateLimit-Limit: 5000\nx-ratelimit-remaining: 4999\nX-RateLimit-Reset: 1800000060");
    expect("", 5000, 4999, UNKNOWN, 60 * S);
    give("x-rate-limit-limit: 15\nx-rate-limit-remaining: 14\nx-rate-limit-reset: 1800000900");
    expect("", 15, 14, UNKNOWN, 900 * S);
    give("X-RateLimit-Remaining: 1\nX-RateLimit-Reset: 1800000001500");
    expect("", UNKNOWN, 1, UNKNOWN, S + S / 2);
    give("X-RateLimit-Remaining: 1\nX-RateLimit-Reset: 1800000001500000");
    expect("", UNKNOWN, 1, UNKNOWN, S + S / 2);
}

TEST("an epoch counts from the servers date")
{
    give("X-RateLimit-Remaining: 5\nX-RateLimit-Reset: 1799996460\n"
         "Date: Fri, 15 Jan 2027 07:00:00 GMT");
    expect("", UNKNOWN, 5, UNKNOWN, 60 * S);
}

TEST("the dialects of single services")
{
    give("X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 1\nX-RateLimit-Reset: 1800000003.5\n"
         "X-RateLimit-Reset-After: 1.25\nX-RateLimit-Bucket: abcd");
    expect("", 5, 1, UNKNOWN, S + S / 4);
    give("X-RateLimit-Limit-Minute: 60\nX-RateLimit-Remaining-Minute: 59\n"
         "X-RateLimit-Limit-Hour: 1000\nX-RateLimit-Remaining-Hour: 900");
    expect("minute", 60, 59, 60 * S, UNKNOWN);
    expect("hour", 1000, 900, 3600 * S, UNKNOWN);
    give("x-ratelimit-limit-requests: 60\nx-ratelimit-remaining-requests: 59\n"
         "x-ratelimit-reset-requests: 6m0s\nx-ratelimit-limit-tokens: 150000");
    assert_int_equal(read.count, 1);
    expect("requests", 60, 59, UNKNOWN, 360 * S);
    give("anthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 49\n"
         "anthropic-ratelimit-requests-reset: 2027-01-15T08:00:30Z");
    expect("requests", 50, 49, UNKNOWN, 30 * S);
    give("X-HubSpot-RateLimit-Max: 100\nX-HubSpot-RateLimit-Remaining: 98\n"
         "X-HubSpot-RateLimit-Interval-Milliseconds: 10000");
    expect("hubspot", 100, 98, 10 * S, UNKNOWN);
    give("X-Shopify-Shop-Api-Call-Limit: 32/40");
    expect("shopify", 40, 8, UNKNOWN, UNKNOWN);
    give("x-ratelimit-limit: 10, 10;w=1;name=\"a\", 1000;w=60;name=\"b\"\n"
         "x-ratelimit-remaining: 9\nx-ratelimit-reset: 1");
    expect("", 10, 9, S, S);
    expect("b", 1000, UNKNOWN, 60 * S, UNKNOWN);
    give("Stripe-Should-Retry: false\nRetry-After: 3");
    assert_true(read.must_not_retry && read.has_retry_after);
    assert_int_equal(read.retry_after_ns, 3 * S);
}

TEST("a reset longer than its window is in milliseconds")
{
    give("X-RateLimit-Limit: 100, 100;w=60\nX-RateLimit-Remaining: 3\nX-RateLimit-Reset: 15000");
    expect("", 100, 3, 60 * S, 15 * S);
}

TEST("what cannot be true is not known")
{
    give("X-RateLimit-Limit: 1000000000000000000000\nX-RateLimit-Remaining: -17\n"
         "X-RateLimit-Reset: 1700000000");
    expect("", UNKNOWN, 0, UNKNOWN, UNKNOWN);
    give("X-RateLimit-Remaining: 3\nX-RateLimit-Reset: 999999999999999999");
    expect("", UNKNOWN, 3, UNKNOWN, UNKNOWN);
    give("X-RateLimit-Remaining: 3\nX-RateLimit-Reset: 99999999");
    expect("", UNKNOWN, 3, UNKNOWN, UNKNOWN);
    give("X-RateLimit-Remaining: many\nX-RateLimit-Reset: later\nRateLimit-Policy: \"open;q=5\n"
         "RateLimit: ;;;==,,\"\nRetry-After: whenever\nDate: today");
    assert_int_equal(read.count, 0);
    assert_false(read.has_retry_after || read.has_date);
}

TEST("there are at most eight policies")
{
    give("RateLimit-Policy: \"a\";q=1;w=1,\"b\";q=1;w=1,\"c\";q=1;w=1,\"d\";q=1;w=1,\"e\";q=1;w=1,"
         "\"f\";q=1;w=1,\"g\";q=1;w=1,\"h\";q=1;w=1,\"i\";q=1;w=1,\"j\";q=1;w=1");
    assert_int_equal(read.count, WEIR_ADVICE_MAX);
}

TEST("used up tokens are read and others are not")
{
    give("x-ratelimit-limit-tokens: 40000\nx-ratelimit-remaining-tokens: 0\n"
         "x-ratelimit-reset-tokens: 6m0s\nx-ratelimit-limit-requests: 60\n"
         "x-ratelimit-remaining-requests: 59\nx-ratelimit-reset-requests: 1s");
    assert_int_equal(read.count, 2);
    expect("tokens", 40000, 0, UNKNOWN, 360 * S);
    expect("requests", 60, 59, UNKNOWN, S);
    give("anthropic-ratelimit-input-tokens-limit: 50000\n"
         "anthropic-ratelimit-input-tokens-remaining: 0\n"
         "anthropic-ratelimit-input-tokens-reset: 2027-01-15T08:01:00Z\n"
         "anthropic-ratelimit-output-tokens-limit: 8000\n"
         "anthropic-ratelimit-output-tokens-remaining: 1\n"
         "anthropic-ratelimit-output-tokens-reset: 2027-01-15T08:01:00Z\n"
         "anthropic-ratelimit-tokens-limit: 58000\nanthropic-ratelimit-tokens-remaining: 0");
    assert_int_equal(read.count, 1);
    expect("inputtokens", 50000, 0, UNKNOWN, 60 * S);
}

TEST("waits in milliseconds come before retry after")
{
    static const char *const names[] = {"retry-after-ms", "x-ms-retry-after-ms",
                                        "X-Amz-Retry-After", "grpc-retry-pushback-ms"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[100];
        snprintf(text, sizeof text, "%s: 1500\nRetry-After: 2", names[i]);
        give(text);
        assert_true(read.has_retry_after && !read.must_not_retry);
        assert_int_equal(read.retry_after_ns, S + S / 2);
        snprintf(text, sizeof text, "%s: 99999999999999\nRetry-After: 2", names[i]);
        give(text);
        assert_true(read.retry_after_ns == WEIR_INSTANT_HORIZON_NS);
        snprintf(text, sizeof text, "%s: -1\nRetry-After: 2", names[i]);
        give(text);
        assert_int_equal(read.retry_after_ns, 2 * S);
        assert_int_equal(read.must_not_retry, i == 3);
    }
}

TEST("whether a retry is required is read")
{
    give("x-should-retry: false");
    assert_true(read.must_not_retry && !read.must_retry);
    give("x-should-retry: true");
    assert_true(!read.must_not_retry && read.must_retry);
    give("x-should-retry: perhaps");
    assert_true(!read.must_not_retry && !read.must_retry);
}

RUN_TESTS()
