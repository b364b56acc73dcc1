/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../lib/rules_test.h"
#include "feature/identity/rules/caller.h"
#include "feature/region/rules/region.h"
#include "rules/charge/candidate.h"
#include "test.h"

#define HEAD(self)                                                                                 \
    "regions:\n"                                                                                   \
    "  self: " self "\n"                                                                           \
    "  eu: {redis: 'redis://127.0.0.1:1'}\n"                                                       \
    "  us: {redis: {url: 'redis://127.0.0.1:2', prefix: 'w:'}, weight: 2}\n"                       \
    "  ap: {redis: 'redis://127.0.0.1:3', weight: 0}\n"                                            \
    "store: {nodes: 2, deadline: 50ms}\n"                                                          \
    "limits:\n"
#define LIMIT(rate, global) "  - {name: a, key: [user], rate: " rate ", global: " global "}\n"

static uint64_t rate_of(const struct weir_rules *rules, const char *user)
{
    struct test_request *test = ASK(rules, "user", user);
    assert_int_equal(test->count, 1);
    return test->checks[0].limit->spec.rate;
}

TEST("the region has its own redis")
{
    struct weir_rules *rules = test_load(HEAD("us") LIMIT("1000/min", "{floor: 5%}"));
    const struct weir_store_settings *store = &weir_rules_settings(rules)->store;
    assert_string_equal(store->redis.url, "redis://127.0.0.1:2");
    assert_string_equal(store->prefix, "w:");
    assert_int_equal(store->nodes, 2);
    assert_int_equal(store->deadline_ns, 50000000);
    weir_rules_unref(rules);
    rules = test_load(HEAD("eu") LIMIT("1000/min", "{floor: 5%}"));
    store = &weir_rules_settings(rules)->store;
    assert_string_equal(store->redis.url, "redis://127.0.0.1:1");
    assert_string_equal(store->prefix, "weir:");
    weir_rules_unref(rules);
}

TEST("a floor is known from the homes part")
{
    struct weir_rules *rules =
        test_load(HEAD("us") LIMIT("[1000/min, 9000/hour]", "{floor: 5%, home: us}"));
    struct test_request *test = ASK(rules, "user", "alice");
    assert_int_equal(test->count, 2);
    assert_false(weir_rules_is_floor(rules, 0, test->checks[0].limit));
    assert_false(weir_rules_is_floor(rules, 0, test->checks[1].limit));
    assert_memory_equal(weir_rules_region_self(rules).data, "us", 2);
    weir_rules_unref(rules);
    rules = test_load(HEAD("eu") LIMIT("[1000/min, 9000/hour]", "{floor: 5%, home: us}"));
    test = ASK(rules, "user", "alice");
    assert_true(weir_rules_is_floor(rules, 0, test->checks[0].limit));
    assert_true(weir_rules_is_floor(rules, 0, test->checks[1].limit));
    weir_rules_unref(rules);
    rules = test_load("limits: [{name: a, key: [user], rate: 5/min}]\n");
    assert_false(weir_rules_is_floor(rules, 0, ASK(rules, "user", "alice")->checks[0].limit));
    assert_int_equal(weir_rules_region_self(rules).size, 0);
    weir_rules_unref(rules);
}

TEST("the home of a floor lends")
{
    struct weir_rules *rules =
        test_load(HEAD("eu") LIMIT("[1000/min, 9000/hour]", "{floor: 5%, home: us}"));
    struct weir_home home;
    struct weir_bytes name;
    struct test_request *test = ASK(rules, "user", "alice");
    assert_true(weir_rules_regions_reached(rules));
    assert_false(weir_rules_regions_wait(rules));
    for (int i = 0; i < 2; i++) {
        assert_true(weir_rules_home(rules, &test->checks[i], &home));
        assert_int_equal(home.region, 1);
        assert_true(home.lends && home.wait_ns == 0);
        assert_int_equal(home.limit->spec.rate, i == 0 ? 900 : 8100);
        assert_string_equal(home.limit->name, test->checks[i].limit->name);
        assert_true(home.limit->digest && test->checks[i].limit->digest);
    }
    const struct weir_store_settings *store = weir_rules_region_store(rules, 1, &name);
    assert_string_equal(store->redis.url, "redis://127.0.0.1:2");
    assert_string_equal(store->prefix, "w:");
    assert_memory_equal(name.data, "us", 2);
    assert_null(weir_rules_region_store(rules, 0, &name)); /* its own */
    assert_null(weir_rules_region_store(rules, 3, &name));
    weir_rules_unref(rules);
    rules = test_load(HEAD("us") LIMIT("1000/min", "{floor: 5%, home: us}"));
    test = ASK(rules, "user", "alice");
    assert_false(weir_rules_home(rules, &test->checks[0], &home));
    assert_true(test->checks[0].limit->digest); /* it has the same name in all regions */
    weir_rules_unref(rules);
}

