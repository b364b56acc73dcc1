/* SPDX-License-Identifier: Apache-2.0 */
/* `absent`, `not` and `list` in a match. */
#include <unistd.h>

#include "rules_test.h"
#include "temporary.h"
#include "test.h"

/* Asks again with what the front end knows of header fields. */
static struct test_request *supply(struct test_request *test, uint8_t fields)
{
    test->request.fields = fields;
    test->count = weir_rules_checks(&test->query, test->checks);
    return test;
}

#define LIMIT(name, match) "- {name: " name ", match: {" match "}, key: [], rate: 1/s}\n"

TEST("a field is absent only where the front end knows fields")
{
    struct weir_rules *rules =
        test_load("limits:\n" LIMIT("agent", "header.User-Agent: absent")
                      LIMIT("cookie", "header.cookie: absent") LIMIT("user", "user: absent"));
    test_expect(supply(ASK_EMPTY(rules), WEIR_FIELDS_NONE), "user{}");
    test_expect(supply(ASK_EMPTY(rules), WEIR_FIELDS_LOG), "agent{} user{}");
    test_expect(supply(ASK_EMPTY(rules), WEIR_FIELDS_ALL), "agent{} cookie{} user{}");
    test_expect(supply(ASK(rules, "header.user-agent", "x", "user", "u"), WEIR_FIELDS_ALL),
                "cookie{}");
    test_expect(supply(ASK(rules, "header.user-agent", "", "header.cookie", ""), WEIR_FIELDS_ALL),
                "agent{} user{}"); /* an empty value is a value, but of User-Agent */
    weir_rules_unref(rules);
}

TEST("absent may be one of several values")
{
    struct weir_rules *rules =
        test_load("limits:\n" LIMIT("tool", "header.user-agent: [absent, 'curl/*', wget]"));
    test_expect(supply(ASK_EMPTY(rules), WEIR_FIELDS_ALL), "tool{}");
    test_expect(supply(ASK(rules, "header.user-agent", "curl/8"), WEIR_FIELDS_ALL), "tool{}");
    test_expect(supply(ASK(rules, "header.user-agent", "wget"), WEIR_FIELDS_NONE), "tool{}");
    test_expect(supply(ASK(rules, "header.user-agent", "firefox"), WEIR_FIELDS_ALL), "");
    test_expect(supply(ASK(rules, "header.user-agent", "absent"), WEIR_FIELDS_ALL), "");
    weir_rules_unref(rules);
}

TEST("a value called absent is escaped")
{
    struct weir_rules *rules = test_load("limits:\n" LIMIT("a", "header.x: '\\absent'"));
    test_expect(supply(ASK(rules, "header.x", "absent"), WEIR_FIELDS_ALL), "a{}");
    test_expect(supply(ASK_EMPTY(rules), WEIR_FIELDS_ALL), "");
    weir_rules_unref(rules);
}

TEST("not needs a value that is none of these")
{
    struct weir_rules *rules = test_load(
        "limits:\n" LIMIT("ja4", "header.x-ja4: {not: 't13d*'}")
            LIMIT("method", "method: {not: [GET, HEAD]}") LIMIT("any", "header.x: {not: absent}")
                LIMIT("other", "header.x: {not: [absent, a]}") LIMIT("user", "user: {not: root}"));
    test_expect(supply(ASK_EMPTY(rules), WEIR_FIELDS_ALL), "");
    test_expect(supply(ASK(rules, "header.x-ja4", "t13d1"), WEIR_FIELDS_ALL), "");
    test_expect(supply(ASK(rules, "header.x-ja4", "t12"), WEIR_FIELDS_NONE), "ja4{}");
    test_expect(ASK(rules, "method", "POST"), "method{}");
    test_expect(ASK(rules, "method", "HEAD"), "");
    test_expect(ASK(rules, "header.x", "a"), "any{}");
    test_expect(ASK(rules, "header.x", "b", "user", "root"), "any{} other{}");
    test_expect(ASK(rules, "user", "bob"), "user{}");
    weir_rules_unref(rules);
}

