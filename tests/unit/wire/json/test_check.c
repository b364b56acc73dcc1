/* SPDX-License-Identifier: Apache-2.0 */
/* wire/check_json and wire/json_scan: checks, and every way to get them wrong. */
#include "check_json_read.h"
#include "test.h"

#include "wire/json/string.h"

TEST("an empty object is a check with its defaults")
{
    memset(&check, 0xff, sizeof check);
    assert_one(" {\t}\r\n ");
    assert_null(check.method.data);
    assert_null(check.path.data);
    assert_null(check.host.data);
    assert_null(check.ip.data);
    assert_int_equal(check.cost, 1);
    assert_false(check.dry_run);
    assert_false(check.has_t);
    assert_int_equal(check.header_count, 0);
    assert_int_equal(check.attribute_count, 0);
}

TEST("every field is read in any order")
{
    assert_one("{\"t\": \"1700000000.123456789\", \"dry_run\" : true, \"cost\":0, \"ip\":\"::1\","
               "\"attributes\":{\"user\":\"u1\",\"n\":-12,\"on\":true,\"off\":false,\"z\":0},"
               "\"headers\":{\"X-Api-Key\":\"\",\"Accept\":\"*/*\"},"
               "\"host\":\"a\", \"path\":\"/p?q\", \"method\":\"GET\"}");
    assert_bytes(check.method, "GET");
    assert_bytes(check.path, "/p?q");
    assert_bytes(check.host, "a");
    assert_bytes(check.ip, "::1");
    assert_int_equal(check.cost, 0);
    assert_true(check.dry_run);
    assert_true(check.has_t);
    assert_int_equal(check.t_ns, UINT64_C(1700000000123456789));
    assert_int_equal(check.header_count, 2);
    assert_bytes(check.headers[0].name, "X-Api-Key");
    assert_bytes(check.headers[0].value, "");
    assert_bytes(check.headers[1].value, "*/*");
    assert_int_equal(check.attribute_count, 5);
    assert_bytes(check.attributes[0].value, "u1");
    assert_bytes(check.attributes[1].value, "-12");
    assert_bytes(check.attributes[2].value, "true");
    assert_bytes(check.attributes[3].value, "false");
    assert_bytes(check.attributes[4].name, "z");
    assert_bytes(check.attributes[4].value, "0");
}

TEST("strings are unescaped")
{
    assert_one("{\"path\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00z\","
               "\"h\\u006fst\":\"\\u007f\"}");
    assert_bytes(check.path, "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
    assert_bytes(check.host, "\x7f");
    assert_one("{\"path\":\"\xc3\xa9\\n\xe2\x82\xac\xf0\x9f\x98\x80\"}");
    assert_bytes(check.path, "\xc3\xa9\n\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_one("{\"path\":\"\\uffff\\ud800\\udc00\\udbff\\udfff\"}");
    assert_bytes(check.path, "\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

TEST("strings that are none are refused")
{
    static const char *const escapes[] = {
        "\\a",      "\\x41",      "\\u12",          "\\u123g", "\\U0041",        "\\ud800",
        "\\ud800x", "\\ud800\\n", "\\ud800\\ud800", "\\udc00", "\\ud800\\u0041", "\\u0000",
        "\\'",      "\\0"};
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"path\":\"%s\"}", escapes[i]);
        assert_error(text, WEIR_ERR_SYNTAX, "path: invalid escape in a string, at byte 9");
    }
    static const char *const broken[] = {
        "\xff", "\xc3(", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"path\":\"a%s\"}", broken[i]);
        assert_error(text, WEIR_ERR_SYNTAX, "path: invalid UTF-8 in a string, at byte 10");
    }
    assert_error("{\"path\":\"a\nb\"}", WEIR_ERR_SYNTAX,
                 "path: a control character in a string, at byte 10");
    assert_error_bytes("{\"path\":\"a\0b\"}", 14, WEIR_ERR_SYNTAX,
                       "path: a control character in a string, at byte 10");
    assert_error("{\"path\":\"abc", WEIR_ERR_SYNTAX, "path: unterminated string, at byte 12");
    assert_error("{\"path\":\"abc\\", WEIR_ERR_SYNTAX,
                 "path: invalid escape in a string, at byte 12");
    assert_error("{\"path\":\"\\ud83d\\ude0", WEIR_ERR_SYNTAX,
                 "path: invalid escape in a string, at byte 9");
}

TEST("a cost is an integer written as one")
{
    assert_one("{\"cost\":18446744073709551615}");
    assert_true(check.cost == UINT64_MAX);
    assert_error("{\"cost\":18446744073709551616}", WEIR_ERR_RANGE,
                 "cost: larger than 18446744073709551615, at byte 8");
    assert_error("{\"cost\":99999999999999999999999}", WEIR_ERR_RANGE,
                 "cost: larger than 18446744073709551615, at byte 8");
    static const char *const costs[] = {"1.0", "1e3", "1E3", "-1",   "+1",   "01",  "0x1", "\"1\"",
                                        ".5",  "1.",  "",    "null", "true", "[1]", "{}",  "-0"};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"cost\":%s}", costs[i]);
        if (strcmp(costs[i], "0x1") == 0)
            assert_error(text, WEIR_ERR_SYNTAX, "missing comma or closing brace, at byte 9");
        else
            assert_error(text, WEIR_ERR_SYNTAX, "cost: not an unsigned integer, at byte 8");
    }
}

