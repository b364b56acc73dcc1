/* SPDX-License-Identifier: Apache-2.0 */
/* wire/access_log: lines of both formats, their times and their quotes. */
#include "../unit_wire.h"
#include "test.h"

#include <time.h>

#include "wire/log/access_log.h"
#include "wire/log/fields.h"

static struct guarded guarded;

static int room_open(void **state)
{
    guarded = guarded_new(1 << 21);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

static int parse(struct weir_log_record *line, const char *text, size_t size)
{
    static struct weir_log_room room;
    return weir_access_line_parse(line, guarded_put(&guarded, text, size), size, false, &room);
}

static void assert_line(struct weir_log_record *line, const char *text)
{
    if (parse(line, text, strlen(text)) != 0)
        fail_msg("refused: %s", text);
}

#define TIME "[07/Mar/2004:16:05:49 -0800]"

TEST("a common line is taken apart")
{
    struct weir_log_record line;
    assert_line(&line, "64.242.88.10 - - " TIME " \"GET /a?b=c HTTP/1.1\" 401 12846");
    assert_bytes(line.client, "64.242.88.10");
    assert_bytes(line.user, NULL);
    assert_bytes(line.method, "GET");
    assert_bytes(line.target, "/a?b=c");
    assert_bytes(line.referer, NULL);
    assert_bytes(line.agent, NULL);
    assert_int_equal(line.t_ns, UINT64_C(1078704349000000000));
    assert_int_equal(line.status, 401);
}

TEST("a combined line has referer and agent")
{
    struct weir_log_record line;
    assert_line(&line, "2001:db8::1 ident frank " TIME
                       " \"POST / HTTP/2.0\" 200 - \"http://a/\" \"Mozilla/5.0 (X11)\"");
    assert_bytes(line.client, "2001:db8::1");
    assert_bytes(line.user, "frank");
    assert_bytes(line.method, "POST");
    assert_bytes(line.referer, "http://a/");
    assert_bytes(line.agent, "Mozilla/5.0 (X11)");
    assert_line(&line, "h - - " TIME " \"GET / HTTP/1.1\" 200 1 \"-\" \"-\"");
    assert_bytes(line.referer, NULL);
    assert_bytes(line.agent, NULL);
    assert_line(&line, "h - - " TIME " \"GET / HTTP/1.1\" 200 1 \"\" \"a\" \"10.0.0.1\" more");
    assert_bytes(line.referer, "");
    assert_bytes(line.agent, "a");
}

TEST("quotes are unescaped as apache and nginx escape them")
{
    struct weir_log_record line;
    assert_line(&line, "h - - " TIME " \"GET /a\\\"b\\\\c\\x22\\x5C\\xe9\\xE9 HTTP/1.1\" 200 1 "
                       "\"\\b\\f\\n\\r\\t\\v\" \"\\q\\x4\\xgg\\\"\"");
    assert_bytes(line.target, "/a\"b\\c\"\\\xe9\xe9");
    assert_bytes(line.referer, "\b\f\n\r\t\v");
    assert_bytes(line.agent, "\\q\\x4\\xgg\"");
}

TEST("line ends of any kind are skipped")
{
    static const char *const ends[] = {"", "\n", "\r\n", " \t\r\n", " "};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char text[256];
        struct weir_log_record line;
        snprintf(text, sizeof text, "h - - " TIME " \"GET / HTTP/1.1\" 200 17%s", ends[i]);
        assert_line(&line, text);
        assert_int_equal(line.status, 200);
        snprintf(text, sizeof text, "h - - " TIME " \"GET / HTTP/1.1\" 200 17 \"-\" \"a\"%s",
                 ends[i]);
        assert_line(&line, text);
        assert_bytes(line.agent, "a");
    }
}

