/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: what a rules file may say of them, and the calendars that they become. */
#include "rules_test.h"
#include "test.h"

#define S UINT64_C(1000000000)

static const struct weir_limit *only_limit(struct weir_rules *rules)
{
    struct weir_rule_info info;
    weir_rules_info(rules, 0, &info);
    assert_non_null(info.limit);
    assert_int_equal(info.algorithm, WEIR_QUOTA);
    return info.limit;
}

/* When the period that holds a moment ends. */
static uint64_t reset_at(const struct weir_limit *limit, uint64_t at_s)
{
    struct weir_cell cell = {0, 0};
    struct weir_report report;
    struct weir_use use = {.now_ns = at_s * S, .cost = 1};
    assert_true(weir_decide(limit, &cell, &use, &report, NULL));
    return at_s + report.reset_after_ns / S;
}

TEST("a month ends with the month of its zone")
{
    struct weir_rules *rules = test_load("version: 1\nlimits:\n"
                                         "- {name: m, key: [], quota: 10000/month,\n"
                                         "   timezone: Europe/Zurich}\n");
    const struct weir_limit *limit = only_limit(rules);
    assert_int_equal(limit->spec.rate, 10000);
    assert_int_equal(limit->capacity, 10000);
    assert_int_equal(reset_at(limit, 1772319599), 1772319600); /* 2026-02-28 23:59:59 */
    assert_int_equal(reset_at(limit, 1772319600), 1774994400); /* to 2026-04-01 00:00, CEST */
    weir_rules_unref(rules);
}

