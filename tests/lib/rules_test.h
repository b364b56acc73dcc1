/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the rules share: loading a text, making a request, reading checks. */
#ifndef RULES_TEST_H
#define RULES_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/version.h>

#include "core/bytes.h"
#include "rules/match/explain.h"
#include "rules/rules.h"
#include "rules/source.h"

static const uint64_t test_secret[2] = {UINT64_C(0x0123456789ABCDEF), UINT64_C(0xFEDCBA9876543210)};

#define TEST_PROBLEMS_MAX 65536

/* Loads `text`, and writes "line:column: message\n" for each error, or (not errors_wanted) each
 * thing that is deprecated, to `out`. `strict`: the latter are errors. */
static inline struct weir_rules *test_parse_as(const char *text, bool strict, bool errors_wanted,
                                               char out[TEST_PROBLEMS_MAX])
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    size_t used = 0;
    out[0] = '\0';
    problems.strict = strict;
    int err = weir_rules_parse(&rules, "test.yaml", "", text, strlen(text), &problems);
    uint32_t errors = problems.count - problems.deprecated;
    for (uint32_t i = 0; i < problems.count; i++) {
        const struct weir_problem *problem = &problems.list[i];
        assert_non_null(problem->file);
        if ((problem->refused_from == NULL) != errors_wanted)
            continue;
        int size = snprintf(out + used, TEST_PROBLEMS_MAX - used, "%u:%u: %s\n", problem->line,
                            problem->column, problem->message);
        assert_true(size > 0 && (size_t)size < TEST_PROBLEMS_MAX - used);
        used += (size_t)size;
    }
    assert_int_equal(err, errors > 0 ? WEIR_ERR_RULES : 0);
    assert_true((rules == NULL) == (err != 0));
    if (rules)
        assert_int_equal(weir_rules_deprecated(rules), problems.deprecated);
    weir_problems_free(&problems);
    return rules;
}

/* Loads `text`; on errors writes "line:column: message\n" for each to `out`. */
static inline struct weir_rules *test_parse(const char *text, char out[TEST_PROBLEMS_MAX])
{
    return test_parse_as(text, false, true, out);
}

/* Loads a text that has no errors. */
static inline struct weir_rules *test_load(const char *text)
{
    static char problems[TEST_PROBLEMS_MAX];
    struct weir_rules *rules = test_parse(text, problems);
    if (rules == NULL)
        print_error("%s", problems);
    assert_non_null(rules);
    return rules;
}

/* Expects exactly these problems. */
static inline void test_refused(const char *text, const char *expected)
{
    static char problems[TEST_PROBLEMS_MAX];
    struct weir_rules *rules = test_parse(text, problems);
    assert_string_equal(problems, expected);
    assert_null(rules);
}

#define TEST_REFUSED_LATER " (weir " WEIR_REFUSED_FROM " will refuse this)\n"

/* Expects that exactly this is deprecated, and that these are the errors of a strict load. */
static inline void test_deprecated(const char *text, const char *expected)
{
    static char problems[TEST_PROBLEMS_MAX], later[TEST_PROBLEMS_MAX];
    const size_t suffix = sizeof TEST_REFUSED_LATER - 1;
    size_t used = 0;
    for (const char *at = expected; *at; at++) {
        assert_true(used + suffix < sizeof later);
        if (*at == '\n')
            memcpy(later + used, TEST_REFUSED_LATER, suffix);
        else
            later[used] = *at;
        used += *at == '\n' ? suffix : 1;
    }
    later[used] = '\0';
    struct weir_rules *rules = test_parse_as(text, false, false, problems);
    assert_string_equal(problems, later);
    assert_non_null(rules);
    weir_rules_unref(rules);
    rules = test_parse_as(text, true, true, problems);
    assert_string_equal(problems, expected);
    assert_true((rules == NULL) == (*expected != '\0'));
    weir_rules_unref(rules);
}

/* Texts, each with its problems: "line:column: message\n". */
struct test_problem_case {
    const char *text, *problems;
};