TEST("not works on paths captures hosts and addresses")
{
    struct weir_rules *rules =
        test_load("limits:\n" LIMIT("path", "path: {not: [/health, '/static/**']}")
                      LIMIT("capture", "path: '/u/:id', path.id: {not: 'me*'}")
                          LIMIT("host", "host: {not: example.com}")
                              LIMIT("net", "client.ip: {not: [10.0.0.0/8, '2001:db8::/32']}"));
    test_expect(ASK_EMPTY(rules), "");
    test_expect(ASK(rules, "path", "/health"), "");
    test_expect(ASK(rules, "path", "/static/a/b"), "");
    test_expect(ASK(rules, "path", "/u/7"), "path{} capture{}");
    test_expect(ASK(rules, "path", "/u/me"), "path{}");
    test_expect(ASK(rules, "path", "/v/7"), "path{}");
    test_expect(ASK(rules, "host", "EXAMPLE.com:80"), "");
    test_expect(ASK(rules, "host", "example.org"), "host{}");
    test_expect(ASK(rules, "client.ip", "10.9.9.9"), "");
    test_expect(ASK(rules, "client.ip", "2001:db8::1"), "");
    test_expect(ASK(rules, "client.ip", "11.9.9.9"), "net{}");
    weir_rules_unref(rules);
}

TEST("patterns that must not hold name no segments")
{
    test_refused("limits:\n" LIMIT("a", "path: {not: '/u/:id'}, path.id: 'x*'"),
                 "2:44: `path.id`: the `path` of this limit's match names no `:id`\n");
}

TEST("explanations say what is required")
{
    struct weir_rules *rules = test_load("limits:\n" LIMIT("a", "header.x: [absent, y]")
                                             LIMIT("b", "header.x: {not: [z, y]}"));
    struct test_request *test = supply(ASK(rules, "header.x", "z"), WEIR_FIELDS_ALL);
    struct weir_explanation explanations[2];
    char text[WEIR_EXPLANATION_TEXT_MAX];
    assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations), 0);
    weir_explanation_text(rules, &explanations[0], text);
    assert_string_equal(text, "header.x is `z`; wanted `absent`, `y`");
    weir_explanation_text(rules, &explanations[1], text);
    assert_string_equal(text, "header.x is `z`; wanted not `z`, `y`");
    weir_rules_unref(rules);
}

TEST("many limits with not and absent are found")
{
    static char text[16384];
    size_t used = (size_t)sprintf(text, "limits:\n");
    for (int i = 0; i < 60; i++)
        used += (size_t)sprintf(text + used,
                                "- {name: l%d, match: {header.x: {not: v%d}, path: /p%d}, key: [], "
                                "rate: 1/s}\n",
                                i, i % 7, i % 30);
    struct weir_rules *rules = test_load(text);
    test_expect(ASK(rules, "path", "/p8", "header.x", "v1"), "l38{}");
    test_expect(ASK(rules, "path", "/p8", "header.x", "v5"), "l8{} l38{}");
    weir_rules_unref(rules);
    for (int i = 60; i < 66; i++)
        used += (size_t)sprintf(
            text + used, "- {name: l%d, match: {header.x: absent}, key: [], rate: 1/s}\n", i);
    rules = test_load(text);
    test_expect(supply(ASK(rules, "path", "/p8"), WEIR_FIELDS_ALL),
                "l60{} l61{} l62{} l63{} l64{} l65{}");
    weir_rules_unref(rules);
}

/* --- Lists ------------------------------------------------------------------------------------ */

static char list[TEMPORARY_MAX];

static int make_list(void **state)
{
    int file = temporary_file(list);
    static const char lines[] = "# bad\n192.0.2.0/24\n2001:db8:1::/48\n198.51.100.7\n";
    bool written = write(file, lines, sizeof lines - 1) == (ssize_t)sizeof lines - 1;
    return written ? close(file) : -1;
}

static const char *with_list(const char *text)
{
    return temporary_in_text(text, list);
}

#define STANDING                                                                                   \
    "standing:\n  by: [client.ip/64, user, header.x-api-key]\n  lists:\n"                          \
    "  - {file: @, by: client.ip, level: warned, name: bad}\n"                                     \
    "  - {file: @, by: user, level: warned, name: users}\n"                                        \
    "  - {file: @, by: header.x-api-key, level: warned}\n"                                         \
    "limits:\n"

