/* SPDX-License-Identifier: Apache-2.0 */
/* wire/http1: heads of requests, and what is refused in them. */
#include "http1_feed.h"
#include "test.h"

TEST("a request is taken apart")
{
    static const char text[] = "POST /v1/auth?deny_status=403&x HTTP/1.1\r\n"
                               "Host: Example.org:8080\r\n"
                               "X-Forwarded-For: \t 192.0.2.1, 10.0.0.1 \t\r\n"
                               "Empty:\r\n"
                               "content-LENGTH: 5\r\n"
                               "\r\nhelloGET ";
    struct parsed parsed;
    parse_whole(&parsed, text, sizeof text - 1);
    assert_int_equal(parsed.taken, (long)sizeof text - 1 - 4);
    assert_bytes(parsed.request.method, "POST");
    assert_bytes(parsed.request.target, "/v1/auth?deny_status=403&x");
    assert_bytes(parsed.request.path, "/v1/auth");
    assert_bytes(parsed.request.query, "deny_status=403&x");
    assert_bytes(parsed.request.host, "Example.org:8080");
    assert_bytes(parsed.request.body, "hello");
    assert_int_equal(parsed.request.minor, 1);
    assert_int_equal(parsed.request.field_count, 4);
    assert_true(parsed.request.keep_alive);
    assert_false(parsed.request.expect_continue);
    assert_bytes(weir_http1_field(&parsed.request, "x-forwarded-for"), "192.0.2.1, 10.0.0.1");
    assert_bytes(weir_http1_field(&parsed.request, "empty"), "");
    assert_bytes(weir_http1_field(&parsed.request, "absent"), NULL);
    assert_same_however_split(text, sizeof text - 1);
}