TEST("anchors are read in the words of their unit")
{
    static const struct {
        const char *quota, *anchor;
        uint64_t at_s, reset_s;
    } cases[] = {
        {"1/day", "06:00", 1700000000, 1700028000}, /* 2023-11-15 06:00 */
        {"1/week", "mon", 1700000000, 1700438400},  /* 2023-11-20 */
        {"1/week", "Mon", 1700000000, 1700438400},
        {"1/week", "Thursday 12:30", 1700000000, 1700137800},
        {"1/week", "THU 12:30", 1700000000, 1700137800},
        {"1/week", "thursday 12:30", 1700000000, 1700137800}, /* 2023-11-16 12:30 */
        {"1/month", "31", 1700000000, 1701302400},            /* 2023-11-30 */
        {"1/month", "15 06:00", 1700000000, 1700028000},      /* 2023-11-15 06:00 */
        {"1/year", "04-06", 1700000000, 1712361600},          /* 2024-04-06 */
        {"1/year", "02-29 01:00", 1700000000, 1709168400},    /* 2024-02-29 01:00 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "version: 1\nlimits:\n- {name: q, key: [], quota: %s, anchor: \"%s\"}\n",
                 cases[i].quota, cases[i].anchor);
        struct weir_rules *rules = test_load(text);
        assert_int_equal(reset_at(only_limit(rules), cases[i].at_s), cases[i].reset_s);
        weir_rules_unref(rules);
    }
}

TEST("a share of a quota comes over")
{
    struct weir_rules *rules =
        test_load("version: 1\nlimits:\n"
                  "- {name: a, key: [], quota: 999/week, rollover: 20%}\n"
                  "- {name: b, key: [], quota: 4294967295/week, rollover: 100%}\n"
                  "- {name: c, key: [], quota: 10/week, rollover: 3}\n");
    static const uint64_t capacities[] = {999 + 199, UINT64_C(4294967295) * 2, 13};
    for (uint32_t i = 0; i < 3; i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        assert_int_equal(info.limit->capacity, capacities[i]);
    }
    weir_rules_unref(rules);
}

TEST("plans have quotas of their own")
{
    struct weir_rules *rules =
        test_load("version: 1\n"
                  "plans: {free: {m: 3/day}, pro: {m: 50/month}, all: {m: unlimited}}\n"
                  "default_plan: free\n"
                  "limits: [{name: m, key: [], quota: plan, timezone: Asia/Tokyo}]\n");
    struct test_request *request = ASK(rules, "client.ip", "192.0.2.1");
    assert_int_equal(request->count, 1);
    assert_int_equal(request->checks[0].limit->spec.rate, 3);
    assert_int_equal(reset_at(request->checks[0].limit, 1700000000), 1700060400);
    weir_rules_unref(rules);
}

TEST("one calendar serves all limits that count in it")
{
    struct weir_rules *rules =
        test_load("version: 1\nlimits:\n"
                  "- {name: a, key: [], quota: 1/day, timezone: Europe/Paris}\n"
                  "- {name: b, key: [], quota: 9/day, timezone: Europe/Paris}\n"
                  "- {name: c, key: [], quota: 9/day, timezone: Europe/Paris, anchor: \"01:00\"}\n"
                  "- {name: d, key: [], quota: 9/day}\n");
    struct weir_rule_info info[4];
    for (uint32_t i = 0; i < 4; i++)
        weir_rules_info(rules, i, &info[i]);
    assert_ptr_equal(info[0].limit->spec.bounds, info[1].limit->spec.bounds);
    assert_true(weir_limit_converts(info[0].limit, info[1].limit));
    assert_false(weir_limit_converts(info[1].limit, info[2].limit));
    assert_false(weir_limit_converts(info[1].limit, info[3].limit));
    weir_rules_unref(rules);
}

#define NO_QUOTA                                                                                   \
    " is not a quota; allowed are `N/day`, `N/week`, `N/month`, `N/year`, `unlimited` and `plan` " \
    "(for an hour use `algorithm: fixed_window` and `rate: N/h`)\n"

TEST("what is no quota is refused")
{
    static const char *const cases[][2] = {
        {"quota: 5/hour", "3:29: `5/hour`" NO_QUOTA},
        {"quota: 5", "3:29: `5`" NO_QUOTA},
        {"quota: x/day", "3:29: `x/day`" NO_QUOTA},
        {"quota: 5/day burst 3", "3:29: `5/day burst 3`" NO_QUOTA},
        {"quota: 4294967296/day",
         "3:29: quota: rate is 4294967296; the range is 0 to 4294967295\n"},
        {"quota: 5/day, timezone: Nowhere",
         "3:46: there is no time zone `Nowhere` in /usr/share/zoneinfo\n"},
        {"quota: 5/day, anchor: monday",
         "3:44: `monday` is not an anchor of a day; allowed is `06:00`\n"},
        {"quota: 5/week, anchor: 'mond 06:00'",
         "3:45: `mond 06:00` is not an anchor of a week; allowed is `monday` or `mon 06:00`\n"},
        {"quota: 5/week, anchor: '25:00'",
         "3:45: `25:00` is not an anchor of a week; allowed is `monday` or `mon 06:00`\n"},
        {"quota: 5/month, anchor: 32",
         "3:46: `32` is not an anchor of a month; allowed is `15` or `15 06:00`\n"},
        {"quota: 5/year, anchor: 02-30",
         "3:45: `02-30` is not an anchor of a year; allowed is `04-06` or `04-06 06:00`\n"},
        {"quota: 5/day, rollover: 101%",
         "3:46: `101%` is not a rollover; allowed are `0%` to `100%` and 0 to the quota itself\n"},
        {"quota: 5/day, rollover: 6",
         "3:46: `6` is not a rollover; allowed are `0%` to `100%` and 0 to the quota itself\n"},
        {"quota: 5/day, rate: 5/s",
         "3:36: `rate` belongs to limits without a quota, not to quota\n"},
        {"quota: 5/day, algorithm: gcra",
         "3:36: `algorithm` belongs to limits with a rate, not to quota\n"},
        {"quota: 5/day, segments: 3", "3:36: `segments` belongs to sliding_window, not to quota\n"},
        {"rate: 5/day, rollover: 3", "3:35: `rollover` belongs to quotas, not to sliding_window\n"},
        {"rate: 5/day, timezone: UTC",
         "3:35: `timezone` belongs to quotas, not to sliding_window\n"},
        {"quota: plan", "3:29: `plan` needs `default_plan`, for callers without a plan\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "version: 1\nlimits:\n- {name: q, key: [], %s}\n",
                 cases[i][0]);
        test_refused(text, cases[i][1]);
    }
}

RUN_TESTS()
