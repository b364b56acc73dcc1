/* SPDX-License-Identifier: Apache-2.0 */
/* Scores: which signals hold, what they add up to, what classes do; and random requests beside a
 * slow model. */
#include "draw.h"
#include "feature/score/rules/score.h"
#include "rules/match/key_values.h"
#include "rules_test.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define NOW (UINT64_C(1700000000000) * MS)

static struct weir_caller_score found;

/* Asks again at a time, as an engine would. */
static struct test_request *behave(struct test_request *test, uint64_t at_ms, uint8_t behaves)
{
    test->request.fields = WEIR_FIELDS_ALL;
    test->query.now_ns = NOW + at_ms * MS;
    test->query.behaves = behaves;
    test->query.score = &found;
    found.counted = false;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}
#define COUNT(at_ms, rules, ...) behave(ASK(rules, __VA_ARGS__), at_ms, RULES_BEHAVES_COUNT)
#define LOOK(at_ms, rules, ...) behave(ASK(rules, __VA_ARGS__), at_ms, RULES_BEHAVES_LOOK)
#define RECALL(at_ms, rules, ...) behave(ASK(rules, __VA_ARGS__), at_ms, RULES_BEHAVES_RECALL)

static const char text[] =
    "score:\n"
    "  key: [client.ip/64]\n"
    "  signals:\n"
    "  - {name: no-agent, when: {header.user-agent: absent}, add: 30}\n"
    "  - {name: tool, when: {header.user-agent: ['curl/*', 'python-requests/*']}, add: 40}\n"
    "  - {name: steady, regular: {over: 3, within: 50ms}, add: 25}\n"
    "  - {name: one-route, same_route: 4, add: 15}\n"
    "  - {name: post, when: {method: POST, path: '/login'}, add: 5}\n"
    "  routes: ['/items/:id']\n"
    "  classes: {suspicious: 30, malicious: 60}\n"
    "limits:\n"
    "- {name: api, key: [], rate: [100/s, 1000/h], by_class: {suspicious: 50%, malicious: 10%}}\n"
    "- {name: bad, match: {client.class: [suspicious, malicious]}, key: [client.class], rate: "
    "1/s}\n"
    "- {name: high, match: {client.score: {at_least: 45}}, key: [client.score], rate: 1/s}\n"
    "- {name: exact, match: {client.score: 30}, key: [], rate: 1/s}\n"
    "- {name: good, match: {client.class: {not: malicious}}, key: [], rate: 1/s}\n";

static void assert_score(unsigned score, uint8_t class, uint32_t held)
{
    assert_int_equal(found.score, score);
    assert_int_equal(found.class, class);
    assert_int_equal(found.held, held);
}

TEST("the score is the sum of the signals that hold")
{
    struct weir_rules *rules = test_load(text);
    COUNT(0, rules, "client.ip", "192.0.2.1", "header.user-agent", "Mozilla");
    assert_score(0, WEIR_CLASS_LEGITIMATE, 0);
    COUNT(0, rules, "client.ip", "192.0.2.2");
    assert_score(30, WEIR_CLASS_SUSPICIOUS, 1);
    COUNT(0, rules, "client.ip", "192.0.2.3", "header.user-agent", "curl/8", "method", "POST",
          "path", "/login");
    assert_score(45, WEIR_CLASS_SUSPICIOUS, 2 | 16);
    COUNT(0, rules, "client.ip", "192.0.2.3", "header.user-agent", "curl/8", "method", "POST",
          "path", "/logins"); /* one part of `when` does not hold */
    assert_score(40, WEIR_CLASS_SUSPICIOUS, 2);
    weir_rules_unref(rules);
}

