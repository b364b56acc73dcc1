/* SPDX-License-Identifier: Apache-2.0 */
/* Rules files as they are shown: secrets are gone, and every line is where it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/dashboard/rules/shown_rules.h"
#include "rules/rules.h"
#include "test.h"

static struct weir_rules *rules;

static int open_rules(void **state)
{
    static const char text[] = "version: 1\nlimits: []\n";
    struct weir_problems problems = {0};
    return weir_rules_parse(&rules, "test", ".", text, sizeof text - 1, &problems);
}

static int close_rules(void **state)
{
    weir_rules_unref(rules);
    return 0;
}

static void assert_shown(const char *text, const char *expected)
{
    char *shown = weir_shown_rules(rules, text, strlen(text));
    assert_non_null(shown);
    assert_string_equal(shown, expected);
    free(shown);
}

TEST("values of secret names are hidden")
{
    assert_shown("token: abc\n", "token: (hidden)\n");
    assert_shown("a: {token: \"a\\\"b\", b: c}", "a: {token: (hidden), b: c}");
    assert_shown("Secret: [a, {b: c}]", "Secret: [(hidden), {(hidden): (hidden)}]");
    assert_shown("token:\n", "token:(hidden)\n");
    assert_shown("a: token\n", "a: token\n");
    assert_shown("- token\n- {token: x}\n", "- token\n- {token: (hidden)}\n");
}

TEST("values of header fields that carry credentials are hidden, also where no limit reads them")
{
    static const char *const secret[] = {"header.authorization", "header.cookie", "cookie.sid"};
    static const char *const open[] = {"header.user-agent", "user", "client.ip"};
    for (size_t i = 0; i < 3; i++) {
        assert_true(weir_rules_hides(rules, weir_bytes_of(secret[i])));
        assert_false(weir_rules_hides(rules, weir_bytes_of(open[i])));
    }
    assert_shown("header.authorization: Bearer x\n", "header.authorization: (hidden)\n");
}

TEST("what looks like a variable is a secret where secrets are not expanded")
{
    assert_shown("token: ${TOKEN}\n", "token: (hidden)\n");
    assert_shown("{password: '${pa55}', a: \"${A}\"}", "{password: (hidden), a: \"${A}\"}");
    assert_shown("secret:\n- a: ${B}\n", "secret:\n- (hidden): (hidden)\n");
}

TEST("lines stay where they are")
{
    assert_shown("token: |\n  a\n  b\nc: d\n", "token: (hidden)\n\n\nc: d\n");
    assert_shown("token: \"a\n  b\"\nc: d\n", "token: (hidden)\n\nc: d\n");
    assert_shown("\xc3\xa4: \xe2\x82\xac # \xf0\x9f\x98\x80\ntoken: \xf0\x9f\x98\x80\nb: c",
                 "\xc3\xa4: \xe2\x82\xac # \xf0\x9f\x98\x80\ntoken: (hidden)\nb: c");
}

TEST("comments with secret names are hidden")
{
    assert_shown("a: b # of the team\n# token: old\nc: '# token'\n",
                 "a: b # of the team\n# (hidden)\nc: '# token'\n");
    assert_shown("# redis://u:p@h\n", "# (hidden)\n");
}

TEST("of urls only the place is shown")
{
    assert_shown("a: http://u:p@h/x?y=z\n", "a: http://(hidden)@h/x(hidden)\n");
    assert_shown("a: 'http://h/x'\n", "a: 'http://h/x'\n");
    assert_shown("webhooks: [{url: https://h/T0/B1}]\n", "webhooks: [{url: https://h(hidden)}]\n");
    assert_shown("a: http://h/x http://u:p@h\n", "a: (hidden)\n");
}

TEST("urls whose parts are not plain are hidden as a whole")
{
    assert_shown("a: \"redis:\\/\\/:pw@h\"\n", "a: (hidden)\n");
    assert_shown("a: \"redis://u:pw\\x40h\"\n", "a: (hidden)\n");
    assert_shown("a: \"redis:\\\n  //:pw@h\"\nb: c\n", "a: (hidden)\n\nb: c\n");
    assert_shown("a: 'redis://u:p''w@h'\n", "a: (hidden)\n");
    assert_shown("a: redis://u:p/w@h\n", "a: (hidden)\n");
    assert_shown("a: \"b\\nc\"\n", "a: \"b\\nc\"\n");
}

TEST("an alias in a secret place hides what it stands for")
{
    assert_shown("a: &x abc\ntoken: *x\n", "a: (hidden)\ntoken: *x\n");
    assert_shown("a: &x {b: [c]}\nsecret: *x\n", "a: &x {(hidden): [(hidden)]}\nsecret: *x\n");
    assert_shown("a: &x abc\nb: *x\n", "a: &x abc\nb: *x\n");
}

TEST("what is no yaml is not shown")
{
    static const char *const wrong[] = {"a: [", "a: \xff\n", "\"a", "a: b: c"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(weir_shown_rules(rules, wrong[i], strlen(wrong[i])));
    assert_null(weir_shown_rules(rules, "a\0b", 3));
    char *large = malloc(WEIR_SHOWN_RULES_MAX + 1);
    assert_non_null(large);
    memset(large, '\n', WEIR_SHOWN_RULES_MAX + 1);
    assert_null(weir_shown_rules(rules, large, WEIR_SHOWN_RULES_MAX + 1));
    free(large);
}

RUN_TESTS_WITH(open_rules, close_rules)
