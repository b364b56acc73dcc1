/* SPDX-License-Identifier: Apache-2.0 */
/* wire/resp_write and wire/resp_reply: what is written reads back, and what is no reply is
 * refused. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/resp/reply.h"
#include "wire/resp/write.h"

#define NODES_MAX 512

static struct guarded guarded;
static struct weir_resp_node nodes[NODES_MAX];

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

/* What a parse gave, as text. */
static void describe(char *out, size_t room, long taken, uint32_t count)
{
    static const char *const names[] = {
        [WEIR_RESP_SIMPLE] = "simple", [WEIR_RESP_ERROR] = "error",
        [WEIR_RESP_INTEGER] = "int",   [WEIR_RESP_BULK] = "bulk",
        [WEIR_RESP_NULL] = "null",     [WEIR_RESP_DOUBLE] = "double",
        [WEIR_RESP_BOOLEAN] = "bool",  [WEIR_RESP_BIG_NUMBER] = "big",
        [WEIR_RESP_VERBATIM] = "verb", [WEIR_RESP_ARRAY] = "array",
        [WEIR_RESP_MAP] = "map",       [WEIR_RESP_SET] = "set",
        [WEIR_RESP_PUSH] = "push",     [WEIR_RESP_ATTRIBUTE] = "attr",
    };
    size_t size = (size_t)snprintf(out, room, "%ld", taken);
    for (uint32_t i = 0; taken > 0 && i < count && i < NODES_MAX && size + 64 < room; i++) {
        const struct weir_resp_node *node = &nodes[i];
        size += (size_t)snprintf(out + size, room - size, " %u:%s", node->depth, names[node->type]);
        if (node->type >= WEIR_RESP_ARRAY) {
            size += (size_t)snprintf(out + size, room - size, "(%u)", node->count);
        } else if (node->type == WEIR_RESP_INTEGER || node->type == WEIR_RESP_BOOLEAN) {
            size += (size_t)snprintf(out + size, room - size, "(%lld)", (long long)node->integer);
        } else if (node->type == WEIR_RESP_DOUBLE) {
            size += (size_t)snprintf(out + size, room - size, "(%.17g)", node->number);
        } else if (node->text.data != NULL) {
            size += (size_t)snprintf(out + size, room - size, "(%.*s)", (int)node->text.size,
                                     node->text.data);
        }
    }
}

static void feed(char *out, size_t room, const char *text, size_t size, size_t first, size_t step)
{
    struct weir_resp_reader reader = {0};
    char *data = guarded.end;
    size_t have = 0;
    uint32_t count = 0;
    long taken = 0;
    for (size_t end = first;; end = size - end < step ? size : end + step) {
        memmove(guarded.end - end, data, have);
        data = guarded.end - end;
        memcpy(data + have, text + have, end - have);
        have = end;
        taken = weir_resp_reply_parse(&reader, data, have, nodes, NODES_MAX, &count);
        if (taken != 0 || have == size)
            break;
    }
    describe(out, room, taken, count);
}

