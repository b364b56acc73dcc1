/* SPDX-License-Identifier: Apache-2.0 */
/* Logging in to the admin listener, and what a session may do that a page of another site may not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "http_harness.h"
#include "test.h"

#define OWN "Host: localhost:9090\r\nOrigin: http://localhost:9090\r\n"

static const char open_rules[] = "version: 1\nlimits: []\n";
static const char token_rules[] = "version: 1\n"
                                  "server: { admin: { address: '127.0.0.1:0', token: secret } }\n"
                                  "limits: []\n";

static struct http_harness *open_with(const char *rules)
{
    struct http_harness *http = http_harness_open(rules, WEIR_LISTENER_ADMIN);
    struct weir_reason reason;
    struct weir_dashboard *opened;
    assert_int_equal(weir_dashboard_open(&opened, &http->daemon, &reason), 0);
    weir_own_set(&http->daemon, WEIR_OWN_DASHBOARD, opened);
    return http;
}

static void close_all(struct http_harness *http)
{
    struct weir_dashboard *dashboard = weir_daemon_dashboard(&http->daemon);
    http_harness_close(http);
    weir_dashboard_close(dashboard);
}

/* Sends a request with all its fields, from an address; NULL: over a Unix socket. */
static unsigned ask(struct http_harness *http, const char *from, const char *method,
                    const char *target, const char *fields, const char *body)
{
    char text[2048];
    int size = snprintf(text, sizeof text,
                        "%s %s HTTP/1.1\r\nContent-Type: application/json\r\n%s"
                        "Content-Length: %zu\r\n\r\n%s",
                        method, target, fields, strlen(body), body);
    assert_true(size > 0 && (size_t)size < sizeof text);
    http_harness_connect(http);
    if (from)
        http_harness_come_from(http, from);
    http_harness_send(http, text, (size_t)size);
    return http_harness_reply(http, false);
}

static unsigned log_in(struct http_harness *http, const char *token)
{
    char body[100];
    snprintf(body, sizeof body, "{\"token\": \"%s\"}", token);
    return ask(http, "192.0.2.1", "POST", "/v1/session", OWN, body);
}

/* The cookie of the last reply, as a line of a request. */
static const char *cookie_line(const struct http_harness *http)
{
    static char line[200];
    const char *set = strstr(http->fields, "Set-Cookie: ");
    assert_non_null(set);
    snprintf(line, sizeof line, "Cookie: a=b; %.*s\r\n", (int)strcspn(set + 12, ";"), set + 12);
    return line;
}

static unsigned with_cookie(struct http_harness *http, const char *method, const char *target,
                            const char *fields, const char *cookie)
{
    char all[1000];
    snprintf(all, sizeof all, "%s%s", fields, cookie);
    return ask(http, "192.0.2.1", method, target, all, "{}");
}

TEST("the token begins a session whose cookie reads")
{
    struct http_harness *http = open_with(token_rules);
    assert_int_equal(ask(http, "192.0.2.1", "GET", "/v1/session", OWN, ""), 200);
    assert_true(http_harness_says(http, "\"token\":true"));
    assert_true(http_harness_says(http, "\"may_read\":false"));
    assert_int_equal(log_in(http, "secret"), 200);
    const char *set = strstr(http->fields, "Set-Cookie: weir_session_9090=");
    assert_non_null(set);
    assert_int_equal(strcspn(set + 30, ";"), 2 * WEIR_SESSION_ID_BYTES);
    assert_non_null(strstr(set, "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict\r\n"));
    const char *cookie = cookie_line(http);
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, cookie), 200);
    assert_int_equal(with_cookie(http, "GET", "/v1/session", OWN, cookie), 200);
    assert_true(http_harness_says(http, "\"session\":true,\"may_read\":true,\"may_change\":true"));
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, ""), 401);
    close_all(http);
}

