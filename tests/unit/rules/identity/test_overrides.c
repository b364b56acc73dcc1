/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of a caller's own: what an override means, for every kind of limit, and which states it
 * counts in. */
#include "keys_test.h"
#include "test.h"

#include "rules/charge/settle.h"
#include "rules/match/key_values.h"

#define S UINT64_C(1000000000)

TEST("an override goes before the plan and the limit")
{
    struct weir_rules *rules = load(ALICE ": { user: alice, org: acme, plan: pro, limits: { api: "
                                          "5000/min burst 200, org: 600/min } }\n" BOB
                                          ": { user: bob, org: acme, plan: pro }\n");
    const struct weir_limit *limit = ask(rules, "/api", "alice-key")->limit;
    assert_int_equal(limit->spec.algorithm, WEIR_TOKEN_BUCKET);
    assert_int_equal(limit->spec.rate, 5000);
    assert_int_equal(limit->spec.burst, 200);
    assert_true(limit->spec.window_ns == 60 * S);
    limit = ask(rules, "/api", "bob-key")->limit;
    assert_int_equal(limit->spec.rate, 1000);
    assert_int_equal(limit->spec.burst, 300);
    assert_int_equal(ask(rules, "/api", "nobody")->limit->spec.rate, 100);
    /* What else the limit says stays. */
    limit = ask(rules, "/org", "alice-key")->limit;
    assert_int_equal(limit->spec.rate, 600);
    assert_int_equal(limit->spec.segments, 6);
    assert_true(limit->spec.strict);
    assert_string_equal(limit->name, "org");
    assert_int_equal(ask(rules, "/org", "bob-key")->limit->spec.rate, 60);
    weir_rules_unref(rules);
}

TEST("an override without a burst has the bucket of its rate")
{
    struct weir_rules *rules =
        load(ALICE ": { user: alice, plan: pro, limits: { api: 5000/min, queue: 10/s } }\n");
    assert_int_equal(ask(rules, "/api", "alice-key")->limit->capacity, 5000);
    const struct weir_limit *queue = ask(rules, "/queue", "alice-key")->limit;
    assert_int_equal(queue->spec.algorithm, WEIR_LEAKY_QUEUE);
    assert_int_equal(queue->capacity, 11);
    weir_rules_unref(rules);
}

TEST("any limit may become unlimited or get a rate")
{
    struct weir_rules *rules =
        load(ALICE ": { user: alice, limits: { api: unlimited, month: unlimited, free: 7/s,\n"
                   "    slots: unlimited, both: unlimited, back: 0/s } }\n");
    static const char *const paths[] = {"/api", "/month", "/slots", "/both"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const struct weir_check *check = ask(rules, paths[i], "alice-key");
        assert_null(check->limit);
        assert_int_equal(check->flags, WEIR_CHECK_UNLIMITED);
    }
    const struct weir_check *check = ask(rules, "/free", "alice-key");
    assert_int_equal(check->limit->spec.rate, 7);
    assert_int_equal(check->flags, 0);
    assert_int_equal(ask(rules, "/back", "alice-key")->limit->capacity, 0);
    assert_null(ask(rules, "/free", "bob-key")->limit);
    weir_rules_unref(rules);
}

TEST("a quota keeps its calendar and its rollover")
{
    struct weir_rules *rules = load(ALICE ": { user: alice, limits: { month: 20000/month } }\n" BOB
                                          ": { user: bob, limits: { month: 30/day } }\n" CAROL
                                          ": { user: carol, plan: odd }\n");
    const struct weir_limit *plain = ask(rules, "/month", "nobody")->limit;
    const struct weir_limit *own = ask(rules, "/month", "alice-key")->limit;
    assert_int_equal(own->spec.rate, 20000);
    assert_int_equal(own->spec.rollover, 4000);
    assert_true(own->spec.calendar == plain->spec.calendar);
    assert_true(weir_limit_converts(plain, own));
    const struct weir_limit *odd = ask(rules, "/month", "carol-key")->limit;
    own = ask(rules, "/month", "bob-key")->limit;
    assert_true(own->spec.calendar == odd->spec.calendar);
    assert_int_equal(own->spec.rollover, 6);
    weir_rules_unref(rules);
    refused(ALICE ": { user: alice, limits: { month: 20000/year } }\n",
            "1:99: the quota `month` has no such period, and so no calendar for it\n");
}

