/* SPDX-License-Identifier: Apache-2.0 */
/* wire/resp: requests of the Redis protocol, whole and in pieces, and Redis' words for errors. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/resp/resp.h"

static struct guarded guarded;
static struct weir_resp_request request;

static int room_open(void **state)
{
    guarded = guarded_new(2 << 20);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

/* What a parse gave, as text: "taken|arg|arg" or "taken|problem". */
static void describe(char *out, size_t room, long taken, const struct weir_resp_parser *parser)
{
    int size = snprintf(out, room, "%ld|%s", taken, parser->problem);
    for (uint32_t i = 0; taken > 0 && i < request.count && i < WEIR_RESP_ARGS_MAX; i++) {
        struct weir_bytes arg = request.args[i];
        size += snprintf(out + size, room - (size_t)size, "%s", i > 0 ? "|" : "");
        for (size_t j = 0; j < arg.size && (size_t)size + 8 < room; j++) {
            char c = arg.data[j];
            size += c < 0x20 || c > 0x7e ? sprintf(out + size, "\\%02x", (unsigned char)c)
                                         : sprintf(out + size, "%c", c);
        }
        if (arg.data == NULL)
            size += snprintf(out + size, room - (size_t)size, "(null)");
    }
}

/* Feeds `text` up to each of the given ends, moving the buffer each time so that it always ends at
 * the guard page. */
static void feed(char *out, size_t room, const char *text, size_t size, size_t first, size_t step)
{
    struct weir_resp_parser parser = {0};
    char *data = guarded.end;
    size_t have = 0;
    long taken = 0;
    for (size_t end = first;; end = size - end < step ? size : end + step) {
        memmove(guarded.end - end, data, have);
        data = guarded.end - end;
        memcpy(data + have, text + have, end - have);
        have = end;
        taken = weir_resp_parse(&parser, data, have, &request);
        if (taken != 0 || have == size)
            break;
    }
    describe(out, room, taken, &parser);
}

static void assert_parses_bytes(const char *text, size_t size, const char *expected)
{
    char got[1024];
    feed(got, sizeof got, text, size, size, 1);
    assert_string_equal(got, expected);
    for (size_t at = 0; at <= size; at++) {
        feed(got, sizeof got, text, size, at, size);
        assert_string_equal(got, expected);
    }
    feed(got, sizeof got, text, size, 0, 1);
    assert_string_equal(got, expected);
}

static void assert_parses(const char *text, const char *expected)
{
    assert_parses_bytes(text, strlen(text), expected);
}

/* `problem` as Redis says it, after "Protocol error: ". */
static void assert_refused(const char *text, const char *problem)
{
    char expected[128];
    snprintf(expected, sizeof expected, "%d|Protocol error: %s", WEIR_ERR_SYNTAX, problem);
    assert_parses(text, expected);
}

TEST("an array of bulk strings is a command")
{
    assert_parses("*1\r\n$4\r\nPING\r\n", "14|PING");
    assert_parses("*6\r\n$11\r\nCL.THROTTLE\r\n$6\r\nuser:1\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n"
                  "$1\r\n1\r\n",
                  "65|CL.THROTTLE|user:1|15|30|60|1");
    assert_parses("*2\r\n$0\r\n\r\n$3\r\n\r\n\x01\r\n", "19||\\0d\\0a\\01");
    assert_parses_bytes("*1\r\n$3\r\na\0b\r\n", 13, "13|a\\00b");
    assert_parses("*1\r\n$12\r\n123456789012\r\n*1\r\n", "23|123456789012");
}

TEST("empty commands are taken and have no arguments")
{
    assert_parses("*0\r\n", "4|");
    assert_parses("*-1\r\n", "5|");
    assert_parses("\r\n", "2|");
    assert_parses("\n", "1|");
    assert_parses("   \t \r\nPING", "7|");
    assert_int_equal(request.count, 0);
}

TEST("integers and null may be arguments")
{
    assert_parses("*3\r\n$1\r\na\r\n:5\r\n:-123456789\r\n", "28|a|5|-123456789");
    assert_parses("*2\r\n$-1\r\n$1\r\na\r\n", "16|(null)|a");
    assert_refused("*1\r\n:x\r\n", "invalid integer");
    assert_refused("*1\r\n:\r\n", "invalid integer");
    assert_refused("*1\r\n:9223372036854775808\r\n", "invalid integer");
    assert_parses("*1\r\n:-9223372036854775808\r\n", "27|-9223372036854775808");
}

