/* SPDX-License-Identifier: Apache-2.0 */
/* wire/http1 and wire/chunked: bodies, pipelines, requests in pieces. */
#include "http1_feed.h"
#include "test.h"

TEST("content length is one plain number")
{
    static const char *const lengths[] = {
        "",   "+5",  "-5",    "-0", "5 5",  "5,5",  "5, 5", "0x5",
        "5a", "5.0", "\"5\"", "5;", "five", "\xb2", "5\t5",
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, POST "Content-Length: %s\r\n\r\nhello", lengths[i]);
        assert_refused(text, 400);
    }
    assert_refused(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400);
    assert_refused(POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\nhello", 400);
    assert_accepted(POST "Content-Length: \t5 \r\n\r\nhello");
    assert_accepted(POST "Content-Length: 0005\r\n\r\nhello");
    assert_accepted(POST "Content-Length: 0\r\n\r\n");
    assert_accepted(POST "Content_Length: 5\r\nContent-Length: 1\r\n\r\nh");
}

TEST("a body beyond the limit is 413 as soon as it is announced")
{
    assert_refused(POST "Content-Length: 1048577\r\n\r\n", 413);
    assert_refused(POST "Content-Length: 18446744073709551616\r\n\r\n", 413);
    assert_refused(POST "Content-Length: 18446744073709551621\r\n\r\nhello", 413);
    assert_refused(POST "Content-Length: 99999999999999999999999999999999999\r\n\r\n", 413);
    /* a length that is wrong in another way too is a smuggling attempt first */
    assert_refused(POST "Content-Length: 99999999999999999999x\r\n\r\n", 400);
    assert_refused(POST "Content-Length: 1048577\r\nTransfer-Encoding: chunked\r\n\r\n", 400);

    size_t head = strlen(POST "Content-Length: 1048576\r\n\r\n"), size = head + WEIR_HTTP1_BODY_MAX;
    char *text = memory_new(size + 1);
    memset(text, 'x', size);
    memcpy(text, POST "Content-Length: 1048576\r\n\r\n", head);
    struct parsed parsed;
    parse_whole(&parsed, text, size - 1);
    assert_int_equal(parsed.taken, 0);
    assert_true(parsed.parser.head_done);
    parse_whole(&parsed, text, size);
    assert_int_equal(parsed.taken, (long)size);
    assert_int_equal(parsed.request.body.size, WEIR_HTTP1_BODY_MAX);
    free(text);
}

TEST("lengths and codings that disagree are refused")
{
    assert_refused(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Content-Length: 0\r\nTransfer-Encoding: identity\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   400);
    assert_refused(POST "Transfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n", 400);
    assert_refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400);
    assert_refused(POST "Transfer-Encoding: \x0b"
                        "chunked\r\n\r\n0\r\n\r\n",
                   400);
}

TEST("transfer codings other than chunked alone are 501")
{
    static const char *const codings[] = {
        "xchunked",          "chunked, chunked", "chunked,",   ",chunked", "gzip, chunked",
        "chunked, identity", "identity",         "",           "chunkedx", "\"chunked\"",
        "chunked;q=1",       "chunke",           "x\tchunked", "cow",
    };
    for (size_t i = 0; i < sizeof codings / sizeof codings[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, POST "Transfer-Encoding: %s\r\n\r\n0\r\n\r\n", codings[i]);
        assert_refused(text, 501);
    }
    assert_accepted(POST "TRANSFER-encoding: \tChunKed \r\n\r\n0\r\n\r\n");
}

