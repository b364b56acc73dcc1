/* SPDX-License-Identifier: Apache-2.0 */
/* The sketch of the most denied keys, against exact counts. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "feature/use/engine/top_denied.h"
#include "test.h"

static struct weir_bytes text(const char *s)
{
    return weir_bytes_of(s);
}

static void record(struct weir_top_denied *top_denied, const char *name, const char *key)
{
    static const uint64_t secret[2] = {3, 4};
    char both[512];
    uint64_t hash[2];
    int size = snprintf(both, sizeof both, "%s|%s", name, key);
    weir_siphash128(secret, both, (size_t)size, hash);
    if (weir_top_denied_count(top_denied, hash))
        weir_top_denied_name(top_denied, text(name), text(key));
}

static bool is(const struct weir_heavy_entry *denied, const char *name, const char *key)
{
    return denied->name_size == strlen(name) && denied->text_size == strlen(key) &&
           memcmp(denied->name, name, strlen(name)) == 0 &&
           memcmp(denied->text, key, strlen(key)) == 0;
}

static struct weir_top_denied *open_sketch(void)
{
    struct weir_top_denied *top_denied;
    assert_int_equal(weir_top_denied_open(&top_denied), 0);
    return top_denied;
}

TEST("while all keys fit the counts are exact")
{
    struct weir_top_denied *top_denied = open_sketch();
    for (int i = 0; i < WEIR_TOP_DENIED_KEYS; i++)
        for (int times = 0; times <= i; times++) {
            char key[16];
            snprintf(key, sizeof key, "key%d", i);
            record(top_denied, "login", key);
        }
    struct weir_heavy_entry list[WEIR_TOP_DENIED_KEYS];
    size_t count = weir_top_denied_collect(top_denied, (struct weir_bytes){NULL, 0}, list, 0,
                                           WEIR_TOP_DENIED_KEYS);
    weir_top_denied_sort(list, count);
    assert_int_equal(count, WEIR_TOP_DENIED_KEYS);
    for (int i = 0; i < WEIR_TOP_DENIED_KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%d", WEIR_TOP_DENIED_KEYS - 1 - i);
        assert_true(is(&list[i], "login", key));
        assert_int_equal(list[i].count, WEIR_TOP_DENIED_KEYS - i);
        assert_int_equal(list[i].error, 0);
    }
    weir_top_denied_close(top_denied);
}

TEST("a flood of single denials does not hide the heavy keys")
{
    struct weir_top_denied *top_denied = open_sketch();
    enum { FLOOD = 200000, HEAVY = 10 };
    uint64_t denials = 0;
    for (int i = 0; i < FLOOD; i++) {
        char key[32];
        snprintf(key, sizeof key, "random%d", i);
        record(top_denied, "login", key);
        denials++;
        for (int h = 0; h < HEAVY; h++)
            if (i % (10 + h) == 0) { /* 200000 / (10 + h) times: far above denials / 256 */
                snprintf(key, sizeof key, "heavy%d", h);
                record(top_denied, "login", key);
                denials++;
            }
    }
    struct weir_heavy_entry list[WEIR_TOP_DENIED_KEYS];
    size_t count =
        weir_top_denied_collect(top_denied, text("login"), list, 0, WEIR_TOP_DENIED_KEYS);
    weir_top_denied_sort(list, count);
    for (int h = 0; h < HEAVY; h++) {
        char key[32];
        uint64_t exact = (FLOOD + 10 + (uint64_t)h - 1) / (10 + (uint64_t)h);
        snprintf(key, sizeof key, "heavy%d", h);
        assert_true(is(&list[h], "login", key));
        assert_in_range(list[h].count, exact, exact + denials / WEIR_TOP_DENIED_KEYS);
        assert_true(list[h].count - list[h].error <= exact);
    }
    weir_top_denied_close(top_denied);
}

static uint64_t exact_counts[2000];

TEST("random streams keep the promises of the paper")
{
    uint32_t random = 7;
    for (int round = 0; round < 20; round++) {
        struct weir_top_denied *top_denied = open_sketch();
        uint64_t denials = 0;
        memset(exact_counts, 0, sizeof exact_counts);
        for (int i = 0; i < 20000; i++) {
            random = random * 1664525 + 1013904223;
            uint32_t id = (random >> 8) % 2000;
            id = id * (id % (1 + (uint32_t)round)) / (1 + (uint32_t)round); /* skewed */
            char key[16];
            snprintf(key, sizeof key, "%u", id);
            record(top_denied, "r", key);
            exact_counts[id]++;
            denials++;
        }
        struct weir_heavy_entry list[WEIR_TOP_DENIED_KEYS];
        size_t count =
            weir_top_denied_collect(top_denied, text("r"), list, 0, WEIR_TOP_DENIED_KEYS);
        uint64_t total = 0, found_heavy = 0, heavy = 0;
        for (size_t i = 0; i < count; i++) {
            char key[16] = {0};
            memcpy(key, list[i].text, list[i].text_size);
            uint64_t exact = exact_counts[strtoul(key, NULL, 10)];
            assert_true(list[i].count >= exact && list[i].count - list[i].error <= exact);
            total += list[i].count;
            found_heavy += exact > denials / WEIR_TOP_DENIED_KEYS;
        }
        for (size_t id = 0; id < 2000; id++)
            heavy += exact_counts[id] > denials / WEIR_TOP_DENIED_KEYS;
        assert_int_equal(total, denials); /* Space-Saving's invariant */
        assert_int_equal(found_heavy, heavy);
        weir_top_denied_close(top_denied);
    }
}

