/* SPDX-License-Identifier: Apache-2.0 */
/* The admin listener: health, limits, one key's state, and grants. */
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
    "limits:\n"
    "  - { name: month, key: [header.x-user], rate: 100/h, algorithm: fixed_window }\n"
    "  - { name: log, key: [header.x-user], rate: 5/h, algorithm: sliding_log }\n";

static int set_up(void **state)
{
    *state = http_harness_open(rules, WEIR_LISTENER_ADMIN);
    return 0;
}

static int tear_down(void **state)
{
    http_harness_close(*state);
    return 0;
}

TEST_WITH(set_up, tear_down, "health and readiness are ok")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_get(http, "/healthz"), 200);
    assert_string_equal(http->body, "ok\n");
    assert_int_equal(http_harness_get(http, "/readyz"), 200);
    assert_string_equal(http->body, "ready\n");
    assert_int_equal(http_harness_ask(http, "HEAD", "/readyz", NULL, NULL), 200);
    assert_int_equal(http_harness_post(http, "/readyz", "{}"), 405);
    http->daemon.stopping = true;
    assert_int_equal(http_harness_get(http, "/readyz"), 503);
    assert_string_equal(http->body, "stopping\n");
}

TEST_WITH(set_up, tear_down, "limits are listed")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_get(http, "/v1/limits"), 200);
    assert_true(http_harness_has(http, "Content-Type: application/json"));
    assert_true(http_harness_says(http, "\"name\":\"month\""));
    assert_true(http_harness_says(http, "\"name\":\"log\""));
    assert_int_equal(http_harness_get(http, "/v1/limits/"), 200);
    assert_int_equal(http_harness_post(http, "/v1/limits", "{}"), 405);
}

TEST_WITH(set_up, tear_down, "limits and views that do not exist are not found")
{
    static const char *const paths[] = {"/v1/limits/none/state?key=a", "/v1/limits/none",
                                        "/v1/limits/month/", "/v1/limits/month/x", "/v1/limitsx"};
    struct http_harness *http = *state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_int_equal(http_harness_get(http, paths[i]), 404);
}

/* So many checks of the user a, on the listener of decisions. */
static void use(struct http_harness *http, int times)
{
    http_harness_connect_to(http, WEIR_LISTENER_HTTP);
    for (int i = 0; i < times; i++)
        http_harness_post(http, "/v1/check", "{\"headers\":{\"X-User\":\"a b\"}}");
    http_harness_connect_to(http, WEIR_LISTENER_ADMIN);
}

TEST_WITH(set_up, tear_down, "a state is shown topped up and removed")
{
    static const char target[] = "/v1/limits/month/state?key=a+b";
    struct http_harness *http = *state;
    assert_int_equal(http_harness_ask(http, "DELETE", target, NULL, NULL), 404);
    use(http, 3);
    assert_int_equal(http_harness_get(http, "/v1/limits/month/state?key=a%20b"), 200);
    assert_true(http_harness_says(http, "\"remaining\":97"));
    assert_int_equal(http_harness_post(http, "/v1/limits/month/grant?key=a+b&units=2", ""), 200);
    assert_true(http_harness_says(http, "\"granted\":true"));
    assert_true(http_harness_says(http, "\"remaining\":99"));
    assert_int_equal(http_harness_ask(http, "DELETE", target, NULL, NULL), 200);
    assert_string_equal(http->body, "{\"removed\":true}");
    assert_int_equal(http_harness_get(http, target), 200);
    assert_true(http_harness_says(http, "\"remaining\":100"));
}

TEST_WITH(set_up, tear_down, "a key that has used nothing is granted nothing")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_post(http, "/v1/limits/month/grant?key=a&units=1", ""), 200);
    assert_true(http_harness_says(http, "\"granted\":false"));
    assert_true(http_harness_says(http, "\"remaining\":100"));
}

TEST_WITH(set_up, tear_down, "the most denied keys are reported with the way to their state")
{
    struct http_harness *http = *state;
    use(http, 8);
    assert_int_equal(http_harness_get(http, "/v1/limits/log/top"), 200);
    assert_true(http_harness_says(http, "\"denied\":3"));
    assert_true(http_harness_says(http, "\"state\":\"/v1/limits/log/state?key=a%20b\""));
    assert_int_equal(http_harness_get(http, "/v1/limits/log/top?count=0"), 200);
    assert_string_equal(http->body, "{\"limit\":\"log\",\"keys\":[]}");
}

TEST_WITH(set_up, tear_down, "bad queries are refused")
{
    static const struct {
        const char *target;
        bool post;
    } cases[] = {
        {"/v1/limits/month/state", false},
        {"/v1/limits/month/state?key=a&key=b", false},
        {"/v1/limits/month/state?key=%2", false},
        {"/v1/limits/month/state?key=%zz", false},
        {"/v1/limits/month/state?kee=a", false},
        {"/v1/limits/month/state?key=a&units=1", false},
        {"/v1/limits/month/grant?key=a", true},
        {"/v1/limits/month/grant?key=a&units=0", true},
        {"/v1/limits/month/grant?key=a&units=-1", true},
        {"/v1/limits/month/grant?key=a&units=1099511627777", true},
        {"/v1/limits/log/grant?key=a&units=1", true},
    };
    struct http_harness *http = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned status = cases[i].post ? http_harness_post(http, cases[i].target, "")
                                        : http_harness_get(http, cases[i].target);
        assert_int_equal(status, 400);
    }
    assert_int_equal(
        http_harness_post(http, "/v1/limits/month/grant?key=a&units=1099511627776", ""), 200);
    assert_int_equal(http_harness_get(http, "/v1/limits/month/grant?key=a&units=1"), 405);
}

TEST_WITH(set_up, tear_down, "the most denied keys may be none")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_get(http, "/v1/limits/month/top"), 200);
    assert_string_equal(http->body, "{\"limit\":\"month\",\"keys\":[]}");
    assert_int_equal(http_harness_get(http, "/v1/limits/month/top?count=x"), 200);
    assert_int_equal(http_harness_post(http, "/v1/limits/month/top", ""), 405);
}

TEST_WITH(set_up, tear_down, "nothing is forgotten without a directory")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_post(http, "/v1/identities/forget", "{}"), 404);
    assert_int_equal(http_harness_get(http, "/v1/identities/forget"), 405);
}

TEST_WITH(set_up, tear_down, "pages of envoys service are not found without it")
{
    static const char *const paths[] = {"/rlconfig", "/stats"};
    struct http_harness *http = *state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        assert_int_equal(http_harness_get(http, paths[i]), 404);
}

RUN_TESTS()
