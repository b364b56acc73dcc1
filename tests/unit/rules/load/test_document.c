/* SPDX-License-Identifier: Apache-2.0 */
/* Files made to hurt: deep, huge, binary, or small ones that stand for billions of values. */
#include "rules_test.h"
#include "test.h"

/* Loads `size` bytes that must be refused, and returns the first message. */
static const char *first_problem(const char *text, size_t size)
{
    static char message[1200];
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_parse(&rules, "hostile.yaml", "", text, size, &problems),
                     WEIR_ERR_RULES);
    assert_null(rules);
    assert_true(problems.count > 0);
    snprintf(message, sizeof(message), "%u:%u: %s", problems.list[0].line, problems.list[0].column,
             problems.list[0].message);
    for (uint32_t i = 0; i < problems.count; i++)
        for (const char *at = problems.list[i].message; *at != '\0'; at++)
            assert_true((unsigned char)*at >= 0x20 && *at != 0x7F);
    weir_problems_free(&problems);
    return message;
}

TEST("deep nesting is refused")
{
    static char text[10000];
    memset(text, '[', sizeof(text));
    assert_string_equal(first_problem(text, sizeof(text)), "1:33: nested deeper than 32");
    memset(text, '-', sizeof(text));
    for (size_t i = 1; i < sizeof(text); i += 2)
        text[i] = ' ';
    assert_non_null(strstr(first_problem(text, sizeof(text)), "nested deeper than 32"));
}

TEST("a billion laughs are refused")
{
    static char text[4096] = "limits: []\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; i++) {
        sprintf(text + strlen(text), "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
                i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    assert_non_null(
        strstr(first_problem(text, strlen(text)), "aliases expand to more than 100000 values"));
}

TEST("an alias that is used modestly works")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: &k [user], match: &m {path: /x}, rate: &r 1/s}\n"
                  "- {name: b, key: *k, match: *m, rate: *r}\n");
    test_expect(ASK(rules, "path", "/x", "user", "u"), "a{user=u} b{user=u}");
    weir_rules_unref(rules);
}

TEST("too many anchors are refused")
{
    static char text[65536] = "limits:\n";
    size_t used = strlen(text);
    for (int i = 0; i < 1001; i++)
        used += (size_t)sprintf(text + used, "- &a%d x\n", i);
    assert_string_equal(first_problem(text, used), "1002:3: more than 1000 anchors");
}

TEST("files over 16 mib are refused")
{
    size_t size = (16 << 20) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    memset(text, '#', size);
    assert_string_equal(first_problem(text, size), "1:1: the file is larger than 16 MiB");
    free(text);
}

TEST("ten mib of anything are read or refused")
{
    static const char *const units[] = {"- x\n", "a: b\n", "#\n", "\n", "{",   "'",
                                        "\"\\",  "- - ",   "&a ", "!",  "|\n", "- [a, {b: c}]\n",
                                        "\xff",  "\0"};
    size_t size = 10 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
        size_t length = units[u][0] == '\0' ? 1 : strlen(units[u]);
        /* The shorter one where the YAML reader itself takes long. */
        size_t used = length > 3 ? size / 10 : size;
        for (size_t i = 0; i < used; i++)
            text[i] = units[u][i % length];
        assert_true(strlen(first_problem(text, used)) > 5);
    }
    free(text);
}

TEST("binary is refused at its byte")
{
    assert_string_equal(first_problem("limits: []\nx: \x01\n", 15),
                        "2:4: not valid YAML: control characters are not allowed");
    assert_memory_equal(first_problem("limits: \xff\xff\n", 11), "1:9: not valid YAML", 19);
    assert_memory_equal(first_problem("a\0b", 3), "1:2: not valid YAML", 19);
    assert_memory_equal(first_problem("\x7f"
                                      "ELF\2\1\1",
                                      7),
                        "1:1: not valid YAML", 19);
}

TEST("a thousand problems are reported and the rest counted")
{
    static char text[65536] = "limits:\n";
    size_t used = strlen(text);
    for (int i = 0; i < 1500; i++)
        used += (size_t)sprintf(text + used, "- x\n");
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_parse(&rules, "t", "", text, used, &problems), WEIR_ERR_RULES);
    assert_int_equal(problems.count, WEIR_PROBLEMS_MAX);
    assert_int_equal(problems.dropped, 500);
    assert_int_equal(problems.list[999].line, 1001);
    weir_problems_free(&problems);
    assert_null(problems.list);
}

TEST("values in messages are cut and escaped")
{
    static char text[4096] = "limits: []\n\"x\\ny\\e";
    memset(text + strlen(text), 'z', 1000);
    strcat(text, "\": 1\n");
    const char *message = first_problem(text, strlen(text));
    assert_memory_equal(message, "2:1: a rules file has no key `x\\x0ay\\x1bzzz", 42);
    assert_true(strlen(message) < 500);
}

RUN_TESTS()