TEST("only the limit asked for is collected")
{
    struct weir_top_denied *top_denied = open_sketch();
    record(top_denied, "login", "a");
    record(top_denied, "login", "b");
    record(top_denied, "log", "a");
    struct weir_heavy_entry list[4];
    assert_int_equal(weir_top_denied_collect(top_denied, text("login"), list, 0, 4), 2);
    assert_int_equal(weir_top_denied_collect(top_denied, text("log"), list, 0, 4), 1);
    assert_true(is(&list[0], "log", "a"));
    assert_int_equal(weir_top_denied_collect(top_denied, text("none"), list, 0, 4), 0);
    assert_int_equal(weir_top_denied_collect(top_denied, text("login"), list, 0, 1), 1);
    weir_top_denied_close(top_denied);
}

TEST("keys of several workers are added up")
{
    struct weir_top_denied *one = open_sketch(), *two = open_sketch();
    for (int i = 0; i < 3; i++)
        record(one, "login", "both");
    for (int i = 0; i < 4; i++)
        record(two, "login", "both");
    record(one, "login", "first");
    record(two, "login", "second");
    struct weir_heavy_entry list[8];
    size_t count = weir_top_denied_collect(one, text("login"), list, 0, 8);
    count = weir_top_denied_collect(two, text("login"), list, count, 8);
    weir_top_denied_sort(list, count);
    assert_int_equal(count, 3);
    assert_true(is(&list[0], "login", "both") && list[0].count == 7);
    assert_true(is(&list[1], "login", "first") && list[1].count == 1);
    assert_true(is(&list[2], "login", "second") && list[2].count == 1);
    weir_top_denied_close(one);
    weir_top_denied_close(two);
}

TEST("long texts are cut between characters and reported apart by their hash")
{
    struct weir_top_denied *top_denied = open_sketch();
    enum { CUT = WEIR_HEAVY_TEXT_MAX - 18 }; /* and one byte of the character across the cut */
    char whole[WEIR_HEAVY_TEXT_MAX + 1], longer[300], other[300];
    memset(whole, 'w', sizeof whole - 1);
    whole[sizeof whole - 1] = '\0';
    memset(longer, 'x', 299);
    longer[299] = '\0';
    memcpy(longer + CUT, "\xC3\xA9", 2); /* é stands across the cut */
    memcpy(other, longer, sizeof other);
    other[298] = 'y';
    record(top_denied, "r", whole);
    record(top_denied, "r", longer);
    record(top_denied, "r", other);
    struct weir_heavy_entry list[3];
    assert_int_equal(weir_top_denied_collect(top_denied, text("r"), list, 0, 3), 3);
    assert_true(is(&list[0], "r", whole));
    for (int i = 1; i < 3; i++) {
        assert_int_equal(list[i].text_size, CUT + 17);
        assert_memory_equal(list[i].text, longer, CUT);
        assert_int_equal(list[i].text[CUT], '~');
    }
    assert_memory_not_equal(list[1].text, list[2].text, CUT + 17);
    weir_top_denied_close(top_denied);
}

static _Atomic bool stop;

static void *collect_always(void *context)
{
    struct weir_top_denied *top_denied = context;
    static struct weir_heavy_entry list[WEIR_TOP_DENIED_KEYS];
    uint64_t torn = 0;
    while (!atomic_load(&stop)) {
        size_t count =
            weir_top_denied_collect(top_denied, text("r"), list, 0, WEIR_TOP_DENIED_KEYS);
        for (size_t i = 0; i < count; i++) /* each key is one letter, repeated */
            for (size_t at = 1; at < list[i].text_size; at++)
                torn += list[i].text[at] != list[i].text[0];
    }
    return (void *)(uintptr_t)torn;
}

static uint64_t sum_of_all(struct weir_top_denied *top)
{
    struct weir_heavy_entry list[WEIR_TOP_DENIED_KEYS];
    size_t count = weir_top_denied_collect(top, text("r"), list, 0, WEIR_TOP_DENIED_KEYS);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += list[i].count;
    return sum;
}

TEST("a reader sees whole entries while the worker records")
{
    enum { DENIALS = 100000 };
    struct weir_top_denied *top_denied = open_sketch();
    pthread_t reader;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&reader, NULL, collect_always, top_denied), 0);
    for (int i = 0; i < DENIALS; i++) {
        char key[21];
        memset(key, 'a' + i % 26, 20);
        key[20] = '\0';
        record(top_denied, "r", key);
    }
    atomic_store(&stop, true);
    void *torn;
    assert_int_equal(pthread_join(reader, &torn), 0);
    assert_null(torn);
    uint64_t recorded = sum_of_all(top_denied);
    assert_true(recorded <= DENIALS); /* those are missing that came while the reader copied */
    record(top_denied, "r", "aaaaaaaaaaaaaaaaaaaa");
    assert_int_equal(sum_of_all(top_denied), recorded + 1);
    weir_top_denied_close(top_denied);
}

RUN_TESTS()
