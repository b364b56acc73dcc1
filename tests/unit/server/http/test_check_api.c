/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/check and /v1/release: what they answer, and what they refuse without charging. */
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

static const char rules[] = "version: 1\n"
                            "limits:\n"
                            "  - { name: api, key: [client.ip], rate: 3/h }\n"
                            "  - { name: seats, match: { path: /seat }, key: [header.x-user],\n"
                            "      limit: 1, life: 30s, algorithm: concurrency }\n"
                            "  - { name: team, match: { team: a }, key: [team], rate: 1/h }\n";

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

static unsigned check(struct http_harness *http, const char *body)
{
    return http_harness_post(http, "/v1/check", body);
}

TEST_WITH(set_up, tear_down, "a check is allowed until its limit is used up")
{
    struct http_harness *http = *state;
    for (int i = 2; i >= 0; i--) {
        char remaining[32];
        snprintf(remaining, sizeof remaining, "\"remaining\":%d", i);
        assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\"}"), 200);
        assert_true(http_harness_says(http, "\"allowed\":true"));
        assert_true(http_harness_says(http, remaining));
        assert_true(http_harness_has(http, "Content-Type: application/json"));
    }
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\"}"), 429);
    assert_true(http_harness_says(http, "\"allowed\":false"));
    assert_true(http_harness_has(http, "Cache-Control: no-store"));
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.2\"}"), 200);
}

TEST_WITH(set_up, tear_down, "a dry run charges nothing")
{
    struct http_harness *http = *state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\",\"dry_run\":true}"), 200);
    assert_true(http_harness_says(http, "\"remaining\":3"));
}

TEST_WITH(set_up, tear_down, "a cost of zero is free and one above the limit is denied")
{
    struct http_harness *http = *state;
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\",\"cost\":0}"), 200);
    assert_true(http_harness_says(http, "\"remaining\":3"));
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\",\"cost\":4}"), 429);
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\",\"cost\":3}"), 200);
}

TEST_WITH(set_up, tear_down, "a batch answers in order with one entry a check")
{
    struct http_harness *http = *state;
    assert_int_equal(check(http, "[{\"ip\":\"192.0.2.1\",\"cost\":3},{\"ip\":\"192.0.2.1\"},"
                                 "{\"ip\":\"192.0.2.2\"}]"),
                     200);
    const char *first = strstr(http->body, "\"allowed\":true");
    const char *second = strstr(http->body, "\"allowed\":false");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second);
    assert_non_null(strstr(second, "\"allowed\":true"));
    assert_int_equal(check(http, "[]"), 200);
    assert_string_equal(http->body, "[]");
}

TEST_WITH(set_up, tear_down, "an error anywhere in a batch charges nothing and is numbered")
{
    struct http_harness *http = *state;
    assert_int_equal(check(http, "[{\"ip\":\"192.0.2.1\"},{\"ip\":\"nowhere\"}]"), 400);
    assert_true(http_harness_says(http, "[1] ip: not an IP address"));
    assert_int_equal(check(http, "[{\"ip\":\"192.0.2.1\"},{\"ip\":"), 400);
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\",\"dry_run\":true}"), 200);
    assert_true(http_harness_says(http, "\"remaining\":3"));
}

/* One check, and one more: the longest batch is taken, a longer one is not. */
TEST_WITH(set_up, tear_down, "a batch has a thousand checks at most")
{
    static char body[64 * 1024];
    struct http_harness *http = *state;
    for (int count = 1000; count <= 1001; count++) {
        size_t used = 0;
        for (int i = 0; i < count; i++)
            used += (size_t)sprintf(body + used, "%c{\"ip\":\"10.0.%d.%d\"}", i ? ',' : '[',
                                    i / 256, i % 256);
        strcpy(body + used, "]");
        assert_int_equal(check(http, body), count == 1000 ? 200 : 413);
    }
}

