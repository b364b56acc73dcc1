/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of the index: few limits share one place, however many the file has. */
#include "rules/compiled.h"
#include "rules/source.h"
#include "rules_test.h"
#include "test.h"

enum { LIMITS = 10000 };

static char text[LIMITS * 160];

/* The most limits that one node holds, the root and then the others. */
static void expect_postings(const struct weir_rules *rules, uint32_t in_root, uint32_t elsewhere)
{
    const struct rules_index *index = &rules->index;
    uint32_t most = 0, all = 0;
    assert_int_equal(index->nodes[0].posting_count, in_root);
    for (uint32_t i = 0; i < index->node_count; i++) {
        uint32_t count = index->nodes[i].posting_count;
        most = i > 0 && count > most ? count : most;
        all += count;
    }
    assert_true(most <= elsewhere);
    assert_true(all >= rules->rule_count);
}

/* A limit for everything, and one for each pair of 0..99 and 0..99: "{path: /a<first>/<second>}".
 */
static struct weir_rules *load_pairs(const char *first, const char *second, const char *end)
{
    size_t used = (size_t)sprintf(text, "limits:\n- {name: all, key: [], rate: 1/s}\n");
    for (int i = 1; i < LIMITS; i++) {
        used +=
            (size_t)sprintf(text + used, "- {name: l%d, key: [], rate: 1/s, match: {%s%d%s%d%s}}\n",
                            i, first, i / 100, second, i % 100, end);
    }
    return test_load(text);
}

TEST("limits with values of their own stand alone")
{
    struct weir_rules *rules = load_pairs("method: GET, path: /r/", "/", "");
    expect_postings(rules, 1, 1);
    test_expect(ASK(rules, "method", "GET", "path", "/r/7/70"), "all{} l770{}");
    test_expect(ASK(rules, "method", "GET", "path", "/r/0/0"), "all{}");
    test_expect(ASK(rules, "method", "PUT", "path", "/r/7/70"), "all{}");
    weir_rules_unref(rules);
}

TEST("limits that share each value are reported apart by two")
{
    struct weir_rules *rules = load_pairs("host: h", ", path: /p/", "");
    expect_postings(rules, 1, RULES_POSTINGS_MAX);
    test_expect(ASK(rules, "host", "h7", "path", "/p/70"), "all{} l770{}");
    test_expect(ASK(rules, "host", "h0", "path", "/p/0"), "all{}");
    test_expect(ASK(rules, "host", "h7"), "all{}");
    weir_rules_unref(rules);
}

TEST("limits by address stand alone")
{
    struct weir_rules *rules = load_pairs("client.ip: 10.", ".", ".0/24");
    expect_postings(rules, 1, 1);
    test_expect(ASK(rules, "client.ip", "10.7.70.9"), "all{} l770{}");
    test_expect(ASK(rules, "client.ip", "10.7.170.9"), "all{}");
    weir_rules_unref(rules);
}

TEST("the caller is asked for last")
{
    struct weir_rules *rules = load_pairs("user: u", ", header.t: t", "");
    /* Users are as rare as tenants, but knowing a user may cost a SHA-256. */
    assert_int_equal(rules->index.nodes[0].dimension_count, 1);
    assert_int_equal(rules->index.dimensions[rules->index.nodes[0].dimension],
                     weir_rules_source(rules, "header.t", 8).attribute);
    test_expect(ASK(rules, "user", "u7", "header.t", "t70"), "all{} l770{}");
    test_expect(ASK(rules, "user", "u7", "header.t", "x"), "all{}");
    weir_rules_unref(rules);
}

TEST("few limits need no tree")
{
    struct weir_rules *rules = test_load("limits:\n"
                                         "- {name: a, match: {path: /a}, key: [], rate: 1/s}\n"
                                         "- {name: b, match: {path: /b}, key: [], rate: 1/s}\n");
    expect_postings(rules, 2, 0);
    assert_int_equal(rules->index.node_count, 1);
    weir_rules_unref(rules);
}

/* Loads `count` limits with "{<field>: <value><number>}". */
static struct weir_rules *load_few(int count, const char *field, const char *value)
{
    size_t used = (size_t)sprintf(text, "limits:\n");
    for (int i = 0; i < count; i++)
        used +=
            (size_t)sprintf(text + used, "- {name: l%d, key: [], rate: 1/s, match: {%s: %s%d}}\n",
                            i, field, value, i);
    return test_load(text);
}

TEST("more limits than a look up is worth are divided")
{
    struct weir_rules *rules = load_few(RULES_POSTINGS_MAX, "path", "/r");
    expect_postings(rules, RULES_POSTINGS_MAX, 0);
    weir_rules_unref(rules);
    rules = load_few(RULES_POSTINGS_MAX + 1, "path", "/r");
    expect_postings(rules, 0, 1);
    test_expect(ASK(rules, "path", "/r2"), "l2{}");
    weir_rules_unref(rules);
}

TEST("few limits are not divided by caller")
{
    struct weir_rules *rules = load_few(RULES_POSTINGS_MAX_BY_CALLER, "user", "u");
    expect_postings(rules, RULES_POSTINGS_MAX_BY_CALLER, 0);
    test_expect(ASK(rules, "user", "u2"), "l2{}");
    weir_rules_unref(rules);
    rules = load_few(RULES_POSTINGS_MAX_BY_CALLER + 1, "user", "u");
    expect_postings(rules, 0, 1);
    test_expect(ASK(rules, "user", "u2"), "l2{}");
    weir_rules_unref(rules);
}

RUN_TESTS()
