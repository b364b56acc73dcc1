/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use the admin listener: by address, by name, by token. */
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

static const char open_rules[] = "version: 1\nlimits: []\n";
static const char token_rules[] = "version: 1\n"
                                  "server: { admin: { address: '127.0.0.1:0', token: secret,\n"
                                  "    hosts: [weir.internal] } }\n"
                                  "limits: []\n";
static const char metrics_rules[] = "version: 1\n"
                                    "server: { admin: { address: '127.0.0.1:0', token: secret,\n"
                                    "    metrics_open: true } }\n"
                                    "limits: []\n";

static struct http_harness *with_rules(const char *rules)
{
    return http_harness_open(rules, WEIR_LISTENER_ADMIN);
}

static unsigned get(struct http_harness *http, const char *target, const char *fields)
{
    return http_harness_ask(http, "GET", target, fields, NULL);
}

static unsigned change(struct http_harness *http, const char *fields)
{
    return http_harness_ask(http, "DELETE", "/v1/limits/none/state", fields, NULL);
}

TEST("without a token this machine may read")
{
    struct http_harness *http = with_rules(open_rules);
    assert_int_equal(get(http, "/v1/limits", NULL), 200);
    http_harness_come_from(http, "127.0.0.1");
    assert_int_equal(get(http, "/v1/limits", NULL), 200);
    http_harness_come_from(http, "::1");
    assert_int_equal(get(http, "/v1/limits", NULL), 200);
    http_harness_close(http);
}

TEST("without a token other machines see only health")
{
    struct http_harness *http = with_rules(open_rules);
    http_harness_come_from(http, "192.0.2.1");
    assert_int_equal(get(http, "/healthz", NULL), 200);
    assert_int_equal(get(http, "/readyz", NULL), 200);
    assert_int_equal(get(http, "/v1/limits", NULL), 403);
    assert_int_equal(get(http, "/metrics", NULL), 403);
    assert_true(http_harness_says(http, "server.admin.token"));
    http_harness_close(http);
}

TEST("a token opens the listener to any machine")
{
    struct http_harness *http = with_rules(token_rules);
    http_harness_come_from(http, "192.0.2.1");
    assert_int_equal(get(http, "/v1/limits", "Authorization: Bearer secret\r\n"), 200);
    assert_int_equal(get(http, "/v1/limits", "X-Weir-Token: secret\r\n"), 200);
    assert_int_equal(get(http, "/v1/limits", NULL), 401);
    assert_true(http_harness_has(http, "WWW-Authenticate: Bearer"));
    assert_int_equal(get(http, "/v1/limits", "Authorization: Bearer secre\r\n"), 401);
    assert_int_equal(get(http, "/healthz", NULL), 200);
    http_harness_close(http);
}

TEST("metrics alone may be open")
{
    struct http_harness *http = with_rules(metrics_rules);
    http_harness_come_from(http, "192.0.2.1");
    assert_int_equal(get(http, "/metrics", NULL), 200);
    assert_int_equal(get(http, "/v1/limits", NULL), 401);
    http_harness_close(http);
}

/* DNS rebinding: a page of any site can let its name point here. */
TEST("a name that is not the listeners is refused")
{
    static const char rest[] = " HTTP/1.1\r\nX-Weir-Token: secret\r\nHost: ";
    static const struct {
        const char *host, *origin;
        unsigned status;
    } cases[] = {
        {"localhost", NULL, 200},
        {"localhost:8081", "http://localhost:3000", 200},
        {"127.0.0.1:8081", NULL, 200},
        {"[::1]:8081", NULL, 200},
        {"weir.internal", "https://weir.internal", 200},
        {"evil.example", NULL, 403},
        {"localhost", "https://evil.example", 403},
        {"localhost", "null", 403},
        {"localhost.evil.example", NULL, 403},
    };
    struct http_harness *http = with_rules(token_rules);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        http_harness_connect(http);
        http_harness_come_from(http, "127.0.0.1");
        int size =
            snprintf(text, sizeof text, "GET /v1/limits%s%s%s%s\r\n\r\n", rest, cases[i].host,
                     cases[i].origin ? "\r\nOrigin: " : "", cases[i].origin ? cases[i].origin : "");
        http_harness_send(http, text, (size_t)size);
        assert_int_equal(http_harness_reply(http, false), cases[i].status);
    }
    http_harness_close(http);
}

TEST("changes need a token or a unix socket")
{
    struct http_harness *http = with_rules(open_rules);
    assert_int_equal(change(http, NULL), 404); /* no limit of that name, but it was looked for */
    assert_int_equal(http_harness_post(http, "/v1/identities/forget", "{}"), 404);
    http_harness_come_from(http, "127.0.0.1");
    assert_int_equal(http_harness_post(http, "/v1/identities/forget", "{}"), 403);
    http_harness_close(http);
    http = with_rules(token_rules);
    http_harness_come_from(http, "127.0.0.1");
    assert_int_equal(
        http_harness_ask(http, "POST", "/v1/identities/forget", "X-Weir-Token: secret\r\n", "{}"),
        404);
    http_harness_close(http);
}

RUN_TESTS()
