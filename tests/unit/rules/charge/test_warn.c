/* SPDX-License-Identifier: Apache-2.0 */
/* `warn_at`: thresholds as the rules file gives them, and the limits of their records. */
#include "feature/webhook/rules/warn.h"
#include "rules_test.h"
#include "test.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

static const struct weir_warn_at *thresholds(const struct weir_rules *rules, const char *name)
{
    int rule = weir_rules_find(rules, name, strlen(name));
    assert_true(rule >= 0);
    return weir_rules_warn_at(rules, (uint32_t)rule);
}

TEST("a threshold is one or a list in any order")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: none, key: [], rate: 5/s}\n"
                  "- {name: one, key: [], quota: 100/month, warn_at: 80%}\n"
                  "- {name: ends, key: [], rate: 5/s, warn_at: [100%, 1%]}\n"
                  "- {name: four, key: [], rate: 5/s, warn_at: [95%, 50%, 80%, 90%]}\n");
    assert_int_equal(thresholds(rules, "none")->count, 0);
    assert_int_equal(thresholds(rules, "one")->count, 1);
    assert_int_equal(thresholds(rules, "one")->percent[0], 80);
    assert_int_equal(thresholds(rules, "ends")->count, 2);
    assert_int_equal(thresholds(rules, "ends")->percent[0], 1);
    assert_int_equal(thresholds(rules, "ends")->percent[1], 100);
    const struct weir_warn_at *four = thresholds(rules, "four");
    static const uint8_t expected[] = {50, 80, 90, 95};
    assert_int_equal(four->count, 4);
    assert_memory_equal(four->percent, expected, sizeof(expected));
    assert_true(weir_rules_warns(rules));
    weir_rules_unref(rules);
}

TEST("every algorithm that uses something up may have one")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: [], algorithm: fixed_window, rate: 5/s, warn_at: 80%}\n"
                  "- {name: b, key: [], algorithm: sliding_window, rate: 5/s, warn_at: 80%}\n"
                  "- {name: c, key: [], algorithm: sliding_log, rate: 5/s, warn_at: 80%}\n"
                  "- {name: d, key: [], algorithm: token_bucket, rate: 5/s, warn_at: 80%}\n"
                  "- {name: e, key: [], algorithm: gcra, rate: 5/s, warn_at: 80%}\n"
                  "- {name: f, key: [], algorithm: leaky_bucket, rate: 5/s, warn_at: 80%}\n"
                  "- {name: g, key: [], rate: [5/s, 50/min], warn_at: 80%}\n");
    for (uint32_t i = 0; i < weir_rules_count(rules); i++)
        assert_int_equal(weir_rules_warn_at(rules, i)->count, 1);
    weir_rules_unref(rules);
}

TEST("a shadow limit warns of nothing")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: a, key: [], rate: 5/s, shadow: true, warn_at: 80%}\n");
    assert_int_equal(thresholds(rules, "a")->count, 0);
    assert_false(weir_rules_warns(rules));
    weir_rules_unref(rules);
}

TEST("what has nothing to use up is refused")
{
    test_refused(
        "limits:\n"
        "- {name: a, key: [], algorithm: concurrency, limit: 5, warn_at: 80%}\n"
        "- {name: b, key: [], algorithm: leaky_bucket, queue: true, rate: 5/s, "
        "warn_at: 80%}\n"
        "- {name: c, key: [], rate: unlimited, warn_at: 80%}\n",
        "2:56: `warn_at` does not work with concurrency\n"
        "3:71: `warn_at` does not work with `queue`, which delays requests and uses nothing up\n"
        "4:39: an unlimited rate never reaches a threshold: remove `warn_at`\n");
}

TEST("what is no percentage is refused")
{
    static const char *const wrong[] = {"80",    "0%",   "101%", "'%'",  "-1%",
                                        "80.5%", "80 %", "8O%",  "high", "99999999999999999999%"};
    char text[256];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        snprintf(text, sizeof(text), "limits:\n- {name: a, key: [], rate: 5/s, warn_at: %s}\n",
                 wrong[i]);
        test_refused(text, "2:42: `warn_at` must be 1% to 100%, as in `warn_at: 80%`\n");
    }
}

