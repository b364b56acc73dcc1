/* SPDX-License-Identifier: Apache-2.0 */
/* Entries as fields and texts of Redis: there and back, what is refused, and pages of lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/standing/server/redis/query.h"
#include "test.h"

#define S UINT64_C(1000000000)

static struct weir_history_entry entry_of(const char *kind, const char *value, uint8_t level)
{
    return (struct weir_history_entry){
        .kind = weir_bytes_of(kind),
        .value = weir_bytes_of(value),
        .id = {UINT64_C(0x0123456789abcdef), 0xf},
        .by = weir_bytes_of("operator ada"),
        .entry = {.since_ns = 3 * S,
                  .until_ns = 9 * S + 1,
                  .level = level,
                  .origin = WEIR_STANDING_BY_OPERATOR,
                  .reason_size = 8,
                  .reason = "too many"},
    };
}

static void expect_bytes(struct weir_bytes got, const char *text)
{
    assert_int_equal(got.size, strlen(text));
    assert_memory_equal(got.data, text, got.size);
}

/* The text of an entry with a number before it. */
static struct weir_bytes text_of(const struct weir_history_entry *entry,
                                 char out[STANDING_TEXT_MAX + 24])
{
    char text[STANDING_TEXT_MAX];
    int size = (int)standing_text_write(text, entry);

    return (struct weir_bytes){
        out, (size_t)snprintf(out, STANDING_TEXT_MAX + 24, "17 %.*s", size, text)};
}

TEST("an entry is written and read again")
{
    struct weir_history_entry entry = entry_of("user", "ada lovelace", WEIR_STANDING_SUSPENDED);
    char field[STANDING_FIELD_MAX], text[STANDING_TEXT_MAX + 24];
    struct shared_record record;
    size_t size = standing_field_write(field, &entry);
    struct weir_bytes written = text_of(&entry, text);

    expect_bytes((struct weir_bytes){field, size}, "o user ada lovelace");
    expect_bytes(written, "17 suspended 3000000000 9000000001 0123456789abcdef000000000000000f 12 "
                          "operator adatoo many");
    assert_true(standing_text_read(written, &record));
    assert_true(standing_field_read((struct weir_bytes){field, size}, &record.to));
    assert_int_equal(record.number, 17);
    assert_false(record.removed);
    assert_false(record.to.network);
    expect_bytes(record.to.kind, "user");
    expect_bytes(record.to.value, "ada lovelace");
    expect_bytes(record.to.by, "operator ada");
    assert_memory_equal(record.to.id, entry.id, sizeof entry.id);
    assert_int_equal(record.to.entry.origin, WEIR_STANDING_BY_OPERATOR);
    assert_int_equal(record.to.entry.level, WEIR_STANDING_SUSPENDED);
    assert_int_equal(record.to.entry.since_ns, 3 * S);
    assert_int_equal(record.to.entry.until_ns, 9 * S + 1);
    assert_int_equal(record.to.entry.reason_size, 8);
    assert_memory_equal(record.to.entry.reason, "too many", 8);
}

TEST("the longest entry has room")
{
    static char value[WEIR_LIST_VALUE_MAX + 1], kind[WEIR_STANDING_KIND_MAX + 1], by[200];
    char field[STANDING_FIELD_MAX], text[STANDING_TEXT_MAX + 24];
    struct weir_history_entry entry = entry_of("", "", WEIR_STANDING_CHALLENGED);
    struct shared_record record;

    memset(value, 'v', WEIR_LIST_VALUE_MAX);
    memset(kind, 'k', WEIR_STANDING_KIND_MAX);
    memset(by, 'b', sizeof by - 1);
    entry.kind = weir_bytes_of(kind);
    entry.value = weir_bytes_of(value);
    entry.by = weir_bytes_of(by);
    entry.entry.since_ns = entry.entry.until_ns = WEIR_NEVER - 1;
    entry.entry.reason_size = WEIR_STANDING_REASON_MAX;
    memset(entry.entry.reason, 'r', WEIR_STANDING_REASON_MAX);
    assert_int_equal(standing_field_write(field, &entry), STANDING_FIELD_MAX);
    assert_true(standing_text_read(text_of(&entry, text), &record));
    assert_int_equal(record.to.by.size, STANDING_BY_MAX);
    assert_int_equal(record.to.entry.until_ns, WEIR_NEVER - 1);
    assert_int_equal(record.to.entry.reason_size, WEIR_STANDING_REASON_MAX);
}