TEST_WITH(set_up, tear_down, "bad bodies are refused with a reason")
{
    static const struct {
        const char *body;
        unsigned status;
        const char *says;
    } cases[] = {
        {"", 400, "\"detail\""},
        {"{", 400, "\"detail\""},
        {"{\"ip\":\"1.2.3\"}", 400, "ip: not an IP address"},
        {"{\"cost\":-1}", 400, "cost"},
        {"{\"cost\":1.5}", 400, "cost"},
        {"{\"unknown\":1}", 400, "unknown"},
        {"{\"life\":\"30s\"}", 400, "life"},
        {"{\"t\":1.5}", 400, "t: only allowed in replay traces"},
        {"{\"attributes\":{\"path\":\"/\"}}", 400, "attributes.path: use the top-level field path"},
        {"{\"attributes\":{\"client.ip\":\"192.0.2.1\"}}", 400,
         "attributes.client.ip: use the top-level field ip"},
    };
    struct http_harness *http = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(check(http, cases[i].body), cases[i].status);
        assert_true(http_harness_has(http, "Content-Type: application/problem+json"));
        assert_true(http_harness_says(http, cases[i].says));
    }
}

TEST_WITH(set_up, tear_down, "other methods and types are refused")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_get(http, "/v1/check"), 405);
    assert_true(http_harness_has(http, "Allow: POST"));
    assert_int_equal(
        http_harness_ask(http, "POST", "/v1/check", "Content-Type: text/plain\r\n", "{}"), 415);
    assert_int_equal(http_harness_ask(http, "POST", "/v1/check",
                                      "Content-Type: application/vnd.x+json ; a=b\r\n", "{}"),
                     200);
    assert_int_equal(http_harness_ask(http, "POST", "/v1/check", NULL, "{}"), 200);
}

TEST_WITH(set_up, tear_down, "attributes of a name of its own are matched")
{
    struct http_harness *http = *state;
    assert_int_equal(check(http, "{\"attributes\":{\"team\":\"a\"}}"), 200);
    assert_int_equal(check(http, "{\"attributes\":{\"team\":\"a\"}}"), 429);
    assert_true(http_harness_says(http, "\"team\""));
}

TEST_WITH(set_up, tear_down, "the same idempotency key is charged once")
{
    struct http_harness *http = *state;
    static const char field[] = "Idempotency-Key: \"k1\"\r\n";
    for (int i = 0; i < 5; i++)
        assert_int_equal(
            http_harness_ask(http, "POST", "/v1/check", field, "{\"ip\":\"192.0.2.1\"}"), 200);
    assert_int_equal(check(http, "{\"ip\":\"192.0.2.1\",\"idempotency_key\":\"k1\",\"cost\":1}"),
                     200);
    assert_true(http_harness_says(http, "\"remaining\":2"));
}

TEST_WITH(set_up, tear_down, "an idempotency key that is doubtful is refused")
{
    struct http_harness *http = *state;
    static const char one[] = "Idempotency-Key: k1\r\n";
    assert_int_equal(http_harness_ask(http, "POST", "/v1/check",
                                      "Idempotency-Key: k1\r\nIdempotency-Key: k1\r\n", "{}"),
                     400);
    assert_int_equal(http_harness_ask(http, "POST", "/v1/check", "Idempotency-Key: \r\n", "{}"),
                     400);
    assert_int_equal(
        http_harness_ask(http, "POST", "/v1/check", one, "{\"idempotency_key\":\"k2\"}"), 400);
    assert_int_equal(http_harness_ask(http, "POST", "/v1/check", one, "[{}]"), 400);
}

TEST_WITH(set_up, tear_down, "a lease is given and ended once")
{
    struct http_harness *http = *state;
    static const char seat[] = "{\"path\":\"/seat\",\"headers\":{\"X-User\":\"u\"}}";
    char release[WEIR_LEASE_TOKEN_MAX + 32];
    assert_int_equal(check(http, seat), 200);
    const char *lease = strstr(http->body, "\"lease\":\"");
    assert_non_null(lease);
    lease += strlen("\"lease\":\"");
    snprintf(release, sizeof release, "{\"lease\":\"%.*s\"}", (int)strcspn(lease, "\""), lease);
    assert_int_equal(check(http, seat), 429);
    assert_int_equal(http_harness_post(http, "/v1/release", release), 200);
    assert_string_equal(http->body, "{\"released\":true}");
    assert_int_equal(http_harness_post(http, "/v1/release", release), 404);
    assert_int_equal(check(http, seat), 200);
}

TEST_WITH(set_up, tear_down, "a release of no lease is refused")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_post(http, "/v1/release", "{\"lease\":\"x\"}"), 400);
    assert_int_equal(http_harness_post(http, "/v1/release", "{}"), 400);
    assert_int_equal(http_harness_post(http, "/v1/release", "["), 400);
    assert_int_equal(http_harness_get(http, "/v1/release"), 405);
}

RUN_TESTS()
