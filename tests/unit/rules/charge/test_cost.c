/* SPDX-License-Identifier: Apache-2.0 */
/* What a request costs: literals, tables of routes, attributes. */
#include "rules_test.h"
#include "test.h"

static const char table[] = "limits:\n"
                            "- name: api\n"
                            "  key: []\n"
                            "  rate: 100/s\n"
                            "  cost: {/search: 20, 'POST /export/:id': 100, /export/**: 3,\n"
                            "         GET /health: 0, default: 7}\n";

static uint64_t cost_of(const struct weir_rules *rules, const char *method, const char *path)
{
    struct test_request *request = ASK(rules, "method", method, "path", path);
    assert_int_equal(request->count, 1);
    return request->checks[0].cost;
}

TEST("the first route that matches says the cost")
{
    struct weir_rules *rules = test_load(table);
    assert_int_equal(cost_of(rules, "GET", "/search"), 20);
    assert_int_equal(cost_of(rules, "GET", "/%73earch?q=1"), 20);
    assert_int_equal(cost_of(rules, "POST", "/export/7"), 100);
    assert_int_equal(cost_of(rules, "PUT", "/export/7"), 3);
    assert_int_equal(cost_of(rules, "POST", "/export/7/8"), 3);
    assert_int_equal(cost_of(rules, "GET", "/health"), 0);
    assert_int_equal(cost_of(rules, "HEAD", "/health"), 7);
    assert_int_equal(cost_of(rules, "GET", "/searches"), 7);
    struct test_request *request = ASK_EMPTY(rules); /* neither method nor path */
    assert_int_equal(request->checks[0].cost, 7);
    weir_rules_unref(rules);
}

TEST("a table changes nothing of what matches")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: [path.id], rate: 1/s, match: {path: '/x/:id'},\n"
                  "   cost: {'/x/7': 5, '/*/:other': 6}}\n"
                  "- {name: b, key: [], rate: 1/s, match: {path: '/x/7'}}\n");
    struct test_request *request = ASK(rules, "path", "/x/7");
    test_expect(request, "a{path.id=7} b{}");
    assert_int_equal(request->checks[0].cost, 5);
    assert_int_equal(request->checks[1].cost, 1);
    assert_int_equal(ASK(rules, "path", "/x/8")->checks[0].cost, 6);
    assert_int_equal(ASK(rules, "path", "/y/7")->count, 0);
    weir_rules_unref(rules);
}

TEST("the cost of the request multiplies and saturates")
{
    struct weir_rules *rules = test_load(table);
    struct test_request *request = ASK(rules, "path", "/search");
    request->request.cost = UINT64_MAX / 2;
    assert_int_equal(weir_rules_checks(&request->query, request->checks), 1);
    assert_true(request->checks[0].cost == UINT64_MAX);
    weir_rules_unref(rules);
}

static const char tokens[] = "limits:\n"
                             "- {name: t, key: [], rate: 1000/s,\n"
                             "   cost: {from: header.X-Tokens, default: 4, min: 1, max: 1000}}\n";

TEST("an attribute says the cost within its bounds")
{
    struct weir_rules *rules = test_load(tokens);
    assert_int_equal(ASK(rules, "header.x-tokens", "17")->checks[0].cost, 17);
    assert_int_equal(ASK(rules, "header.x-tokens", "1")->checks[0].cost, 1);
    assert_int_equal(ASK(rules, "header.x-tokens", "1000")->checks[0].cost, 1000);
    assert_int_equal(ASK_EMPTY(rules)->checks[0].cost, 4);
    weir_rules_unref(rules);
}

static const char *const bad[] = {
    "", "0", "1001", "-1", "1.5", "7 ", "0x10", "1, 2", "18446744073709551617"};

TEST("a bad value is refused and the attribute named")
{
    struct weir_rules *rules = test_load(tokens);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct test_request *request = ASK(rules, "header.x-tokens", bad[i]);
        assert_int_equal(request->count, WEIR_ERR_SYNTAX);
        assert_string_equal(request->reason.text,
                            "header.x-tokens: must be a whole number from 1 to 1000");
    }
    weir_rules_unref(rules);
}

TEST("a bad value may count as the default")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: t, key: [], rate: 9/s,\n"
                  "   cost: {from: tokens, min: 1, max: 1000, on_bad: default}}\n");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(ASK(rules, "tokens", bad[i])->checks[0].cost, 1);
    weir_rules_unref(rules);
}

TEST("every rate of a limit is charged the same")
{
    struct weir_rules *rules =
        test_load("limits: [{name: t, key: [], rate: [9/s, 99/min], cost: {/a: 5}}]\n");
    struct test_request *request = ASK(rules, "path", "/a");
    assert_int_equal(request->count, 2);
    assert_int_equal(request->checks[0].cost, 5);
    assert_int_equal(request->checks[1].cost, 5);
    weir_rules_unref(rules);
}

TEST("problems of costs are reported")
{
    static const char *const cases[][2] = {
        {"-1", "2:39: `cost` must be a whole number, not `-1`\n"},
        {"[1]", "2:39: `cost` must be a text, not a list\n"},
        {"{/a: x}", "2:44: `cost` must be a whole number, not `x`\n"},
        {"{/a: 1099511627777}", "2:44: `cost` must be 0 to 1099511627776, not `1099511627777`\n"},
        {"{default: x}", "2:49: `default` must be a whole number, not `x`\n"},
        {"{get /a: 1}", "2:40: methods are case-sensitive (RFC 9110): write `GET`\n"},
        {"{from: path, max: 9}",
         "2:46: `path` is not a number; take the cost from a header or another attribute\n"},
        {"{from: path.id, max: 9}",
         "2:46: `path.id` is not a number; take the cost from a header or another attribute\n"},
        {"{from: header.cookie, max: 9}", "2:46: `header.cookie` is a credential, not a cost\n"},
        {"{from: n}", "2:40: `max` is missing: a cost that requests give must be bounded\n"},
        {"{from: n, min: 5, max: 4}", "2:62: `max` is below `min`\n"},
        {"{from: n, max: 4, on_bad: no}",
         "2:65: `on_bad` must be one of refuse, default, not `no`\n"},
        {"{from: n, max: 4, most: 3}",
         "2:57: a cost has no key `most`; its keys are from, default, min, max, on_bad\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "limits:\n- {name: l, key: [], rate: 1/s, cost: %s}\n",
                 cases[i][0]);
        test_refused(text, cases[i][1]);
    }
}

RUN_TESTS()
