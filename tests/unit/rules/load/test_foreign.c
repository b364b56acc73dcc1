/* SPDX-License-Identifier: Apache-2.0 */
/* Values that look like patterns of other programs (rules/foreign.h), and `ignore_case`. */
#include "rules/foreign.h"
#include "test.h"

#include "rules_test.h"

#define LIMIT(match) "limits: [{ name: a, key: [], rate: 9/s, match: { " match " } }]\n"

/* What the loader says of a value of header.user-agent; NULL: nothing. */
static void expect_of(uint16_t attribute, const char *text, const char *what, size_t at)
{
    struct rules_foreign found;
    bool is = rules_find_foreign(weir_bytes_of(text), attribute, &found);
    assert_int_equal(is, what != NULL);
    if (what) {
        assert_string_equal(found.what, what);
        assert_int_equal(found.at, at);
    }
}

static void expect(const char *text, const char *what, size_t at)
{
    expect_of(WEIR_ATTR_FIRST_NAMED, text, what, at);
}

TEST("expressions and alternatives are found")
{
    expect("~*(bot)", "`~` at the beginning", 0);
    expect("^X", "`^` at the beginning", 0);
    expect("(?i)bot", "`(?` at the beginning", 0);
    expect("bot.*", "`.*`", 3);
    expect("*[Bb]ot*", "`[…]`", 1);
    expect("*.{php,asp}", "`{a,b}`", 2);
    expect_of(WEIR_ATTR_METHOD, "GET|POST", "`|`", 3);
}

TEST("what stands for itself is left alone")
{
    static const char *const texts[] = {"",
                                        "*",
                                        "Mozilla/5.0 (X11*",
                                        "a|b",
                                        "$5",
                                        "a^b",
                                        "a~b",
                                        "*.example.com",
                                        "[",
                                        "[]",
                                        "a[b",
                                        "]a[",
                                        "{a}",
                                        "{a,b",
                                        "{",
                                        "a,b",
                                        "(bot)",
                                        "x (?)",
                                        "%",
                                        "\\~*(bot)",
                                        "\\^X",
                                        "\\(?i)b",
                                        "bot\\.*",
                                        "*\\[Bb]*",
                                        "*.\\{a,b}",
                                        "+?"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], NULL, 0);
    expect_of(WEIR_ATTR_METHOD, "GET\\|POST", NULL, 0);
    expect_of(WEIR_ATTR_HOST, "[2001:db8::1]", NULL, 0);
}

TEST("they are deprecated in each attribute")
{
    test_deprecated(LIMIT("header.user-agent: '~*(bot)'"),
                    "1:69: header.user-agent `~*(bot)`: `~` at the beginning is not special here, "
                    "only `*` is, so that it would match this very text; give a list of values, "
                    "and `ignore_case: true` for any case, or write `\\` before it if it is "
                    "meant\n");
    test_deprecated(LIMIT("method: GET|POST"),
                    "1:58: method `GET|POST`: `|` is not special here, only `*` is, so that it "
                    "would match this very text; give a list of values, and `ignore_case: true` "
                    "for any case, or write `\\` before it if it is meant\n");
    test_deprecated(LIMIT("path: /:f, path.f: '*.{a,b}'"),
                    "1:69: path.f `*.{a,b}`: `{a,b}` is not special here, only `*` is, so that it "
                    "would match this very text; give a list of values, and `ignore_case: true` "
                    "for any case, or write `\\` before it if it is meant\n");
    test_deprecated(LIMIT("header.user-agent: '\\~*(bot)'"), "");
}

TEST("parameters and anchors of other routers are deprecated in paths")
{
    test_deprecated(LIMIT("path: /users/<int:id>/x"),
                    "1:56: path pattern `/users/<int:id>/x`: `<name>` is not special here, so that "
                    "it would match this very text; `:name` or `*` matches one segment, `**` the "
                    "rest; write `%3C` if it is meant\n");
    test_deprecated(LIMIT("path: /login$"),
                    "1:56: path pattern `/login$`: `$` at the end is not special here, so that it "
                    "would match this very text; `:name` or `*` matches one segment, `**` the "
                    "rest; write `%24` if it is meant\n");
    test_deprecated("limits: [{ name: a, key: [], rate: 9/s, cost: { 'GET /<id>': 2 } }]\n",
                    "1:49: path pattern `/<id>`: `<name>` is not special here, so that it would "
                    "match this very text; `:name` or `*` matches one segment, `**` the rest; "
                    "write `%3C` if it is meant\n");
    test_deprecated(LIMIT("path: [/$metadata, /a$/b, /%3Cid%3E, /login%24, '/x(1)', /**]"), "");
}

/* Whether a request with this value meets the limit. */
static void expect_match(const char *match, const char *name, const char *value, bool meets)
{
    char text[512];
    snprintf(text, sizeof text, LIMIT("%s"), match);
    struct weir_rules *rules = test_load(text);
    struct test_request *test = test_ask(rules, (const char *const[]){name, value, NULL});
    test_expect(test, meets ? "a{}" : "");
    weir_rules_unref(rules);
}

TEST("a match may ignore case")
{
    static const char globs[] = "header.a: ['*Bot*', 'Spider'], ignore_case: true";
    expect_match(globs, "header.a", "a gOOGLEBOT/1", true);
    expect_match(globs, "header.a", "SPIDER", true);
    expect_match(globs, "header.a", "spiders", false);
    expect_match("header.a: '*Bot*', ignore_case: false", "header.a", "a bot", false);
    expect_match("header.a: '*Bot*', ignore_case: false", "header.a", "a Bot", true);
    expect_match("method: get, ignore_case: true", "method", "GET", true);
    expect_match("header.a: { not: BOT }, ignore_case: true", "header.a", "bot", false);
    expect_match("header.a: { not: BOT }, ignore_case: true", "header.a", "bots", true);
    expect_match("path: '/:f', path.f: '*.PHP', ignore_case: true", "path", "/a.pHp", true);
    expect_match("path: '/:f', path.f: '*.PHP', ignore_case: true", "path", "/a.phq", false);
    expect_match("header.a: '\\*B', ignore_case: true", "header.a", "*b", true);
    expect_match("header.a: '\\*B', ignore_case: true", "header.a", "bb", false);
}

TEST("ignoring case needs something that has case")
{
    static const struct test_problem_case cases[] = {
        {LIMIT("host: a.example, ignore_case: true"),
         "1:48: `ignore_case` has no effect here: hosts have no case, paths follow `paths`, and "
         "weir's own words are exact\n"},
        {LIMIT("ignore_case: true"),
         "1:48: `ignore_case` has no effect here: hosts have no case, paths follow `paths`, and "
         "weir's own words are exact\n"},
        {LIMIT("user: ann, ignore_case: 1"),
         "1:74: `ignore_case` must be true or false, not `1`\n"},
    };
    TEST_REFUSED_ALL(cases);
}

RUN_TESTS()