TEST("what is not lent keeps its name")
{
    static const char *const parts[] = {"{floor: 1/3}", "{floor: 5%, home: us, lend: false}"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char text[1024];
        struct weir_home home;
        snprintf(text, sizeof(text), HEAD("eu") LIMIT("1000/min", "%s"), parts[i]);
        struct weir_rules *rules = test_load(text);
        struct test_request *test = ASK(rules, "user", "alice");
        assert_false(weir_rules_regions_reached(rules));
        assert_false(weir_rules_is_lent(rules, 0));
        assert_false(weir_rules_home(rules, &test->checks[0], &home));
        assert_false(test->checks[0].limit->digest);
        weir_rules_unref(rules);
    }
}

/* What cannot be lent is decided at the home. */
TEST("a home that is waited for decides what cannot be lent")
{
    static const char *const parts[] = {"{floor: 10%, home: us, wait: 50ms}",
                                        "{floor: 10%, home: us, wait: 50ms, lend: false}"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        struct weir_home home;
        struct weir_region_info info;
        snprintf(text, sizeof(text), HEAD("eu") LIMIT("[40/min, 1000/hour]", "%s"), parts[i]);
        struct weir_rules *rules = test_load(text);
        struct test_request *test = ASK(rules, "user", "alice");
        assert_int_equal(test->count, 2);
        assert_true(weir_rules_home(rules, &test->checks[0], &home));
        assert_false(home.lends);
        assert_int_equal(home.wait_ns, 50000000);
        assert_int_equal(home.limit->spec.rate, 32);
        assert_int_equal(test->checks[0].limit->spec.rate, 4);
        assert_true(home.limit->digest && test->checks[0].limit->digest);
        assert_true(weir_rules_home(rules, &test->checks[1], &home));
        assert_int_equal(home.lends, i == 0);
        assert_true(weir_rules_regions_reached(rules) && weir_rules_regions_wait(rules));
        assert_int_equal(weir_rules_is_lent(rules, 0), i == 0);
        assert_true(weir_rules_region(rules, 0, weir_bytes_of("user=alice"), &info));
        assert_int_equal(info.wait_ns, 50000000);
        weir_rules_unref(rules);
    }
}

/* A floor that is nothing: written so, or rounded down. */
TEST("a floor may be nothing where requests wait")
{
    static const char *const limits[] = {
        LIMIT("10/hour", "{floor: 0, home: us, wait: 1s}"),
        LIMIT("9/hour", "{floor: 0%, home: us, home_share: 80%, wait: 1ms}"),
        LIMIT("9/hour, algorithm: sliding_window", "{floor: 10%, home: us, wait: 1ms}"),
        LIMIT("9/hour, algorithm: sliding_log", "{floor: 10%, home: us, wait: 1ms}"),
        LIMIT("9/hour, algorithm: fixed_window", "{floor: 10%, home: us, wait: 1ms}"),
        ("  - {name: a, key: [user], quota: 9/month,"
         " global: {floor: 10%, home: us, wait: 1ms}}\n"),
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        char text[1024];
        struct weir_home home;
        snprintf(text, sizeof(text), HEAD("eu") "%s", limits[i]);
        struct weir_rules *rules = test_load(text);
        const struct weir_check *check = ASK(rules, "user", "alice")->checks;
        assert_int_equal(check->limit->spec.rate, 0);
        assert_int_equal(check->flags & WEIR_CHECK_ALWAYS_DENY, WEIR_CHECK_ALWAYS_DENY);
        assert_true(weir_rules_is_floor(rules, 0, check->limit));
        assert_true(weir_rules_home(rules, check, &home));
        assert_int_equal(home.limit->spec.rate, i == 0 ? 10 : 7);
        weir_rules_unref(rules);
        snprintf(text, sizeof(text), HEAD("us") "%s", limits[i]);
        rules = test_load(text);
        check = ASK(rules, "user", "alice")->checks;
        assert_int_equal(check->limit->spec.rate, i == 0 ? 10 : 7);
        assert_int_equal(check->flags & WEIR_CHECK_ALWAYS_DENY, 0);
        weir_rules_unref(rules);
    }
}