TEST("requests that were none have no method")
{
    static const struct {
        const char *request, *method, *target;
    } cases[] = {
        {"-", NULL, NULL},
        {"", NULL, NULL},
        {"\\x16\\x03\\x01\\x02", NULL, NULL},
        {"GET", NULL, NULL},
        {"GET ", NULL, NULL},
        {" /", NULL, NULL},
        {"GET /", "GET", "/"},
        {"GET / HTTP/1.0", "GET", "/"},
        {"GET /a b c HTTP/1.1", "GET", "/a b c"},
        {"GET /a b", "GET", "/a b"},
        {"GET  HTTP/1.1", NULL, NULL},
        {"OPTIONS * HTTP/1.0", "OPTIONS", "*"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct weir_log_record line;
        snprintf(text, sizeof text, "h - - " TIME " \"%s\" 400 0", cases[i].request);
        assert_line(&line, text);
        assert_bytes(line.method, cases[i].method);
        assert_bytes(line.target, cases[i].target);
    }
}

TEST("times are exact in every zone")
{
    static const struct {
        const char *text;
        uint64_t s;
    } cases[] = {
        {"01/Jan/1970:00:00:00 +0000", 0},          {"01/Jan/1970:02:00:00 +0200", 0},
        {"31/Dec/1969:16:00:01 -0800", 1},          {"29/Feb/2004:23:59:59 +0000", 1078099199},
        {"01/Mar/2004:05:29:59 +0530", 1078099199}, {"29/Feb/2000:00:00:00 +0000", 951782400},
        {"31/Dec/2016:23:59:60 +0000", 1483228800}, {"01/Jan/2017:00:00:00 +0000", 1483228800},
        {"29/Feb/2112:12:00:00 +0000", 4486190400}, {"20/Feb/2116:23:53:37 +0000", 4611686017},
        {"07/Mar/2004:16:05:49 -1245", 1078721449},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        struct weir_log_record line;
        snprintf(text, sizeof text, "h - - [%s] \"GET / HTTP/1.1\" 200 1", cases[i].text);
        assert_line(&line, text);
        assert_int_equal(line.t_ns, cases[i].s * UINT64_C(1000000000));
    }
}

TEST("random times agree with libc")
{
    uint64_t random = 7;
    for (int i = 0; i < 100000; i++) {
        time_t t = (time_t)draw_below(&random, 4611686018);
        long zone = ((long)draw_below(&random, 24 * 60) - 12 * 60) * 60;
        char when[64], text[256];
        struct tm local;
        struct weir_log_record line;
        time_t shifted = t + zone;
        if (shifted < 0)
            continue;
        gmtime_r(&shifted, &local);
        strftime(when, sizeof when, "%d/%b/%Y:%H:%M:%S", &local);
        snprintf(text, sizeof text, "h - - [%s %c%02ld%02ld] \"-\" 200 1", when,
                 zone < 0 ? '-' : '+', labs(zone) / 3600, labs(zone) / 60 % 60);
        assert_line(&line, text);
        assert_int_equal(line.t_ns, (uint64_t)t * UINT64_C(1000000000));
    }
}

TEST("times that are none are refused")
{
    static const char *const times[] = {
        "00/Mar/2004:16:05:49 -0800", "32/Mar/2004:16:05:49 -0800", "31/Apr/2004:16:05:49 -0800",
        "29/Feb/2003:16:05:49 -0800", "29/Feb/1900:00:00:00 +0000", "29/Feb/2100:00:00:00 +0000",
        "30/Feb/2004:00:00:00 +0000", "07/mar/2004:16:05:49 -0800", "07/Xxx/2004:16:05:49 -0800",
        "07/Mar/2004:24:05:49 -0800", "07/Mar/2004:16:60:49 -0800", "07/Mar/2004:16:05:61 -0800",
        "07/Mar/2004:16:05:49 -2400", "07/Mar/2004:16:05:49 -0860", "07/Mar/2004:16:05:49 00800",
        "07/Mar/2004:16:05:49 -080",  "07/Mar/2004:16:05:49",       "7/Mar/2004:16:05:49 -0800",
        "07-Mar-2004:16:05:49 -0800", "07/Mar/2004 16:05:49 -0800", "07/Mar/204:16:05:49 -08000",
        "31/Dec/1969:23:59:59 +0000", "01/Jan/1970:00:00:00 +0100", "20/Feb/2116:23:53:38 +0000",
        "01/Jan/9999:00:00:00 +0000", "0x/Mar/2004:16:05:49 -0800", "",
    };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[256];
        struct weir_log_record line;
        snprintf(text, sizeof text, "h - - [%s] \"GET / HTTP/1.1\" 200 1", times[i]);
        if (parse(&line, text, strlen(text)) != WEIR_ERR_SYNTAX)
            fail_msg("accepted %s", times[i]);
    }
}