TEST("several rates may become others or one")
{
    struct weir_rules *rules =
        load(ALICE ": { user: alice, limits: { both: [20/s, 1000/h, 9000/d] } }\n" BOB
                   ": { user: bob, limits: { both: 700/h } }\n");
    struct test_request *test = ASK(rules, "path", "/both", "header.x-api-key", "alice-key");
    assert_int_equal(test->count, 3);
    assert_int_equal(test->checks[0].limit->spec.rate, 20);
    assert_int_equal(test->checks[1].limit->spec.rate, 1000);
    assert_int_equal(test->checks[2].limit->spec.rate, 9000);
    assert_string_equal(test->checks[0].limit->name, "both");
    assert_string_equal(test->checks[1].limit->name, "both#2");
    test = ASK(rules, "path", "/both", "header.x-api-key", "bob-key");
    assert_int_equal(test->count, 1);
    /* It counts where 500/h did. */
    assert_string_equal(test->checks[0].limit->name, "both#2");
    weir_rules_unref(rules);
}

TEST("concurrency takes a number and keeps its life")
{
    struct weir_rules *rules = load(ALICE ": { user: alice, limits: { slots: 50 } }\n");
    const struct weir_limit *limit = ask(rules, "/slots", "alice-key")->limit;
    assert_int_equal(limit->spec.rate, 50);
    assert_true(limit->spec.window_ns == 7 * S);
    assert_int_equal(ask(rules, "/slots", "nobody")->limit->spec.rate, 2);
    weir_rules_unref(rules);
}

/* --- States ----------------------------------------------------------------------------------- */

static void hash_of(struct weir_rules *rules, const char *path, const char *key, uint64_t hash[2])
{
    const struct weir_check *check = ask(rules, path, key);
    hash[0] = check->hash[0];
    hash[1] = check->hash[1];
}

/* The same where only these keys are known. */
static void hash_with(const char *keys, const char *path, const char *key, uint64_t hash[2])
{
    struct weir_rules *rules = load(keys);
    hash_of(rules, path, key, hash);
    weir_rules_unref(rules);
}

TEST("an override counts in the state of its window")
{
    uint64_t before[2], after[2];
    hash_with(ALICE ": { user: alice, plan: pro }\n", "/api", "alice-key", before);
    hash_with(ALICE ": { user: alice, plan: pro, limits: { api: 3/s burst 9 } }\n", "/api",
              "alice-key", after);
    assert_memory_equal(before, after, sizeof(before)); /* buckets convert */
    hash_with(ALICE ": { user: alice, plan: odd }\n", "/api", "alice-key", after);
    assert_memory_equal(before, after, sizeof(before));
}

TEST("a window that converts to none has a state beside")
{
    uint64_t minute[2], hour[2], again[2], other[2];
    struct weir_rules *rules =
        load(ALICE ": { user: alice, org: acme, limits: { org: 100/h } }\n" BOB
                   ": { user: bob, org: acme }\n" CAROL
                   ": { user: carol, org: acme, limits: { org: 200/h } }\n");
    hash_of(rules, "/org", "bob-key", minute);
    hash_of(rules, "/org", "alice-key", hour);
    hash_of(rules, "/org", "carol-key", again);
    assert_memory_not_equal(minute, hour, sizeof(minute));
    assert_memory_equal(hour, again, sizeof(hour)); /* carol and alice count together */
    assert_string_not_equal(ask(rules, "/org", "alice-key")->limit->name, "org");
    assert_memory_equal(ask(rules, "/org", "alice-key")->limit->name, "org#", 4);
    weir_rules_unref(rules);
    hash_with(ALICE ": { user: alice, org: acme, limits: { org: 100/d } }\n", "/org", "alice-key",
              other);
    assert_memory_not_equal(minute, other, sizeof(minute));
    assert_memory_not_equal(hour, other, sizeof(hour));
}

