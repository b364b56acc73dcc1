/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP listener: routes, tokens, pipelines, requests in pieces, and those it cannot read. */
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
#include "wire/http/http1.h"

static const char open_rules[] = "version: 1\n"
                                 "limits:\n"
                                 "  - { name: api, key: [client.ip], rate: 3/h }\n";
static const char token_rules[] = "version: 1\n"
                                  "server: { http: { address: '127.0.0.1:0', token: secret } }\n"
                                  "limits: []\n";

static struct http_harness *harness;

static int set_up(void **state)
{
    harness = *state = http_harness_open(open_rules, WEIR_LISTENER_HTTP);
    return 0;
}

static int set_up_token(void **state)
{
    harness = *state = http_harness_open(token_rules, WEIR_LISTENER_HTTP);
    return 0;
}

static int tear_down(void **state)
{
    http_harness_close(*state);
    return 0;
}

static unsigned with_field(const char *field)
{
    char fields[512];
    snprintf(fields, sizeof fields, "%s\r\n", field);
    return http_harness_ask(harness, "POST", "/v1/check", fields, "{}");
}

TEST_WITH(set_up, tear_down, "paths that are no route are not found")
{
    static const char *const paths[] = {"/",         "/v1",      "/v1/checks", "/v1/check/",
                                        "/v1/authx", "/metrics", "/json"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(http_harness_post(harness, paths[i], "{}"), 404);
        assert_true(http_harness_has(harness, "Content-Type: application/problem+json"));
    }
}

/* The last route is looked at first. */
TEST_WITH(set_up, tear_down, "a path is found whatever was asked for before")
{
    static const struct {
        const char *path;
        unsigned status;
    } asked[] = {{"/v1/check", 200}, {"/v1/check", 200},  {"/v1/chuck", 404}, {"/v1/check?x", 200},
                 {"/v1/", 404},      {"/v1/check/", 404}, {"/v1/auth", 200},  {"/v1/check", 200},
                 {"/v1/auth", 200},  {"/v1/auth", 200},   {"/v1/aut", 404}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_int_equal(http_harness_post(harness, asked[i].path, "{}"), asked[i].status);
}

TEST_WITH(set_up, tear_down, "a connection serves one request after the other")
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(http_harness_post(harness, "/v1/check", "{}"), 200);
    assert_false(harness->closed);
}

TEST_WITH(set_up, tear_down, "a client that wants to close is answered first")
{
    assert_int_equal(with_field("Connection: close"), 200);
    assert_true(http_harness_has(harness, "Connection: close"));
    assert_true(harness->closed);
}

TEST_WITH(set_up, tear_down, "pipelined requests are answered in order")
{
    static const char two[] = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
                              "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"
                              "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n{";
    http_harness_send(harness, two, sizeof two - 1);
    assert_int_equal(http_harness_reply(harness, false), 200);
    assert_int_equal(http_harness_reply(harness, false), 404);
    assert_int_equal(http_harness_reply(harness, false), 400);
    assert_int_equal(http_harness_reply(harness, false), 0);
}

TEST_WITH(set_up, tear_down, "a request may come in pieces of any size")
{
    static const char one[] =
        "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n{\"ip\": \"192.0.2.4\"}  ";
    size_t size = strlen(one) - 1;
    for (size_t at = 1; at < size; at++) {
        http_harness_send(harness, one, at);
        assert_int_equal(http_harness_reply(harness, false), 0);
        http_harness_send(harness, one + at, size - at);
        assert_true(http_harness_reply(harness, false) == 200 || harness->status == 429);
    }
}

TEST_WITH(set_up, tear_down, "a body that is expected is asked for")
{
    static const char head[] = "POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
                               "Expect: 100-continue\r\n\r\n";
    http_harness_send(harness, head, sizeof head - 1);
    assert_int_equal(http_harness_reply(harness, false), 100);
    http_harness_send(harness, "{}", 2);
    assert_int_equal(http_harness_reply(harness, false), 200);
}

TEST_WITH(set_up, tear_down, "what is no request is refused and the connection closed")
{
    static const struct {
        const char *bytes;
        unsigned status;
    } cases[] = {
        {"nonsense\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400},
        {"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n", 413},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        http_harness_connect(harness);
        http_harness_send(harness, cases[i].bytes, strlen(cases[i].bytes));
        assert_int_equal(http_harness_reply(harness, false), cases[i].status);
        assert_true(http_harness_has(harness, "Connection: close"));
        assert_true(harness->closed);
    }
}

/* A field's value of so many bytes; the line's other bytes count as well. */
TEST_WITH(set_up, tear_down, "a head has a largest size")
{
    static char fields[WEIR_HTTP1_HEAD_MAX + 64];
    size_t used = (size_t)sprintf(fields, "X: ");
    memset(fields + used, 'a', WEIR_HTTP1_HEAD_MAX);
    strcpy(fields + used + WEIR_HTTP1_HEAD_MAX, "\r\n");
    assert_int_equal(http_harness_ask(harness, "POST", "/v1/check", fields, "{}"), 431);
    strcpy(fields + WEIR_HTTP1_HEAD_MAX / 2, "\r\n");
    assert_int_equal(http_harness_ask(harness, "POST", "/v1/check", fields, "{}"), 200);
}

TEST_WITH(set_up_token, tear_down, "a listener with a token wants it in either field")
{
    assert_int_equal(with_field("Authorization: Bearer secret"), 200);
    assert_int_equal(with_field("authorization: bearer secret"), 200);
    assert_int_equal(with_field("X-Weir-Token: secret"), 200);
}

TEST_WITH(set_up_token, tear_down, "without the right token nothing is decided")
{
    static const char *const wrong[] = {"X-None: 1",
                                        "Authorization: Bearer secreT",
                                        "Authorization: Bearer secre",
                                        "Authorization: Bearer secrets",
                                        "Authorization: Basic secret",
                                        "X-Weir-Token: "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(with_field(wrong[i]), 401);
        assert_true(http_harness_has(harness, "WWW-Authenticate: Bearer"));
        assert_true(http_harness_says(harness, "missing or invalid token"));
    }
}

TEST_WITH(set_up_token, tear_down, "guessing tokens ends the connection")
{
    for (int i = 1; i <= WEIR_GUESSES_MAX; i++) {
        assert_false(harness->closed);
        assert_int_equal(with_field("X-Weir-Token: wrong"), 401);
    }
    assert_true(harness->closed);
}

RUN_TESTS()