TEST("a named home has the rest")
{
    struct weir_rules *rules = test_load(HEAD("us") LIMIT("1000/min", "{floor: 5%, home: us}"));
    assert_int_equal(rate_of(rules, "alice"), 900);
    const struct weir_check *check = ASK(rules, "user", "alice")->checks;
    assert_int_equal(check->limit->local->spec.rate, 450); /* what a node decides alone */
    weir_rules_unref(rules);
    rules = test_load(HEAD("eu") LIMIT("1000/min", "{floor: 5%, home: us}"));
    assert_int_equal(rate_of(rules, "alice"), 50);
    check = ASK(rules, "user", "alice")->checks;
    assert_int_equal(check->limit->local->spec.rate, 25);
    assert_string_equal(check->limit->name, "a");
    weir_rules_unref(rules);
    rules = test_load(HEAD("us")
                          LIMIT("1000/min", "{floor: 12.5%, home_share: 2/5, home: us, wait: 0}"));
    assert_int_equal(rate_of(rules, "alice"), 400);
    weir_rules_unref(rules);
}

TEST("an attribute of the key names the home")
{
    static const char *const selves[] = {HEAD("eu") LIMIT("100/min", "{floor: 10%, home: user}"),
                                         HEAD("us") LIMIT("100/min", "{floor: 10%, home: user}"),
                                         HEAD("ap") LIMIT("100/min", "{floor: 10%, home: user}")};
    static const char *const users[] = {"eu", "us", "ap", "none", "other", "third"};
    for (int u = 0; u < 6; u++) {
        int homes = 0;
        for (int r = 0; r < 3; r++) {
            struct weir_rules *rules = test_load(selves[r]);
            bool home = rate_of(rules, users[u]) == 80;
            assert_true(home || rate_of(rules, users[u]) == 10);
            if (u < 3)
                assert_int_equal(home, u == r);
            else if (r == 2)
                assert_false(home); /* its weight is 0 */
            homes += home;
            weir_rules_unref(rules);
        }
        assert_int_equal(homes, 1);
    }
}

static struct weir_region_info info_of(const struct weir_rules *rules, const char *region,
                                       const char *user)
{
    struct weir_region_info info;
    struct test_request *test = ASK(rules, "header.x-region", region, "user", user);
    assert_int_equal(test->count, 1);
    assert_true(weir_rules_region(rules, 0, test->checks[0].key, &info));
    return info;
}

TEST("a home is found in any place of the key")
{
    static char longer[400];
    struct weir_rules *rules = test_load(HEAD(
        "eu") "  - {name: a, key: [user, header.x-region], on_missing: shared, rate: 100/min,\n"
              "     global: {floor: 10%, home: header.x-region}}\n");
    assert_memory_equal(info_of(rules, "us", "alice").home.data, "us", 2);
    assert_memory_equal(info_of(rules, "ap", "al,header.x-region=eu").home.data, "ap", 2);
    assert_memory_equal(info_of(rules, "eu", "").home.data, "eu", 2);
    /* no region: by hash, and never the one of weight 0 */
    assert_true(info_of(rules, "eu,us", "bob").home.data[0] != 'a');
    memset(longer, 'x', sizeof(longer) - 1); /* its text is cut before the region */
    assert_true(info_of(rules, "ap", longer).home.data[0] != 'a');
    weir_rules_unref(rules);
}

TEST("equal parts need no home")
{
    struct weir_rules *rules = test_load(HEAD(
        "ap") "  - {name: a, key: [user], algorithm: concurrency, limit: 9, life: 10s, global: "
              "{floor: 1/3}}\n"
              "  - {name: b, key: [user], quota: 100/month, global: {floor: 1/3}}\n"
              "  - {name: c, key: [user], rate: [30/s, 100/min], global: {floor: 1/3}}\n");
    struct test_request *test = ASK(rules, "user", "alice");
    assert_int_equal(test->count, 4);
    assert_int_equal(test->checks[0].limit->spec.rate, 3);
    assert_int_equal(test->checks[1].limit->spec.rate, 33);
    assert_int_equal(test->checks[2].limit->spec.rate, 10);
    assert_int_equal(test->checks[3].limit->spec.rate, 33);
    weir_rules_unref(rules);
}