TEST("a time is exact to the nanosecond")
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"0", 0},
        {"0.000000001", 1},
        {"1700000000", UINT64_C(1700000000000000000)},
        {"1700000000.5", UINT64_C(1700000000500000000)},
        {"1700000000.123456789", UINT64_C(1700000000123456789)},
        {"1700000000.12345678900000", UINT64_C(1700000000123456789)},
        {"4611686017.999999999", UINT64_C(4611686017999999999)},
        /* what is below a nanosecond is cut off, never rounded up */
        {"1700000000.1234567899", UINT64_C(1700000000123456789)},
        {"0.00000000099999", 0},
        {"4611686017.9999999999999999999999", UINT64_C(4611686017999999999)},
        {"1e9", UINT64_C(1000000000000000000)},
        {"1.7E+9", UINT64_C(1700000000000000000)},
        {"1.7000000001234567899e9", UINT64_C(1700000000123456789)},
        {"17000000005e-1", UINT64_C(1700000000500000000)},
        {"1e-9", 1},
        {"9e-10", 0},
        {"1234567891e-19", 0},
        {"1e-99999999999999999999", 0},
        {"0e99999999999999999999", 0},
        {"0.000000000000000000001e21", UINT64_C(1000000000)},
        {"4.611686017999999999e0009", UINT64_C(4611686017999999999)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"t\":%s}", cases[i].text);
        assert_one(text);
        assert_true(check.has_t);
        assert_int_equal(check.t_ns, cases[i].ns);
        snprintf(text, sizeof text, "{\"t\":\"%s\"}", cases[i].text);
        assert_one(text);
        assert_int_equal(check.t_ns, cases[i].ns);
    }
    static const char *const late[] = {
        "4611686018", "18446744073709551616000000000", "4.611686018e9",
        "1e10",       "1e99999999999999999999",        "0.1e11"};
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"t\":%s}", late[i]);
        assert_error(text, WEIR_ERR_RANGE, "t: beyond the year 2116, at byte 5");
    }
    static const char *const times[] = {
        "-1",   "1e",       "1e+",       "1e9.5",  "1e1e1", "1.e9",
        "e9",   "\"1e9 \"", "\"0x1e9\"", "-1e9",   "01",    "1.",
        ".5",   "\"\"",     "\" 1\"",    "\"1s\"", "+1",    "1..2",
        "true", "null",     "[]",        "\"-1\"", "1-2",   "\"2023-11-14T22:13:20Z\""};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"t\":%s}", times[i]);
        assert_error(text, WEIR_ERR_SYNTAX,
                     "t: not seconds since the epoch, as in 1700000000.123456789, at byte 5");
    }
}

