/* SPDX-License-Identifier: Apache-2.0 */
/* wire/check_json: batches, their limits, and releases. */
#include "check_json_read.h"
#include "test.h"

TEST("a bomb of brackets costs nothing")
{
    size_t size = 1 << 20;
    char *text = memory_new(size);
    memset(text, '[', size);
    assert_error_bytes(text, size, WEIR_ERR_SYNTAX, "[0]: not an object, at byte 1");
    memcpy(text, "{\"attributes\":{\"a\":", 19);
    assert_error_bytes(text, size, WEIR_ERR_SYNTAX,
                       "attributes: not a string, an integer or a boolean, at byte 19");
    free(text);
}

TEST("a batch is read check by check")
{
    static const char text[] = " [ {\"cost\":1} ,{\"cost\":2,\"host\":\"h\"},{} ] ";
    assert_int_equal(first_of(text, sizeof text - 1), 1);
    assert_true(cursor.array);
    assert_int_equal(check.cost, 1);
    assert_int_equal(weir_check_cursor_next(&cursor, &check, &reason), 1);
    assert_int_equal(check.cost, 2);
    assert_bytes(check.host, "h");
    assert_int_equal(weir_check_cursor_next(&cursor, &check, &reason), 1);
    assert_int_equal(check.cost, 1);
    assert_null(check.host.data);
    assert_int_equal(cursor.index, 3);
    assert_int_equal(weir_check_cursor_next(&cursor, &check, &reason), 0);
    assert_int_equal(weir_check_cursor_next(&cursor, &check, &reason), 0);

    assert_int_equal(first_of("[]", 2), 0);
    assert_int_equal(first_of(" [ ] ", 5), 0);
}

/* The error of the n-th call. */
static void assert_batch_error(const char *text, int calls, int err, const char *message)
{
    int got = first_of(text, strlen(text));
    for (int i = 1; i < calls; i++) {
        assert_int_equal(got, 1);
        got = weir_check_cursor_next(&cursor, &check, &reason);
    }
    assert_int_equal(got, err);
    assert_string_equal(reason.text, message);
}

TEST("an error in a batch names its check")
{
    assert_batch_error("[{},{\"cost\":-1}]", 2, WEIR_ERR_SYNTAX,
                       "[1].cost: not an unsigned integer, at byte 12");
    assert_batch_error("[{},{\"cost\":18446744073709551616}]", 2, WEIR_ERR_RANGE,
                       "[1].cost: larger than 18446744073709551615, at byte 12");
    assert_batch_error("[{},{\"x\":1}]", 2, WEIR_ERR_SYNTAX, "[1]: unknown field \"x\", at byte 5");
    assert_batch_error("[{} {}]", 2, WEIR_ERR_SYNTAX,
                       "missing comma or closing bracket, at byte 4");
    assert_batch_error("[{},]", 2, WEIR_ERR_SYNTAX, "[1]: not an object, at byte 4");
    assert_batch_error("[{}", 2, WEIR_ERR_SYNTAX, "missing comma or closing bracket, at byte 3");
    assert_batch_error("[{}]]", 2, WEIR_ERR_SYNTAX, "unexpected text after the end, at byte 4");
    assert_batch_error("[{}},{}]", 2, WEIR_ERR_SYNTAX,
                       "missing comma or closing bracket, at byte 3");
}

TEST("a batch holds a thousand checks")
{
    for (int count = WEIR_CHECK_JSON_BATCH_MAX; count <= WEIR_CHECK_JSON_BATCH_MAX + 1; count++) {
        char text[4096] = "[";
        for (int i = 0; i < count; i++)
            strcat(text, i > 0 ? ",{}" : "{}");
        strcat(text, "]");
        int got = first_of(text, strlen(text));
        for (int i = 0; i < WEIR_CHECK_JSON_BATCH_MAX; i++) {
            assert_int_equal(got, 1);
            got = weir_check_cursor_next(&cursor, &check, &reason);
        }
        assert_int_equal(got, count > WEIR_CHECK_JSON_BATCH_MAX ? WEIR_ERR_TOO_LARGE : 0);
    }
    assert_string_equal(reason.text, "more than 1000 checks, at byte 3001");
}

TEST("a check holds sixty four pairs")
{
    static const char *const fields[] = {"headers", "attributes"};
    for (int which = 0; which < 2; which++) {
        for (int count = 64; count <= 65; count++) {
            char text[2048];
            int size = sprintf(text, "{\"%s\":{", fields[which]);
            for (int i = 0; i < count; i++)
                size += sprintf(text + size, "%s\"n%d\":\"v%d\"", i > 0 ? "," : "", i, i);
            size += sprintf(text + size, "}}");
            if (count == 64) {
                assert_one(text);
                assert_int_equal(which ? check.attribute_count : check.header_count, 64);
                assert_bytes((which ? check.attributes : check.headers)[63].value, "v63");
            } else {
                assert_int_equal(first_of(text, (size_t)size), WEIR_ERR_TOO_LARGE);
                assert_non_null(strstr(reason.text, "more than 64, at byte"));
            }
        }
    }
}

TEST("a release is a lease and nothing else")
{
    static const struct {
        const char *text, *lease, *message;
    } cases[] = {
        {"{\"lease\":\"abc\"}", "abc", ""},
        {" { \"lease\" : \"\" } ", "", ""},
        {"{}", NULL, "\"lease\" is required, at byte 2"},
        {"{\"lease\":1}", NULL, "lease: not a string, at byte 9"},
        {"{\"lease\":null}", NULL, "lease: not a string, at byte 9"},
        {"{\"leas\":\"a\"}", NULL, "unknown field \"leas\", at byte 1"},
        {"{\"lease\":\"a\",\"lease\":\"b\"}", NULL, "given twice: \"lease\", at byte 13"},
        {"{\"lease\":\"a\",\"x\":1}", NULL, "unknown field \"x\", at byte 13"},
        {"{\"status\":503,\"lease\":\"a\"}", "a", ""},
        {"{\"lease\":\"a\",\"status\":503,\"status\":503}", NULL,
         "given twice: \"status\", at byte 26"},
        {"{\"lease\":\"a\",\"status\":600}", NULL,
         "status: not a status of 100 to 599, at byte 22"},
        {"{\"status\":200}", NULL, "\"lease\" is required, at byte 14"},
        {"[{\"lease\":\"a\"}]", NULL, "not an object, at byte 0"},
        {"{\"lease\":\"a\"}x", NULL, "unexpected text after the end, at byte 13"},
        {"", NULL, "not an object, at byte 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_release_json release;
        size_t size = strlen(cases[i].text);
        char *text = guarded_put(&guarded, cases[i].text, size);
        reason.text[0] = '\0';
        int err = weir_release_json_parse(text, size, &release, &reason);
        assert_string_equal(reason.text, cases[i].message);
        assert_int_equal(err == 0, cases[i].lease != NULL);
        if (cases[i].lease != NULL)
            assert_bytes(release.lease, cases[i].lease);
    }
}

RUN_TESTS_WITH(room_open, room_close)
