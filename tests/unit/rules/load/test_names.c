/* SPDX-License-Identifier: Apache-2.0 */
/* The names of attributes that a file may use: see rules/load/names.h. */
#include "rules_test.h"
#include "test.h"

#include "rules/known_names.h"

/* The message about a name that is like no other. */
#define UNDECLARED(name)                                                                           \
    "unknown attribute `" name "`; declare it at the top of the file, `attributes: [" name         \
    "]`, or write `header." name "`, `query." name "` or `cookie." name "`\n"

#define LIMIT(part) "limits: [{ name: a, " part ", rate: 1/s }]\n"

TEST("a name that is not declared is deprecated")
{
    test_deprecated(LIMIT("key: [tenant]"), "1:27: " UNDECLARED("tenant"));
    test_deprecated(LIMIT("key: [], match: { tenant: x }"), "1:39: " UNDECLARED("tenant"));
    test_deprecated(LIMIT("key: [], cost: { from: tokens, max: 9 }"),
                    "1:44: " UNDECLARED("tokens"));
    test_deprecated(LIMIT("key: [user], on_missing: tenant"), "1:46: " UNDECLARED("tenant"));
}

TEST("a name that may be mistyped is asked about")
{
    test_deprecated(LIMIT("key: [], match: { paht: /login }"),
                    "1:39: unknown attribute `paht`; did you mean `path`? An attribute of your own "
                    "is declared: `attributes: [paht]`\n");
    test_deprecated("attributes: [tenant]\n" LIMIT("key: [tennant]"),
                    "2:27: unknown attribute `tennant`; did you mean `tenant`? An attribute of "
                    "your own is declared: `attributes: [tennant]`\n");
}

TEST("a name is reported once")
{
    test_deprecated(
        "limits: [{ name: a, key: [tool], rate: 1/s }, { name: b, key: [tool], rate: 2/s "
        "}]\n",
        "1:27: " UNDECLARED("tool"));
}

TEST("declared and built in names are accepted")
{
    test_deprecated("attributes: [tenant, tool]\n" LIMIT("key: [tenant, tool]"), "");
    test_deprecated("attributes: tenant\n" LIMIT("key: [tenant]"), "");
    test_deprecated("attributes: []\n" LIMIT("key: [user]"), "");
    test_deprecated(
        LIMIT("key: [method, host, client.ip/64, user, org, plan, header.x-a, query.b]"), "");
    test_deprecated(LIMIT("key: [cookie.c, tls.client.name, tls.client.cn, source.principal, "
                          "connection.requests]"),
                    "");
    test_deprecated("limits: [{ name: a, match: { path: /a/:b }, key: [path.b], rate: 1/s }]\n",
                    "");
}

TEST("declarations are checked")
{
    static const struct test_problem_case cases[] = {
        {"attributes: [path]\nlimits: []\n",
         "1:14: the attribute `path` is built in; remove it from `attributes`\n"},
        {"attributes: [header.x-a]\nlimits: []\n",
         "1:14: the attribute `header.x-a` is built in; remove it from `attributes`\n"},
        {"attributes: [a, a]\nlimits: []\n", "1:17: `a` is twice in `attributes`\n"},
        {"attributes: { a: b }\nlimits: []\n", "1:13: `attributes` must be a list of names\n"},
        {"attributes: [[a]]\nlimits: []\n", "1:14: `attributes` must be a text, not a list\n"},
        {"attributes: [ip]\nlimits: []\n",
         "1:14: unknown attribute `ip`; did you mean `client.ip`?\n"},
        {"attributes: [\"a b\"]\nlimits: []\n",
         "1:14: `a b` is not the name of an attribute: use letters, digits, `.`, `_` and `-`\n"},
        {"attributes: [\"jwt.a b\"]\nlimits: []\n",
         "1:14: `a b` is not the name of a claim: use 1 to 124 of a-z, A-Z, 0-9, ._-:/@#~+\n"},
        {"strict_attributes: 1\nlimits: []\n",
         "1:20: `strict_attributes` must be true or false, not `1`\n"},
    };
    TEST_REFUSED_ALL(cases);
}

TEST("names of a request are known or not")
{
    struct weir_rules *rules = test_load("attributes: [tenant]\n" LIMIT("key: [user]"));
    assert_true(rules_is_declared(rules, (struct weir_bytes){"tenant", 6}));
    assert_false(rules_is_declared(rules, (struct weir_bytes){"tenan", 5}));
    assert_false(rules_is_declared(rules, (struct weir_bytes){"path", 4}));
    assert_true(rules_is_built_in((struct weir_bytes){"path", 4}));
    assert_true(rules_is_built_in((struct weir_bytes){"header.x", 8}));
    assert_false(rules_is_built_in((struct weir_bytes){"header.", 7}));
    assert_false(rules_is_built_in((struct weir_bytes){"", 0}));
    assert_string_equal(rules_nearest_name(rules, (struct weir_bytes){"tennant", 7}), "tenant");
    assert_string_equal(rules_nearest_name(rules, (struct weir_bytes){"methd", 5}), "method");
    assert_null(rules_nearest_name(rules, (struct weir_bytes){"something", 9}));
    weir_rules_unref(rules);
}

RUN_TESTS()
