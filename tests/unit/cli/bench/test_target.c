/* SPDX-License-Identifier: Apache-2.0 */
/* Where a load goes: addresses as they are written, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <netinet/in.h>

#include <arpa/inet.h>

#include "cli/bench/target.h"
#include "test.h"

static struct bench_target target;
static struct weir_reason reason;

static void assert_tcp(const char *text, enum bench_protocol protocol, const char *host,
                       uint16_t port)
{
    assert_int_equal(bench_target_parse(&target, text, &reason), 0);
    assert_int_equal(target.protocol, protocol);
    assert_string_equal(target.host, host);
    assert_int_equal(target.any.sa_family, strchr(host, '[') ? AF_INET6 : AF_INET);
    assert_int_equal(ntohs(((struct sockaddr_in *)(void *)&target.inet)->sin_port), port);
}

TEST("addresses name protocol host and port")
{
    assert_tcp("redis://127.0.0.1", BENCH_RESP, "127.0.0.1:6380", 6380);
    assert_tcp("redis://127.0.0.1:1", BENCH_RESP, "127.0.0.1:1", 1);
    assert_tcp("http://127.0.0.1", BENCH_HTTP, "127.0.0.1:8080", 8080);
    assert_tcp("http://[::1]:65535", BENCH_HTTP, "[::1]:65535", 65535);
    assert_tcp("redis://[::1]", BENCH_RESP, "[::1]:6380", 6380);
}

TEST("unix sockets are paths")
{
    assert_int_equal(bench_target_parse(&target, "unix:/tmp/a b", &reason), 0);
    assert_int_equal(target.protocol, BENCH_RESP);
    assert_int_equal(target.any.sa_family, AF_UNIX);
    assert_string_equal(target.un.sun_path, "/tmp/a b");
    assert_int_equal(bench_target_parse(&target, "http+unix:/x", &reason), 0);
    assert_int_equal(target.protocol, BENCH_HTTP);
    assert_string_equal(target.host, "localhost");
}

TEST("a unix path fits or is refused")
{
    char text[5 + sizeof target.un.sun_path + 1] = "unix:";
    memset(text + 5, 'x', sizeof target.un.sun_path);
    text[5] = '/';
    assert_int_equal(bench_target_parse(&target, text, &reason), WEIR_ERR_SYNTAX);
    text[5 + sizeof target.un.sun_path - 1] = '\0';
    assert_int_equal(bench_target_parse(&target, text, &reason), 0);
}

TEST("what is no address is refused")
{
    static const char *const texts[] = {"",
                                        "127.0.0.1:6379",
                                        "tcp://127.0.0.1",
                                        "redis://",
                                        "redis://:1",
                                        "redis://127.0.0.1:",
                                        "redis://127.0.0.1:x",
                                        "redis://127.0.0.1:1x",
                                        "redis://127.0.0.1:65536",
                                        "redis://127.0.0.1:0",
                                        "redis://::1",
                                        "redis://[::1",
                                        "redis://[]",
                                        "redis://[::1]x",
                                        "http://127.0.0.1/path",
                                        "unix:",
                                        "unix:relative"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        reason.text[0] = '\0';
        assert_true(bench_target_parse(&target, texts[i], &reason) < 0);
        assert_true(reason.text[0] != '\0');
    }
}

TEST("nobody listening is an error")
{
    assert_int_equal(bench_target_parse(&target, "unix:/nonexistent/socket", &reason), 0);
    assert_int_equal(bench_target_connect(&target, NULL, false, &reason), WEIR_ERR_IO);
    assert_string_equal(reason.text, "cannot connect: No such file or directory");
}

RUN_TESTS()