TEST("a mistyped or repeated field is an error")
{
    assert_error("{\"methd\":\"GET\"}", WEIR_ERR_SYNTAX, "unknown field \"methd\", at byte 1");
    assert_error("{\"\":1}", WEIR_ERR_SYNTAX, "unknown field \"\", at byte 1");
    assert_error("{\"user\":\"a\"}", WEIR_ERR_SYNTAX,
                 "only allowed in \"attributes\": \"user\", at byte 1");
    assert_error("{\"life\": \"5m\"}", WEIR_ERR_SYNTAX, "life: not seconds, as in 60, at byte 9");
    assert_error("{\"life\":-1}", WEIR_ERR_SYNTAX, "life: not seconds, as in 60, at byte 8");
    assert_error("{\"Cost\":1}", WEIR_ERR_SYNTAX, "unknown field \"Cost\", at byte 1");
    assert_error("{\"a\\n\\\"\xc3\xa9\":1}", WEIR_ERR_SYNTAX,
                 "unknown field \"a?\"??\", at byte 1");
    assert_error("{\"0123456789012345678901234567890123456789\":1}", WEIR_ERR_SYNTAX,
                 "unknown field \"01234567890123456789012345678901...\", at byte 1");
    assert_error("{\"cost\":1, \"cost\":1}", WEIR_ERR_SYNTAX,
                 "repeated field \"cost\", at byte 11");
    assert_error("{\"cost\":1,\"c\\u006fst\":1}", WEIR_ERR_SYNTAX,
                 "repeated field \"cost\", at byte 10");
    assert_error("{\"headers\":{\"A\":\"1\",\"a\":\"2\"}}", WEIR_ERR_SYNTAX,
                 "headers: repeated name \"a\", at byte 20");
    assert_error("{\"attributes\":{\"a\":1,\"a\":2}}", WEIR_ERR_SYNTAX,
                 "attributes: repeated name \"a\", at byte 21");
    assert_error("{\"attributes\":{\"\":1}}", WEIR_ERR_SYNTAX,
                 "attributes: empty name \"\", at byte 15");
    assert_one("{\"attributes\":{\"a\":1,\"A\":2}}");
}

TEST("values of the wrong kind are errors")
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"method\":1}", "method: not a string, at byte 10"},
        {"{\"method\":null}", "method: not a string, at byte 10"},
        {"{\"dry_run\":1}", "dry_run: not a boolean, at byte 11"},
        {"{\"dry_run\":\"true\"}", "dry_run: not a boolean, at byte 11"},
        {"{\"dry_run\":TRUE}", "dry_run: not a boolean, at byte 11"},
        {"{\"dry_run\":tru", "dry_run: not a boolean, at byte 11"},
        {"{\"headers\":[]}", "headers: not an object, at byte 11"},
        {"{\"headers\":{\"a\":1}}", "headers: not a string, at byte 16"},
        {"{\"headers\":{\"a\":{}}}", "headers: not a string, at byte 16"},
        {"{\"attributes\":{\"a\":1.5}}",
         "attributes: not a string, an integer or a boolean, at byte 19"},
        {"{\"attributes\":{\"a\":-}}",
         "attributes: not a string, an integer or a boolean, at byte 19"},
        {"{\"attributes\":{\"a\":null}}",
         "attributes: not a string, an integer or a boolean, at byte 19"},
        {"{\"attributes\":{\"a\":[1]}}",
         "attributes: not a string, an integer or a boolean, at byte 19"},
        {"{\"attributes\":\"x\"}", "attributes: not an object, at byte 14"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(cases[i].text, WEIR_ERR_SYNTAX, cases[i].message);
}

TEST("what is no json is refused")
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "not an object, at byte 0"},
        {"  ", "not an object, at byte 2"},
        {"1", "not an object, at byte 0"},
        {"\"a\"", "not an object, at byte 0"},
        {"null", "not an object, at byte 0"},
        {"{", "missing name of a member, at byte 1"},
        {"{,}", "missing name of a member, at byte 1"},
        {"{\"cost\"}", "missing colon, at byte 7"},
        {"{\"cost\" 1}", "missing colon, at byte 8"},
        {"{\"cost\":1 \"t\":1}", "missing comma or closing brace, at byte 10"},
        {"{\"cost\":1,}", "missing name of a member, at byte 10"},
        {"{\"cost\":1,,}", "missing name of a member, at byte 10"},
        {"{'cost':1}", "missing name of a member, at byte 1"},
        {"{cost:1}", "missing name of a member, at byte 1"},
        {"{}{}", "unexpected text after the end, at byte 2"},
        {"{} x", "unexpected text after the end, at byte 3"},
        {"{},", "unexpected text after the end, at byte 2"},
        {"{}]", "unexpected text after the end, at byte 2"},
        {"/**/{}", "not an object, at byte 0"},
        {"\xef\xbb\xbf{}", "not an object, at byte 0"},
        {"[", "[0]: not an object, at byte 1"},
        {"[,]", "[0]: not an object, at byte 1"},
        {"[[]]", "[0]: not an object, at byte 1"},
        {"[] []", "unexpected text after the end, at byte 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(cases[i].text, WEIR_ERR_SYNTAX, cases[i].message);
    assert_error_bytes("{}\0", 3, WEIR_ERR_SYNTAX, "unexpected text after the end, at byte 2");
    assert_error_bytes("\0", 1, WEIR_ERR_SYNTAX, "not an object, at byte 0");
}