TEST("every rate of every plan is divided")
{
    struct weir_rules *rules =
        test_load("plans: {free: {a: 100/min}, gold: {a: [200/min, 5000/h]}}\n"
                  "default_plan: gold\n" HEAD("eu") LIMIT("plan", "{floor: 10%, home: us}"));
    struct test_request *test = ASK(rules, "user", "alice");
    assert_int_equal(test->count, 2);
    assert_int_equal(test->checks[0].limit->spec.rate, 20);
    assert_int_equal(test->checks[1].limit->spec.rate, 500);
    weir_rules_unref(rules);
}

TEST("callers have no rates of their own")
{
    struct weir_rules *rules =
        test_load("identities: {redis: 'redis://127.0.0.1:4'}\n"
                  "identify: [header.x-api-key]\n" HEAD("eu") LIMIT("100/min", "{floor: 10%}"));
    struct weir_override *override;
    struct weir_reason reason = {{0}};
    assert_int_equal(weir_rules_override(rules, (struct weir_bytes){"a", 1},
                                         (struct weir_bytes){"500/min", 7}, &override, &reason),
                     WEIR_ERR_RANGE);
    assert_string_equal(reason.text, "the limit has `global`, and a caller's own rate cannot be "
                                     "divided among regions; give the caller a plan");
    weir_rules_unref(rules);
}

TEST("what is wrong in the section is reported")
{
    static const struct test_problem_case cases[] = {
        {"regions: [eu]\nlimits: []\n",
         "1:10: `regions` must be a mapping: `self`, and each region with its `redis`\n"},
        {"regions: {self: eu, eu: {redis: 'redis://h'}}\nlimits: []\n",
         "1:1: `regions` must have 2 to 16 regions, not 1\n"},
        {"regions: {eu: {redis: 'redis://h'}, us: {redis: 'redis://i'}}\nlimits: []\n",
         "1:1: `self` is missing: the region of this node, as in `self: ${WEIR_REGION}`\n"},
        {"store: {nodes: 1}\n"
         "regions: {self: eu, eu: {redis: 'redis://h'}, -u: {redis: 'redis://i'}}\nlimits: []\n",
         "2:47: the name of a region cannot begin with `-`\n"},
        {"store: {nodes: 1}\n"
         "regions: {self: es, eu: {redis: 'redis://h'}, us: {weight: 1001}}\nlimits: []\n",
         "2:17: `self` names no region of this file: `es`; did you mean `eu`?\n"
         "2:51: `redis` is missing: each region has its own\n"
         "2:60: `weight` must be 0 to 1000, not `1001`\n"},
        {"store: {nodes: 1, redis: 'redis://x'}\n"
         "regions: {self: eu, eu: {redis: 'redis://h', weight: 0},\n"
         "  us: {redis: 'http://i', weight: 0}}\nlimits: []\n",
         "1:19: with the section `regions`, each region has its `redis` there; remove it here\n"
         "2:1: all regions have `weight: 0`, so no key has a home\n"
         "3:15: the URL of Redis begins with redis://, rediss://, unix:/, redis-sentinel://, "
         "rediss-sentinel://, redis-cluster:// or rediss-cluster://, not `http`\n"},
        {"store: {nodes: 1}\n"
         "regions: {self: eu, eu: {redis: 'redis://h'}, us: {redis: 'redis://h'}}\nlimits: []\n",
         "2:59: two regions have the same Redis and prefix: each region needs its own\n"},
    };
    TEST_REFUSED_ALL(cases);
}

#define MOVES(before_eu, before_us)                                                                \
    "regions: {self: eu, eu: {redis: 'redis://127.0.0.1:1', weight_before: " before_eu "},\n"      \
    "  us: {redis: 'redis://127.0.0.1:2', weight_before: " before_us "}}\n"                        \
    "store: {nodes: 2}\n"                                                                          \
    "limits:\n"

