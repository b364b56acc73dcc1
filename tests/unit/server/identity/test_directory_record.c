/* SPDX-License-Identifier: Apache-2.0 */
/* What Redis says of one caller: good hashes, bad ones, and what is no hash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "feature/identity/server/directory_record.h"
#include "test.h"

#define NODES_MAX 300

static struct weir_resp_node nodes[NODES_MAX];
static struct weir_reason problem;

static void text_node(uint32_t i, const char *text, size_t size)
{
    nodes[i] = (struct weir_resp_node){.type = WEIR_RESP_BULK, .depth = 1, .text = {text, size}};
}

/* Reads an array, or a map, of `count` texts. */
static int read_texts(enum weir_resp_type type, const char *const *texts, uint32_t count,
                      struct weir_directory_record **record)
{
    nodes[0] = (struct weir_resp_node){.type = (uint8_t)type, .count = count};
    for (uint32_t i = 0; i < count; i++)
        text_node(i + 1, texts[i], strlen(texts[i]));
    return weir_directory_record_read(nodes, count + 1, record, &problem);
}

#define READ(record, ...)                                                                          \
    read_texts(WEIR_RESP_ARRAY, (const char *const[]){__VA_ARGS__},                                \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), record)

static void expect_text(struct weir_bytes text, const char *expected)
{
    assert_int_equal(text.data != NULL, expected != NULL);
    if (expected) {
        assert_int_equal(text.size, strlen(expected));
        assert_memory_equal(text.data, expected, text.size);
    }
}

TEST("a hash is a caller whatever the order and other fields")
{
    struct weir_directory_record *record;
    struct weir_bytes limit, text;
    size_t at = 0;
    assert_int_equal(READ(&record, "limit.api", "5000/min burst 200", "plan", "pro", "colour",
                          "blue", "user", "alice", "limit.month", "unlimited", "org", "acme"),
                     1);
    assert_string_equal(problem.text, "");
    expect_text(record->user, "alice");
    expect_text(record->org, "acme");
    expect_text(record->plan, "pro");
    assert_true(weir_directory_record_next(record, &at, &limit, &text));
    expect_text(limit, "api");
    expect_text(text, "5000/min burst 200");
    assert_true(weir_directory_record_next(record, &at, &limit, &text));
    expect_text(limit, "month");
    expect_text(text, "unlimited");
    assert_false(weir_directory_record_next(record, &at, &limit, &text));
    free(record);

    const char *const texts[] = {"user", "bob"};
    assert_int_equal(read_texts(WEIR_RESP_MAP, texts, 2, &record), 1);
    expect_text(record->user, "bob");
    expect_text(record->org, NULL);
    expect_text(record->plan, NULL);
    at = 0;
    assert_false(weir_directory_record_next(record, &at, &limit, &text));
    free(record);
}

TEST("no hash and no user are nobody")
{
    static const char wrong[] = "WRONGTYPE Operation against a key holding the wrong kind of value";
    struct weir_directory_record *record;
    nodes[0] = (struct weir_resp_node){.type = WEIR_RESP_ARRAY};
    assert_int_equal(weir_directory_record_read(nodes, 1, &record, &problem), 0);
    assert_string_equal(problem.text, "");

    assert_int_equal(READ(&record, "org", "acme"), 0);
    assert_string_equal(problem.text, "user is missing");
    assert_null(record);

    nodes[0] = (struct weir_resp_node){.type = WEIR_RESP_ERROR, .text = {wrong, sizeof wrong - 1}};
    assert_int_equal(weir_directory_record_read(nodes, 1, &record, &problem), 0);
    assert_string_equal(problem.text, "it is not a hash");
}