TEST("what is no line is refused")
{
    static const char *const lines[] = {
        "",
        " ",
        "h",
        "h - -",
        "h - - " TIME,
        "h - - " TIME " ",
        "h - " TIME " \"GET / HTTP/1.1\" 200 1",
        " - - " TIME " \"GET / HTTP/1.1\" 200 1",
        "vhost:80 h - - " TIME " \"GET / HTTP/1.1\" 200 1",
        "h - - " TIME "\"GET / HTTP/1.1\" 200 1",
        "h - - " TIME " GET / HTTP/1.1 200 1",
        "h - - " TIME " \"GET / HTTP/1.1 200 1",
        "h - - " TIME " \"GET / HTTP/1.1\\\" 200 1",
        "h - - " TIME " \"GET / HTTP/1.1\"200 1",
        "h - - " TIME " \"GET / HTTP/1.1\" 200",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 ",
        "h - - " TIME " \"GET / HTTP/1.1\" 20 1",
        "h - - " TIME " \"GET / HTTP/1.1\" 2000 1",
        "h - - " TIME " \"GET / HTTP/1.1\" 2x0 1",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 x",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 1x",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 -1",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 18446744073709551616",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 1 \"a\"",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 1 \"a\" \"b",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 1 \"a\" \"b\"c",
        "h - - " TIME " \"GET / HTTP/1.1\" 200 1 a \"b\"",
    };
    struct weir_log_record line;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (parse(&line, lines[i], strlen(lines[i])) != WEIR_ERR_SYNTAX)
            fail_msg("accepted %s", lines[i]);
    static const char whole[] = "h - - " TIME " \"GET / HTTP/1.1\" 200 18446744073709551615";
    assert_line(&line, whole);
    assert_int_equal(line.status, 200);
    for (size_t part = 0; part < sizeof whole - 21; part++)
        assert_int_equal(parse(&line, whole, part), WEIR_ERR_SYNTAX);
}

TEST("a huge line is read like any other")
{
    static const char start[] = "h - - " TIME " \"GET /", end[] = " HTTP/1.1\" 200 1 \"-\" \"";
    size_t part = 1 << 20, size = sizeof start - 1;
    char *text = memory_new(2 * part);
    memcpy(text, start, size);
    for (; size < part; size += 2)
        memcpy(text + size, "\\\"", 2);
    memcpy(text + size, end, sizeof end - 1);
    size += sizeof end - 1;
    memset(text + size, ' ', 1000);
    size += 1000;
    text[size++] = '"';
    struct weir_log_record line;
    assert_int_equal(parse(&line, text, size), 0);
    assert_true(line.target.size > part / 2 - 100);
    assert_int_equal(line.target.data[1], '"');
    assert_int_equal(line.agent.size, 1000);
    assert_int_equal(parse(&line, text, size - 1), WEIR_ERR_SYNTAX);
    free(text);
}

/* Behind the last byte is an unmapped page. */
TEST("a byte is found wherever it stands and nothing behind the end is read")
{
    char text[80];
    for (size_t size = 0; size <= sizeof text; size++)
        for (size_t at = 0; at <= size; at++) {
            memset(text, 'x', size);
            if (at < size)
                text[at] = at % 2 ? '"' : '\\';
            char *start = guarded_put(&guarded, text, size), *end = start + size;
            assert_ptr_equal(log_find_either(start, end, '"', '\\'), start + at);
            assert_ptr_equal(log_find(start, end, '"'), at % 2 ? start + at : end);
        }
}

static bool read_number(const char *text, uint64_t *number)
{
    char *start = guarded_put(&guarded, text, strlen(text));
    struct log_cursor cursor = {start, start + strlen(text)};
    return log_number_take(&cursor, number) && cursor.at == cursor.end;
}

TEST("a number has up to 64 bits")
{
    uint64_t number;
    assert_true(read_number("18446744073709551615", &number) && number == UINT64_MAX);
    assert_true(read_number("00000000000000000000018446744073709551615", &number) &&
                number == UINT64_MAX);
    assert_true(read_number("9999999999999999999", &number) &&
                number == UINT64_C(9999999999999999999));
    assert_true(read_number("-", &number) && number == 0);
    assert_false(read_number("18446744073709551616", &number));
    assert_false(read_number("99999999999999999999", &number));
    assert_false(read_number("", &number));
    assert_false(read_number("1x", &number));
}

RUN_TESTS_WITH(room_open, room_close)