TEST("what is wrong of a change of homes is reported")
{
    static const struct test_problem_case cases[] = {
        {MOVES("0", "1") LIMIT("100/min", "{floor: 5%}"),
         "5:51: homes change by `weight_before`: set `moving: true` here, too\n"},
        {MOVES("0", "1") LIMIT("100/min", "{floor: 5%, home: us}"),
         "1:1: `weight_before` is for limits with `moving: true`, and there is none\n"},
        {MOVES("0", "0") LIMIT("100/min", "{floor: 5%, moving: true}"),
         "1:1: all regions have `weight_before: 0`, so no key had a home\n"},
        {MOVES("1", "1") LIMIT("100/min", "{floor: 5%, moving: true}"),
         "1:1: each `weight_before` is the region's `weight`, so no key moves; remove it\n"},
        {MOVES("0", "1001") LIMIT("100/min", "{floor: 5%, moving: true}"),
         "2:53: `weight_before` must be 0 to 1000, not `1001`\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("a candidate is divided as its limit")
{
    static const char *const selves[] = {
        HEAD("us") LIMIT("1000/min", "{floor: 5%, home: us}, candidate: [100/s, 400/min]"),
        HEAD("eu") LIMIT("1000/min", "{floor: 5%, home: us}, candidate: [100/s, 400/min]")};
    static const uint64_t rates[][2] = {{90, 360}, {5, 20}};
    for (size_t i = 0; i < 2; i++) {
        struct weir_rules *rules = test_load(selves[i]);
        struct weir_check checks[WEIR_RATES_MAX], *live = ASK(rules, "user", "alice")->checks;
        struct weir_home home;
        assert_int_equal(weir_rules_candidate(rules, live, checks), 2);
        for (int r = 0; r < 2; r++) {
            assert_int_equal(checks[r].limit->spec.rate, rates[i][r]);
            assert_true(checks[r].limit->digest);
            assert_false(weir_rules_home(rules, &checks[r], &home));
        }
        assert_string_equal(checks[1].limit->name, "a~candidate#2");
        assert_false(weir_rules_is_by_other_home(rules, live));
        if (i == 1) {
            assert_true(weir_rules_home(rules, live, &home));
            live->limit = home.limit; /* as of a request that was lent units */
            assert_true(weir_rules_is_by_other_home(rules, live));
        }
        weir_rules_unref(rules);
    }
}

TEST("a candidate that cannot be divided is refused")
{
    static const struct test_problem_case cases[] = {
        {HEAD("eu") LIMIT("1000/min", "{floor: 5%}, candidate: 20/min"),
         "8:76: candidate: a limit below 50 has equal parts in all regions: set `floor: 1/3`, or "
         "`wait`, as in `wait: 100ms`, to decide it at the key's home\n"},
        {HEAD("eu") LIMIT("1000/min", "{floor: 0.5%}, candidate: 100/min"),
         "8:78: candidate: floor: 50/10000 of 100 is less than 1\n"},
        {HEAD("eu") LIMIT("1000/min", "{floor: 5%}, candidate: {rate: 90/min, global: {}}"),
         "8:91: candidate has no key `global`; its keys are rate, quota, algorithm, burst, "
         "segments, strict, queue, timezone, anchor, rollover\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("keys that move have floors and borrow nothing")
{
    static const char *const homes[] = {"eu", "hash"};
    for (size_t i = 0; i < 2; i++) {
        struct weir_home home;
        struct weir_region_info info;
        char text[1024];
        uint64_t wait_ns;
        snprintf(text, sizeof(text),
                 HEAD("eu") LIMIT("[1000/min, 9000/hour]", "{floor: 5%%, home: %s, moving: true}"),
                 homes[i]);
        struct weir_rules *rules = test_load(text);
        struct test_request *test = ASK(rules, "user", "alice");
        assert_int_equal(test->checks[0].limit->spec.rate, 50);
        assert_int_equal(test->checks[1].limit->spec.rate, 450);
        assert_true(weir_rules_is_floor(rules, 0, test->checks[0].limit));
        assert_false(weir_rules_home(rules, &test->checks[0], &home));
        assert_true(test->checks[0].limit->digest); /* the names of states stay */
        assert_true(weir_rules_regions_reached(rules));
        assert_int_equal(weir_rules_moving(rules, &wait_ns), 1);
        assert_int_equal(wait_ns, UINT64_C(7200) * 1000000000);
        assert_true(weir_rules_region(rules, 0, test->checks[0].key, &info) && info.moving);
        weir_rules_unref(rules);
    }
}

TEST("lenders are found by name after a reload")
{
    static const char other[] = "regions:\n"
                                "  us: {redis: 'redis://127.0.0.1:2'}\n"
                                "  sa: {redis: 'redis://127.0.0.1:4'}\n"
                                "  eu: {redis: 'redis://127.0.0.1:1'}\n"
                                "  self: eu\n"
                                "store: {nodes: 2}\n"
                                "limits:\n" LIMIT("1000/min", "{floor: 5%, home: user}");
    struct weir_rules *started = test_load(HEAD("eu") LIMIT("1000/min", "{floor: 5%, home: user}"));
    struct weir_rules *rules = test_load(other);
    struct weir_home home;
    assert_true(weir_rules_home(rules, ASK(rules, "user", "us")->checks, &home));
    assert_int_equal(home.region, 0);
    assert_false(weir_rules_number_lenders(rules, started));
    assert_true(weir_rules_home(rules, ASK(rules, "user", "us")->checks, &home));
    assert_int_equal(home.region, 1);
    assert_false(weir_rules_home(rules, ASK(rules, "user", "sa")->checks, &home));
    weir_rules_unref(rules);
    rules = test_load(HEAD("eu") LIMIT("900/min", "{floor: 6%, home: user}"));
    assert_true(weir_rules_number_lenders(rules, started));
    weir_rules_unref(rules);
    weir_rules_unref(started);
}

TEST("what is wrong in a limit is reported")
{
    static const struct test_problem_case cases[] = {
        {"limits:\n" LIMIT("100/min", "{floor: 5%}"),
         "2:43: `global` needs the section `regions`\n"},
        {HEAD("eu") LIMIT("100/min", "{}"),
         "8:51: `floor` is missing: what each region that is not a key's home has of the limit, as "
         "in `floor: 5%`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 5}"),
         "8:59: `floor` must be a part of the limit such as `5%`, `33.33%` or `1/3`, not `5`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 0%}"),
         "8:59: `floor` must be a part of the limit such as `5%`, `33.33%` or `1/3`, not `0%`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 50%}"),
         "8:59: 2 floors leave nothing for the home: a floor may be at most 1/3\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 30%, home_share: 40.01%}"),
         "8:76: 2 floors and `home_share` are more than 100% of the limit\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 0.5%}"),
         "8:59: floor: 50/10000 of 100 is less than 1\n"},
        {HEAD("eu") LIMIT("40/min", "{floor: 5%}"),
         "8:58: a limit below 50 has equal parts in all regions: set `floor: 1/3`, or `wait`, as "
         "in "
         "`wait: 100ms`, to decide it at the key's home\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 5%, home: eus}"),
         "8:69: `home` must be `hash`, a region, or an attribute of the limit's key, not `eus`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 5%, wait: 2s}"),
         "8:69: `wait` must be 1ms to 1s, or 0, not `2s`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 1/3, wait: 10ms}"),
         "8:64: `wait` has no use with equal parts, which no home decides; remove it\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 0}"),
         "8:59: `floor` must be a part of the limit such as `5%`, `33.33%` or `1/3`, not `0`\n"},
        {HEAD("eu")
             LIMIT("100/min, algorithm: leaky_bucket, queue: true", "{floor: 5%, wait: 10ms}"),
         "8:97: a queue has equal parts in all regions: set `floor: 1/3`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 5%, lend: maybe}"),
         "8:69: `lend` must be true or false, not `maybe`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 1/3, moving: true}"),
         "8:64: `moving` is for keys that change their home, and with equal parts no key has one; "
         "remove it\n"},
        {HEAD("eu") "  - {name: a, key: [user], quota: 100/month, global: "
                    "{floor: 5%, wait: 1ms, moving: true}}\n",
         "8:62: a quota by calendar remembers its whole period, so `moving` does not end in time; "
         "remove it\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 5%, moving: on}"),
         "8:71: `moving` must be true or false, not `on`\n"},
        {HEAD("eu") LIMIT("100/min", "{floor: 5%}, hash_tag: user, debt: 10%"),
         "8:64: `hash_tag` does not work with `global`, whose states are in several regions; "
         "remove one of them\n"
         "8:80: `debt` does not work with `global`, whose states are in several regions; remove "
         "one of them\n"},
    };
    TEST_REFUSED_ALL(cases);
}

RUN_TESTS()
