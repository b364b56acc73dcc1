/* SPDX-License-Identifier: Apache-2.0 */
/* Names in requests that nobody knows: counted by name, within bounds, by many threads. */
#include <pthread.h>

#include "rules_test.h"
#include "test.h"

#include "feature/score/rules/score.h"
#include "rules/unknown_names.h"

#define TEXT "attributes: [tenant]\nlimits: []\n"

static uint64_t count_of(const struct weir_rules *rules, const char *name)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name one = weir_rules_unknown(rules, i);
        if (one.count > 0 && (one.name ? name && strcmp(one.name, name) == 0 : !name))
            count += one.count;
    }
    return count;
}

static void add(const struct weir_rules *rules, const char *name)
{
    rules_unknown_name(rules, name, strlen(name));
}

TEST("names are counted and the nearest is named")
{
    struct weir_rules *rules = test_load(TEXT);
    assert_int_equal(weir_rules_unknown_total(rules), 0);
    add(rules, "tennant");
    add(rules, "tennant");
    add(rules, "other");
    assert_int_equal(weir_rules_unknown_total(rules), 3);
    assert_int_equal(count_of(rules, "tennant"), 2);
    assert_int_equal(count_of(rules, "other"), 1);
    uint32_t news = 0;
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name one = weir_rules_unknown_news(rules, i);
        if (one.count > 0 && strcmp(one.name, "tennant") == 0)
            assert_string_equal(one.near, "tenant");
        news += one.count > 0;
        assert_int_equal(weir_rules_unknown_news(rules, i).count, 0);
    }
    assert_int_equal(news, 2);
    weir_rules_unref(rules);
}

TEST("a name is kept as plain bytes of bounded length")
{
    char longest[200], kept[RULES_UNKNOWN_SIZE + 1] = "";
    struct weir_rules *rules = test_load(TEXT);
    rules_unknown_name(rules, "a\"\n\0b", 5);
    assert_int_equal(count_of(rules, "a???b"), 1);
    memset(longest, 'x', sizeof longest);
    memset(kept, 'x', RULES_UNKNOWN_SIZE);
    rules_unknown_name(rules, longest, sizeof longest);
    assert_int_equal(count_of(rules, kept), 1);
    rules_unknown_name(rules, NULL, 0);
    assert_int_equal(count_of(rules, ""), 1);
    weir_rules_unref(rules);
}

TEST("names beyond the bound are counted together")
{
    struct weir_rules *rules = test_load(TEXT);
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        add(rules, name);
        add(rules, name);
    }
    assert_int_equal(weir_rules_unknown_total(rules), 200);
    assert_int_equal(count_of(rules, NULL), 2 * (100 - RULES_UNKNOWN_MAX));
    assert_int_equal(count_of(rules, "n0"), 2);
    weir_rules_unref(rules);
}

TEST("new rules take over what is unknown still")
{
    struct weir_rules *before = test_load(TEXT);
    struct weir_rules *rules = test_load("attributes: [tool]\nlimits: []\n");
    add(before, "tool");
    add(before, "other");
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++)
        (void)weir_rules_unknown_news(before, i);
    add(before, "other");
    weir_rules_inherit(rules, before);
    assert_int_equal(count_of(rules, "tool"), 0);
    assert_int_equal(count_of(rules, "other"), 2);
    uint64_t news = 0;
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++)
        news += weir_rules_unknown_news(rules, i).count;
    assert_int_equal(news, 1); /* the other one is logged already */
    weir_rules_unref(rules);
    weir_rules_unref(before);
}

#define THREADS 4
#define ROUNDS 20000

static void *add_many(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i % 50);
        add(context, name);
    }
    return NULL;
}

TEST("threads lose no count and make no name twice")
{
    struct weir_rules *rules = test_load(TEXT);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, rules), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    uint64_t sum = 0;
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name one = weir_rules_unknown(rules, i);
        sum += one.count;
        for (uint32_t j = 0; j < i && one.name; j++) {
            const char *other = weir_rules_unknown(rules, j).name;
            assert_true(!other || strcmp(other, one.name) != 0);
        }
    }
    assert_int_equal(sum, THREADS * ROUNDS);
    assert_int_equal(weir_rules_unknown_total(rules), THREADS * ROUNDS);
    weir_rules_unref(rules);
}

RUN_TESTS()