TEST("plans of other windows have states beside")
{
    static const char text[] =
        "identify: header.x-api-key\n"
        "keys: keys.yaml\n"
        "default_plan: free\n"
        "plans: { free: {org: 60/min}, pro: {org: 600/h}, max: {org: 90/min}, two: {org: [5/s,\n"
        "  80/min]}}\n"
        "limits:\n- {name: org, match: {path: /org}, key: [org], rate: plan}\n";
    uint64_t free[2], pro[2], max[2];
    struct weir_rules *rules = load_text(text, ALICE ": { user: alice, org: acme }\n" BOB
                                                     ": { user: bob, org: acme, plan: pro }\n" CAROL
                                                     ": { user: carol, org: acme, plan: max }\n");
    hash_of(rules, "/org", "alice-key", free);
    hash_of(rules, "/org", "bob-key", pro);
    hash_of(rules, "/org", "carol-key", max);
    assert_memory_not_equal(free, pro, sizeof(free));
    assert_memory_equal(free, max, sizeof(free));
    weir_rules_unref(rules);
    rules = load_text(text, ALICE ": { user: alice, org: acme, plan: two }\n");
    struct test_request *test = ASK(rules, "path", "/org", "header.x-api-key", "alice-key");
    assert_int_equal(test->count, 2);
    assert_memory_equal(test->checks[1].hash, free, sizeof(free)); /* its minute is theirs */
    assert_string_equal(test->checks[1].limit->name, "org");
    assert_memory_not_equal(test->checks[0].hash, free, sizeof(free));
    weir_rules_unref(rules);
}

/* --- What is shown of it ---------------------------------------------------------------------- */

TEST("an explanation tells an override")
{
    static struct weir_explanation explanations[16];
    struct weir_rules *rules = load(ALICE ": { user: alice, limits: { api: 5/s } }\n" BOB
                                          ": { user: bob, limits: { month: 5/month } }\n");
    static const char *const keys[] = {"alice-key", "bob-key"};
    static const char *const result[] = {"applies, with the caller's own rates", "applies"};
    for (int i = 0; i < 2; i++) {
        struct test_request *test = ASK(rules, "path", "/api", "header.x-api-key", keys[i]);
        char text[WEIR_EXPLANATION_TEXT_MAX];
        int count = weir_rules_explain(&test->query, test->checks, explanations);
        assert_int_equal(count, 1);
        weir_explanation_text(rules, &explanations[0], text);
        assert_string_equal(text, result[i]);
    }
    weir_rules_unref(rules);
}

TEST("a limit tells how many have their own")
{
    struct weir_rules *rules =
        load(ALICE ": { user: alice, limits: { api: 5/s, org: 6/min } }\n" BOB
                   ": { user: bob, limits: { api: 5/s } }\n" CAROL ": { user: carol }\n");
    static const uint32_t expected[] = {2, 0, 1, 0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        assert_int_equal(info.overrides, expected[i]);
    }
    weir_rules_unref(rules);
}

static int prepare_counting(void *context, struct weir_limit *limit, const char *name)
{
    int *prepared = context;
    assert_non_null(name);
    limit->id = (uint16_t)++ * prepared;
    return 0;
}

TEST("overrides are prepared with the rules")
{
    int without = 0, with = 0;
    struct weir_rules *rules = load(ALICE ": { user: alice }\n");
    assert_int_equal(weir_rules_prepare(rules, prepare_counting, &without), 0);
    weir_rules_unref(rules);
    /* Two different ones, of three callers: two limits and one. */
    rules = load(ALICE ": { user: alice, limits: { both: [20/s, 900/h], api: 5/s } }\n" BOB
                       ": { user: bob, limits: { api: 5/s, both: [20/s, 900/h] } }\n" CAROL
                       ": { user: carol, limits: { api: 5/s } }\n");
    assert_int_equal(weir_rules_prepare(rules, prepare_counting, &with), 0);
    assert_int_equal(with, without + 3);
    assert_true(ask(rules, "/api", "alice-key")->limit->id > 0);
    assert_ptr_equal(ask(rules, "/api", "alice-key")->limit, ask(rules, "/api", "bob-key")->limit);
    weir_rules_unref(rules);
}

