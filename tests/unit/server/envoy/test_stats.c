/* SPDX-License-Identifier: Apache-2.0 */
/* Counters by the keys of Envoy's limits: found again, bounded, walked while they grow; their
 * names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/bytes.h"
#include "feature/envoy/server/metrics.h"
#include "feature/envoy/server/stats.h"
#include "test.h"

static struct weir_envoy_stats *open_stats(void)
{
    struct weir_envoy_stats *stats;
    assert_int_equal(weir_envoy_stats_open(&stats), 0);
    return stats;
}

TEST("a key is found again")
{
    struct weir_envoy_stats *stats = open_stats();
    struct weir_envoy_counters *a = weir_envoy_stats_find(stats, weir_bytes_of("d.a"), true);
    struct weir_envoy_counters *b = weir_envoy_stats_find(stats, weir_bytes_of("d.b"), false);
    assert_ptr_not_equal(a, b);
    for (int i = 0; i < 2000; i++) { /* and after the registry has grown */
        char key[32];
        snprintf(key, sizeof key, "d.k_%d", i);
        weir_envoy_stats_find(stats, weir_bytes_of(key), i % 2 == 0);
    }
    assert_ptr_equal(weir_envoy_stats_find(stats, weir_bytes_of("d.a"), false), a);
    assert_ptr_equal(weir_envoy_stats_find(stats, weir_bytes_of("d.b"), true), b);
    weir_envoy_stats_close(stats);
}

TEST("keys of clients are bounded and those of the configuration are not")
{
    struct weir_envoy_stats *stats = open_stats();
    char key[WEIR_ENVOY_KEY_MAX + 2];
    for (int i = 0; i < WEIR_ENVOY_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "k%d", i);
        weir_envoy_stats_find(stats, weir_bytes_of(key), false);
    }
    struct weir_envoy_counters *other =
        weir_envoy_stats_find(stats, weir_bytes_of("one more"), false);
    assert_ptr_equal(weir_envoy_stats_find(stats, weir_bytes_of("and more"), false), other);
    assert_ptr_not_equal(weir_envoy_stats_find(stats, weir_bytes_of("k0"), false), other);
    assert_ptr_not_equal(weir_envoy_stats_find(stats, weir_bytes_of("configured"), true), other);
    weir_envoy_stats_close(stats);

    stats = open_stats();
    memset(key, 'x', sizeof key);
    struct weir_bytes longest = {key, WEIR_ENVOY_KEY_MAX}, longer = {key, WEIR_ENVOY_KEY_MAX + 1};
    assert_ptr_not_equal(weir_envoy_stats_find(stats, longest, false),
                         weir_envoy_stats_find(stats, longer, false));
    other = weir_envoy_stats_find(stats, longer, false);
    key[0] = 'y';
    assert_ptr_equal(weir_envoy_stats_find(stats, longer, false), other);
    weir_envoy_stats_close(stats);
}

struct walk {
    uint32_t keys, wrong;
};

static void count_key(void *context, struct weir_bytes key,
                      const struct weir_envoy_counters *counters)
{
    struct walk *walk = context;
    walk->keys++;
    walk->wrong += key.size == 0 || atomic_load(&counters->counts[0]) > 1;
}

static void *walk_on(void *context)
{
    for (int i = 0; i < 200; i++) {
        struct walk walk = {0, 0};
        weir_envoy_stats_walk(context, count_key, &walk);
        if (walk.wrong)
            return context;
    }
    return NULL;
}

TEST("others may walk while keys are added")
{
    struct weir_envoy_stats *stats = open_stats();
    struct walk walk = {0, 0};
    pthread_t thread;
    void *failed;
    assert_int_equal(pthread_create(&thread, NULL, walk_on, stats), 0);
    for (int i = 0; i < 5000; i++) {
        char key[32];
        snprintf(key, sizeof key, "d.k_%d", i);
        struct weir_envoy_counters *counters =
            weir_envoy_stats_find(stats, weir_bytes_of(key), false);
        atomic_store_explicit(&counters->counts[0], 1, memory_order_relaxed);
    }
    pthread_join(thread, &failed);
    assert_null(failed);
    weir_envoy_stats_walk(stats, count_key, &walk);
    assert_int_equal(walk.keys, 5001); /* and "other" */
    weir_envoy_stats_close(stats);
}

struct names {
    struct weir_bytes list[2]; /* "other" too */
    uint32_t count;
};

static void take_name(void *context, struct weir_bytes name,
                      const struct weir_envoy_counters *counters)
{
    struct names *names = context;
    (void)counters;
    assert_true(names->count < 2);
    names->list[names->count++] = name;
}

TEST("names are those of the original")
{
    static const struct {
        const char *key, *clean;
    } cases[] = {
        {"d.k_v", "d.k_v"},
        {"d.a:b|c", "d.a_b_c"},
        {"d.ip_10.1.2.3", "d.ip_10_1_2_3"},
        {"10.1.2.3.4", "10_1_2_3.4"},
        {"1.2.3", "1.2.3"},
        {"1234.1.2.3.4", "1234_1_2_3.4"},
        {"d.a b", "d.a b"},
        {"d.\xc3\xa4", "d.\xc3\xa4"}, /* two values, two counters */
        {"d.\xc3\xb6", "d.\xc3\xb6"},
        {"d.a\n\t\x7f"
         "b",
         "d.a___b"},
        {"", ""},
    };
    char name[WEIR_ENVOY_NAME_MAX], expected[WEIR_ENVOY_NAME_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weir_envoy_stats *stats = open_stats();
        struct names names = {.count = 0};
        weir_envoy_stats_find(stats, weir_bytes_of(cases[i].key), false);
        weir_envoy_stats_walk(stats, take_name, &names);
        assert_int_equal(names.count, 2);
        weir_envoy_stat_name(names.list[0], WEIR_ENVOY_COUNT_near_limit, name, sizeof name);
        snprintf(expected, sizeof expected, "ratelimit.service.rate_limit.%s.near_limit",
                 cases[i].clean);
        assert_string_equal(name, expected);
        weir_envoy_stats_close(stats);
    }
}

RUN_TESTS()
