/* SPDX-License-Identifier: Apache-2.0 */
/* `adaptive`: what it becomes, what is wrong with it, and which scale a request meets. */
#include "feature/adaptive/rules/limit.h"
#include "rules_test.h"
#include "test.h"

#define S UINT64_C(1000000000)

#define BACKEND                                                                                    \
    "adaptive:\n"                                                                                  \
    "  backend:\n"                                                                                 \
    "    signals: { cpu: proc, memory: psi, p99: outcomes, errors: outcomes, queue: pushed }\n"    \
    "    table: [ { cpu: 60%, x: 80% }, { p99: 2s, x: 60% }, { errors: 5%, x: 40% },\n"            \
    "             { queue: 100, x: 50% } ]\n"                                                      \
    "    floor: 20%\n"                                                                             \
    "    hysteresis: 30s\n"
#define LIMITS(text) "limits:\n  - { name: a, key: [], rate: 100/min" text " }\n"

TEST("a table is read")
{
    struct weir_rules *rules = test_load(BACKEND LIMITS(", adaptive: backend"));
    uint32_t count;
    const struct weir_adaptive *adaptive = weir_rules_adaptive(rules, &count);

    assert_int_equal(count, 1);
    assert_string_equal(adaptive->name, "backend");
    assert_int_equal(adaptive->kind, WEIR_ADAPTIVE_HEALTH);
    assert_int_equal(adaptive->sources[WEIR_SIGNAL_CPU], WEIR_SIGNAL_PROC);
    assert_int_equal(adaptive->sources[WEIR_SIGNAL_MEMORY], WEIR_SIGNAL_PSI);
    assert_int_equal(adaptive->sources[WEIR_SIGNAL_P99], WEIR_SIGNAL_RESULTS);
    assert_int_equal(adaptive->sources[WEIR_SIGNAL_QUEUE], WEIR_SIGNAL_PUSHED);
    assert_int_equal(adaptive->health.count, 4);
    assert_int_equal(adaptive->health.rows[0].at_least, 6000);
    assert_int_equal(adaptive->health.rows[0].percent, 80);
    assert_int_equal(adaptive->health.rows[1].signal, WEIR_SIGNAL_P99);
    assert_int_equal(adaptive->health.rows[1].at_least, 2 * S);
    assert_int_equal(adaptive->health.rows[3].at_least, 100);
    assert_int_equal(adaptive->health.floor_percent, 20);
    assert_int_equal(adaptive->health.hysteresis_ns, 30 * S);
    assert_true(weir_adaptive_failed(adaptive, 503, 0));
    assert_false(weir_adaptive_failed(adaptive, 404, 0));
    assert_false(weir_adaptive_failed(adaptive, 0, UINT64_MAX));
    weir_rules_unref(rules);
}

TEST("controllers are read")
{
    struct weir_rules *rules = test_load(
        "adaptive:\n"
        "  inflight: { algorithm: aimd, min: 20, max: 2000, increase: 2, decrease: 80%, on: [5xx, "
        "404, timeout 5s] }\n"
        "  gpu: { algorithm: gradient2, min: 4, max: 200 }\n"
        "limits:\n"
        "  - { name: a, key: [], algorithm: concurrency, limit: 2000, adaptive: inflight }\n"
        "  - { name: b, key: [], algorithm: concurrency, limit: 200, adaptive: gpu }\n"
        "  - { name: c, key: [], rate: 7/s }\n"
        "  - { name: d, key: [], rate: 7/s, adaptive: gpu }\n");
    uint32_t count;
    const struct weir_adaptive *adaptive = weir_rules_adaptive(rules, &count);
    const struct weir_adaptive_limit *limits;

    assert_int_equal(count, 2);
    assert_int_equal(adaptive[0].kind, WEIR_ADAPTIVE_AIMD);
    assert_int_equal(adaptive[0].aimd.min, 20);
    assert_int_equal(adaptive[0].aimd.max, 2000);
    assert_int_equal(adaptive[0].aimd.increase, 2);
    assert_int_equal(adaptive[0].aimd.decrease_percent, 80);
    assert_true(weir_adaptive_failed(&adaptive[0], 404, 0));
    assert_true(weir_adaptive_failed(&adaptive[0], 200, 5 * S));
    assert_false(weir_adaptive_failed(&adaptive[0], 200, 5 * S - 1));
    assert_int_equal(adaptive[1].kind, WEIR_ADAPTIVE_GRADIENT2);
    assert_int_equal(adaptive[1].gradient2.min, 4);
    assert_int_equal(adaptive[1].gradient2.max, 200);

    limits = weir_rules_adaptive_limits(rules, &count);
    assert_int_equal(count, 3);
    assert_int_equal(limits[1].rule, 1);
    assert_int_equal(limits[1].adaptive, 1);
    assert_int_equal(limits[2].rule, 3);
    assert_int_equal(weir_rules_scale_of(rules, 3), 2);
    assert_int_equal(weir_rules_scale_of(rules, 2), -1);
    weir_rules_unref(rules);
}