TEST("lengths of arrays are plain and bounded")
{
    static const char *const lengths[] = {
        "-2",
        "x",
        "",
        "+1",
        "01",
        "1x",
        " 1",
        "1 ",
        "-0",
        "1048577",
        "2147483648",
        "0x1",
        "1.0",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999999999999999999",
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "*%s\r\n$1\r\na\r\n", lengths[i]);
        assert_refused(text, "invalid multibulk length");
    }
    assert_refused("*1\rx", "invalid multibulk length");
    assert_parses("*1048576\r\n", "0|");
}

TEST("lengths of bulk strings are plain and bounded")
{
    static const char *const lengths[] = {
        "-2",
        "x",
        "",
        "+1",
        "01",
        "1x",
        "-0",
        "536870913",
        "600000000",
        "1048577",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "*1\r\n$%s\r\na\r\n", lengths[i]);
        assert_refused(text, "invalid bulk length");
    }
    assert_refused("*1\r\n$1\rx", "invalid bulk length");
    assert_refused("*1\r\n$1048576\r\n", "too big request");
    assert_refused("*2\r\n$1\r\na\r\n$1048560\r\n", "too big request");
    assert_refused("*1\r\n$3\r\nabcd\r\n", "expected CR LF after a bulk string");
    assert_refused("*1\r\n$3\r\nabc\rx", "expected CR LF after a bulk string");
    assert_refused("*1\r\n$3\r\nabc\n\r", "expected CR LF after a bulk string");
}

TEST("what is no bulk string is named")
{
    assert_refused("*1\r\nx", "expected '$', got 'x'");
    assert_refused("*2\r\n$1\r\na\r\n*1\r\n", "expected '$', got '*'");
    assert_refused("*1\r\n\r\n", "expected '$', got '?'");
    assert_refused("*1\r\n+OK\r\n", "expected '$', got '+'");
    assert_refused("*1\r\n_\r\n", "expected '$', got '_'");
}

TEST("a parser that refused still refuses")
{
    struct weir_resp_parser parser = {0};
    char text[] = "*1\r\nxPING\r\n";
    assert_int_equal(weir_resp_parse(&parser, text, 5, &request), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_resp_parse(&parser, text, sizeof text - 1, &request), WEIR_ERR_SYNTAX);
    assert_string_equal(parser.problem, "Protocol error: expected '$', got 'x'");
}

TEST("lines are bounded")
{
    static const struct {
        const char *start, *problem;
        char fill;
    } cases[] = {
        {"*", "Protocol error: too big mbulk count string", '1'},
        {"*1\r\n$", "Protocol error: too big bulk count string", '1'},
        {"PING ", "Protocol error: too big inline request", 'x'},
    };
    char *text = memory_new(2 * WEIR_RESP_LINE_MAX);
    for (size_t i = 0; i < 3; i++) {
        struct weir_resp_parser parser = {0};
        size_t start = strlen(cases[i].start), line = i == 1 ? 4 : 0;
        size_t size = line + WEIR_RESP_LINE_MAX;
        memset(text, cases[i].fill, size);
        memcpy(text, cases[i].start, start);
        for (size_t have = 0; have < size; have++) {
            char *data = guarded.end - have;
            if (have % 4096 == 0 || have + 100 > size) {
                memcpy(data, text, have);
                assert_int_equal(weir_resp_parse(&parser, data, have, &request), 0);
            }
        }
        char *data = guarded_put(&guarded, text, size);
        assert_int_equal(weir_resp_parse(&parser, data, size, &request), WEIR_ERR_SYNTAX);
        assert_string_equal(parser.problem, cases[i].problem);
    }
    /* the longest inline command */
    struct weir_resp_parser parser = {0};
    memset(text, 'x', WEIR_RESP_LINE_MAX);
    text[WEIR_RESP_LINE_MAX - 1] = '\n';
    char *data = guarded_put(&guarded, text, WEIR_RESP_LINE_MAX);
    assert_int_equal(weir_resp_parse(&parser, data, WEIR_RESP_LINE_MAX, &request),
                     WEIR_RESP_LINE_MAX);
    assert_int_equal(request.args[0].size, WEIR_RESP_LINE_MAX - 1);
    free(text);
}