TEST("a user named beside a key has its own rates")
{
    static struct weir_scratch scratch;
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_reason reason = {{0}};
    struct weir_rules *rules =
        load(ALICE ": { user: alice, org: acme, limits: { org: 6000/min, api: "
                   "7/s } }\n" BOB ": { user: bob, org: acme }\n");
    struct weir_key_values values = {.values = {{"alice", 5}}, .count = 1};
    int api = weir_rules_find(rules, "api", 3), org = weir_rules_find(rules, "org", 3);
    /* The user of the key. */
    assert_int_equal(
        weir_rules_key_check(rules, (uint32_t)api, &values, test_secret, &scratch, checks, &reason),
        1);
    assert_int_equal(checks[0].limit->spec.rate, 7);
    uint64_t hash[2];
    hash_of(rules, "/api", "alice-key", hash);
    assert_memory_equal(checks[0].hash, hash, sizeof(hash));
    values.values[0] = (struct weir_bytes){"bob", 3};
    assert_int_equal(
        weir_rules_key_check(rules, (uint32_t)api, &values, test_secret, &scratch, checks, &reason),
        1);
    assert_int_equal(checks[0].limit->spec.rate, 100);
    /* One beside it. */
    values.values[0] = (struct weir_bytes){"acme", 4};
    assert_int_equal(
        weir_rules_key_check(rules, (uint32_t)org, &values, test_secret, &scratch, checks, &reason),
        1);
    assert_int_equal(checks[0].limit->spec.rate, 60);
    values.user = (struct weir_bytes){"alice", 5};
    assert_int_equal(
        weir_rules_key_check(rules, (uint32_t)org, &values, test_secret, &scratch, checks, &reason),
        1);
    assert_int_equal(checks[0].limit->spec.rate, 6000);
    values.user = (struct weir_bytes){"nobody", 6};
    assert_int_equal(
        weir_rules_key_check(rules, (uint32_t)org, &values, test_secret, &scratch, checks, &reason),
        1);
    assert_int_equal(checks[0].limit->spec.rate, 60);
    weir_rules_unref(rules);
}

TEST("what was reserved under an override is found again")
{
    static const char *const paths[] = {"/back", "/both", "/org", "/api"};
    static const char *const keys[] = {"alice-key", "bob-key"};
    struct weir_rules *rules = load(
        ALICE ": { user: alice, org: a, limits: { back: 300/min, both: [20/s, 90/min], org: "
              "500/h, api: 70/s } }\n" BOB ": { user: bob, org: a, limits: { back: 400/h } }\n");
    for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
        for (int k = 0; k < 2; k++) {
            struct test_request *test = ASK(rules, "path", paths[p], "header.x-api-key", keys[k]);
            for (int i = 0; i < test->count; i++) {
                struct weir_limit_mark mark;
                struct weir_settling settling = {0};
                weir_rules_mark(&test->checks[i], &mark);
                assert_true(
                    weir_rules_find_marked(rules, &mark, test->checks[i].rule, false, &settling));
                assert_ptr_equal(settling.limit, test->checks[i].limit);
                assert_int_equal(settling.rule, test->checks[i].rule);
                /* The cap of what outcomes give back is the rule's. */
                assert_true((settling.cap != NULL) == (p == 0));
                assert_int_equal(p == 0 ? settling.cap->spec.rate : 10, 10);
            }
        }
    }
    weir_rules_unref(rules);
}

TEST("a request that names another user has not the keys rates")
{
    struct weir_rules *rules = load(ALICE ": { user: alice, limits: { api: 5/s } }\n");
    struct test_request *test =
        ASK(rules, "path", "/api", "header.x-api-key", "alice-key", "user", "alice");
    assert_int_equal(test->checks[0].limit->spec.rate, 5);
    test = ASK(rules, "path", "/api", "header.x-api-key", "alice-key", "user", "root");
    assert_int_equal(test->checks[0].limit->spec.rate, 100);
    test = ASK(rules, "path", "/api", "header.x-api-key", "alice-key", "plan", "pro");
    assert_int_equal(test->checks[0].limit->spec.rate, 5); /* whatever the plan */
    weir_rules_unref(rules);
}

RUN_TESTS_WITH(make_folder, remove_folder)