static void assert_parses_bytes(const char *text, size_t size, const char *expected)
{
    char got[4096];
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

static void assert_refused(const char *text, int err)
{
    char expected[16];
    snprintf(expected, sizeof expected, "%d", err);
    assert_parses(text, expected);
}

TEST("every type is read")
{
    assert_parses("+OK\r\n", "5 0:simple(OK)");
    assert_parses("+\r\n", "3 0:simple()");
    assert_parses("-ERR no\r\n", "9 0:error(ERR no)");
    assert_parses(":5\r\n", "4 0:int(5)");
    assert_parses(":42\r\n", "5 0:int(42)");
    assert_parses(":-1\r\n", "5 0:int(-1)");
    assert_parses(":9223372036854775807\r\n", "22 0:int(9223372036854775807)");
    assert_parses(":-9223372036854775808\r\n", "23 0:int(-9223372036854775808)");
    assert_parses("$3\r\na\r\n\r\n", "9 0:bulk(a\r\n)");
    assert_parses("$0\r\n\r\n", "6 0:bulk()");
    assert_parses("$-1\r\n", "5 0:null");
    assert_parses("*-1\r\n", "5 0:null");
    assert_parses("_\r\n", "3 0:null");
    assert_parses("#t\r\n", "4 0:bool(1)");
    assert_parses("#f\r\n", "4 0:bool(0)");
    assert_parses(",1.5\r\n", "6 0:double(1.5)");
    assert_parses(",-1e-5\r\n", "8 0:double(-1.0000000000000001e-05)");
    assert_parses(",inf\r\n", "6 0:double(inf)");
    assert_parses(",-inf\r\n", "7 0:double(-inf)");
    assert_parses(",nan\r\n", "6 0:double(nan)");
    assert_parses("(3492890328409238509324850943850943825024385\r\n",
                  "46 0:big(3492890328409238509324850943850943825024385)");
    assert_parses("=7\r\ntxt:abc\r\n", "13 0:verb(txt:abc)");
    assert_parses("!5\r\nERR x\r\n", "11 0:error(ERR x)");
    assert_parses("*0\r\n", "4 0:array(0)");
    assert_parses("~1\r\n:1\r\n", "8 0:set(1) 1:int(1)");
    assert_parses(">2\r\n+a\r\n+b\r\n", "12 0:push(2) 1:simple(a) 1:simple(b)");
}

TEST("containers nest")
{
    assert_parses("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n+next\r\n",
                  "27 0:array(5) 1:int(0) 1:int(16) 1:int(15) 1:int(-1) 1:int(2)");
    assert_parses("*2\r\n*1\r\n$1\r\na\r\n*2\r\n*0\r\n:7\r\n:8\r\n",
                  "27 0:array(2) 1:array(1) 2:bulk(a) 1:array(2) 2:array(0) 2:int(7)");
    assert_parses("%1\r\n+k\r\n%1\r\n+a\r\n:1\r\n",
                  "20 0:map(2) 1:simple(k) 1:map(2) 2:simple(a) 2:int(1)");
    assert_parses("*3\r\n_\r\n*1\r\n#t\r\n$-1\r\n",
                  "20 0:array(3) 1:null 1:array(1) 2:bool(1) 1:null");
}

TEST("attributes come before their value")
{
    assert_parses("|1\r\n+ttl\r\n:5\r\n:7\r\n", "18 0:attr(2) 1:simple(ttl) 1:int(5) 0:int(7)");
    assert_parses("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:2\r\n:3\r\n",
                  "28 0:array(2) 1:attr(2) 2:simple(a) 2:array(1) 3:int(1) 1:int(2) 1:int(3)");
    assert_parses("|0\r\n:7\r\n", "8 0:attr(0) 0:int(7)");
    assert_parses("|1\r\n+a\r\n:1\r\n", "0");
    assert_parses("*1\r\n|1\r\n+a\r\n|0\r\n:1\r\n", "0");
}

TEST("what is no reply is refused")
{
    static const char *const cases[] = {
        "x\r\n",
        "\r\n",
        "PING\r\n",
        ":\r\n",
        ":+1\r\n",
        ":01\r\n",
        ":1x\r\n",
        ":-0\r\n",
        ":1\rx",
        ":9223372036854775808\r\n",
        "$-2\r\n",
        "$x\r\n",
        "$\r\n",
        "$1\r\nab\r\n",
        "$1\r\na\rx",
        "$?\r\n",
        "*?\r\n",
        "*-2\r\n",
        "*x\r\n",
        "%-1\r\n",
        "~-1\r\n",
        ">-1\r\n",
        "=-1\r\n",
        "!-1\r\n",
        "#x\r\n",
        "#\r\n",
        "#tt\r\n",
        "_x\r\n",
        ",\r\n",
        ",x\r\n",
        ",0x10\r\n",
        ", 1\r\n",
        ",1.5.2\r\n",
        ",infinity\r\n",
        ",-nan\r\n",
        "(\r\n",
        "(-\r\n",
        "(1x\r\n",
        "+a\nb\r\n",
        "+a\rb\r\n",
        "-a\rb\r\n",
        "*1\r\nx",
        "*2\r\n:1\r\n;1\r\n",
        ",1111111111111111111111111111111111111111111111111111111111111111\r\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i], WEIR_ERR_SYNTAX);
    assert_refused("$536870913\r\n", WEIR_ERR_TOO_LARGE);
    assert_refused("*1048577\r\n", WEIR_ERR_TOO_LARGE);
    assert_refused("%1048577\r\n", WEIR_ERR_TOO_LARGE);
    assert_parses("$536870912\r\n", "0");
    assert_parses("*1048576\r\n", "0");
}

TEST("containers nest 128 deep and no deeper")
{
    for (int depth = WEIR_RESP_DEPTH_MAX; depth <= WEIR_RESP_DEPTH_MAX + 1; depth++) {
        char text[1024] = "";
        struct weir_resp_reader reader = {0};
        uint32_t count = 0;
        for (int i = 0; i < depth; i++)
            strcat(text, "*1\r\n");
        strcat(text, ":1\r\n");
        long taken = weir_resp_reply_parse(&reader, text, strlen(text), nodes, NODES_MAX, &count);
        if (depth > WEIR_RESP_DEPTH_MAX) {
            assert_int_equal(taken, WEIR_ERR_TOO_LARGE);
        } else {
            assert_int_equal(taken, (long)strlen(text));
            assert_int_equal(count, WEIR_RESP_DEPTH_MAX + 1);
            assert_int_equal(nodes[WEIR_RESP_DEPTH_MAX].depth, WEIR_RESP_DEPTH_MAX);
        }
    }
}

TEST("lines are bounded")
{
    static const char types[] = "+:$*,";
    for (size_t i = 0; i < sizeof types - 1; i++) {
        struct weir_resp_reader reader = {0};
        uint32_t count = 0;
        size_t size = WEIR_RESP_REPLY_LINE_MAX;
        char *data = guarded.end - size;
        memset(data, '1', size);
        data[0] = types[i];
        assert_int_equal(weir_resp_reply_parse(&reader, data, size - 1, nodes, NODES_MAX, &count),
                         0);
        assert_int_equal(weir_resp_reply_parse(&reader, data, size, nodes, NODES_MAX, &count),
                         WEIR_ERR_TOO_LARGE);
    }
}

TEST("nodes beyond the room are counted")
{
    static const char text[] = "*4\r\n:1\r\n*2\r\n:2\r\n:3\r\n+a\r\n+b\r\n";
    for (size_t split = 0; split < sizeof text - 1; split++) {
        struct weir_resp_reader reader = {0};
        struct weir_resp_node few[2] = {0};
        uint32_t count = 0;
        assert_int_equal(weir_resp_reply_parse(&reader, text, split, few, 2, &count), 0);
        assert_int_equal(weir_resp_reply_parse(&reader, text, sizeof text - 1, few, 2, &count),
                         (long)sizeof text - 1);
        assert_int_equal(count, 7);
        assert_int_equal(few[0].type, WEIR_RESP_ARRAY);
        assert_int_equal(few[1].integer, 1);
    }
    struct weir_resp_reader reader = {0};
    uint32_t count = 0;
    assert_int_equal(weir_resp_reply_parse(&reader, text, sizeof text - 1, NULL, 0, &count),
                     (long)sizeof text - 1);
    assert_int_equal(count, 7);
}

static const char *ended(char *out, char *end)
{
    *end = '\0';
    return out;
}

TEST("values are written for either version")
{
    char out[128];
    assert_string_equal(ended(out, weir_resp_write_simple(out, "OK", 2)), "+OK\r\n");
    assert_string_equal(ended(out, weir_resp_write_simple(out, "a\r\nb", 4)), "+a  b\r\n");
    assert_string_equal(ended(out, weir_resp_write_error(out, "ERR a\nb", 7)), "-ERR a b\r\n");
    assert_string_equal(ended(out, weir_resp_write_integer(out, 0)), ":0\r\n");
    assert_string_equal(ended(out, weir_resp_write_integer(out, -1)), ":-1\r\n");
    assert_string_equal(ended(out, weir_resp_write_integer(out, INT64_MIN)),
                        ":-9223372036854775808\r\n");
    assert_string_equal(ended(out, weir_resp_write_integer(out, INT64_MAX)),
                        ":9223372036854775807\r\n");
    assert_string_equal(ended(out, weir_resp_write_bulk(out, "a\r\n", 3)), "$3\r\na\r\n\r\n");
    assert_string_equal(ended(out, weir_resp_write_bulk(out, NULL, 0)), "$0\r\n\r\n");
    assert_string_equal(ended(out, WEIR_RESP_WRITE_WORD(out, "limit")), "$5\r\nlimit\r\n");
    assert_string_equal(ended(out, weir_resp_write_array(out, 5)), "*5\r\n");
    assert_string_equal(ended(out, weir_resp_write_map(out, 2, 5)), "*10\r\n");
    assert_string_equal(ended(out, weir_resp_write_map(out, 3, 5)), "%5\r\n");
    assert_string_equal(ended(out, weir_resp_write_null(out, 2)), "$-1\r\n");
    assert_string_equal(ended(out, weir_resp_write_null(out, 3)), "_\r\n");
    assert_string_equal(ended(out, weir_resp_write_boolean(out, 2, true)), ":1\r\n");
    assert_string_equal(ended(out, weir_resp_write_boolean(out, 2, false)), ":0\r\n");
    assert_string_equal(ended(out, weir_resp_write_boolean(out, 3, true)), "#t\r\n");
    assert_string_equal(ended(out, weir_resp_write_boolean(out, 3, false)), "#f\r\n");
}

TEST("the stated room is enough")
{
    char out[128];
    assert_true(weir_resp_write_integer(out, INT64_MIN) - out <= WEIR_RESP_INTEGER_MAX);
    assert_true(weir_resp_write_array(out, UINT64_MAX) - out <= WEIR_RESP_HEAD_MAX);
    assert_true(weir_resp_write_bulk(out, "abc", 3) - out <= WEIR_RESP_BULK_MAX(3));
    assert_true(weir_resp_write_error(out, "abc", 3) - out <= WEIR_RESP_LINE_TEXT_MAX(3));
    assert_true(weir_resp_write_null(out, 2) - out <= WEIR_RESP_NULL_MAX);
    assert_true(weir_resp_write_boolean(out, 2, true) - out <= WEIR_RESP_BOOLEAN_MAX);
}

/* A random value; says in `expected` how it should read back. */
static char *random_value(uint64_t *random, int depth, char *out, char **expected)
{
    char text[16];
    int64_t integer = (int64_t)draw_next(random) >> draw_below(random, 64);
    size_t size = draw_below(random, sizeof text);
    uint64_t count = draw_below(random, 4);
    memset(text, 'a' + (int)size, sizeof text);
    *expected += sprintf(*expected, " %d:", depth);
    switch (draw_below(random, depth < 5 ? 8 : 6)) {
    case 0:
        *expected += sprintf(*expected, "simple(%.*s)", (int)size, text);
        return weir_resp_write_simple(out, text, size);
    case 1:
        *expected += sprintf(*expected, "error(%.*s)", (int)size, text);
        return weir_resp_write_error(out, text, size);
    case 2:
        *expected += sprintf(*expected, "int(%lld)", (long long)integer);
        return weir_resp_write_integer(out, integer);
    case 3:
        *expected += sprintf(*expected, "bulk(%.*s)", (int)size, text);
        return weir_resp_write_bulk(out, text, size);
    case 4:
        *expected += sprintf(*expected, "null");
        return weir_resp_write_null(out, 2 + (int)count % 2);
    case 5: {
        double number = (double)integer / 1024.0;
        for (size_t i = 0; i < size; i++)
            number *= 1000;
        *expected += sprintf(*expected, "double(%.17g)", number);
        return out + sprintf(out, ",%.17g\r\n", number);
    }
    case 6:
        *expected += sprintf(*expected, "map(%d)", (int)count * 2);
        out = weir_resp_write_map(out, 3, count);
        count *= 2;
        break;
    default:
        *expected += sprintf(*expected, "array(%d)", (int)count);
        out = weir_resp_write_array(out, count);
        break;
    }
    while (count-- > 0)
        out = random_value(random, depth + 1, out, expected);
    return out;
}

TEST("random replies read back however they are split")
{
    static char reply[1 << 20], expected[1 << 20], got[1 << 20], body[1 << 19];
    uint64_t random = 9;
    unsigned checked = 0;
    while (checked < 2000) {
        char *expected_end = body;
        size_t size = (size_t)(random_value(&random, 0, reply, &expected_end) - reply);
        if (size > 400)
            continue;
        snprintf(expected, sizeof expected, "%zu%s", size, body);
        feed(got, sizeof got, reply, size, size, 1);
        assert_string_equal(got, expected);
        for (size_t at = 0; at < size; at++) {
            feed(got, sizeof got, reply, size, at, size);
            assert_string_equal(got, expected);
        }
        feed(got, sizeof got, reply, size, 0, 1);
        assert_string_equal(got, expected);
        checked++;
    }
}

RUN_TESTS_WITH(room_open, room_close)