static inline void test_refused_all(const struct test_problem_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        test_refused(cases[i].text, cases[i].problems);
}
#define TEST_REFUSED_ALL(cases) test_refused_all(cases, sizeof(cases) / sizeof((cases)[0]))

/* One request with its checks. Attributes that no rule reads are dropped, as front ends do. */
struct test_request {
    const struct weir_rules *rules;
    struct weir_request request;
    struct weir_rules_query query; /* of all this */
    struct weir_scratch scratch;
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_identity identity;
    struct weir_reason reason;
    int count;
};

static inline void test_set(struct test_request *test, const char *name, const char *value)
{
    if (strcmp(name, "client.ip") == 0) {
        assert_int_equal(weir_address_parse(&test->request.client, value, strlen(value)), 0);
        return;
    }
    int attribute = weir_rules_source(test->rules, name, strlen(name)).attribute;
    if (attribute >= 0)
        test->request.values[attribute] = weir_bytes_of(value);
}

/* Asks again for tuples: the checks are the same, and so are the texts in the end, when the request
 * is gone. */
static inline void test_tuples(const struct test_request *test)
{
    static struct weir_request request;
    static struct weir_scratch scratch;
    static struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_rules_query query = test->query;
    struct weir_reason reason;
    request = test->request;
    query.request = &request;
    query.scratch = &scratch;
    query.identity = NULL;
    query.reason = &reason;
    query.keep_tuples = true;
    assert_int_equal(weir_rules_checks(&query, checks), test->count);
    memset(&request, 0xa5, sizeof(request));
    for (int i = 0; i < test->count; i++) {
        char room[WEIR_KEY_TEXT_MAX];
        struct weir_bytes key = weir_rules_key_text(test->rules, &checks[i], room);
        assert_memory_equal(checks[i].hash, test->checks[i].hash, sizeof(checks[i].hash));
        assert_int_equal(checks[i].tag, test->checks[i].tag);
        assert_int_equal(checks[i].flags, test->checks[i].flags);
        assert_false(test->checks[i].key_is_tuple);
        assert_int_equal(key.size, test->checks[i].key.size);
        assert_memory_equal(key.data, test->checks[i].key.data, key.size);
    }
}

/* `pairs`: name, value, name, value, …, NULL. One request at a time: it is static, being large. */
static inline struct test_request *test_ask(const struct weir_rules *rules,
                                            const char *const *pairs)
{
    static struct test_request test;
    memset(&test, 0, sizeof(test));
    test.rules = rules;
    test.query = (struct weir_rules_query){.rules = rules,
                                           .request = &test.request,
                                           .secret = test_secret,
                                           .scratch = &test.scratch,
                                           .identity = &test.identity,
                                           .reason = &test.reason};
    weir_request_clear(&test.request, weir_rules_attribute_count(rules));
    for (size_t i = 0; pairs[i] != NULL; i += 2)
        test_set(&test, pairs[i], pairs[i + 1]);
    test.count = weir_rules_checks(&test.query, test.checks);
    test_tuples(&test);
    return &test;
}
#define ASK(rules, ...) test_ask(rules, (const char *const[]){__VA_ARGS__, NULL})
#define ASK_EMPTY(rules) test_ask(rules, (const char *const[]){NULL, NULL})

/* Expects the checks "name{key} name{key}"; an error's text when `count` is negative. */
static inline void test_expect(const struct test_request *test, const char *expected)
{
    char text[16384] = "";
    size_t used = 0;
    if (test->count < 0)
        snprintf(text, sizeof(text), "%d %s", test->count, test->reason.text);
    for (int i = 0; i < test->count; i++) {
        struct weir_rule_info info;
        weir_rules_info(test->rules, test->checks[i].rule, &info);
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%s{%.*s}", i > 0 ? " " : "",
                             info.name, (int)test->checks[i].key.size, test->checks[i].key.data);
    }
    assert_string_equal(text, expected);
}

#endif
