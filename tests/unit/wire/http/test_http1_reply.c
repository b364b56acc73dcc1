/* SPDX-License-Identifier: Apache-2.0 */
/* wire/http1_reply: replies whole and in pieces, and what is refused. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/http/http1_reply.h"

static struct guarded guarded;

static int room_open(void **state)
{
    guarded = guarded_new(1 << 20);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

/* Parses text in two pieces, against an unmapped page, the buffer moving in between. */
static long parse_split(const char *text, size_t size, size_t at, struct weir_http1_reply *reply)
{
    struct weir_http1_reply_reader reader = {0};
    memset(reply, 0, sizeof *reply);
    if (at > 0) {
        memcpy(guarded.end - at, text, at);
        long taken = weir_http1_reply_parse(&reader, guarded.end - at, at, reply);
        if (taken != 0)
            return taken;
        memmove(guarded.end - size, guarded.end - at, at);
    }
    memcpy(guarded.end - size + at, text + at, size - at);
    return weir_http1_reply_parse(&reader, guarded.end - size, size, reply);
}

/* The same result at every split. */
static void expect(const char *text, long taken, uint16_t status, bool keep_alive, const char *body)
{
    size_t size = strlen(text);
    for (size_t at = 0; at < size; at++) {
        struct weir_http1_reply reply;
        assert_int_equal(parse_split(text, size, at, &reply), taken);
        if (taken > 0) {
            assert_int_equal(reply.status, status);
            assert_int_equal(reply.keep_alive, keep_alive);
            assert_int_equal(reply.body.size, strlen(body));
            assert_memory_equal(reply.body.data, body, reply.body.size);
        }
    }
}

static void expect_error(const char *text, long error)
{
    expect(text, error, 0, false, "");
}

TEST("a body of a stated length is read")
{
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 43, 200, true, "hello");
    expect("HTTP/1.1 429 Too Many Requests\r\ncontent-length:0\r\nRetry-After: 3\r\n\r\n", 68, 429,
           true, "");
    expect("HTTP/1.1 200\r\nContent-Length: 1 \r\n\r\nx", 37, 200, true, "x");
}

TEST("the fields are given with their line ends")
{
    struct weir_http1_reply reply;
    static const char text[] = "HTTP/1.1 204 No Content\r\nA: 1\r\nB: 2\r\n\r\n";
    assert_int_equal(parse_split(text, strlen(text), 30, &reply), (long)strlen(text));
    assert_int_equal(reply.fields.size, 12);
    assert_memory_equal(reply.fields.data, "A: 1\r\nB: 2\r\n", 12);
}

TEST("a reply without fields is read")
{
    struct weir_http1_reply reply;
    assert_int_equal(parse_split("HTTP/1.1 204 \r\n\r\n", 17, 9, &reply), 17);
    assert_int_equal(reply.fields.size, 0);
}

TEST("what comes after a reply is left")
{
    expect("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP", 39, 200, true, "x");
    expect("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\nHTTP/1.1", 48, 304, true, "");
    expect("HTTP/1.1 100 Continue\r\n\r\nHTTP", 25, 100, true, "");
}

TEST("a chunked body is joined")
{
    expect(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
        71, 200, true, "abcde");
}

TEST("the connection field says whether it stays")
{
    expect("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 57, 200, false, "");
    expect("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 38, 200, false, "");
    expect("HTTP/1.0 200 OK\r\nConnection: x, Keep-Alive\r\nContent-Length: 0\r\n\r\n", 65, 200,
           true, "");
}

TEST("an unfinished reply waits for more")
{
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", 0, 0, false, "");
    expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r", 0, 0, false, "");
    expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", 0, 0, false, "");
}

TEST("what is no reply is refused")
{
    static const char *const texts[] = {
        "-ERR unknown command",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 O\nK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\n: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nName\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: \x7f\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_error(texts[i], WEIR_ERR_SYNTAX);
}

TEST("what cannot be framed is said to be unsupported")
{
    expect_error("HTTP/1.1 200 OK\r\n\r\n", WEIR_ERR_UNSUPPORTED);
    expect_error("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                 WEIR_ERR_UNSUPPORTED);
    expect_error("HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", WEIR_ERR_UNSUPPORTED);
}

/* A head of a given size, all in one field. */
static long head_of(size_t size)
{
    static const char start[] = "HTTP/1.1 204 No Content\r\nA: ";
    struct weir_http1_reply reply;
    char *text = memory_new(size);
    memset(text, 'x', size);
    memcpy(text, start, sizeof start - 1);
    memcpy(text + size - 4, "\r\n\r\n", 4);
    long taken = parse_split(text, size, size / 2, &reply);
    free(text);
    return taken;
}

TEST("heads and bodies are bounded")
{
    assert_int_equal(head_of(WEIR_HTTP1_REPLY_HEAD_MAX), WEIR_HTTP1_REPLY_HEAD_MAX);
    assert_int_equal(head_of(WEIR_HTTP1_REPLY_HEAD_MAX + 1), WEIR_ERR_TOO_LARGE);
    expect("HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n", 0, 0, false, "");
    expect_error("HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n", WEIR_ERR_TOO_LARGE);
    expect_error("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 WEIR_ERR_TOO_LARGE);
}

RUN_TESTS_WITH(room_open, room_close)