TEST("a wrong token begins none and is a guess")
{
    struct http_harness *http = open_with(token_rules);
    static const char *const wrong[] = {"", "secre", "secrets", "Secret"};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(log_in(http, wrong[i]), 401);
        assert_null(strstr(http->fields, "Set-Cookie"));
        assert_int_equal(weir_counted(&http->listener->wrong_guesses), i + 1);
    }
    assert_int_equal(ask(http, NULL, "POST", "/v1/session", OWN, "{\"token\": 5}"), 400);
    assert_int_equal(ask(http, NULL, "POST", "/v1/session", OWN, "{"), 400);
    close_all(http);
}

TEST("a session ends when its owner logs out")
{
    struct http_harness *http = open_with(token_rules);
    char cookie[200];
    assert_int_equal(log_in(http, "secret"), 200);
    strcpy(cookie, cookie_line(http));
    assert_int_equal(with_cookie(http, "DELETE", "/v1/session", OWN, cookie), 200);
    assert_non_null(strstr(http->fields, "Set-Cookie: weir_session_9090=; Path=/; Max-Age=0;"));
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, cookie), 401);
    assert_int_equal(with_cookie(http, "DELETE", "/v1/session", OWN, cookie), 404);
    close_all(http);
}

TEST("a cookie of another port or form is no session")
{
    struct http_harness *http = open_with(token_rules);
    char cookie[200], other[200];
    assert_int_equal(log_in(http, "secret"), 200);
    strcpy(cookie, cookie_line(http));
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", "Host: localhost:9091\r\n", cookie),
                     401);
    snprintf(other, sizeof other, "Cookie: weir_session_9090=\r\n");
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, other), 401);
    snprintf(other, sizeof other, "Cookie: weir_session_9090=%032d\r\n", 0);
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, other), 401);
    snprintf(other, sizeof other, "Cookie: weir_session_9090=zz%030d\r\n", 0);
    assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, other), 401);
    close_all(http);
}

/* Another server of this host can set a cookie of the same name for a longer path, which browsers
 * send first (RFC 6265 5.4). It must not log people out, and a logout ends what it can. */
TEST("a cookie that another server has put before hides no session")
{
    static const char *const others[] = {"", "zz", "00000000000000000000000000000000"};
    struct http_harness *http = open_with(token_rules);
    char cookie[200], both[400];
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(log_in(http, "secret"), 200);
        strcpy(cookie, cookie_line(http));
        snprintf(both, sizeof both, "Cookie: weir_session_9090=%s; %s", others[i],
                 cookie + strlen("Cookie: "));
        assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, both), 200);
        assert_int_equal(with_cookie(http, "DELETE", "/v1/session", OWN, both), 200);
        assert_int_equal(with_cookie(http, "GET", "/v1/limits", OWN, cookie), 401);
    }
    close_all(http);
}

/* A proxy in front ends TLS: the browser shows it by the Origin of the page. */
TEST("behind a proxy with tls the cookie is secure")
{
    struct http_harness *http = open_with(token_rules);
    assert_int_equal(ask(http, "192.0.2.1", "POST", "/v1/session",
                         "Host: localhost\r\nOrigin: https://localhost\r\n",
                         "{\"token\": \"secret\"}"),
                     200);
    assert_non_null(strstr(http->fields, "; SameSite=Strict; Secure\r\n"));
    assert_int_equal(log_in(http, "secret"), 200);
    assert_null(strstr(http->fields, "Secure"));
    close_all(http);
}

/* A wrong token beside a good cookie is a guess, and not covered by it. */
TEST("a wrong token in a field is refused whatever the cookie")
{
    struct http_harness *http = open_with(token_rules);
    assert_int_equal(log_in(http, "secret"), 200);
    assert_int_equal(
        with_cookie(http, "GET", "/v1/limits", OWN "X-Weir-Token: wrong\r\n", cookie_line(http)),
        401);
    assert_int_equal(weir_counted(&http->listener->wrong_guesses), 1);
    close_all(http);
}