TEST("what redis cannot have from weir is refused")
{
    static const char *const fields[] = {"",           "o",    "o user",  "o user ",
                                         "x user ada", "o  a", "ouser a", "o user\0a"};
    static const char *const texts[] = {
        "",
        "17",
        "x warned 1 2 - 0 ",
        "17 angry 1 2 - 0 ",
        "17 warned 1 2 - 1 ",
        "17 warned 1 2 - 97 ",
        "17 warned 1 2 0123 0 ",
        "17 warned 1 2 0123456789abcdef000000000000000g 0 ",
        "17 warned 1x 2 - 0 ",
        "17 warned 1 18446744073709551616 - 0 ",
        "18446744073709551616 warned 1 2 - 0 ",
        "17 warned  2 - 0 ",
        "17 warned 1 2 - 0",
    };
    struct shared_record record;

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        assert_false(standing_field_read(weir_bytes_of(fields[i]), &record.to));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(standing_text_read(weir_bytes_of(texts[i]), &record));
    assert_true(standing_text_read(weir_bytes_of("17 warned - - - 0 "), &record));
    assert_int_equal(record.to.entry.until_ns, WEIR_NEVER);
    assert_true(record.to.network);
    assert_true(standing_text_read(weir_bytes_of("17 - 5 - - 4 weirno room"), &record));
    assert_true(record.removed);
}

/* A text with a byte less, or another one, is read whole or refused; sanitizers see the rest. */
TEST("random bytes are read or refused")
{
    struct weir_history_entry entry = entry_of("user", "ada", WEIR_STANDING_WARNED);
    char text[STANDING_TEXT_MAX + 24];
    struct weir_bytes whole = text_of(&entry, text);
    struct shared_record record;

    srand(5);
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)rand() % (whole.size + 1);
        char *part = malloc(size + 1); /* of its own, so that a byte too far is seen */

        memcpy(part, whole.data, size);
        if (size > 0 && i % 2)
            part[(size_t)rand() % size] = (char)rand();
        if (standing_text_read((struct weir_bytes){part, size}, &record))
            assert_true(record.to.entry.reason_size <= WEIR_STANDING_REASON_MAX);
        standing_field_read((struct weir_bytes){part, size}, &record.to);
        free(part);
    }
}

TEST("a page is in order whatever order redis has")
{
    const struct weir_history_filter filter = {.level = -1, .skip = 10, .count = 5};
    struct weir_reason reason = {""};
    struct standing_query query;
    json_t *page;

    assert_int_equal(standing_query_init(&query, &filter, &reason), 0);
    for (int i = 0; i < 200; i++) { /* each twice, as HSCAN may */
        char value[16];
        struct shared_record record = {.number = 1};

        snprintf(value, sizeof value, "u%02d", i * 37 % 100);
        record.to = entry_of("user", value, WEIR_STANDING_WARNED);
        assert_int_equal(standing_query_take(&query, &record), 0);
    }
    page = standing_query_entries(&query);
    assert_int_equal(json_array_size(page), 5);
    for (size_t i = 0; i < 5; i++) {
        char value[16];

        snprintf(value, sizeof value, "u%02zu", 10 + i);
        assert_string_equal(json_string_value(json_object_get(json_array_get(page, i), "value")),
                            value);
    }
    json_decref(page);
    standing_query_free(&query);
}

TEST("a page has what its filter wants")
{
    struct weir_history_filter filter = {
        .kind = weir_bytes_of("user"), .level = WEIR_STANDING_WARNED, .now_ns = 9 * S, .count = 5};
    struct shared_record record = {.to = entry_of("user", "ada", WEIR_STANDING_WARNED)};

    assert_true(standing_query_wants(&filter, &record));
    filter.now_ns = 9 * S + 1; /* its end */
    assert_false(standing_query_wants(&filter, &record));
    filter.now_ns = 0;
    filter.level = WEIR_STANDING_REVOKED;
    assert_false(standing_query_wants(&filter, &record));
    filter.level = -1;
    filter.value = weir_bytes_of("bob");
    assert_false(standing_query_wants(&filter, &record));
    filter.value = weir_bytes_of("ada");
    filter.kind = weir_bytes_of("org");
    assert_false(standing_query_wants(&filter, &record));
}

TEST("too far a page is refused")
{
    const struct weir_history_filter filter = {.level = -1, .skip = STANDING_PAGE_MAX, .count = 1};
    struct weir_reason reason = {""};
    struct standing_query query;

    assert_int_equal(standing_query_init(&query, &filter, &reason), WEIR_ERR_RANGE);
    assert_non_null(strstr(reason.text, "skip"));
}

RUN_TESTS()