TEST("before auth less is accepted")
{
    static const struct {
        const char *text, *problem;
        long taken;
    } cases[] = {
        {"*11\r\n", "Protocol error: unauthenticated multibulk length", WEIR_ERR_SYNTAX},
        {"*10\r\n", "", 0},
        {"*1\r\n$16385\r\n", "Protocol error: unauthenticated bulk length", WEIR_ERR_SYNTAX},
        {"*1\r\n$16384\r\n", "", 0},
        {"*1\r\n$1048577\r\n", "Protocol error: invalid bulk length", WEIR_ERR_SYNTAX},
        {"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", "", 21},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_resp_parser parser = {.unauthenticated = true};
        size_t size = strlen(cases[i].text);
        char *data = guarded_put(&guarded, cases[i].text, size);
        assert_int_equal(weir_resp_parse(&parser, data, size, &request), cases[i].taken);
        assert_string_equal(parser.problem, cases[i].problem);
        assert_true(parser.unauthenticated);
    }
}

TEST("inline commands are split at white space")
{
    assert_parses("PING\r\n", "6|PING");
    assert_parses("PING\n", "5|PING");
    assert_parses("  set  a\tb \r\nGET a\r\n", "13|set|a|b");
    assert_parses("CL.THROTTLE user:1 15 30 60 1\r\n", "31|CL.THROTTLE|user:1|15|30|60|1");
    assert_parses("PING", "0|");
    assert_parses("PING\r", "0|");
    assert_parses("$3\r\n", "4|$3");
    assert_parses("GET / HTTP/1.1\r\n", "16|GET|/|HTTP/1.1");
}

