/* SPDX-License-Identifier: Apache-2.0 */
/* `enforce`: a limit that denies only a stable share of its keys. */
#include "rules_test.h"
#include "test.h"

#define KEYS 20000

static struct weir_rules *load_share(int percent, const char *more)
{
    char text[256];
    snprintf(text, sizeof(text), "limits:\n- {name: api, key: [user], rate: %s, enforce: %d%%}\n",
             more, percent);
    return test_load(text);
}

static bool may_deny(const struct weir_rules *rules, int key)
{
    char user[32];
    snprintf(user, sizeof(user), "user-%d", key);
    struct test_request *request = ASK(rules, "user", user);
    assert_true(request->count >= 1);
    for (int i = 1; i < request->count; i++) /* all rates alike */
        assert_int_equal(request->checks[i].flags, request->checks[0].flags);
    return (request->checks[0].flags & WEIR_CHECK_SHADOW) == 0;
}

TEST("the share is what was asked for and only grows")
{
    static bool before[KEYS];
    static const int shares[] = {0, 1, 10, 20, 50, 99, 100};
    memset(before, 0, sizeof(before));
    for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
        struct weir_rules *rules = load_share(shares[s], s % 2 == 0 ? "1/s" : "[1/s, 9/min]");
        int denied = 0;
        for (int key = 0; key < KEYS; key++) {
            bool now = may_deny(rules, key);
            assert_true(now || !before[key]);
            before[key] = now;
            denied += now;
        }
        /* Five standard deviations of a fair draw are 1.8 %. */
        int wanted = KEYS / 100 * shares[s];
        assert_true(abs(denied - wanted) <= (shares[s] % 100 == 0 ? 0 : KEYS * 18 / 1000));
        weir_rules_unref(rules);
    }
}

TEST("the share is the same under another secret")
{
    static const uint64_t other[2] = {7, 8};
    struct weir_rules *rules = load_share(30, "1/s");
    for (int key = 0; key < 500; key++) {
        bool first = may_deny(rules, key);
        char user[32];
        snprintf(user, sizeof(user), "user-%d", key);
        struct test_request *request = ASK(rules, "user", user);
        request->query.secret = other;
        assert_int_equal(weir_rules_checks(&request->query, request->checks), 1);
        assert_int_equal((request->checks[0].flags & WEIR_CHECK_SHADOW) == 0, first);
    }
    weir_rules_unref(rules);
}

TEST("each limit draws keys of its own")
{
    struct weir_rules *rules = test_load("limits:\n"
                                         "- {name: a, key: [user], rate: 1/s, enforce: 50%}\n"
                                         "- {name: b, key: [user], rate: 1/s, enforce: 50%}\n");
    int same = 0;
    for (int key = 0; key < 2000; key++) {
        char user[32];
        snprintf(user, sizeof(user), "user-%d", key);
        struct test_request *request = ASK(rules, "user", user);
        same += request->checks[0].flags == request->checks[1].flags;
    }
    assert_true(same > 850 && same < 1150);
    weir_rules_unref(rules);
}

TEST("a limit tells its share")
{
    struct weir_rules *rules = test_load("limits:\n"
                                         "- {name: a, key: [user], rate: 1/s, enforce: 15%}\n"
                                         "- {name: b, key: [], rate: 1/s, enforce: 0%}\n"
                                         "- {name: c, key: [], rate: 1/s}\n");
    static const int shares[] = {15, 0, 100};
    for (uint32_t i = 0; i < 3; i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        assert_int_equal(info.enforce, shares[i]);
        assert_false(info.shadow);
    }
    struct test_request *request = ASK_EMPTY(rules);
    assert_int_equal(request->checks[0].flags, WEIR_CHECK_SHADOW);
    assert_int_equal(request->checks[1].flags, 0);
    weir_rules_unref(rules);
}

TEST("shares that mean nothing are refused")
{
    static const char *const cases[][2] = {
        {"key: [user], enforce: 10",
         "2:46: `enforce` must be `0%` to `100%` of the keys, not `10`\n"},
        {"key: [user], enforce: 101%",
         "2:46: `enforce` must be `0%` to `100%` of the keys, not `101%`\n"},
        {"key: [user], enforce: '%'",
         "2:46: `enforce` must be `0%` to `100%` of the keys, not `%`\n"},
        {"key: [user], enforce: 1.5%",
         "2:46: `enforce` must be `0%` to `100%` of the keys, not `1.5%`\n"},
        {"key: [user], enforce: [1%]", "2:46: `enforce` must be a text, not a list\n"},
        {"key: [user], enforce: 10%, shadow: true",
         "2:37: a shadow limit denies nothing; remove `shadow`\n"},
        {"key: [], enforce: 10%",
         "2:33: `key: []` is only one key, so `enforce` must be 0% or 100%\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "limits:\n- {name: l, rate: 1/s, %s}\n", cases[i][0]);
        test_refused(text, cases[i][1]);
    }
}

RUN_TESTS()