/* A text of any characters but NUL, and how weir or any other writer would put it in JSON. */
static size_t random_string(uint64_t *random, char *plain, char *json)
{
    size_t size = 0, length = 0;
    json[length++] = '"';
    for (uint64_t left = draw_below(random, 12); left > 0; left--) {
        static const char *const characters[] = {
            "a",   "/", "\"", "\\", "\n", "\x7f", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
            "\x01"};
        static const char *const escaped[] = {"\\u0061",        "\\/",     "\\u0022", "\\u005c",
                                              "\\u000A",        "\\u007F", "\\u00e9", "\\u20ac",
                                              "\\uD83D\\uDE00", "\\u0001"};
        size_t which = draw_below(random, 10);
        size_t bytes = strlen(characters[which]);
        memcpy(plain + size, characters[which], bytes);
        size += bytes;
        if (draw_below(random, 2) == 0) {
            length += (size_t)sprintf(json + length, "%s", escaped[which]);
        } else {
            char quoted[16];
            size_t written = weir_json_string_write(characters[which], bytes, quoted);
            memcpy(json + length, quoted + 1, written - 2);
            length += written - 2;
        }
    }
    json[length++] = '"';
    json[length] = '\0';
    plain[size] = '\0';
    return length;
}

/* Strings are looked through by sixteens, also where fewer are left of the text. */
TEST("a byte of a string counts wherever it stands")
{
    static const char control[] = "a control character in a string",
                      utf8[] = "invalid UTF-8 in a string";
    char text[64], message[96];
    for (size_t size = 1; size <= 40; size++) {
        for (size_t at = 0; at < size; at++) {
            size_t length = (size_t)sprintf(text, "{\"path\":\"%*s\"}", (int)size, "");
            char *byte = text + 9 + at;
            *byte = '\x1f';
            snprintf(message, sizeof message, "path: %s, at byte %zu", control, 9 + at);
            assert_error_bytes(text, length, WEIR_ERR_SYNTAX, message);
            *byte = '\x80';
            snprintf(message, sizeof message, "path: %s, at byte %zu", utf8, 9 + at);
            assert_error_bytes(text, length, WEIR_ERR_SYNTAX, message);
            *byte = '\x7f';
            assert_one(text);
            assert_int_equal(check.path.size, size);
            assert_int_equal(check.path.data[at], 0x7f);
            if (at + 1 == size)
                continue;
            memcpy(byte, "\\n", 2);
            assert_one(text);
            assert_int_equal(check.path.size, size - 1);
            assert_int_equal(check.path.data[at], '\n');
        }
    }
}

TEST("random checks read back and their prefixes are refused")
{
    uint64_t random = 5;
    for (int i = 0; i < 3000; i++) {
        char method[64], path[64], value[64], json[3][128], text[1024], space[2] = "";
        uint64_t cost = draw_next(&random) >> draw_below(&random, 64);
        random_string(&random, method, json[0]);
        random_string(&random, path, json[1]);
        random_string(&random, value, json[2]);
        space[0] = " \t\r\n"[draw_below(&random, 4)];
        size_t size = (size_t)sprintf(
            text, "{\"path\"%s:%s,%s\"cost\":%llu,\"headers\":{\"a\":%s%s},\"method\":%s}", space,
            json[1], space, (unsigned long long)cost, json[2], space, json[0]);
        assert_one(text);
        assert_bytes(check.method, method);
        assert_bytes(check.path, path);
        assert_true(check.cost == cost);
        assert_bytes(check.headers[0].value, value);
        for (size_t part = 0; part < size; part++)
            assert_true(first_of(text, part) < 0);
    }
}

RUN_TESTS_WITH(room_open, room_close)