TEST("a chunked body is joined in place")
{
    static const char text[] = POST "Transfer-Encoding: chunked\r\n\r\n"
                                    "5\r\nhello\r\n"
                                    "0001;name=\"value\";x\r\n,\r\n"
                                    "00A\r\n 123456\r\n\0\r\n"
                                    "0;last\r\n"
                                    "Trailer: dropped\r\nOther:\r\n\r\n"
                                    "GET /next";
    struct parsed parsed;
    parse_whole(&parsed, text, sizeof text - 1);
    assert_int_equal(parsed.taken, (long)sizeof text - 1 - 9);
    assert_int_equal(parsed.request.body.size, 16);
    assert_memory_equal(parsed.request.body.data, "hello, 123456\r\n\0", 16);
    assert_int_equal(parsed.request.field_count, 2);
    assert_memory_equal(guarded.end - 9, "GET /next", 9);
    assert_same_however_split(text, sizeof text - 1);
    assert_accepted(POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_accepted(POST
                    "Transfer-Encoding: chunked\r\n\r\n000000000000000000000001\r\nx\r\n0\r\n\r\n");
}

TEST("malformed chunks are refused")
{
    static const char *const bodies[] = {
        "\r\n",
        "x\r\n",
        " 5\r\nhello\r\n",
        "+5\r\nhello\r\n",
        "-5\r\n",
        "0x5\r\nhello\r\n",
        "5 \r\nhello\r\n",
        "5\nhello\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "5\r\nhelloo\r\n",
        "5\rhello",
        "5;a\nb\r\n",
        "5;a\rb\r\n",
        "5; \x01\r\n",
        "5,\r\n",
        "5\t;a\r\nhello\r\n",
        ";a\r\n",
        "\r\n0\r\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "0\r\nX y\r\n\r\n",
        "0\r\nX\r\n\r\n",
        "0\r\n: y\r\n\r\n",
        "0\r\nX : y\r\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\nX: \x02\r\n\r\n",
        "0\r\n\n",
        "0\r\n\r\r\n",
        "0\n\n",
        "5.0\r\n",
        "-0\r\n",
        "\xb5\r\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, POST "Transfer-Encoding: chunked\r\n\r\n%s", bodies[i]);
        assert_refused(text, 400);
    }
    assert_refused_bytes(POST "Transfer-Encoding: chunked\r\n\r\n5;\0\r\n",
                         strlen(POST "Transfer-Encoding: chunked\r\n\r\n") + 5, 400);
}

TEST("chunk sizes that overflow or exceed the limit are 413")
{
    static const char *const sizes[] = {
        "100001",
        "10000000000000000",
        "10000000000000005",
        "FFFFFFFFFFFFFFFF",
        "ffffffff",
        "00000000000000000000100001",
        "8000000000000000",
        "100000000000000000000000000000005",
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, POST "Transfer-Encoding: chunked\r\n\r\n%s\r\nhello", sizes[i]);
        assert_refused(text, 413);
    }
    /* the sum counts */
    assert_refused(POST "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n100000\r\n", 413);
}

TEST("framing of chunks is bounded")
{
    static const char head[] = POST "Transfer-Encoding: chunked\r\n\r\n";
    size_t size = sizeof head - 1 + WEIR_CHUNKED_FRAMING_MAX + 1;
    char *text = memory_new(size);
    static const char fills[] = {'0', ';'};
    for (size_t i = 0; i < sizeof fills; i++) {
        struct parsed parsed;
        memset(text, fills[i], size);
        memcpy(text, head, sizeof head - 1);
        text[sizeof head - 1] = '0';
        parse_whole(&parsed, text, size - 1);
        assert_int_equal(parsed.taken, 0);
        assert_refused_bytes(text, size, 413);
    }
    free(text);
}

TEST("every megabyte in any chunks fits the stated request size")
{
    static const char head[] = POST "Transfer-Encoding: chunked\r\n\r\n";
    char *text = memory_new(WEIR_HTTP1_REQUEST_MAX);
    size_t size = sizeof head - 1;
    memcpy(text, head, size);
    for (size_t body = 0; body < WEIR_HTTP1_BODY_MAX; body += 128) {
        size += (size_t)sprintf(text + size, "80\r\n");
        memset(text + size, 'a' + (int)(body / 128 % 26), 128);
        memcpy(text + size + 128, "\r\n", 2);
        size += 130;
    }
    memcpy(text + size, "0\r\n\r\n", 5);
    size += 5;
    assert_true(size <= WEIR_HTTP1_REQUEST_MAX);
    struct parsed parsed;
    parse_whole(&parsed, text, size);
    assert_int_equal(parsed.taken, (long)size);
    assert_int_equal(parsed.request.body.size, WEIR_HTTP1_BODY_MAX);
    for (size_t i = 0; i < WEIR_HTTP1_BODY_MAX; i++)
        assert_int_equal(parsed.request.body.data[i], 'a' + (int)(i / 128 % 26));
    free(text);
}