TEST("a list holds for its networks and values")
{
    struct weir_rules *rules = test_load(
        with_list(STANDING LIMIT("in", "list: bad") LIMIT("out", "list: {not: [bad]}")
                      LIMIT("users", "list: users") LIMIT("both", "list: bad, method: GET")));
    test_expect(ASK_EMPTY(rules), "");
    test_expect(ASK(rules, "client.ip", "192.0.2.200", "method", "GET"), "in{} both{}");
    test_expect(ASK(rules, "client.ip", "192.0.3.1"), "out{}");
    test_expect(ASK(rules, "client.ip", "198.51.100.7"), "in{}");
    test_expect(ASK(rules, "client.ip", "2001:db8:1:2::3"), "in{}");
    test_expect(ASK(rules, "client.ip", "2001:db8:2::3"), "out{}");
    test_expect(ASK(rules, "user", "198.51.100.7"), "users{}"); /* values are texts */
    test_expect(ASK(rules, "user", "198.51.100.8"), "");
    weir_rules_unref(rules);
}

TEST("a list without a name has that of its file")
{
    char text[8192], name[TEMPORARY_MAX];
    const char *base = strrchr(list, '/') + 1;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(base, "."), base);
    snprintf(text, sizeof text, STANDING "- {name: l, match: {list: %s}, key: [], rate: 1/s}\n",
             name);
    struct weir_rules *rules = test_load(with_list(text));
    test_expect(ASK(rules, "header.x-api-key", "198.51.100.7"), "l{}");
    test_expect(ASK(rules, "header.x-api-key", "x", "client.ip", "198.51.100.7"), "");
    weir_rules_unref(rules);
}

TEST("mistakes in lists are named")
{
    static const struct test_problem_case cases[] = {
        {LIMIT("l", "list: bda"),
         "8:27: no list of `standing` is called `bda`; did you mean `bad`?\n"},
        {LIMIT("l", "list: [bad, users]"),
         "8:33: lists that are named together must have the same `by`\n"},
        {LIMIT("l", "list: []"), "8:27: `list` must be the name of a list, or several of them\n"},
        {LIMIT("l", "list: {nto: bad}"),
         "8:27: `list` must be the name of a list, or several of them\n"
         "8:28: a value of a match has no key `nto`; did you mean `not`?\n"},
        {LIMIT("l", "header.x: {no: x}"),
         "8:31: a value of a match is a text, a list, or `{ not: … }`\n"
         "8:32: a value of a match has no key `no`; did you mean `not`?\n"},
        {LIMIT("l", "header.x: {not: {not: x}}"),
         "8:37: `not` must be a value or a list of values\n"},
        {LIMIT("l", "header.x: {not: []}"),
         "8:37: `header.x` is an empty list: nothing would match\n"},
        {LIMIT("l", "standing: absent"), "8:31: `standing` is never absent\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%s", STANDING, cases[i].text);
        test_refused(with_list(text), cases[i].problems);
    }
    test_refused("limits:\n" LIMIT("l", "list: x"),
                 "2:27: `list` names one of the `lists` of `standing:`, which has none\n");
    test_refused(
        with_list("standing: {by: user, lists: [{file: @, by: user, level: warned, name: a},\n"
                  " {file: @, by: user, level: warned, name: a}]}\nlimits: []\n"),
        "2:63: the name `a` is given to two lists\n");
    char twice[8192];
    snprintf(twice, sizeof twice,
             "standing: {by: user, lists: [{file: @, by: user, level: warned},\n"
             " {file: @, by: user, level: warned}]}\n"
             "limits: [{name: l, match: {list: %s}, key: [], rate: 1/s}]\n",
             strrchr(list, '/') + 1);
    char expected[256];
    snprintf(expected, sizeof expected,
             "3:34: two lists are called `%s`; give one of them a `name`\n",
             strrchr(list, '/') + 1);
    test_refused(with_list(twice), expected);
}

static int remove_list(void **state)
{
    return unlink(list);
}

RUN_TESTS_WITH(make_list, remove_list)
