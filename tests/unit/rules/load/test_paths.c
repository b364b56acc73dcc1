/* SPDX-License-Identifier: Apache-2.0 */
/* `paths`: parameters, case and trailing slashes, in all that reads a path. */
#include "rules_test.h"
#include "test.h"

#define PATHS                                                                                      \
    "- {name: login, match: {path: /login}, key: [], rate: 1/s}\n"                                 \
    "- {name: file, match: {path: '/files/:name', path.name: 'a*'}, key: [path, path.name], "      \
    "rate: 1/s}\n"

TEST("by default parameters are cut off wherever a path is read")
{
    struct weir_rules *rules = test_load("limits:\n" PATHS);
    test_expect(ASK(rules, "path", "/login;x"), "login{}");
    test_expect(ASK(rules, "path", "/login;x?y;z"), "login{}");
    test_expect(ASK(rules, "path", "/login%3Bx"), "login{}");
    test_expect(ASK(rules, "path", "/login/;x"), "");
    test_expect(ASK(rules, "path", "/files;v=1/a;v=2"), "file{path=/files/a,path.name=a}");
    test_expect(ASK(rules, "path", "/x/..;/login"), "-3 path: parameters (`;`) on a dot segment");
    test_expect(ASK(rules, "path", "/;x/login"), "-3 path: a segment of parameters (`;`)");
    test_expect(ASK(rules, "path", "/Login;x"), "");
    weir_rules_unref(rules);
}

TEST("kept parameters are part of their segment")
{
    struct weir_rules *rules = test_load("paths: {parameters: keep}\nlimits:\n" PATHS);
    test_expect(ASK(rules, "path", "/login;x"), "");
    test_expect(ASK(rules, "path", "/login"), "login{}");
    test_expect(ASK(rules, "path", "/files/a;v=2"), "file{path=/files/a;v=2,path.name=a;v=2}");
    weir_rules_unref(rules);
    rules = test_load("paths: {parameters: strip, case: sensitive, trailing_slash: exact}\n"
                      "limits:\n" PATHS);
    test_expect(ASK(rules, "path", "/login;x"), "login{}");
    test_expect(ASK(rules, "path", "/login/"), "");
    test_expect(ASK(rules, "path", "/Login"), "");
    weir_rules_unref(rules);
}

TEST("without case keys and captures are in lower case")
{
    struct weir_rules *rules =
        test_load("paths: {case: insensitive}\nlimits:\n"
                  "- {name: login, match: {path: /LogIn, header.x: A}, key: [], rate: 1/s}\n"
                  "- {name: file, match: {path: '/Files/:Name', path.Name: 'A%2F*'},"
                  " key: [path, path.Name], rate: 1/s}\n");
    test_expect(ASK(rules, "path", "/LOGIN;X", "header.x", "A"), "login{}");
    test_expect(ASK(rules, "path", "/LOGIN", "header.x", "a"), ""); /* only paths are folded */
    test_expect(ASK(rules, "path", "/files/a%2fB"), "file{path=/files/a%252Fb,path.Name=a%252Fb}");
    test_expect(ASK(rules, "path", "/login/", "header.x", "A"), "");
    weir_rules_unref(rules);
}

TEST("a trailing slash may make no difference")
{
    struct weir_rules *rules =
        test_load("paths: {trailing_slash: ignore}\nlimits:\n"
                  "- {name: login, match: {path: /login/}, key: [path], rate: 1/s}\n"
                  "- {name: root, match: {path: /}, key: [path], rate: 1/s}\n"
                  "- {name: below, match: {path: '/a/**'}, key: [path], rate: 1/s}\n"
                  "- {name: game, match: {path: '/games/:id'}, key: [path.id], rate: 1/s}\n");
    test_expect(ASK(rules, "path", "/login"), "login{path=/login}");
    test_expect(ASK(rules, "path", "/login/"), "login{path=/login}");
    test_expect(ASK(rules, "path", "/login//;x"), "login{path=/login}");
    test_expect(ASK(rules, "path", "/"), "root{path=/}");
    test_expect(ASK(rules, "path", "/a/"), "below{path=/a}");
    test_expect(ASK(rules, "path", "/games/7/"), "game{path.id=7}");
    test_expect(ASK(rules, "path", "/games/"), "");
    test_expect(ASK(rules, "path", "*"), "");
    weir_rules_unref(rules);
}

TEST("costs by route read paths alike")
{
    struct weir_rules *rules =
        test_load("paths: {case: insensitive, trailing_slash: ignore}\nlimits:\n"
                  "- {name: a, key: [], rate: 100/s,"
                  " cost: {'POST /Export/': 20, '/search/:what': 5, default: 1}}\n");
    assert_int_equal(ASK(rules, "method", "POST", "path", "/EXPORT;x")->checks[0].cost, 20);
    assert_int_equal(ASK(rules, "method", "GET", "path", "/Search/a;b/")->checks[0].cost, 5);
    assert_int_equal(ASK(rules, "method", "GET", "path", "/export")->checks[0].cost, 1);
    weir_rules_unref(rules);
}

TEST("problems of paths are reported")
{
    test_refused("paths: {parameters: cut, case: lower, trailing_slash: exact, slash: x}\n"
                 "limits: []\n",
                 "1:21: `parameters` must be one of strip, keep, not `cut`\n"
                 "1:32: `case` must be one of sensitive, insensitive, not `lower`\n"
                 "1:62: paths has no key `slash`; its keys are parameters, case, "
                 "trailing_slash\n");
    test_refused("paths: strip\nlimits: []\n", "1:8: paths must be a mapping, not a text\n");
}

RUN_TESTS()