TEST("a request meets the scale that is set")
{
    struct weir_rules *rules = test_load(BACKEND "limits:\n"
                                                 "  - { name: a, key: [], rate: 100/min }\n"
                                                 "  - { name: b, key: [], rate: 100/min, adaptive: "
                                                 "backend }\n");
    struct test_request *request = ASK_EMPTY(rules);

    assert_int_equal(weir_rules_scale(rules, 0), 100);
    assert_int_equal(request->count, 2);
    assert_int_equal(request->checks[1].scale, 0);
    weir_rules_set_scale(rules, 0, 40);
    request = ASK_EMPTY(rules);
    assert_int_equal(request->checks[0].scale, 0);
    assert_int_equal(request->checks[1].scale, 40);
    assert_int_equal(request->checks[1].scale_kind, WEIR_SCALE_RATE);
    weir_rules_unref(rules);
}

TEST("a limit that follows health is decided exactly")
{
    test_refused("store: { redis: 'redis://h', on_store_error: open }\n" BACKEND LIMITS(
                     ", mode: leased, adaptive: backend"),
                 "10:46: a limit with `adaptive` is decided exactly and cannot be leased; remove "
                 "`mode`, or set it to exact\n");
}

TEST("mistakes are named with their places")
{
    static const struct test_problem_case cases[] = {
        {"adaptive: 5\nlimits: []\n",
         "1:11: `adaptive` must be a mapping of names to controllers, see docs/adaptive.md\n"},
        {"adaptive: { a: {} }\nlimits: []\n",
         "1:16: a controller needs `signals` and `table`, or `algorithm: aimd` or `gradient2`\n"},
        {"adaptive: { a: { signals: { cpu: outcomes, queue: proc }, table: [] } }\nlimits: []\n",
         "1:34: the signal `cpu` comes from `proc`, `psi` or `pushed`\n"
         "1:51: the signal `queue` comes from `pushed`\n"
         "1:66: `table` must be a list of 1 to 32 rows: { cpu: 80%, x: 50% }\n"},
        {"adaptive: { a: { signals: { cpu: proc }, table: [ { cpu: 80% }, { p99: 1s, x: 50% }, { "
         "cpu: 101%, x: 0% }, { cpu: 1%, p99: 1s, x: 5% } ] } }\nlimits: []\n",
         "1:51: a row has one signal and the scale `x` from there on: { cpu: 80%, x: 50% }\n"
         "1:67: `signals` does not say where `p99` comes from\n"
         "1:93: `cpu` must be 1% to 100%, as in `cpu: 80%`\n"
         "1:108: a row has one signal and the scale `x` from there on: { cpu: 80%, x: 50% }\n"},
        {"adaptive: { a: { algorithm: aimd, min: 5, max: 4 }, b: { algorithm: pid, max: 4 }, c: { "
         "algorithm: aimd } }\nlimits: []\n",
         "1:40: `min` must not be above `max`\n"
         "1:69: `algorithm` must be one of aimd, gradient2, not `pid`\n"
         "1:87: `max` is missing: the limit while nothing is wrong\n"},
        {"adaptive: { a: { algorithm: gradient2, max: 4, increase: 1, on: 5xx } }\nlimits: []\n",
         "1:48: `increase` goes with `algorithm: aimd`\n"
         "1:61: `on` goes with `algorithm: aimd`\n"},
        {"adaptive: { a: { algorithm: aimd, min: 2, max: 4, initial: 5 } }\nlimits: []\n",
         "1:60: `initial` must be from `min` to `max`, 2 to 4\n"},
        {"adaptive: { a: { algorithm: aimd, max: 4, increase_per: minute } }\nlimits: []\n",
         "1:57: `increase_per` must be one of round, success, not `minute`\n"},
        {"adaptive: { a: { algorithm: gradient2, max: 4, initial: 2 } }\nlimits: []\n",
         "1:48: `initial` goes with `algorithm: aimd`\n"},
        {"adaptive: { a: { algorithm: aimd, max: 4, on: [6xx, timeout 1, timeout 1us] } }\n"
         "limits: []\n",
         "1:48: `on` takes statuses: `404`, or `5xx` for a class\n"
         "1:53: `1` is not a time: it needs a unit, as in `30s`\n"
         "1:64: `1us`: unknown unit `us` (did you mean `ms`?); units are ms, s, sec, min, h, hour, "
         "d, day, w, week\n"},
        {"adaptive: { a: { algorithm: gradient2, max: 4 } }\nlimits: [ { name: l, key: [], "
         "algorithm: concurrency, limit: 5, adaptive: a }, { name: m, key: [], rate: 1/s, "
         "adaptive: b } ]\n",
         "2:75: `max` of `a` is 4, but this limit is 5: make them equal\n"
         "2:121: the section `adaptive` has no controller `b`\n"},
    };

    TEST_REFUSED_ALL(cases);
}

RUN_TESTS()
