/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of /v1/limit: one limit, several, and what is refused with the path of the field. */
#include "../unit_wire.h"
#include "test.h"

#include "wire/json/limit.h"

static struct guarded guarded;
static struct weir_given_limits limits;
static struct weir_reason reason;

static int room_open(void **state)
{
    guarded = guarded_new(1 << 16);
    return 0;
}

static int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

static int parse(const char *text)
{
    reason.text[0] = '\0';
    return weir_limits_json_parse(guarded_put(&guarded, text, strlen(text)), strlen(text), &limits,
                                  &reason);
}

static void assert_parsed(const char *text)
{
    if (parse(text) != 0)
        fail_msg("%s: %s", text, reason.text);
}

TEST("a single limit has all its fields")
{
    assert_parsed(" {\"key\":\"user:\\u0031\",\"name\":\"a-b.c_9\",\"rate\":\"5/min\","
                  "\"algorithm\":\"gcra\",\"burst\":7,\"segments\":6,\"strict\":true,"
                  "\"queue\":false,\"limit\":9,\"life\":\"2min\",\"cost\":3,\"dry_run\":true} ");
    const struct weir_given_limit *limit = &limits.limits[0];
    assert_int_equal(limits.count, 1);
    assert_false(limits.listed);
    assert_true(limits.dry_run);
    assert_bytes(limit->key, "user:1");
    assert_bytes(limit->name, "a-b.c_9");
    assert_bytes(limit->rate, "5/min");
    assert_bytes(limit->algorithm, "gcra");
    assert_bytes(limit->life, "2min");
    assert_int_equal(limit->burst, 7);
    assert_int_equal(limit->segments, 6);
    assert_int_equal(limit->limit, 9);
    assert_int_equal(limit->cost, 3);
    assert_true(limit->strict);
    assert_false(limit->queue);
    assert_int_equal(limit->given, (1 << WEIR_LIMIT_FIELDS) - 1);
}

TEST("what is absent has its default")
{
    assert_parsed("{\"key\":\"k\"}");
    const struct weir_given_limit *limit = &limits.limits[0];
    assert_int_equal(limit->cost, 1);
    assert_int_equal(limit->given, 1 << WEIR_LIMIT_KEY);
    assert_null(limit->name.data);
    assert_null(limit->rate.data);
    assert_null(limit->algorithm.data);
    assert_null(limit->life.data);
    assert_false(limits.dry_run);
}

TEST("a list may be the text or a field")
{
    static const char *const texts[] = {
        "[{\"key\":\"a\"},{\"key\":\"b\",\"cost\":0}]",
        "{\"limits\":[{\"key\":\"a\"} , {\"key\":\"b\",\"cost\":0}]}",
        "{\"dry_run\":true,\"limits\":[{\"key\":\"a\"},{\"cost\":0,\"key\":\"b\"}]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_parsed(texts[i]);
        assert_true(limits.listed);
        assert_int_equal(limits.count, 2);
        assert_int_equal(limits.dry_run, i == 2);
        assert_bytes(limits.limits[0].key, "a");
        assert_bytes(limits.limits[1].key, "b");
        assert_int_equal(limits.limits[0].cost, 1);
        assert_int_equal(limits.limits[1].cost, 0);
        assert_int_equal(limits.list != NULL, i > 0);
    }
}

