/* SPDX-License-Identifier: Apache-2.0 */
/* Several rates on one limit: what a rules file may say, and the checks that they make. */
#include "rules/match/key_values.h"
#include "rules_test.h"
#include "test.h"

#define S UINT64_C(1000000000)

static const char three[] = "version: 1\nlimits:\n"
                            "- {name: api, key: [user], rate: [10/s, 500/h, 5000/d]}\n"
                            "- {name: other, key: [user], rate: 7/s}\n";

TEST("each rate makes a check with a state of its own")
{
    struct weir_rules *rules = test_load(three);
    struct test_request *request = ASK(rules, "user", "alice");
    static const uint64_t counts[] = {10, 500, 5000, 7};
    static const uint64_t windows_s[] = {1, 3600, 86400, 1};
    static const char *const names[] = {"api", "api#2", "api#3", "other"};
    test_expect(request, "api{user=alice} api{user=alice} api{user=alice} other{user=alice}");
    for (int i = 0; i < 4; i++) {
        const struct weir_check *check = &request->checks[i];
        assert_int_equal(check->limit->spec.rate, counts[i]);
        assert_int_equal(check->limit->spec.window_ns, windows_s[i] * S);
        assert_string_equal(check->limit->name, names[i]);
        for (int j = 0; j < i; j++) {
            assert_true(check->hash[0] != request->checks[j].hash[0]);
            assert_true(check->hash[1] != request->checks[j].hash[1]);
        }
    }
    weir_rules_unref(rules);
}

TEST("the first rate has the state that a single one has")
{
    struct weir_rules *several = test_load(three);
    struct weir_rules *single = test_load("version: 1\nlimits:\n"
                                          "- {name: api, key: [user], rate: 10/s}\n");
    uint64_t hash[2];
    memcpy(hash, ASK(several, "user", "alice")->checks[0].hash, sizeof(hash));
    assert_memory_equal(hash, ASK(single, "user", "alice")->checks[0].hash, sizeof(hash));
    weir_rules_unref(several);
    weir_rules_unref(single);
}

TEST("a limit tells all its rates")
{
    struct weir_rules *rules = test_load(three);
    struct weir_rule_info info;
    weir_rules_info(rules, 0, &info);
    assert_int_equal(info.limit_count, 3);
    assert_int_equal(info.limit[2].spec.rate, 5000);
    weir_rules_info(rules, 1, &info);
    assert_int_equal(info.limit_count, 1);
    weir_rules_unref(rules);
}

static int count_prepared(void *context, struct weir_limit *limit, const char *name)
{
    uint32_t *count = context;
    *count += strcmp(name, "api") == 0;
    return 0;
}

TEST("every rate is prepared under the name of its limit")
{
    struct weir_rules *rules = test_load(three);
    uint32_t count = 0;
    assert_int_equal(weir_rules_prepare(rules, count_prepared, &count), 0);
    assert_int_equal(count, 3);
    weir_rules_unref(rules);
}

TEST("plans may have several rates or one")
{
    struct weir_rules *rules =
        test_load("version: 1\n"
                  "plans: {free: {api: 1/s}, pro: {api: [10/s burst 20, 100/min burst 100]},\n"
                  "        all: {api: unlimited}}\n"
                  "default_plan: free\n"
                  "limits: [{name: api, key: [user], algorithm: gcra, rate: plan}]\n");
    assert_int_equal(ASK(rules, "user", "a")->count, 1);
    assert_int_equal(ASK(rules, "user", "a", "plan", "all")->count, 1);
    struct test_request *request = ASK(rules, "user", "a", "plan", "pro");
    assert_int_equal(request->count, 2);
    assert_int_equal(request->checks[0].limit->capacity, 20);
    assert_int_equal(request->checks[1].limit->capacity, 100);
    weir_rules_unref(rules);
}

TEST("each node decides its part of every rate")
{
    struct weir_rules *rules = test_load("store: {redis: 'redis://127.0.0.1', nodes: 2}\n"
                                         "limits: [{name: api, key: [], rate: [10/s, 500/h]}]\n");
    struct test_request *request = ASK_EMPTY(rules);
    assert_int_equal(request->count, 2);
    assert_int_equal(request->checks[0].limit->local->spec.rate, 5);
    assert_int_equal(request->checks[1].limit->local->spec.rate, 250);
    assert_string_equal(request->checks[1].limit->local->name, "api#2");
    weir_rules_unref(rules);
}

TEST("rates count as checks of a request")
{
    char text[4096] = "version: 1\nlimits:\n";
    for (int i = 0; i < 16; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used,
                 "- {name: r%d, key: [header.a], rate: [1/s, 2/min]}\n", i);
    }
    struct weir_rules *rules = test_load(text);
    assert_int_equal(ASK(rules, "header.a", "x")->count, 32);
    weir_rules_unref(rules);
    strcat(text, "- {name: last, key: [header.b], rate: [1/s, 2/min]}\n");
    rules = test_load(text);
    test_expect(ASK(rules, "header.a", "x", "header.b", "y"),
                "-4 more than 32 limits apply to this request");
    weir_rules_unref(rules);
}

