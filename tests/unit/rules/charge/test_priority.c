/* SPDX-License-Identifier: Apache-2.0 */
/* `priority` and `shed`: what is refused, which class a request has, and what of a limit it may
 * use. */
#include "rules/charge/borrow.h"
#include "rules_test.h"
#include "test.h"

#define HEADER "priority: { from: header.X-Priority }\n"
#define LIMIT(more) "limits:\n- {name: a, key: [], rate: 100/s" more "}\n"

/* The scales of the checks, as "60 0". */
static void expect_scales(const struct test_request *test, const char *expected)
{
    char text[128] = "";
    size_t used = 0;
    assert_true(test->count >= 0);
    for (int i = 0; i < test->count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", i > 0 ? " " : "",
                                 test->checks[i].scale);
        assert_int_equal(test->checks[i].scale_kind, WEIR_SCALE_RESERVE);
    }
    assert_string_equal(text, expected);
}

/* The same request again, from a front end that is trusted. */
static struct test_request *trusted(struct test_request *test)
{
    memset(test->request.trusted, 0xff, sizeof(test->request.trusted));
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}

TEST("what is wrong is reported")
{
    static const struct test_problem_case cases[] = {
        {LIMIT(", shed: {sheddable: 60%}"),
         "2:35: `shed` needs the section `priority:`, which says the class of a request\n"},
        {HEADER LIMIT(", shed: 60%"), "3:41: `shed` must be a mapping of classes to percentages, "
                                      "as in { sheddable: 60% }\n"},
        {HEADER LIMIT(", shed: {}"), "3:41: `shed` must be a mapping of classes to percentages, "
                                     "as in { sheddable: 60% }\n"},
        {HEADER LIMIT(", shed: {shedable: 60%}"),
         "3:42: `priority` has no class `shedable`; did you mean `sheddable`?\n"},
        {HEADER LIMIT(", shed: {sheddable: 0%}"),
         "3:53: `shed` must be 1% to 100%, as in `shed: 60%`\n"},
        {HEADER LIMIT(", shed: {sheddable: 60}"),
         "3:53: `shed` must be 1% to 100%, as in `shed: 60%`\n"},
        {HEADER LIMIT(", shed: {normal: 50%}"),
         "3:41: `shed` leaves `sheddable` 100% and `normal`, which is more important, 50%; give "
         "`sheddable` 50% or less\n"},
        {"priority: header.x-priority\n" LIMIT(""),
         "1:11: `priority` must be a mapping, not a text\n"},
        {"priority: {}\n" LIMIT(""), "1:11: `from` is missing; set it to a header field, `plan`, "
                                     "or a mapping of paths to classes\n"},
        {"priority: {from: user}\n" LIMIT(""),
         "1:18: `from` must be a header field such as `header.x-priority`, `plan`, or a mapping of "
         "paths to classes\n"},
        {"priority: {from: header.x, classes: [one]}\n" LIMIT(""),
         "1:37: `classes` must be a list of 2 to 16 names, the most important first\n"},
        {"priority: {from: header.x, classes: [a, b, a], default: b}\n" LIMIT(""),
         "1:44: `classes` has `a` twice\n"},
        {"priority: {from: header.x, classes: [a, b]}\n" LIMIT(""),
         "1:11: `default` is missing; name the class of requests that have none\n"},
        {"priority: {from: header.x, default: b}\n" LIMIT(""),
         "1:37: `priority` has no class `b`\n"},
        {"priority: {from: {}}\n" LIMIT(""),
         "1:18: `from` has no route; write { /pattern: class }\n"},
        {"priority: {from: {checkout: critical}}\n" LIMIT(""),
         "1:19: path pattern `checkout`: must begin with `/`\n"},
        {"priority: {from: {/a: urgent}}\n" LIMIT(""), "1:23: `priority` has no class `urgent`\n"},
        {"priority: {from: plan}\n" LIMIT(""),
         "1:18: `from: plan` needs 2 to 16 `plans`, or `classes` that name some of them\n"},
        {"store: {redis: redis://127.0.0.1, on_store_error: open}\n" HEADER LIMIT(
             ", mode: leased, shed: {sheddable: 60%}"),
         "4:41: a limit with `shed` is decided exactly and cannot be leased; remove `mode`, or set "
         "it to exact\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("a header says the class of a trusted request only")
{
    struct weir_rules *rules = test_load(
        HEADER "limits:\n"
               "- {name: a, key: [], rate: 100/s, shed: {sheddable: 60%, normal: 90%}}\n"
               "- {name: b, key: [], algorithm: gcra, rate: 10/s burst 20, shed: {sheddable: 1%}}\n"
               "- {name: c, key: [], rate: 10/s}\n");
    expect_scales(ASK(rules, "header.x-priority", "critical"), "90 0 0");
    expect_scales(trusted(ASK(rules, "header.x-priority", "critical")), "0 0 0");
    expect_scales(trusted(ASK(rules, "header.x-priority", "sheddable")), "60 1 0");
    expect_scales(trusted(ASK(rules, "header.x-priority", "normal")), "90 0 0");
    expect_scales(trusted(ASK(rules, "header.x-priority", "Critical")), "90 0 0");
    expect_scales(trusted(ASK_EMPTY(rules)), "90 0 0");
    weir_rules_unref(rules);
}

TEST("plans are classes")
{
    struct weir_rules *rules = test_load(
        "plans: {free: {}, pro: {}}\n"
        "default_plan: free\n"
        "priority: {from: plan}\n"
        "limits: [{name: a, key: [], algorithm: leaky_bucket, queue: true, rate: 10/s, burst: 20,\n"
        "          shed: {free: 60%}}]\n");
    expect_scales(ASK(rules, "plan", "pro"), "0");
    expect_scales(ASK(rules, "plan", "free"), "60");
    expect_scales(ASK_EMPTY(rules), "60");
    weir_rules_unref(rules);
}

TEST("the first route that a path is in says the class")
{
    struct weir_rules *rules = test_load(
        "priority:\n"
        "  from: { /reports/daily: normal, /reports/**: sheddable, /pay: critical }\n"
        "  default: critical\n"
        "limits:\n"
        "- {name: a, key: [], rate: [10/s, 100/min], shed: {sheddable: 30%, normal: 70%}}\n"
        "- {name: b, key: [], rate: unlimited}\n");
    expect_scales(ASK(rules, "path", "/reports/daily"), "70 70 0");
    expect_scales(ASK(rules, "path", "/reports/a/b?c"), "30 30 0");
    expect_scales(ASK(rules, "path", "/pay"), "0 0 0");
    expect_scales(ASK(rules, "path", "/other"), "0 0 0");
    weir_rules_unref(rules);
}

TEST("a limit with a shed is not leased where others are")
{
    struct weir_rules *rules =
        test_load("store: {redis: {url: 'redis://h', mode: leased, nodes: 3}}\n" HEADER "limits:\n"
                  "- {name: a, key: [], rate: 1000/s}\n"
                  "- {name: b, key: [], rate: 1000/s, shed: {sheddable: 60%}}\n");
    struct test_request *test = ASK_EMPTY(rules);
    assert_true((test->checks[0].flags & WEIR_CHECK_LEASED) != 0);
    assert_true((test->checks[1].flags & WEIR_CHECK_LEASED) == 0);
    weir_rules_unref(rules);
}

TEST("explain names class and percentage")
{
    struct weir_rules *rules =
        test_load(HEADER "limits:\n"
                         "- {name: a, key: [], rate: 100/s, shed: {sheddable: 60%}}\n"
                         "- {name: b, key: [], rate: 100/s}\n");
    static const struct {
        const char *class, *text;
    } cases[] = {{"sheddable", "applies, at 60% for `sheddable`"},
                 {"normal", "applies, at 100% for `normal`"}};
    struct weir_explanation explanations[2];
    char text[WEIR_EXPLANATION_TEXT_MAX];
    for (size_t i = 0; i < 2; i++) {
        struct test_request *test = trusted(ASK(rules, "header.x-priority", cases[i].class));
        assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations), 2);
        weir_explanation_text(rules, &explanations[0], text);
        assert_string_equal(text, cases[i].text);
        weir_explanation_text(rules, &explanations[1], text);
        assert_string_equal(text, "applies");
    }
    weir_rules_unref(rules);
}

TEST("below 100 percent nothing is borrowed")
{
    struct weir_rules *rules = test_load(
        HEADER "limits:\n"
               "- {name: pool, key: [], rate: 100/s, borrow: true}\n"
               "- {name: a, key: [user], rate: 10/s, pool: pool, shed: {sheddable: 60%}}\n");
    static struct weir_loans loans;
    for (int i = 0; i < 2; i++) {
        struct test_request *test =
            ASK(rules, "user", "u", "header.x-priority", i == 0 ? "normal" : "sheddable");
        test->query.loans = &loans;
        trusted(test);
        assert_int_equal(loans.count, i == 0);
    }
    weir_rules_unref(rules);
}

RUN_TESTS()