TEST("a list has one to four different ones")
{
    static const char many[] = "`warn_at` must be a percentage of the limit, or a list of 1 to 4 "
                               "of them: [80%, 95%]\n";
    char expected[512];
    snprintf(expected, sizeof(expected), "2:42: %s3:42: %s4:48: `warn_at` has 80%% twice\n5:42: %s",
             many, many, many);
    test_refused("limits:\n"
                 "- {name: a, key: [], rate: 5/s, warn_at: []}\n"
                 "- {name: b, key: [], rate: 5/s, warn_at: [1%, 2%, 3%, 4%, 5%]}\n"
                 "- {name: c, key: [], rate: 5/s, warn_at: [80%, 80%]}\n"
                 "- {name: d, key: [], rate: 5/s, warn_at: {at: 80%}}\n",
                 expected);
}

TEST("a threshold is reached by the first unit that makes the percentage")
{
    assert_false(weir_warn_reached(80, 79, 100));
    assert_true(weir_warn_reached(80, 80, 100));
    assert_false(weir_warn_reached(80, 2, 3)); /* 66 % */
    assert_true(weir_warn_reached(80, 3, 3));
    assert_true(weir_warn_reached(1, 1, 100));
    assert_false(weir_warn_reached(1, 0, 100));
    assert_false(weir_warn_reached(80, 0, 0)); /* nothing is nothing used up */
    uint64_t most = WEIR_BUCKET_MAX;
    assert_true(weir_warn_reached(100, most, most));
    assert_false(weir_warn_reached(100, most - 1, most));
}

static int count_limit(void *context, struct weir_limit *limit, const char *name)
{
    int *counted = context;
    assert_non_null(name);
    counted[strcmp(name, "warn_at") == 0]++;
    limit->id = 1;
    return 0;
}

TEST("records are made known only where something warns")
{
    int counted[2] = {0, 0};
    struct weir_rules *rules = test_load("limits:\n- {name: a, key: [], rate: 5/s}\n");
    assert_int_equal(weir_rules_prepare(rules, count_limit, counted), 0);
    assert_int_equal(counted[1], 0);
    weir_rules_unref(rules);
    rules = test_load("limits:\n- {name: a, key: [], rate: 5/s, warn_at: 80%}\n");
    assert_int_equal(weir_rules_prepare(rules, count_limit, counted), 0);
    assert_true(counted[1] > 0);
    weir_rules_unref(rules);
}

TEST("a record outlives its period and not by much")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: a, key: [], rate: 5/s, warn_at: 80%}\n");
    static const struct {
        uint64_t about_ns, lasts_ns; /* what a period of a calendar may last */
    } calendars[] = {{DAY_NS, DAY_NS / 24 * 26},
                     {7 * DAY_NS, DAY_NS / 24 * (7 * 24 + 2)},
                     {30 * DAY_NS, DAY_NS / 24 * (31 * 24 + 2)},
                     {365 * DAY_NS, 366 * DAY_NS}};
    for (size_t i = 0; i < sizeof(calendars) / sizeof(calendars[0]); i++) {
        const struct weir_limit *limit = weir_rules_warned_limit(rules, calendars[i].about_ns);
        assert_true(limit->spec.window_ns >= calendars[i].lasts_ns);
        assert_int_equal(limit->capacity, WEIR_WARNED_COST + 1);
    }
    for (uint64_t window_ns = WEIR_WINDOW_MIN_NS; window_ns <= WEIR_WINDOW_MAX_NS; window_ns *= 3) {
        const struct weir_limit *limit = weir_rules_warned_limit(rules, window_ns);
        assert_true(limit->spec.window_ns >= window_ns);
        assert_true(limit->spec.window_ns <= 12 * window_ns ||
                    limit->spec.window_ns == UINT64_C(1000000000));
    }
    assert_int_equal(weir_rules_warned_limit(rules, WEIR_WINDOW_MAX_NS)->spec.window_ns,
                     WEIR_WINDOW_MAX_NS);
    weir_rules_unref(rules);
}

RUN_TESTS()
