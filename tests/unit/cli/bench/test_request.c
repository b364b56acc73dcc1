/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a load: as bytes, with the keys in their places, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "cli/bench/request.h"
#include "failing_memory.h"
#include "test.h"

static void assert_text(const struct bench_request *request, const char *text)
{
    assert_int_equal(request->size, strlen(text));
    assert_memory_equal(request->text, text, request->size);
}

TEST("a command line becomes an array")
{
    struct bench_request request;
    assert_int_equal(bench_request_resp(&request, "  SET a  'b c' \"\" \"it's\" x'y "), 0);
    assert_text(&request, "*6\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\nb c\r\n$0\r\n\r\n$4\r\nit's\r\n"
                          "$3\r\nx'y\r\n");
    assert_int_equal(request.hole_count, 0);
    bench_request_free(&request);
}

TEST("a key is written in all its places")
{
    struct bench_request request;
    assert_int_equal(bench_request_resp(&request, "X {key} a{key}b{key} {ip} {nokey} {"), 0);
    assert_int_equal(request.hole_count, 4);
    bench_request_patch(&request, request.text, 4294967295);
    assert_text(&request, "*6\r\n$1\r\nX\r\n$12\r\n004294967295\r\n"
                          "$26\r\na004294967295b004294967295\r\n"
                          "$21\r\n2001:db8:ffff:ffff::1\r\n$7\r\n{nokey}\r\n$1\r\n{\r\n");
    bench_request_patch(&request, request.text, 0x12345);
    assert_text(&request, "*6\r\n$1\r\nX\r\n$12\r\n000000074565\r\n"
                          "$26\r\na000000074565b000000074565\r\n"
                          "$21\r\n2001:db8:0001:2345::1\r\n$7\r\n{nokey}\r\n$1\r\n{\r\n");
    bench_request_free(&request);
}

TEST("an http request has host and length")
{
    struct bench_request request;
    static const char *const headers[] = {"A: b", "X-Forwarded-For: {ip}"};
    assert_int_equal(bench_request_http(&request, "h:1", "GET /p?k={key}", headers, 2, NULL), 0);
    assert_text(&request, "GET /p?k=000000000000 HTTP/1.1\r\nHost: h:1\r\nA: b\r\n"
                          "X-Forwarded-For: 2001:db8:0000:0000::1\r\n\r\n");
    bench_request_free(&request);
    assert_int_equal(bench_request_http(&request, "h", "POST /", NULL, 0, "[\"{key}\"]"), 0);
    assert_text(&request, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 16\r\n\r\n"
                          "[\"000000000000\"]");
    bench_request_free(&request);
}

TEST("what is no request is refused")
{
    struct bench_request request;
    static const char *const header = "A: b\r\nC: d";
    static const char *const lines[] = {"", "  ", "GET 'a", "\""};
    static const char *const starts[] = {"", "GET", " /", "GET path", "GET / HTTP/1.1", "G\r\nT /"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(bench_request_resp(&request, lines[i]), WEIR_ERR_SYNTAX);
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        assert_int_equal(bench_request_http(&request, "h", starts[i], NULL, 0, NULL),
                         WEIR_ERR_SYNTAX);
    assert_int_equal(bench_request_http(&request, "h", "GET /", &header, 1, NULL), WEIR_ERR_SYNTAX);
}

TEST("requests are bounded")
{
    struct bench_request request;
    char *line = calloc(1, BENCH_REQUEST_MAX + 1), holes[BENCH_HOLES_MAX * 5 + 6] = "";
    assert_non_null(line);
    memset(line, 'x', BENCH_REQUEST_MAX - 14); /* *1 CR LF $65522 CR LF … CR LF */
    assert_int_equal(bench_request_resp(&request, line), 0);
    assert_int_equal(request.size, BENCH_REQUEST_MAX);
    bench_request_free(&request);
    line[BENCH_REQUEST_MAX - 14] = 'x';
    assert_int_equal(bench_request_resp(&request, line), WEIR_ERR_TOO_LARGE);
    for (int i = 0; i < BENCH_HOLES_MAX; i++)
        memcpy(holes + strlen(holes), "{key}", 6);
    assert_int_equal(bench_request_resp(&request, holes), 0);
    bench_request_free(&request);
    memcpy(holes + strlen(holes), "{key}", 6);
    assert_int_equal(bench_request_resp(&request, holes), WEIR_ERR_TOO_LARGE);
    free(line);
}

TEST("no memory is reported")
{
    struct bench_request request;
    failing_memory_after(0);
    assert_int_equal(bench_request_resp(&request, "PING"), WEIR_ERR_MEMORY);
    failing_memory_after(0);
    assert_int_equal(bench_request_http(&request, "h", "GET /", NULL, 0, NULL), WEIR_ERR_MEMORY);
    assert_true(failing_memory_stop());
}

RUN_TESTS()