TEST("targets are split into path query and host")
{
    static const struct {
        const char *line, *path, *query, *host;
    } cases[] = {
        {"GET /", "/", NULL, "f"},
        {"GET /a%2f/../b;c", "/a%2f/../b;c", NULL, "f"},
        {"GET /?", "/", "", "f"},
        {"GET /a?b?c", "/a", "b?c", "f"},
        {"GET //x", "//x", NULL, "f"},
        {"GET /p\xc3\xa9", "/p\xc3\xa9", NULL, "f"},
        {"OPTIONS *", "*", NULL, "f"},
        {"GET http://other:81/a?b", "/a", "b", "other:81"},
        {"GET HTTPS://[::1]:81/a", "/a", NULL, "[::1]:81"},
        {"GET http://other", "/", NULL, "other"},
        {"GET http://other?q", "/", "q", "other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct parsed parsed;
        snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: f\r\n\r\n", cases[i].line);
        parse_whole(&parsed, text, strlen(text));
        assert_int_equal(parsed.taken, (long)strlen(text));
        assert_bytes(parsed.request.path, cases[i].path);
        assert_bytes(parsed.request.query, cases[i].query);
        assert_bytes(parsed.request.host, cases[i].host);
        assert_same_however_split(text, strlen(text));
    }
}

TEST("keep alive follows version and connection")
{
    static const struct {
        const char *version, *connection;
        bool expected;
    } cases[] = {
        {"1.1", "", true},
        {"1.1", "Connection: close\r\n", false},
        {"1.1", "Connection: Upgrade ,CLOSE\r\n", false},
        {"1.1", "Connection: keep-alive\r\nConnection: close\r\n", false},
        {"1.1", "Connection: closed\r\n", true},
        {"1.1", "Connection: \"close\"x, close-x\r\n", false},
        {"1.0", "", false},
        {"1.0", "Connection: Keep-Alive\r\n", true},
        {"1.0", "Connection: keep-alive, close\r\n", false},
        {"1.9", "", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct parsed parsed;
        snprintf(text, sizeof text, "GET / HTTP/%s\r\nHost: f\r\n%s\r\n", cases[i].version,
                 cases[i].connection);
        parse_whole(&parsed, text, strlen(text));
        assert_int_equal(parsed.taken, (long)strlen(text));
        assert_int_equal(parsed.request.keep_alive, cases[i].expected);
    }
}

TEST("empty lines before a request are skipped")
{
    assert_accepted("\r\n\r\n" GET "\r\n");
    assert_refused("\n" GET "\r\n", 400);
    assert_refused("\r" GET "\r\n", 400);
    assert_refused(" \r\n" GET "\r\n", 400);
}

TEST("http 1 0 needs no host")
{
    assert_accepted("GET / HTTP/1.0\r\n\r\n");
    assert_refused("GET / HTTP/1.1\r\n\r\n", 400);
}

TEST("malformed request lines are refused")
{
    static const char *const lines[] = {
        "GET",
        "GET ",
        "GET /",
        "GET  / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /  HTTP/1.1",
        "GET / / HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1",
        "GET / HTTP/1.",
        "GET / HTTP/1.10",
        "GET / HTTP/a.1",
        "GET / HTTP/1.x",
        "GET / HTTP/1,1",
        "GET / HTTX/1.1",
        "GET /\tHTTP/1.1",
        "G{T / HTTP/1.1",
        "G\xc3\xa9T / HTTP/1.1",
        "(GET) / HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "GET /#f HTTP/1.1",
        "GET /?# HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "GET http:// HTTP/1.1",
        "GET http:///a HTTP/1.1",
        "GET http://u@a/ HTTP/1.1",
        "GET http://a#f HTTP/1.1",
        "GET http:/a HTTP/1.1",
        "GET  HTTP/1.1",
        "GET HTTP/1.1",
        "HTTP/1.1",
        "GET ? HTTP/1.1",
        "OPTIONS ** HTTP/1.1",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s\r\nHost: a\r\n\r\n", lines[i]);
        assert_refused(text, 400);
    }
}

TEST("other versions of http are refused with 505")
{
    assert_refused("PRI * HTTP/2.0\r\n\r\n", 505);
    assert_refused("GET / HTTP/0.9\r\n\r\n", 505);
    assert_refused("GET / HTTP/3.1\r\nHost: a\r\n\r\n", 505);
}

TEST("line ends other than cr lf are refused")
{
    assert_refused("GET / HTTP/1.1\nHost: a\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nHost: a\n\r\n", 400);
    assert_refused(GET "\n", 400);
    assert_refused(GET "\r\r\n", 400);
    assert_refused(GET "A: b\rC: d\r\n\r\n", 400);
    assert_refused(GET "A: b\r\r\nC: d\r\n\r\n", 400);
    assert_refused(GET "A: b\n C: d\r\n\r\n", 400);
    assert_refused("\x16\x03\x01\x02", 400); /* a TLS client is answered at once */
}

TEST("controls and nul are refused wherever they stand")
{
    for (int c = 0; c < 256; c++) {
        static const char head[] = GET "Long-Enough: to be scanned by sixteens, ";
        char text[128];
        size_t size = sizeof head - 1;
        memcpy(text, head, size);
        text[size++] = (char)c;
        memcpy(text + size, "x\r\n\r\n", 5);
        size += 5;
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            assert_refused_bytes(text, size, 400);
        } else {
            struct parsed parsed;
            parse_whole(&parsed, text, size);
            assert_int_equal(parsed.taken, (long)size);
        }
    }
    assert_refused_bytes("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 28, 400);
    assert_refused_bytes(GET "A\0: b\r\n\r\n", sizeof(GET "A\0: b\r\n\r\n") - 1, 400);
}

TEST("malformed fields are refused")
{
    static const char *const fields[] = {
        "A : b",   "A\t: b",   " A: b",        "\tA: b", ": b",      "A",      "A b: c",
        "A(b): c", "\"A\": b", "A\xc3\xa9: b", "=",      "Host : b", "[a]: b",
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, GET "%s\r\n\r\n", fields[i]);
        assert_refused(text, 400);
    }
    assert_refused(GET "A: b\r\n folded\r\n\r\n", 400);
    assert_refused(GET "A: b\r\n\tfolded\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400);
}

TEST("a host is one and a host")
{
    assert_refused("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nhost: a\r\nHOST: b\r\n\r\n", 400);
    assert_refused("GET http://a/ HTTP/1.1\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nHost: u@b\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400);
    assert_refused("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    assert_accepted("GET / HTTP/1.1\r\nHost:\r\n\r\n");
    assert_accepted("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
    assert_accepted("GET / HTTP/1.1\r\nHost: xn--a_b.example.\r\n\r\n");
}

TEST("heads have limits in fields and bytes")
{
    char *text = memory_new(2 * WEIR_HTTP1_HEAD_MAX);
    struct parsed parsed;
    for (unsigned fields = WEIR_HTTP1_FIELDS_MAX; fields <= WEIR_HTTP1_FIELDS_MAX + 1; fields++) {
        size_t size = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (unsigned i = 1; i < fields; i++)
            size += (size_t)sprintf(text + size, "F%u: v%u\r\n", i, i);
        size += (size_t)sprintf(text + size, "\r\n");
        if (fields > WEIR_HTTP1_FIELDS_MAX) {
            assert_refused_bytes(text, size, 431);
            continue;
        }
        parse_whole(&parsed, text, size);
        assert_int_equal(parsed.taken, (long)size);
        assert_int_equal(parsed.request.field_count, fields);
        assert_bytes(weir_http1_field(&parsed.request, "f99"), "v99");
    }
    for (size_t excess = 0; excess < 2; excess++) {
        size_t size = WEIR_HTTP1_HEAD_MAX + excess;
        memset(text, 'x', size);
        memcpy(text, "GET / HTTP/1.1\r\nHost: a\r\nA: ", 28);
        memcpy(text + size - 4, "\r\n\r\n", 4);
        if (excess > 0) {
            assert_refused_bytes(text, size, 431);
        } else {
            parse_whole(&parsed, text, size);
            assert_int_equal(parsed.taken, (long)size);
        }
    }
    memset(text, 'x', 2 * WEIR_HTTP1_HEAD_MAX);
    memcpy(text, "GET /", 5);
    parse_whole(&parsed, text, WEIR_HTTP1_HEAD_MAX - 1);
    assert_int_equal(parsed.taken, 0);
    assert_refused_bytes(text, WEIR_HTTP1_HEAD_MAX, 414);
    for (size_t i = 0; i < WEIR_HTTP1_HEAD_MAX; i++)
        text[i] = "\r\n"[i % 2];
    assert_refused_bytes(text, WEIR_HTTP1_HEAD_MAX, 414);
    free(text);
}

TEST("fields that handlers ask for are noted: the first of each")
{
    struct parsed parsed;
    static const char none[] = "GET / HTTP/1.1\r\nHost: a\r\nContent-Typ3: x\r\n\r\n";
    static const char some[] = "POST / HTTP/1.1\r\nHost: a\r\nCONTENT-type: text/plain\r\n"
                               "idempotency-KEY: \"k\"\r\nContent-Type: b\r\n\r\n";
    static const char both[] = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n"
                               "Content-Type:\r\nIdempotency-Key: l\r\n\r\n";
    parse_whole(&parsed, some, sizeof some - 1);
    assert_int_equal(parsed.taken, (long)sizeof some - 1);
    assert_bytes(parsed.request.content_type, "text/plain");
    assert_bytes(parsed.request.idempotency_key, "\"k\"");
    assert_false(parsed.request.idempotency_key_repeated);
    parse_whole(&parsed, both, sizeof both - 1);
    assert_non_null(parsed.request.content_type.data);
    assert_int_equal(parsed.request.content_type.size, 0);
    assert_bytes(parsed.request.idempotency_key, "k");
    assert_true(parsed.request.idempotency_key_repeated);
    parse_whole(&parsed, none, sizeof none - 1);
    assert_null(parsed.request.content_type.data);
    assert_null(parsed.request.idempotency_key.data);
    assert_false(parsed.request.idempotency_key_repeated);
}

TEST("noted fields move with the buffer while the body comes")
{
    static const char text[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: b/c\r\n"
                               "Idempotency-Key: k\r\nContent-Length: 2\r\n\r\nxy";
    char first[sizeof text], second[sizeof text];
    struct weir_http1_parser parser = {0};
    struct weir_http1_request request;
    memcpy(first, text, sizeof text - 1);
    memcpy(second, text, sizeof text - 1);
    assert_int_equal(weir_http1_parse(&parser, first, sizeof text - 3, &request), 0);
    memset(first, 'z', sizeof first);
    assert_int_equal(weir_http1_parse(&parser, second, sizeof text - 1, &request),
                     (long)sizeof text - 1);
    assert_bytes(request.content_type, "b/c");
    assert_bytes(request.idempotency_key, "k");
}

RUN_TESTS_WITH(room_open, room_close)