TEST("what is good is used and the first problem reported")
{
    char longest[258];
    struct weir_directory_record *record;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(READ(&record, "user", "alice", "org", longest, "plan", "", "limit.", "x",
                          "limit.api", longest),
                     1);
    assert_string_equal(problem.text, "org must have 1 to 256 bytes");
    expect_text(record->user, "alice");
    expect_text(record->org, NULL);
    expect_text(record->plan, NULL);
    assert_int_equal(record->text_count, 0);
    free(record);

    assert_int_equal(READ(&record, "user", longest, "org", "acme"), 0);
    assert_string_equal(problem.text, "user must have 1 to 256 bytes");
    longest[256] = '\0';
    assert_int_equal(READ(&record, "user", longest, "limit.a", longest), 1);
    assert_string_equal(problem.text, "");
    assert_int_equal(record->user.size, 256);
    struct weir_bytes limit, text;
    size_t at = 0;
    assert_true(weir_directory_record_next(record, &at, &limit, &text));
    expect_text(text, longest);
    free(record);
}

TEST("there are so many overrides at most")
{
    const char *texts[2 + 2 * 65] = {"user", "alice"};
    char names[65][24];
    struct weir_directory_record *record;
    for (int i = 0; i < 65; i++) {
        snprintf(names[i], sizeof names[i], "limit.l%d", i);
        texts[2 + 2 * i] = names[i];
        texts[3 + 2 * i] = "1/s";
    }
    assert_int_equal(read_texts(WEIR_RESP_ARRAY, texts, 2 + 2 * 64, &record), 1);
    assert_string_equal(problem.text, "");
    assert_int_equal(record->text_count, 64);
    free(record);
    assert_int_equal(read_texts(WEIR_RESP_ARRAY, texts, 2 + 2 * 65, &record), 1);
    assert_string_equal(problem.text, "too many overrides");
    assert_int_equal(record->text_count, 64);
    free(record);
}

TEST("what the server refuses is reported in its words")
{
    static const char no[] = "NOPERM this user has no permissions to run the 'hgetall' command";
    struct weir_directory_record *record;
    nodes[0] = (struct weir_resp_node){.type = WEIR_RESP_ERROR, .text = {no, sizeof no - 1}};
    assert_int_equal(weir_directory_record_read(nodes, 1, &record, &problem), WEIR_ERR_STORE);
    assert_string_equal(problem.text, no);

    nodes[0] = (struct weir_resp_node){.type = WEIR_RESP_INTEGER, .text = {"7", 1}, .integer = 7};
    assert_int_equal(weir_directory_record_read(nodes, 1, &record, &problem), WEIR_ERR_STORE);

    nodes[0] = (struct weir_resp_node){.type = WEIR_RESP_ARRAY, .count = 2};
    text_node(1, "user", 4);
    nodes[2] = (struct weir_resp_node){.type = WEIR_RESP_ARRAY, .depth = 1};
    assert_int_equal(weir_directory_record_read(nodes, 3, &record, &problem), WEIR_ERR_STORE);

    /* A field without a value: it is not known what else is missing. */
    text_node(1, "user", 4);
    text_node(2, "alice", 5);
    text_node(3, "plan", 4);
    nodes[0] = (struct weir_resp_node){.type = WEIR_RESP_ARRAY, .count = 3};
    assert_int_equal(weir_directory_record_read(nodes, 4, &record, &problem), WEIR_ERR_STORE);
    assert_null(record);
    assert_string_equal(problem.text, "the reply is not a hash");
}

TEST("two are equal that say the same")
{
    struct weir_directory_record *a, *b, *c, *d;
    assert_int_equal(READ(&a, "user", "alice", "org", "acme"), 1);
    assert_int_equal(READ(&b, "org", "acme", "user", "alice"), 1);
    assert_int_equal(READ(&c, "user", "aliceacme"), 1);
    assert_int_equal(READ(&d, "user", "alice", "plan", "acme"), 1);
    assert_true(weir_directory_record_equal(a, b));
    assert_false(weir_directory_record_equal(a, c));
    assert_false(weir_directory_record_equal(a, d));
    free(a);
    free(b);
    free(c);
    free(d);
}

RUN_TESTS()
