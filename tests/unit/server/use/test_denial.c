/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/use/server/denial.h"
#include "test.h"

static void add(struct weir_shown_list *list, enum weir_shown_form form, const char *kind,
                const char *value)
{
    static const uint8_t digest[WEIR_SHOWN_SHA256] = {0x12, 0x34};
    const struct weir_shown shown = {.form = (uint8_t)form,
                                     .digest_size = sizeof digest,
                                     .kind = weir_bytes_of(kind),
                                     .value = weir_bytes_of(value),
                                     .digest = digest};
    assert_true(weir_shown_add(list, &shown));
}

static struct weir_denial example(void)
{
    struct weir_denial denial = {.time_ns = UINT64_C(1795417759634693696),
                                 .cost = 2,
                                 .capacity = 60,
                                 .remaining = 1,
                                 .retry_after_ns = UINT64_C(11859000000),
                                 .reset_after_ns = WEIR_NEVER,
                                 .rate = 60,
                                 .window_ns = UINT64_C(60000000000),
                                 .more = 7,
                                 .algorithm = WEIR_TOKEN_BUCKET,
                                 .action = 4,
                                 .source = 3,
                                 .standing = 2};
    denial.limit_size =
        weir_denial_copy(denial.limit, sizeof denial.limit, (struct weir_bytes){"search", 6});
    add(&denial.key, WEIR_SHOWN_WHOLE, "user", "ann");
    add(&denial.key, WEIR_SHOWN_WHOLE, "client.ip", "10.0.0.1");
    add(&denial.caller, WEIR_SHOWN_WHOLE, "org", "acme");
    denial.node_size =
        weir_denial_copy(denial.node, sizeof denial.node, (struct weir_bytes){"n", 1});
    return denial;
}

TEST("a denial is the same after its line")
{
    struct weir_denial denial = example(), again;
    json_t *json = weir_denial_json(&denial);
    char *line = json_dumps(json, JSON_COMPACT);
    assert_true(weir_denial_read(&again, line, strlen(line)));
    assert_memory_equal(&again, &denial, sizeof denial);
    assert_non_null(strstr(line, "\"time\":\"2026-11-23T07:09:19.634Z\""));
    assert_non_null(strstr(line, "\"policy\":\"60;w=60\""));
    assert_non_null(strstr(line, "\"reset_after_ms\":null"));
    assert_null(strstr(line, "\"id\""));
    free(line);
    json_decref(json);
}

TEST("a key that is no text still makes a line")
{
    struct weir_denial denial = example(), again;
    denial.key.size = denial.caller.size = 0;
    add(&denial.key, WEIR_SHOWN_WHOLE, "user", "\xff\x01%");
    add(&denial.key, WEIR_SHOWN_ADDRESS, "user", "10.0.0.1");
    add(&denial.key, WEIR_SHOWN_MISSING, "org", "");
    add(&denial.key, WEIR_SHOWN_LONG, "header.x", "begins");
    add(&denial.key, WEIR_SHOWN_SECRET, "header.y", "");
    add(&denial.key, WEIR_SHOWN_CUT, "header.z", "cut");
    weir_shown_add_more(&denial.key);
    json_t *json = weir_denial_json(&denial);
    char *line = json_dumps(json, JSON_COMPACT);
    assert_true(weir_denial_read(&again, line, strlen(line)));
    assert_memory_equal(&again.key, &denial.key, sizeof again.key);
    assert_non_null(strstr(line, "{\"kind\":\"user\",\"encoded\":\"%ff%01%25\"}"));
    assert_non_null(strstr(line, "\"value\":\"10.0.0.1\",\"as\":\"user\""));
    assert_non_null(strstr(line, "{\"kind\":\"org\",\"value\":null}"));
    free(line);
    json_decref(json);
}

TEST("an older line has its key as text")
{
    static const char line[] = "{\"time_ns\":1,\"limit\":\"a\",\"key\":\"user=%D8%B9,org=-\"}";
    char text[WEIR_SHOWN_TEXT_MAX];
    struct weir_denial denial;
    assert_true(weir_denial_read(&denial, line, strlen(line)));
    size_t size = weir_shown_text(weir_shown_packed(&denial.key), text);
    assert_int_equal(size, strlen("user=ع,org=-"));
    assert_memory_equal(text, "user=ع,org=-", size);
}

TEST("what is no denial is refused")
{
    static const char *const lines[] = {"",
                                        "{}",
                                        "[]",
                                        "null",
                                        "{\"time_ns\":1}",
                                        "x",
                                        "{\"time_ns\":0,\"limit\":\"a\"}",
                                        "{\"time_ns\":1,\"time_ns\":2,\"limit\":\"a\"}"};
    struct weir_denial denial;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(weir_denial_read(&denial, lines[i], strlen(lines[i])));
}

TEST("texts are cut between characters")
{
    char field[4];
    assert_int_equal(weir_denial_copy(field, 4, (struct weir_bytes){"abc\xc3\xa9", 5}), 3);
    assert_int_equal(weir_denial_copy(field, 4, (struct weir_bytes){"abcd", 4}), 4);
    assert_int_equal(weir_denial_copy(field, 4, (struct weir_bytes){NULL, 0}), 0);
}

static bool matches(const char *key, const char *limit, uint64_t since_ns, uint64_t until_ns)
{
    struct weir_denial denial = example();
    struct weir_denial_filter filter = {.since_ns = since_ns, .until_ns = until_ns};
    if (key)
        assert_true(weir_asked_read(&filter.key, weir_bytes_of(key)));
    if (limit)
        filter.limit = weir_bytes_of(limit);
    return weir_denial_matches(&denial, &filter);
}

TEST("filters hold together")
{
    const uint64_t time_ns = example().time_ns;
    assert_true(matches(NULL, NULL, 0, 0));
    assert_true(matches("user=ann,client.ip=10.0.0.1", "search", time_ns, time_ns));
    assert_true(matches("client.ip=10.0.0.1,user=ann", NULL, 0, 0));
    assert_false(matches("user=ann,client.ip=10.0.0.2", NULL, 0, 0));
    assert_true(matches("ann", NULL, 0, 0));
    assert_true(matches("10.0.0.1", NULL, 0, 0));
    assert_true(matches("user=ann", NULL, 0, 0));
    assert_true(matches("org=acme", NULL, 0, 0)); /* who has asked */
    assert_false(matches("org=ann", NULL, 0, 0));
    assert_false(matches("acm", NULL, 0, 0));
    assert_false(matches("an", NULL, 0, 0));
    assert_false(matches("user", NULL, 0, 0));
    assert_false(matches("", NULL, 0, 0));
    assert_false(matches("ann", "other", 0, 0));
    assert_false(matches(NULL, "searc", 0, 0));
    assert_false(matches(NULL, NULL, time_ns + 1, 0));
    assert_false(matches(NULL, NULL, 0, time_ns - 1));
}

TEST("of a search for several values each is read once, and nine are refused")
{
    struct weir_asked asked;
    assert_true(weir_asked_read(&asked, weir_bytes_of("a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,9")));
    assert_int_equal(asked.each_count, 8);
    assert_false(weir_asked_read(&asked, weir_bytes_of("a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9")));
    assert_int_equal(asked.each_count, 0);
    assert_true(weir_asked_read(&asked, weir_bytes_of("a=1,2,3,4,5,6,7,8,9")));
    assert_int_equal(asked.each_count, 0);
    assert_true(weir_asked_read(&asked, weir_bytes_of("a=1,b=2,=3")));
}

RUN_TESTS()
