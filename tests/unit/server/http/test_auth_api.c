/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/auth: what a proxy tells of a request, and what it may answer the client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http_harness.h"
#include "test.h"

static const char rules[] =
    "version: 1\n"
    "server: { trusted_proxies: [unix, 127.0.0.0/8] }\n"
    "limits:\n"
    "  - { name: api, match: { path: /api/* }, key: [client.ip], rate: 2/h }\n"
    "  - { name: posts, match: { method: POST, host: a.example },\n"
    "      key: [host], rate: 1/h }\n";

static int set_up(void **state)
{
    *state = http_harness_open(rules, WEIR_LISTENER_HTTP);
    return 0;
}

static int tear_down(void **state)
{
    http_harness_close(*state);
    return 0;
}

static unsigned auth(struct http_harness *http, const char *target, const char *fields)
{
    return http_harness_ask(http, "GET", target, fields, NULL);
}

#define API "X-Forwarded-Uri: /api/a\r\nX-Forwarded-For: 192.0.2.7\r\n"

TEST_WITH(set_up, tear_down, "a request passes until its limit is used up")
{
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth", API), 200);
    assert_int_equal(http->body_size, 0);
    assert_int_equal(auth(http, "/v1/auth", API), 200);
    assert_int_equal(auth(http, "/v1/auth", API), 429);
    assert_true(http_harness_has(http, "Cache-Control: no-store"));
    assert_true(http_harness_has(http, "Content-Type: application/problem+json"));
    assert_int_equal(
        auth(http, "/v1/auth", "X-Forwarded-Uri: /api/a\r\nX-Forwarded-For: 192.0.2.8\r\n"), 200);
    assert_int_equal(auth(http, "/v1/auth", "X-Forwarded-Uri: /\r\n"), 200);
}

TEST_WITH(set_up, tear_down, "a head request is denied without a body")
{
    struct http_harness *http = *state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(http_harness_ask(http, "HEAD", "/v1/auth", API, NULL), 200);
    assert_int_equal(http_harness_ask(http, "HEAD", "/v1/auth", API, NULL), 429);
    assert_int_equal(http->raw_size, 0);
}

TEST_WITH(set_up, tear_down, "method host and path come from the fields")
{
    static const char fields[] = "X-Forwarded-Method: POST\r\nX-Forwarded-Host: a.example\r\n";
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth", fields), 200);
    assert_int_equal(auth(http, "/v1/auth", fields), 429);
    assert_int_equal(auth(http, "/v1/auth", "X-Forwarded-Host: a.example\r\n"), 200);
}

TEST_WITH(set_up, tear_down, "a whole url is cut to its path")
{
    static const char fields[] =
        "X-Original-URL: https://a.example/api/x\r\nX-Forwarded-For: 192.0.2.9\r\n";
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth", fields), 200);
    assert_int_equal(auth(http, "/v1/auth", fields), 200);
    assert_int_equal(auth(http, "/v1/auth", fields), 429);
}

TEST_WITH(set_up, tear_down, "the rest of the path is the path and fields are not believed")
{
    struct http_harness *http = *state;
    static const char lie[] = "X-Forwarded-Uri: /\r\nX-Forwarded-For: 192.0.2.5\r\n";
    assert_int_equal(auth(http, "/v1/auth/api/x", lie), 200);
    assert_int_equal(auth(http, "/v1/auth/api/x", lie), 200);
    assert_int_equal(auth(http, "/v1/auth/api/x", lie), 429);
}

TEST_WITH(set_up, tear_down, "a cost may be given and a status of denials")
{
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth?cost=3&deny_status=403", API), 403);
    assert_true(http_harness_has(http, "X-RateLimit-Status: 429"));
    assert_int_equal(auth(http, "/v1/auth?cost=2", API), 200);
    assert_int_equal(auth(http, "/v1/auth?deny_status=401", API), 401);
}

TEST_WITH(set_up, tear_down, "bad parameters are refused")
{
    static const char *const queries[] = {
        "cost=",
        "cost=-1",
        "cost=1&cost=1",
        "cost=18446744073709551616",
        "deny_status=200",
        "deny_status=x",
        "deny_status=403&deny_status=403",
        "units=1",
    };
    struct http_harness *http = *state;
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        char target[128];
        snprintf(target, sizeof target, "/v1/auth?%s", queries[i]);
        assert_int_equal(auth(http, target, API), 400);
    }
    assert_int_equal(auth(http, "/v1/auth?cost=2", API), 200); /* nothing was charged */
}

TEST_WITH(set_up, tear_down, "fields that contradict each other are refused")
{
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth", "X-Forwarded-Uri: /a\r\nX-Forwarded-Uri: /a\r\n"), 400);
    assert_int_equal(auth(http, "/v1/auth", "X-Forwarded-Uri: /a\r\nX-Original-Uri: /b\r\n"), 400);
    assert_int_equal(auth(http, "/v1/auth", "X-Forwarded-Uri: /a\r\nX-Original-Uri: /a\r\n"), 200);
}

TEST_WITH(set_up, tear_down, "only a trusted proxy may ask")
{
    struct http_harness *http = *state;
    http_harness_come_from(http, "127.0.0.1");
    assert_int_equal(auth(http, "/v1/auth", API), 200);
    http_harness_come_from(http, "192.0.2.66");
    assert_int_equal(auth(http, "/v1/auth", API), 403);
    assert_true(http_harness_says(http, "trusted_proxies"));
}

/* Such a connection leaves nothing behind, either: http_harness_connect checks that. */
TEST("a connection that ends gives the place of its reply back")
{
    struct http_harness *http = http_harness_open(
        "version: 1\n"
        "server: { trusted_proxies: [unix], http: { address: unix:/nowhere, hold: true } }\n"
        "limits: [{ name: late, key: [], rate: 0/h, reject: { tarpit: 1min } }]\n",
        WEIR_LISTENER_HTTP);
    static const char asked[] = "GET /v1/auth HTTP/1.1\r\nHost: a\r\n\r\n";
    const struct weir_hold_places *places = &http->pools[0].held;
    for (int i = 0; i < 20; i++) {
        http_harness_send(http, asked, sizeof asked - 1);
        assert_int_equal(http_harness_reply(http, false), 0);
        assert_int_not_equal(places->prefixes[0], WEIR_HOLD_FREE);
        http_harness_connect(http);
        assert_int_equal(places->prefixes[0], WEIR_HOLD_FREE);
    }
    http_harness_close(http);
}

RUN_TESTS()
