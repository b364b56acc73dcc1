/* SPDX-License-Identifier: Apache-2.0 */
/* `score`, `by_class` and the attributes client.score and client.class: what they become, and what
 * is wrong with them. */
#include "feature/score/rules/score.h"
#include "rules/source.h"
#include "rules_test.h"
#include "test.h"

TEST("there is none unless the file says so")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_null(weir_rules_score(rules));
    assert_false(weir_rules_timed(rules));
    weir_rules_unref(rules);
}

#define SIGNAL "{name: tool, when: {header.user-agent: 'curl/*'}, add: 40}"

TEST("everything is read")
{
    struct weir_rules *rules =
        test_load("score:\n"
                  "  key: [client.ip/64, header.x-app]\n"
                  "  signals:\n"
                  "  - " SIGNAL "\n"
                  "  - {name: steady, regular: {over: 255, within: 10min}, add: 100}\n"
                  "  - {name: both, same_route: 2, when: {method: GET, path: '/a/:id',"
                  " path.id: 'x*'}, add: 1}\n"
                  "  classes: {suspicious: 1, malicious: 3200}\n"
                  "  clients: 1000\n"
                  "  routes: ['/items/:id', '/u/*']\n"
                  "  debug: true\n"
                  "limits: []\n");
    const struct weir_score_info *info = weir_rules_score(rules);
    assert_int_equal(info->signal_count, 3);
    assert_memory_equal(info->signals[1].name.data, "steady", 6);
    assert_int_equal(info->signals[1].add, 100);
    assert_int_equal(info->from[WEIR_CLASS_LEGITIMATE], 0);
    assert_int_equal(info->from[WEIR_CLASS_SUSPICIOUS], 1);
    assert_int_equal(info->from[WEIR_CLASS_MALICIOUS], 3200);
    assert_true(info->debug);
    assert_true(weir_behaviour_room(info->behaviour) >= 1000);
    assert_true(weir_rules_timed(rules));
    weir_rules_unref(rules);
}

TEST("what is not said has a default")
{
    struct weir_rules *rules =
        test_load("score: {key: client.ip, signals: [" SIGNAL "]}\nlimits: []\n");
    const struct weir_score_info *info = weir_rules_score(rules);
    assert_int_equal(info->from[WEIR_CLASS_SUSPICIOUS], 30);
    assert_int_equal(info->from[WEIR_CLASS_MALICIOUS], 60);
    assert_false(info->debug);
    assert_null(info->behaviour); /* no signal looks at it */
    weir_rules_unref(rules);
    rules = test_load("score: {key: client.ip, signals: [" SIGNAL "], classes: {malicious: 5}}\n"
                      "limits: []\n");
    assert_int_equal(weir_rules_score(rules)->from[WEIR_CLASS_SUSPICIOUS], UINT16_MAX);
    weir_rules_unref(rules);
}

TEST("no request can set the attributes")
{
    struct weir_rules *rules =
        test_load("score: {key: client.ip, signals: [" SIGNAL "]}\n"
                  "limits:\n- {name: l, match: {client.class: [suspicious, malicious]},"
                  " key: [client.score, client.class], rate: 1/s}\n");
    assert_int_equal(weir_rules_source(rules, "client.class", 12).attribute, -1);
    assert_int_equal(weir_rules_source(rules, "client.score", 12).attribute, -1);
    weir_rules_unref(rules);
}

#define SCORE(text) "score:\n  key: client.ip\n  signals:\n  - " text "\nlimits: []\n"

