/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of settlements, and costs by name. */
#include <string.h>

#include "test.h"
#include "wire/json/check.h"
#include "wire/json/settle.h"

static struct weir_settle_json settle;
static struct weir_reason reason;

static int read_settle(const char *text)
{
    static char copy[1024];
    reason.text[0] = '\0';
    memcpy(copy, text, strlen(text) + 1);
    return weir_settle_json_parse(copy, strlen(copy), &settle, &reason);
}

static bool is(struct weir_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
}

TEST("a cost, a status, or both")
{
    assert_int_equal(read_settle("{\"reservation\":\"t\",\"cost\":7}"), 0);
    assert_true(settle.has_cost && settle.cost == 7 && settle.status == 0 && !settle.has_costs);
    assert_int_equal(read_settle("{\"outcome\":\"5xx\",\"reservation\":\"t\"}"), 0);
    assert_true(!settle.has_cost && settle.status == 500);
    assert_int_equal(read_settle("{\"reservation\":\"t\",\"cost\":0,\"status\":404}"), 0);
    assert_true(settle.has_cost && settle.cost == 0 && settle.status == 404);
}

TEST("costs by name keep their order and their digits")
{
    assert_int_equal(read_settle("{\"reservation\":\"t\",\"costs\": { \"tokens\" :\n 312, "
                                 "\"micro\\u0075sd\":18446744073709551615}, \"latency_ms\":3}"),
                     0);
    assert_true(settle.has_costs && !settle.has_cost && settle.has_latency);
    assert_int_equal(settle.costs.count, 2);
    assert_true(is(settle.costs.of[0].name, "tokens") && is(settle.costs.of[0].text, "312"));
    assert_int_equal(settle.costs.of[0].amount, 312);
    assert_true(is(settle.costs.of[1].name, "microusd"));
    assert_true(settle.costs.of[1].amount == UINT64_MAX);
}

TEST("no costs are a truth that names none")
{
    assert_int_equal(read_settle("{\"reservation\":\"t\",\"costs\":{}}"), 0);
    assert_true(settle.has_costs && settle.costs.count == 0);
}

static void expect(const char *text, int err, const char *says)
{
    assert_int_equal(read_settle(text), err);
    assert_non_null(strstr(reason.text, says));
}

TEST("what is wrong is named")
{
    expect("{\"reservation\":\"t\"}", WEIR_ERR_SYNTAX, "is required");
    expect("{\"cost\":1}", WEIR_ERR_SYNTAX, "\"reservation\" is required");
    expect("{\"reservation\":\"t\",\"cost\":1,\"cost\":1}", WEIR_ERR_SYNTAX, "repeated field");
    expect("{\"reservation\":\"t\",\"cost\":1,\"costs\":{}}", WEIR_ERR_SYNTAX,
           "one of cost and costs");
    expect("{\"reservation\":\"t\",\"status\":500,\"outcome\":\"5xx\"}", WEIR_ERR_SYNTAX,
           "status and outcome");
    expect("{\"reservation\":\"t\",\"costs\":{\"a\":1,\"a\":2}}", WEIR_ERR_SYNTAX, "repeated name");
    expect("{\"reservation\":\"t\",\"costs\":{\"\":1}}", WEIR_ERR_SYNTAX, "empty name");
    expect("{\"reservation\":\"t\",\"costs\":{\"a\":-1}}", WEIR_ERR_SYNTAX,
           "costs: not an unsigned integer");
    expect("{\"reservation\":\"t\",\"costs\":{\"a\":18446744073709551616}}", WEIR_ERR_RANGE,
           "costs: ");
    expect("{\"reservation\":\"t\",\"costs\":{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,"
           "\"g\":1,\"h\":1,\"i\":1}}",
           WEIR_ERR_TOO_LARGE, "costs: more than 8");
    expect("{\"reservation\":\"t\",\"costs\":[]}", WEIR_ERR_SYNTAX, "costs: ");
    expect("{\"reservation\":\"t\",\"costs\":{\"a\":1", WEIR_ERR_SYNTAX, "");
}

TEST("a check has costs, and the next has none of them")
{
    static char text[] = "[{\"costs\":{\"tokens\":5}},{}]";
    static struct weir_check_json check;
    struct weir_check_cursor cursor;
    weir_check_cursor_init(&cursor, text, sizeof text - 1);
    assert_int_equal(weir_check_cursor_next(&cursor, &check, &reason), 1);
    assert_true(check.costs.count == 1 && is(check.costs.of[0].text, "5"));
    assert_int_equal(weir_check_cursor_next(&cursor, &check, &reason), 1);
    assert_int_equal(check.costs.count, 0);
}

RUN_TESTS()