TEST("behaviour needs its run")
{
    struct weir_rules *rules = test_load(text);
    for (uint64_t i = 0; i < 3; i++) {
        COUNT(i * 1000, rules, "client.ip", "192.0.2.1", "header.user-agent", "x", "path", "/a");
        assert_score(0, WEIR_CLASS_LEGITIMATE, 0);
    }
    COUNT(3000, rules, "client.ip", "192.0.2.1", "header.user-agent", "x", "path", "/a");
    assert_score(40, WEIR_CLASS_SUSPICIOUS, 4 | 8);
    COUNT(4000, rules, "client.ip", "192.0.2.1", "header.user-agent", "curl/8", "path", "/a");
    assert_score(80, WEIR_CLASS_MALICIOUS, 2 | 4 | 8);
    COUNT(5000, rules, "client.ip", "192.0.2.1", "header.user-agent", "x", "path", "/b");
    assert_score(25, WEIR_CLASS_LEGITIMATE, 4);
    COUNT(5000, rules, "client.ip", "192.0.2.2", "header.user-agent", "x", "path", "/a");
    assert_score(0, WEIR_CLASS_LEGITIMATE, 0); /* another client */
    weir_rules_unref(rules);
}

TEST("gaps of 30 ms are regular by their spread")
{
    struct weir_rules *rules =
        test_load("score:\n"
                  "  key: client.ip\n"
                  "  signals: [{name: steady, regular: {over: 3, spread: 20%}, add: 30}]\n"
                  "limits: []\n");
    for (uint64_t i = 0; i < 3; i++) {
        COUNT(i * 30, rules, "client.ip", "192.0.2.1");
        assert_score(0, WEIR_CLASS_LEGITIMATE, 0);
    }
    COUNT(90, rules, "client.ip", "192.0.2.1");
    assert_score(30, WEIR_CLASS_SUSPICIOUS, 1);
    COUNT(130, rules, "client.ip", "192.0.2.1");
    assert_score(0, WEIR_CLASS_LEGITIMATE, 0);
    weir_rules_unref(rules);
}

static void expect_fresh(const char *rules_text, const char *attribute)
{
    struct weir_rules *rules = test_load(rules_text);
    static const char *const said[] = {"1", "1", "2", "1", "1", NULL, "1"};
    static const unsigned scores[] = {0, 0, 0, 0, 0, 0, 20};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (said[i])
            COUNT(i, rules, "client.ip", "192.0.2.1", attribute, said[i]);
        else
            COUNT(i, rules, "client.ip", "192.0.2.1");
        assert_int_equal(found.score, scores[i]);
    }
    weir_rules_unref(rules);
}

TEST("requests that each come on a new connection are a signal")
{
    expect_fresh("score: {key: client.ip, signals: [{name: c, new_connections: 3, add: 20}]}\n"
                 "limits: []\n",
                 "connection.requests");
    expect_fresh("score: {key: client.ip, signals: [{name: c, add: 20,\n"
                 "  new_connections: {over: 3, from: header.x-connection-requests}}]}\n"
                 "limits: []\n",
                 "header.x-connection-requests");
}

TEST("paths of a pattern in routes are one route")
{
    struct weir_rules *rules = test_load(text);
    static const char *const items[] = {"/items/1", "/items/2", "/items/3", "/items/4"};
    static const char *const others[] = {"/other/1", "/other/2", "/other/3", "/other/4"};
    for (int i = 0; i < 4; i++)
        COUNT(0, rules, "client.ip", "::1", "header.user-agent", "x", "path", items[i]);
    assert_score(15, WEIR_CLASS_LEGITIMATE, 8);
    for (int i = 0; i < 4; i++)
        COUNT(0, rules, "client.ip", "::1", "header.user-agent", "x", "path", others[i]);
    assert_score(0, WEIR_CLASS_LEGITIMATE, 0);
    weir_rules_unref(rules);
}