TEST("mistakes in signals are named")
{
    static const struct test_problem_case cases[] = {
        {SCORE("{when: {method: GET}, add: 1}"), "4:5: `name` is missing\n"},
        {SCORE("{name: a, when: {method: GET}}"),
         "4:5: `add` is missing: what the signal adds to the score\n"},
        {SCORE("{name: a, add: 1}"),
         "4:5: a signal needs `when`, `regular`, `same_route` or `new_connections`\n"},
        {SCORE("{name: a, when: {method: GET}, add: 0}"),
         "4:41: `add` must be 1 to 100, not `0`\n"},
        {SCORE("{name: a, when: {method: GET}, add: 101}"),
         "4:41: `add` must be 1 to 100, not `101`\n"},
        {SCORE("{name: a, when: {method: get}, add: 1}"),
         "4:30: methods are case-sensitive (RFC 9110): write `GET`\n"},
        {SCORE("{name: a, when: GET, add: 1}"),
         "4:21: `when` must be a mapping of attributes to values\n"},
        {SCORE("{name: a, when: {}, add: 1}"),
         "4:21: `when` is empty: the signal would hold for all requests\n"},
        {SCORE("{name: a, when: {client.class: malicious}, add: 1}"),
         "4:22: `client.class` is what `score` makes: it cannot depend on itself\n"},
        {SCORE("{name: a, regular: {over: 10}, add: 1}"),
         "4:24: `regular` needs `over`, and `within` or `spread`: { over: 10, within: 50ms }, "
         "{ over: 10, spread: 20% }\n"},
        {SCORE("{name: a, regular: {over: 10, within: 50ms, spread: 5%}, add: 1}"),
         "4:24: `regular` needs `over`, and `within` or `spread`: { over: 10, within: 50ms }, "
         "{ over: 10, spread: 20% }\n"},
        {SCORE("{name: a, regular: {over: 2, spread: 5%}, add: 1}\n"
               "  - {name: b, regular: {over: 5, spread: 6%}, add: 1}"),
         "5:42: all signals with `regular` must have the same `within` or `spread`, here 5%\n"},
        {SCORE("{name: a, regular: {over: 2, spread: 5%}, add: 1}\n"
               "  - {name: b, regular: {over: 5, within: 1s}, add: 1}"),
         "5:42: all signals with `regular` must have the same `within` or `spread`, here 5%\n"},
        {SCORE("{name: a, new_connections: 1, add: 1}"),
         "4:32: `over` must be 2 to 255, not `1`\n"},
        {SCORE("{name: a, new_connections: {from: header.x}, add: 1}"),
         "4:32: `new_connections` needs `over`: how many requests in a row\n"},
        {SCORE("{name: a, new_connections: 5, add: 1}\n"
               "  - {name: b, new_connections: {over: 5, from: header.x}, add: 1}"),
         "5:48: all signals with `new_connections` must have the same `from`\n"},
        {SCORE("{name: a, regular: {over: 1, within: 50ms}, add: 1}"),
         "4:31: `over` must be 2 to 255, not `1`\n"},
        {SCORE("{name: a, regular: {over: 2, within: 11min}, add: 1}"),
         "4:42: `within` must be 1ms to 10min, not `11min`\n"},
        {SCORE("{name: a, regular: {over: 2, within: 1s}, add: 1}\n"
               "  - {name: b, regular: {over: 5, within: 2s}, add: 1}"),
         "5:42: all signals with `regular` must have the same `within` or `spread`, here 1000ms\n"},
        {SCORE("{name: a, same_route: 256, add: 1}"),
         "4:27: `same_route` must be 2 to 255, not `256`\n"},
        {SCORE("{name: a, same_route: 2, add: 1}\n  - {name: a, same_route: 3, add: 1}"),
         "5:12: the name `a` is given to two signals\n"},
        {SCORE("{name: a, same_rout: 2, add: 1}"),
         "4:5: a signal needs `when`, `regular`, `same_route` or `new_connections`\n"
         "4:15: a signal has no key `same_rout`; did you mean `same_route`?\n"},
        {SCORE("{name: a, when: {list: bad}, add: 1}"),
         "4:28: `list` names one of the `lists` of `standing:`, which has none\n"},
    };
    TEST_REFUSED_ALL(cases);
}

#define WITH(text) "score: {signals: [" SIGNAL "], " text "}\nlimits: []\n"

