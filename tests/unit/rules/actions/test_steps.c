/* SPDX-License-Identifier: Apache-2.0 */
/* `steps`: what is refused, which checks a challenge scales, and how long a bucket drains. */
#include "rules/actions/steps.h"
#include "test.h"

#include "challenge_test.h"
#include "core/wide.h"
#include "draw.h"
#include "rules_test.h"

#define LIMIT(more) "limits:\n- {name: a, key: [], " more "}\n"
#define LEASED "store: {redis: redis://127.0.0.1, on_store_error: open}\n"

TEST("what is wrong is reported")
{
    static const struct test_problem_case cases[] = {
        {LIMIT("rate: 9/s, steps: 80%"), "2:40: `steps` must be a list of 1 to 8 steps, as in [{ "
                                         "at: 80%, mark: true }]\n"},
        {LIMIT("rate: 9/s, steps: []"),
         "2:40: `steps` must be a list of 1 to 8 steps, as in [{ at: 80%, mark: true }]\n"},
        {LIMIT("rate: 9/s, steps: [{mark: true}]"),
         "2:41: a step needs `at`, the use from which it counts: `at: 80%`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%}]"),
         "2:41: a step needs one of `mark: true`, `delay` and `challenge: true`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, mark: true, delay: 1s}]"),
         "2:41: a step needs one of `mark: true`, `delay` and `challenge: true`, not several\n"},
        {LIMIT("rate: 9/s, steps: [{at: 100%, mark: true}]"),
         "2:46: `at` must be 1% to 99%, as in `at: 80%`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, mark: false}]"),
         "2:57: `mark` must be true; to do nothing, remove the step\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, mark: true}, {at: 80%, delay: 1s}]"),
         "2:69: steps must be in ascending order; 80% comes after 80%\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, delay: 2min}]"),
         "2:58: `delay` must be 1ms to 1min, or true, not `2min`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, delay: true}]"),
         "2:58: `delay: true` needs a bucket (token_bucket, gcra, leaky_bucket); for others give a "
         "constant: `delay: 500ms`\n"},
        {LIMIT("algorithm: gcra, rate: [9/s, 90/min], steps: [{at: 80%, delay: true}]"),
         "2:85: `delay: true` needs a limit of one rate; with several give a constant: `delay: "
         "500ms`\n"},
        {LIMIT("algorithm: leaky_bucket, queue: true, rate: 9/s, steps: [{at: 80%, delay: true}]"),
         "2:96: a queue delays requests already: remove the step, or give it a constant: "
         "`500ms`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, challenge: true}, {at: 90%, challenge: true}]"),
         "2:51: `challenge: true` needs the section `challenge:`, which says how clients prove "
         "themselves; without it no request can pass\n"
         "2:79: a limit has one challenge, and an earlier step is one\n"},
        {LIMIT("rate: 9/s, on_deny: charge, steps: [{at: 80%, challenge: true}]"),
         "2:68: a challenged request is charged nothing: remove `on_deny: charge`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, challenge: true}]"),
         "2:51: `challenge: true` needs the section `challenge:`, which says how clients prove "
         "themselves; without it no request can pass\n"},
        {LIMIT("rate: unlimited, steps: [{at: 80%, mark: true}]"),
         "2:39: an unlimited rate never reaches a step: remove `steps`\n"},
        {LIMIT("rate: 9/s, steps: [{at: 80%, mark: true, tarpit: 5s}]"),
         "2:63: a step has no key `tarpit`; its keys are at, mark, delay, challenge\n"},
        {LEASED LIMIT("rate: 9/s, mode: leased, steps: [{at: 80%, mark: true}]"),
         "3:39: a limit with `steps` is decided exactly and cannot be leased; remove `mode`, or "
         "set it to exact\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("a file without steps and reject does not act")
{
    struct weir_rules *rules = test_load(LIMIT("rate: 9/s"));
    assert_false(weir_rules_acts(rules));
    assert_null(weir_rules_steps(rules, 0));
    weir_rules_unref(rules);
}

TEST("steps are kept in order and a shadow limit has none")
{
    struct weir_rules *rules = test_load(challenge_rules(
        "limits:\n"
        "- {name: a, key: [], rate: 9/s, steps: [{at: 1%, mark: true}, {at: 50%, challenge: true},"
        " {at: 99%, delay: 2ms}]}\n"
        "- {name: b, key: [], rate: 9/s, shadow: true, steps: [{at: 80%, mark: true}]}\n"));
    const struct weir_steps *steps = weir_rules_steps(rules, 0);
    assert_true(weir_rules_acts(rules));
    assert_int_equal(steps->count, 2);
    assert_int_equal(steps->challenge, 50);
    assert_int_equal(steps->list[0].percent, 1);
    assert_int_equal(steps->list[0].action, WEIR_ACTION_MARK);
    assert_int_equal(steps->list[1].percent, 99);
    assert_int_equal(steps->list[1].delay_ns, 2000000);
    assert_null(weir_rules_steps(rules, 1));
    weir_rules_unref(rules);
}

TEST("a challenge is a reserve beside other scales")
{
    struct weir_rules *rules = test_load(challenge_rules(
        "priority: {from: header.x-priority}\n"
        "limits:\n"
        "- {name: a, key: [], rate: [10/s, 100/min], steps: [{at: 70%, challenge: true}]}\n"
        "- {name: b, key: [], rate: 10/s, shed: {sheddable: 60%, normal: 80%},"
        " steps: [{at: 70%, challenge: true}]}\n"
        "- {name: c, key: [], rate: 10/s, steps: [{at: 70%, mark: true}]}\n"));
    static const struct {
        const char *priority;
        int scales[4];
    } cases[] = {{"normal", {70, 70, 70, 0}}, {"sheddable", {70, 70, 60, 0}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_request *test = ASK(rules, "header.x-priority", cases[i].priority);
        memset(test->request.trusted, 0xff, sizeof(test->request.trusted));
        test->count = weir_rules_checks(&test->query, test->checks);
        assert_int_equal(test->count, 4);
        for (int c = 0; c < 4; c++) {
            assert_int_equal(test->checks[c].scale, cases[i].scales[c]);
            assert_int_equal(test->checks[c].scale_kind, WEIR_SCALE_RESERVE);
        }
    }
    weir_rules_unref(rules);
}

/* The smallest whole wait after which no more than percent * capacity * T / 100 is owed, rounded up
 * as what is owed is. */
TEST("a bucket drains to the step and not a nanosecond longer")
{
    uint64_t random = 88172645463325252;
    for (int i = 0; i < 200000; i++) {
        struct weir_limit_spec spec = {.algorithm = WEIR_GCRA,
                                       .rate = 1 + draw_below(&random, 1000),
                                       .window_ns = 1 + draw_below(&random, 60000000000),
                                       .burst = 1 + draw_below(&random, 1000)};
        struct weir_limit limit;
        if (weir_limit_init(&limit, &spec, NULL) < 0)
            continue;
        uint8_t percent = (uint8_t)(1 + draw_below(&random, 99));
        uint64_t owed_ns = draw_below(&random, limit.depth_ns + 2);
        uint64_t wait_ns = weir_step_drain_ns(&limit, percent, owed_ns);
        /* owed * 100 * N <= percent * B * W */
        __extension__ typedef unsigned __int128 u128;
        u128 step = (u128)percent * spec.burst * spec.window_ns, ns = 100 * spec.rate;
        step = (step + ns - 1) / ns * ns;
        assert_true(wait_ns <= owed_ns);
        assert_true((u128)(owed_ns - wait_ns) * ns <= step);
        if (wait_ns > 0)
            assert_true((u128)(owed_ns - wait_ns + 1) * ns > step);
    }
}

/* gcra 7/10h burst 20, at 60 %: 12 units are a step of no whole nanosecond. */
TEST("what is used up to a step drains at once")
{
    for (uint64_t rate = 1; rate <= 100; rate++) {
        struct weir_limit_spec spec = {.algorithm = WEIR_GCRA,
                                       .rate = rate,
                                       .window_ns = UINT64_C(36000000000000),
                                       .burst = 20};
        struct weir_limit limit;
        struct weir_cell cell = {0, 0};
        assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
        weir_cell_charge(&limit, &cell, 1, 12);
        uint64_t owed_ns = cell.a - 1 + (cell.b != 0);
        assert_int_equal(weir_step_drain_ns(&limit, 60, owed_ns), 0);
        assert_int_equal(weir_step_drain_ns(&limit, 60, owed_ns + 1), 1);
    }
}

RUN_TESTS()