TEST("a look and a recall keep nothing")
{
    struct weir_rules *rules = test_load(text);
    for (uint64_t i = 0; i < 3; i++)
        COUNT(i * 1000, rules, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    for (int i = 0; i < 3; i++) {
        LOOK(3000, rules, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
        assert_score(40, WEIR_CLASS_SUSPICIOUS, 4 | 8);
        RECALL(3000, rules, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
        assert_score(0, WEIR_CLASS_LEGITIMATE, 0);
    }
    COUNT(3000, rules, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    for (int i = 0; i < 3; i++) { /* without a path, and at any time */
        RECALL(9000, rules, "client.ip", "::1", "header.user-agent", "x");
        assert_score(40, WEIR_CLASS_SUSPICIOUS, 4 | 8);
    }
    weir_rules_unref(rules);
}

TEST("a request that was counted is not counted again")
{
    struct weir_rules *rules = test_load(text);
    struct test_request *test =
        COUNT(0, rules, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    for (int i = 0; i < 5; i++) { /* as where a look-up of the caller was waited for */
        test->count = weir_rules_checks(&test->query, test->checks);
        assert_int_equal(found.habit.same_route, 1);
    }
    COUNT(1000, rules, "client.ip", "::1", "header.user-agent", "x", "path", "/a");
    assert_int_equal(found.habit.same_route, 2);
    weir_rules_unref(rules);
}

TEST("a request without the key has no behaviour")
{
    struct weir_rules *rules = test_load(text);
    for (int i = 0; i < 9; i++)
        COUNT(0, rules, "path", "/a");
    assert_score(30, WEIR_CLASS_SUSPICIOUS, 1);
    assert_false(found.keyed);
    weir_rules_unref(rules);
}

TEST("the key says who is one client")
{
    struct weir_rules *rules = test_load(text);
    COUNT(0, rules, "client.ip", "2001:db8::1", "path", "/a");
    COUNT(0, rules, "client.ip", "2001:db8::2", "path", "/a");
    assert_int_equal(found.habit.same_route, 2);
    COUNT(0, rules, "client.ip", "2001:db8:0:1::2", "path", "/a");
    assert_int_equal(found.habit.same_route, 1);
    weir_rules_unref(rules);
}

TEST("limits match by it and have the scale of the class")
{
    struct weir_rules *rules = test_load(text);
    struct test_request *test = COUNT(0, rules, "client.ip", "::1", "header.user-agent", "x");
    test_expect(test, "api{} api{} good{}");
    assert_int_equal(test->checks[0].scale, 0);
    test = COUNT(0, rules, "client.ip", "::1");
    test_expect(test, "api{} api{} bad{client.class=suspicious} exact{} good{}");
    assert_int_equal(test->checks[0].scale, 50);
    assert_int_equal(test->checks[1].scale, 50);
    assert_int_equal(test->checks[0].scale_kind, WEIR_SCALE_RATE);
    assert_int_equal(test->checks[2].scale, 0);
    for (uint64_t i = 0; i < 5; i++)
        test = COUNT(i * 1000, rules, "client.ip", "::1", "header.user-agent", "curl/8");
    test_expect(test, "api{} api{} bad{client.class=malicious} high{client.score=65}");
    assert_int_equal(test->checks[0].scale, 10);
    weir_rules_unref(rules);
}

TEST("a state is found by a class as by any value")
{
    struct weir_rules *rules = test_load(text);
    struct test_request *test = COUNT(0, rules, "client.ip", "::1");
    struct weir_key_values values = {.count = 1};
    struct weir_scratch *scratch = calloc(1, sizeof *scratch);
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_reason reason;
    values.values[0] = (struct weir_bytes){"suspicious", 10};
    assert_int_equal(weir_rules_key_check(rules, 1, &values, test_secret, scratch, checks, &reason),
                     1);
    assert_memory_equal(checks[0].hash, test->checks[2].hash, sizeof checks[0].hash);
    values.values[0] = (struct weir_bytes){"bad", 3};
    assert_int_equal(weir_rules_key_check(rules, 1, &values, test_secret, scratch, checks, &reason),
                     WEIR_ERR_SYNTAX);
    assert_string_equal(reason.text, "key: no client has this: client.class");
    free(scratch);
    weir_rules_unref(rules);
}

TEST("an explanation scores as a look does")
{
    struct weir_rules *rules = test_load(text);
    struct test_request *test = LOOK(0, rules, "client.ip", "::1", "header.user-agent", "curl/8");
    struct weir_explanation explanations[8];
    memset(&found, 0, sizeof found);
    assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations), 4);
    assert_score(40, WEIR_CLASS_SUSPICIOUS, 2);
    assert_int_equal(explanations[0].scale, 50);
    weir_rules_unref(rules);
}

/* It is what weir makes of a client. */
TEST("a score identifies nobody")
{
    static const struct test_problem_case cases[] = {
        {"identities: { redis: 'redis://127.0.0.1:1' }\n"
         "score: {key: user, signals: [{name: a, when: {method: X}, add: 1}]}\n"
         "identify: [client.score, client.class, client.ip]\n"
         "limits: []\n",
         "3:12: `client.score` cannot identify a caller; `client.ip`, a header or another "
         "attribute "
         "can\n"
         "3:26: `client.class` cannot identify a caller; `client.ip`, a header or another "
         "attribute "
         "can\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("new rules inherit the behaviour of the same key")
{
    static const char other_key[] =
        "score: {key: user, signals: [{name: a, same_route: 2, add: 1}]}\nlimits: []\n";
    static const char none[] =
        "score: {key: user, signals: [{name: a, when: {method: X}, add: 1}]}\nlimits: []\n";
    struct weir_rules *rules = test_load(text), *again = test_load(text);
    struct weir_rules *other = test_load(other_key), *without = test_load(none);
    COUNT(0, rules, "client.ip", "::1", "path", "/a");
    weir_rules_inherit(again, rules);
    weir_rules_inherit(other, rules);
    weir_rules_inherit(without, rules);
    weir_rules_inherit(other, without);
    weir_rules_unref(rules);
    COUNT(0, again, "client.ip", "::1", "path", "/a");
    assert_int_equal(found.habit.same_route, 2);
    COUNT(0, other, "user", "u", "path", "/a");
    assert_int_equal(found.habit.same_route, 1);
    assert_null(weir_rules_score(without)->behaviour);
    weir_rules_unref(again);
    weir_rules_unref(other);
    weir_rules_unref(without);
}

/* --- The model -------------------------------------------------------------------------------- */

#define SIGNALS 12
#define CLIENTS 6
#define HISTORY 4000

/* A signal of the model: what it looks at, as numbers. */
struct model_signal {
    int agent;  /* 0: any; 1: absent; 2: of curl; 3: not of Mozilla */
    int method; /* 0: any; else methods[method] */
    unsigned over, same_route, add;
};

static const char *const methods[] = {"", "GET", "POST"};
static const char *const agents[] = {NULL, "curl/8", "Mozilla/5", "", "bot"};
static const char *const addresses[CLIENTS] = {"192.0.2.1",   "192.0.2.2",       "::1",
                                               "2001:db8::1", "2001:db8:0:1::1", "10.0.0.1"};
static const char *const paths[] = {"/a", "/b"};

struct model {
    struct model_signal signals[SIGNALS];
    unsigned suspicious, malicious;
    uint64_t at_ms[CLIENTS][HISTORY];
    int path[CLIENTS][HISTORY];
    unsigned count[CLIENTS];
};

static unsigned draw_up_to(uint64_t *drawn, unsigned most)
{
    return (unsigned)draw_below(drawn, most + 1);
}

static struct weir_rules *make_rules(struct model *model, uint64_t *drawn)
{
    static char rules[8192];
    size_t used = (size_t)sprintf(rules, "score:\n  key: [client.ip/64]\n  signals:\n");
    for (int i = 0; i < SIGNALS; i++) {
        struct model_signal *signal = &model->signals[i];
        *signal = (struct model_signal){(int)draw_up_to(drawn, 3), (int)draw_up_to(drawn, 2),
                                        draw_below(drawn, 3) == 0 ? 2 + draw_up_to(drawn, 4) : 0,
                                        draw_below(drawn, 3) == 0 ? 2 + draw_up_to(drawn, 4) : 0,
                                        1 + draw_up_to(drawn, 99)};
        if (signal->agent + signal->method == 0)
            signal->method = 1;
        used += (size_t)sprintf(rules + used, "  - {name: s%d, add: %u, when: {", i, signal->add);
        if (signal->agent > 0)
            used += (size_t)sprintf(rules + used, "header.user-agent: %s%s",
                                    signal->agent == 1   ? "absent"
                                    : signal->agent == 2 ? "'curl/*'"
                                                         : "{not: 'Mozilla*'}",
                                    signal->method > 0 ? ", " : "");
        if (signal->method > 0)
            used += (size_t)sprintf(rules + used, "method: %s", methods[signal->method]);
        used += (size_t)sprintf(rules + used, "}");
        if (signal->over > 0)
            used +=
                (size_t)sprintf(rules + used, ", regular: {over: %u, within: 20ms}", signal->over);
        if (signal->same_route > 0)
            used += (size_t)sprintf(rules + used, ", same_route: %u", signal->same_route);
        used += (size_t)sprintf(rules + used, "}\n");
    }
    model->suspicious = 1 + draw_up_to(drawn, 100);
    model->malicious = model->suspicious + 1 + draw_up_to(drawn, 200);
    used += (size_t)sprintf(rules + used, "  classes: {suspicious: %u, malicious: %u}\n",
                            model->suspicious, model->malicious);
    sprintf(rules + used, "limits: []\n");
    return test_load(rules);
}

static unsigned steady(const struct model *model, unsigned client)
{
    const uint64_t *at = model->at_ms[client];
    unsigned run = 0;
    for (unsigned i = model->count[client] - 1; i >= 1; i--) {
        uint64_t gap = at[i] - at[i - 1];
        if (gap < 20)
            return run;
        run++;
        if (i == 1)
            return run;
        uint64_t before = at[i - 1] - at[i - 2];
        if (before < 20 || (gap > before ? gap - before : before - gap) >= 20)
            return run;
    }
    return run;
}

static unsigned same_route(const struct model *model, unsigned client)
{
    unsigned count = model->count[client], run = 1;
    for (unsigned i = count - 1; i >= 1; i--, run++)
        if (model->path[client][i] != model->path[client][i - 1])
            return run;
    return run;
}

static unsigned model_score(const struct model *model, unsigned client, int agent, int method)
{
    unsigned score = 0;
    for (int i = 0; i < SIGNALS; i++) {
        const struct model_signal *signal = &model->signals[i];
        const char *text_of = agents[agent] && *agents[agent] ? agents[agent] : NULL;
        bool holds = signal->agent == 0 || (signal->agent == 1 && !text_of) ||
                     (signal->agent == 2 && text_of && strncmp(text_of, "curl/", 5) == 0) ||
                     (signal->agent == 3 && text_of && strncmp(text_of, "Mozilla", 7) != 0);
        holds = holds && (signal->method == 0 || signal->method == method);
        holds = holds && steady(model, client) >= signal->over;
        holds = holds && same_route(model, client) >= signal->same_route;
        score += holds ? signal->add : 0;
    }
    return score;
}

TEST("random requests have the score of the model")
{
    struct model *model = malloc(sizeof *model);
    uint64_t drawn = 21;
    unsigned seen[WEIR_CLASSES] = {0};
    assert_non_null(model);
    for (int round = 0; round < 60; round++) {
        memset(model, 0, sizeof *model);
        struct weir_rules *rules = make_rules(model, &drawn);
        uint64_t now_ms = 0;
        for (int i = 0; i < 400; i++) {
            unsigned client = (unsigned)draw_below(&drawn, CLIENTS);
            int agent = (int)draw_below(&drawn, 5), method = 1 + (int)draw_below(&drawn, 2);
            int path = draw_below(&drawn, 8) == 0;
            now_ms += draw_below(&drawn, 4) == 0 ? draw_below(&drawn, 200) : 10;
            model->at_ms[client][model->count[client]] = now_ms;
            model->path[client][model->count[client]++] = path;
            const char *pairs[] = {"client.ip",
                                   addresses[client],
                                   "method",
                                   methods[method],
                                   "path",
                                   paths[path],
                                   "header.user-agent",
                                   agents[agent],
                                   NULL};
            if (!agents[agent])
                pairs[6] = NULL;
            behave(test_ask(rules, pairs), now_ms, RULES_BEHAVES_COUNT);
            unsigned score = model_score(model, client, agent, method);
            assert_int_equal(found.score, score);
            assert_int_equal(found.class, score >= model->malicious    ? WEIR_CLASS_MALICIOUS
                                          : score >= model->suspicious ? WEIR_CLASS_SUSPICIOUS
                                                                       : WEIR_CLASS_LEGITIMATE);
            seen[found.class]++;
        }
        weir_rules_unref(rules);
    }
    for (int i = 0; i < WEIR_CLASSES; i++)
        assert_true(seen[i] > 500);
    free(model);
}

RUN_TESTS()