TEST("mistakes in the section are named")
{
    static const struct test_problem_case cases[] = {
        {"score: {}\nlimits: []\n",
         "1:8: `score` needs `key`, which tells clients apart: `key: [client.ip/64]`\n"
         "1:8: `score` needs `signals`\n"},
        {"score: {key: client.ip, signals: []}\nlimits: []\n",
         "1:34: `signals` must be a list of 1 to 32 signals\n"},
        {WITH("key: []"), "1:85: `key` is empty: all clients would be one\n"},
        {WITH("key: [client.score]"),
         "1:86: `client.score` is what `score` makes: it cannot depend on itself\n"},
        {WITH("key: [path.id]"),
         "1:86: `path.id`: the `path` of this limit's match names no `:id`\n"},
        {WITH("key: client.ip, classes: {suspicious: 60, malicious: 60}"),
         "1:133: `malicious` must be more than `suspicious`\n"},
        {WITH("key: client.ip, classes: {}"),
         "1:105: `classes` is empty; give `suspicious`, `malicious` or both\n"},
        {WITH("key: client.ip, classes: {suspicious: 0}"),
         "1:118: `suspicious` must be 1 to 3200, not `0`\n"},
        {WITH("key: client.ip, classes: {suspect: 5}"),
         "1:105: `classes` is empty; give `suspicious`, `malicious` or both\n"
         "1:106: classes has no key `suspect`; its keys are suspicious, malicious\n"},
        {WITH("key: client.ip, clients: 999"),
         "1:105: `clients` must be 1000 to 50000000, not `999`\n"},
        {WITH("key: client.ip, routes: []"),
         "1:104: `routes` must be a list of 1 to 64 patterns of paths\n"},
        {WITH("key: client.ip, routes: [items]"),
         "1:105: path pattern `items`: must begin with `/`\n"},
        {WITH("key: client.ip, debug: 1"), "1:103: `debug` must be true or false, not `1`\n"},
    };
    TEST_REFUSED_ALL(cases);
}

#define LIMIT(text)                                                                                \
    "score: {key: client.ip, signals: [" SIGNAL "]}\nlimits:\n"                                    \
    "- {name: l, key: [], rate: 1/s, " text "}\n"

TEST("mistakes in limits are named")
{
    static const struct test_problem_case cases[] = {
        {"limits:\n- {name: l, match: {client.class: malicious}, key: [client.score], rate: 1/s,\n"
         "   by_class: {malicious: 20%}}\n",
         "2:21: the attribute `client.class` needs the section `score:`, which comes from signals\n"
         "2:53: the attribute `client.score` needs the section `score:`, which comes from signals\n"
         "3:4: `by_class` needs the section `score:`\n"},
        {LIMIT("match: {client.class: malicous}"),
         "3:55: `client.class` must be legitimate, suspicious or malicious, not `malicous`; did "
         "you mean `malicious`?\n"},
        {LIMIT("match: {client.class: absent}"), "3:55: `client.class` is never absent\n"},
        {LIMIT("match: {client.class: {at_least: 5}}"),
         "3:56: `at_least` is for `client.score` only\n"},
        {LIMIT("match: {client.score: 3201}"),
         "3:55: `client.score` is a number from 0 to 3200, not `3201`; for a range, write { "
         "at_least: 45 }\n"},
        {LIMIT("match: {client.score: {at_least: 0}}"),
         "3:66: `at_least` must be 1 to 3200, not `0`\n"},
        {LIMIT("by_class: malicious"),
         "3:43: `by_class` must be a mapping of classes to percentages: `{ suspicious: 50% }`\n"},
        {LIMIT("by_class: {bad: 5%}"),
         "3:44: `client.class` must be legitimate, suspicious or malicious, not `bad`\n"},
        {LIMIT("by_class: {malicious: 0%}"),
         "3:55: `malicious` must be 1% to 100%, as in `malicious: 50%`\n"},
        {"score: {key: client.ip, signals: [" SIGNAL "]}\n"
         "limits: [{name: l, key: [], rate: unlimited, by_class: {malicious: 20%}}]\n",
         "2:46: an unlimited rate has no scale: remove `by_class`\n"},
        {"score: {key: client.ip, signals: [" SIGNAL "]}\n"
         "store: {redis: 'redis://h', on_store_error: open}\n"
         "limits: [{name: l, key: [], rate: 1/s, mode: leased, by_class: {malicious: 20%}}]\n",
         "3:46: a limit with `by_class` is decided exactly and cannot be leased; remove `mode`, or "
         "set it to exact\n"},
        {"score: {key: client.ip, signals: [" SIGNAL "]}\n"
         "standing: {by: [client.class]}\nlimits: []\n",
         "2:17: the attribute `client.class` needs the section `score:`, which comes from "
         "signals\n"},
    };
    TEST_REFUSED_ALL(cases);
}

RUN_TESTS()
