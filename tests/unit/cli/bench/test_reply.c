/* SPDX-License-Identifier: Apache-2.0 */
/* What replies say, in both protocols: done, denied, failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/error.h>

#include "cli/bench/reply.h"
#include "test.h"

static long read_text(enum bench_protocol protocol, const struct bench_denial *denial,
                      const char *text, struct bench_reply *reply)
{
    static struct bench_reader reader;
    static char data[4096];
    reader = (struct bench_reader){.protocol = protocol};
    memcpy(data, text, strlen(text));
    return bench_reply_read(&reader, denial, data, strlen(text), reply);
}

static void assert_verdict(enum bench_protocol protocol, const char *command, const char *text,
                           enum bench_verdict verdict)
{
    struct bench_denial denial = bench_denial_of(command);
    struct bench_reply reply;
    assert_int_equal(read_text(protocol, &denial, text, &reply), (long)strlen(text));
    assert_int_equal(reply.verdict, verdict);
}

TEST("commands of limiters say what a denial is")
{
    assert_verdict(BENCH_RESP, "CL.THROTTLE k 1 1 1", "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n",
                   BENCH_DONE);
    assert_verdict(BENCH_RESP, "cl.throttle k 1 1 1", "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:2\r\n",
                   BENCH_DENIED);
    assert_verdict(BENCH_RESP, "GCRA k 1 1 1", "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:2\r\n",
                   BENCH_DENIED);
    assert_verdict(BENCH_RESP, "THROTTLE k 1 1 1", "*5\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n",
                   BENCH_DENIED);
    assert_verdict(BENCH_RESP, "THROTTLE k 1 1 1", "*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n:0\r\n",
                   BENCH_DONE);
    assert_verdict(BENCH_RESP, "INCREX k UBOUND 1", "*2\r\n:1\r\n:0\r\n", BENCH_DENIED);
    assert_verdict(BENCH_RESP, "INCREX k UBOUND 1", "*2\r\n:0\r\n:1\r\n", BENCH_DONE);
    assert_verdict(BENCH_RESP, "WEIR.CHECK a b", "*4\r\n$7\r\nallowed\r\n:0\r\n$1\r\nx\r\n*0\r\n",
                   BENCH_DENIED);
    assert_verdict(BENCH_RESP, "WEIR.CHECKALL 1 k 1 1 1 1", "%1\r\n$7\r\nallowed\r\n#f\r\n",
                   BENCH_DENIED);
    assert_verdict(BENCH_RESP, "WEIR.CHECK a b", "%1\r\n$7\r\nallowed\r\n#t\r\n", BENCH_DONE);
}

TEST("other commands are never denied")
{
    assert_verdict(BENCH_RESP, "INCR k", ":1\r\n", BENCH_DONE);
    assert_verdict(BENCH_RESP, "CL.THROTTLEX k", "*1\r\n:1\r\n", BENCH_DONE);
    assert_verdict(BENCH_RESP, "CL.THROTTLE", "*0\r\n", BENCH_DONE);
}

TEST("a denial may be reported of any command")
{
    struct bench_denial denial;
    struct bench_reply reply;
    assert_true(bench_denial_parse("0=-1", &denial));
    assert_int_equal(read_text(BENCH_RESP, &denial, ":-1\r\n", &reply), 5);
    assert_int_equal(reply.verdict, BENCH_DENIED);
    /* Elements of elements are not counted. */
    assert_true(bench_denial_parse("1=3", &denial));
    assert_int_equal(read_text(BENCH_RESP, &denial, "*2\r\n*1\r\n:9\r\n:3\r\n", &reply), 16);
    assert_int_equal(reply.verdict, BENCH_DENIED);
    assert_true(bench_denial_parse("15=1", &denial));
    assert_int_equal(read_text(BENCH_RESP, &denial, "*2\r\n:1\r\n:1\r\n", &reply), 12);
    assert_int_equal(reply.verdict, BENCH_DONE);
    static const char *const bad[] = {"",     "0",    "=1",   "0=",   "0=x",
                                      "16=1", "-1=1", "0=1x", "0= 1", "0=99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(bench_denial_parse(bad[i], &denial));
}

TEST("errors are failures with their text")
{
    struct bench_denial denial = {0};
    struct bench_reply reply;
    assert_int_equal(read_text(BENCH_RESP, &denial, "-ERR no\r\n", &reply), 9);
    assert_int_equal(reply.verdict, BENCH_FAILED);
    assert_int_equal(reply.error.size, 6);
    assert_memory_equal(reply.error.data, "ERR no", 6);
    static const char http[] = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(read_text(BENCH_HTTP, &denial, http, &reply), (long)strlen(http));
    assert_int_equal(reply.verdict, BENCH_FAILED);
    assert_int_equal(reply.error.size, 17);
    assert_memory_equal(reply.error.data, "HTTP/1.1 503 Busy", 17);
}

TEST("http denies with 429")
{
    assert_verdict(BENCH_HTTP, "", "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
                   BENCH_DENIED);
    assert_verdict(BENCH_HTTP, "", "HTTP/1.1 204 No Content\r\n\r\n", BENCH_DONE);
    struct bench_denial denial = {0};
    struct bench_reply reply;
    static const char text[] = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_int_equal(read_text(BENCH_HTTP, &denial, text, &reply), (long)strlen(text));
    assert_true(reply.last);
}

TEST("what is no reply is an error")
{
    struct bench_denial denial = {0};
    struct bench_reply reply;
    assert_int_equal(read_text(BENCH_RESP, &denial, "HTTP/1.1 200 OK\r\n", &reply),
                     WEIR_ERR_SYNTAX);
    assert_int_equal(read_text(BENCH_HTTP, &denial, "-ERR\r\n", &reply), WEIR_ERR_SYNTAX);
    assert_int_equal(read_text(BENCH_RESP, &denial, "*2\r\n:1\r\n", &reply), 0);
}

RUN_TESTS()