TEST("what is wrong is named by its path")
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "not an object, at byte 0"},
        {"{}", "\"key\" is required, at byte 2"},
        {"{\"key\":\"\"}", "key: must not be empty, at byte 7"},
        {"{\"key\":1}", "key: not a string, at byte 7"},
        {"{\"key\":\"a\",\"key\":\"b\"}", "repeated field \"key\", at byte 11"},
        {"{\"key\":\"a\",\"cost\":-1}", "cost: not an unsigned integer, at byte 18"},
        {"{\"key\":\"a\",\"cost\":1.5}", "cost: not an unsigned integer, at byte 18"},
        {"{\"key\":\"a\",\"name\":\"A\"}",
         "name: must be 1 to 64 of a-z, 0-9, '.', '_', '-', at byte 18"},
        {"{\"key\":\"a\",\"name\":\"\"}",
         "name: must be 1 to 64 of a-z, 0-9, '.', '_', '-', at byte 18"},
        {"{\"key\":\"a\",\"rat\":\"1/s\"}", "unknown field \"rat\", at byte 11"},
        {"{\"key\":\"a\",\"rate\":10}", "rate: not a string, at byte 18"},
        {"{\"key\":\"a\",\"quota\":\"1/day\"}", "for the rules file only: \"quota\", at byte 11"},
        {"{\"key\":\"a\",\"idempotency_key\":\"1\"}",
         "not allowed with limits in the request: \"idempotency_key\", at byte 11"},
        {"[]", "no limit, at byte 1"},
        {"{\"limits\":[]}", "limits: no limit, at byte 11"},
        {"{\"limits\":{}}", "limits: not an array of limits, at byte 10"},
        {"[{\"key\":\"a\"},{\"cost\":1}]", "[1]: \"key\" is required, at byte 23"},
        {"[{\"key\":\"a\"},{\"key\":\"b\",\"burst\":\"x\"}]",
         "[1].burst: not an unsigned integer, at byte 32"},
        {"{\"limits\":[{\"key\":\"a\"},{\"key\":\"b\",\"strict\":1}]}",
         "limits[1].strict: not a boolean, at byte 43"},
        {"{\"limits\":[{\"key\":\"a\",\"dry_run\":true}]}",
         "limits[0]: only allowed beside \"limits\": \"dry_run\", at byte 22"},
        {"{\"limits\":[{\"limits\":[]}]}",
         "limits[0]: not allowed within a limit: \"limits\", at byte 12"},
        {"{\"limits\":[{\"key\":\"a\"} {\"key\":\"b\"}]}",
         "limits: missing comma or closing bracket, at byte 23"},
        {"{\"limits\":[{\"key\":\"a\"},]}", "limits[1]: not an object, at byte 23"},
        {"{\"limits\":[{\"key\":\"a\"}],\"key\":\"b\"}",
         "either \"limits\" or the fields of one limit, at byte 24"},
        {"{\"key\":\"a\",\"limits\":[{\"key\":\"b\"}]}",
         "either \"limits\" or the fields of one limit, at byte 11"},
        {"{\"limits\":[{\"key\":\"a\"}],\"limits\":[{\"key\":\"a\"}]}",
         "repeated field \"limits\", at byte 24"},
        {"{\"key\":\"a\",\"dry_run\":true,\"dry_run\":true}",
         "repeated field \"dry_run\", at byte 26"},
        {"{\"key\":\"a\"} x", "unexpected text after the end, at byte 12"},
        {"[{\"key\":\"a\"}", "missing comma or closing bracket, at byte 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int err = parse(cases[i].text);
        if (err >= 0 || strcmp(reason.text, cases[i].says) != 0)
            fail_msg("%s: %d, \"%s\", not \"%s\"", cases[i].text, err, reason.text, cases[i].says);
        /* a reason is not needed */
        assert_int_equal(
            weir_limits_json_parse(guarded_put(&guarded, cases[i].text, strlen(cases[i].text)),
                                   strlen(cases[i].text), &limits, NULL),
            err);
    }
}

TEST("there are 32 limits at most")
{
    char text[1024];
    for (int count = 32; count <= 33; count++) {
        size_t used = 0;
        for (int i = 0; i < count; i++)
            used += (size_t)sprintf(text + used, "%c{\"key\":\"%d\"}", i ? ',' : '[', i);
        strcpy(text + used, "]");
        assert_int_equal(parse(text), count == 32 ? 0 : WEIR_ERR_TOO_LARGE);
    }
    assert_non_null(strstr(reason.text, "more than 32 limits"));
}

TEST("a name has 64 characters at most")
{
    char text[128];
    for (int size = 64; size <= 65; size++) {
        snprintf(text, sizeof text, "{\"key\":\"k\",\"name\":\"%0*d\"}", size, 0);
        assert_int_equal(parse(text), size == 64 ? 0 : WEIR_ERR_SYNTAX);
    }
}

TEST("a text that is cut off is refused")
{
    static const char text[] =
        "{\"limits\":[{\"key\":\"a\",\"rate\":\"1/s\"},{\"key\":\"b\",\"cost\":"
        "2,\"strict\":true}],\"dry_run\":false}";
    for (size_t size = 0; size < sizeof text - 1; size++)
        assert_true(
            weir_limits_json_parse(guarded_put(&guarded, text, size), size, &limits, &reason) < 0);
    assert_parsed(text);
}

RUN_TESTS_WITH(room_open, room_close)