/* CSRF: the browser sends the cookie with whatever a page asks for. */
TEST("a change by a session needs the origin of the own page")
{
    static const struct {
        const char *fields;
        unsigned status;
    } cases[] = {
        {"Host: localhost:9090\r\nOrigin: http://localhost:9090\r\n", 404}, /* it is looked for */
        {"Host: localhost:9090\r\nOrigin: https://LOCALHOST:9090\r\n", 404},
        {"Host: localhost:9090\r\n", 403},
        {"Host: localhost:9090\r\nOrigin: http://localhost:3000\r\n", 403},
        {"Host: localhost:9090\r\nOrigin: http://localhost\r\n", 403},
        {"Host: localhost:9090\r\nOrigin: http://127.0.0.1:9090\r\n", 403},
        {"Host: localhost:9090\r\nOrigin: http://evil.example\r\n", 403},
        {"Host: localhost:9090\r\nOrigin: null\r\n", 403},
        {"Host: localhost:9090\r\nOrigin: http://localhost:9090\r\n"
         "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n",
         403},
    };
    struct http_harness *http = open_with(token_rules);
    char cookie[200];
    assert_int_equal(log_in(http, "secret"), 200);
    strcpy(cookie, cookie_line(http));
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            with_cookie(http, "POST", "/v1/identities/forget", cases[i].fields, cookie),
            cases[i].status);
    /* The token itself is something that no page of another site has. */
    assert_int_equal(ask(http, "192.0.2.1", "POST", "/v1/identities/forget",
                         "Host: localhost:9090\r\nOrigin: http://localhost:3000\r\n"
                         "Authorization: Bearer secret\r\n",
                         "{}"),
                     404);
    close_all(http);
}

TEST("a page of another site reads nothing and logs nobody in")
{
    static const char *const pages[] = {
        "Host: localhost:9090\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
        "Host: localhost:9090\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n",
        ("Host: localhost:9090\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
         "Sec-Fetch-Dest: iframe\r\n"),
        "Host: evil.example\r\n",
        "Host: localhost:9090\r\nOrigin: http://evil.example\r\n",
    };
    struct http_harness *http = open_with(token_rules);
    char cookie[200];
    assert_int_equal(log_in(http, "secret"), 200);
    strcpy(cookie, cookie_line(http));
    for (unsigned i = 0; i < sizeof pages / sizeof *pages; i++) {
        assert_int_equal(with_cookie(http, "GET", "/v1/limits", pages[i], cookie), 403);
        assert_int_equal(with_cookie(http, "GET", "/v1/events", pages[i], cookie), 403);
        assert_int_equal(
            ask(http, "192.0.2.1", "POST", "/v1/session", pages[i], "{\"token\": \"secret\"}"),
            403);
    }
    /* A person who follows a link comes from anywhere; so does one who types the address. */
    assert_int_equal(with_cookie(http, "GET", "/v1/limits",
                                 "Host: localhost:9090\r\nSec-Fetch-Site: cross-site\r\n"
                                 "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n",
                                 cookie),
                     200);
    assert_int_equal(with_cookie(http, "GET", "/v1/limits",
                                 "Host: localhost:9090\r\nSec-Fetch-Site: none\r\n"
                                 "Sec-Fetch-Mode: navigate\r\n",
                                 cookie),
                     200);
    close_all(http);
}

