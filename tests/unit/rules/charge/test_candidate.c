/* SPDX-License-Identifier: Apache-2.0 */
/* `candidate`: what a limit may be one day, and which files are refused. */
#include "rules/charge/candidate.h"
#include "rules_test.h"
#include "test.h"

/* The candidate of the limit with this text behind "rate: ": as "algorithm N/W ..." and names. */
static void expect_candidate(const char *limit, const char *expected)
{
    char text[512], found[512] = "";
    size_t used = 0;
    struct weir_rule_info info;
    snprintf(text, sizeof(text), "limits:\n- {name: api, key: [user], %s}\n", limit);
    struct weir_rules *rules = test_load(text);
    weir_rules_info(rules, 0, &info);
    for (uint32_t i = 0; i < info.candidate_count; i++) {
        const struct weir_limit_spec *spec = &info.candidate[i].spec;
        used += (size_t)snprintf(
            found + used, sizeof(found) - used, "%s%s %llu/%llus b%llu s%u %s", i > 0 ? ", " : "",
            weir_algorithm_name(spec->algorithm), (unsigned long long)spec->rate,
            (unsigned long long)(spec->window_ns / 1000000000), (unsigned long long)spec->burst,
            spec->segments, info.candidate[i].name);
    }
    assert_string_equal(found, expected);
    assert_true(weir_rules_any_candidate(rules));
    weir_rules_unref(rules);
}

TEST("what a candidate does not say is as the limit says it")
{
    expect_candidate("rate: 100/min, candidate: 50/min",
                     "sliding_window 50/60s b0 s1 api~candidate");
    expect_candidate("rate: 100/min, segments: 6, candidate: 50/min",
                     "sliding_window 50/60s b0 s6 api~candidate");
    expect_candidate("rate: 100/min, algorithm: gcra, burst: 20, candidate: 50/min",
                     "gcra 50/60s b20 s0 api~candidate");
    expect_candidate("rate: 100/min, algorithm: gcra, candidate: {burst: 7}",
                     "gcra 100/60s b7 s0 api~candidate");
    expect_candidate("rate: 100/min, segments: 6, candidate: {algorithm: gcra, burst: 7}",
                     "gcra 100/60s b7 s0 api~candidate");
    expect_candidate("rate: 100/min, candidate: [10/s, 50/min]",
                     "sliding_window 10/1s b0 s1 api~candidate, "
                     "sliding_window 50/60s b0 s1 api~candidate#2");
    expect_candidate("rate: [10/s, 50/min], candidate: 50/min",
                     "sliding_window 50/60s b0 s1 api~candidate");
    expect_candidate("rate: unlimited, candidate: 50/min",
                     "sliding_window 50/60s b0 s1 api~candidate");
}

TEST("a quota and a rate may take each others place")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: [], quota: 1000/month, timezone: Europe/Zurich, candidate: "
                  "500/month}\n"
                  "- {name: b, key: [], quota: 1000/month, anchor: 15, candidate: {rate: 9/s}}\n"
                  "- {name: c, key: [], rate: 9/s burst 2, algorithm: gcra, candidate: {quota: "
                  "7/day}}\n");
    static const enum weir_algorithm algorithms[] = {WEIR_QUOTA, WEIR_SLIDING_WINDOW, WEIR_QUOTA};
    static const uint64_t rates[] = {500, 9, 7};
    for (uint32_t i = 0; i < 3; i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        assert_int_equal(info.candidate_count, 1);
        assert_int_equal(info.candidate->spec.algorithm, algorithms[i]);
        assert_int_equal(info.candidate->spec.rate, rates[i]);
    }
    weir_rules_unref(rules);
}

TEST("its checks are on states of their own")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: [user], rate: [1/s, 9/h], shadow: true, cost: 3,\n"
                  "   candidate: [2/s, 8/h]}\n"
                  "- {name: b, key: [user], on_missing: deny, rate: 1/s, candidate: 2/s}\n");
    struct test_request *test = ASK(rules, "user", "ann");
    struct weir_check checks[WEIR_RATES_MAX];
    assert_int_equal(weir_rules_candidate(rules, &test->checks[0], checks), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(checks[i].flags, 0); /* it decides */
        assert_int_equal(checks[i].cost, 3);
        assert_int_equal(checks[i].limit->spec.rate, i == 0 ? 2 : 8);
        for (int other = 0; other < test->count; other++)
            assert_memory_not_equal(checks[i].hash, test->checks[other].hash, 16);
    }
    assert_memory_not_equal(checks[0].hash, checks[1].hash, 16);
    test = ASK_EMPTY(rules);
    assert_int_equal(test->count, 1);
    assert_int_equal(weir_rules_candidate(rules, &test->checks[0], checks),
                     0); /* b denies always */
    weir_rules_unref(rules);
}

TEST("a key has one candidate whatever its plan counts in")
{
    struct weir_rules *rules = test_load(
        "default_plan: free\n"
        "plans: {free: {api: [10/s, 100/min]}, pro: {api: 500/h}, max: {api: unlimited}}\n"
        "limits:\n- {name: api, key: [org], rate: plan, candidate: 50/min}\n");
    static const char *const plans[] = {"free", "pro", "max"};
    uint64_t live[3], tried[3];
    for (int i = 0; i < 3; i++) {
        struct test_request *test = ASK(rules, "org", "acme", "plan", plans[i]);
        struct weir_check check[WEIR_RATES_MAX];
        assert_int_equal(weir_rules_candidate(rules, &test->checks[0], check), 1);
        live[i] = test->checks[0].hash[0];
        tried[i] = check[0].hash[0];
    }
    assert_true(live[0] != live[1]);
    assert_true(tried[0] == tried[1] && tried[1] == tried[2]);
    weir_rules_unref(rules);
}

TEST("candidates that mean nothing are refused")
{
    static const char *const cases[][2] = {
        {"rate: 1/s, candidate: fast",
         "2:48: `fast` is not a rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`\n"},
        {"rate: 1/s, candidate: unlimited",
         "2:48: a candidate needs a rate of its own such as `50/min`, not `plan` or `unlimited`\n"},
        {"rate: 1/s, candidate: {speed: 3}",
         "2:49: candidate has no key `speed`; its keys are rate, quota, algorithm, burst, "
         "segments, strict, queue, timezone, anchor, rollover\n"},
        {"rate: 1/s, candidate: {burst: 3}",
         "2:49: `burst` belongs to token_bucket, gcra and leaky_bucket, not to sliding_window\n"},
        {"rate: 1/s, candidate: []", "2:48: a list of rates has 2 to 8 of them, not 0\n"},
        {"rate: 1/s, borrow: true, candidate: 2/s",
         "2:51: a limit with `borrow: true` cannot have a candidate: the loans of the candidate "
         "are unknown\n"},
        {"algorithm: concurrency, limit: 3, candidate: 2/s",
         "2:60: candidates do not work with concurrency: their leases would never end\n"},
        {"rate: 1/s, candidate: 2s, algorithm: gcr",
         "2:63: `algorithm` must be one of fixed_window, sliding_window, sliding_log, "
         "token_bucket, gcra, leaky_bucket, concurrency, not `gcr`; did you mean `gcra`?\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "limits:\n- {name: l, key: [user], %s}\n", cases[i][0]);
        test_refused(text, cases[i][1]);
    }
}

RUN_TESTS()