TEST("rates of every request are counted at load")
{
    char text[4096] = "limits:\n";
    for (int i = 0; i < 17; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "- {name: r%d, key: [], rate: [1/s, 2/min]}\n",
                 i);
    }
    test_refused(text, "18:3: more than 32 limits apply to every request\n");
}

TEST("a state is looked up with all its rates")
{
    struct weir_rules *rules = test_load(three);
    struct weir_check found[WEIR_CHECKS_MAX];
    static struct weir_scratch scratch;
    struct weir_reason reason;
    struct weir_key_values values = {.values = {{"alice", 5}}, .count = 1};
    assert_int_equal(weir_rules_key_check(rules, 0, &values, test_secret, &scratch, found, &reason),
                     3);
    struct test_request *request = ASK(rules, "user", "alice");
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(found[i].hash, request->checks[i].hash, sizeof(found[i].hash));
        assert_ptr_equal(found[i].limit, request->checks[i].limit);
    }
    weir_rules_unref(rules);
}

TEST("rates that mean nothing together are refused")
{
    static const char *const cases[][2] = {
        {"rate: [1/s]", "2:28: a list of rates has 2 to 8 of them, not 1\n"},
        {"rate: []", "2:28: a list of rates has 2 to 8 of them, not 0\n"},
        {"rate: [1/s, 2/2s, 3/3s, 4/4s, 5/5s, 6/6s, 7/7s, 8/8s, 9/9s]",
         "2:28: a list of rates has 2 to 8 of them, not 9\n"},
        {"rate: [1/s, plan]", "2:34: `plan` is not allowed in a list of rates\n"},
        {"rate: [unlimited, 1/s]", "2:29: `unlimited` is not allowed in a list of rates\n"},
        {"rate: [1/s, [2/min]]", "2:34: `rate` must be a text, not a list\n"},
        {"rate: [1/s, 5]",
         "2:34: `5` is not a rate; allowed are `N/unit` as in `100/min`, `unlimited`, `plan`\n"},
        {"rate: [1/s, 9/367d]", "2:34: the window of a rate must be 1ms to 366d\n"},
        {"rate: [10/s, 5/s]",
         "2:35: beside `5/s` the rate `10/s` never denies anything; remove it\n"},
        {"rate: [10/s, 5/min]",
         "2:35: beside `5/min` the rate `10/s` never denies anything; remove it\n"},
        {"rate: [5/min, 10/s]",
         "2:36: beside `5/min` the rate `10/s` never denies anything; remove it\n"},
        {"rate: [0/s, 10/min]",
         "2:34: beside `0/s` the rate `10/min` never denies anything; remove it\n"},
        {"algorithm: gcra, rate: [10/s, 10/min burst 9]",
         "2:52: beside `10/min burst 9` the rate `10/s` never denies anything; remove it\n"},
        {"algorithm: gcra, rate: [10/s, 20/min], burst: 5",
         "2:61: in a list, give each rate its own burst: `[10/s burst 20, 500/h]`\n"},
        {"rate: [10/s burst 20, 20/min]",
         "2:29: a burst needs a bucket (token_bucket, gcra, leaky_bucket); sliding_window has "
         "none\n"},
        {"segments: 7, rate: [10/s, 20/7s]",
         "2:42: `segments` 7 does not divide the window; the nearest that does is 8\n"},
        {"algorithm: concurrency, limit: [1, 2]", "2:53: `limit` must be a text, not a list\n"},
        {"quota: [1/day, 9/month]", "2:29: `quota` must be a text, not a list\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "limits:\n- {name: q, key: [], %s}\n", cases[i][0]);
        test_refused(text, cases[i][1]);
    }
}

TEST("rates that each deny something are taken")
{
    static const char *const cases[] = {
        "rate: [10/s, 11/min]",
        "algorithm: gcra, rate: [10/s burst 5, 10/min]",          /* a burst, and an average */
        "algorithm: gcra, rate: [10/s burst 100, 20/s burst 20]", /* of the same window */
        "algorithm: fixed_window, rate: [9/2s, 5/3s]",            /* 10 around a border of 3 s */
        "algorithm: sliding_log, rate: [3/s, 5/min]",
        "algorithm: leaky_bucket, queue: true, rate: [3/s burst 3, 9/min burst 9]",
        "rate: [1/s, 2/2s, 3/3s, 4/4s, 5/5s, 6/6s, 7/7s, 8/8s]",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "limits:\n- {name: q, key: [], %s}\n", cases[i]);
        struct weir_rules *rules = test_load(text);
        assert_int_equal(ASK_EMPTY(rules)->count, i + 1 < sizeof(cases) / sizeof(cases[0]) ? 2 : 8);
        weir_rules_unref(rules);
    }
}

RUN_TESTS()