/* Without a token a Unix socket may change; a browser comes to it through a forwarded port. */
TEST("over a unix socket a browser changes from the own page only")
{
    static const struct {
        const char *fields;
        unsigned read, change;
    } cases[] = {
        {"Host: weir.example\r\n", 200, 404}, /* curl --unix-socket */
        {"Host: localhost:9090\r\nAccept-Language: en\r\nOrigin: http://localhost:9090\r\n", 200,
         404},
        {"Host: localhost:9090\r\nAccept-Language: en\r\nOrigin: http://localhost:3000\r\n", 200,
         403},
        {"Host: rebound.example:9090\r\nAccept-Language: en\r\n", 403, 403},
        {"Host: rebound.example:9090\r\nAccept-Language: en\r\n"
         "Origin: http://rebound.example:9090\r\n",
         403, 403},
        /* A proxy may take Accept-Language away. */
        {"Host: rebound.example:9090\r\nOrigin: http://rebound.example:9090\r\n", 403, 403},
        {"Host: rebound.example:9090\r\nSec-Fetch-Site: same-origin\r\n", 403, 403},
        {"Host: rebound.example:9090\r\nSec-Fetch-Mode: cors\r\n", 403, 403},
        {"Host: rebound.example:9090\r\nSec-Fetch-Dest: empty\r\n", 403, 403},
        {"Host: rebound.example:9090\r\nSec-Fetch-User: ?1\r\n", 403, 403},
    };
    struct http_harness *http = open_with(open_rules);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ask(http, NULL, "GET", "/v1/limits", cases[i].fields, ""), cases[i].read);
        assert_int_equal(ask(http, NULL, "POST", "/v1/identities/forget", cases[i].fields, "{}"),
                         cases[i].change);
    }
    close_all(http);
}

TEST("without a token there is nothing to log in to")
{
    struct http_harness *http = open_with(open_rules);
    assert_int_equal(log_in(http, "secret"), 409);
    assert_int_equal(ask(http, "127.0.0.1", "GET", "/v1/session", OWN, ""), 200);
    assert_true(http_harness_says(http, "\"may_read\":true,\"may_change\":false"));
    assert_int_equal(ask(http, NULL, "GET", "/v1/session", OWN, ""), 200);
    assert_true(http_harness_says(http, "\"may_read\":true,\"may_change\":true"));
    assert_int_equal(ask(http, "192.0.2.1", "GET", "/v1/session", OWN, ""), 200);
    assert_true(http_harness_says(http, "\"may_read\":false,\"may_change\":false"));
    close_all(http);
}

/* Files of pages say nothing about the server: browsers keep them, and ask whether they are new. */
TEST("every reply of the listener but files is kept by no cache")
{
    static const struct {
        const char *path;
        bool file;
    } cases[] = {{"/", true},           {"/dashboard/app.js", true}, {"/v1/session", false},
                 {"/v1/limits", false}, {"/healthz", false},         {"/nothing", false},
                 {"/playground/", true}};
    struct http_harness *http = open_with(token_rules);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(ask(http, "192.0.2.1", "GET", cases[i].path, OWN, "") > 0);
        assert_true(http_harness_has(http, cases[i].file ? "Cache-Control: no-cache"
                                                         : "Cache-Control: no-store"));
        assert_true(http_harness_has(http, "X-Content-Type-Options: nosniff"));
    }
    close_all(http);
}

TEST("the page is for everybody and may do nothing but ask its listener")
{
    struct http_harness *http = open_with(token_rules);
    assert_int_equal(ask(http, "192.0.2.1", "GET", "/", OWN, ""), 200);
    assert_true(http_harness_has(http, "Content-Type: text/html; charset=utf-8"));
    assert_true(http_harness_has(http, "X-Frame-Options: DENY"));
    const char *policy = strstr(http->fields, "Content-Security-Policy: default-src 'none';");
    assert_non_null(policy);
    assert_non_null(strstr(policy, "frame-ancestors 'none'"));
    assert_null(strstr(policy, "unsafe"));
    assert_int_equal(ask(http, "192.0.2.1", "GET", "/dashboard/style.css", OWN, ""), 200);
    assert_int_equal(ask(http, "192.0.2.1", "GET", "/dashboard/../app.js", OWN, ""), 404);
    assert_int_equal(ask(http, "192.0.2.1", "GET", "/dashboard/", OWN, ""), 303);
    assert_int_equal(ask(http, "192.0.2.1", "POST", "/", OWN, "{}"), 405);
    close_all(http);
}

RUN_TESTS()