TEST("inline quotes are those of redis")
{
    assert_parses("a \"b c\" 'd e'\r\n", "15|a|b c|d e");
    assert_parses("\"\\x41\\n\\r\\t\\b\\a\\\\\\\"\\q\\xzz\"\n", "27|A\\0a\\0d\\09\\08\\07\\\"qxzz");
    assert_parses("'it\\'s \\n \"x\"'\n", "15|it's \\n \"x\"");
    assert_parses("foo\"bar\" x\n", "11|foobar|x");
    assert_parses("\"\" ''\n", "6||");
    assert_int_equal(request.count, 2);
    static const char *const unbalanced[] = {"\"abc",   "'abc",  "a \"b",      "\"a\"b", "'a'b",
                                             "\"a\\\"", "'a\\'", "\"a\"\"b\"", "\"",     "a'b"};
    for (size_t i = 0; i < sizeof unbalanced / sizeof unbalanced[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s\r\n", unbalanced[i]);
        assert_refused(text, "unbalanced quotes in request");
    }
}

TEST("arguments beyond those kept are counted")
{
    char *text = memory_new(20000);
    for (int kind = 0; kind < 2; kind++) {
        size_t size = (size_t)sprintf(text, kind == 0 ? "*1500\r\n" : "");
        for (int i = 0; i < 1500; i++)
            size += (size_t)sprintf(text + size, kind == 0 ? "$4\r\n%04d\r\n" : "%04d ", i);
        size += (size_t)sprintf(text + size, kind == 0 ? "" : "\n");
        struct weir_resp_parser parser = {0};
        char *data = guarded_put(&guarded, text, size);
        assert_int_equal(weir_resp_parse(&parser, data, size, &request), (long)size);
        assert_int_equal(request.count, 1500);
        assert_bytes(request.args[WEIR_RESP_ARGS_MAX - 1], "1023");
    }
    free(text);
}

TEST("a request of the largest size is taken and one byte more is not")
{
    char *text = memory_new(WEIR_RESP_REQUEST_MAX + 16);
    for (size_t excess = 0; excess <= 1; excess++) {
        struct weir_resp_parser parser = {0};
        size_t length = WEIR_RESP_REQUEST_MAX - 16 + excess;
        size_t size = (size_t)sprintf(text, "*1\r\n$%zu\r\n", length);
        memset(text + size, 'x', length);
        memcpy(text + size + length, "\r\n", 2);
        size += length + 2;
        char *data = guarded_put(&guarded, text, size);
        long taken = weir_resp_parse(&parser, data, size, &request);
        assert_int_equal(taken, excess > 0 ? WEIR_ERR_SYNTAX : (long)WEIR_RESP_REQUEST_MAX);
    }
    /* many small arguments */
    struct weir_resp_parser parser = {0};
    size_t size = (size_t)sprintf(text, "*1000000\r\n");
    while (size + 4 <= WEIR_RESP_REQUEST_MAX + 8) {
        memcpy(text + size, ":1\r\n", 4);
        size += 4;
    }
    char *data = guarded_put(&guarded, text, size);
    assert_int_equal(weir_resp_parse(&parser, data, size, &request), WEIR_ERR_SYNTAX);
    assert_string_equal(parser.problem, "Protocol error: too big request");
    free(text);
}

/* A million calls: a parser that began again at each would need hours. */
TEST("a request byte by byte costs linear time")
{
    struct weir_resp_parser parser = {0};
    size_t room = WEIR_RESP_REQUEST_MAX, size;
    char *data = guarded.end - room;
    size = (size_t)sprintf(data, "*140000\r\n");
    for (int i = 0; i < 140000; i++)
        size += (size_t)sprintf(data + size, "$1\r\na\r\n");
    assert_true(size < room);
    for (size_t have = 0; have < size; have++)
        assert_int_equal(weir_resp_parse(&parser, data, have, &request), 0);
    assert_int_equal(weir_resp_parse(&parser, data, size, &request), (long)size);
    assert_int_equal(request.count, 140000);
}

TEST("a pipeline of mixed commands is taken one by one")
{
    char *text = memory_new(1 << 20);
    struct weir_resp_parser parser = {0};
    size_t size = 0;
    for (int i = 0; i < 10000; i++) {
        size += (size_t)(i % 3 == 0   ? sprintf(text + size, "INCR %d\r\n", i)
                         : i % 3 == 1 ? sprintf(text + size, "*2\r\n$4\r\nINCR\r\n$%d\r\n%d\r\n",
                                                snprintf(NULL, 0, "%d", i), i)
                                      : sprintf(text + size, "*2\r\n$4\r\nINCR\r\n:%d\r\n", i));
    }
    char *data = guarded_put(&guarded, text, size);
    for (int i = 0; i < 10000; i++) {
        char number[16];
        long taken = weir_resp_parse(&parser, data, (size_t)(guarded.end - data), &request);
        assert_true(taken > 0);
        snprintf(number, sizeof number, "%d", i);
        assert_int_equal(request.count, 2);
        assert_bytes(request.args[0], "INCR");
        assert_bytes(request.args[1], number);
        data += taken;
    }
    assert_ptr_equal(data, guarded.end);
    free(text);
}

TEST("random requests mean the same however they are split")
{
    static const char *const pieces[] = {
        "*1\r\n", "*2\r\n", "*",    "$3\r\n",  "$0\r\n",       "$",      "-1",     "3",
        "\r\n",   "\r",     "\n",   "abc",     "abc\r\n",      ":5\r\n", " ",      "\"",
        "'",      "\\",     "\\x4", "$-1\r\n", "$1048577\r\n", "x",      "*0\r\n", "10",
    };
    uint64_t random = 8;
    for (int i = 0; i < 20000; i++) {
        char text[256] = "", whole[1024], split[1024];
        if (draw_below(&random, 2) == 0)
            strcpy(text, "*2\r\n$3\r\n");
        for (uint64_t left = draw_below(&random, 10); left > 0; left--)
            strcat(text, pieces[draw_below(&random, sizeof pieces / sizeof pieces[0])]);
        size_t size = strlen(text);
        feed(whole, sizeof whole, text, size, size, 1);
        for (size_t at = 0; at < size; at++) {
            feed(split, sizeof split, text, size, at, size);
            assert_string_equal(split, whole);
        }
        feed(split, sizeof split, text, size, 0, 1);
        assert_string_equal(split, whole);
    }
}

TEST("words are compared without case")
{
    assert_true(weir_resp_is((struct weir_bytes){"cl.Throttle", 11}, "CL.THROTTLE"));
    assert_false(weir_resp_is((struct weir_bytes){"cl.throttl", 10}, "CL.THROTTLE"));
    assert_false(weir_resp_is((struct weir_bytes){"cl.throttles", 12}, "CL.THROTTLE"));
    assert_false(weir_resp_is((struct weir_bytes){"CL\x0eTHROTTLE", 11}, "CL.THROTTLE"));
    assert_false(weir_resp_is((struct weir_bytes){NULL, 0}, ""));
    assert_true(weir_resp_is((struct weir_bytes){"", 0}, ""));
}

RUN_TESTS_WITH(room_open, room_close)
