/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on, and the sockets for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/net/listener.h"
#include "temporary.h"
#include "test.h"

static void check_parse(const char *text, enum weir_endpoint_kind kind, bool local,
                        const char *formatted)
{
    struct weir_endpoint endpoint;
    struct weir_reason reason = {{0}};
    char out[WEIR_ENDPOINT_TEXT_MAX];
    assert_int_equal(weir_endpoint_parse(&endpoint, text, &reason), 0);
    assert_int_equal(endpoint.kind, kind);
    weir_endpoint_format(&endpoint, out);
    assert_string_equal(out, formatted);
    if (kind != WEIR_ENDPOINT_OFF)
        assert_int_equal(endpoint.local, local);
}

TEST("addresses are read and know whether others can reach them")
{
    check_parse("off", WEIR_ENDPOINT_OFF, false, "off");
    check_parse("127.0.0.1:8080", WEIR_ENDPOINT_TCP, true, "127.0.0.1:8080");
    check_parse("127.9.9.9:0", WEIR_ENDPOINT_TCP, true, "127.9.9.9:0");
    check_parse("localhost:1", WEIR_ENDPOINT_TCP, true, "127.0.0.1:1");
    check_parse("[::1]:65535", WEIR_ENDPOINT_TCP, true, "[::1]:65535");
    check_parse("0.0.0.0:80", WEIR_ENDPOINT_TCP, false, "0.0.0.0:80");
    check_parse("[::]:80", WEIR_ENDPOINT_TCP, false, "[::]:80");
    check_parse("*:80", WEIR_ENDPOINT_TCP, false, "[::]:80");
    check_parse("192.0.2.7:80", WEIR_ENDPOINT_TCP, false, "192.0.2.7:80");
    check_parse("[2001:db8::1]:80", WEIR_ENDPOINT_TCP, false, "[2001:db8::1]:80");
    check_parse("unix:/run/weir.sock", WEIR_ENDPOINT_UNIX, true, "unix:/run/weir.sock");
}

TEST("what is no address is refused with a reason")
{
    static const char *const bad[] = {
        "",
        "8080",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:x",
        ":8080",
        "127.0.0.1:-1",
        "[::1]",
        "::1:8080",
        "[::1:80",
        "[127.0.0.256]:1",
        "unix:",
        "example.com:1",
        "1.2.3.4.5:80",
        "Off",
        "127.0.0.1: 80",
    };
    char longest[200];
    struct weir_endpoint endpoint;
    struct weir_reason reason;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        reason.text[0] = 0;
        assert_int_equal(weir_endpoint_parse(&endpoint, bad[i], &reason), WEIR_ERR_SYNTAX);
        assert_true(reason.text[0]);
    }
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "unix:/", 6);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(weir_endpoint_parse(&endpoint, longest, &reason), WEIR_ERR_SYNTAX);
}

static void close_all(const int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

TEST("port zero becomes one port for all sockets")
{
    struct weir_endpoint endpoint;
    struct weir_reason reason;
    int fds[3];
    assert_int_equal(weir_endpoint_parse(&endpoint, "127.0.0.1:0", &reason), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, fds, 3, &reason), 0);
    assert_int_not_equal(endpoint.in.sin_port, 0);
    for (unsigned i = 0; i < 3; i++) {
        struct sockaddr_in bound;
        socklen_t size = sizeof bound;
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&bound, &size), 0);
        assert_int_equal(bound.sin_port, endpoint.in.sin_port);
    }
    close_all(fds, 3);
}

TEST("a port that others listen on is refused though they share it")
{
    struct weir_endpoint endpoint;
    struct weir_reason reason = {{0}};
    int first[2], second[2];
    assert_int_equal(weir_endpoint_parse(&endpoint, "127.0.0.1:0", &reason), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, first, 2, &reason), 0);
    assert_int_equal(listen(first[0], 1), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, second, 2, &reason), WEIR_ERR_IO);
    assert_non_null(strstr(reason.text, "Address already in use"));
    close_all(first, 2);
}

TEST("a unix socket is taken over only when nobody listens")
{
    char folder[TEMPORARY_MAX], text[128];
    struct weir_endpoint endpoint;
    struct weir_reason reason = {{0}};
    int first[2], second[1];
    temporary_folder(folder);
    snprintf(text, sizeof text, "unix:%s/socket", folder);
    assert_int_equal(weir_endpoint_parse(&endpoint, text, &reason), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, first, 2, &reason), 0);
    assert_int_equal(listen(first[0], 1), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, second, 1, &reason), WEIR_ERR_IO);
    close_all(first, 2);
    assert_int_equal(weir_endpoint_bind(&endpoint, second, 1, &reason), 0);
    close(second[0]);
    weir_endpoint_remove(&endpoint);
    assert_int_equal(rmdir(folder), 0); /* the socket has gone */
}

TEST("what is no socket at the path of one stays")
{
    char path[TEMPORARY_MAX], text[128];
    struct weir_endpoint endpoint;
    struct weir_reason reason = {{0}};
    int file = temporary_file(path), fds[1];
    snprintf(text, sizeof text, "unix:%s", path);
    assert_int_equal(weir_endpoint_parse(&endpoint, text, &reason), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, fds, 1, &reason), WEIR_ERR_IO);
    assert_int_equal(access(path, F_OK), 0);
    close(file);
    temporary_remove(path);
}

RUN_TESTS()
