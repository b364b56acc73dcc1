/* SPDX-License-Identifier: Apache-2.0 */
/* refund_on, refund_cap, debt: what is wrong with them, and what they become; limits found again by
 * their marks after a reload. */
#include "rules/charge/settle.h"
#include "rules_test.h"
#include "test.h"

#define NS_PER_S UINT64_C(1000000000)
#define LIMIT(more) "limits:\n- {name: a, key: [], rate: 100/h" more "}\n"

TEST("what is wrong is reported")
{
    test_refused(LIMIT(", refund_on: 99"),
                 "2:46: `refund_on` takes statuses: `404`, or `5xx` for a class\n");
    test_refused(LIMIT(", refund_on: [5xx, 6xx]"),
                 "2:52: `refund_on` takes statuses: `404`, or `5xx` for a class\n");
    test_refused(LIMIT(", refund_on: []"),
                 "2:46: `refund_on` must be a status or a list: [5xx, 404]\n");
    test_refused(LIMIT(", refund_cap: 10%"), "2:35: `refund_cap` goes with `refund_on`\n");
    test_refused(LIMIT(", refund_on: 5xx, refund_cap: 10"),
                 "2:63: `refund_cap` must be 1% to 100%, as in `refund_cap: 10%`\n");
    test_refused(LIMIT(", refund_on: 5xx, refund_cap: 101%"),
                 "2:63: `refund_cap` must be 1% to 100%, as in `refund_cap: 10%`\n");
    test_refused(LIMIT(", debt: 1001%"), "2:41: `debt` must be 0% to 1000%, as in `debt: 100%`\n");
    test_refused("limits:\n- {name: a, key: [], rate: 9/h, refund_on: 5xx}\n",
                 "2:44: 10% of a rate of 9 is less than one request: nothing would ever be given "
                 "back; raise `refund_cap`\n");
}

static struct weir_check only_check(struct weir_rules *rules, struct weir_scratch *scratch)
{
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_request request;
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    scratch->used = 0;
    const struct weir_rules_query query = {
        .rules = rules, .request = &request, .secret = test_secret, .scratch = scratch};
    assert_int_equal(weir_rules_checks(&query, checks), 1);
    return checks[0];
}

TEST("statuses and classes give back and others do not")
{
    struct weir_rules *rules =
        test_load(LIMIT(", refund_on: [5xx, 404], refund_cap: 25%, debt: 7%"));
    static struct weir_scratch scratch;
    struct weir_check check = only_check(rules, &scratch);
    struct weir_limit_mark mark;
    struct weir_settling now;
    for (uint32_t status = 0; status < 700; status++)
        assert_int_equal(weir_rules_gives_back(rules, 0, status),
                         status == 404 || (status >= 500 && status <= 599));
    weir_rules_mark(&check, &mark);
    assert_true(weir_rules_find_marked(rules, &mark, 9, false, &now));
    assert_ptr_equal(now.limit, check.limit);
    assert_int_equal(now.cap->spec.rate, 25);
    assert_int_equal(now.cap->spec.window_ns, check.limit->spec.window_ns);
    assert_true(now.cap->spec.strict);
    assert_int_equal(now.floor, 8);
    weir_rules_unref(rules);
}

/* A settlement may be made when the reservation is, and asked again until its life ends; its
 * release may be tried until the grace is over. */
TEST("a record outlives every settlement of its reservation")
{
    struct weir_rules *rules = test_load(LIMIT(""));
    for (uint64_t life = 1; life <= 3600; life++) {
        uint64_t life_ns = life * NS_PER_S, grace_ns = weir_settled_grace_ns(life_ns);
        const struct weir_limit *limit = weir_rules_settled_limit(rules, life_ns);
        assert_true(grace_ns >= 8 * 60 * NS_PER_S - 10 * NS_PER_S);
        assert_true(life_ns + grace_ns + 60 * NS_PER_S <= limit->spec.window_ns);
        assert_int_equal(limit->spec.burst, 1);
    }
    weir_rules_unref(rules);
}

TEST("the record of a short life is short")
{
    struct weir_rules *rules = test_load(LIMIT(""));
    static const uint64_t lives[][2] = {{1, 600},    {60, 600},   {70, 600},   {71, 1800},
                                        {610, 1800}, {611, 7200}, {3600, 7200}};
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        assert_int_equal(weir_rules_settled_limit(rules, lives[i][0] * NS_PER_S)->spec.window_ns /
                             NS_PER_S,
                         lives[i][1]);
    weir_rules_unref(rules);
}

TEST("a life that a clock made too long has no grace")
{
    assert_int_equal(weir_settled_grace_ns(UINT64_MAX), 0);
    assert_int_equal(weir_settled_grace_ns(7140 * NS_PER_S), 0);
    assert_int_equal(weir_settled_grace_ns(7139 * NS_PER_S), NS_PER_S);
}

/* Whether the one limit of `before` is found in `after`. */
static bool is_found(const char *before, const char *after)
{
    static struct weir_scratch scratch;
    struct weir_rules *old = test_load(before), *new = test_load(after);
    struct weir_check check = only_check(old, &scratch);
    struct weir_limit_mark mark;
    struct weir_settling now;
    weir_rules_mark(&check, &mark);
    bool found = weir_rules_find_marked(new, &mark, 0, false, &now);
    assert_true(!found || weir_limit_converts(check.limit, now.limit));
    weir_rules_unref(old);
    weir_rules_unref(new);
    return found;
}

TEST("a limit is found again where its states keep their meaning")
{
    assert_true(is_found(LIMIT(""), LIMIT(", debt: 0%")));
    assert_true(is_found(LIMIT(""), "limits:\n- {name: b, key: [], rate: 1/s}\n"
                                    "- {name: a, key: [], rate: 7/h}\n"));
    assert_false(is_found(LIMIT(""), "limits:\n- {name: a, key: [], rate: 100/min}\n"));
    assert_false(is_found(LIMIT(""), "limits:\n- {name: b, key: [], rate: 100/h}\n"));
    assert_false(is_found(LIMIT(""), LIMIT(", algorithm: gcra")));
    assert_true(is_found(LIMIT(", algorithm: gcra"),
                         "limits:\n- {name: a, key: [], rate: 5/s, algorithm: gcra}\n"));
}

RUN_TESTS()
