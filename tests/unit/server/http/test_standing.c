/* SPDX-License-Identifier: Apache-2.0 */
/* What /v1/check, /v1/reserve and /v1/auth answer for callers whose standing is not good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "feature/standing/standing.h"
#include "http_harness.h"
#include "test.h"

static const char rules[] =
    "server: { trusted_proxies: [unix], http: { address: unix:/x, trusted: true } }\n"
    "headers: [draft, standing]\n"
    "standing:\n"
    "  by: [client.ip/64, user]\n"
    "  answer:\n"
    "    revoked: { status: 410, body: '{\"closed\": true}', content_type: application/json }\n"
    "limits:\n"
    "  - { name: api, key: [client.ip], rate: 2/h, by_standing: { throttled: 50% } }\n";

static struct weir_standing *map;

static void hold(const char *network, uint8_t level, uint64_t until_ns, const char *reason)
{
    struct weir_standing_entry entry = {
        .until_ns = until_ns, .level = level, .origin = WEIR_STANDING_BY_OPERATOR};
    struct weir_cidr cidr;
    entry.reason_size = (uint8_t)strlen(reason);
    memcpy(entry.reason, reason, entry.reason_size);
    assert_int_equal(weir_cidr_parse(&cidr, network, strlen(network)), 0);
    assert_int_equal(weir_standing_set_network(map, &cidr, &entry), 0);
}

static int set_up(void **state)
{
    const struct weir_standing_options options = {.entries_max = 100, .secret = {3, 4}};
    struct weir_reason reason;
    if (weir_standing_create(&map, &options, &reason) < 0)
        return -1;
    struct http_harness *http = http_harness_open(rules, WEIR_LISTENER_HTTP);
    weir_engine_set_standing(http->decides->engine, map);
    uint64_t now_ns = weir_worker_time(http->decides);
    hold("192.0.2.1/32", WEIR_STANDING_SUSPENDED, now_ns + UINT64_C(3600000000000), "abuse");
    hold("192.0.2.2/32", WEIR_STANDING_REVOKED, WEIR_NEVER, "fraud");
    hold("192.0.2.3/32", WEIR_STANDING_THROTTLED, WEIR_NEVER, "slow");
    hold("192.0.2.4/32", WEIR_STANDING_TRUSTED, WEIR_NEVER, "");
    *state = http;
    return 0;
}

static int tear_down(void **state)
{
    http_harness_close(*state);
    weir_standing_close(map);
    return 0;
}

static unsigned check(struct http_harness *http, const char *ip)
{
    char body[128];
    snprintf(body, sizeof body, "{\"ip\":\"%s\"}", ip);
    return http_harness_post(http, "/v1/check", body);
}

TEST_WITH(set_up, tear_down, "a check names the standing")
{
    struct http_harness *http = *state;
    assert_int_equal(check(http, "192.0.2.1"), 429);
    assert_true(http_harness_says(http, "{\"allowed\":false,\"denied_by\":\"standing\",\"retry_"));
    assert_true(http_harness_says(http, "\"level\":\"suspended\",\"reason\":\"abuse\",\"ends_"));
    assert_true(http_harness_says(http, "\"limits\":[]}"));
    assert_non_null(strstr(http->fields, "Retry-After: "));
    assert_non_null(strstr(http->fields, "X-RateLimit-Standing: suspended;t="));
    assert_non_null(strstr(http->fields, ";reason=\"abuse\"\r\n"));
    assert_true(http_harness_has(http, "Cache-Control: no-store"));
    assert_int_equal(check(http, "192.0.2.2"), 429);
    assert_true(http_harness_says(http, "\"retry_after_ms\":null"));
    assert_null(strstr(http->fields, "Retry-After"));
    assert_int_equal(check(http, "192.0.2.3"), 200);
    assert_true(http_harness_says(http, "\"level\":\"throttled\",\"reason\":\"slow\",\"ends_after_"
                                        "ms\":null}"));
    assert_int_equal(check(http, "192.0.2.4"), 200);
    assert_true(http_harness_says(http, "\"level\":\"trusted\",\"reason\":null"));
    assert_true(http_harness_says(http, "\"limits\":[]}"));
    assert_int_equal(check(http, "192.0.2.5"), 200);
    assert_null(strstr(http->body, "standing"));
    assert_null(strstr(http->fields, "Standing"));
}

TEST_WITH(set_up, tear_down, "a dry run says the same")
{
    struct http_harness *http = *state;
    assert_int_equal(
        http_harness_post(http, "/v1/check", "{\"ip\":\"192.0.2.1\",\"dry_run\":true}"), 429);
    assert_true(http_harness_says(http, "\"denied_by\":\"standing\""));
}

TEST_WITH(set_up, tear_down, "each of a batch has its own")
{
    struct http_harness *http = *state;
    assert_int_equal(
        http_harness_post(http, "/v1/check", "[{\"ip\":\"192.0.2.1\"},{\"ip\":\"192.0.2.5\"}]"),
        200);
    assert_true(http_harness_says(http, "[{\"allowed\":false,\"denied_by\":\"standing\""));
    assert_true(http_harness_says(http, ",{\"allowed\":true,\"denied_by\":null"));
}

TEST_WITH(set_up, tear_down, "no attribute sets it")
{
    struct http_harness *http = *state;
    assert_int_equal(
        http_harness_post(http, "/v1/check",
                          "{\"ip\":\"192.0.2.1\",\"attributes\":{\"standing\":\"trusted\"}}"),
        429);
    assert_int_equal(
        http_harness_post(http, "/v1/check",
                          "{\"ip\":\"192.0.2.5\",\"attributes\":{\"standing\":\"revoked\"}}"),
        200);
}

TEST_WITH(set_up, tear_down, "nothing is reserved")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_post(http, "/v1/reserve", "{\"ip\":\"192.0.2.1\"}"), 429);
    assert_true(http_harness_says(http, "\"denied_by\":\"standing\""));
    assert_null(strstr(http->body, "reservation"));
}

static unsigned auth(struct http_harness *http, const char *target, const char *ip)
{
    char fields[128];
    snprintf(fields, sizeof fields, "X-Forwarded-Uri: /a\r\nX-Forwarded-For: %s\r\n", ip);
    return http_harness_ask(http, "GET", target, fields, NULL);
}

TEST_WITH(set_up, tear_down, "a proxy gets the answer of the rules")
{
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth", "192.0.2.1"), 403);
    assert_true(http_harness_has(http, "Content-Type: application/problem+json"));
    assert_non_null(strstr(http->fields, "Retry-After: "));
    assert_true(http_harness_has(http, "Cache-Control: no-store"));
    assert_null(strstr(http->fields, "X-RateLimit-Status"));
    assert_string_equal(http->body, "{\"type\":\"about:blank\",\"title\":\"Forbidden\","
                                    "\"status\":403,\"detail\":\"abuse\"}");
    assert_int_equal(auth(http, "/v1/auth", "192.0.2.2"), 410);
    assert_true(http_harness_has(http, "Content-Type: application/json"));
    assert_string_equal(http->body, "{\"closed\": true}");
    assert_null(strstr(http->fields, "Retry-After"));
    assert_int_equal(auth(http, "/v1/auth", "192.0.2.3"), 200);
    assert_true(http_harness_has(http, "X-RateLimit-Standing: throttled;reason=\"slow\""));
    assert_int_equal(auth(http, "/v1/auth", "192.0.2.4"), 200);
    assert_int_equal(http->body_size, 0);
}

/* nginx understands 401 and 403 alone. */
TEST_WITH(set_up, tear_down, "a proxy that asks for a status gets it")
{
    struct http_harness *http = *state;
    assert_int_equal(auth(http, "/v1/auth?deny_status=403", "192.0.2.2"), 403);
    assert_true(http_harness_has(http, "X-RateLimit-Status: 410"));
    assert_string_equal(http->body, "{\"closed\": true}");
    assert_int_equal(auth(http, "/v1/auth?deny_status=401", "192.0.2.1"), 401);
    assert_true(http_harness_has(http, "X-RateLimit-Status: 403"));
}

TEST_WITH(set_up, tear_down, "a head request is refused without a body")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_ask(http, "HEAD", "/v1/auth",
                                      "X-Forwarded-Uri: /a\r\nX-Forwarded-For: 192.0.2.2\r\n",
                                      NULL),
                     410);
    assert_true(http_harness_has(http, "Content-Length: 16"));
}

RUN_TESTS()