TEST("an expectation is reported before the body comes")
{
    static const char head[] = POST "Expect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
    struct parsed parsed;
    parse_whole(&parsed, head, sizeof head - 1);
    assert_int_equal(parsed.taken, 0);
    assert_true(parsed.parser.head_done);
    assert_true(parsed.request.expect_continue);
    assert_bytes(parsed.request.path, "/");
    assert_refused(POST "Expect: 100\r\n\r\n", 417);
    assert_refused(POST "Expect: something-else\r\n\r\n", 417);
    assert_accepted("GET / HTTP/1.0\r\nExpect: 200-maybe\r\n\r\n");
}

TEST("pipelined requests are taken one by one")
{
    static const char text[] =
        GET "\r\n" POST "Content-Length: 2\r\n\r\nab" POST
            "Transfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n" GET "\r\n";
    static const char *const bodies[] = {"", "ab", "c", ""};
    char *data = guarded_put(&guarded, text, sizeof text - 1);
    for (size_t i = 0; i < 4; i++) {
        struct parsed parsed = {0};
        long taken =
            weir_http1_parse(&parsed.parser, data, (size_t)(guarded.end - data), &parsed.request);
        assert_true(taken > 0);
        assert_bytes(parsed.request.body, bodies[i]);
        data += taken;
    }
    assert_ptr_equal(data, guarded.end);
}

/* Half a million calls: a parser that began again at each would need hours. */
TEST("a request byte by byte costs linear time")
{
    static const char head[] = POST "Transfer-Encoding: chunked\r\n\r\n";
    struct parsed parsed = {0};
    size_t size = sizeof head - 1 + 6 + WEIR_HTTP1_BODY_MAX / 2 + 8 + 6;
    char *data = guarded.end - size, *out = data;
    out += sprintf(out, "%s80000\r\n", head);
    memset(out, 'x', WEIR_HTTP1_BODY_MAX / 2);
    out += WEIR_HTTP1_BODY_MAX / 2;
    memcpy(out, "\r\n0\r\n\r\n", 7);
    out += 7;
    size = (size_t)(out - data);
    for (size_t have = 0; have < size; have++)
        assert_int_equal(weir_http1_parse(&parsed.parser, data, have, &parsed.request), 0);
    assert_int_equal(weir_http1_parse(&parsed.parser, data, size, &parsed.request), (long)size);
    assert_int_equal(parsed.request.body.size, WEIR_HTTP1_BODY_MAX / 2);
}

/* Requests put together from pieces that matter to a parser, good and bad. */
static size_t random_request(uint64_t *random, char *text)
{
    static const char *const pieces[] = {
        "GET",
        "POST",
        " ",
        "/",
        "/v1/check",
        "http://a/",
        "?",
        "*",
        " HTTP/1.1\r\n",
        " HTTP/1.0\r\n",
        "Host: a\r\n",
        "Host",
        ":",
        "Content-Length: 3\r\n",
        "Content-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\n",
        "\r\n",
        "\n",
        "\r",
        "\r\n\r\n",
        "abc",
        "3\r\nabc\r\n",
        "0\r\n\r\n",
        "0\r\n",
        "A: b\r\n",
        "\t",
        "Connection: close\r\n",
        "\x01",
        "1;x=y\r\nz\r\n",
    };
    size_t size = 0;
    if (draw_below(random, 4) != 0)
        size = (size_t)sprintf(text, "%s", draw_below(random, 2) ? POST : GET);
    for (uint64_t left = draw_below(random, 12); left > 0; left--) {
        const char *piece = pieces[draw_below(random, sizeof pieces / sizeof pieces[0])];
        memcpy(text + size, piece, strlen(piece));
        size += strlen(piece);
    }
    return size;
}

TEST("random requests mean the same however they are split")
{
    uint64_t random = 3;
    char text[1024];
    unsigned accepted = 0;
    for (int i = 0; i < 5000; i++) {
        struct parsed parsed;
        size_t size = random_request(&random, text);
        assert_same_however_split(text, size);
        parse_whole(&parsed, text, size);
        accepted += parsed.taken > 0;
    }
    assert_true(accepted > 100);
}

RUN_TESTS_WITH(room_open, room_close)
