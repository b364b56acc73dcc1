/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of keywords: every row is one that the loader can read, and defaults are values. */
#include "rules_test.h"
#include "test.h"

#include <stdlib.h>

#include "rules/load/grammar.h"
#include "rules/load/keyword.h"

#define ROOM 65536 /* more than any struct that a section fills */
#define DEPTH_MAX 8

static void check_section(const struct rules_section *section, unsigned depth);

/* A row with a place has a kind that can fill it, and bounds within its width. */
static void check_place(const struct rules_keyword *keyword)
{
    bool text =
        keyword->kind == RULES_TEXT || keyword->kind == RULES_PLACE || keyword->kind == RULES_FILE;
    if (keyword->parse)
        return;
    if (text)
        assert_int_equal(keyword->width, sizeof(const char *));
    else
        assert_true(keyword->width == 1 || keyword->width == 2 || keyword->width == 4 ||
                    keyword->width == 8);
    if (!text && keyword->width < 8)
        assert_true(keyword->most < UINT64_C(1) << 8 * keyword->width);
    assert_true((size_t)keyword->at + keyword->width <= ROOM);
    assert_true(keyword->kind != RULES_ANY && keyword->kind != RULES_MAPPING);
    assert_int_equal(keyword->many, RULES_ONE);
}

static void check_keyword(const struct rules_keyword *keyword, unsigned depth)
{
    if (keyword->width > 0)
        check_place(keyword);
    assert_true(keyword->least <= keyword->most);
    if (keyword->kind == RULES_CHOICE)
        assert_non_null(keyword->words);
    if (keyword->kind == RULES_MAPPING)
        assert_non_null(keyword->section);
    assert_non_null(keyword->doc);
    if (keyword->section)
        check_section(keyword->section, depth + 1);
}

static void check_section(const struct rules_section *section, unsigned depth)
{
    assert_true(depth < DEPTH_MAX);
    for (; section; section = section->or_else) {
        void *into = calloc(1, ROOM);
        assert_non_null(into);
        rules_section_defaults(section, into); /* asserts that each can be read */
        free(into);
        assert_true(section->count <= RULES_KEYWORDS_MAX);
        for (uint32_t i = 0; i < section->count; i++) {
            assert_non_null(section->keywords[i].name);
            if (rules_section_has(section, i))
                check_keyword(&section->keywords[i], depth);
            for (uint32_t j = 0; j < i; j++)
                assert_string_not_equal(section->keywords[i].name, section->keywords[j].name);
        }
        if (section->others)
            check_keyword(section->others, depth);
    }
}

TEST("every row of the grammar can be read")
{
    check_section(&rules_section_file, 0);
}

TEST("a range is written in the largest units")
{
    static const struct {
        struct rules_keyword keyword;
        const char *text;
    } cases[] = {
        {{.kind = RULES_DURATION, RULES_RANGE(RULES_MINUTE, 366 * RULES_DAY)}, "1min to 366d"},
        {{.kind = RULES_DURATION, RULES_RANGE(0, 1500 * RULES_MS), .word = "off"},
         "0s to 1500ms, or off"},
        {{.kind = RULES_SIZE, RULES_RANGE(1 << 18, UINT64_C(1) << 42)}, "256KiB to 4TiB"},
        {{.kind = RULES_SIZE, RULES_RANGE(0, 1000)}, "0 to 1000"},
        {{.kind = RULES_PERCENT, RULES_RANGE(1, 90)}, "1% to 90%"},
        {{.kind = RULES_NUMBER, RULES_RANGE(1, 128), .word = "auto"}, "1 to 128, or auto"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rules_range range;
        assert_string_equal(rules_range_text(&range, &cases[i].keyword), cases[i].text);
    }
}

TEST("what only the server can do is named by its key")
{
    static const struct {
        const char *text, *key;
    } cases[] = {
        {"limits: []", NULL},
        {"{ limits: [], adaptive: {} }", NULL},
        {"{ limits: [], store: { redis: 'redis://h', nodes: 1 } }", "store"},
        {"{ limits: [], identify: [header.x-api-key], identities: 'redis://h' }", "identities"},
        {"{ limits: [], adaptive: { a: { algorithm: aimd, max: 5 } } }", "adaptive"},
        {"{ limits: [], score: { key: [user], signals: "
         "[{ name: s, add: 1, when: { method: GET } }] } }",
         "score"},
        {"{ limits: [], store: { nodes: 1 }, regions: { self: eu, eu: { redis: 'redis://h' }, "
         "us: { redis: 'redis://i' } } }",
         "store"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *key = NULL, *why = NULL;
        struct weir_rules *rules = test_load(cases[i].text);
        assert_int_equal(weir_rules_server_only(rules, &key, &why), cases[i].key != NULL);
        if (cases[i].key) {
            assert_string_equal(key, cases[i].key);
            assert_non_null(why);
        }
        weir_rules_unref(rules);
    }
}

RUN_TESTS()
